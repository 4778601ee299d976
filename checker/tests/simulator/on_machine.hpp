// Code of a test on the simulated machine.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/schedules.hpp"

#include <cstdint>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::simulator {

// Runs `body` as the first thread of a machine with the schedule of `seed`. Returns how many accesses it made.
template <class Body>
std::uint64_t run(std::uint64_t seed, Body&& body, std::uint64_t limit = 50'000'000) {
  verify::random_schedule who(seed);
  machine_options options;
  options.who = &who;
  options.access_limit = limit;
  the_machine().begin(options);
  the_machine().watch(true);
  body();
  the_machine().watch(false);
  const std::uint64_t accesses = the_machine().accesses();
  the_machine().end();
  return accesses;
}

template <class Work>
void in_threads(unsigned count, Work&& work) {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t) threads.emplace_back([&work, t] { work(t); });
  for (std::thread& t : threads) t.join();
}

}  // namespace pmlab::simulator
