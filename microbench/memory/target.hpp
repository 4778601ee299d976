// The memory under test: a region of a medium, and how its accesses are made.
#pragma once

#include "bench/catalogue/medium_spec.hpp"
#include "bench/devices/calibration.hpp"
#include "microbench/memory/kernels.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace pmlab::microbench {

struct target_options {
  bench::medium_spec medium{};
  std::uint64_t bytes = 0;  // bytes of the region
  int numa_node = -1;       // dram: -1: where the kernel puts it
  bool huge_pages = true;
  bool reuse = false;      // an existing pool is opened; a block in its free space is used
  bool overwrite = false;  // an existing pool is replaced
  std::shared_ptr<const media::calibration> emulation = nullptr;  // calibration of an emulated medium
};

// Bytes that the device's media have moved.
struct moved_bytes {
  std::uint64_t read = 0;
  std::uint64_t written = 0;
};

class target {
 public:
  target() = default;
  target(const target&) = delete;
  target& operator=(const target&) = delete;
  virtual ~target() = default;

  // 2 MB aligned; zero, or anything that an earlier case left.
  [[nodiscard]] virtual std::byte* start() const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t bytes() const noexcept = 0;
  [[nodiscard]] virtual std::unique_ptr<kernels> make_kernels(const kernel_choice& choice) = 0;
  // Empty: they are not counted.
  [[nodiscard]] virtual std::optional<moved_bytes> moved() const { return std::nullopt; }
  // Why this medium cannot measure a case; empty: it can.
  [[nodiscard]] virtual std::string refusal(const bench_case& /*c*/) const { return {}; }
  // From the kernel: "2 MB pages", "4 KB pages", ...
  [[nodiscard]] virtual std::string huge_pages() const = 0;
  // A warning about its figures; empty: none.
  [[nodiscard]] virtual std::string warning() const { return {}; }
};

// Makes the region; on real memory every page of it was written to when this returns. Throws pmlab::error: no memory,
// a pool that cannot be made.
[[nodiscard]] std::unique_ptr<target> open_target(const target_options& options);

}  // namespace pmlab::microbench
