// A virtual clock for tests of the device model: logical threads, of which the one that is furthest behind runs next.
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/media/device/model.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

namespace pmlab::media::test {

// One logical thread: its clock, its side of the model, its own random numbers.
struct virtual_thread {
  virtual_thread(const device_profile& profile, std::uint64_t which) : state(profile), number(which) {}

  // Uniform in [0, limit).
  std::uint64_t random(std::uint64_t limit) noexcept { return numbers.below(limit); }

  device_model::thread_state state;
  std::uint64_t number;
  picoseconds now = 0;
  std::uint64_t steps = 0;
  std::uint64_t base = 0;  // where a step of several accesses continues
  splitmix64 numbers{0x1234567 + number * 977};
};

// One step of a thread: one access (more would overtake the other threads), by which its clock moves.
using step = std::function<void(device_model&, virtual_thread&)>;

// Runs `steps` steps of each thread, after a tenth as many to warm up. Returns nanoseconds from the end of the warm-up
// to the end of the run, for all threads together: bytes of all steps / this = bytes per nanosecond.
inline double run(device_model& model, const device_profile& profile, std::uint64_t threads, std::uint64_t steps,
                  const std::function<step(std::uint64_t)>& role) {
  std::vector<virtual_thread> all;
  std::vector<step> roles;
  for (std::uint64_t i = 0; i < threads; ++i) {
    all.emplace_back(profile, i);
    roles.push_back(role(i));
  }
  picoseconds warm = 0;
  const std::uint64_t warm_steps = threads * (steps / 10);
  for (std::uint64_t done = 0; done < warm_steps + threads * steps; ++done) {
    auto next = std::min_element(all.begin(), all.end(),
                                 [](const virtual_thread& a, const virtual_thread& b) { return a.now < b.now; });
    if (done == warm_steps) warm = next->now;
    roles[next->number](model, *next);
    ++next->steps;
  }
  picoseconds end = ~picoseconds{0};
  for (const virtual_thread& t : all) end = std::min(end, t.now);
  return static_cast<double>(end - warm) / 1000;
}

}  // namespace pmlab::media::test
