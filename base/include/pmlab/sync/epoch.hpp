// Epoch-based reclamation: memory that was unlinked is freed when no reader can use it. After Fraser, 2004 [FRASER].
//
//   sync::epochs domain;                       // one per structure
//   { const auto guard = domain.pin(); ... }   // reachable nodes stay readable until the guard is destroyed
//   domain.retire([=] { give_back(node); });   // after the node was unlinked: runs once no reader can use the node
//   domain.reclaim();                          // before returning "no space": runs at once all functions that may run
//
// Use it if readers follow pointers without a lock and nodes are freed: a reader holds one guard per operation.
//
// Thread safety: everything from any number of threads, except `drain`. The place of an ended thread, and the functions
// that it retired, are reused by the next new thread.
//
// Progress: `pin` and the end of a guard are wait-free (except a thread's first call, which registers it under a
// mutex). `retire` is wait-free except for allocation, for the functions that it runs, and while `reclaim` removes a
// few functions from this thread's list. No thread waits for a guard of another one without bound: while a thread stays
// pinned, functions only wait longer, and use memory.
//
// Memory: a thread keeps its retired functions until its own later calls of `retire` or a call of `reclaim` by any
// thread: about two batches, if guards are short.
//
// Order (E1, E2: by a locked instruction, which on x86 is a full fence):
//   E1  A thread announces the epoch that it read before it reads anything of the structure.
//   E2  A function is stamped with the epoch as it is after the unlinking that precedes `retire`.
//   E3  The epoch advances from e to e + 1 only after every place was found empty or at e, one after the other. So, if
//       it is x when a guard announces itself, it advances to x + 1 at most before the guard ends: the step to x + 1
//       may have checked the place before, the step to x + 2 can only check it after.
//   E4  A function stamped r runs at r + 2 or later. A guard that may reach the memory announced itself before the
//       unlinking (E1), at an epoch x <= r (E2), and holds the epoch at r + 1 or below (E3).
//   E5  A guard that ends empties its place with release order, and the thread that advances the epoch reads it with
//       acquire order: all reads of the guard happen before a function runs that waited for it.
//   E6  A thread's list is read and changed with its `busy` held, by its owner or by `reclaim`; functions run with
//       nothing held. So each runs once, on a thread that acquired `busy` after the owner had released it, and sees all
//       that the owner did before `retire`. The exchange that acquires `busy` is the locked instruction of E2.
#pragma once

#include <pmlab/base/thread_blocks.hpp>
#include <pmlab/sync/relax.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmlab::sync {

// Keeps retired memory until no reader can use it. Thread safety: everything but construction and destruction.
// Progress: readers (`pin`) never wait; one writer at a time searches for functions that may run.
class epochs {
  struct participant;

 public:
  // Functions that a thread retires before it checks again whether some may run.
  static constexpr std::size_t usual_batch = 64;

  // `batch`: functions that a thread retires before it checks again whether some may run; at least 1.
  explicit epochs(std::size_t batch = usual_batch) : batch_(batch) {}
  epochs(const epochs&) = delete;
  epochs& operator=(const epochs&) = delete;
  // Only when no guard exists.
  ~epochs() { drain(); }

  // Ends the guard of `pin`; on the thread that began it.
  class [[nodiscard]] guard {
   public:
    guard(const guard&) = delete;
    guard& operator=(const guard&) = delete;
    ~guard() {
      if (--mine_.depth == 0) mine_.announced.store(nowhere, std::memory_order_release);
    }

   private:
    friend class epochs;
    explicit guard(participant& mine) noexcept : mine_(mine) {}
    participant& mine_;
  };

  // From here to the end of the guard no function runs that is retired from now on. Guards of a thread may nest. A
  // comparison, a load and one locked store. A thread's first call may throw std::bad_alloc.
  guard pin() {
    participant& mine = this_thread();
    if (mine.depth++ == 0) exchange(mine.announced, epoch_.load(std::memory_order_relaxed));
    return guard(mine);
  }

