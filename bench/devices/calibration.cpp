// Measuring the machine's memory, and the emulated medium against the model.
#include "bench/devices/calibration.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/cache_flush.hpp>
#include <pmlab/media/clock.hpp>
#include <pmlab/media/emulated.hpp>
#include "bench/devices/profile_file.hpp"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace pmlab::media {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;

// Zeroed memory, in huge pages or in small ones.
class memory_region {
 public:
  memory_region(std::size_t bytes, bool huge_pages) : mapped_bytes_(bytes + huge_page), bytes_(bytes) {
    mapped_ = mmap(nullptr, mapped_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped_ == MAP_FAILED)
      throw error("no memory for the calibration: " + std::to_string(bytes >> 20) + " MB", "free some memory");
    const std::uintptr_t into_page = reinterpret_cast<std::uintptr_t>(mapped_) % huge_page;
    start_ = static_cast<unsigned char*>(mapped_) + (huge_page - into_page);
    // Advice: a kernel without huge pages measures small ones, and the two figures agree.
    static_cast<void>(madvise(start_, bytes_, huge_pages ? MADV_HUGEPAGE : MADV_NOHUGEPAGE));
    std::memset(start_, 0, bytes_);
  }
  memory_region(const memory_region&) = delete;
  memory_region& operator=(const memory_region&) = delete;
  ~memory_region() { munmap(mapped_, mapped_bytes_); }

  [[nodiscard]] unsigned char* start() const noexcept { return start_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  void* mapped_ = nullptr;
  std::size_t mapped_bytes_;
  unsigned char* start_ = nullptr;
  std::size_t bytes_;
};

// Enough that the caches hold little of it.
std::size_t region_bytes() {
  constexpr std::size_t least = std::size_t{128} << 20;
  constexpr std::size_t most = std::size_t{512} << 20;
  const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
  const std::size_t wanted = last_level > 0 ? 4 * static_cast<std::size_t>(last_level) : most;
  return std::clamp(wanted, least, most) & ~(huge_page - 1);
}

// Addresses of blocks in random order, each computed from the value read at the previous one: the CPU cannot run ahead.
class random_walk {
 public:
  random_walk(const memory_region& region, std::size_t block_bytes)
      : start_(region.start()), blocks_(region.bytes() / block_bytes), block_bytes_(block_bytes) {}

  // `read` is 0, which the CPU does not know before the load has completed.
  [[nodiscard]] unsigned char* next(std::uint64_t read) noexcept {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U + read;
    return start_ + ((state_ >> 32) * blocks_ >> 32) * block_bytes_;
  }

 private:
  unsigned char* start_;
  std::uint64_t blocks_;
  std::size_t block_bytes_;
  std::uint64_t state_ = 42;
};

std::uint64_t load(const unsigned char* address) noexcept {
  return __atomic_load_n(reinterpret_cast<const std::uint64_t*>(address), __ATOMIC_RELAXED);
}

double elapsed_ns(std::uint64_t from, std::uint64_t to) { return static_cast<double>(to - from) / 1000; }

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// Median over short batches of the mean time of one call. A batch is shorter than a scheduler time slice, so that other
// work on the machine spoils some batches and leaves the others intact.
constexpr int calls_per_batch = 200;

template <class Call>
double median_ns(int calls, Call&& call) {
  const fast_clock& clock = fast_clock::instance();
  std::vector<double> means;
  for (int done = 0; done < calls; done += calls_per_batch) {
    const std::uint64_t from = clock.now();
    for (int i = 0; i < calls_per_batch; ++i) call();
    means.push_back(elapsed_ns(from, clock.now_after_loads()) / calls_per_batch);
  }
  return median(std::move(means));
}

double read_ns(const memory_region& region) {
  random_walk walk(region, cache_line_bytes);
  std::uint64_t read = 0;
  return median_ns(90000, [&] { read = load(walk.next(read)); });
}

void store_line(unsigned char* line) noexcept {
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(line), 0, __ATOMIC_RELAXED);
}

host_memory measure(const memory_region& huge) {
  host_memory host;
  const fast_clock& clock = fast_clock::instance();
  host.timer_ns = median_ns(90000, [&] { static_cast<void>(clock.now()); });
  host.read_ns = read_ns(huge);
  {
    const memory_region small(huge.bytes() / 2, false);
    host.read_small_pages_ns = read_ns(small);
  }
  const flush_instruction flush = best_flush_instruction();
  host.flush_fence_ns = median_ns(45000, [&] {
    store_line(huge.start());
    flush_lines(flush, huge.start(), cache_line_bytes);
    store_fence();
  });
  return host;
}

