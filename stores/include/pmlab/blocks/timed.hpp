// A device that is as fast as a modelled drive, on any clock.
//
// The inner device does the bytes when a request is submitted. The drive model (blocks/flash/page_ftl.hpp) computes
// when the drive would be done, and the completion is held back until then. Completions are returned in the order of
// their times. docs/drive-profiles.md describes the meaning of the figures and their limits.
#pragma once

#include <pmlab/blocks/clock.hpp>
#include <pmlab/blocks/flash/page_ftl.hpp>
#include <pmlab/blocks/flash/profile.hpp>
#include <pmlab/blocks/pair_front.hpp>
#include <pmlab/blocks/wrapper.hpp>
#include <pmlab/media/counts.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace pmlab::blocks {

// Thread safety: as the inner device. Threads meet in the model, as they would in the drive.
template <device Inner, drive_clock Clock>
class timed : public wrapper<Inner> {
 public:
  // `arguments` build the inner device. Throws pmlab::error for an impossible profile.
  template <class... Arguments>
  timed(const drive_profile& profile, Clock clock, Arguments&&... arguments)
      : wrapper<Inner>(std::in_place, std::forward<Arguments>(arguments)...),
        profile_(profile),
        model_(profile_, this->inner().shape()),
        clock_(std::move(clock)) {
    if (profile_.is_key_value()) pairs_.emplace(profile_, clock_);
  }

  // "emulated:p4610" on the real clock, "timed:p4610" on a virtual one. `inner().name()` names the storage.
  [[nodiscard]] std::string name() const { return std::string(Clock::kind) + ":" + profile_.name; }

  // The inner device's blocks. A crash keeps what both keep: the larger atomic unit of the two is not promised, and
  // there is a volatile cache if one of them has one. For the drive alone give the inner device shape_of(profile,
  // bytes).
  [[nodiscard]] geometry shape() const {
    geometry both = this->inner().shape();
    both.atomic_bytes = std::min(both.atomic_bytes, static_cast<std::uint32_t>(profile_.atomic_bytes));
    both.volatile_cache = both.volatile_cache || !profile_.capacitor;
    return both;
  }

  // The drive that is modelled.
  [[nodiscard]] const drive_profile& profile() const noexcept { return profile_; }

  // The place where commands of a key-value SSD wait for its firmware. nullptr: a drive of blocks.
  [[nodiscard]] pair_front* pairs() noexcept { return pairs_ ? &*pairs_ : nullptr; }

  // To precondition the drive before a measurement, and for its counts.
  [[nodiscard]] page_ftl& model() noexcept { return model_; }
  // The same.
  [[nodiscard]] const page_ftl& model() const noexcept { return model_; }

  // Since construction.
  [[nodiscard]] media::emulation_counts emulation() const noexcept {
    return {charged_.load(std::memory_order_relaxed), waited_.load(std::memory_order_relaxed) / 1000,
            late_.load(std::memory_order_relaxed) / 1000};
  }

  // Empty, or why the figures of this run are not to be trusted: this machine was late by more than a tenth of the time
  // that it waited for the drive.
  [[nodiscard]] std::string warning() const {
    const media::emulation_counts now = emulation();
    if (now.late_ns == 0 || now.late_ns * 10 <= now.waited_ns) return {};
    return name() + " was late by " + std::to_string(now.late_ns / 1000) + " us in " +
           std::to_string(now.waited_ns / 1000) + " us of waiting: the machine or " + this->inner().name() +
           " is too slow for this drive, so latencies are too long; use fewer threads, or memory for the bytes";
  }

  // Requests go to a queue of the inner device; completions come when both are done.
  class queue {
   public:
    // A queue on the clock of the device.
    queue(timed& device, unsigned depth) : queue(device, depth, device.clock_) {}
    // A queue on a clock of its own: another logical thread's.
    queue(timed& device, unsigned depth, Clock clock)
        : device_(device), inner_(device.inner(), depth), clock_(std::move(clock)), slots_(depth), reaped_(depth) {
      free_.reserve(depth);
      waiting_.reserve(depth);
      passed_on_.reserve(depth);
      for (std::size_t s = depth; s > 0; --s) free_.push_back(s - 1);
    }

