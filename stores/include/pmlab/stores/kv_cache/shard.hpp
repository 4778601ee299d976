// A part of a cache of pairs: sets of seven pairs under one of pmlab's eviction policies, within a number of bytes.
//
// Sets that are nearly full get more sets beside them while there are bytes. In a full one its policy chooses the pair
// that makes room. Where bytes are missing, the sets with more pairs make room in turn, each by its policy.
//
// Not thread-safe.
#pragma once

#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/cache/eviction/eviction.hpp>
#include <pmlab/stores/kv_cache/options.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::kv_caching {

// Shared, so that a reader copies it without a lock.
using shared_value = std::shared_ptr<const std::vector<std::byte>>;

// The key of a pair, with its hash.
struct name {
  std::uint64_t hash = 0;
  std::uint8_t space = 0;
  std::string_view key{};
};

class shard {
 public:
  shard(std::uint64_t bytes, cache::eviction evict)
      : most_bytes_(bytes), policy_(evict), sets_(first_sets, set{policy_.initial()}) {}

  struct entry {
    std::string key{};
    shared_value value{};  // null: a change of it is under way
    std::uint64_t hash = 0;
    std::uint8_t space = 0;
  };

  // The key's entry, or null.
  [[nodiscard]] entry* find(const name& of) {
    set& s = set_of(of.hash);
    const unsigned way = way_of(s, of);
    return way == cache::ways ? nullptr : &s.entries[way];
  }
  // A reader found it.
  void touch(const name& of) {
    set& s = set_of(of.hash);
    if (const unsigned way = way_of(s, of); way != cache::ways) s.state.word = policy_.hit(s.state.word, way);
  }

  // Adds the pair. REQUIRES: it has no entry. False: it is larger than the shard.
  bool add(const name& of, shared_value value) {
    const std::uint64_t bytes = bytes_of(of.key, value);
    entry made{std::string(of.key), std::move(value), of.hash, of.space};  // all memory, before a count changes
    if (bytes + table_bytes() > most_bytes_) return false;
    if (is_crowded() && table_bytes(more_sets()) + held_bytes_ + bytes <= most_bytes_) grow();
    if (set& own = set_of(of.hash); own.used == all) evict(own);
    while (table_bytes() + held_bytes_ + bytes > most_bytes_) evict_next();
    place(std::move(made));
    return true;
  }
  // REQUIRES: it has an entry. The entry goes if the shard has no room.
  void replace(const name& of, shared_value value) {
    set& s = set_of(of.hash);
    const unsigned way = way_of(s, of);
    entry& e = s.entries[way];
    held_bytes_ -= value_bytes(e.value);
    e.value = std::move(value);
    held_bytes_ += value_bytes(e.value);
    s.state.word = policy_.hit(s.state.word, way);
    while (table_bytes() + held_bytes_ > most_bytes_) evict_next();
  }
  void remove(const name& of) {
    set& s = set_of(of.hash);
    if (const unsigned way = way_of(s, of); way != cache::ways) drop(s, way);
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return table_bytes() + held_bytes_; }
  [[nodiscard]] std::uint64_t pairs() const noexcept { return pairs_; }
  [[nodiscard]] std::uint64_t evictions() const noexcept { return evictions_; }

 private:
  static constexpr unsigned all = (1U << cache::ways) - 1;
  static constexpr std::size_t first_sets = 4;
  // Bytes that a pair costs beside its own: the heap's and the shared pointer's bookkeeping.
  static constexpr std::uint64_t bookkeeping = 64;

  struct set {
    cache::eviction_state state{};
    unsigned used = 0;  // a bit for each way
    std::array<entry, cache::ways> entries{};
  };

  [[nodiscard]] static std::uint64_t value_bytes(const shared_value& v) noexcept { return v ? v->size() : 0; }
  [[nodiscard]] static std::uint64_t bytes_of(std::string_view key, const shared_value& v) noexcept {
    return key.size() + value_bytes(v) + bookkeeping;
  }
  [[nodiscard]] static std::uint64_t table_bytes(std::size_t sets) noexcept { return sets * sizeof(set); }
  [[nodiscard]] std::uint64_t table_bytes() const noexcept { return table_bytes(sets_.size()); }
  // Policies choose best in sets that are nearly full.
  [[nodiscard]] bool is_crowded() const noexcept { return pairs_ >= sets_.size() * (cache::ways - 1); }
  [[nodiscard]] std::size_t more_sets() const noexcept { return sets_.size() + sets_.size() / 4; }

