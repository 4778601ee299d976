// A drive for tests: eight dies with round figures, and closed loops of requests on its model.
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/flash/page_ftl.hpp>
#include <pmlab/blocks/flash/profile.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <queue>
#include <vector>

namespace pmlab::tests {

// 4 channels of 2 dies, units of 32 KB, reads of 60 us, programs of 600 us.
inline blocks::drive_profile small_drive(double over_provisioning = 0.28) {
  blocks::drive_profile p;
  p.name = "small";
  p.host_read_mb_per_s = 3200;
  p.host_write_mb_per_s = 3200;
  p.read_command_ns = 1000;
  p.write_command_ns = 1000;
  p.read_overhead_ns = 5000;
  p.write_overhead_ns = 10000;
  p.channels = 4;
  p.dies_per_channel = 2;
  p.planes = 2;
  p.page_bytes = 16384;
  p.pages_per_block = 256;
  p.read_ns = 60000;
  p.program_ns = 600000;
  p.erase_ns = 5e6;
  p.suspend_ns = 20000;
  p.channel_mb_per_s = 500;
  p.capacity_bytes = std::uint64_t{64} << 30;
  p.over_provisioning = over_provisioning;
  p.mapping_unit_bytes = 4096;
  p.buffer_bytes = 1 << 20;
  p.flush_overhead_ns = 100000;
  p.atomic_bytes = 4096;
  return p;
}

struct loop_result {
  double requests_per_s = 0;
  double mean_us = 0;
  std::vector<blocks::picoseconds> latencies;  // sorted

  [[nodiscard]] double percentile_us(double share) const {
    return static_cast<double>(latencies[static_cast<std::size_t>(share * static_cast<double>(latencies.size() - 1))]) /
           1e6;
  }
};

// Keeps `depth` requests in flight until `count` have been submitted, after a fourth as many to warm up. `now` is the
// time of the first, and in the end that of the last.
inline loop_result closed_loop(blocks::page_ftl& model, blocks::picoseconds& now, std::size_t depth,
                               std::uint64_t count, const std::function<blocks::request(std::uint64_t)>& next) {
  using blocks::picoseconds;
  std::priority_queue<picoseconds, std::vector<picoseconds>, std::greater<>> in_flight;
  loop_result result;
  picoseconds from = now;
  const std::uint64_t warm = count / 4;
  for (std::uint64_t i = 0; i < warm + count; ++i) {
    if (in_flight.size() == depth) {
      now = std::max(now, in_flight.top());
      in_flight.pop();
    }
    if (i == warm) from = now;
    const picoseconds done = model.perform(next(i), now);
    in_flight.push(done);
    if (i >= warm) result.latencies.push_back(done - now);
  }
  for (const picoseconds latency : result.latencies) result.mean_us += static_cast<double>(latency) / 1e6;
  result.mean_us /= static_cast<double>(count);
  result.requests_per_s = static_cast<double>(count) / (static_cast<double>(now - from) / 1e12);
  std::sort(result.latencies.begin(), result.latencies.end());
  return result;
}

// Requests of `blocks` blocks at random aligned places within the first `within` blocks.
inline std::function<blocks::request(std::uint64_t)> at_random(blocks::operation what, std::uint32_t blocks,
                                                               std::uint64_t within, random_source& random) {
  return [=, &random](std::uint64_t) {
    return blocks::request{what, blocks::stream::data, blocks, random.below(within / blocks) * blocks, nullptr, 0};
  };
}

// The same one after the other, from block 0, again and again.
inline std::function<blocks::request(std::uint64_t)> in_order(blocks::operation what, std::uint32_t blocks,
                                                              std::uint64_t within) {
  return [=](std::uint64_t i) {
    return blocks::request{what, blocks::stream::data, blocks, i * blocks % (within / blocks * blocks), nullptr, 0};
  };
}

}  // namespace pmlab::tests
