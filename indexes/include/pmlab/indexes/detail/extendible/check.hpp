// The check of an extendible hash table: its directory, and what its segments hold.
#pragma once

#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/detail/extendible/directory.hpp>
#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::indexes::detail::extendible {

// The violations of a table's invariants. Those of the segments, as each table has them: I1, searches find each entry;
// I2, a key is present once; I3, a slot holds an entry of its segment's prefix, or none.
//
// for_each_entry(segment, prefix, entry, visit) calls visit(hash, is_found) for the entries of a segment; `entry`: its
// directory entry in DRAM. `is_found`: searches find it, or the segment is "unsearched".
template <class SegmentDirectory, class ForEachEntry>
[[nodiscard]] check_report check(const SegmentDirectory& table, ForEachEntry&& for_each_entry) {
  check_report report;
  table.check(report);
  if (!report.ok()) return report;

  std::size_t damaged = 0;
  std::size_t segments = 0;
  table.for_each_segment([&](auto& s, std::uint64_t prefix, entry_word entry) {
    std::vector<std::uint64_t> hashes;
    for_each_entry(s, prefix, entry, [&](std::uint64_t hash, bool is_found) {
      hashes.push_back(hash);
      if (!is_found) report.add("I1: no search finds key " + std::to_string(key_of_hash(hash)));
    });
    std::sort(hashes.begin(), hashes.end());
    if (const auto twice = std::adjacent_find(hashes.begin(), hashes.end()); twice != hashes.end())
      report.add("I2: key " + std::to_string(key_of_hash(*twice)) + " is present twice");
    report.entries += hashes.size();
    const std::size_t here = damaged_slots(s, prefix, entry.local_depth());
    damaged += here;
    segments += here != 0 ? 1 : 0;
  });
  if (damaged != 0)
    report.add("I3: " + std::to_string(damaged) + " slots in " + std::to_string(segments) +
               " segments hold impossible words: they were overwritten");
  return report;
}

}  // namespace pmlab::indexes::detail::extendible
