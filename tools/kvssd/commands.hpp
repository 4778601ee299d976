// The commands of the API on one key space: both its synchronous and its asynchronous functions perform these.
#pragma once

#include "tools/kvssd/handles.hpp"
#include <pmlab/kvssd/kvs_api.h>

#include <cstdint>

namespace pmlab::kvssd {

// Arguments are checked: no pointer is null. Throw what the engine throws.
[[nodiscard]] kvs_result store(_kvs_key_space_handle& space, const kvs_key& key, const kvs_value& value,
                               kvs_store_type how);
[[nodiscard]] kvs_result retrieve(_kvs_key_space_handle& space, const kvs_key& key, bool and_delete, kvs_value& value);
[[nodiscard]] kvs_result erase(_kvs_key_space_handle& space, const kvs_key& key, bool absent_is_error);
[[nodiscard]] kvs_result erase_group(_kvs_key_space_handle& space, const kvs_key_group_filter& filter);
[[nodiscard]] kvs_result exist(_kvs_key_space_handle& space, std::uint32_t count, const kvs_key* keys,
                               kvs_exist_list& list);
[[nodiscard]] kvs_result info_of(_kvs_key_space_handle& space, const kvs_key& key, kvs_kvp_info& info);
[[nodiscard]] kvs_result open_iterator(_kvs_key_space_handle& space, bool with_values,
                                       const kvs_key_group_filter& filter, kvs_iterator_handle& handle);
[[nodiscard]] kvs_result iterate(_kvs_key_space_handle& space, kvs_iterator_handle handle, kvs_iterator_list& list);

}  // namespace pmlab::kvssd
