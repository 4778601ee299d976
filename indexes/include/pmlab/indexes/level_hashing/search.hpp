// Searches in the levels of one shard of Level hashing, and the filling of a new one.
#pragma once

#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/level_hashing/bucket.hpp>
#include <pmlab/indexes/level_hashing/levels.hpp>
#include <pmlab/indexes/level_hashing/place.hpp>

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

namespace pmlab::indexes::detail::level_hashing {

// The target of an operation.
struct wanted {
  explicit wanted(std::uint64_t k) noexcept : key(k), hash(hash_of_key(k)), at(hash) {}
  std::uint64_t key;
  std::uint64_t hash;
  candidates at;
};

// A slot of a bucket, or none.
struct position {
  bucket* in = nullptr;
  unsigned slot = 0;
  explicit operator bool() const noexcept { return in != nullptr; }
};

// Calls `visit(object)` before it reads an object.
template <class Visit>
[[nodiscard]] position search(bucket& b, const wanted& w, Visit&& visit) {
  visit(b.word);
  for (unsigned same = b.load().matching(w.at.tag()); same != 0; same &= same - 1) {
    const auto number = static_cast<unsigned>(std::countr_zero(same));
    visit(b.slots[number]);
    if (b.slots[number].key.load(std::memory_order_acquire) == w.key) return {&b, number};
  }
  return {};
}

// Searches both candidates of a level.
template <class Visit>
[[nodiscard]] position search(level l, const wanted& w, Visit&& visit) {
  for (unsigned which = 0; which < 2; ++which)
    if (const position found = search(l[w.at.number(which, l.log2())], w, visit)) return found;
  return {};
}

// The first free slot of the emptier candidate of a level; none: both are full.
[[nodiscard]] inline position free_in(level l, const candidates& at) noexcept {
  bucket& first = l[at.number(0, l.log2())];
  bucket& second = l[at.number(1, l.log2())];
  bucket& emptier = second.load().entries() < first.load().entries() ? second : first;
  const tokens t = emptier.load();
  return t.full() ? position{} : position{&emptier, t.free_slot()};
}

// A shard grows when the four buckets of a key are full; then most others are nearly full, too. If fewer than one slot
// in so many of its bottom level is used, the keys were chosen to share their buckets: the result is `full`, instead of
// one new level after the other until memory is exhausted.
inline constexpr std::uint64_t tolerated_emptiness = 8;

// A level of 2^log2 buckets, in DRAM, of the entries of a bottom level that it is to replace. nullptr: no memory, or no
// sense.
[[nodiscard]] inline std::unique_ptr<bucket[]> new_top_of(level bottom, unsigned log2) {
  std::unique_ptr<bucket[]> made(new (std::nothrow) bucket[std::size_t{1} << log2]{});
  if (made == nullptr) return nullptr;
  const level top(made.get(), log2);
  std::uint64_t entries = 0;
  for (std::uint64_t n = 0; n < bottom.size(); ++n)
    for (unsigned valid = bottom[n].load().valid(); valid != 0; valid &= valid - 1) {
      const slot& from = bottom[n].slots[static_cast<std::size_t>(std::countr_zero(valid))];
      const wanted w(from.key.load(std::memory_order_relaxed));
      const position to = free_in(top, w.at);
      if (!to) return nullptr;
      to.in->slots[to.slot].key.store(w.key, std::memory_order_relaxed);
      to.in->slots[to.slot].value.store(from.value.load(std::memory_order_relaxed), std::memory_order_relaxed);
      to.in->word.store(to.in->load().with(to.slot, w.at.tag()).word(), std::memory_order_relaxed);
      ++entries;
    }
  const std::uint64_t slots = bottom.size() * slots_per_bucket;
  return entries * tolerated_emptiness < slots ? nullptr : std::move(made);
}

}  // namespace pmlab::indexes::detail::level_hashing
