// Hardware transactions (Intel RTM), where the processor has them.
//
// A policy for code that also works without transactions: `attempt(body)` runs `body` as one transaction and returns
// whether it committed. Its reads and writes are then atomic; otherwise it left no trace. A processor never guarantees
// that a transaction commits, so the caller must have a fallback.
#pragma once

#include <pmlab/base/platform.hpp>

#include <atomic>
#include <cstdint>
#include <string_view>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace pmlab::sync {

template <class T>
concept transactions = requires {
  // True if transactions can succeed on this machine.
  { T::available() } -> std::same_as<bool>;
  {
    T::attempt([] {})
    } -> std::same_as<bool>;
  // Ends the attempt that this thread is in without effect: `attempt` returns false. Only inside of one.
  { T::give_up() } -> std::same_as<void>;
};

// Stands for transactions in code that shall not try any.
struct no_transactions {
  // They are never available.
  static constexpr bool available() noexcept { return false; }
  // Runs nothing and answers false.
  template <class Body>
  static bool attempt(Body&& /*body*/) noexcept {
    return false;
  }
  // Does nothing: no transaction is under way.
  static void give_up() noexcept {}
};

// Thread safety: all of it. Progress: `attempt` never waits. Experimental: no index uses it by default, and no machine
// of the project has the instructions, so no test has seen one of its transactions commit.
class hardware_transactions {
 public:
  // Tests the processor once. Many that report RTM abort every transaction (a microcode update disabled TSX), so a few
  // empty transactions are tried.
  [[nodiscard]] static bool available() noexcept {
    static const bool answer = probe();
    return answer;
  }

  // True if the processor reports RTM.
  [[nodiscard]] static bool advertised() noexcept {
#if defined(__x86_64__)
    constexpr unsigned rtm_bit = 1U << 11;
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0 && (ebx & rtm_bit) != 0;
#else
    return false;
#endif
  }

  // Runs body() as a transaction, and retries a few times if others interfere. `body` must be repeatable, and must be
  // harmless if it reads words that other threads are changing: such a conflict aborts it.
  template <class Body>
  [[gnu::target("rtm")]] static bool attempt(Body&& body) {
    if (!available()) return false;
    constexpr int tries = 3;
    for (int i = 0; i < tries; ++i) {
#if defined(__x86_64__)
      const auto status = static_cast<unsigned>(__builtin_ia32_xbegin());
      if (status == started) {
        body();
        __builtin_ia32_xend();
        return true;
      }
      if ((status & may_succeed_yet) == 0) return false;
#endif
    }
    return false;
  }

  // Ends the transaction that this thread is in. Only inside of one.
  [[gnu::target("rtm")]] static void give_up() noexcept {
#if defined(__x86_64__)
    __builtin_ia32_xabort(0);
#endif
  }

 private:
  // The instruction's status codes. Builtins, since <immintrin.h> takes a third of a second to compile.
  static constexpr unsigned started = ~0U;
  static constexpr unsigned may_succeed_yet = 1U << 1;

  [[gnu::target("rtm")]] static bool probe() noexcept {
#if defined(__x86_64__)
    if (!platform::may_have_transactions || !advertised()) return false;
    for (int i = 0; i < 100; ++i)
      if (static_cast<unsigned>(__builtin_ia32_xbegin()) == started) {
        __builtin_ia32_xend();
        return true;
      }
#endif
    return false;
  }
};

static_assert(transactions<no_transactions> && transactions<hardware_transactions>);

}  // namespace pmlab::sync
