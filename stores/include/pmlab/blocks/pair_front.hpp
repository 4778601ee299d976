// The command front end of a modelled key-value SSD, on the clock of its drive. stores::kv_device waits for it if its
// device has one: an emulated or simulated drive of a profile such as `pm983-kv`.
#pragma once

#include <pmlab/blocks/clock.hpp>
#include <pmlab/blocks/flash/pair_processor.hpp>
#include <pmlab/blocks/flash/profile.hpp>
#include <pmlab/blocks/flash/time.hpp>

#include <cstdint>
#include <utility>

namespace pmlab::blocks {

// Thread safety: any thread; times are on the clock of the thread that calls.
class pair_front {
 public:
  pair_front() = default;
  pair_front(const pair_front&) = delete;
  pair_front& operator=(const pair_front&) = delete;
  virtual ~pair_front() = default;

  // See pair_processor: now.
  [[nodiscard]] virtual picoseconds command(std::uint64_t bytes) = 0;
  // The same.
  [[nodiscard]] virtual picoseconds replaced() = 0;
  // The same.
  [[nodiscard]] virtual picoseconds answer(std::uint64_t bytes) = 0;

  // From here to `end_work` the calling thread does what the device does by itself. On a virtual clock its waits for
  // the flash are the device's then, and take no time of the thread; on a real one it waits.
  virtual void begin_work() = 0;
  // Returns when that work is done: the device takes no other command before. 0: it is done.
  [[nodiscard]] virtual picoseconds end_work() = 0;

  // The clock of the drive.
  [[nodiscard]] virtual picoseconds now() = 0;
  // The same: returns when `now` is at least that.
  virtual void wait_until(picoseconds time) = 0;
};

// On a clock. One with `take_turn` lets threads with earlier times go first. One with `detach` can leave the time of
// the calling thread, and go on by itself until `attach`, which returns the time that it has come to.
template <drive_clock Clock>
class pair_front_on final : public pair_front {
 public:
  // REQUIRES: the profile `is_key_value()`.
  pair_front_on(const drive_profile& profile, Clock clock) : processor_(profile), clock_(std::move(clock)) {}

  [[nodiscard]] picoseconds command(std::uint64_t bytes) override { return processor_.command(bytes, turn()); }
  [[nodiscard]] picoseconds replaced() override { return processor_.replaced(turn()); }
  [[nodiscard]] picoseconds answer(std::uint64_t bytes) override { return processor_.answer(bytes, turn()); }
  void begin_work() override {
    if constexpr (requires { clock_.detach(); }) clock_.detach();
  }
  [[nodiscard]] picoseconds end_work() override {
    if constexpr (requires { clock_.attach(); }) {
      const picoseconds done = clock_.attach();
      processor_.busy_until(done);
      return done;
    } else {
      return 0;
    }
  }
  [[nodiscard]] picoseconds now() override { return clock_.now(); }
  void wait_until(picoseconds time) override { clock_.wait_until(time); }

 private:
  [[nodiscard]] picoseconds turn() {
    if constexpr (requires { clock_.take_turn(); }) clock_.take_turn();
    return clock_.now();
  }

  pair_processor processor_;
  Clock clock_;
};

}  // namespace pmlab::blocks
