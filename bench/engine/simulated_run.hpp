// The simulated machine under one pass of a run: from its beginning to its end, threads that are made are fibers.
#pragma once

#include "bench/catalogue/medium_spec.hpp"

#include <memory>
#include <string_view>

namespace pmlab::bench {

// Does nothing unless the medium is simulated. At most one at a time; threads that are made during its life end in it.
class simulated_run {
 public:
  static constexpr unsigned most_threads = 127;
  static constexpr std::string_view dram_profile = "dram";  // beside the device

  // `threads` besides the caller, each on a core of its own; so are `background` more, as far as there are cores. Every
  // machine begins with empty caches, at time 0. Throws pmlab::error for a profile that cannot be read, and in a
  // program that was built without the machine.
  simulated_run(const medium_spec& medium, unsigned threads, unsigned background = 0);
  simulated_run(const simulated_run&) = delete;
  simulated_run& operator=(const simulated_run&) = delete;
  ~simulated_run();

 private:
  struct running;
  std::unique_ptr<running> running_;
};

}  // namespace pmlab::bench
