// Where a tiered store keeps its newest changes: in DRAM and a log, or in persistent memory.
//
//   using store = stores::tiered<blocks::file, blocks::emulated_clock, stores::memtable_on<media::pmem>>;
//   auto db = store::open({.staging = fast, .capacity = slow, .memory = &pool}, options);
//
// In persistent memory the memtable is itself durable: a change survives a crash when it returns, and no log is
// written. Any ordered index of pmlab holds it:  memtable_on<media::pmem, indexes::fast_fair<media::pmem>>.
#pragma once

#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/stores/tiered/memory_opener.hpp>
#include <pmlab/stores/tiered/memory_table.hpp>
#include <pmlab/stores/tiered/no_memory.hpp>
#include <pmlab/stores/tiered/version_index.hpp>

namespace pmlab::stores {

// The newest changes in `Medium`, in an index of this type; the type is part of the layout.
template <media::medium Medium, class Index = indexes::skip_list<Medium>>
struct memtable_on {
  // The medium of tiered_drives::memory.
  using medium = Medium;
  // Whether it is there at all.
  static constexpr bool is_there = true;
  // All versions.
  using index = detail::tiered::version_index<Medium, Index>;
  // Opens it with the drives.
  using opener = detail::tiered::memory_opener<index>;
  // The versions between two freezes.
  using table = detail::tiered::memory_table<index>;
  // A reader's view of these.
  using source = detail::tiered::memory_source<table>;
};

}  // namespace pmlab::stores
