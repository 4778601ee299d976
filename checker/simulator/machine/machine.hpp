// The simulated machine: every access of instrumented code passes through it.
//
// All logical threads are fibers on one kernel thread, so exactly one step happens at a time and everything can be
// replayed. Three uses, in any combination:
//   persistence   stores, flushes and fences to a persistent_memory are logged, and an observer sees each one
//   schedules     a policy decides after how many accesses another fiber runs, and which
//   time          accesses advance the clock of their fiber; the fiber with the lowest clock runs
//
// Interleavings are sequentially consistent, or x86's: stores wait in a buffer of their thread (store_buffer.hpp).
#pragma once

#include "checker/simulator/calls.hpp"
#include "checker/simulator/machine/fiber.hpp"
#include "checker/simulator/machine/heap.hpp"
#include "checker/simulator/machine/hosts.hpp"
#include "checker/simulator/machine/libraries.hpp"
#include "checker/simulator/machine/persistent_drive.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/simulator/machine/space_limit.hpp"
#include "checker/simulator/machine/store_buffer.hpp"
#include "checker/simulator/machine/timed_hosts.hpp"
#include <pmlab/media/persistence_domain.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::simulator {

enum class access_kind : std::uint8_t { read, write, atomic_read, atomic_write, read_modify_write };

// Why another fiber is to go on.
enum class turn : std::uint8_t {
  time_is_up,  // the policy ended its turn
  yields,      // the fiber has nothing to do until another one has done something
  suspended,   // the policy stops it just before an atomic change or a publication
  blocked,     // it waits, or has ended
};

// Decides who runs. One object per run.
class schedule {
 public:
  virtual ~schedule() = default;
  // How many accesses the fiber that runs now may make before `next` is called; at least 1.
  virtual std::uint64_t quantum() = 0;
  // Called before each atomic change and publication. True: another fiber runs first. `gives_up`: the change is the end
  // of a lock.
  virtual bool suspends_now(bool /*gives_up*/) { return false; }
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
  // The same of an access that is private and that the nearest cache serves. `no_hit`: another one, and nothing was
  // done.
  static constexpr std::uint64_t no_hit = ~std::uint64_t{0};
  virtual std::uint64_t hit(unsigned /*core*/, std::uintptr_t /*address*/, std::size_t /*bytes*/, access_kind /*kind*/,
                            std::uint64_t /*now*/) {
    return no_hit;
  }
  // `evicts`: by an instruction that evicts the line from all caches on every CPU.
  virtual std::uint64_t flush(unsigned core, std::uintptr_t address, bool evicts, std::uint64_t now) = 0;
  virtual std::uint64_t write_around(unsigned core, std::uintptr_t address, std::size_t bytes, std::uint64_t now) = 0;
  virtual std::uint64_t prefetch(unsigned core, std::uintptr_t address, std::size_t bytes, std::uint64_t now) = 0;
  virtual std::uint64_t fence(unsigned core, std::uint64_t now) = 0;
  // An mfence.
  virtual std::uint64_t load_fence(unsigned core, std::uint64_t now) { return fence(core, now); }
  // A compare-exchange of a word by the device, where several hosts share it.
  virtual std::uint64_t exchange_on_device(unsigned core, std::uintptr_t address, std::uint64_t now) {
    return access(core, address, sizeof(std::uint64_t), access_kind::read_modify_write, now);
  }
  // A publication that stores to these words and changes `blocks` blocks.
  virtual std::uint64_t publication(unsigned core, std::span<const std::uintptr_t> words, std::size_t blocks,
                                    std::uint64_t now) = 0;

  // Bytes that the device's media have moved since the start: whole granules.
  struct media_traffic {
    std::uint64_t read = 0;
    std::uint64_t written = 0;
    std::uint64_t granule = 0;  // bytes of one; 0: there is no device
    std::uint64_t fetched = 0;  // lines that came from the device, buffered there or not
  };
  [[nodiscard]] virtual media_traffic traffic() const noexcept { return {}; }
};

