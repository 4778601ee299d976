// Thread-local storage for fibers.
#include "checker/simulator/machine/fiber.hpp"
#include "checker/simulator/machine/fiber_stack.hpp"
#include "checker/simulator/machine/host_refusal.hpp"
#include "checker/simulator/machine/real.hpp"

#include <climits>
#include <csignal>
#include <new>
#include <utility>

#include <immintrin.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pmlab::simulator {
namespace {

void wait_while(std::uint32_t& word, std::uint32_t value) {
  while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) == value) real::syscall_futex(&word, FUTEX_WAIT_PRIVATE, value);
}

void set_and_wake(std::uint32_t& word, std::uint32_t value) {
  __atomic_store_n(&word, value, __ATOMIC_RELEASE);
  real::syscall_futex(&word, FUTEX_WAKE_PRIVATE, INT_MAX);
}

std::uint64_t this_thread_pointer() { return reinterpret_cast<std::uint64_t>(__builtin_thread_pointer()); }

}  // namespace

// A signal of the process is for the thread that runs the fibers. A lender has the storage of a fiber: in it, a handler
// that sleeps would go on with the machine's next fiber, beside that thread.
lent_storage::lent_storage() {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_attr_t small;
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, std::size_t{256} << 10);
  const int failed = real::functions().create(&lender_, &small, lend, this);
  pthread_attr_destroy(&small);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0)
    throw host_refusal("the simulated machine cannot make a thread", "let this user have more of them (ulimit -u)");
  wait_while(state_, 0);
}

lent_storage::~lent_storage() {
  set_and_wake(state_, 2);
  real::functions().join(lender_, nullptr);
}

void* lent_storage::lend(void* self) {
  auto& storage = *static_cast<lent_storage*>(self);
  storage.thread_pointer_ = this_thread_pointer();
  set_and_wake(storage.state_, 1);
  wait_while(storage.state_, 1);
  if (storage.abandoned_) real::end_thread();
  return nullptr;
}

void fiber::abandon() noexcept {
  if (storage != nullptr) storage->abandon();
  if (!context) return;
  // Its destructor would unwind the stack.
  alignas(boost::context::fiber) std::byte never_destroyed[sizeof(boost::context::fiber)];
  ::new (never_destroyed) boost::context::fiber(std::move(context));
  boost::context::stack_context stack;
  stack.size = stack_bytes;
  stack.sp = reinterpret_cast<void*>(stack_low + stack_bytes);
  fiber_stacks().deallocate(stack);
}

}  // namespace pmlab::simulator
