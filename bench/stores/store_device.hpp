// The device of one store of a run: it has bytes, and counts what is asked of it.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/blocks/counted.hpp>
#include "bench/devices/device_spec.hpp"

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::store_bench {

// The counts of each stream.
using device_counts = std::array<blocks::counts, blocks::streams>;

[[nodiscard]] inline std::uint64_t written_bytes(const device_counts& of) {
  std::uint64_t sum = 0;
  for (const blocks::counts& c : of) sum += c.bytes_written;
  return sum;
}

class store_device {
 public:
  store_device() = default;
  store_device(const store_device&) = delete;
  store_device& operator=(const store_device&) = delete;
  virtual ~store_device() = default;

  [[nodiscard]] virtual blocks::any_device& device() noexcept = 0;
  [[nodiscard]] virtual device_counts counts() const = 0;
  virtual void reset_counts() = 0;

  // Puts a modelled drive into the state of datasheets: full, and overwritten at random until its write amplification
  // is steady. The data stays. What was written before decides nothing then; the drive's `layout` does.
  virtual void precondition() {}
  // Ends what a modelled drive has under way: its buffer is empty. The data stays where it is.
  virtual void come_to_rest() {}
  // The writes that a modelled drive acknowledges before they are in flash. 0: it is not modelled.
  [[nodiscard]] virtual std::uint64_t buffer_bytes() const noexcept { return 0; }

  // Bytes that the flash of a modelled drive programmed for each byte written, since the last reset_counts.
  [[nodiscard]] virtual std::optional<double> amplification() const { return std::nullopt; }
  // CPU time that threads of this process spent looking at the clock, waiting for a modelled drive. Since it was made.
  [[nodiscard]] virtual std::uint64_t waiting_cpu_ns() const noexcept { return 0; }
  // The relation of a modelled drive to the drive of its profile.
  [[nodiscard]] virtual std::string scale() const { return {}; }
  // The way that requests take to a file.
  [[nodiscard]] virtual std::string way() const { return {}; }
  [[nodiscard]] virtual std::vector<std::string> remarks() const { return {}; }
};

struct store_device_options {
  std::uint64_t bytes = 0;
  std::string_view size_option = "--device-bytes";  // the one that `bytes` comes from, for messages
  bool overwrite = false;                           // an existing file may be written to
  std::uint64_t layout = 1;  // layout of a modelled drive: draws where the writes that precondition it lie
};

// Blocks of 4 KiB, zeros at first. A modelled drive is preconditioned. A file that was made is removed with it. Throws
// pmlab::error.
[[nodiscard]] std::unique_ptr<store_device> open_store_device(const drive::device_spec& spec,
                                                              const store_device_options& options);

}  // namespace pmlab::store_bench
