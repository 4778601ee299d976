// Validates an extendible hash table that may be damaged, and reads the entries of a damaged one.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/detail/extendible/directory.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::extendible {

// `table`: the index, as its messages name it.
[[nodiscard]] inline error corrupt(std::string_view table, const std::string& what) {
  return {"this " + std::string(table) + " table is corrupt: " + what, "restore the pool from a copy"};
}

// The directory at `root_word`, all of which is in the medium. Throws pmlab::error if it is not.
template <class Medium>
[[nodiscard]] directory& directory_at(const Medium& medium, std::uint64_t root_word, std::string_view table) {
  const media::pointer<directory> root(root_word);
  if (!media::can_name(medium, root)) throw corrupt(table, "its root");
  directory& stored = *medium.resolve(root);
  const std::uint64_t depth = stored.global_depth.load(std::memory_order_acquire);
  if (depth < initial_global_depth || depth > greatest_global_depth ||
      !media::can_name(medium, root, directory::bytes(static_cast<unsigned>(depth))))
    throw corrupt(table, "its global depth");
  return stored;
}

// True if a directory of this depth may have this entry.
template <class Segment, class Medium>
[[nodiscard]] bool names_a_segment(const Medium& medium, entry_word stored, unsigned global_depth) noexcept {
  return stored == entry_word::of(stored.segment_word(), stored.local_depth()) && stored.local_depth() != 0 &&
         stored.local_depth() <= global_depth &&
         media::can_name(medium, media::pointer<Segment>(stored.segment_word()));
}

// Calls function(key, value) for each entry of the segments that the directory at `root_word` points to. If a directory
// entry is lost, the other ones of its run give the segment. Changes nothing. Throws pmlab::error at the end if some of
// it could not be read. segment_directory.hpp lists the functions of a segment that are called.
template <class Segment, class Medium, class Function>
void salvage(const Medium& medium, std::uint64_t root_word, std::string_view table, Function&& function) {
  if (root_word == 0) return;
  directory& stored = directory_at(medium, root_word, table);
  const auto global_depth = static_cast<unsigned>(stored.global_depth.load(std::memory_order_acquire));
  const std::size_t count = std::size_t{1} << global_depth;
  const auto entry_at = [&](std::size_t i) { return stored.entries()[i].load(std::memory_order_acquire); };
  const auto is_usable = [&](std::size_t i) { return names_a_segment<Segment>(medium, entry_at(i), global_depth); };

  std::set<std::pair<std::size_t, std::uint64_t>> done;  // runs and their words
  std::vector<bool> is_covered(count);
  std::size_t damaged = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const entry_word entry = entry_at(i);
    if (!is_usable(i)) continue;
    const std::size_t run = std::size_t{1} << (global_depth - entry.local_depth());
    const std::size_t first = i & ~(run - 1);
    if (!done.insert({first, entry.word}).second) continue;
    for (std::size_t k = first; k < first + run; ++k) is_covered[k] = true;
    Segment& s = *medium.resolve(media::pointer<Segment>(entry.segment_word()));
    const std::uint64_t prefix = std::uint64_t{first} << (64 - global_depth);
    for_each_value(s, prefix, entry.local_depth(), [&](std::uint64_t hash, std::uint64_t value) {
      // A split that was cut off, or a damaged depth, may have left this one: the entry's own directory entry decides.
      const std::size_t own = hash >> (64 - global_depth);
      if (is_usable(own) && entry_at(own).segment_word() != entry.segment_word()) return;
      function(key_of_hash(hash), value);
    });
    damaged += damaged_slots(s, prefix, entry.local_depth());
  }
  std::size_t lost = 0;
  for (const bool covered : is_covered) lost += covered ? 0 : 1;
  if (lost == 0 && damaged == 0) return;
  throw corrupt(table, std::to_string(damaged) + " slots hold impossible words, and " + std::to_string(lost) + " of " +
                           std::to_string(count) + " directory entries lead nowhere");
}

}  // namespace pmlab::indexes::detail::extendible
