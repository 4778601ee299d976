// The cache's entries in DRAM: sets of seven, found by the key's hash.
//
// Thread safety: everything from any number of threads, but `check`. Progress: `find` waits for nobody; the others wait
// while somebody holds the set's lock, which is a few stores long and never lasts across a call of the index.
//
// What keeps a value from being served that the index does not have (any more):
//   V1  An entry (key, value) that a reader can hit is what the index holds for the key, durably.
//   V2  Whoever is to change or remove a key in the index begins a write: the key's entry cannot be hit from then on,
//       and the set counts one more writer and has another version. The write ends when the index has answered. While it
//       lasts the key has no entry: V3 and V4 put none in.
//   V3  A fill brings what the index answered a reader, and the set's gate from before the index was asked. That gate
//       had no writer in it. It is installed only if the gate is the same: no write of a key of the set began since then,
//       so none was under way while the index was asked, nor is now.
//   V4  A write puts its value in when it ends, if the entry was there when it began and the set has the version that it
//       gave it. Since the entry was there, no write of the key was under way (V2); since the version stands, none began.
//       So the last change of the key in the index is its own.
//   V5  A key that the index does not hold is in no entry, and inserting does not change a key that it holds. So an insert
//       has nothing to do here; a fill from before the key was erased and inserted again falls to V3.
//   V6  A write that ends by an exception, or changes nothing, only ends: the entry stays out.
#pragma once

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

// What a look into the cache came to.
struct look {
  bool hit = false;
  value_type value = 0;  // of a hit
  std::optional<std::uint64_t>
      gate{};  // of a miss: what a fill must bring; nothing: what the index says may be on its way
};

enum class fill_result : std::uint8_t { installed, evicted_another, was_there, stale };

template <eviction_policy Eviction>
class set_store {
 public:
  // `entries`: at least so many fit in. Throws std::bad_alloc.
  set_store(std::uint64_t entries, Eviction policy)
      : policy_(policy),
        count_(std::max<std::uint64_t>((entries + ways - 1) / ways, 1)),
        sets_(std::make_unique<entry_set[]>(count_)),
        sides_(policy.uses_side_words() ? std::make_unique<side_words[]>(count_) : nullptr) {
#if !defined(PMLAB_SIMULATED)
    media::collapse_to_huge_pages(sets_.get(), count_ * sizeof(entry_set));
#endif
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

  // `number`: number_of(key), here and below. Wait-free.
  [[nodiscard]] look find(std::uint64_t number, key_type key) noexcept {
    entry_set& s = sets_[number];
    const std::uint64_t before = s.shape.load(std::memory_order_acquire);  // S1
    const unsigned way = s.way_of(key, shape_word::used(before));
    if (way == no_way) return {false, 0, gate(number)};
    const value_type value = s.values[way].load(std::memory_order_acquire);
    std::uint64_t shape = s.shape.load(std::memory_order_acquire);
    if (shape_word::changes(shape) != shape_word::changes(before)) return {false, 0, gate(number)};  // S1
    const std::uint64_t touched = shape_word::with_policy(shape, policy_.hit(shape_word::policy(shape), way));
    if (touched != shape) s.shape.compare_exchange_strong(shape, touched, std::memory_order_relaxed);  // S2
    return {true, value, std::nullopt};
  }

  // What a fill must bring that begins now; nothing: what the index says may be on its way.
  [[nodiscard]] std::optional<std::uint64_t> gate(std::uint64_t number) const noexcept {
    const std::uint64_t gate = sets_[number].gate.load(std::memory_order_acquire);
    if (gate_word::is_locked(gate) || gate_word::writers(gate) != 0) return std::nullopt;  // V3
    return gate;
  }

  // Installs what a fill brings, if nothing speaks against it (V3).
  fill_result fill(key_type key, value_type value, std::uint64_t gate) noexcept {
    const std::uint64_t number = number_of(key);
    entry_set& s = sets_[number];
    const std::uint64_t now = s.lock();
    fill_result result = fill_result::stale;
    if (now == gate) {
      const unsigned used = shape_word::used(s.shape.load(std::memory_order_relaxed));
      result = s.way_of(key, used) != no_way ? fill_result::was_there : install(number, key, value, used);
    }
    s.unlock(now);
    return result;
  }

  // A write of one key, from before the index is changed to after it has answered.
  class [[nodiscard]] write {
   public:
    write(set_store& store, key_type key) noexcept : set_(store.sets_[store.number_of(key)]), policy_(store.policy_) {
      std::uint64_t before = set_.lock();
      for (sync::backoff wait; gate_word::writers(before) == gate_word::most_writers; before = set_.lock()) {
        set_.unlock(before);
        wait.pause();
      }
      way_ = set_.way_of(key, shape_word::used(set_.shape.load(std::memory_order_relaxed)));
      // V2: out of sight before the index changes. The way stays the entry's own: no fill comes while there are writers.
      if (way_ != no_way)
        set_.reshape(
            [&](std::uint64_t shape) { return (shape & ~shape_word::way_bit(way_)) + shape_word::one_change; });
      gate_ = before + gate_word::one_writer + gate_word::one_version;
      set_.unlock(gate_);
    }
    write(const write&) = delete;
    write& operator=(const write&) = delete;
    ~write() {
      if (!ended_) end(std::nullopt);
    }

    // The index holds `value` for the key now; nothing: it may not.
    void end(std::optional<value_type> value) noexcept {
      ended_ = true;
      const std::uint64_t now = set_.lock();
      // V4: no other write began.
      const bool alone = gate_word::version(now) == gate_word::version(gate_);
      if (value && way_ != no_way && alone) {
        set_.values[way_].store(*value, std::memory_order_release);
        set_.reshape([&](std::uint64_t shape) {
          const std::uint64_t back = (shape | shape_word::way_bit(way_)) + shape_word::one_change;
          return shape_word::with_policy(back, policy_.hit(shape_word::policy(back), way_));
        });
      }
      set_.unlock(now - gate_word::one_writer);
    }

   private:
    entry_set& set_;
    const Eviction& policy_;
    std::uint64_t gate_ = 0;  // as this write left it when it began
    unsigned way_ = no_way;
    bool ended_ = false;
  };

  // Calls function(key, value) with every entry, and problem(text) with every invariant that does not hold. Wants no
  // other call at the same time.
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

  fill_result install(std::uint64_t number, key_type key, value_type value, unsigned used) noexcept {
    entry_set& s = sets_[number];
    side_words* const side = sides_ ? &sides_[number] : nullptr;
    const bool full = used == shape_word::all_ways;
    tags_of_set tags{};
    if (full)
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
