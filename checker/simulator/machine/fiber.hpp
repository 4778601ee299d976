// A logical thread of the simulated machine: a stack, thread-local storage of its own, and the reason why it waits.
#pragma once

#include "checker/simulator/machine/hosts.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/simulator/machine/store_buffer.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <boost/context/fiber.hpp>
#include <pthread.h>

namespace pmlab::simulator {

// Thread-local storage as the C library makes it, lent by a kernel thread that does nothing else. A fiber runs with the
// thread pointer of its lender, so errno, locales, allocator caches, exceptions in flight and `thread_local` objects
// are its own; when the fiber has ended, the lender does, and runs the destructors.
class lent_storage {
 public:
  lent_storage();
  lent_storage(const lent_storage&) = delete;
  lent_storage& operator=(const lent_storage&) = delete;
  ~lent_storage();  // waits for the lender's end

  [[nodiscard]] std::uint64_t thread_pointer() const noexcept { return thread_pointer_; }
  [[nodiscard]] pthread_t id() const noexcept { return lender_; }
  // Its fiber is dead: the lender ends without running destructors, which may store to memory.
  void abandon() noexcept { abandoned_ = true; }

 private:
  static void* lend(void* self);

  pthread_t lender_{};
  std::uint64_t thread_pointer_ = 0;
  std::uint32_t state_ = 0;  // a futex: 0 starting, 1 lent, 2 returned
  bool abandoned_ = false;
};

enum class fiber_state : std::uint8_t { runnable, blocked, finished };

struct fiber {
  unsigned number = 0;  // 0: the thread that started the machine
  fiber_state state = fiber_state::runnable;
  bool detached = false;
  bool timed = false;          // its accesses take virtual time now
  bool timed_out = false;      // how its last wait ended
  bool yielded = false;        // yielded without work to do; for fairness
  bool dead = false;           // with its host: it never runs again, not even to unwind its stack
  std::uint64_t deadline = 0;  // deadline of a wait, in picoseconds of virtual time; 0: none
  const void* waits_for = nullptr;
  std::string_view why;               // it is blocked
  const void* last_caller = nullptr;  // its last access, for reports
  bool gives_up = false;              // its atomic change is the end of a lock: it relies on no read before it
  std::uint64_t clock = 0;            // picoseconds
  unsigned host = 0;                  // where it runs
  bool around_caches = false;         // its access is done by the device
  flush_list flushes;                 // since its last fence
  invalidation_list invalidations;    // since its last mfence; of a run with several hosts
  store_buffer stores;                // that no other thread can see yet
  std::uintptr_t stack_low = 0;
  std::size_t stack_bytes = 0;
  std::uint64_t thread_pointer = 0;
  std::unique_ptr<lent_storage> storage;  // none: fiber 0 has its own
  void* (*start)(void*) = nullptr;
  void* argument = nullptr;
  void* result = nullptr;
  boost::context::fiber context;  // where it continues

  // It is dead: what is on its stack stays as it is, and the stack is used again. REQUIRES: it does not run.
  void abandon() noexcept;
};

}  // namespace pmlab::simulator
