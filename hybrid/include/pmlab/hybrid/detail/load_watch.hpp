// Whether changes should be queued, by the operations seen: the paper's proposal for changing load.
//
// Readers of the replica pay for queueing, and writers gain from it. So the share of writes among both decides. Between
// the two bounds nothing changes, or a load at a bound would switch all the time.
#pragma once

#include <pmlab/base/thread_blocks.hpp>
#include <pmlab/hybrid/options.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

namespace pmlab::hybrid::detail {

// Thread safety: all of it. Threads count for themselves, and add up once in a while.
class load_watch {
 public:
  explicit load_watch(const options& o)
      : how_(o.how),
        window_(std::max<std::uint64_t>(o.window, 1)),
        portion_(std::clamp<std::uint64_t>(window_ / 16, 1, 256)),
        above_(o.asynchronous_above),
        below_(o.synchronous_below),
        asynchronous_(o.how == update::asynchronous) {}

  // The update mode that the user chose; if adaptive, the last decision.
  [[nodiscard]] bool is_asynchronous() const noexcept { return asynchronous_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_adaptive() const noexcept { return how_ == update::adaptive; }
  [[nodiscard]] std::uint64_t switches() const noexcept { return switches_.load(std::memory_order_relaxed); }

  void note_write() {
    if (is_adaptive()) note(1);
  }
  // `count` reads of the replica.
  void note_reads(std::uint32_t count = 1) {
    if (is_adaptive()) note(std::uint64_t{count} << 32);
  }

 private:
  // Reads in the upper half, writes in the lower one.
  struct alignas(64) lane {
    std::uint64_t counted = 0;
  };

  static constexpr std::uint64_t reads_of(std::uint64_t counted) noexcept { return counted >> 32; }
  static constexpr std::uint64_t writes_of(std::uint64_t counted) noexcept { return counted & 0xffffffff; }

  void note(std::uint64_t what) {
    lane& mine = lanes_.local([](std::size_t) { return std::make_unique<lane>(); });
    mine.counted += what;
    if (reads_of(mine.counted) + writes_of(mine.counted) < portion_) return;
    const std::uint64_t sum = counted_.fetch_add(mine.counted, std::memory_order_relaxed) + mine.counted;
    mine.counted = 0;
    if (reads_of(sum) + writes_of(sum) >= window_) decide();
  }

  // If several threads get here at the same time, only the first finds counts.
  void decide() noexcept {
    const std::uint64_t counted = counted_.exchange(0, std::memory_order_relaxed);
    const std::uint64_t all = reads_of(counted) + writes_of(counted);
    if (all < window_ / 2) return;
    const double writes = static_cast<double>(writes_of(counted)) / static_cast<double>(all);
    const bool now = asynchronous_.load(std::memory_order_relaxed);
    const bool then = writes > above_ || (now && writes >= below_);
    if (now == then) return;
    asynchronous_.store(then, std::memory_order_relaxed);
    switches_.fetch_add(1, std::memory_order_relaxed);
  }

  update how_;
  std::uint64_t window_;
  std::uint64_t portion_;
  double above_;
  double below_;
  std::atomic<bool> asynchronous_;
  std::atomic<std::uint64_t> switches_{0};
  alignas(64) std::atomic<std::uint64_t> counted_{0};
  thread_blocks<lane> lanes_;
};

}  // namespace pmlab::hybrid::detail
