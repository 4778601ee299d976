// Stacks for fibers: with a page below that faults, and used again.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

#include <boost/context/stack_context.hpp>
#include <sys/mman.h>

namespace pmlab::simulator {

// An allocator for Boost.Context. All of its objects are equal. Thread safety: none.
class fiber_stacks {
 public:
  static constexpr std::size_t stack_bytes = std::size_t{1} << 20;
  static constexpr std::size_t guard_bytes = 4096;

  boost::context::stack_context allocate() {
    void* low = nullptr;
    if (!unused().empty()) {
      low = unused().back();
      unused().pop_back();
    } else {
      low = ::mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (low == MAP_FAILED) std::abort();
      ::mprotect(low, guard_bytes, PROT_NONE);
    }
    boost::context::stack_context stack;
    stack.size = stack_bytes;
    stack.sp = static_cast<char*>(low) + stack_bytes;
    return stack;
  }

  void deallocate(boost::context::stack_context& stack) noexcept {
    unused().push_back(static_cast<char*>(stack.sp) - stack.size);
  }

 private:
  static std::vector<void*>& unused() {
    static std::vector<void*> stacks;
    return stacks;
  }
};

}  // namespace pmlab::simulator
