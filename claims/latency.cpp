// M1 to M5: latency of one access at a time, by size and order.
#include "claims/memory.hpp"

namespace pmlab::claims {
namespace {

using namespace detail;

quantity difference(quantity (*latency)(std::string_view, std::string_view),
                    const std::vector<std::string_view>& sizes) {
  std::vector<pair_of_quantities> pairs;
  pairs.reserve(sizes.size());
  for (const std::string_view size : sizes) pairs.push_back({latency("random", size), latency("sequential", size)});
  return largest_difference(std::move(pairs));
}

// Against the 256 B read.
quantity difference_from_256_bytes(const std::vector<std::string_view>& sizes) {
  std::vector<pair_of_quantities> pairs;
  pairs.reserve(sizes.size());
  for (const std::string_view size : sizes)
    pairs.push_back({read_latency("random", size), read_latency("random", "256")});
  return largest_difference(std::move(pairs));
}

quantity random_over_sequential(std::string_view bytes) {
  return ratio(read_latency("random", bytes), read_latency("sequential", bytes));
}

quantity over_64_bytes(std::string_view bytes) {
  return ratio(write_latency("random", bytes), write_latency("random", "64"));
}

}  // namespace

std::vector<claim> latency_claims() {
  return {
      {"M1",
       "A random read below 256 B has about the latency of a 256 B read.",
       {{"random reads of 8 to 128 B against 256 B: largest difference", unit::percent,
         difference_from_256_bytes({"8", "16", "32", "64", "128"}), at_most(same_percent)}}},
      {"M2",
       "A sequential read below 256 B is much faster than a random one.",
       {{"8 B, nothing in the CPU's caches: random over sequential", unit::times,
         ratio(measured("idle-read/medium=given/pattern=random"),
               measured("idle-read/medium=given/pattern=sequential")),
         at_least(much)},
        {"64 B: random over sequential", unit::times, random_over_sequential("64"), at_least(much)},
        {"128 B: random over sequential", unit::times, random_over_sequential("128"), at_least(same)}}},
      {"M3",
       "Large reads take as long at random as in order.",
       {{"1 KB to 16 MB: largest difference of random and sequential", unit::percent,
         difference(read_latency, {"1K", "4K", "16K", "64K", "1M", "16M"}), at_most(same_percent)}}},
      {"M4",
       "Fenced writes take as long at random as in order, at every size.",
       {{"8 B to 16 MB: largest difference of random and sequential", unit::percent,
         difference(write_latency, {"8", "16", "32", "64", "128", "256", "512", "1K", "4K", "16K", "64K", "1M", "16M"}),
         at_most(same_percent)}}},
      {"M5",
       "A non-temporal store of less than 64 B is slower than one of 64 B.",
       {{"8 B over 64 B", unit::times, over_64_bytes("8"), at_least(1.05)},
        {"16 B over 64 B", unit::times, over_64_bytes("16"), at_least(1.05)},
        {"32 B over 64 B", unit::times, over_64_bytes("32"), at_least(1.05)}}},
  };
}

}  // namespace pmlab::claims
