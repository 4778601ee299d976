// A block device as a user names it on the command line.
#pragma once

#include <cstdint>
#include <string>

namespace pmlab::drive {

struct device_spec {
  enum class kind : std::uint8_t {
    memory,
    file,
    emulated,  // a modelled drive on the real clock
    simulated  // the same on a virtual clock
  };
  kind which = kind::memory;
  std::string path;     // path of a file
  std::string profile;  // a modelled drive: its name, or the path of a TOML file

  [[nodiscard]] bool modelled() const noexcept { return which == kind::emulated || which == kind::simulated; }
  // "file:PATH", "memory", "simulated:p4610".
  [[nodiscard]] std::string text() const;
};

// "memory", "file:PATH", "emulated:PROFILE" or "simulated:PROFILE". Throws pmlab::error for any other text.
[[nodiscard]] device_spec parse_device(const std::string& text);

}  // namespace pmlab::drive