// Informed of what a run does to make stores to the memory in use durable, in the order of the program. Called on the
// fiber that does it, with observation off.
class durability_watch {
 public:
  virtual ~durability_watch() = default;
  virtual void stored(std::uintptr_t address, std::size_t bytes) = 0;
  virtual void stored_around(std::uintptr_t address, std::size_t bytes) = 0;  // non-temporal
  virtual void flushed(std::uintptr_t address, bool persistent, const void* caller) = 0;
  virtual void fenced(const void* caller) = 0;
  virtual void published(std::uintptr_t address) = 0;  // a word, with the stores to its line
};

// Memory that is one host's own, beside its heap.
struct host_memory {
  code_range where;
  unsigned host = 0;
  bool is_mapped = false;  // by mmap; otherwise an object's variables or constants
};

struct machine_options {
  schedule* who = nullptr;                         // null: a fiber runs until it waits
  timing* cost = nullptr;                          // null: no virtual time
  std::uint64_t access_limit = ~std::uint64_t{0};  // beyond it, a thread waits for an event that never happens
  // Not 0: stores wait in store buffers (x86-TSO), and this seed decides when they leave. REQUIRES: no `cost`.
  std::uint64_t store_buffers = 0;
  bool watch_freed = true;  // an access to freed memory is a violation, and freed memory is not used again
  // The machine's heap is for libraries of simulated code alone, and for what is timed: where a block of theirs lies
  // depends on nothing that the program around them allocates. False: it is for all code on fibers.
  bool heap_of_libraries = false;
  std::size_t heap_offset = 0;  // the place of the heap's first block; a multiple of 16
  // The hosts on the memory that the run uses; null: one. They outlive the run. For ADR alone.
  simulator::hosts* hosts = nullptr;
  // With several hosts: the objects that one of them has loaded alone. It outlives the run.
  std::span<const host_memory> loaded_by_hosts{};
  // Several hosts of which time alone is modelled; null: one. They outlive the run. REQUIRES: `cost`, and no `hosts`.
  simulator::timed_hosts* timed_hosts = nullptr;
};

using media::persistence_domain;

// Made by timed code outside of publications, as media count them: lines flushed, fences.
struct persist_counts {
  std::uint64_t flushes = 0;
  std::uint64_t fences = 0;
  // Where several hosts share the memory:
  std::uint64_t invalidations = 0;  // flushes that evict
  std::uint64_t exchanges = 0;      // compare-exchanges by the device
};

// Informed of the accesses to persistent memory, before each one, with observation off. What a publication or a
// non-temporal store writes is written, too.
class access_watcher {
 public:
  virtual ~access_watcher() = default;
  virtual void before_read(std::uintptr_t address, std::size_t bytes) = 0;
  virtual void before_write(std::uintptr_t address, std::size_t bytes) = 0;
};

// Code whose accesses are recorded by their place: a byte for each address, 1 once the access after it has been seen.
struct recorded_code {
  std::uintptr_t start = 0;
  std::size_t bytes = 0;
  std::uint8_t* seen = nullptr;
};

class machine {
 public:
  // A recovery, or an operation, that takes more accesses waits for an event that never happens.
  static constexpr std::uint64_t patience = 50'000'000;
  // The assembler wrapper writes two calls for a locked instruction, one behind the other.
  static constexpr std::ptrdiff_t bytes_of_call = 5;

  // ---- for those who run something on it ----

  // The calling thread becomes fiber 0. Until `end`, threads that are made are fibers.
  void begin(const machine_options& options);
  // The same in a copy of the process that a fork made: the threads of before are gone, and the caller is fiber 0.
  void begin_in_copy(const machine_options& options);
  // Until `accesses` more, nothing is a livelock. A run calls it whenever an operation has ended.
  void allow(std::uint64_t accesses) noexcept;
  // All other fibers have ended.
  void end();
  [[nodiscard]] bool running() const noexcept { return running_; }

