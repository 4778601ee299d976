// When a drive's rate is steady.
#include "microbench/drive/settling.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace pmlab::drive {
namespace {

TEST(Settling, IsSteadyByTheLastRounds) {
  const struct {
    const char* what;
    std::vector<double> rates;
    bool steady;
  } cases[] = {
      {"nothing", {}, false},
      {"too few rounds", {100, 100, 100, 100}, false},
      {"equal rounds", {100, 100, 100, 100, 100}, true},
      {"a range of 19 percent without a slope", {100, 109.5, 90.5, 109.5, 100}, true},
      {"a range of 21 percent without a slope", {100, 110.5, 89.5, 110.5, 100}, false},
      {"a slope of 9 percent", {104.5, 102.25, 100, 97.75, 95.5}, true},
      {"a slope of 11 percent", {105.5, 102.75, 100, 97.25, 94.5}, false},
      {"a slope of 11 percent upwards", {94.5, 97.25, 100, 102.75, 105.5}, false},
      {"a buffer that was used up before", {900, 900, 400, 100, 101, 99, 100, 100}, true},
      {"a buffer that was used up in these", {900, 100, 100, 100, 100}, false},
  };
  for (const auto& c : cases) EXPECT_EQ(is_steady(c.rates), c.steady) << c.what;
}

}  // namespace
}  // namespace pmlab::drive
