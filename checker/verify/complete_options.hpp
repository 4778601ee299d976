// The settings of a complete search for violations, and how its processes divide a history.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace pmlab::verify {

// Which process searches which group of crash points. In memory that they share, all zero at first. Every process runs
// the whole history, and `agree` holds them to one history.
class shared_search {
 public:
  static constexpr std::size_t most_joints = std::size_t{1} << 18;

  // True for the first process that asks for this group.
  [[nodiscard]] bool take(std::size_t joint) noexcept {
    return joint < violating() && taken_[joint].exchange(1, std::memory_order_acq_rel) == 0;
  }
  // False: another process has another history.
  [[nodiscard]] bool agree(std::size_t joint, std::uint64_t history) noexcept {
    std::uint64_t first = 0;
    if (history == 0) history = 1;
    return history_[joint].compare_exchange_strong(first, history, std::memory_order_acq_rel) || first == history;
  }
  // Later groups need no search.
  void violates(std::size_t joint) noexcept {
    std::size_t known = before_end_.load(std::memory_order_acquire);
    while (joint < end_of(known) &&
           !before_end_.compare_exchange_weak(known, end_of(joint), std::memory_order_acq_rel)) {
    }
  }
  // The first group with a violation; most_joints: none was found so far.
  [[nodiscard]] std::size_t violating() const noexcept { return end_of(before_end_.load(std::memory_order_acquire)); }

 private:
  // 0 is most_joints, so that memory of zeros is a search that has not begun.
  static constexpr std::size_t end_of(std::size_t joint) noexcept { return most_joints - joint; }

  std::atomic<std::size_t> before_end_{0};
  std::array<std::atomic<std::uint8_t>, most_joints> taken_{};
  std::array<std::atomic<std::uint64_t>, most_joints> history_{};
};

struct complete_options {
  shared_search* shared = nullptr;  // null: this process searches all of them
  bool only_count = false;          // search nothing
  bool every_state = false;         // open every state at every point, and merge none: to check the search
  // Not 0: a line that has waited for so many answers is written back after the last of them.
  std::size_t window = 0;
  std::size_t last_operations = 0;  // search only where so many are left; 0: everywhere
};

}  // namespace pmlab::verify
