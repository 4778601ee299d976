// The functions of the API: their arguments are checked here, and their exceptions end here.
#include "tools/kvssd/commands.hpp"
#include "tools/kvssd/message.hpp"
#include <pmlab/kvssd/kvs_api.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace {

using pmlab::kvssd::guarded;
using pmlab::kvssd::space_outcome;
namespace kvssd = pmlab::kvssd;

using device_entry = kvssd::entry<_kvs_device_handle>;
using space_entry = kvssd::entry<_kvs_key_space_handle>;

// Keeps a closed handle. Needs no memory: closing cannot fail.
void keep(_kvs_device_handle* closed) noexcept {
  static std::atomic<_kvs_device_handle*> all{nullptr};
  closed->next_closed = all.load(std::memory_order_relaxed);
  while (!all.compare_exchange_weak(closed->next_closed, closed, std::memory_order_acq_rel)) continue;
}
// The same, with the device's. REQUIRES: its mutex is held.
void keep(_kvs_device_handle& device, std::unique_ptr<_kvs_key_space_handle> closed) noexcept {
  closed->next_closed = std::move(device.closed_spaces);
  device.closed_spaces = std::move(closed);
}

std::optional<std::string_view> name_of(const kvs_key_space_name* name) {
  if (name->name == nullptr || name->name_len == 0 || name->name_len > MAX_KEYSPACE_NAME_LEN) return std::nullopt;
  // The length may count the 0 at the end, and no other one.
  const std::size_t length = ::strnlen(name->name, name->name_len);
  if (length == 0 || length + 1 < name->name_len) return std::nullopt;
  return std::string_view(name->name, length);
}

// The result of a device's handle that was not entered.
kvs_result no_device() noexcept {
  kvssd::last_message::set_fixed(
      "the handle of the device is NULL, was closed, or is of another process; use one that this process has open");
  return KVS_ERR_DEV_NOT_EXIST;
}
// The same of a key space's: it was closed itself; or it is none, or its device is closed or of another process.
kvs_result no_space(kvs_key_space_handle space) noexcept {
  return space != nullptr && space->on->door.is_open() ? KVS_ERR_KS_NOT_OPEN : KVS_ERR_KS_NOT_EXIST;
}

// Checks what all functions of a device have; then performs `function`.
template <class Function>
kvs_result on_device(kvs_device_handle device, bool has_arguments, Function&& function) {
  const device_entry inside(device);
  if (!inside) return no_device();
  if (!has_arguments) return KVS_ERR_PARAM_INVALID;
  return guarded(KVS_ERR_SYS_IO, [&] { return function(*device->of); });
}

// Answers with value(device).
template <class Number, class Value>
kvs_result answer(kvs_device_handle device, Number* out, Value&& value) {
  return on_device(device, out != nullptr, [&](kvssd::device& d) {
    *out = static_cast<Number>(value(d));
    return KVS_SUCCESS;
  });
}

// A thread of the library waits for no other one: two that closed each other's device would wait for ever.
bool is_in_callback() noexcept {
  if (!kvssd::workers::is_one()) return false;
  kvssd::last_message::set_fixed(
      "a callback cannot close a device or a key space; close it when the callback has returned");
  return true;
}

// Checks the arguments that all commands have; then performs `command`.
template <class Command>
kvs_result perform(kvs_key_space_handle space, bool has_arguments, Command&& command) {
  const space_entry inside(space);
  if (!inside) return no_space(space);
  if (!has_arguments) return KVS_ERR_PARAM_INVALID;
  return guarded(KVS_ERR_SYS_IO, [&] { return command(*space); });
}

// The same later: `command` is copied. Its result goes to the callback.
template <class Command>
kvs_result perform_later(kvs_postprocess_context context, bool has_arguments, kvs_postprocess_function post,
                         Command command) {
  space_entry inside(context.ks_hd);
  if (!inside) return no_space(context.ks_hd);
  if (!has_arguments || post == nullptr) return KVS_ERR_PARAM_INVALID;
  return guarded(KVS_ERR_SYS_IO, [&] {
    context.ks_hd->on->of->requests().give([context, post, command]() mutable {
      context.result = guarded(KVS_ERR_SYS_IO, [&] { return command(*context.ks_hd); });
      const kvs_key_space_handle space = context.ks_hd;
      post(&context);
      space->door.leave();
    });
    inside.release();  // to the request
    return KVS_SUCCESS;
  });
}