    [[nodiscard]] std::size_t submit(std::span<const request> requests) {
      const picoseconds now = clock_.now();
      passed_on_.assign(requests.begin(),
                        requests.begin() + static_cast<std::ptrdiff_t>(std::min(requests.size(), free_.size())));
      for (std::size_t i = 0; i < passed_on_.size(); ++i) passed_on_[i].tag = free_[free_.size() - 1 - i];
      const std::size_t taken = inner_.submit(passed_on_);
      for (std::size_t i = 0; i < taken; ++i) {
        const std::size_t s = free_.back();
        free_.pop_back();
        slots_[s] = {requests[i].tag, std::errc{}, false};
        // The drive refuses a request beyond its end at once.
        const picoseconds due =
            has_blocks_of(device_.shape(), requests[i]) ? device_.model_.perform(requests[i], now) : now;
        waiting_.push_back({due, submitted_++, s});
        std::push_heap(waiting_.begin(), waiting_.end());
      }
      if (taken != 0) device_.charged_.fetch_add(taken, std::memory_order_relaxed);
      return taken;
    }

    [[nodiscard]] std::size_t reap(std::span<completion> completions, std::size_t at_least) {
      const std::size_t wanted = std::min({at_least, completions.size(), waiting_.size()});
      const picoseconds began = clock_.now();
      picoseconds now = began;
      std::size_t count = 0;
      for (;;) {
        take_from_inner(0);
        while (count < completions.size() && !waiting_.empty() && waiting_.front().due <= now &&
               slots_[waiting_.front().slot].done)
          completions[count++] = next();
        if (count >= wanted) break;
        const picoseconds due = waiting_.front().due;
        if (now < due) {
          clock_.wait_until(due);
        } else {
          take_from_inner(1);
        }
        now = clock_.now();
        const picoseconds from = std::max(due, began);
        if (now > from) device_.late_.fetch_add(now - from, std::memory_order_relaxed);
      }
      if (now > began) device_.waited_.fetch_add(now - began, std::memory_order_relaxed);
      return count;
    }

    [[nodiscard]] std::size_t in_flight() const noexcept { return waiting_.size(); }
    [[nodiscard]] unsigned depth() const noexcept { return static_cast<unsigned>(slots_.size()); }

    // The time of this queue's thread.
    [[nodiscard]] picoseconds now() { return clock_.now(); }
    // When the drive completes the next request. REQUIRES: one is in flight.
    [[nodiscard]] picoseconds due() const noexcept { return waiting_.front().due; }

   private:
    struct slot {
      std::uint64_t tag = 0;
      std::errc error{};
      bool done = false;  // by the inner device
    };
    struct held_back {
      picoseconds due = 0;
      std::uint64_t order = 0;
      std::size_t slot = 0;

      // The heap's top is the earliest.
      friend bool operator<(const held_back& a, const held_back& b) noexcept {
        return a.due != b.due ? a.due > b.due : a.order > b.order;
      }
    };

    void take_from_inner(std::size_t at_least) {
      if (inner_.in_flight() == 0) return;
      const std::size_t count = inner_.reap(reaped_, at_least);
      for (std::size_t i = 0; i < count; ++i) {
        slots_[reaped_[i].tag].error = reaped_[i].error;
        slots_[reaped_[i].tag].done = true;
      }
    }

    // Removes the earliest.
    [[nodiscard]] completion next() {
      std::pop_heap(waiting_.begin(), waiting_.end());
      const std::size_t s = waiting_.back().slot;
      waiting_.pop_back();
      free_.push_back(s);
      return {slots_[s].tag, slots_[s].error};
    }

    timed& device_;
    typename Inner::queue inner_;
    Clock clock_;
    std::vector<slot> slots_;
    std::vector<std::size_t> free_;
    std::vector<held_back> waiting_;  // a heap
    std::vector<request> passed_on_;
    std::vector<completion> reaped_;
    std::uint64_t submitted_ = 0;
  };

 private:
  drive_profile profile_;
  page_ftl model_;
  Clock clock_;
  std::optional<pair_front_on<Clock>> pairs_;
  std::atomic<std::uint64_t> charged_{0};
  std::atomic<std::uint64_t> waited_{0};  // picoseconds
  std::atomic<std::uint64_t> late_{0};
};

}  // namespace pmlab::blocks
