// DRAM that is exhausted: an error of a step, and no exception, where an operation has begun.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <new>
#include <system_error>

namespace pmlab::stores::detail::chunk_store {

// There is no DRAM for a step, which changed nothing. not_enough_memory is another error: the medium of records is
// full.
inline constexpr std::errc no_memory = std::errc::no_buffer_space;

// Returns step(), an error; no_memory if there is no DRAM for it.
template <class Step>
[[nodiscard]] std::errc unless_exhausted(Step&& step) {
  try {
    return step();
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

}  // namespace pmlab::stores::detail::chunk_store
