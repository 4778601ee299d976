// Chooses the lookup mode, by the measured time of lookups.
//
// The cache is divided into shards, each of which has a mode. Some lookups are timed; some of these are made in another
// mode than the shard's, so that all modes are measured. While a shard bypasses the cache, one in 16 of its sets is
// still used: its hit ratio shows whether the cache would be worth it. Only lookups of these sets are sampled then, in
// all modes in turn, so that modes are compared on the same keys: the most popular key, if it is in no such set, would
// make a search in the index look cheap. The longer a shard bypasses, the fewer of them are sampled, down to one in
// eight. While all shards bypass, adaptive adds to a search only the hash of the key and a read of one word that hardly
// ever changes: such a lookup writes nothing.
//
// A mode's cost is (share of hits) x (mean time of its hits) + (share of misses) x (mean time of its misses); bypassing
// costs the mean time of a search in the index. Times of hits and of misses each spread little, so that a few hundred
// samples give the cost within a few percent; the plain mean of all lookups would not.
//
// Hysteresis: a shard leaves its mode for one that was cheaper by the margin in two windows in a row. Switching to
// bypass takes a margin of 1 %, every other switch 5 %: an undecided shard bypasses.
//
// Thread safety: everything from any number of threads, wait-free. Samples that are recorded at the same moment as
// another thread decides may be lost.
#pragma once

#include <pmlab/cache/options.hpp>
#include <pmlab/media/clock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pmlab::cache {

// Modes of shards, and the samples that decide on them. A part of an asynchronous cache; not to be used by itself.
class chooser {
 public:
  // Lookups of a bypassed shard use the cache all the same in one set of so many.
  static constexpr std::uint64_t leader_period = 16;

  // `interleaves`, `helps`: these modes are available.
  chooser(const options& o, bool interleaves, bool helps)
      : now_(o.now != nullptr ? o.now : real_time),
        sample_mask_(std::bit_ceil(std::max(o.sample_period, 1U)) - 1),
        window_(std::max(o.window, 1U)),
        count_(std::bit_ceil(std::max(o.shards, 1U))),
        shards_(std::make_unique<shard[]>(count_)) {
    candidates_[candidate_count_++] = mode::serial;
    if (interleaves) candidates_[candidate_count_++] = mode::interleaved;
    if (helps) candidates_[candidate_count_++] = mode::parallel;
    candidates_[candidate_count_++] = mode::bypass;
  }

  // The plan of one lookup.
  struct plan {
    mode how;    // never adaptive
    bool timed;  // the caller must time it, and pass the time to `record`
  };

  // True: all shards bypass, and no lookup in set `number` is sampled. Nothing has to be counted then.
  [[nodiscard]] bool bypasses_all(std::uint64_t number) const noexcept {
    return number % leader_period != 0 && all_bypass_.load(std::memory_order_relaxed);
  }

  // The plan of a lookup in set `number`. `tick`: one more for each lookup of the calling thread that used the cache.
  [[nodiscard]] plan next(std::uint64_t number, std::uint32_t tick) const noexcept {
    const state now = load(shard_of(number));
    if (now.current == mode::bypass) {
      if ((tick & ((1U << now.quiet) - 1)) != 0 || number % leader_period != 0) return {mode::bypass, false};
      return {candidates_[(tick >> now.quiet) % candidate_count_], true};
    }
    if ((tick & sample_mask_) != 0) return {now.current, false};
    // One sample in four is of another mode.
    const std::uint32_t sample = tick / (sample_mask_ + 1);
    return {sample % 4 != 0 ? now.current : candidates_[sample / 4 % candidate_count_], true};
  }

  // Picoseconds, from a start that stays.
  [[nodiscard]] std::uint64_t now() const noexcept { return now_(); }

  // A timed lookup took `picoseconds`. `hit`: the cache had the key; false for a bypassing one.
  void record(std::uint64_t number, mode how, bool hit, std::uint64_t picoseconds) noexcept {
    shard& s = shard_of(number);
    s.times[static_cast<std::size_t>(how)][hit ? 0 : 1].add(picoseconds);
    if (how != mode::bypass) (hit ? s.hits : s.misses).fetch_add(1, std::memory_order_relaxed);
    if (s.samples.fetch_add(1, std::memory_order_relaxed) + 1 == window_) decide(s);
  }

  // How often shards have changed their modes.
  [[nodiscard]] std::uint64_t switches() const noexcept {
    std::uint64_t sum = 0;
    for (unsigned i = 0; i < count_; ++i) sum += shards_[i].switches.load(std::memory_order_relaxed);
    return sum;
  }
  // The mode of the shard of set `number`.
  [[nodiscard]] mode current(std::uint64_t number) const noexcept { return load(shard_of(number)).current; }
  // The bytes of DRAM.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return count_ * sizeof(shard); }

 private:
  static constexpr double margin_of_bypass = 0.01;
  static constexpr double margin = 0.05;
  // The fewest hits, or misses, whose mean counts.
  static constexpr std::uint64_t fewest_samples = 8;
  static constexpr unsigned most_quiet = 3;

  struct mean {
    std::atomic<std::uint64_t> sum{0};
    std::atomic<std::uint64_t> count{0};

