#include "tools/kvssd/commands.hpp"
#include "tools/kvssd/message.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pmlab::kvssd {
namespace {

std::string_view text_of(const kvs_key& key) { return {static_cast<const char*>(key.key), key.length}; }

bool has_right_length(_kvs_key_space_handle& space, const kvs_key& key) {
  return key.length >= space.on->of->pairs().shortest_key() && key.length <= space.on->of->pairs().longest_key();
}

// The first byte of a key is the highest of the number. nullopt: the pattern has bits outside the mask.
std::optional<stores::kv_prefix> prefix_of(const kvs_key_group_filter& filter) {
  stores::kv_prefix prefix;
  for (std::size_t i = 0; i < KVS_MAX_KEY_GROUP_BYTES; ++i) {
    prefix.mask = prefix.mask << 8 | filter.bitmask[i];
    prefix.pattern = prefix.pattern << 8 | filter.bit_pattern[i];
  }
  return (prefix.pattern & ~prefix.mask) != 0 ? std::nullopt : std::optional(prefix);
}

// Serializes changes of a key whose parts the engine performs one by one.
std::mutex& lock_of(_kvs_key_space_handle& space, std::string_view key) {
  static std::array<std::mutex, 64> locks;
  return locks[mix_bits(std::hash<std::string_view>{}(key) + space.of->id) % locks.size()];
}

// Bytes of a pair, or the least that a damaged one may have: the sum of a key space stays a bound from above. 0: it is
// absent.
std::uint64_t bytes_of(engine& pairs, std::string_view key, std::uint8_t id) {
  const auto size = pairs.size_of(key, id);
  return size ? size->least : 0;
}

void count_removed(_kvs_key_space_handle& space, std::uint64_t bytes) {
  if (space.of->capacity != 0) space.of->used.fetch_sub(bytes, std::memory_order_relaxed);
}

stores::kv_mode mode_of(kvs_store_type how) {
  switch (how) {
    case KVS_STORE_UPDATE_ONLY: return stores::kv_mode::update_only;
    case KVS_STORE_NOOVERWRITE: return stores::kv_mode::no_overwrite;
    case KVS_STORE_APPEND: return stores::kv_mode::append;
    case KVS_STORE_POST: break;
  }
  return stores::kv_mode::post;
}

kvs_result result_of(stores::kv_outcome o) {
  switch (o) {
    case stores::kv_outcome::added:
    case stores::kv_outcome::replaced: return KVS_SUCCESS;
    case stores::kv_outcome::exists: return KVS_ERR_VALUE_UPDATE_NOT_ALLOWED;
    case stores::kv_outcome::absent: return KVS_ERR_KEY_NOT_EXIST;
    case stores::kv_outcome::full: break;
  }
  return KVS_ERR_KS_CAPACITY;
}

kvs_result result_of(iterators::outcome o) {
  switch (o) {
    case iterators::outcome::done: return KVS_SUCCESS;
    case iterators::outcome::too_many: return KVS_ERR_ITERATOR_MAX;
    case iterators::outcome::is_open: return KVS_ERR_ITERATOR_OPEN;
    case iterators::outcome::no_room: return KVS_ERR_BUFFER_SMALL;
    case iterators::outcome::absent: break;
  }
  return KVS_ERR_ITERATOR_NOT_EXIST;
}

}  // namespace

kvs_result store(_kvs_key_space_handle& space, const kvs_key& key, const kvs_value& value, kvs_store_type how) {
  if (!has_right_length(space, key)) return KVS_ERR_KEY_LENGTH_INVALID;
  engine& pairs = space.on->of->pairs();
  if (value.length > pairs.largest_value()) return KVS_ERR_VALUE_LENGTH_INVALID;
  if (value.offset != 0) return KVS_ERR_VALUE_OFFSET_INVALID;
  if (how < KVS_STORE_POST || how > KVS_STORE_APPEND) return KVS_ERR_OPTION_INVALID;
  const std::string_view name = text_of(key);
  const std::span<const std::byte> bytes(static_cast<const std::byte*>(value.value), value.length);
  const std::uint8_t id = space.of->id;
  const std::scoped_lock lock(lock_of(space, name));
  const bool limited = space.of->capacity != 0;
  const std::uint64_t before = limited || how == KVS_STORE_APPEND ? bytes_of(pairs, name, id) : 0;
  if (how == KVS_STORE_APPEND && before + bytes.size() > pairs.largest_value() + name.size())
    return KVS_ERR_VALUE_LENGTH_INVALID;
  if (!limited) return result_of(pairs.put(name, bytes, mode_of(how), id));
  const std::uint64_t after =
      how == KVS_STORE_APPEND && before != 0 ? before + bytes.size() : name.size() + bytes.size();
  // The sum may wrap while a pair shrinks: it is right again after the subtraction.
  if (space.of->used.fetch_add(after - before, std::memory_order_relaxed) + (after - before) > space.of->capacity &&
      after > before) {
    space.of->used.fetch_sub(after - before, std::memory_order_relaxed);
    return KVS_ERR_KS_CAPACITY;
  }
  bool is_done = false;
  const auto count_again = [&] {
    if (!is_done) space.of->used.fetch_sub(after - before, std::memory_order_relaxed);
  };
  try {
    const kvs_result result = result_of(pairs.put(name, bytes, mode_of(how), id));
    is_done = result == KVS_SUCCESS;
    count_again();
    return result;
  } catch (...) {
    count_again();
    throw;
  }
}

