// One thread of a case, over stores of any kind: keeps `depth` operations under way, takes their times, and has their
// answers checked. The operations are the derived worker's.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/device.hpp>
#include "bench/stores/clock.hpp"
#include "bench/stores/measured.hpp"
#include "bench/support/progress.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::store_bench {

// When operations start: all that have a slot, and then one answer is waited for; or one after the other, and each asks
// for answers right away, as a store whose calls wait has them by then.
enum class starting : std::uint8_t { together, one_by_one };

// `Slot`: an operation under way. It has `began`.
template <class Contestant, class Case, class Queue, class Answer, class Slot>
class case_worker {
 public:
  using task_type = worker_task_of<Case>;
  case_worker(const case_worker&) = delete;
  case_worker& operator=(const case_worker&) = delete;

  [[nodiscard]] worker_sums run() {
    // Declared last: it waits for operations that use the slots.
    const std::unique_ptr<Queue> queue = on_.subject().make_queue(task_.what.depth, task_.thread);
    sums_.began = now_ = clock_.now();
    for (;;) {
      const bool started = start_some(*queue);
      if (under_way_ == 0) break;
      reap(*queue, started && how_ == starting::one_by_one ? 0 : 1);
    }
    sums_.ended = now_;
    shown_.did(unreported_);
    return std::move(sums_);
  }

 protected:
  case_worker(Contestant& on, task_type task, const run_clock& clock, bench::progress& shown, starting how)
      : on_(on),
        task_(std::move(task)),
        random_(task_.seed * 1024 + task_.thread),
        slots_(task_.what.depth),
        shown_(shown),
        clock_(clock),
        how_(how),
        done_(task_.what.depth) {
    for (std::size_t i = slots_.size(); i > 0; --i) free_.push_back(i - 1);
  }
  ~case_worker() = default;

  // Makes the next operation in a slot. False: there is none.
  [[nodiscard]] virtual bool prepare(Slot& s) = 0;
  // The last moment before an operation starts: the ledger's versions, for the check of its answer.
  virtual void look(Slot& s) = 0;
  virtual void start(Queue& queue, Slot& s, std::uint64_t tag) = 0;
  // Counts and checks an answer, which took `ns`. False: its slot starts again, for the second half of its operation.
  [[nodiscard]] virtual bool take(Slot& s, const Answer& a, std::uint64_t ns) = 0;
  // "a read of 4096 bytes at byte 0 failed".
  [[nodiscard]] virtual error failure_of(const Slot& s, std::errc why) const = 0;

  // ---- for the hooks

  // `wrong`: the error of an answer; nothing: it is right.
  void count_check(const std::optional<std::string>& wrong) {
    ++sums_.verified;
    if (wrong) sums_.add_wrong(fmt::format("{}, {}: {}", on_.labels().store, text_of(task_.what), *wrong));
  }
  [[nodiscard]] error failed(const std::string& what, std::errc why) const {
    return {fmt::format("{}: {} failed: {}", on_.labels().store, what, blocks::describe(why)),
            why == std::errc::no_space_on_device  ? "give a larger --device-bytes"
            : why == std::errc::not_enough_memory ? "give a larger --pool-size"
                                                  : "check the drive"};
  }
  [[nodiscard]] std::uint64_t prepared() const noexcept { return prepared_; }

  Contestant& on_;
  const task_type task_;
  random_source random_;
  std::vector<Slot> slots_;
  bench::progress& shown_;
  worker_sums sums_;

 private:
  bool start_some(Queue& queue) {
    starting_.clear();
    const std::size_t most = how_ == starting::one_by_one ? 1 : slots_.size();
    while (starting_.size() < most && next()) continue;
    for (const std::size_t at : starting_) {
      look(slots_[at]);
      slots_[at].began = clock_.now();
      start(queue, slots_[at], at);
    }
    if (starting_.empty()) return false;
    sums_.own_ns += std::min(slots_[starting_.front()].began - now_, longest_own_ps) / 1000;
    under_way_ += starting_.size();
    return true;
  }
  // Chooses the next slot to start. False: there is none for now.
  bool next() {
    std::vector<std::size_t>& from = again_.empty() ? free_ : again_;
    if (from.empty()) return false;
    const std::size_t at = from.back();
    if (again_.empty()) {
      goes_on_ = goes_on_ && !is_over() && prepare(slots_[at]);
      if (!goes_on_) return false;
      ++prepared_;
    }
    from.pop_back();
    starting_.push_back(at);
    return true;
  }
  [[nodiscard]] bool is_over() const {
    if (task_.operations != 0) return prepared_ == task_.operations;
    return task_.time != 0 && now_ - sums_.began >= task_.time;
  }

  void reap(Queue& queue, std::size_t at_least) {
    const std::size_t count = queue.reap(done_, at_least);
    now_ = clock_.now();
    for (const Answer& a : std::span(done_).first(count)) finish(a);
    under_way_ -= count;
  }
  void finish(const Answer& a) {
    const auto at = static_cast<std::size_t>(a.tag);
    Slot& s = slots_[at];
    if (a.error != std::errc{}) throw failure_of(s, a.error);
    if (!take(s, a, (now_ - s.began) / 1000)) return again_.push_back(at);
    ++sums_.operations;
    free_.push_back(at);
    if (++unreported_ == reported_together) shown_.did(std::exchange(unreported_, 0));
  }

  const run_clock& clock_;
  starting how_;
  std::vector<Answer> done_;
  std::vector<std::size_t> free_;
  std::vector<std::size_t> again_;     // the first half of their operation is done
  std::vector<std::size_t> starting_;  // were prepared
  bool goes_on_ = true;
  std::size_t under_way_ = 0;
  std::uint64_t prepared_ = 0;
  std::uint64_t unreported_ = 0;
  std::uint64_t now_ = 0;  // the last reap
};

}  // namespace pmlab::store_bench