kvs_postprocess_context context_of(kvs_context what, kvs_key_space_handle space, void* private1, void* private2) {
  kvs_postprocess_context context{};
  context.context = what;
  context.ks_hd = space;
  context.private1 = private1;
  context.private2 = private2;
  return context;
}

bool has_bytes(const kvs_key* key) { return key != nullptr && key->key != nullptr; }
bool has_bytes(const kvs_value* value) { return value != nullptr && (value->value != nullptr || value->length == 0); }
kvs_store_type type_of(const kvs_option_store* opt) { return opt == nullptr ? KVS_STORE_POST : opt->st_type; }

}  // namespace

// ---- devices

kvs_result kvs_open_device(char* URI, kvs_device_handle* dev_hd) {
  if (URI == nullptr || dev_hd == nullptr) return KVS_ERR_PARAM_INVALID;
  return guarded(KVS_ERR_DEV_NOT_EXIST, [&] {
    auto opened = std::make_unique<_kvs_device_handle>();
    opened->of = std::make_unique<kvssd::device>(kvssd::parse_uri(URI));
    *dev_hd = opened.release();
    return KVS_SUCCESS;
  });
}

kvs_result kvs_close_device(kvs_device_handle dev_hd) {
  if (dev_hd == nullptr || !dev_hd->door.is_open()) return no_device();
  if (is_in_callback()) return KVS_ERR_SYS_IO;
  if (!dev_hd->door.close()) return no_device();
  // Key spaces are opened and closed inside: from here on there is no other one.
  dev_hd->door.wait_until_empty();
  for (const auto& [of, space] : dev_hd->spaces) static_cast<void>(space->door.close());
  for (const auto& [of, space] : dev_hd->spaces) space->door.wait_until_empty();
  dev_hd->of.reset();
  keep(dev_hd);
  return KVS_SUCCESS;
}

kvs_result kvs_get_device_info(kvs_device_handle dev_hd, kvs_device* dev_info) {
  return on_device(dev_hd, dev_info != nullptr, [&](kvssd::device& device) {
    const std::uint64_t capacity = device.pairs().stats().capacity_bytes;
    const std::uint64_t reserved = device.spaces().reserved();
    *dev_info = {.capacity = capacity,
                 .unalloc_capacity = capacity - std::min(capacity, reserved),
                 .max_value_len = static_cast<std::uint32_t>(device.pairs().largest_value()),
                 .max_key_len = static_cast<std::uint32_t>(device.pairs().longest_key()),
                 .optimal_value_len = KVS_OPTIMAL_VALUE_LENGTH,
                 .optimal_value_granularity = KVS_VALUE_LENGTH_ALIGNMENT_UNIT,
                 .extended_info = nullptr};
    return KVS_SUCCESS;
  });
}

kvs_result kvs_get_device_capacity(kvs_device_handle dev_hd, uint64_t* dev_capacity) {
  return answer(dev_hd, dev_capacity, [](kvssd::device& d) { return d.pairs().stats().capacity_bytes; });
}
kvs_result kvs_get_device_utilization(kvs_device_handle dev_hd, uint32_t* dev_utilization) {
  return answer(dev_hd, dev_utilization,
                [](kvssd::device& d) { return d.pairs().stats().utilisation() * 10000 + 0.5; });
}
kvs_result kvs_get_min_key_length(kvs_device_handle dev_hd, uint32_t* min_key_length) {
  return answer(dev_hd, min_key_length, [](kvssd::device& d) { return d.pairs().shortest_key(); });
}
kvs_result kvs_get_max_key_length(kvs_device_handle dev_hd, uint32_t* max_key_length) {
  return answer(dev_hd, max_key_length, [](kvssd::device& d) { return d.pairs().longest_key(); });
}
kvs_result kvs_get_min_value_length(kvs_device_handle dev_hd, uint32_t* min_value_length) {
  return answer(dev_hd, min_value_length, [](kvssd::device&) { return KVS_MIN_VALUE_LENGTH; });
}
kvs_result kvs_get_max_value_length(kvs_device_handle dev_hd, uint32_t* max_value_length) {
  return answer(dev_hd, max_value_length, [](kvssd::device& d) { return d.pairs().largest_value(); });
}
kvs_result kvs_get_optimal_value_length(kvs_device_handle dev_hd, uint32_t* opt_value_length) {
  return answer(dev_hd, opt_value_length, [](kvssd::device&) { return KVS_OPTIMAL_VALUE_LENGTH; });
}

// ---- key spaces

