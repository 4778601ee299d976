// Reads the entries of a Level hashing table that does not open: of every level whose word is still valid.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/level_hashing/bucket.hpp>
#include <pmlab/indexes/level_hashing/levels.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

namespace pmlab::indexes::detail::level_hashing {

[[nodiscard]] inline error corrupt(const std::string& what) {
  return {"this Level hashing table is corrupt: " + what, "restore the pool from a copy"};
}

inline constexpr unsigned greatest_log2_shards = 20;

// True if `l` names a level that lies in the medium.
template <class Medium>
[[nodiscard]] bool names_a_level(const Medium& medium, stored_level l) noexcept {
  return !l.none() && l.plausible() && l.buckets().word() % alignof(bucket) == 0 &&
         media::can_name(medium, l.buckets(), level_bytes(l.log2()));
}

// The root object at `root_word`. Throws pmlab::error if it is not all in the medium.
template <class Medium>
[[nodiscard]] root_object& root_at(const Medium& medium, std::uint64_t root_word) {
  const media::pointer<root_object> root(root_word);
  if (!media::can_name(medium, root)) throw corrupt("its root");
  const std::uint64_t log2 = medium.resolve(root)->log2_shards.load(std::memory_order_acquire);
  if (log2 > greatest_log2_shards || !media::can_name(medium, root, root_object::bytes(static_cast<unsigned>(log2))))
    throw corrupt("its number of shards");
  return *medium.resolve(root);
}

// True if slot `number` of bucket `n` of level `l` is a place of its key, in this shard.
[[nodiscard]] inline bool is_at_home(const bucket& b, unsigned number, std::size_t shard, unsigned log2_shards,
                                     std::uint64_t n, unsigned log2) noexcept {
  const std::uint64_t hash = hash_of_key(b.slots[number].key.load(std::memory_order_acquire));
  const candidates at(hash);
  return shard_of(hash, log2_shards) == shard && at.include(n, log2) && b.load().tag(number) == at.tag();
}

// Calls function(key, value) for each entry of every level that can be found from the root at `root_word`, and is where
// its key may be. Changes nothing. Throws pmlab::error at the end if a level could not be found, or something else is
// in one.
template <class Medium, class Function>
void salvage(const Medium& medium, std::uint64_t root_word, Function&& function) {
  if (root_word == 0) return;
  root_object& root = root_at(medium, root_word);
  const auto log2_shards = static_cast<unsigned>(root.log2_shards.load(std::memory_order_acquire));
  std::size_t lost = 0;
  std::size_t damaged = 0;
  for (std::size_t i = 0; i < std::size_t{1} << log2_shards; ++i)
    for (const auto* const word : {&root.shards()[i].top, &root.shards()[i].bottom}) {
      const stored_level l(word->load(std::memory_order_acquire));
      if (l.none()) {
        // A shard has both levels or none (I3).
        const auto& shard = root.shards()[i];
        const auto& other = word == &shard.top ? shard.bottom : shard.top;
        lost += stored_level(other.load(std::memory_order_acquire)).none() ? 0 : 1;
        continue;
      }
      if (!names_a_level(medium, l)) {
        ++lost;
        continue;
      }
      const bucket* const buckets = medium.resolve(l.buckets());
      for (std::uint64_t n = 0; n < std::uint64_t{1} << l.log2(); ++n) {
        damaged += buckets[n].plausible() ? 0 : 1;
        for (unsigned valid = buckets[n].load().valid(); valid != 0; valid &= valid - 1) {
          const auto number = static_cast<unsigned>(std::countr_zero(valid));
          const slot& s = buckets[n].slots[number];
          if (is_at_home(buckets[n], number, i, log2_shards, n, l.log2()))
            function(s.key.load(std::memory_order_acquire), s.value.load(std::memory_order_acquire));
          else
            ++damaged;
        }
      }
    }
  if (lost == 0 && damaged == 0) return;
  throw corrupt(std::to_string(damaged) + " slots hold impossible words, and " + std::to_string(lost) +
                " of its levels are lost");
}

}  // namespace pmlab::indexes::detail::level_hashing
