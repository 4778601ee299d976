// From the measurements of suite `calibrate` to a device profile.
#pragma once

#include <pmlab/media/device/profile.hpp>
#include "microbench/memory/result.hpp"

#include <map>
#include <string>
#include <vector>

namespace pmlab::microbench {

struct fitted_profile {
  media::device_profile profile;
  std::map<std::string, std::string, std::less<>>
      origins;            // origin of each key: the measurement, or that it is the base's
  unsigned measured = 0;  // keys that were not kept from the base
};

// The profile with which the device model reproduces the measurements. Parameters that `results` do not determine
// (cases that were skipped, a step that is missing) keep the value of `base`. Throws pmlab::error if neither reads nor
// writes were measured, and if the measurements make no profile.
[[nodiscard]] fitted_profile fit_profile(const media::device_profile& base, const std::vector<case_result>& results);

// Whether the measurements show granules larger than a line, as Optane has: selects the nearer base.
[[nodiscard]] bool has_granules(const std::vector<case_result>& results);

}  // namespace pmlab::microbench
