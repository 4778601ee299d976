// The newest changes in DRAM, and in the log: a tiered store without persistent memory.
#pragma once

#include <pmlab/stores/tiered/memtable.hpp>
#include <pmlab/stores/tiered/versions.hpp>

namespace pmlab::stores {

// See tiered/memory.hpp for the other one.
struct no_memory {
  // The medium of tiered_drives::memory: there is none.
  struct medium {};
  // Whether it is there at all.
  static constexpr bool is_there = false;
  // All versions: nothing has all of them.
  struct index {};
  // The versions between two freezes.
  using table = detail::tiered::memtable;
  // A reader's view of these.
  using source = detail::tiered::memtable_source;
};

}  // namespace pmlab::stores
