// Who runs next: the two ways in which schedules are searched.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include <pmlab/base/random.hpp>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace pmlab::verify {

// A schedule that knows where operations begin and end.
class operation_schedule : public simulator::schedule {
 public:
  // The thread that runs begins an operation; it has ended it.
  virtual void operation_begins() {}
  virtual void operation_ends() {}
};

// How threads sleep in the middle of an operation.
enum class sleeps : std::uint8_t { anywhere, before_changes, over_operations, at_any_access_over_operations };

// Pre-empts at random: at every access with the same probability, which differs from run to run between 1 in 6 and 1 in
// 80. Found to be better at finding races than priorities with few change points. In half of the runs a pre-empted
// thread may sleep, in the middle of an operation, while the others finish complete operations: this exposes readers to
// half-done updates.
//
// `before_changes`: threads run longer, and sleep just before atomic changes and publications: these mostly follow a
// read that they rely on. The others then have time for a change of the structure, which a random place seldom leaves
// them there.
//
// `over_operations`: likewise, but each operation has the same chance to sleep, at one of its first changes or a later
// one, and sleeps until the others have ended some operations. Where one operation has a thousand times the changes of
// another, it would have a thousand times the sleeps, too, and no sleep of the short one would last as long as the long
// one. None is at the end of a lock: the sleeper would keep the others from what they are to do meanwhile.
//
// `at_any_access_over_operations`: likewise, behind one of the first accesses of the operation. Where a subject has
// threads of its own, these wait for work most of the time, which looks as if they waited for the sleeper: sleeps that
// end as others wait would end at once.
class random_schedule final : public operation_schedule {
 public:
  explicit random_schedule(std::uint64_t seed, sleeps how = sleeps::anywhere) : random_(seed), how_(how) {
    constexpr std::uint64_t means[] = {6, 20, 20, 80};
    mean_ = means[random_.below(4)];
    puts_to_sleep_ = random_.one_in(2);
    // Long enough for others to reuse the memory that it reads.
    if (random_.one_in(4)) longest_sleep_ = 8000;
    if (how == sleeps::anywhere) return;
    puts_to_sleep_ = true;
    if (how == sleeps::at_any_access_over_operations) return;
    constexpr std::uint64_t longer_means[] = {40, 200, 1000};
    constexpr std::uint64_t lengths[] = {1000, 8000, 40000};
    constexpr std::uint64_t rates[] = {2, 8, 32};
    mean_ = longer_means[random_.below(3)];
    longest_sleep_ = lengths[random_.below(3)];
    pauses_one_in_ = rates[random_.below(3)];
  }

  bool suspends_now(bool gives_up) override {
    if (asleep_ != nullptr) return false;
    if (how_ == sleeps::before_changes) return random_.one_in(pauses_one_in_);
    if (how_ != sleeps::over_operations) return false;
    return !gives_up && simulator::the_machine().current() == chosen_ && --places_before_sleep_ == 0;
  }

  void operation_begins() override {
    if (!sleeps_over_operations() || asleep_ != nullptr || chosen_ != nullptr || !random_.one_in(2)) return;
    chosen_ = simulator::the_machine().current();
    if (how_ == sleeps::at_any_access_over_operations) {
      constexpr std::uint64_t most_turns = 16;
      places_before_sleep_ = 1 + random_.below(most_turns);
      return;
    }
    // Most operations are short: half of the sleeps are at one of the first changes.
    constexpr std::uint64_t orders = 9;
    constexpr std::uint64_t orders_of_short_ones = 4;
    const std::uint64_t order = random_.below(random_.one_in(2) ? orders_of_short_ones : orders);
    places_before_sleep_ = 1 + random_.below(std::uint64_t{1} << order);
  }
  void operation_ends() override {
    if (simulator::the_machine().current() == chosen_) chosen_ = nullptr;
    if (simulator::the_machine().current() == asleep_) asleep_ = nullptr;  // all others waited for it
    if (asleep_ == nullptr) return;
    waits_ = 0;
    if (operations_asleep_ > 0) --operations_asleep_;
  }

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
  [[nodiscard]] bool sleeps_over_operations() const noexcept {
    return how_ == sleeps::over_operations || how_ == sleeps::at_any_access_over_operations;
  }

  // A thread that waits for a drive goes on soon. One that waits for the sleeper waits long, or asks again and again:
  // so no sleep lasts longer than `most_accesses`.
  void put_to_sleep_over_operations(simulator::fiber* current, simulator::turn why) {
    constexpr unsigned patience = 400;
    const std::uint64_t most_accesses = how_ == sleeps::over_operations ? 2'000'000 : 50'000;
    const std::uint64_t now = simulator::the_machine().accesses();
    if (why == simulator::turn::yields || why == simulator::turn::blocked) ++waits_;
    if (operations_asleep_ == 0 || waits_ > patience || now >= wakes_) asleep_ = nullptr;
    if (asleep_ != nullptr) return;
    const bool its_turn_ends = why == simulator::turn::time_is_up && current == chosen_;
    const bool falls_asleep = how_ == sleeps::over_operations ? why == simulator::turn::suspended
                                                              : its_turn_ends && --places_before_sleep_ == 0;
    if (!falls_asleep) return;
    asleep_ = current;
    chosen_ = nullptr;
    operations_asleep_ = 1 + random_.below(8);
    wakes_ = now + most_accesses;
    waits_ = 0;
  }

  // A waiting thread may wait for the sleeper.
  void put_to_sleep(simulator::fiber* current, simulator::turn why) {
    if (sleeps_over_operations()) return put_to_sleep_over_operations(current, why);
    const std::uint64_t now = simulator::the_machine().accesses();
    const bool others_wait = why == simulator::turn::yields || why == simulator::turn::blocked;
    if (asleep_ != nullptr && (now >= wakes_ || (others_wait && random_.one_in(4)))) asleep_ = nullptr;
    if (asleep_ != nullptr) return;
    const bool falls_asleep = how_ == sleeps::before_changes ? why == simulator::turn::suspended
                                                             : why == simulator::turn::time_is_up && random_.one_in(2);
    if (!falls_asleep) return;
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
  sleeps how_;
  std::uint64_t pauses_one_in_ = 1;
  std::uint64_t mean_;
  std::uint64_t longest_sleep_ = 1000;  // accesses
  bool puts_to_sleep_;
  simulator::fiber* asleep_ = nullptr;
  std::uint64_t wakes_ = 0;
  // Over operations: who is to sleep, at which of its changes or turns, for how many operations of others.
  simulator::fiber* chosen_ = nullptr;
  std::uint64_t places_before_sleep_ = 0;
  std::uint64_t operations_asleep_ = 0;
  unsigned waits_ = 0;  // times that others waited since the last of their operations ended
};

// One pre-emption: at this access, `turns` threads further.
struct preemption {
  std::uint64_t access = 0;
  unsigned turns = 1;
};

// Threads run one after the other, as long as they can, except for the given pre-emptions. A thread that spins without
// yielding is pre-empted after a while, which does not count.
class bounded_schedule final : public operation_schedule {
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