  // Runs `function()` once every guard that exists now has ended: in a later `retire` of this thread (or of the one
  // that takes its place), in `reclaim`, on the calling thread, or in `drain`. The caller may hold a guard. The
  // function may retire others; it must not throw. Functions of one thread may run concurrently on two threads, in any
  // order. It is copied as bytes: its captures are trivially copyable and take at most `most_bytes`. Returns false if
  // there is no memory; the function was dropped.
  template <class Function>
  bool retire(Function function) {
    static_assert(std::is_trivially_copyable_v<Function> && std::is_trivially_destructible_v<Function> &&
                      sizeof(Function) <= most_bytes && alignof(Function) <= alignof(std::max_align_t),
                  "capture pointers and numbers only");
    participant* const place = this_thread_if_memory();
    if (place == nullptr) return false;
    participant& mine = *place;
    retired r;
    std::memcpy(r.bytes, &function, sizeof function);
    r.run = [](void* bytes) { (*std::launder(static_cast<Function*>(bytes)))(); };
    {
      const std::scoped_lock own(mine);
      r.epoch = epoch_.load(std::memory_order_relaxed);
      if (!mine.keep(r)) return false;
    }
    if (++mine.since_last_look >= batch_) {
      mine.since_last_look = 0;
      try_advance();
      // Called by a running function: the outer loop also runs the functions that it retired.
      if (!mine.running && !draining_) run_as(mine, [&] { run_due(mine, epoch_.load(std::memory_order_acquire)); });
    }
    return true;
  }

  // Runs, on this thread, the functions that any thread has retired until now, idle and ended threads included, as far
  // as no reader is left that they wait for; gives readers a moment to end. Returns how many it ran. For before an
  // answer "no space": costs a load per thread if nothing waits. REQUIRES: this thread has no guard (its own guard
  // would hold back all that it could run). The first call of a thread may throw std::bad_alloc.
  std::size_t reclaim() {
    participant& mine = this_thread();
    if (mine.running || waiting() == 0) return 0;
    const std::uint64_t enough = epoch_.load(std::memory_order_seq_cst) + 2;
    backoff wait;
    for (int tries = 0; tries < most_tries && epoch_.load(std::memory_order_acquire) < enough; ++tries)
      if (!try_advance()) wait.pause();
    std::size_t ran = 0;
    const std::uint64_t epoch = epoch_.load(std::memory_order_acquire);
    run_as(mine, [&] {
      for (participant* p = first_.load(std::memory_order_acquire); p != nullptr; p = p->next)
        if (p->waiting.load(std::memory_order_relaxed) != 0) ran += run_due(*p, epoch);
    });
    return ran;
  }

  // Runs every retired function, including those retired during the call. REQUIRES: no guard exists and no other thread
  // calls anything.
  void drain() {
    draining_ = true;  // functions that these retire do not run within them
    for (bool again = true; again;) {
      again = false;
      for (participant* p = first_.load(std::memory_order_acquire); p != nullptr; p = p->next)
        if (p->waiting.load(std::memory_order_relaxed) != 0) {
          run_due(*p, forever);
          again = true;
        }
    }
    draining_ = false;
  }

  // Functions that no thread has begun to run.
  [[nodiscard]] std::size_t waiting() const noexcept {
    std::size_t result = 0;
    for (const participant* p = first_.load(std::memory_order_acquire); p != nullptr; p = p->next)
      result += p->waiting.load(std::memory_order_relaxed);
    return result;
  }

  // Bytes of a retired function with its captures: it is stored without an allocation of its own.
  static constexpr std::size_t most_bytes = 48;

 private:
  static constexpr std::uint64_t nowhere = 0;  // no guard; epochs begin at 1
  static constexpr std::uint64_t forever = ~std::uint64_t{0};
  static constexpr int most_tries = 128;  // calls of `reclaim`, for two steps of the epoch

  struct retired {
    alignas(std::max_align_t) std::byte bytes[most_bytes];
    void (*run)(void* bytes);
    std::uint64_t epoch;
  };

