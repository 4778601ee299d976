// Who runs next: the two ways in which schedules are searched.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include <pmlab/base/random.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace pmlab::verify {

// Pre-empts at random: at every access with the same probability, which differs from run to run between 1 in 6 and 1 in
// 80. Found to be better at finding races than priorities with few change points. In half of the runs a pre-empted
// thread may sleep, in the middle of an operation, while the others finish complete operations: this exposes readers to
// half-done updates.
//
// With `pauses`, threads run longer, and sleep just before atomic changes and publications: these mostly follow a read that
// they rely on. The others then have time for a change of the structure, which a random place seldom leaves them there.
class random_schedule final : public simulator::schedule {
 public:
  explicit random_schedule(std::uint64_t seed, bool pauses = false) : random_(seed), pauses_(pauses) {
    constexpr std::uint64_t means[] = {6, 20, 20, 80};
    mean_ = means[random_.below(4)];
    puts_to_sleep_ = random_.one_in(2);
    // Long enough for others to reuse the memory that it reads.
    if (random_.one_in(4)) longest_sleep_ = 8000;
    if (!pauses) return;
    constexpr std::uint64_t longer_means[] = {40, 200, 1000};
    constexpr std::uint64_t sleeps[] = {1000, 8000, 40000};
    constexpr std::uint64_t rates[] = {2, 8, 32};
    mean_ = longer_means[random_.below(3)];
    longest_sleep_ = sleeps[random_.below(3)];
    pauses_one_in_ = rates[random_.below(3)];
    puts_to_sleep_ = true;
  }

  bool suspends_now() override { return pauses_ && asleep_ == nullptr && random_.one_in(pauses_one_in_); }

  std::uint64_t quantum() override {
    // Geometric, by doubling: half of the quanta are shorter than the mean's 0.7.
    std::uint64_t length = 1 + random_.below(mean_);
    while (random_.one_in(3)) length += random_.below(2 * mean_);
    return length;
  }

  simulator::fiber* next(std::span<simulator::fiber* const> runnable, simulator::fiber* current,
                         simulator::turn why) override {
    if (puts_to_sleep_) put_to_sleep(current, why);
    simulator::fiber* chosen = runnable[random_.below(runnable.size())];
    if (chosen == current) chosen = another(runnable, current);
    return chosen == asleep_ ? another(runnable, asleep_) : chosen;
  }

 private:
  // A waiting thread may wait for the sleeper.
  void put_to_sleep(simulator::fiber* current, simulator::turn why) {
    const std::uint64_t now = simulator::the_machine().accesses();
    const bool others_wait = why == simulator::turn::yields || why == simulator::turn::blocked;
    if (asleep_ != nullptr && (now >= wakes_ || (others_wait && random_.one_in(4)))) asleep_ = nullptr;
    if (asleep_ != nullptr) return;
    const bool sleeps =
        pauses_ ? why == simulator::turn::suspended : why == simulator::turn::time_is_up && random_.one_in(2);
    if (!sleeps) return;
    asleep_ = current;
    wakes_ = now + 1 + random_.below(longest_sleep_);
  }

  // Any but `f`, if there is one.
  simulator::fiber* another(std::span<simulator::fiber* const> runnable, const simulator::fiber* f) {
    if (runnable.size() == 1) return runnable[0];
    return runnable[(random_.below(runnable.size() - 1) + 1 + position_of(runnable, f)) % runnable.size()];
  }

  static std::size_t position_of(std::span<simulator::fiber* const> runnable, const simulator::fiber* f) {
    std::size_t i = 0;
    while (i < runnable.size() && runnable[i] != f) ++i;
    return i;
  }

  splitmix64 random_;
  bool pauses_;
  std::uint64_t pauses_one_in_ = 1;
  std::uint64_t mean_;
  std::uint64_t longest_sleep_ = 1000;  // accesses
  bool puts_to_sleep_;
  simulator::fiber* asleep_ = nullptr;
  std::uint64_t wakes_ = 0;
};

// One pre-emption: at this access, `turns` threads further.
struct preemption {
  std::uint64_t access = 0;
  unsigned turns = 1;
};

// Threads run one after the other, as long as they can, except for the given pre-emptions. A thread that spins without
// yielding is pre-empted after a while, which does not count.
class bounded_schedule final : public simulator::schedule {
 public:
  // `first`: who begins. `preemptions`: in ascending order of accesses.
  bounded_schedule(unsigned first, std::vector<preemption> preemptions)
      : first_(first), preemptions_(std::move(preemptions)) {}

  std::uint64_t quantum() override {
    const std::uint64_t now = simulator::the_machine().accesses();
    const std::uint64_t planned =
        done_ < preemptions_.size() ? preemptions_[done_].access : std::numeric_limits<std::uint64_t>::max();
    return planned > now ? std::min(planned - now, patience) : 1;
  }

  simulator::fiber* next(std::span<simulator::fiber* const> runnable, simulator::fiber* current,
                         simulator::turn why) override {
    std::size_t at = 0;
    while (at + 1 < runnable.size() && runnable[at]->number < current->number) ++at;
    unsigned turns = 0;
    if (why == simulator::turn::time_is_up) {
      const bool planned =
          done_ < preemptions_.size() && simulator::the_machine().accesses() >= preemptions_[done_].access;
      turns = planned ? preemptions_[done_++].turns : 1;
    } else if (why == simulator::turn::yields) {
      turns = 1;
    } else if (!begun_) {
      begun_ = true;
      turns = first_;
    }
    return runnable[(at + turns) % runnable.size()];
  }

 private:
  static constexpr std::uint64_t patience = 5000;

  unsigned first_;
  std::vector<preemption> preemptions_;
  std::size_t done_ = 0;
  bool begun_ = false;
};

}  // namespace pmlab::verify
