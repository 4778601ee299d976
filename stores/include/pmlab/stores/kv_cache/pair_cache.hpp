// Pairs in DRAM in front of a store: for callers that ask the store themselves, such as asynchronous queues.
//
//   if (auto seen = cache.find(space, key); seen.value) ...            // a hit
//   else { read the store; cache.fill(space, key, value, seen.gate); }
//
//   pair_cache::write change(cache, space, key);                       // before the store is called
//   change the store; change.end(value);                               // after it has answered
//
// Thread safety: any thread. No lock is held while the store is asked.
//
// Invariants: a reader never gets a value that the store did not have at some moment of the call, nor an older one than
// the last that was acknowledged before it.
//   V1  A pair that a reader can hit is the one that the store holds, and no change of it is under way.
//   V2  A change hides the pair before the store is called. It leaves its value if it hid one, and no other change of a
//       key of the same gate began since; otherwise the pair goes. A change that overlaps an earlier one finds nothing
//       to hide.
//   V3  A fill has the gate from before the store was read. It is kept if no change of a key of that gate was under way
//       then, and none began since.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/stores/kv_cache/options.hpp>
#include <pmlab/stores/kv_cache/shard.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::stores {

// See the file's prologue.
class pair_cache {
  using shared_value = detail::kv_caching::shared_value;
  using name = detail::kv_caching::name;

 public:
  // Throws pmlab::error: bytes that are too few for a shard, no shard or more than 1024.
  explicit pair_cache(const kv_cache_options& options) {
    if (options.shards == 0 || options.shards > most_shards)
      throw error("a cache of pairs with " + std::to_string(options.shards) + " shards",
                  "choose 1 to " + std::to_string(most_shards));
    if (options.bytes == 0) return;
    if (options.bytes < least_shard_bytes)
      throw error("a cache of pairs of " + std::to_string(options.bytes) + " bytes",
                  "choose at least " + std::to_string(least_shard_bytes) + ", or 0 for none");
    const std::uint64_t count = std::min<std::uint64_t>(options.shards, options.bytes / least_shard_bytes);
    for (std::uint64_t i = 0; i < count; ++i)
      shards_.push_back(std::make_unique<guarded>(options.bytes / count, options.evict));
  }

  // False: nothing is ever cached.
  [[nodiscard]] bool is_on() const noexcept { return !shards_.empty(); }

  // The result of a search.
  struct look {
    shared_value value{};               // value of a hit
    std::optional<std::uint64_t> gate;  // a miss has it for `fill`; std::nullopt: the store's answer is not kept
  };
  // Searches, and counts a hit or a miss.
  [[nodiscard]] look find(std::uint8_t space, std::string_view key) {
    if (!is_on()) return {};
    const name of = name_of(space, key);
    guarded& g = shard_of(of);
    const std::scoped_lock lock(g.mutex);
    if (const auto* const e = g.pairs.find(of); e != nullptr && e->value) {
      ++g.counts.hits;
      g.pairs.touch(of);
      return {e->value, std::nullopt};
    }
    ++g.counts.misses;
    const gate& at = g.gate_of(of);
    return {nullptr, at.writers == 0 ? std::optional(at.version) : std::nullopt};
  }

  // Keeps the store's answer, if it is still right (V3).
  void fill(std::uint8_t space, std::string_view key, std::span<const std::byte> value,
            std::optional<std::uint64_t> seen) {
    if (!is_on()) return;
    const name of = name_of(space, key);
    guarded& g = shard_of(of);
    auto kept = std::make_shared<const std::vector<std::byte>>(value.begin(), value.end());
    const std::scoped_lock lock(g.mutex);
    const gate& at = g.gate_of(of);
    if (!seen || at.writers != 0 || at.version != *seen)
      ++g.counts.stale;
    else if (g.pairs.find(of) == nullptr && g.pairs.add(of, std::move(kept)))
      ++g.counts.fills;
  }

