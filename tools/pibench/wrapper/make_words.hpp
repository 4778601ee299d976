// How a library makes its index: names only, so that the sources of the libraries themselves compile at once.
#pragma once

#include <memory>

namespace pmlab::pibench {

class words_behind;
struct place;

// Opens the memory, but not yet the index in it. Throws the exceptions of media::pmem; pmlab::error: options of the
// environment are not understood.
using make_words = std::unique_ptr<words_behind>(const place& memory);

// The index that is linked into a library: own_index.cpp.in defines it.
make_words make_own_index;

// An asynchronous cache in front of it, in the same pool. Its options are those of cache(INDEX,...), in the environment
// variable PMLAB_CACHE; without it: 64k entries, looked up in series. When the index opens, also throws pmlab::error:
// no threads.
make_words make_cached_index;

}  // namespace pmlab::pibench
