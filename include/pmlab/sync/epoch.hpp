// Epochs: when may memory that a thread took out of a shared structure be used again? After Fraser, 2004 [FRASER].
//
//   sync::epochs domain;                       // one per structure
//   { const auto guard = domain.pin(); ... }   // what is reachable now stays readable until the guard goes
//   domain.retire([=] { give_back(node); });   // after the node was unlinked: runs once nobody can be reading it
//   domain.reclaim();                          // before an answer "no space": runs at once all that may run
//
// Use them where readers follow pointers without a lock and nodes are freed: a reader holds one guard per operation.
//
// Thread safety: everything from any number of threads, except `drain`. A thread that ends leaves its place, and what
// it retired, to the next new thread.
//
// Progress: `pin` and the end of a guard are wait-free (but for a thread's first call, which registers it under a
// mutex). `retire` is wait-free but for allocation, for the functions that it runs, and while `reclaim` takes a few
// functions out of this thread's list. No thread waits for a guard of another one without bound: while some thread stays
// pinned, functions only wait longer, and take memory.
//
// Memory: a thread keeps what it retired until its own later calls of `retire` or a call of `reclaim` by any thread:
// about two batches, if guards are short.
//
// Order (E1, E2: by a locked instruction, which on x86 is a full fence):
//   E1  A thread announces the epoch that it saw before it reads anything of the structure.
//   E2  A function is stamped with the epoch as it is after the unlinking that precedes `retire`.
//   E3  The epoch goes from e to e + 1 only after every place was seen empty or at e, one after the other. So, if it is
//       x when a guard announces itself, it comes to x + 1 at most before the guard has gone: the step to x + 1 may
//       have looked before, the step to x + 2 could only have looked after.
//   E4  A function stamped r runs at r + 2 or later. A guard that may lead to the memory announced itself before the
//       unlinking (E1), at an epoch x <= r (E2), and holds the epoch at r + 1 or below (E3).
//   E5  A guard that ends empties its place with release order, and whoever moves the epoch on reads it with acquire
//       order: all that it read was read before a function runs that waited for it.
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

// Keeps what readers may still hold until none of them can. Thread safety: everything but construction and destruction.
// Progress: readers (`pin`) wait for nobody; of writers one at a time looks what can go.
class epochs {
  struct participant;

 public:
  // Functions that a thread retires before it looks again whether some can run.
  static constexpr std::size_t usual_batch = 64;

  // `batch`: functions that a thread retires before it looks again whether some can run; at least 1.
  explicit epochs(std::size_t batch = usual_batch) : batch_(batch) {}
  epochs(const epochs&) = delete;
  epochs& operator=(const epochs&) = delete;
  // Only when no guard exists.
  ~epochs() { drain(); }

  // Ends what `pin` began; on the thread that began it.
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

  // Runs `function()` once every guard that exists now is gone: in a later `retire` of this thread (or of the one that
  // takes its place), in `reclaim`, on the thread that calls that, or in `drain`. With or without a guard of one's own.
  // The function may retire others; it must not throw. Functions of one thread may run at the same time on two, in any
  // order. It is copied as bytes: what it captures is trivially copyable and takes at most `most_bytes`.
  // False: no memory; the function was dropped.
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
      // Called by a function that runs: the loop that runs it goes on to what it retired.
      if (!mine.running && !draining_) run_as(mine, [&] { run_due(mine, epoch_.load(std::memory_order_acquire)); });
    }
    return true;
  }

  // Runs, on this thread, the functions that any thread has retired until now, idle and ended threads included, as far
  // as no reader is left that they wait for; gives readers a moment to end. Returns how many it ran. For before an
  // answer "no space": costs a load per thread if nothing waits. REQUIRES: this thread has no guard (its own guard would
  // hold back all that it could run). The first call of a thread may throw std::bad_alloc.
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

  // Runs every retired function, those that are retired meanwhile included. Only when no guard exists and no other
  // thread calls anything.
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

  // Of a function that is retired, with what it holds: it is kept without an allocation of its own.
  static constexpr std::size_t most_bytes = 48;

 private:
  static constexpr std::uint64_t nowhere = 0;  // no guard; epochs begin at 1
  static constexpr std::uint64_t forever = ~std::uint64_t{0};
  static constexpr int most_tries = 128;  // of `reclaim`, for two steps of the epoch

  struct retired {
    alignas(std::max_align_t) std::byte bytes[most_bytes];
    void (*run)(void* bytes);
    std::uint64_t epoch;
  };

  // What belongs to one thread. Others read `announced`, `waiting` and `next`, and take from `list` (E6).
  struct alignas(64) participant {
    std::atomic<std::uint64_t> announced{nowhere};
    std::size_t depth = 0;  // of nested guards
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

    // Takes out functions that may run in `epoch`, as many as `out` has room for; returns how many.
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

  // `work` runs functions: what these retire does not run within them.
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