kvs_result kvs_create_key_space(kvs_device_handle dev_hd, kvs_key_space_name* key_space_name, uint64_t size,
                                kvs_option_key_space opt) {
  return on_device(dev_hd, key_space_name != nullptr, [&](kvssd::device& device) {
    const auto name = name_of(key_space_name);
    if (!name) return KVS_ERR_KS_NAME;
    if (opt.ordering != KVS_KEY_ORDER_NONE) return KVS_ERR_OPTION_INVALID;
    if (size > device.pairs().stats().capacity_bytes) return KVS_ERR_DEV_CAPAPCITY;
    switch (device.spaces().make(*name, size)) {
      case space_outcome::done: return KVS_SUCCESS;
      case space_outcome::exists: return KVS_ERR_KS_EXIST;
      default: return KVS_ERR_DEV_CAPAPCITY;
    }
  });
}

kvs_result kvs_delete_key_space(kvs_device_handle dev_hd, kvs_key_space_name* key_space_name) {
  return on_device(dev_hd, key_space_name != nullptr, [&](kvssd::device& device) {
    const auto name = name_of(key_space_name);
    if (!name) return KVS_ERR_KS_NAME;
    switch (device.spaces().remove(*name)) {
      case space_outcome::done: return KVS_SUCCESS;
      case space_outcome::is_open: return KVS_ERR_KS_OPEN;
      case space_outcome::full: return KVS_ERR_DEV_CAPAPCITY;
      default: return KVS_ERR_KS_NOT_EXIST;
    }
  });
}

kvs_result kvs_list_key_spaces(kvs_device_handle dev_hd, uint32_t index, uint32_t buffer_size,
                               kvs_key_space_name* names, uint32_t* ks_cnt) {
  return on_device(dev_hd, names != nullptr && ks_cnt != nullptr, [&](kvssd::device& device) {
    const std::vector<std::string> all = device.spaces().names();
    *ks_cnt = 0;
    if (all.empty()) return KVS_ERR_KS_NOT_EXIST;
    if (index >= all.size()) return KVS_ERR_KS_INDEX;
    const std::size_t room = buffer_size / sizeof(kvs_key_space_name);
    if (room == 0) return KVS_ERR_BUFFER_SMALL;
    for (std::size_t i = index; i < all.size() && *ks_cnt < room; ++i, ++*ks_cnt) {
      kvs_key_space_name& to = names[*ks_cnt];
      to.name_len = static_cast<uint32_t>(all[i].size());
      if (to.name != nullptr) std::memcpy(to.name, all[i].c_str(), all[i].size() + 1);
    }
    return KVS_SUCCESS;
  });
}

kvs_result kvs_open_key_space(kvs_device_handle dev_hd, char* name, kvs_key_space_handle* ks_hd) {
  return on_device(dev_hd, name != nullptr && ks_hd != nullptr, [&](kvssd::device& device) {
    const std::scoped_lock lock(dev_hd->mutex);
    auto handle = std::make_unique<_kvs_key_space_handle>();
    // A node of the map for the handle: behind the opening nothing may fail.
    std::map<kvssd::key_space*, std::unique_ptr<_kvs_key_space_handle>> one;
    const auto at = one.try_emplace(nullptr).first;
    auto outcome = space_outcome::done;
    handle->on = dev_hd;
    handle->of = device.spaces().open(name, outcome);
    if (outcome == space_outcome::is_open) return KVS_ERR_KS_OPEN;
    if (handle->of == nullptr) return KVS_ERR_KS_NOT_EXIST;
    auto node = one.extract(at);
    node.key() = handle->of;
    node.mapped() = std::move(handle);
    *ks_hd = node.mapped().get();
    dev_hd->spaces.insert(std::move(node));
    return KVS_SUCCESS;
  });
}

kvs_result kvs_close_key_space(kvs_key_space_handle ks_hd) {
  if (ks_hd == nullptr) return KVS_ERR_KS_NOT_EXIST;
  const device_entry inside(ks_hd->on);
  if (!inside) return KVS_ERR_KS_NOT_EXIST;
  if (!ks_hd->door.is_open()) return KVS_ERR_KS_NOT_OPEN;
  if (is_in_callback()) return KVS_ERR_SYS_IO;
  if (!ks_hd->door.close()) return KVS_ERR_KS_NOT_OPEN;
  ks_hd->door.wait_until_empty();
  _kvs_device_handle& device = *ks_hd->on;
  const std::scoped_lock lock(device.mutex);
  device.of->open_iterators().close_all(ks_hd->of->id);
  device.of->spaces().close(*ks_hd->of);
  const auto at = device.spaces.find(ks_hd->of);
  keep(device, std::move(at->second));
  device.spaces.erase(at);
  return KVS_SUCCESS;
}

