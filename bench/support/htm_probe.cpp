// Whether hardware transactions work on this machine.
#include "bench/support/htm_probe.hpp"
#include <pmlab/sync/transactions.hpp>

#include <csetjmp>
#include <csignal>

#include <immintrin.h>

namespace pmlab::bench {
namespace {

sigjmp_buf after_the_fault;

extern "C" void jump_back(int) { siglongjmp(after_the_fault, 1); }

__attribute__((target("rtm"))) bool one_transaction(volatile std::uint64_t& word) noexcept {
  if (_xbegin() != _XBEGIN_STARTED) return false;
  word = word + 1;
  _xend();
  return true;
}

}  // namespace

htm_probe probe_htm() noexcept {
  htm_probe found;
  found.advertised = sync::hardware_transactions::advertised();

  struct sigaction guard {};
  struct sigaction before {};
  guard.sa_handler = jump_back;
  sigaction(SIGILL, &guard, &before);
  // Volatile, since they change between sigsetjmp and a possible second return from it.
  volatile std::uint64_t tried = 0;
  volatile std::uint64_t committed = 0;
  if (sigsetjmp(after_the_fault, 1) == 0) {
    constexpr std::uint64_t tries = 1000;
    static volatile std::uint64_t word = 0;
    while (tried < tries) {
      const bool done = one_transaction(word);
      tried = tried + 1;
      if (done) committed = committed + 1;
    }
    found.executable = true;
  }
  sigaction(SIGILL, &before, nullptr);
  found.tried = tried;
  found.committed = committed;
  return found;
}

}  // namespace pmlab::bench
