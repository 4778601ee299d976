// A cache of pairs in the host's DRAM in front of a key-value store, after the library of KV-SSD [KV-SSD].
//
//   stores::kv_cache cache(device, {.bytes = std::uint64_t{1} << 30});
//   cache.put("user:17", value);       // the device's put; a pair that the cache has gets the new value
//   cache.get("user:17");              // from DRAM, or from the device and then kept
//
// Use it where reads of some pairs are frequent. It is off unless `bytes` is given: then every call goes to the store.
// It holds at most so many bytes, under a policy of pmlab/cache, in shards with a lock each.
//
// Durability and atomicity: the store's. A change reaches the store before the cache shows it.
// Thread safety: any operation from any number of threads, if the store's are. All changes go through the cache. No
// lock of it is held while the store works. Coherence: see kv_cache/pair_cache.hpp.
#pragma once

#include <pmlab/stores/kv_cache/options.hpp>
#include <pmlab/stores/kv_cache/pair_cache.hpp>
#include <pmlab/stores/kv_ssd/options.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pmlab::stores {

// `Store` has the members of kv_device of the same names. Exceptions are the store's; after one the pair is not cached.
template <class Store>
class kv_cache {
 public:
  // The store outlives it. Throws pmlab::error: impossible options.
  explicit kv_cache(Store& store, const kv_cache_options& options = {}) : store_(store), pairs_(options) {}

  // Changes the store, then the cache. Durable as the store's.
  kv_outcome put(std::string_view key, std::span<const std::byte> value, kv_mode mode = kv_mode::post,
                 std::uint8_t space = 0) {
    pair_cache::write change(pairs_, space, key);
    const kv_outcome done = store_.put(key, value, mode, space);
    if (done != kv_outcome::added && done != kv_outcome::replaced)
      change.keep();
    else if (mode != kv_mode::append)
      change.end(value);
    return done;
  }

  // The value of a key, or std::nullopt if the key is absent.
  [[nodiscard]] std::optional<std::vector<std::byte>> get(std::string_view key, std::uint8_t space = 0) {
    const pair_cache::look seen = pairs_.find(space, key);
    if (seen.value) return *seen.value;
    std::optional<std::vector<std::byte>> value = store_.get(key, space);
    if (value) pairs_.fill(space, key, *value, seen.gate);
    return value;
  }
  // Copies the value from byte `offset` on, as far as `out` goes. Returns the size of the whole value, or std::nullopt
  // if the key is absent.
  [[nodiscard]] std::optional<std::size_t> get(std::string_view key, std::size_t offset, std::span<std::byte> out,
                                               std::uint8_t space = 0) {
    const pair_cache::look seen = pairs_.find(space, key);
    if (seen.value) return copy(*seen.value, offset, out);
    if (!pairs_.is_on()) return store_.get(key, offset, out, space);
    const std::optional<std::vector<std::byte>> value = store_.get(key, space);
    if (!value) return std::nullopt;
    pairs_.fill(space, key, *value, seen.gate);
    return copy(*value, offset, out);
  }

  // Deletes a key. False: it is absent. Durable as the store's.
  bool erase(std::string_view key, std::uint8_t space = 0) {
    const pair_cache::write change(pairs_, space, key);
    return store_.erase(key, space);
  }
  // Deletes a key and returns its value: no other operation sees it in between.
  [[nodiscard]] std::optional<std::vector<std::byte>> retrieve_and_erase(std::string_view key, std::uint8_t space = 0) {
    const pair_cache::write change(pairs_, space, key);
    return store_.retrieve_and_erase(key, space);
  }
  // Looks up many keys in one command: whether the store has each, in their order. The cache is not asked.
  [[nodiscard]] std::vector<bool> exist(std::span<const std::string_view> keys, std::uint8_t space = 0) {
    return store_.exist(keys, space);
  }

  // The store, for operations that the cache has no part in.
  [[nodiscard]] Store& store() noexcept { return store_; }
  // The cache, for a caller that asks the store by other means, such as an asynchronous queue.
  [[nodiscard]] pair_cache& pairs() noexcept { return pairs_; }
  // Hits, misses and bytes.
  [[nodiscard]] kv_cache_stats stats() const { return pairs_.stats(); }

 private:
  [[nodiscard]] static std::size_t copy(const std::vector<std::byte>& value, std::size_t offset,
                                        std::span<std::byte> out) noexcept {
    const std::size_t from = std::min(offset, value.size());
    const std::size_t count = std::min(out.size(), value.size() - from);
    if (count != 0) std::memcpy(out.data(), value.data() + from, count);
    return value.size();
  }

  Store& store_;
  pair_cache pairs_;
};

}  // namespace pmlab::stores
