// The simulated machine: every access of instrumented code passes through it.
//
// All logical threads are fibers on one kernel thread, so exactly one step happens at a time and everything can be
// replayed. Three uses, in any combination:
//   persistence   stores, flushes and fences to a persistent_memory are logged, and an observer sees each one
//   schedules     a policy decides after how many accesses another fiber runs, and which
//   time          accesses advance the clock of their fiber; the fiber with the lowest clock runs
//
// Only sequentially consistent interleavings are explored: those that only a weaker order allows are not.
#pragma once

#include "checker/simulator/calls.hpp"
#include "checker/simulator/machine/fiber.hpp"
#include "checker/simulator/machine/heap.hpp"
#include "checker/simulator/machine/persistent_drive.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/simulator/machine/space_limit.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pmlab::simulator {

enum class access_kind : std::uint8_t { read, write, atomic_read, atomic_write, read_modify_write };

// Why another fiber is to go on.
enum class turn : std::uint8_t {
  time_is_up,  // the policy ended its turn
  yields,      // the fiber has nothing to do until another one has done something
  blocked,     // it waits, or has ended
};

// Decides who runs. One object per run.
class schedule {
 public:
  virtual ~schedule() = default;
  // How many accesses the fiber that runs now may make before `next` is called; at least 1.
  virtual std::uint64_t quantum() = 0;
  // `runnable` is not empty, in the order of fibers' numbers; `current` is in it, unless it is blocked.
  virtual fiber* next(std::span<fiber* const> runnable, fiber* current, turn why) = 0;
};

// The cost of accesses on virtual clocks, in picoseconds.
class timing {
 public:
  virtual ~timing() = default;
  // True if no other core can see, or be affected by, this access.
  virtual bool is_private(unsigned core, std::uintptr_t address, std::size_t bytes, access_kind kind) = 0;
  virtual std::uint64_t access(unsigned core, std::uintptr_t address, std::size_t bytes, access_kind kind,
                               std::uint64_t now) = 0;
  // `evicts`: by an instruction that evicts the line from all caches on every CPU.
  virtual std::uint64_t flush(unsigned core, std::uintptr_t address, bool evicts, std::uint64_t now) = 0;
  virtual std::uint64_t write_around(unsigned core, std::uintptr_t address, std::size_t bytes, std::uint64_t now) = 0;
  virtual std::uint64_t prefetch(unsigned core, std::uintptr_t address, std::size_t bytes, std::uint64_t now) = 0;
  virtual std::uint64_t fence(unsigned core, std::uint64_t now) = 0;
  // A publication that stores to these words and changes `blocks` blocks.
  virtual std::uint64_t publication(unsigned core, std::span<const std::uintptr_t> words, std::size_t blocks,
                                    std::uint64_t now) = 0;
};

struct machine_options {
  schedule* who = nullptr;                         // null: a fiber runs until it waits
  timing* cost = nullptr;                          // null: no virtual time
  std::uint64_t access_limit = ~std::uint64_t{0};  // beyond it, a thread waits for an event that never happens
  bool watch_freed = true;  // an access to freed memory is a violation, and freed memory is not used again
};

class machine {
 public:
  // ---- for those who run something on it ----

  // The calling thread becomes fiber 0. Until `end`, threads that are made are fibers.
  void begin(const machine_options& options);
  // All other fibers have ended.
  void end();
  [[nodiscard]] bool running() const noexcept { return running_; }

  // The memory whose stores are logged; null: none.
  void use(persistent_memory* memory) noexcept;
  [[nodiscard]] persistent_memory* memory() const noexcept { return memory_; }

  // The drives that instrumented code finds by their place here; they outlive their use.
  void use_drives(std::span<persistent_drive* const> drives) noexcept { drives_ = drives; }
  [[nodiscard]] std::span<persistent_drive* const> drives() const noexcept { return drives_; }

  // Called with a description when the machine detects an error (deadlock, freed memory, ...); must not return.
  using violation_handler = void (*)(const std::string&);
  violation_handler on_violation = nullptr;
  // Adds the positions of all threads.
  void violated(std::string what);

  // Runs `work` unwatched.
  template <class Work>
  decltype(auto) quietly(Work&& work) {
    const quiet_section section(*this);
    return work();
  }

