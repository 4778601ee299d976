// The cache's entries in DRAM: sets of seven, found by the key's hash.
//
// Thread safety: everything from any number of threads, but `check`. Progress: `find` and the end of a write are
// wait-free; a write that begins and a fill wait for a fill that is being installed, a few stores long. No lock is held
// while the index is called.
//
// Invariants; they prevent serving a value that the index does not hold (any more):
//   V1  An entry (key, value) that a reader can hit equals the entry that the index holds durably.
//   V2  A thread that changes or removes a key in the index first begins a write: one locked instruction counts one
//       more writer of the set and increments its version. While there are writers no entry of the set can be hit. The
//       write ends, and decrements the count, when the index has returned and the key's entry is as V4 requires, or is
//       removed.
//   V3  A fill carries the index's result for a reader, and the set's gate from before the search. That gate had no
//       writer in it. It is installed only if the gate is unchanged: no write of a key of the set began since then, so
//       none was under way during the search, nor is now.
//   V4  A write puts its value into the key's entry if it began as the only writer of the set; otherwise the entry is
//       removed. So the last change of the key in the index is its own, or that of a write which began during it, was
//       not the only one, and removes the entry before it decrements the count. No fill restores it before both have
//       ended (V3).
//   V5  A key that the index does not hold is in no entry, and inserting does not change a key that it holds. So an
//       insert has nothing to do here; V3 rejects a fill from before the key was erased and inserted again.
//   V6  A write that ends by an exception, or changes nothing, removes the entry.
#pragma once

#include <pmlab/base/platform.hpp>
#include <pmlab/cache/detail/set.hpp>
#include <pmlab/cache/eviction/eviction.hpp>
#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/huge_pages.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace pmlab::cache::detail {

// Result of a lookup in the cache.
struct look {
  bool hit = false;
  value_type value = 0;  // value of a hit
  // Gate of a miss, that a fill must carry; none: the index's result may be changing.
  std::optional<std::uint64_t> gate{};
};

enum class fill_result : std::uint8_t { installed, evicted_another, was_there, stale };
inline constexpr std::size_t fill_results = 4;

template <eviction_policy Eviction>
class set_store {
 public:
  // `entries`: at least so many fit in. Throws std::bad_alloc.
  set_store(std::uint64_t entries, Eviction policy)
      : policy_(policy),
        count_(std::max<std::uint64_t>((entries + ways - 1) / ways, 1)),
        sets_(std::make_unique<entry_set[]>(count_)),
        sides_(policy.uses_side_words() ? std::make_unique<side_words[]>(count_) : nullptr) {
    if constexpr (platform::has_huge_pages) media::collapse_to_huge_pages(sets_.get(), count_ * sizeof(entry_set));
    const eviction_state initial = policy_.initial();
    for (std::uint64_t i = 0; i < count_; ++i) {
      sets_[i].shape.store(initial.word, std::memory_order_relaxed);
      if (sides_) sides_[i] = initial.side;
    }
  }

