#include <pmlab/base/counters.hpp>

#include <array>
#include <barrier>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

struct counts {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t size = 0;  // no counter

  static constexpr std::array counters{counter{&counts::reads, "reads"}, counter{&counts::writes}};

  friend bool operator==(const counts&, const counts&) = default;
};

TEST(Counters, SumsAndDifferencesAreOfTheListedMembersAlone) {
  counts sum{.reads = 1, .writes = 20, .size = 300};
  EXPECT_EQ(&add_counters(sum, counts{.reads = 4, .writes = 50, .size = 600}), &sum);
  EXPECT_EQ(sum, (counts{.reads = 5, .writes = 70, .size = 300}));
  EXPECT_EQ(&subtract_counters(sum, counts{.reads = 2, .writes = 30, .size = 100}), &sum);
  EXPECT_EQ(sum, (counts{.reads = 3, .writes = 40, .size = 300}));
}

TEST(Counters, SharedOnesLoseNoAdditionOfAThread) {
  constexpr std::uint64_t each = 1'000'000;
  constexpr unsigned threads = 2;
  shared_counters<counts> shared;
  std::barrier begin(threads);
  std::vector<std::jthread> team;
  for (unsigned t = 0; t < threads; ++t)
    team.emplace_back([&] {
      begin.arrive_and_wait();
      for (std::uint64_t i = 0; i < each; ++i) shared.add(&counts::writes, 2);
    });
  team.clear();
  shared.add_alone(&counts::reads, 7);
  shared.add_alone(&counts::reads, 1);
  EXPECT_EQ(shared.now(), (counts{.reads = 8, .writes = 2 * each * threads}));
  shared.reset();
  EXPECT_EQ(shared.now(), counts{});
}

}  // namespace
}  // namespace pmlab::tests
