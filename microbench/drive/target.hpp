// The device under test, chosen by a text.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/blocks/file/facts.hpp>
#include "bench/devices/device_spec.hpp"
#include "microbench/drive/case.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::drive {

struct target_options {
  std::uint64_t bytes = 0;  // bytes of a new device; of an existing one, at most so many are used
  bool overwrite = false;   // an existing file or block device may be written to
};

class target {
 public:
  target() = default;
  target(const target&) = delete;
  target& operator=(const target&) = delete;
  virtual ~target() = default;

  [[nodiscard]] virtual blocks::any_device& device() noexcept = 0;
  // Picoseconds, on the clock that the device's requests take time of.
  [[nodiscard]] virtual std::uint64_t now() noexcept = 0;
  [[nodiscard]] virtual bool virtual_clock() const noexcept { return false; }
  // Before a case, without time passing: the state that its figure is defined for.
  virtual void prepare(const drive_case& /*c*/) {}

  // The path of a file, for fio.
  [[nodiscard]] virtual std::string path() const { return {}; }
  [[nodiscard]] virtual std::optional<blocks::drive_facts> facts() const { return std::nullopt; }
  // How requests get to it: "io_uring, direct I/O"; empty: not through the kernel.
  [[nodiscard]] virtual std::string way() const { return {}; }
  // The relation of a modelled drive to the drive of its profile.
  [[nodiscard]] virtual std::string scale() const { return {}; }
  // Bytes that flash has programmed for each byte written, since the last `prepare`; nothing: not known.
  [[nodiscard]] virtual std::optional<double> amplification() const { return std::nullopt; }
  // About all figures so far.
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
};

// Opens or makes the device. A file that was made is removed with the target. Throws pmlab::error: a file exists and
// `overwrite` is not set, or blocks::file refuses it.
[[nodiscard]] std::unique_ptr<target> open_target(const device_spec& spec, const target_options& options);

}  // namespace pmlab::drive
