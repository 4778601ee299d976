// A medium with the latency of a device: real threads on the machine's own memory, slowed down.
//
// Use it if no such device is available. The bytes live in the inner medium; the device model (media/device/model.hpp)
// computes how long each access of the index would take, and the thread waits for the difference.
// docs/device-profiles.md describes the meaning of the figures and its limits.
//
// How an annotated read is charged. The model returns when the lines that its CPU cache does not hold would arrive, all
// requested at once. The thread also reads the real lines and reads the clock when they have arrived. If the model's
// time is later, the difference is added to the thread's debt. The real latency is therefore subtracted access by
// access, and the model needs no assumption about the machine's own memory. A thread's virtual time is the clock plus
// its debt; the thread waits its debt out when it exceeds a microsecond, at fences, and at the end of an operation. A
// machine that is slower than the device accumulates negative debt (at most one microsecond is carried on): the thread
// runs late, and `late_ns` counts the time that could not be recovered. bench/devices/calibration.hpp finds a scale at
// which that does not happen.
//
// Charged: annotate_read, prefetch, flush (the store before it only, if the profile's platform saves its caches), copy,
// fence. If a profile's reads cost as much as DRAM's (dram, classic), reads are not charged. Not charged: the
// allocator's work inside a publication beyond the inner medium's own time, and accesses that an index does not
// annotate.
#pragma once

#include <pmlab/base/thread_blocks.hpp>
#include <pmlab/media/clock.hpp>
#include <pmlab/media/counts.hpp>
#include <pmlab/media/device/model.hpp>
#include <pmlab/media/device/profile.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/persistence_domain.hpp>
#include <pmlab/media/wrapper.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <sched.h>

namespace pmlab::media {

// Thread safety: as the inner medium. Threads meet in the model, as they would in the device.
template <class Inner>
class emulated : public wrapper<Inner> {
 public:
  static constexpr optional_parts parts{
      .operations = true, .prefetches = true, .pointer_bound = Inner::parts.pointer_bound};

  // `profile` has passed check_profile; `arguments` build the inner medium.
  template <class... Arguments>
  explicit emulated(device_profile profile, Arguments&&... arguments)
      : wrapper<Inner>(std::in_place, std::forward<Arguments>(arguments)...),
        profile_(std::move(profile)),
        model_(profile_),
        charges_reads_(reads_slower_than_dram(profile_)),
        leaves_flushes_out_(keeps_caches(profile_.persistence)),
        clock_(fast_clock::instance()) {
    measure_unseen();
  }

  class publication : public Inner::publication {
   public:
    explicit publication(emulated& medium) noexcept(noexcept(typename Inner::publication(medium.inner())))
        : Inner::publication(medium.inner()) {}
  };

  // "emulated:aep". `inner().name()` names the storage.
  [[nodiscard]] std::string name() const { return "emulated:" + profile_.name; }

  [[nodiscard]] const device_profile& profile() const noexcept { return profile_; }

  // The profile's. The inner medium decides for itself whether its bytes are really flushed.
  [[nodiscard]] persistence_domain persistence() const noexcept { return profile_.persistence; }

  // Empty, or why this run's figures are not to be trusted: more threads than cores.
  [[nodiscard]] std::string warning() const {
    const std::size_t threads = blocks_.most_threads();
    const std::size_t cores = available_cores();
    if (threads <= cores) return {};
    return std::to_string(threads) + " threads used " + name() + " on " + std::to_string(cores) +
           (cores == 1 ? " core" : " cores") +
           ": threads waited for a core while the device's clock ran on, so latencies are too long and devices look "
           "less shared than they would be; use at most as many threads as cores";
  }

  [[nodiscard]] emulation_counts emulation() const {
    emulation_counts sum;
    blocks_.for_each([&sum](const thread_block& b) {
      sum.charged += b.charged.load(std::memory_order_relaxed);
      sum.waited_ns += b.waited.load(std::memory_order_relaxed) / 1000;
      sum.late_ns += b.late.load(std::memory_order_relaxed) / 1000;
    });
    return sum;
  }

  [[nodiscard]] device_model::media_work device_work() const noexcept { return model_.work(); }

  // Begin and end of an operation of this thread: waits out its debt, so that a clock read outside includes it.
  void begin_operation() {
    settle(block());
    this->inner_begin_operation();
  }
  void end_operation() {
    settle(block());
    this->inner_end_operation();
  }

