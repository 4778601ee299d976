#include "bench/workload/present_keys.hpp"
#include <pmlab/base/random.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <unordered_set>

namespace pmlab::workload {
namespace {

TEST(present_keys, are_those_of_a_set) {
  present_keys keys;
  std::unordered_set<std::uint64_t> right;
  splitmix64 random(7);
  for (int i = 0; i < 100'000; ++i) {
    // 0 and the largest key, too.
    const std::uint64_t key = random.one_in(100) ? ~random.below(2) + 1 : random.below(20'000);
    ASSERT_EQ(keys.contains(key), right.contains(key)) << i;
    if (random.one_in(3)) {
      keys.remove(key);
      right.erase(key);
    } else {
      ASSERT_EQ(keys.add(key), right.insert(key).second) << i;
    }
  }
  for (std::uint64_t key = 0; key < 20'000; ++key) ASSERT_EQ(keys.contains(key), right.contains(key));
}

}  // namespace
}  // namespace pmlab::workload