kvs_result kvs_get_key_space_info(kvs_key_space_handle ks_hd, kvs_key_space* ks) {
  return perform(ks_hd, ks != nullptr, [&](_kvs_key_space_handle& space) {
    const auto stats = space.on->of->pairs().stats();
    const auto content = space.on->of->spaces().count(space.of->id);
    const std::uint64_t left = stats.capacity_bytes - stats.used_bytes;
    const std::uint64_t limit = space.of->capacity;
    ks->opened = true;
    ks->capacity = limit == 0 ? stats.capacity_bytes : limit;
    ks->free_size = limit == 0 ? left : std::min(left, limit - std::min(limit, content.bytes));
    ks->count = content.pairs;
    if (ks->name != nullptr) {
      ks->name->name_len = static_cast<uint32_t>(space.of->name.size());
      if (ks->name->name != nullptr) std::memcpy(ks->name->name, space.of->name.c_str(), space.of->name.size() + 1);
    }
    return KVS_SUCCESS;
  });
}

// ---- pairs

kvs_result kvs_get_kvp_info(kvs_key_space_handle ks_hd, kvs_key* key, kvs_kvp_info* info) {
  return perform(ks_hd, has_bytes(key) && info != nullptr,
                 [&](_kvs_key_space_handle& space) { return kvssd::info_of(space, *key, *info); });
}

kvs_result kvs_retrieve_kvp(kvs_key_space_handle ks_hd, kvs_key* key, kvs_option_retrieve* opt, kvs_value* value) {
  const bool and_delete = opt != nullptr && opt->kvs_retrieve_delete;
  return perform(ks_hd, has_bytes(key) && has_bytes(value),
                 [&](_kvs_key_space_handle& space) { return kvssd::retrieve(space, *key, and_delete, *value); });
}

kvs_result kvs_retrieve_kvp_async(kvs_key_space_handle ks_hd, kvs_key* key, kvs_option_retrieve* opt, void* private1,
                                  void* private2, kvs_value* value, kvs_postprocess_function post_fn) {
  kvs_postprocess_context context = context_of(KVS_CMD_RETRIEVE, ks_hd, private1, private2);
  context.key = key;
  context.value = value;
  context.option = opt;
  const bool and_delete = opt != nullptr && opt->kvs_retrieve_delete;
  return perform_later(context, has_bytes(key) && has_bytes(value), post_fn,
                       [key, value, and_delete](_kvs_key_space_handle& space) {
                         return kvssd::retrieve(space, *key, and_delete, *value);
                       });
}

kvs_result kvs_store_kvp(kvs_key_space_handle ks_hd, kvs_key* key, kvs_value* value, kvs_option_store* opt) {
  return perform(ks_hd, has_bytes(key) && has_bytes(value),
                 [&](_kvs_key_space_handle& space) { return kvssd::store(space, *key, *value, type_of(opt)); });
}

kvs_result kvs_store_kvp_async(kvs_key_space_handle ks_hd, kvs_key* key, kvs_value* value, kvs_option_store* opt,
                               void* private1, void* private2, kvs_postprocess_function post_fn) {
  kvs_postprocess_context context = context_of(KVS_CMD_STORE, ks_hd, private1, private2);
  context.key = key;
  context.value = value;
  context.option = opt;
  return perform_later(context, has_bytes(key) && has_bytes(value), post_fn,
                       [key, value, how = type_of(opt)](_kvs_key_space_handle& space) {
                         return kvssd::store(space, *key, *value, how);
                       });
}

kvs_result kvs_delete_kvp(kvs_key_space_handle ks_hd, kvs_key* key, kvs_option_delete* opt) {
  const bool absent_is_error = opt != nullptr && opt->kvs_delete_error;
  return perform(ks_hd, has_bytes(key),
                 [&](_kvs_key_space_handle& space) { return kvssd::erase(space, *key, absent_is_error); });
}

