// create_tree of pmlab's libraries: opens the memory that PiBench's options name, and the index in it.
//
//   pool_path empty      DRAM: nothing survives the tree
//   pool_path exists     a pmlab pool (media/pmem.hpp), recovered; pool_size is ignored
//   pool_path does not   a new pool of pool_size bytes
//
// Keys and values of 8 bytes are the index's own; any other sizes are a string index's, whose words it keeps.
#pragma once

#include "tools/pibench/wrapper/make_words.hpp"
#include <pmlab/pibench/tree_api.hpp>

#include <string_view>

namespace pmlab::pibench {

// The tree of `name` ("fast_fair", ...) over the words of `make`, for its library's create_tree. Throws pmlab::error,
// and also prints it to stderr, since PiBench does not: sizes that are not offered, no pool and no size to make one,
// and the errors of media::pmem and the index for a pool that they cannot open.
[[nodiscard]] tree_api* create(std::string_view name, const tree_options_t& options, make_words* make);

}  // namespace pmlab::pibench