  // Runs `work` on another memory and other drives, observed, in the middle of a run: no other fiber runs during it, and
  // flushes of the current fiber to its own memory are kept.
  template <class Work>
  void aside(persistent_memory& memory, std::span<persistent_drive* const> drives, Work&& work) {
    const aside_section section(*this, memory, drives);
    work();
  }

  // Runs `work`, not observed, with the thread-local storage of the thread that began: for creating processes.
  template <class Work>
  void as_first_thread(Work&& work) {
    quietly([&] {
      borrow_first_storage(true);
      work();
      borrow_first_storage(false);
    });
  }

  // Switches to thread-local storage that no fiber uses (or back to the fiber's own): recovery code gets its own TLS
  // block.
  void borrow_watchers_storage(bool on);

  // Turns observation of accesses on or off. A run begins with it off.
  void watch(bool on) noexcept;

  [[nodiscard]] std::uint64_t accesses() const noexcept { return accesses_; }
  [[nodiscard]] fiber* current() const noexcept { return current_; }
  // There from the first `begin` on.
  [[nodiscard]] heap* dram() noexcept { return dram_; }
  // Of the media in DRAM that use it; no limit when a run begins.
  [[nodiscard]] space_limit& limit_of_dram() noexcept { return limit_of_dram_; }
  [[nodiscard]] timing* cost() const noexcept { return options_.cost; }
  // The position of each fiber and what it waits for; {code addresses} in braces.
  [[nodiscard]] std::string positions() const;

  // ---- threads (machine/threads.cpp) ----

  fiber* spawn(void* (*start)(void*), void* argument);
  // Waits for its end. Returns its result; the fiber is gone.
  void* join(fiber* which);
  [[nodiscard]] fiber* find(pthread_t id) const noexcept;
  void yield();
  // Waits until `wake_all(object)`; false: the deadline (0: none) was reached first.
  bool wait_for(const void* object, std::string_view why, std::uint64_t deadline = 0);
  void wake(const void* object, bool all) {
    quietly([&] { make_runnable(object, all); });
  }
  void sleep_until(std::uint64_t clock);
  // In picoseconds. If accesses take no time, each read of the clock does, and the current time is the latest that any
  // thread has read.
  std::uint64_t read_clock() noexcept;
  // The caller is a fiber of this machine, and not a kernel thread that lends or returns.
  [[nodiscard]] bool on_a_fiber() const noexcept {
    return running_ && reinterpret_cast<std::uint64_t>(__builtin_thread_pointer()) == current_->thread_pointer;
  }
  [[nodiscard]] bool watching() const noexcept { return watching_; }

  // ---- events of instrumented code (machine/hooks.cpp) ----

  // Called before the access.
  void access(const void* address, std::size_t bytes, access_kind kind, const void* caller) {
    if (!watching_) return;
    saw(reinterpret_cast<std::uintptr_t>(address), bytes, kind, caller);
  }
  // The atomic operation on these bytes has been done.
  void stored_atomically(const void* address, std::size_t bytes, const void* caller) {
    if (!watching_ || memory_ == nullptr) return;
    const auto a = reinterpret_cast<std::uintptr_t>(address);
    if (a - memory_start_ < memory_bytes_) log_store(a, bytes, caller);
  }
  // g++ reports the copy of a structure as a write, then a read, and then copies: the read that follows a write of the
  // same size must not count as the end of the write.
  void plain_read(const void* address, std::size_t bytes, const void* caller) {
    if (!watching_) return;
    if (pending_count_ != 0 && copy_may_be_under_way(bytes)) return;
    saw(reinterpret_cast<std::uintptr_t>(address), bytes, access_kind::read, caller);
  }
  void read_range(const void* address, std::size_t bytes, const void* caller) {
    if (!watching_) return;
    if (last_was_written_range_) {
      last_was_written_range_ = false;
      return;
    }
    saw(reinterpret_cast<std::uintptr_t>(address), bytes, access_kind::read, caller);
  }
  void write_range(const void* address, std::size_t bytes, const void* caller) {
    if (!watching_) return;
    saw(reinterpret_cast<std::uintptr_t>(address), bytes, access_kind::write, caller);
    last_was_written_range_ = true;
  }