  // A change of one key, from before the store is called to after it has answered. Without `end` or `keep` the pair
  // goes. The cache and the key outlive it; one thread at a time.
  class [[nodiscard]] write {
   public:
    // Begins: readers fill the pair no more until it ends.
    write(pair_cache& in, std::uint8_t space, std::string_view key) : in_(in), of_(in.name_of(space, key)) {
      if (in_.is_on()) begin();
    }
    write(const write&) = delete;
    write& operator=(const write&) = delete;
    ~write() {
      if (!is_done_) finish(nullptr, false);
    }

    // The store holds this value. A key that the cache did not have stays out until it is read.
    void end(std::span<const std::byte> value) {
      if (!is_done_)
        finish(hidden_ ? std::make_shared<const std::vector<std::byte>>(value.begin(), value.end()) : nullptr, true);
    }
    // The store did not change.
    void keep() {
      if (!is_done_) finish(std::move(hidden_), false);
    }

   private:
    void begin() {
      guarded& g = in_.shard_of(of_);
      const std::scoped_lock lock(g.mutex);
      gate& at = g.gate_of(of_);
      ++at.writers;
      version_ = ++at.version;
      is_done_ = false;
      if (const auto* const e = g.pairs.find(of_); e != nullptr && e->value) {
        hidden_ = e->value;
        g.pairs.replace(of_, nullptr);  // V2
      }
    }
    // `is_new`: a put left the value; otherwise the pair is as it was.
    void finish(shared_value value, bool is_new) {
      is_done_ = true;
      guarded& g = in_.shard_of(of_);
      const std::scoped_lock lock(g.mutex);
      gate& at = g.gate_of(of_);
      --at.writers;
      if (g.pairs.find(of_) == nullptr) return;
      if (value == nullptr || at.version != version_) return g.pairs.remove(of_);  // V2
      g.pairs.replace(of_, std::move(value));
      g.counts.updates += is_new ? 1 : 0;
    }

    pair_cache& in_;
    name of_;
    shared_value hidden_{};
    std::uint64_t version_ = 0;
    bool is_done_ = true;
  };

  // The sums over all shards.
  [[nodiscard]] kv_cache_stats stats() const {
    kv_cache_stats sum;
    for (const auto& g : shards_) {
      const std::scoped_lock lock(g->mutex);
      sum.hits += g->counts.hits;
      sum.misses += g->counts.misses;
      sum.fills += g->counts.fills;
      sum.updates += g->counts.updates;
      sum.stale += g->counts.stale;
      sum.evictions += g->pairs.evictions();
      sum.pairs += g->pairs.pairs();
      sum.bytes += g->pairs.bytes();
    }
    return sum;
  }

 private:
  static constexpr unsigned most_shards = 1024;
  static constexpr std::uint64_t least_shard_bytes = std::uint64_t{64} << 10;

  // Counts the changes of the keys whose hashes lead to it.
  struct gate {
    std::uint64_t version = 0;  // changes that began
    std::uint32_t writers = 0;  // changes under way
  };
  struct guarded {
    guarded(std::uint64_t bytes, cache::eviction evict) : pairs(bytes, evict) {}
    [[nodiscard]] gate& gate_of(const name& of) noexcept {
      constexpr unsigned below = 10;  // bits that chose the shard
      return gates[of.hash >> below & (gates.size() - 1)];
    }
    mutable std::mutex mutex{};
    detail::kv_caching::shard pairs;
    std::array<gate, 64> gates{};
    kv_cache_stats counts{};
  };

  [[nodiscard]] static name name_of(std::uint8_t space, std::string_view key) noexcept {
    return {hash_of_bytes(key.data(), key.size(), space), space, key};
  }
  [[nodiscard]] guarded& shard_of(const name& of) const noexcept {
    constexpr std::uint64_t lower = most_shards - 1;
    return *shards_[(of.hash & lower) % shards_.size()];
  }

  std::vector<std::unique_ptr<guarded>> shards_;
};

}  // namespace pmlab::stores