  // In every run from now on. Where the caches survive, media leave out their flushes; non-temporal stores, which wait
  // in buffers outside of the caches, need their fence everywhere.
  void lose_power_as(persistence_domain domain) noexcept { domain_ = domain; }
  [[nodiscard]] persistence_domain loses_power_as() const noexcept { return domain_; }
  [[nodiscard]] bool caches_survive() const noexcept { return media::keeps_caches(domain_); }
  [[nodiscard]] const persist_counts& persists() const noexcept { return persists_; }

  // The memory whose stores are logged; null: none.
  void use(persistent_memory* memory) noexcept;
  [[nodiscard]] persistent_memory* memory() const noexcept { return memory_; }

  // The drives that instrumented code finds by their place here; they outlive their use.
  void use_drives(std::span<persistent_drive* const> drives) noexcept { drives_ = drives; }
  [[nodiscard]] std::span<persistent_drive* const> drives() const noexcept { return drives_; }

  // Until the end of the run; null: none. For runs without crashes and store buffers.
  void watch_durability(durability_watch* watch) noexcept { durability_ = watch; }

  // Called with a description when the machine detects an error (deadlock, freed memory, ...); must not return.
  using violation_handler = void (*)(const std::string&);
  violation_handler on_violation = nullptr;
  // Adds the positions of all threads.
  void violated(std::string what);

  // From now on; null: no more. It may store to the bytes that are about to be read.
  void tell(access_watcher* watcher) noexcept { watcher_ = watcher; }

  // Runs `work` unwatched.
  template <class Work>
  decltype(auto) quietly(Work&& work) {
    const quiet_section section(*this);
    return work();
  }

  // Runs `work` on another memory and other drives, observed, in the middle of a run: no other fiber runs during it,
  // and flushes of the current fiber to its own memory are kept.
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

  // From now on, in every run. Returns the code before.
  recorded_code record(const recorded_code& code) noexcept { return std::exchange(code_, code); }
  // Places of recorded code that were seen for the first time, so far.
  [[nodiscard]] std::uint64_t new_places() const noexcept { return new_places_; }

  [[nodiscard]] std::uint64_t accesses() const noexcept { return accesses_; }
  // Grows with every access, those to the fiber's own stack included.
  [[nodiscard]] std::uint64_t steps() const noexcept { return accesses_ + accesses_to_stack_; }
  [[nodiscard]] fiber* current() const noexcept { return current_; }
  // There from the first `begin` on.
  [[nodiscard]] heap* dram() noexcept { return dram_; }
  // The limit of the media in DRAM that use it; no limit when a run begins.
  [[nodiscard]] space_limit& limit_of_dram() noexcept { return limit_of_dram_; }
  // For `operator new` of simulated code.
  [[nodiscard]] space_limit& limit_of_heap() noexcept { return limit_of_heap_; }
  [[nodiscard]] timing* cost() const noexcept { return options_.cost; }
  [[nodiscard]] simulator::timed_hosts* timed_hosts() const noexcept { return options_.timed_hosts; }
  // Whether a block that the code at `caller` allocates now lies in the machine's heap.
  [[nodiscard]] bool owns_blocks_of(const void* caller) const noexcept {
    if (!watching_ || !on_a_fiber()) return false;
    return !options_.heap_of_libraries || current_->timed ||
           std::any_of(libraries_.begin(), libraries_.end(), [=](const code_range& c) { return c.contains(caller); });
  }
  [[nodiscard]] bool heap_of_libraries() const noexcept { return options_.heap_of_libraries; }
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

  // ---- hosts (machine/host_events.cpp) ----

