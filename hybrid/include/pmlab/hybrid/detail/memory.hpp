// Work for which memory may be short.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <new>

namespace pmlab::hybrid::detail {

// Calls work(). Returns false if it threw std::bad_alloc: what it had done until then stays done.
template <class Work>
bool has_memory_for(Work&& work) {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace pmlab::hybrid::detail
