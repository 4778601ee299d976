// The simulated machine runs containers of another project, as packaged.
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <gtest/gtest.h>
#include <tbb/concurrent_hash_map.h>
#include <tbb/concurrent_queue.h>

#include "checker/tests/simulator/on_machine.hpp"

namespace pmlab::simulator {
namespace {

TEST(machine, containers_of_onetbb_work) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    std::size_t size = 0;
    std::atomic<std::uint64_t> sum{0};
    run(seed, [&] {
      tbb::concurrent_hash_map<std::uint64_t, std::uint64_t> map;
      tbb::concurrent_queue<std::uint64_t> queue;
      in_threads(4, [&](unsigned t) {
        for (std::uint64_t i = 0; i < 40; ++i) {
          map.insert({i * 4 + t, i});
          queue.push(i);
          std::uint64_t got = 0;
          if (queue.try_pop(got)) sum += got;
          decltype(map)::const_accessor found;
          EXPECT_TRUE(map.find(found, i * 4 + t));
        }
      });
      size = map.size();
    });
    EXPECT_EQ(size, 160U);
    EXPECT_EQ(sum.load(), 4 * 780U);
  }
}

}  // namespace
}  // namespace pmlab::simulator