kvs_result retrieve(_kvs_key_space_handle& space, const kvs_key& key, bool and_delete, kvs_value& value) {
  if (!has_right_length(space, key)) return KVS_ERR_KEY_LENGTH_INVALID;
  if (value.offset % KVS_ALIGNMENT_UNIT != 0) return KVS_ERR_VALUE_OFFSET_MISALIGNED;
  engine& pairs = space.on->of->pairs();
  const std::string_view name = text_of(key);
  const std::uint8_t id = space.of->id;
  std::optional<std::unique_lock<std::mutex>> lock;
  if (and_delete) lock.emplace(lock_of(space, name));
  const std::span<std::byte> out(static_cast<std::byte*>(value.value), value.length);
  const auto whole = pairs.get(name, value.offset, out, id);
  if (!whole) return KVS_ERR_KEY_NOT_EXIST;
  value.actual_value_size = static_cast<std::uint32_t>(*whole);
  if (value.offset > *whole || (value.offset == *whole && *whole != 0)) return KVS_ERR_VALUE_OFFSET_INVALID;
  const std::size_t rest = *whole - value.offset;
  value.length = static_cast<std::uint32_t>(std::min(rest, out.size()));
  if (rest > out.size()) return KVS_ERR_BUFFER_SMALL;
  if (and_delete && pairs.erase(name, id)) count_removed(space, name.size() + *whole);
  return KVS_SUCCESS;
}

kvs_result erase(_kvs_key_space_handle& space, const kvs_key& key, bool absent_is_error) {
  if (!has_right_length(space, key)) return KVS_ERR_KEY_LENGTH_INVALID;
  engine& pairs = space.on->of->pairs();
  const std::string_view name = text_of(key);
  const std::scoped_lock lock(lock_of(space, name));
  const std::uint64_t bytes = space.of->capacity != 0 ? bytes_of(pairs, name, space.of->id) : 0;
  if (!pairs.erase(name, space.of->id)) return absent_is_error ? KVS_ERR_KEY_NOT_EXIST : KVS_SUCCESS;
  count_removed(space, bytes);
  return KVS_SUCCESS;
}

kvs_result erase_group(_kvs_key_space_handle& space, const kvs_key_group_filter& filter) {
  const auto prefix = prefix_of(filter);
  if (!prefix) return KVS_ERR_ITERATOR_FILTER_INVALID;
  bool has_begun = false;
  try {
    const auto erase_it = [&](std::string key) {
      static_cast<void>(erase(space, {key.data(), static_cast<std::uint16_t>(key.size())}, false));
      has_begun = true;
    };
    space.on->of->pairs().for_each_key_there(*prefix, space.of->id, erase_it);
  } catch (const std::bad_alloc&) {
    if (!has_begun) throw;
    last_message::set_fixed(
        "the process has no memory to delete all pairs of the group: some of them are there; free some and delete the "
        "group again");
    return KVS_ERR_SYS_IO;
  }
  return KVS_SUCCESS;
}

kvs_result exist(_kvs_key_space_handle& space, std::uint32_t count, const kvs_key* keys, kvs_exist_list& list) {
  const std::uint32_t needed = (count + 7) / 8;
  if (list.length < needed) return KVS_ERR_BUFFER_SMALL;
  std::vector<std::string_view> names;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (keys[i].key == nullptr) return KVS_ERR_PARAM_INVALID;
    if (!has_right_length(space, keys[i])) return KVS_ERR_KEY_LENGTH_INVALID;
    names.push_back(text_of(keys[i]));
  }
  const std::vector<bool> there = space.on->of->pairs().exist(names, space.of->id);
  std::memset(list.result_buffer, 0, needed);
  for (std::uint32_t i = 0; i < count; ++i)
    if (there[i]) list.result_buffer[i / 8] = static_cast<std::uint8_t>(list.result_buffer[i / 8] | 1U << (i % 8));
  list.num_keys = count;
  list.length = needed;
  return KVS_SUCCESS;
}

kvs_result info_of(_kvs_key_space_handle& space, const kvs_key& key, kvs_kvp_info& info) {
  if (!has_right_length(space, key)) return KVS_ERR_KEY_LENGTH_INVALID;
  const auto whole = space.on->of->pairs().get(text_of(key), 0, {}, space.of->id);
  if (!whole) return KVS_ERR_KEY_NOT_EXIST;
  info.key_len = key.length;
  if (info.key != nullptr) std::memcpy(info.key, key.key, key.length);
  info.value_len = static_cast<std::uint32_t>(*whole);
  return KVS_SUCCESS;
}

kvs_result open_iterator(_kvs_key_space_handle& space, bool with_values, const kvs_key_group_filter& filter,
                         kvs_iterator_handle& handle) {
  const auto prefix = prefix_of(filter);
  if (!prefix) return KVS_ERR_ITERATOR_FILTER_INVALID;
  return result_of(space.on->of->open_iterators().open(space.of->id, *prefix, with_values, handle));
}

kvs_result iterate(_kvs_key_space_handle& space, kvs_iterator_handle handle, kvs_iterator_list& list) {
  iterators::filled result;
  const auto o = space.on->of->open_iterators().next(space.of->id, handle,
                                                     {reinterpret_cast<std::byte*>(list.it_list), list.size}, result);
  if (o == iterators::outcome::done) {
    list.num_entries = result.entries;
    list.size = result.bytes;
    list.end = result.end;
  }
  return result_of(o);
}

}  // namespace pmlab::kvssd
