// Memory of an ordered index that is used again while a reader holds it.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "support/operations.hpp"

namespace pmlab::tests {

// Inserts and erases 2000 keys again and again, others in each cycle, so that the same nodes hold other keys then,
// while another thread finds and scans. Returns how many of its answers were wrong.
template <class Index>
[[nodiscard]] std::uint64_t wrong_reads_while_nodes_change_hands(Index& index) {
  constexpr std::uint64_t range = 100'000;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::thread reader([&] {
    std::array<indexes::entry, 50> out;
    random source(2);
    while (!stop.load()) {
      const std::uint64_t key = source.below(3 * range);
      if (const auto found = index.find(key); found && *found != ~key) ++wrong;
      const std::size_t count = index.scan(key, out);
      for (std::size_t i = 0; i < count; ++i)
        if (out[i].value != ~out[i].key || (i > 0 && out[i].key <= out[i - 1].key)) ++wrong;
    }
  });
  for (std::uint64_t cycle = 0; cycle < 60; ++cycle) {
    const std::uint64_t base = cycle % 3 * range;
    for (std::uint64_t n = 0; n < 2000; ++n) (void)index.insert(base + n, ~(base + n));
    for (std::uint64_t n = 0; n < 2000; ++n) (void)index.erase(base + n);
  }
  stop = true;
  reader.join();
  return wrong.load();
}

}  // namespace pmlab::tests
