// What judges compare: quantities made of the figures of cases. Each knows the cases that it needs, so a claim's cases
// are never listed a second time; and it can be taken of what was measured as well as of what was published.
#pragma once

#include "claims/evidence.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::claims {

// Where a figure is looked up.
using lookup = std::function<double(const std::string& name, std::string_view path)>;

struct quantity {
  std::vector<std::string> cases;
  // Throws as evidence::figure does. `e` is for what is no figure: which memory a case ran on.
  std::function<double(const evidence& e, const lookup& figure)> of;
};

// The figure of a case: nanoseconds, GiB/s, or whatever is at `path`.
[[nodiscard]] quantity measured(const std::string& name, std::string_view path = "value");

[[nodiscard]] quantity ratio(quantity above, quantity below);
[[nodiscard]] quantity times(double factor, quantity q);
[[nodiscard]] quantity highest(std::vector<quantity> all);
[[nodiscard]] quantity lowest(std::vector<quantity> all);

// By how many percent the two of a pair differ, of the pair that differs most: the larger over the smaller.
struct pair_of_quantities {
  quantity first;
  quantity second;
};
[[nodiscard]] quantity largest_difference(std::vector<pair_of_quantities> pairs);

// A quantity of accesses of so many bytes.
struct sized {
  std::uint64_t bytes;
  quantity of;
};
// The largest size, in bytes, whose quantity is at most `factor` times the lowest of all.
[[nodiscard]] quantity largest_size_near_lowest(std::vector<sized> sizes, double factor);

// `given` over `dram`. Not applicable where both ran on the same memory.
[[nodiscard]] quantity over_dram(const std::string& given, const std::string& dram);

// `first`, or where this memory has not got it, `second`.
[[nodiscard]] quantity either(quantity first, quantity second);

}  // namespace pmlab::claims