  // The lines of one call are read in parallel; the next call is assumed to depend on this one.
  void annotate_read(const void* start, std::size_t bytes) noexcept {
    this->inner().annotate_read(start, bytes);
    if (charges_reads_) charge_read(model_, block(), start, bytes);
  }

  // Independent reads begin now: the caller continues, and the next annotated read of these bytes waits only for the
  // rest. The caller prefetches the real bytes itself.
  void prefetch(const void* start, std::size_t bytes) noexcept {
    this->inner_prefetch(start, bytes);
    if (!charges_reads_) return;
    thread_block& mine = block();
    charge charged(*this, mine);
    for_each_line(start, bytes, [&](std::uintptr_t line) {
      if (!model_.cached(mine.state, line, mine.known_time))
        charged.until(model_.prefetch(mine.state, line, charged.begin()));
    });
    charged.settle();
  }

  // Flushing implies that the lines were stored to: the model first fetches those that its CPU cache does not hold.
  // Where the platform saves the caches the lines stay there, and the model writes them back when they are evicted.
  void flush(const void* start, std::size_t bytes) noexcept {
    if (leaves_flushes_out_) {
      this->inner().flush(start, bytes);
      charge_store(model_, block(), start, bytes);
      return;
    }
    charge_flush(model_, block(), start, bytes, [&] { this->inner().flush(start, bytes); });
  }

  void copy(void* target, const void* source, std::size_t bytes) noexcept {
    thread_block& mine = block();
    begin_write(mine);
    this->inner().copy(target, source, bytes);
    for_each_line(target, bytes, [&](std::uintptr_t line) {
      mine.writes_until = model_.write_around(mine.state, line, mine.writes_until);
    });
  }

  // Waits for the flushes and copies, from the time of each.
  void fence() noexcept {
    this->inner().fence();
    charge_fence(model_, block());
  }

 private:
  // Debt that is waited for at once, and the most lateness that is carried on.
  static constexpr std::int64_t threshold = 1'000'000;
  static constexpr std::uint64_t sample_period = 16;  // one in so many annotated reads is measured

  struct alignas(2 * cache_line_bytes) thread_block {
    explicit thread_block(const device_profile& profile) : state(profile) {}

    // One thread adds, any thread reads.
    static void add(std::atomic<std::uint64_t>& counter, std::uint64_t amount) noexcept {
      counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }

    // `lines` were searched for, and found, in this time. The time of one that lost its core meanwhile is left out.
    void sample_search(picoseconds taken, std::int64_t lines) noexcept {
      constexpr std::int64_t most = 100'000;
      const std::int64_t one = lines == 0 ? most : static_cast<std::int64_t>(taken) / lines;
      if (one < most) search_of_line += (one - search_of_line) / 16;
    }

    device_model::thread_state state;
    std::int64_t debt = 0;            // picoseconds that this thread is ahead of the clock
    picoseconds known_time = 0;       // the thread's time is this or later
    picoseconds writes_until = 0;     // the thread has got so far with flushing and copying
    picoseconds seen = 0;             // clock time between begin and end of charges
    picoseconds write_began = 0;      // clock time of the first flush or copy since the last fence
    std::uint64_t reads = 0;          // annotated ones
    std::int64_t search_of_line = 0;  // picoseconds to find a line in the model's CPU cache: a moving average
    bool unfenced = false;
    std::atomic<std::uint64_t> charged{0};
    std::atomic<std::uint64_t> waited{0};
    std::atomic<std::uint64_t> late{0};
  };

  // One call of the index: when it began, and until when the device would take. Reads the clock only when needed.
  class charge {
   public:
    charge(emulated& medium, thread_block& thread) noexcept : medium_(medium), thread_(thread) {}

    [[nodiscard]] picoseconds begin() noexcept {
      if (begin_ == 0) {
        clock_begin_ = medium_.clock_.now();
        begin_ = end_ = std::max(time_of(thread_, clock_begin_), thread_.writes_until);
      }
      return begin_;
    }
    void until(picoseconds end) noexcept {
      end_ = std::max(end_, end);
      charged_ = true;
    }

    [[nodiscard]] bool any() const noexcept { return charged_; }

    void settle() noexcept {
      if (charged_) settle_at(medium_.clock_.now());
    }
    void settle_after_loads() noexcept {
      if (charged_) settle_at(medium_.clock_.now_after_loads());
    }