// The least of a medium that the emulation needs, over memory that the caller has. Flushes are either nothing, as on a
// DRAM medium, or real ones, as on a pool.
template <bool RealFlushes>
class raw_memory {
 public:
  static constexpr bool durable = false;
  static constexpr optional_parts parts{};

  [[nodiscard]] std::string name() const { return "memory"; }
  void flush(const void* start, std::size_t bytes) noexcept {
    if constexpr (RealFlushes) flush_lines(instruction_, start, bytes);
  }
  void fence() noexcept {
    if constexpr (RealFlushes) store_fence();
  }
  void copy(void* target, const void* source, std::size_t bytes) noexcept { std::memcpy(target, source, bytes); }
  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {}

 private:
  flush_instruction instruction_ = best_flush_instruction();
};

// A medium that emulates nothing: the machine's own cost.
template <class Inner>
class bare : public Inner {
 public:
  void end_operation() noexcept {}
};

// The model on a virtual clock, with the operations of a medium.
class virtual_medium {
 public:
  explicit virtual_medium(const device_profile& profile) : model_(profile), thread_(profile) {}

  void annotate_read(const void* start, std::size_t bytes) noexcept {
    picoseconds end = now_;
    for_each_line(start, bytes, [&](std::uintptr_t line) { end = std::max(end, model_.read(thread_, line, now_)); });
    now_ = end;
  }
  void flush(const void* start, std::size_t bytes) noexcept {
    for_each_line(start, bytes, [&](std::uintptr_t line) {
      now_ = model_.write_back(thread_, line, model_.store(thread_, line, now_));
    });
  }
  void copy(void* target, const void* /*source*/, std::size_t bytes) noexcept {
    for_each_line(target, bytes, [&](std::uintptr_t line) { now_ = model_.write_around(thread_, line, now_); });
  }
  void fence() noexcept { now_ = model_.fence(thread_, now_); }
  void end_operation() noexcept {}
  [[nodiscard]] picoseconds now() const noexcept { return now_; }

 private:
  device_model model_;
  device_model::thread_state thread_;
  picoseconds now_ = 0;
};

// One test: the same operations on either medium. `now()` is that medium's clock; returns nanoseconds per operation.
template <class Medium, class Now>
struct test_operations {
  Medium& medium;
  const memory_region& region;
  Now now;

  // Dependent random reads of `block` bytes.
  [[nodiscard]] double reads(std::size_t block, int count) {
    random_walk walk(region, block);
    std::uint64_t read = 0;
    return median_of_batches(count, [&](int calls) {
      const std::uint64_t from = now();
      for (int i = 0; i < calls; ++i) {
        const unsigned char* const at = walk.next(read);
        medium.annotate_read(at, block);
        read = load(at);
      }
      medium.end_operation();
      return elapsed_ns(from, now()) / calls;
    });
  }

  // Store, flush and fence of a line that was just read: their additional time.
  [[nodiscard]] double flushes(int count) {
    random_walk walk(region, cache_line_bytes);
    const double all = median_of_batches(count, [&](int calls) {
      std::uint64_t read = 0;
      const std::uint64_t from = now();
      for (int i = 0; i < calls; ++i) {
        unsigned char* const line = walk.next(read);
        medium.annotate_read(line, cache_line_bytes);
        read = load(line);
        store_line(line);
        medium.flush(line, cache_line_bytes);
        medium.fence();
      }
      return elapsed_ns(from, now()) / calls;
    });
    return all - reads(cache_line_bytes, count);
  }

  // Non-temporal store and fence, one after the other.
  [[nodiscard]] double copies(int count) {
    alignas(cache_line_bytes) static const unsigned char zeros[cache_line_bytes]{};
    random_walk walk(region, cache_line_bytes);
    return median_of_batches(count, [&](int calls) {
      const std::uint64_t from = now();
      for (int i = 0; i < calls; ++i) {
        medium.copy(walk.next(0), zeros, cache_line_bytes);
        medium.fence();
      }
      return elapsed_ns(from, now()) / calls;
    });
  }

 private:
  template <class Batch>
  [[nodiscard]] double median_of_batches(int count, Batch&& batch) {
    std::vector<double> means;
    for (int done = 0; done < count; done += calls_per_batch) means.push_back(batch(calls_per_batch));
    return median(std::move(means));
  }
};

// How often to repeat a test: enough for a median, few enough for two seconds.
int repetitions(const device_profile& profile) {
  return std::clamp(static_cast<int>(90000 / profile.scale), 9000, 90000);
}