  // `evicts`: clflushopt or clflush, not clwb.
  void flush(const void* address, const void* caller, bool evicts = false);
  void fence(const void* caller);
  void store_around(void* address, std::size_t bytes, const void* caller);
  void prefetch(const void* address, std::size_t bytes);
  void locked_instruction();
  // `m` may be another memory than the one in use.
  void publish(persistent_memory& m, std::span<const pmlab_change> changes, const void* caller);
  // A call to a drive: a moment at which another fiber may go on. Its time is the drive's.
  void drive_called(const void* caller);
  // Stores announced by plain hooks have happened by now.
  void settle() {
    if (pending_count_ != 0) log_pending();
  }

  void begin_timing() noexcept;
  void end_timing() noexcept;

 private:
  class quiet_section {
   public:
    explicit quiet_section(machine& m) noexcept : machine_(m), before_(m.watching_) {
      if (before_) m.settle();
      m.watching_ = false;
    }
    quiet_section(const quiet_section&) = delete;
    quiet_section& operator=(const quiet_section&) = delete;
    ~quiet_section() { machine_.watching_ = before_; }

   private:
    machine& machine_;
    bool before_;
  };

  class aside_section {
   public:
    aside_section(machine& m, persistent_memory& memory, std::span<persistent_drive* const> drives);
    aside_section(const aside_section&) = delete;
    aside_section& operator=(const aside_section&) = delete;
    ~aside_section();

   private:
    machine& machine_;
    bool watching_;
    persistent_memory* memory_;
    std::span<persistent_drive* const> drives_;
    flush_list flushes_;
    const void* last_caller_;
    std::uint64_t began_;  // accesses before it
    std::uint64_t left_;   // of the quantum
  };

  struct pending_store {
    std::uintptr_t address;
    std::size_t bytes;
    const void* caller;
    bool around;  // non-temporal
  };

  void saw(std::uintptr_t address, std::size_t bytes, access_kind kind, const void* caller);
  void charge(std::uintptr_t address, std::size_t bytes, access_kind kind);
  template <class Cost>
  void take_time(Cost&& cost);
  template <class Cost>
  void moment(const void* caller, Cost&& cost);
  void charge_publication(std::span<const pmlab_change> changes);
  void log_store(std::uintptr_t address, std::size_t bytes, const void* caller);
  void log_pending();
  void time_is_up();
  [[nodiscard]] bool copy_may_be_under_way(std::size_t bytes) const noexcept;
  void check_freed(std::uintptr_t address, const void* caller);
  void take_turn(turn why);
  void switch_to(fiber* next);
  [[nodiscard]] std::vector<fiber*>& runnable();
  [[nodiscard]] fiber* lowest_clock() noexcept;
  void restart_quantum();
  void make_runnable(const void* object, bool all);
  void take_storage_back(fiber& self);
  void borrow_first_storage(bool on) noexcept;
  [[nodiscard]] fiber* choose(turn why);
  void leave_for(fiber* next) noexcept;
  bool wake_sleeper_due_by(std::uint64_t clock) noexcept;
  void enter(fiber* f) noexcept;
  static boost::context::fiber run_fiber(machine& m, fiber* self, boost::context::fiber&& from);

  bool watching_ = false;
  bool running_ = false;
  bool last_was_written_range_ = false;
  bool last_was_write_ = false;
  bool aside_ = false;
  std::uintptr_t stack_low_ = 0;  // of the current fiber: its own business
  std::size_t stack_bytes_ = 0;
  std::uint64_t accesses_ = 0;
  std::uint64_t next_turn_ = ~std::uint64_t{0};  // at this many accesses
  persistent_memory* memory_ = nullptr;
  std::uintptr_t memory_start_ = 0;
  std::size_t memory_bytes_ = 0;
  std::span<persistent_drive* const> drives_;
  std::uint32_t pending_count_ = 0;
  std::array<pending_store, 8> pending_{};
  fiber* current_ = nullptr;
  fiber* came_from_ = nullptr;
  std::uint64_t horizon_ = 0;  // lowest clock of the other runnable fibers
  machine_options options_;
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<fiber*> runnable_;
  unsigned next_number_ = 0;
  heap* dram_ = nullptr;
  space_limit limit_of_dram_;
};

namespace detail {
extern constinit machine instance;
}

// The one machine of this process.
[[nodiscard]] inline machine& the_machine() noexcept { return detail::instance; }

}  // namespace pmlab::simulator
