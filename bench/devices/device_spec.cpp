#include "bench/devices/device_spec.hpp"
#include <pmlab/base/error.hpp>

#include <cstddef>

namespace pmlab::drive {

std::string device_spec::text() const {
  switch (which) {
    case kind::memory: return "memory";
    case kind::file: return "file:" + path;
    case kind::emulated: return "emulated:" + profile;
    case kind::simulated: return "simulated:" + profile;
  }
  return "?";
}

device_spec parse_device(const std::string& text) {
  using kind = device_spec::kind;
  if (text == "memory") return {};
  const std::size_t colon = text.find(':');
  const std::string which = text.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (which == "file" && !rest.empty()) return {.which = kind::file, .path = rest, .profile = {}};
  if ((which == "emulated" || which == "simulated") && !rest.empty())
    return {.which = which == "emulated" ? kind::emulated : kind::simulated, .path = {}, .profile = rest};
  throw error("there is no block device '" + text + "'",
              "choose memory, file:PATH, emulated:PROFILE or simulated:PROFILE");
}

}  // namespace pmlab::drive
