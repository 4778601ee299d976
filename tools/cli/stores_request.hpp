// What `pmlab stores volumes` and `pmlab stores pairs` are asked for. Each is planned, run and written in a file of its
// own.
#pragma once

#include "tools/cli/command.hpp"
#include "bench/catalogue/medium_spec.hpp"
#include "bench/devices/device_spec.hpp"
#include "bench/stores/case.hpp"
#include "bench/stores/measured.hpp"
#include "bench/stores/pair_case.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::cli {

inline constexpr std::uint64_t store_block = 4096;

// A size, a share of the data, or none.
struct amount {
  std::optional<std::uint64_t> bytes;
  double share = 0;  // share of the data; 0.1: a tenth

  // `data`: its bytes.
  [[nodiscard]] std::uint64_t of(std::uint64_t data) const noexcept {
    return bytes ? *bytes : static_cast<std::uint64_t>(share * static_cast<double>(data));
  }
};

// What both commands are asked for. A size without a value is computed from the others.
struct stores_request {
  std::vector<std::string> stores;
  bench::medium_spec medium;
  drive::device_spec device;
  std::optional<std::uint64_t> device_bytes;
  std::optional<std::uint64_t> pool_bytes;
  std::vector<unsigned> depths;
  store_bench::run_lengths lengths;
  bool has_seconds = false;  // they were given
  std::optional<amount> cache;
  bool overwrite = false;
  bool quiet = false;
  std::string json;
  std::vector<std::string> given;  // names of the options on the command line

  [[nodiscard]] bool has_option(const std::string& name) const {
    return std::find(given.begin(), given.end(), name) != given.end();
  }
  [[nodiscard]] bool in_virtual_time() const noexcept { return device.which == drive::device_spec::kind::simulated; }
};

struct volumes_request : stores_request {
  std::vector<store_bench::phase> phases;
  std::vector<store_bench::order> orders;
  std::vector<std::uint64_t> sizes;  // sizes of operations
  std::string container, index;
  std::optional<std::string> merge;  // nothing: the one that the container does best
  std::uint64_t volume_bytes = 0;
  std::uint64_t chunk_bytes = 0;
  std::uint32_t ring = 0;
};

struct pairs_request : stores_request {
  std::vector<store_bench::pair_phase> phases;
  std::vector<store_bench::pair_order> orders;
  std::vector<std::size_t> value_sizes;
  std::uint64_t records = 0;
  std::size_t key_bytes = 0;
  unsigned devices = 1;
  std::optional<drive::device_spec> staging;
  std::optional<std::uint64_t> staging_bytes;
  std::optional<amount> memory;
  double loss_ms = 0;
  bool log = true;
  std::string place, memtable;
};

// Return the exit status. Throw pmlab::error.
[[nodiscard]] int measure_volumes(const volumes_request& asked, const arguments& command_line);
[[nodiscard]] int measure_pairs(const pairs_request& asked, const arguments& command_line);

}  // namespace pmlab::cli