  // The current fiber, and those that it makes from now on, run on this host. REQUIRES: the run has so many.
  void move_to_host(unsigned host);
  // The current fiber was the last that works on its host, which may die now.
  void host_ends();
  [[nodiscard]] unsigned host() const noexcept {
    if (hosts_ != nullptr) return current_->host;
    return options_.timed_hosts == nullptr ? 0 : options_.timed_hosts->host_of(current_->number);
  }
  [[nodiscard]] unsigned count_of_hosts() const noexcept {
    if (hosts_ != nullptr) return hosts_->count();
    return options_.timed_hosts == nullptr ? 1 : options_.timed_hosts->count;
  }
  // The line is the same for all of them.
  [[nodiscard]] bool is_coherent(std::uintptr_t address) const noexcept {
    if (hosts_ != nullptr) return hosts_->is_coherent(address);
    return options_.timed_hosts == nullptr || options_.timed_hosts->is_coherent(address);
  }
  // A part of the memory is coherent.
  [[nodiscard]] bool has_coherent_part() const noexcept {
    if (hosts_ != nullptr) return hosts_->is_divided();
    return options_.timed_hosts != nullptr && options_.timed_hosts->coherence == coherence::partial;
  }
  // As the current host knows it. With one host: true.
  [[nodiscard]] bool seems_alive(unsigned host) noexcept { return hosts_ == nullptr || hosts_->seems_alive(host); }
  // Null: the run has one host.
  [[nodiscard]] const simulator::hosts* hosts_in_use() const noexcept { return hosts_; }
  // By the device, atomic for all hosts; with one host, as a locked instruction. Returns whether `desired` was stored;
  // `expected` becomes the value that was there.
  bool device_compare_exchange(std::uint64_t* word, std::uint64_t& expected, std::uint64_t desired, const void* caller);
  // Whose a block is that the code at `caller` allocates now.
  [[nodiscard]] block_owner block_owner_at(const void* caller) const noexcept {
    return hosts_ == nullptr ? block_owner{} : block_owner{current_->host + 1, caller};
  }
  // The current host has mapped memory of its own, or unmapped it.
  void has_mapped(void* address, std::size_t bytes);
  void has_unmapped(void* address, std::size_t bytes);
  // `object` is for the threads of one kernel: with several hosts it must not lie in the memory that they share.
  void needs_one_kernel(const void* object, std::string_view what, const void* caller) {
    if (hosts_ != nullptr && watching_) refuse_in_shared_memory(object, what, caller);
  }
  // A locked compare-exchange has failed: it has written the value that was there.
  void exchange_failed(const void* address, std::size_t bytes, const void* caller) {
    if (hosts_ != nullptr) stored_atomically(address, bytes, caller);
  }
  // In picoseconds. If accesses take no time, each read of the clock does, and the current time is the latest that any
  // thread has read.
  std::uint64_t read_clock() noexcept;
  // The caller is a fiber of this machine, and not a kernel thread that lends or returns.
  [[nodiscard]] bool on_a_fiber() const noexcept {
    return running_ && reinterpret_cast<std::uint64_t>(__builtin_thread_pointer()) == current_->thread_pointer;
  }
  [[nodiscard]] bool watching() const noexcept { return watching_; }

  // ---- events of instrumented code (machine/hooks.cpp) ----

