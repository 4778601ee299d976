// Allocations that fail: the first, second, third, ... of an operation, or one in so many of the background threads.
//
// Defines operator new of its program: one source file of a test program includes it.
#pragma once

#include <pmlab/base/error.hpp>

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>

namespace pmlab::tests {

// Allocations of this thread until the one that fails; negative: none does.
inline thread_local std::int64_t until_failure = -1;
inline thread_local bool one_has_failed = false;
// All behind the one that fails do, too.
inline thread_local bool all_fail_behind = false;
// The one that fails kills the process instead.
inline thread_local bool failure_kills = false;
// In background threads, one allocation in so many fails; 0: none.
inline std::atomic<std::uint64_t> one_in_background{0};
inline std::atomic<std::uint64_t> background_allocations{0};
inline std::atomic<std::uint64_t> background_failures{0};
inline thread_local bool is_foreground = false;

inline bool fails_now() noexcept {
  if (until_failure >= 0 && until_failure-- == 0) {
    if (failure_kills) std::raise(SIGKILL);
    one_has_failed = true;
    if (all_fail_behind) until_failure = 0;
    return true;
  }
  const std::uint64_t one_in = one_in_background.load(std::memory_order_relaxed);
  if (one_in == 0 || is_foreground || background_allocations.fetch_add(1) % one_in != one_in - 1) return false;
  background_failures.fetch_add(1);
  return true;
}

// Not inline: a compiler that sees malloc and free behind new and delete takes them for a mismatch.
[[gnu::noinline]] inline void* take(std::size_t bytes, std::size_t alignment) noexcept {
  if (fails_now()) return nullptr;
  if (alignment <= alignof(std::max_align_t)) return std::malloc(bytes == 0 ? 1 : bytes);
  // Zeros, as in a new pool: the content of a previous index at the same address must not look like this one's.
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const taken = std::aligned_alloc(alignment, rounded);
  return taken == nullptr ? nullptr : std::memset(taken, 0, rounded);
}
[[gnu::noinline]] inline void* take_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const taken = take(bytes, alignment);
  if (taken == nullptr) throw std::bad_alloc();
  return taken;
}
[[gnu::noinline]] inline void give_back(void* taken) noexcept { std::free(taken); }
inline constexpr std::size_t usual = alignof(std::max_align_t);

// The result of a call with a failing allocation.
struct attempt {
  bool failed = false;  // an allocation did
  bool threw = false;   // and so did the call
  std::string what{};   // with this message
};

// Calls `work()` with allocation number `n` of this thread failing.
template <class Work>
attempt with_failure_at(std::int64_t n, Work&& work) {
  attempt a;
  one_has_failed = false;
  until_failure = n;
  try {
    work();
    until_failure = -1;
  } catch (const std::bad_alloc& e) {
    until_failure = -1;
    a.threw = true;
    a.what = e.what();
  } catch (const error& e) {
    until_failure = -1;
    a.threw = true;
    a.what = e.what();
  }
  a.failed = one_has_failed;
  return a;
}

}  // namespace pmlab::tests

void* operator new(std::size_t bytes) { return pmlab::tests::take_or_throw(bytes, pmlab::tests::usual); }
void* operator new[](std::size_t bytes) { return pmlab::tests::take_or_throw(bytes, pmlab::tests::usual); }
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return pmlab::tests::take(bytes, pmlab::tests::usual);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return pmlab::tests::take(bytes, pmlab::tests::usual);
}
void* operator new(std::size_t bytes, std::align_val_t a) {
  return pmlab::tests::take_or_throw(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return pmlab::tests::take_or_throw(bytes, static_cast<std::size_t>(a));
}
void* operator new(std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return pmlab::tests::take(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return pmlab::tests::take(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* block) noexcept { pmlab::tests::give_back(block); }
void operator delete[](void* block) noexcept { pmlab::tests::give_back(block); }
void operator delete(void* block, std::size_t) noexcept { pmlab::tests::give_back(block); }
void operator delete[](void* block, std::size_t) noexcept { pmlab::tests::give_back(block); }
void operator delete(void* block, std::align_val_t) noexcept { pmlab::tests::give_back(block); }
void operator delete[](void* block, std::align_val_t) noexcept { pmlab::tests::give_back(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept { pmlab::tests::give_back(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept { pmlab::tests::give_back(block); }
void operator delete(void* block, const std::nothrow_t&) noexcept { pmlab::tests::give_back(block); }
void operator delete[](void* block, const std::nothrow_t&) noexcept { pmlab::tests::give_back(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept { pmlab::tests::give_back(block); }
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  pmlab::tests::give_back(block);
}