template <class Medium, class Now>
test_operations<Medium, Now> tests_on(Medium& medium, const memory_region& region, Now now) {
  return {medium, region, std::move(now)};
}

// Targets from the model on a virtual clock, figures from the emulated medium on the real one.
std::vector<calibration_row> compare(const device_profile& profile, const memory_region& region,
                                     const host_memory& host) {
  const int count = repetitions(profile);
  const fast_clock& clock = fast_clock::instance();
  virtual_medium expected(profile);
  emulated<raw_memory<false>> in_dram(profile);
  emulated<raw_memory<true>> in_pool(profile);
  bare<raw_memory<false>> bare_dram;
  auto target = tests_on(expected, region, [&expected] { return expected.now(); });
  auto reached = tests_on(in_dram, region, [&clock] { return clock.now(); });
  auto flushed = tests_on(in_pool, region, [&clock] { return clock.now(); });
  // Flushes alone would overlap with the next read: their floor is the time of one that is waited for.
  auto floor = tests_on(bare_dram, region, [&clock] { return clock.now_after_loads(); });
  std::vector<calibration_row> rows;
  for (const std::size_t bytes : {cache_line_bytes, xpline_bytes})
    rows.push_back({"dependent random read of " + std::to_string(bytes) + " B", target.reads(bytes, count),
                    reached.reads(bytes, count), floor.reads(bytes, count)});
  const int writes = count / 3;
  rows.push_back({"store + flush + fence", target.flushes(writes), reached.flushes(writes), floor.flushes(writes)});
  rows.push_back(
      {"store + flush + fence, bytes in a pool", rows.back().target_ns, flushed.flushes(writes), host.flush_fence_ns});
  rows.push_back({"non-temporal store + fence", target.copies(writes), reached.copies(writes), floor.copies(writes)});
  return rows;
}

double model_cost_ns(const device_profile& profile, const memory_region& region) {
  virtual_medium medium(profile);
  random_walk walk(region, cache_line_bytes);
  return median_ns(90000, [&] { medium.annotate_read(walk.next(0), cache_line_bytes); });
}

std::string whole(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f", value);
  return text;
}

std::string two_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

void add_notes(calibration& c) {
  if (!fast_clock::instance().uses_tsc())
    c.notes.emplace_back("no invariant time-stamp counter: the clock costs " + whole(c.host.timer_ns) +
                         " ns, so short delays come out too long");
  if (c.profile.scale != 1)
    c.notes.emplace_back("every time of the device is multiplied by " + two_digits(c.profile.scale) +
                         ": this machine reads DRAM in " + whole(c.host.read_ns) +
                         " ns; ratios between media are the device's, absolute times are not");
  constexpr double tolerable_percent = 15;
  for (const calibration_row& row : c.rows) {
    if (!row.within_reach()) {
      c.notes.emplace_back(row.what + ": " + whole(row.reached_ns) + " ns instead of " + whole(row.target_ns) +
                           " ns; floor of this machine: " + whole(row.floor_ns) + " ns; a larger scale helps");
      continue;
    }
    if (row.error_percent() > tolerable_percent)
      c.notes.emplace_back(row.what + ": " + whole(row.reached_ns) + " ns instead of " + whole(row.target_ns) +
                           " ns (" + whole(row.error_percent()) + " % too slow), although this machine takes " +
                           whole(row.floor_ns) + " ns: this is the emulation's own overhead; a larger scale helps");
    if (row.error_percent() < -tolerable_percent)
      c.notes.emplace_back(row.what + ": " + whole(row.reached_ns) + " ns instead of " + whole(row.target_ns) +
                           " ns (" + whole(-row.error_percent()) + " % too fast): do not trust figures of this run");
  }
}

}  // namespace

double automatic_scale(const device_profile& profile, const host_memory& host) {
  return std::max(1.0, host.read_ns / profile.dram_read_latency_ns);
}

calibration calibrate(const device_profile& profile, const calibration_options& options) {
  if (!(options.scale >= 0))
    throw error("scale " + std::to_string(options.scale) + " is negative or no number",
                "give a factor such as 1 or 2.5, or 0 for the automatic one");
  check_profile(profile);
  const memory_region region(region_bytes(), true);
  calibration c;
  c.host = measure(region);
  c.profile = scaled(profile, options.scale > 0 ? options.scale : automatic_scale(profile, c.host));
  c.model_ns = model_cost_ns(c.profile, region);

  // Flushes are tested as such, also of a profile whose media leave them out.
  device_profile flushing = c.profile;
  flushing.persistence = persistence_domain::adr;
  c.rows = compare(flushing, region, c.host);
  add_notes(c);
  return c;
}

}  // namespace pmlab::media