   private:
    void settle_at(picoseconds now) noexcept {
      thread_.seen += now - clock_begin_;
      medium_.owe(thread_, end_, now, medium_.unseen_visit_);
    }

    emulated& medium_;
    thread_block& thread_;
    picoseconds clock_begin_ = 0;
    picoseconds begin_ = 0;
    picoseconds end_ = 0;
    bool charged_ = false;
  };

  picoseconds begin_write(thread_block& mine) noexcept {
    const picoseconds now = clock_.now_after_loads();
    if (!mine.unfenced) mine.write_began = now;
    mine.unfenced = true;
    mine.writes_until = std::max(mine.writes_until, time_of(mine, now));
    return mine.writes_until;
  }

  // The search for lines that the model's CPU cache holds costs the thread time, which is taken from its debt.
  void charge_read(device_model& model, thread_block& mine, const void* start, std::size_t bytes) noexcept {
    charge charged(*this, mine);
    const bool is_sampled = mine.reads++ % sample_period == 0;
    const picoseconds from = is_sampled ? clock_.now() : 0;
    std::int64_t found = 0;
    if (bytes > cache_line_bytes)
      for_each_line(start, bytes, [&](std::uintptr_t line) { model.prepare(mine.state, line); });
    for_each_line(start, bytes, [&](std::uintptr_t line) {
      if (model.cached(mine.state, line, mine.known_time)) {
        ++found;
        if (!charged.any()) mine.debt -= mine.search_of_line;
        return;
      }
      __builtin_prefetch(within(start, line));
      charged.until(model.read(mine.state, line, charged.begin()));
    });
    if (is_sampled && !charged.any()) mine.sample_search(clock_.now() - from - between_reads_of_clock_, found);
    if (!charged.any()) return;
    for_each_line(start, bytes, [start](std::uintptr_t line) { touch(within(start, line)); });
    charged.settle_after_loads();
  }

  void charge_store(device_model& model, thread_block& mine, const void* start, std::size_t bytes) noexcept {
    charge charged(*this, mine);
    for_each_line(start, bytes, [&](std::uintptr_t line) {
      if (model.cached(mine.state, line, mine.known_time))
        static_cast<void>(model.store(mine.state, line, mine.known_time));  // it is dirty from now on
      else
        charged.until(model.store(mine.state, line, charged.begin()));
    });
    charged.settle();
  }

  // `really_flush`: the machine's own operation.
  template <class Flush>
  void charge_flush(device_model& model, thread_block& mine, const void* start, std::size_t bytes,
                    Flush&& really_flush) noexcept {
    const picoseconds now = begin_write(mine);
    really_flush();
    for_each_line(start, bytes, [&](std::uintptr_t line) {
      const picoseconds stored = charges_reads_ ? model.store(mine.state, line, mine.writes_until) : now;
      mine.writes_until = model.write_back(mine.state, line, std::max(stored, mine.writes_until));
    });
  }

  void charge_fence(device_model& model, thread_block& mine) noexcept {
    if (!mine.unfenced) return;
    mine.unfenced = false;
    const picoseconds end = model.fence(mine.state, mine.writes_until);
    const picoseconds now = clock_.now();
    mine.seen += now - mine.write_began;
    // The time between flush and fence is not lateness of this machine.
    owe(mine, std::max(end, time_of(mine, now)), now, unseen_write_);
    settle(mine);
  }

  void measure_unseen() {
    for (int i = 0; i < 100; ++i) {
      const picoseconds from = clock_.now();
      between_reads_of_clock_ = std::min(between_reads_of_clock_, clock_.now() - from);
    }
    unseen_visit_ = unseen_by(
        [this](device_model& model, thread_block& thread, std::byte* line) { charge_read(model, thread, line, 1); });
    unseen_write_ = unseen_by([this](device_model& model, thread_block& thread, std::byte* line) {
      charge_flush(model, thread, line, 1, [] {});
      charge_fence(model, thread);
    });
  }

