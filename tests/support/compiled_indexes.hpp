// The indexes on the media of the tests, compiled once for all tests (compiled_indexes.cpp), and optimised: with each
// test they would be most of the compilation.
#pragma once

#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include "offered_indexes.hpp"
#include "support/restartable_medium.hpp"

#define PMLAB_INDEXES_ON_TESTED_MEDIA(TEMPLATE) \
  PMLAB_INDEXES_ON(TEMPLATE, media::dram)       \
  PMLAB_INDEXES_ON(TEMPLATE, media::pmem)       \
  PMLAB_INDEXES_ON(TEMPLATE, tests::restartable_medium)

namespace pmlab::indexes {

PMLAB_INDEXES_ON_TESTED_MEDIA(extern template)

}  // namespace pmlab::indexes
