// `pmlab microbench --device`: a block device in place of a memory.
#pragma once

#include "tools/cli/command.hpp"
#include "bench/devices/device_spec.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace pmlab::cli {

struct drive_request {
  drive::device_spec device;
  std::optional<std::uint64_t> bytes;  // the device has so many
  std::optional<bool> fio;             // to be measured beside it; nothing: if it is installed
  std::optional<double> spread_percent;
  double settle_seconds = 0;
  std::string suite = "drive", filter, json;
  bool list = false, overwrite = false, quiet = false;
};

// Returns the exit status. Throws pmlab::error.
[[nodiscard]] int measure_drive(const drive_request& asked, const arguments& command_line);

}  // namespace pmlab::cli