  // The state of one thread. Other threads read `announced`, `waiting` and `next`, and remove from `list` (E6).
  struct alignas(64) participant {
    std::atomic<std::uint64_t> announced{nowhere};
    std::size_t depth = 0;  // nested guards
    std::atomic<std::uint64_t> busy{0};
    std::size_t since_last_look = 0;
    std::vector<retired> list;  // from `first_waiting` on: not taken yet, in the order of their epochs
    std::size_t first_waiting = 0;
    bool running = false;  // this thread runs functions, its own or others'
    std::atomic<std::size_t> waiting{0};
    participant* next = nullptr;

    void lock() noexcept {
      for (backoff wait; exchange(busy, 1) != 0;) wait.pause();
    }
    void unlock() noexcept { busy.store(0, std::memory_order_release); }

    // ---- with `busy` held ----

    [[nodiscard]] bool keep(const retired& r) noexcept {
      try {
        list.push_back(r);
      } catch (const std::bad_alloc&) {
        return false;
      }
      count();
      return true;
    }

    // Removes functions that may run in `epoch`, as many as `out` has room for; returns their number.
    [[nodiscard]] std::size_t take(std::uint64_t epoch, std::span<retired> out) noexcept {
      std::size_t taken = 0;
      while (taken < out.size() && first_waiting < list.size() &&
             (epoch == forever || list[first_waiting].epoch + 2 <= epoch))
        out[taken++] = list[first_waiting++];
      if (first_waiting >= list.size() / 2) {
        list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(first_waiting));
        first_waiting = 0;
      }
      count();
      return taken;
    }

    void count() noexcept { waiting.store(list.size() - first_waiting, std::memory_order_relaxed); }
  };

  // Runs the functions of `p` that may run in `epoch`, a few at a time, with nothing held. Returns how many.
  static std::size_t run_due(participant& p, std::uint64_t epoch) {
    std::array<retired, 16> some;
    for (std::size_t ran = 0;;) {
      std::size_t count = 0;
      {
        const std::scoped_lock taking(p);
        count = p.take(epoch, some);
      }
      for (std::size_t i = 0; i < count; ++i) some[i].run(some[i].bytes);
      ran += count;
      if (count < some.size()) return ran;
    }
  }

  // `work` runs functions: a function that these retire does not run within them.
  template <class Work>
  static void run_as(participant& mine, Work&& work) {
    mine.running = true;
    work();
    mine.running = false;
  }

  // An exchange that is visible to all before anything after it is read.
  static std::uint64_t exchange(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
    const std::uint64_t old = word.exchange(value, std::memory_order_seq_cst);
#if !defined(__x86_64__) && !defined(__SANITIZE_THREAD__)
    std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
    return old;
  }

  participant& this_thread() {
    return participants_.local([this](std::size_t /*number*/) {
      auto made = std::make_unique<participant>();
      // One thread at a time is here. Places are never taken away.
      made->next = first_.load(std::memory_order_relaxed);
      first_.store(made.get(), std::memory_order_seq_cst);
      return made;
    });
  }

  // nullptr: this is the thread's first call, and there is no memory for its place.
  participant* this_thread_if_memory() noexcept {
    try {
      return &this_thread();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  // True: the epoch is another one than before.
  bool try_advance() noexcept {
    std::uint64_t now = epoch_.load(std::memory_order_seq_cst);
    for (const participant* p = first_.load(std::memory_order_seq_cst); p != nullptr; p = p->next) {
      const std::uint64_t announced = p->announced.load(std::memory_order_seq_cst);
      if (announced != nowhere && announced != now) return false;
    }
    epoch_.compare_exchange_strong(now, now + 1, std::memory_order_acq_rel);
    return true;
  }

  alignas(64) std::atomic<std::uint64_t> epoch_{1};
  alignas(64) std::atomic<participant*> first_{nullptr};
  thread_blocks<participant> participants_;
  std::size_t batch_;
  bool draining_ = false;  // no other thread calls anything then
};

}  // namespace pmlab::sync
