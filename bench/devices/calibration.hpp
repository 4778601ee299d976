// How well this machine can emulate a device: measured, not assumed.
#pragma once

#include <pmlab/media/device/profile.hpp>

#include <string>
#include <vector>

namespace pmlab::media {

// Costs of this machine's own memory for one thread, in nanoseconds. Medians of several runs.
struct host_memory {
  double read_ns = 0;              // dependent random read of 64 B in huge pages, over more than the caches hold
  double read_small_pages_ns = 0;  // the same in 4 KB pages
  double flush_fence_ns = 0;       // store + flush + fence of a line that the cache holds
  double timer_ns = 0;             // one read of the clock
};

// One test of the emulated medium.
struct calibration_row {
  std::string what;
  double target_ns = 0;   // the model on a virtual clock, same sequence of accesses, same scale
  double reached_ns = 0;  // the emulated medium on the real clock
  double floor_ns = 0;    // the same accesses on this machine's memory, with nothing emulated

  // False if the machine itself takes longer than the device would: no emulation can reach the target.
  [[nodiscard]] bool within_reach() const noexcept { return floor_ns <= target_ns; }
  [[nodiscard]] double error_percent() const noexcept { return 100 * (reached_ns / target_ns - 1); }
};

struct calibration {
  device_profile profile;  // the requested profile, scaled: the profile for `emulated`
  host_memory host;
  double model_ns = 0;  // the cost of one call of the model for one line
  std::vector<calibration_row> rows;
  std::vector<std::string> notes;  // warnings about the figures, as text
};

struct calibration_options {
  double scale = 0;  // times of the device are multiplied by this; 0: `automatic_scale`
};

// The factor by which the device of `profile` must be slowed down so that it is as much slower than this machine's DRAM
// as it was slower than the DRAM beside it. At least 1: a device is never made faster.
[[nodiscard]] double automatic_scale(const device_profile& profile, const host_memory& host);

// Measures the machine, scales the profile, and tests the emulated medium with it. Takes less than two seconds. Throws
// pmlab::error for a negative scale or if memory is short.
[[nodiscard]] calibration calibrate(const device_profile& profile, const calibration_options& options = {});

}  // namespace pmlab::media