  // Called before the access. A store of an atomic operation with release order, or a weaker one, is done after it.
  void access(const void* address, std::size_t bytes, access_kind kind, const void* caller) {
    if (!watching_) return;
    saw(reinterpret_cast<std::uintptr_t>(address), bytes, kind, caller);
  }
  // The atomic operation on these bytes has been done.
  void stored_atomically(const void* address, std::size_t bytes, const void* caller) {
    if (!watching_ || memory_ == nullptr) return;
    if (buffering_ && !current_->stores.empty()) return;  // it is the newest of those
    const auto a = reinterpret_cast<std::uintptr_t>(address);
    if (a - memory_start_ < memory_bytes_) log_store(a, bytes, caller);
  }
  // g++ reports the copy of a structure as a write, then a read, and then copies: the read that follows a write of the
  // same size must not count as the end of the write.
  void plain_read(const void* address, std::size_t bytes, const void* caller) {
    if (!watching_) return;
    if (pending_count_ != 0 && copy_may_be_under_way(bytes)) return tell_of_copied(address, bytes);
    if (buffering_ && last_was_write_ && current_->stores.newest_is_not_done(bytes)) {
      if (hosts_ != nullptr) check_owner(reinterpret_cast<std::uintptr_t>(address), caller);
      return;
    }
    saw(reinterpret_cast<std::uintptr_t>(address), bytes, access_kind::read, caller);
  }
  void read_range(const void* address, std::size_t bytes, const void* caller) {
    if (!watching_) return;
    if (last_was_written_range_) {
      last_was_written_range_ = false;
      return tell_of_copied(address, bytes);
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
  // `all`: mfence, after which no store of the thread waits; sfence does not wait for them.
  void fence(const void* caller, bool all = false);
  void store_around(void* address, std::size_t bytes, const void* caller);
  void prefetch(const void* address, std::size_t bytes);
  void locked_instruction();
  // As `access` by a write, of an instruction that may be locked: then it was announced by an mfence directly before.
  void announced_store(const void* address, std::size_t bytes, const void* caller);
  // Stores of code that is not instrumented, to this line.
  void stored_unseen(const void* line, const void* caller);
  // This block of DRAM ends to be one.
  void about_to_free(const void* block);
  // `m` may be another memory than the one in use.
  void publish(persistent_memory& m, std::span<const pmlab_change> changes, const void* caller);
  // A call to a drive: a moment at which another fiber may go on. Its time is the drive's.
  void drive_called(const void* caller);
  // Stores announced by plain hooks have happened by now, and other threads see them.
  void settle() {
    if (pending_count_ != 0) log_pending();
    if (buffering_) drain_current();
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
    bool buffering_ = false;
    space_limit limit_of_heap_;
    persistent_memory* memory_;
    simulator::hosts* hosts_;
    std::span<persistent_drive* const> drives_;
    flush_list flushes_;
    const void* last_caller_;
    std::uint64_t began_;  // accesses before it
    std::uint64_t left_;   // rest of the quantum
  };

  struct pending_store {
    std::uintptr_t address;
    std::size_t bytes;
    const void* caller;
    bool around;  // non-temporal
  };

  void note(const void* caller) noexcept {
    const std::uintptr_t at = reinterpret_cast<std::uintptr_t>(caller) - code_.start;
    if (at >= code_.bytes || code_.seen[at] != 0) return;
    code_.seen[at] = 1;
    ++new_places_;
  }
  void saw(std::uintptr_t address, std::size_t bytes, access_kind kind, const void* caller);
  void tell_watcher(std::uintptr_t address, std::size_t bytes, access_kind kind);
  void tell_of_copied(const void* address, std::size_t bytes) {
    if (hosts_ != nullptr) check_owner(reinterpret_cast<std::uintptr_t>(address), current_->last_caller);
    if (watcher_ != nullptr) tell_watcher(reinterpret_cast<std::uintptr_t>(address), bytes, access_kind::read);
  }
  void charge(std::uintptr_t address, std::size_t bytes, access_kind kind);
  template <class Cost>
  void take_time(Cost&& cost);
  template <class Cost>
  void moment(const void* caller, Cost&& cost);
  void charge_publication(std::span<const pmlab_change> changes);
  void log_store(std::uintptr_t address, std::size_t bytes, const void* caller);
  void log_pending();
  // To the memory, or the caches of the current host. REQUIRES: the bytes are there, and are persistent.
  void put_store(std::uintptr_t address, std::size_t bytes, const void* caller);
  void put_store_around(fiber& by, std::uintptr_t address, std::size_t bytes, const void* caller);
  void put_flush(fiber& by, std::uintptr_t address);
  // `orders_loads`: as an mfence or a locked instruction does.
  void put_fence(fiber& by, bool orders_loads);
  void put_publication(persistent_memory& m, std::span<const pmlab_change> changes, const void* caller,
                       std::string& wrong);
  void meet_other_hosts(std::uintptr_t address, std::size_t bytes);
  // The current host is about to do this to the memory, if it does not die before.
  void does_to_hosts(shared_event what, const void* caller);
  void let_host_die(const void* caller);
  // Memory that is not shared is the current host's, or no host's.
  void check_owner(std::uintptr_t address, const void* caller);
  void check_owner_of_page(std::uintptr_t address, const void* caller);
  [[noreturn]] void uses_dram_of(unsigned host, const std::string& what, const void* caller);
  void refuse_in_shared_memory(const void* object, std::string_view what, const void* caller);
  void save_visible(std::uintptr_t address, std::size_t bytes, bool published);
  void begin_store_order(std::uint64_t seed) noexcept;
  void buffer_store(store_buffer::kind what, std::uintptr_t address, std::size_t bytes, const void* caller);
  void add_to_buffer(store_buffer::kind what, std::uintptr_t address, std::size_t bytes, const void* caller);
  void leave_buffer(fiber& f);
  void drain_current(std::size_t count = store_buffer::room);
  void let_stores_leave(turn why);
  void time_is_up();
  [[noreturn]] void never_ends();
  [[nodiscard]] bool touches_new_lines();
  void extend_limit(std::uint64_t accesses) noexcept;
  [[nodiscard]] bool copy_may_be_under_way(std::size_t bytes) const noexcept;
  void check_freed(std::uintptr_t address, const void* caller);
  void take_turn(turn why);
  void before_change() {
    if (options_.who != nullptr && fibers_.size() > 1 && options_.who->suspends_now(current_->gives_up))
      take_turn(turn::suspended);
  }
  void switch_to(fiber* next);
  void came_here(boost::context::fiber&& from) noexcept;
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
  bool buffers_ = false;          // in this run threads have store buffers
  bool buffering_ = false;        // a store of now goes into one
  std::uintptr_t stack_low_ = 0;  // end of the current fiber's stack, its own business
  std::size_t stack_bytes_ = 0;
  std::uint64_t accesses_ = 0;
  access_watcher* watcher_ = nullptr;
  persistence_domain domain_ = persistence_domain::adr;
  persist_counts persists_;
  recorded_code code_;
  // At the limit: which lines the next accesses touch, and how many of them those just before did not.
  enum class probe : std::uint8_t { off, first_window, second_window };
  probe probe_ = probe::off;
  unsigned extensions_ = 0;  // extensions of the limit
  std::uint64_t new_lines_ = 0;
  std::vector<bool> probed_;  // by a line's hash
  std::uint64_t new_places_ = 0;
  std::uint64_t accesses_to_stack_ = 0;          // since `allow`
  std::uint64_t next_turn_ = ~std::uint64_t{0};  // at this many accesses
  persistent_memory* memory_ = nullptr;
  std::uintptr_t memory_start_ = 0;
  std::size_t memory_bytes_ = 0;
  simulator::hosts* hosts_ = nullptr;  // several; null: there is one
  std::vector<host_memory> owned_;     // memory of hosts that lies in no heap
  std::uintptr_t own_page_ = 0;        // a page that is not another host's, and the host that this was found for
  unsigned own_page_of_ = 0;
  std::span<persistent_drive* const> drives_;
  std::uint32_t pending_count_ = 0;
  std::array<pending_store, 8> pending_{};
  fiber* current_ = nullptr;
  fiber* came_from_ = nullptr;
  std::uint64_t horizon_ = 0;         // lowest clock of the other runnable fibers
  std::uint64_t first_deadline_ = 0;  // the first of a sleeper, as of the last turn; later sleeps begin with a turn
  machine_options options_;
  store_drainage drainage_;
  durability_watch* durability_ = nullptr;
  const void* last_fence_ = nullptr;  // the caller of the event before this one, if that was mfence
  std::vector<std::unique_ptr<fiber>> fibers_;
  std::vector<fiber*> runnable_;
  unsigned next_number_ = 0;
  heap* dram_ = nullptr;
  std::vector<code_range> libraries_;  // the code of simulated libraries and of the loader
  space_limit limit_of_dram_;
  space_limit limit_of_heap_;
};

namespace detail {
extern constinit machine instance;
}

// The one machine of this process.
[[nodiscard]] inline machine& the_machine() noexcept { return detail::instance; }

}  // namespace pmlab::simulator