  // The upper bits choose the set: the lower ones chose the shard.
  [[nodiscard]] set& set_of(std::uint64_t hash) noexcept {
    __extension__ using wide = unsigned __int128;
    return sets_[static_cast<std::size_t>((static_cast<wide>(hash) * sets_.size()) >> 64)];
  }
  [[nodiscard]] static unsigned way_of(const set& s, const name& of) noexcept {
    for (unsigned way = 0; way < cache::ways; ++way)
      if (const entry& e = s.entries[way];
          (s.used & 1U << way) != 0 && e.hash == of.hash && e.space == of.space && e.key == of.key)
        return way;
    return cache::ways;
  }
  [[nodiscard]] static cache::tag_type tag_of(const entry& e) noexcept {
    constexpr unsigned below = 16;  // these chose the shard
    return static_cast<cache::tag_type>(e.hash >> below & ((1U << cache::tag_bits) - 1));
  }

  // REQUIRES: its set has a free way.
  void place(entry made) noexcept {
    set& s = set_of(made.hash);
    const auto way = static_cast<unsigned>(std::countr_one(s.used));
    held_bytes_ += bytes_of(made.key, made.value);
    ++pairs_;
    s.entries[way] = std::move(made);
    s.used |= 1U << way;
    policy_.filled(s.state, way, tag_of(s.entries[way]));
  }
  void drop(set& s, unsigned way) {
    held_bytes_ -= bytes_of(s.entries[way].key, s.entries[way].value);
    --pairs_;
    s.entries[way] = {};
    s.used &= ~(1U << way);
  }

  // REQUIRES: the set has a pair.
  void evict(set& s) {
    cache::tags_of_set tags{};
    for (unsigned way = 0; way < cache::ways; ++way) tags[way] = tag_of(s.entries[way]);
    // To a policy all ways are in use. If it chooses a free one, that one counts as new, and the policy chooses again:
    // on a copy, as pairs must not become older by it.
    cache::eviction_state trial = s.state;
    for (unsigned tries = 0; tries < 4 * cache::ways; ++tries) {
      const unsigned way = policy_.victim(trial, tags);
      if ((s.used & 1U << way) != 0) {
        if (tries == 0) s.state = trial;
        ++evictions_;
        return drop(s, way);
      }
      policy_.filled(trial, way, tags[way]);
    }
    ++evictions_;
    drop(s, static_cast<unsigned>(std::countr_zero(s.used)));
  }
  // Evicts from a set with at least as many pairs as the mean: in one with few, a pair that is read often would go.
  // REQUIRES: there is a pair.
  void evict_next() {
    const auto mean = static_cast<int>((pairs_ + sets_.size() - 1) / sets_.size());
    while (std::popcount(sets_[next_ % sets_.size()].used) < mean) ++next_;
    evict(sets_[next_++ % sets_.size()]);
  }

  void grow() {
    std::vector<set> before(more_sets(), set{policy_.initial()});
    before.swap(sets_);
    pairs_ = held_bytes_ = 0;
    for (set& s : before)
      for (unsigned way = 0; way < cache::ways; ++way) {
        if ((s.used & 1U << way) == 0) continue;
        entry& e = s.entries[way];
        if (set& target = set_of(e.hash); target.used == all) evict(target);
        place(std::move(e));
      }
  }

  std::uint64_t most_bytes_;
  cache::chosen_eviction policy_;
  std::vector<set> sets_;
  std::size_t next_ = 0;          // the set that makes room next
  std::uint64_t held_bytes_ = 0;  // held bytes of pairs
  std::uint64_t pairs_ = 0;
  std::uint64_t evictions_ = 0;
};

}  // namespace pmlab::stores::detail::kv_caching