  [[nodiscard]] std::uint64_t sets() const noexcept { return count_; }
  [[nodiscard]] std::uint64_t capacity() const noexcept { return count_ * ways; }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return count_ * (sizeof(entry_set) + (sides_ ? sizeof(side_words) : 0));
  }

  // The number of the set that `key` belongs to.
  [[nodiscard]] std::uint64_t number_of(key_type key) const noexcept {
    __extension__ using wide = unsigned __int128;
    return static_cast<std::uint64_t>((static_cast<wide>(indexes::detail::hash_of_key(key)) * count_) >> 64);
  }

  void prefetch(std::uint64_t number) const noexcept {
    const char* const start = reinterpret_cast<const char*>(&sets_[number]);
    __builtin_prefetch(start);
    __builtin_prefetch(start + 64);
  }

  void prefetch_to_write(key_type key) const noexcept {
    constexpr int for_writing = 1;
    const char* const start = reinterpret_cast<const char*>(&sets_[number_of(key)]);
    __builtin_prefetch(start, for_writing);
    __builtin_prefetch(start + 64, for_writing);
  }

  // `number`: number_of(key), here and below. Wait-free.
  [[nodiscard]] look find(std::uint64_t number, key_type key) noexcept {
    entry_set& s = sets_[number];
    const std::uint64_t gate = s.gate.load(std::memory_order_acquire);
    if (gate_word::writers(gate) == 0) {                                     // V2
      const std::uint64_t before = s.shape.load(std::memory_order_acquire);  // S1
      if (const unsigned way = s.way_of(key, shape_word::used(before)); way != no_way) {
        const value_type value = s.values[way].load(std::memory_order_acquire);
        const std::uint64_t shape = s.shape.load(std::memory_order_acquire);
        if (shape_word::changes(shape) == shape_word::changes(before)) {  // S1
          touch(s, shape, way);
          return {true, value, std::nullopt};
        }
      }
    }
    return {false, 0, token_of(gate)};
  }

  // The gate for a fill that begins now; none: the index's result may be changing.
  [[nodiscard]] std::optional<std::uint64_t> gate(std::uint64_t number) const noexcept {
    return token_of(sets_[number].gate.load(std::memory_order_acquire));
  }

  // Installs a fill, if it is valid (V3). Waits for another fill of the set, a few stores long.
  fill_result fill(key_type key, value_type value, std::uint64_t gate) noexcept {
    const std::uint64_t number = number_of(key);
    return sets_[number].lock_if(gate) ? fill_locked(number, key, value, gate) : fill_result::stale;
  }
  // The same, but gives up where that would wait.
  fill_result try_fill(key_type key, value_type value, std::uint64_t gate) noexcept {
    const std::uint64_t number = number_of(key);
    return sets_[number].try_lock_if(gate) ? fill_locked(number, key, value, gate) : fill_result::stale;
  }

  // A write of one key, from before the index is changed to after it has answered.
  class [[nodiscard]] write {
   public:
    write(set_store& store, key_type key) noexcept
        : store_(store),
          set_(store.sets_[store.number_of(key)]),
          key_(key),
          is_only_one_(gate_word::writers(set_.begin_write()) == 1) {}
    write(const write&) = delete;
    write& operator=(const write&) = delete;
    ~write() {
      if (!ended_) end(std::nullopt);
    }

    // The index holds `value` for the key now; std::nullopt: it may hold another one.
    void end(std::optional<value_type> value) noexcept {
      ended_ = true;
      const std::uint64_t shape = set_.shape.load(std::memory_order_acquire);
      if (const unsigned way = set_.way_of(key_, shape_word::used(shape)); way != no_way) {
        if (value && is_only_one_) {  // V4
          set_.values[way].store(*value, std::memory_order_release);
          store_.touch(set_, shape, way);
        } else {
          set_.reshape([&](std::uint64_t seen) { return seen & ~shape_word::way_bit(way); });
        }
      }
      set_.end_write();
    }

   private:
    set_store& store_;
    entry_set& set_;
    key_type key_;
    bool is_only_one_;  // the set had no other writer when it began
    bool ended_ = false;
  };

  // Calls function(key, value) with every entry, and problem(text) with every violated invariant. REQUIRES: no
  // concurrent call.
  template <class Function, class Problem>
  void check(Function&& function, Problem&& problem) const {
    for (std::uint64_t number = 0; number < count_; ++number) {
      const entry_set& s = sets_[number];
      const auto complain = [&](const std::string& what) {
        problem("set " + std::to_string(number) + " of the cache " + what);
      };
      const std::uint64_t gate = s.gate.load(std::memory_order_acquire);
      const std::uint64_t shape = s.shape.load(std::memory_order_acquire);
      if (gate_word::is_locked(gate)) complain("is locked");
      if (gate_word::writers(gate) != 0) complain("counts " + std::to_string(gate_word::writers(gate)) + " writers");
      if (!policy_.is_sound({shape_word::policy(shape), sides_ ? sides_[number] : side_words{}}))
        complain("has a policy word that no policy leaves");
      for (unsigned way = 0; way < ways; ++way) {
        if ((shape_word::used(shape) & 1U << way) == 0) continue;
        const key_type key = s.keys[way].load(std::memory_order_acquire);
        if (number_of(key) != number) complain("holds key " + std::to_string(key) + " of another set");
        if (s.way_of(key, shape_word::used(shape)) != way) complain("holds key " + std::to_string(key) + " twice");
        function(key, s.values[way].load(std::memory_order_acquire));
      }
    }
  }

 private:
  [[nodiscard]] static tag_type tag_of(key_type key) noexcept {
    // The low bits of the hash: its high ones chose the set.
    return static_cast<tag_type>(indexes::detail::hash_of_key(key) & ((std::uint64_t{1} << tag_bits) - 1));
  }

  [[nodiscard]] static std::optional<std::uint64_t> token_of(std::uint64_t gate) noexcept {
    if (gate_word::is_locked(gate) || gate_word::writers(gate) != 0) return std::nullopt;  // V3
    return gate;
  }

  // Informs the policy that `way` was used, if the shape is unchanged (S2).
  void touch(entry_set& s, std::uint64_t shape, unsigned way) const noexcept {
    const std::uint64_t touched = shape_word::with_policy(shape, policy_.hit(shape_word::policy(shape), way));
    if (touched != shape) s.shape.compare_exchange_strong(shape, touched, std::memory_order_relaxed);
  }

  // The set is locked, its gate was `gate`.
  fill_result fill_locked(std::uint64_t number, key_type key, value_type value, std::uint64_t gate) noexcept {
    entry_set& s = sets_[number];
    const unsigned used = shape_word::used(s.shape.load(std::memory_order_relaxed));
    const fill_result result =
        s.way_of(key, used) != no_way ? fill_result::was_there : install(number, key, value, used);
    s.unlock(gate);
    return result;
  }

  fill_result install(std::uint64_t number, key_type key, value_type value, unsigned used) noexcept {
    entry_set& s = sets_[number];
    side_words* const side = sides_ ? &sides_[number] : nullptr;
    const bool full = used == shape_word::all_ways;
    tags_of_set tags{};
    if (full && side != nullptr)
      for (unsigned way = 0; way < ways; ++way) tags[way] = tag_of(s.keys[way].load(std::memory_order_relaxed));
    unsigned way = no_way;
    eviction_state after;
    const auto choose = [&](std::uint64_t shape) {
      after = {shape_word::policy(shape), side != nullptr ? *side : side_words{}};
      way = full ? policy_.victim(after, tags) : static_cast<unsigned>(std::countr_one(used));
      policy_.filled(after, way, tag_of(key));
      return shape_word::with_policy(shape & ~shape_word::way_bit(way), after.word) + shape_word::one_change;
    };
    s.reshape(choose);  // S1: before the entry's words
    if (side != nullptr) *side = after.side;
    s.keys[way].store(key, std::memory_order_release);
    s.values[way].store(value, std::memory_order_release);
    s.reshape([&](std::uint64_t shape) { return shape | shape_word::way_bit(way); });
    return full ? fill_result::evicted_another : fill_result::installed;
  }

  [[no_unique_address]] Eviction policy_;
  std::uint64_t count_;
  std::unique_ptr<entry_set[]> sets_;
  std::unique_ptr<side_words[]> sides_;
};

}  // namespace pmlab::cache::detail