kvs_result kvs_delete_kvp_async(kvs_key_space_handle ks_hd, kvs_key* key, kvs_option_delete* opt, void* private1,
                                void* private2, kvs_postprocess_function post_fn) {
  kvs_postprocess_context context = context_of(KVS_CMD_DELETE, ks_hd, private1, private2);
  context.key = key;
  context.option = opt;
  const bool absent_is_error = opt != nullptr && opt->kvs_delete_error;
  return perform_later(context, has_bytes(key), post_fn, [key, absent_is_error](_kvs_key_space_handle& space) {
    return kvssd::erase(space, *key, absent_is_error);
  });
}

kvs_result kvs_delete_key_group(kvs_key_space_handle ks_hd, kvs_key_group_filter* grp_fltr) {
  return perform(ks_hd, grp_fltr != nullptr,
                 [&](_kvs_key_space_handle& space) { return kvssd::erase_group(space, *grp_fltr); });
}

kvs_result kvs_delete_key_group_async(kvs_key_space_handle ks_hd, kvs_key_group_filter* grp_fltr, void* private1,
                                      void* private2, kvs_postprocess_function post_fn) {
  return perform_later(context_of(KVS_CMD_DELETE_GROUP, ks_hd, private1, private2), grp_fltr != nullptr, post_fn,
                       [grp_fltr](_kvs_key_space_handle& space) { return kvssd::erase_group(space, *grp_fltr); });
}

kvs_result kvs_exist_kv_pairs(kvs_key_space_handle ks_hd, uint32_t key_cnt, kvs_key* keys, kvs_exist_list* list) {
  return perform(ks_hd, keys != nullptr && list != nullptr && list->result_buffer != nullptr,
                 [&](_kvs_key_space_handle& space) { return kvssd::exist(space, key_cnt, keys, *list); });
}

kvs_result kvs_exist_kv_pairs_async(kvs_key_space_handle ks_hd, uint32_t key_cnt, kvs_key* keys, kvs_exist_list* list,
                                    void* private1, void* private2, kvs_postprocess_function post_fn) {
  kvs_postprocess_context context = context_of(KVS_CMD_EXIST, ks_hd, private1, private2);
  context.key = keys;
  context.result_buffer.list = list;
  return perform_later(
      context, keys != nullptr && list != nullptr && list->result_buffer != nullptr, post_fn,
      [key_cnt, keys, list](_kvs_key_space_handle& space) { return kvssd::exist(space, key_cnt, keys, *list); });
}

// ---- iterators

kvs_result kvs_create_iterator(kvs_key_space_handle ks_hd, kvs_option_iterator* iter_op,
                               kvs_key_group_filter* iter_fltr, kvs_iterator_handle* iter_hd) {
  const kvs_iterator_type type = iter_op == nullptr ? KVS_ITERATOR_KEY : iter_op->iter_type;
  const bool with_values = type == KVS_ITERATOR_KEY_VALUE;
  return perform(ks_hd, iter_fltr != nullptr && iter_hd != nullptr, [&](_kvs_key_space_handle& space) {
    if (type != KVS_ITERATOR_KEY && !with_values) return KVS_ERR_OPTION_INVALID;
    return kvssd::open_iterator(space, with_values, *iter_fltr, *iter_hd);
  });
}

kvs_result kvs_delete_iterator(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd) {
  return perform(ks_hd, true, [&](_kvs_key_space_handle& space) {
    return space.on->of->open_iterators().close(space.of->id, iter_hd) == kvssd::iterators::outcome::done
               ? KVS_SUCCESS
               : KVS_ERR_ITERATOR_NOT_EXIST;
  });
}

kvs_result kvs_iterate_next(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd, kvs_iterator_list* iter_list) {
  return perform(ks_hd, iter_list != nullptr && iter_list->it_list != nullptr,
                 [&](_kvs_key_space_handle& space) { return kvssd::iterate(space, iter_hd, *iter_list); });
}

kvs_result kvs_iterate_next_async(kvs_key_space_handle ks_hd, kvs_iterator_handle iter_hd, kvs_iterator_list* iter_list,
                                  void* private1, void* private2, kvs_postprocess_function post_fn) {
  kvs_postprocess_context context = context_of(KVS_CMD_ITER_NEXT, ks_hd, private1, private2);
  context.iter_hd = iter_hd;
  context.result_buffer.iter_list = iter_list;
  return perform_later(
      context, iter_list != nullptr && iter_list->it_list != nullptr, post_fn,
      [iter_hd, iter_list](_kvs_key_space_handle& space) { return kvssd::iterate(space, iter_hd, *iter_list); });
}

// ---- beyond the API

const char* pmlab_kvssd_message(void) { return kvssd::last_message::get(); }
