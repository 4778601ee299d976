// The indexes on the media of the tests, compiled once for all tests (compiled_indexes.cpp), and optimised: with each
// test they would be most of the compilation. An index that is not here is compiled with each test that uses it.
#pragma once

#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include "offered_indexes.hpp"
#include "support/crash_medium.hpp"

#define PMLAB_INDEXES_ON(TEMPLATE, Medium)                 \
  TEMPLATE class cceh<Medium>;                             \
  TEMPLATE class dash<Medium>;                             \
  TEMPLATE class level_hashing<Medium>;                    \
  TEMPLATE class fast_fair<Medium>;                        \
  TEMPLATE class fp_tree<Medium>;                          \
  TEMPLATE class nv_tree<Medium>;                          \
  TEMPLATE class wb_tree<Medium>;                          \
  TEMPLATE class skip_list<Medium>;                        \
  TEMPLATE class skip_list<Medium, persistent_towers>;     \
  TEMPLATE class detail::radix::tree<Medium, wort_layout>; \
  TEMPLATE class detail::radix::tree<Medium, woart_layout>;

#define PMLAB_INDEXES_ON_TESTED_MEDIA(TEMPLATE) \
  PMLAB_INDEXES_ON(TEMPLATE, media::dram)       \
  PMLAB_INDEXES_ON(TEMPLATE, media::pmem)       \
  PMLAB_INDEXES_ON(TEMPLATE, tests::crash_medium)

namespace pmlab::indexes {

PMLAB_INDEXES_ON_TESTED_MEDIA(extern template)

}  // namespace pmlab::indexes