    // A time far beyond the mean is cut off: the thread was descheduled, which is not the mode's cost.
    void add(std::uint64_t x) noexcept {
      constexpr std::uint64_t most_means = 4;
      const std::uint64_t n = count.load(std::memory_order_relaxed);
      if (n >= fewest_samples) x = std::min(x, most_means * sum.load(std::memory_order_relaxed) / n + 1);
      sum.fetch_add(x, std::memory_order_relaxed);
      count.fetch_add(1, std::memory_order_relaxed);
    }
    // Older samples count for less.
    void halve() noexcept {
      sum.store(sum.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
      count.store(count.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
    }
    [[nodiscard]] bool is_known() const noexcept { return count.load(std::memory_order_relaxed) >= fewest_samples; }
    [[nodiscard]] double value() const noexcept {
      const std::uint64_t n = count.load(std::memory_order_relaxed);
      return n == 0 ? 0 : static_cast<double>(sum.load(std::memory_order_relaxed)) / static_cast<double>(n);
    }
  };

  struct state {
    mode current = mode::serial;
    std::uint8_t quiet = 0;  // a bypassing shard: one in 2^quiet lookups may be sampled
  };

  struct alignas(128) shard {
    std::atomic<std::uint16_t> now{word_of({})};
    std::atomic<std::uint8_t> wanted{static_cast<std::uint8_t>(mode::serial)};  // by the last window
    std::atomic<std::uint32_t> samples{0};
    std::atomic<std::uint64_t> hits{0};
    std::atomic<std::uint64_t> misses{0};
    std::atomic<std::uint64_t> switches{0};
    std::array<std::array<mean, 2>, mode_names.size()> times{};  // times of hits and of misses
  };

  static std::uint64_t real_time() { return media::fast_clock::instance().now_after_loads(); }

  [[nodiscard]] shard& shard_of(std::uint64_t number) const noexcept {
    return shards_[number / leader_period & (count_ - 1)];
  }

  // One word, so that a lookup reads one.
  [[nodiscard]] static constexpr std::uint16_t word_of(state s) noexcept {
    return static_cast<std::uint16_t>(static_cast<unsigned>(s.current) | unsigned{s.quiet} << 8);
  }
  [[nodiscard]] static state load(const shard& s) noexcept {
    const unsigned word = s.now.load(std::memory_order_relaxed);
    return {static_cast<mode>(word & 0xff), static_cast<std::uint8_t>(word >> 8)};
  }

  // Negative: not known.
  [[nodiscard]] static double cost(const shard& s, mode m) noexcept {
    const auto& [of_hits, of_misses] = s.times[static_cast<std::size_t>(m)];
    if (m == mode::bypass) return of_misses.is_known() ? of_misses.value() : -1;
    const auto hits = static_cast<double>(s.hits.load(std::memory_order_relaxed));
    const auto misses = static_cast<double>(s.misses.load(std::memory_order_relaxed));
    // A case that hardly ever happens needs no mean of its own.
    if (!of_misses.is_known() && !of_hits.is_known()) return -1;
    const double share = hits + misses == 0 ? 0 : hits / (hits + misses);
    return share * of_hits.value() + (1 - share) * of_misses.value();
  }

  [[nodiscard]] bool do_all_bypass() const noexcept {
    return std::all_of(&shards_[0], &shards_[0] + count_,
                       [](const shard& s) { return load(s).current == mode::bypass; });
  }

  void decide(shard& s) noexcept {
    const auto [current, quiet] = load(s);
    const double now = cost(s, current);
    mode best = current;
    double least = now;
    for (std::size_t i = 0; i < candidate_count_; ++i) {
      const mode m = candidates_[i];
      const double c = cost(s, m);
      const double needed = m == mode::bypass ? margin_of_bypass : margin;
      if (m == current || c < 0 || now < 0 || c > (1 - needed) * now || c >= least) continue;
      best = m;
      least = c;
    }
    const auto wanted =
        static_cast<mode>(s.wanted.exchange(static_cast<std::uint8_t>(best), std::memory_order_relaxed));
    if (best != current && wanted == best) {
      s.now.store(word_of({best, 0}), std::memory_order_relaxed);
      s.switches.fetch_add(1, std::memory_order_relaxed);
    } else {
      // A doubt is settled at full speed.
      const bool doubts = best != current || current != mode::bypass;
      s.now.store(word_of({current, static_cast<std::uint8_t>(doubts ? 0 : std::min(quiet + 1U, most_quiet))}),
                  std::memory_order_relaxed);
    }
    all_bypass_.store(do_all_bypass(), std::memory_order_relaxed);
    for (auto& of_mode : s.times)
      for (mean& m : of_mode) m.halve();
    s.hits.store(s.hits.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
    s.misses.store(s.misses.load(std::memory_order_relaxed) / 2, std::memory_order_relaxed);
    s.samples.store(0, std::memory_order_relaxed);
  }

  std::uint64_t (*now_)();
  std::uint32_t sample_mask_;
  std::uint32_t window_;
  std::array<mode, mode_names.size()> candidates_{};
  std::size_t candidate_count_ = 0;
  unsigned count_;
  std::unique_ptr<shard[]> shards_;
  std::atomic<bool> all_bypass_{false};
};

}  // namespace pmlab::cache
