// What the program and the library of this test share: a kind of object, and the functions of the library.
#pragma once

#include <pmlab/base/thread_blocks.hpp>

#include <cstddef>
#include <memory>

namespace pmlab::tests {

struct alignas(64) numbered_block {
  std::size_t number = 0;
};
using numbered_blocks = thread_blocks<numbered_block>;

inline std::unique_ptr<numbered_block> make_numbered(std::size_t number) {
  return std::make_unique<numbered_block>(numbered_block{number});
}

}  // namespace pmlab::tests

// An object of the library, which `end_blocks` ends; and a block of an object for the calling thread, by the library's
// code.
using make_blocks_function = pmlab::tests::numbered_blocks*();
using end_blocks_function = void(pmlab::tests::numbered_blocks*);
using local_block_function = pmlab::tests::numbered_block*(pmlab::tests::numbered_blocks*);