  // Cost of one charge outside its two clock reads, which do not include it: measured on a model and a thread that are
  // otherwise unused, median of several runs.
  template <class Charge>
  [[nodiscard]] std::int64_t unseen_by(Charge&& charge_line) {
    constexpr std::size_t runs = 15;
    constexpr std::size_t charges = 256;
    device_model model(profile_);
    thread_block thread(profile_);
    // Each is charged once: never in the model's cache.
    std::vector<std::byte> lines(runs * charges * cache_line_bytes);
    std::byte* line = lines.data();
    std::array<std::int64_t, runs> unseen{};
    for (std::int64_t& one : unseen) {
      thread.seen = 0;
      thread.waited.store(0, std::memory_order_relaxed);
      const picoseconds from = clock_.now();
      for (std::size_t i = 0; i < charges; ++i, line += cache_line_bytes) charge_line(model, thread, line);
      const picoseconds all = clock_.now() - from;
      const picoseconds waited = thread.waited.load(std::memory_order_relaxed);
      one = (static_cast<std::int64_t>(all) - static_cast<std::int64_t>(thread.seen + waited)) /
            static_cast<std::int64_t>(charges);
    }
    std::nth_element(unseen.begin(), unseen.begin() + runs / 2, unseen.end());
    return unseen[runs / 2];
  }

  [[nodiscard]] thread_block& block() {
    return blocks_.local([this](std::size_t) { return std::make_unique<thread_block>(profile_); });
  }

  // The thread's time when the clock reads `now`. The epoch lies before the clock's zero, so a late thread cannot reach
  // it.
  [[nodiscard]] static picoseconds time_of(const thread_block& thread, picoseconds now) noexcept {
    return static_cast<picoseconds>(static_cast<std::int64_t>(now) + 2 * threshold + thread.debt);
  }

  // The thread would be at `end`, and the clock reads `now`; `unseen` picoseconds will have passed before the next
  // charge.
  void owe(thread_block& thread, picoseconds end, picoseconds now, std::int64_t unseen) noexcept {
    const std::int64_t debt = static_cast<std::int64_t>(end) - 2 * threshold - static_cast<std::int64_t>(now) - unseen;
    thread_block::add(thread.charged, 1);
    if (debt < -threshold) thread_block::add(thread.late, static_cast<std::uint64_t>(-threshold - debt));
    thread.debt = std::max(debt, -threshold);
    thread.known_time = end;
    if (thread.debt > threshold) settle(thread, now);
  }

  void settle(thread_block& thread) noexcept {
    if (thread.debt > 0) settle(thread, clock_.now());
  }

  // Waits for the debt that the thread had at time `from`.
  void settle(thread_block& thread, picoseconds from) noexcept {
    const picoseconds until = from + static_cast<picoseconds>(thread.debt);
    picoseconds now = from;
    for (; now < until; now = clock_.now()) __builtin_ia32_pause();
    thread_block::add(thread.waited, now - from);
    thread.debt = std::max(static_cast<std::int64_t>(until) - static_cast<std::int64_t>(now), -threshold);
  }

  // A device that reads like DRAM needs no emulation of reads, whose own cost would only distort them.
  [[nodiscard]] static bool reads_slower_than_dram(const device_profile& profile) noexcept {
    constexpr double rounding = 1.001;
    return profile.read_latency_ns / profile.scale > profile.dram_read_latency_ns * rounding;
  }

  // The first byte of `line` that is not before `start`.
  [[nodiscard]] static const unsigned char* within(const void* start, std::uintptr_t line) noexcept {
    const auto first = reinterpret_cast<std::uintptr_t>(start);
    return static_cast<const unsigned char*>(start) + (line > first ? line - first : 0);
  }

  // Reads a byte that the caller is about to read. Other threads may write it concurrently, so the read is atomic.
  static void touch(const unsigned char* address) noexcept {
    const auto byte = __atomic_load_n(address, __ATOMIC_RELAXED);
    asm volatile("" ::"r"(byte));
  }

  // Cores that this process may run on.
  [[nodiscard]] static std::size_t available_cores() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    return sched_getaffinity(0, sizeof set, &set) == 0 ? static_cast<std::size_t>(CPU_COUNT(&set)) : 1;
  }

  device_profile profile_;
  device_model model_;
  bool charges_reads_;
  bool leaves_flushes_out_;
  const fast_clock& clock_;
  picoseconds between_reads_of_clock_ = ~picoseconds{0};  // the least time between two of them
  // Picoseconds of a charge that it does not include itself.
  std::int64_t unseen_visit_ = 0;
  std::int64_t unseen_write_ = 0;  // a flush or copy, and its fence
  thread_blocks<thread_block> blocks_;
};

}  // namespace pmlab::media
