// M6, M11, M26: which sizes of access suit the memory.
#include "claims/memory.hpp"

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using namespace detail;

constexpr double microsecond = 1e3;
constexpr double millisecond = 1e6;

using latency = quantity (*)(std::string_view, std::string_view);

condition of_latency(std::string_view side, latency kind, std::string_view bytes, range r) {
  return {fmt::format("{} at random, {}", readable_size(bytes), side), unit::ns, kind("random", bytes), r};
}

condition step(std::string_view side, latency kind, std::string_view above, std::string_view below, range r) {
  return {fmt::format("{}: {} over {}", side, readable_size(above), readable_size(below)), unit::times,
          ratio(kind("random", above), kind("random", below)), r};
}

// From 256 B to 4 KB: the worst of them over the best of all sizes.
quantity worst_of_the_range(bandwidth kind, const std::vector<std::string_view>& sizes) {
  std::vector<quantity> all;
  for (const std::string_view size : {"256", "1K", "4K"})
    all.push_back(share_of_highest(kind, "random", size, 4, sizes));
  return lowest(std::move(all));
}

}  // namespace

std::vector<claim> granularity_claims() {
  return {
      {"M6",
       "The best size is 256 B, and up to 1 KB latency stays in nanoseconds.",
       {step("reads", read_latency, "256", "64", at_most(same)),
        step("reads", read_latency, "1K", "256", at_least(same)),
        step("writes", write_latency, "256", "64", at_most(same)),
        step("writes", write_latency, "1K", "256", at_least(same)),
        of_latency("read", read_latency, "1K", at_most(microsecond)),
        of_latency("written", write_latency, "1K", at_most(microsecond))}},
      {"M11",
       "Below 512 B an access takes hundreds of nanoseconds, kilobytes take microseconds, megabytes milliseconds.",
       {of_latency("read", read_latency, "256", between(100, microsecond)),
        of_latency("written", write_latency, "256", between(100, microsecond)),
        of_latency("read", read_latency, "4K", between(microsecond, millisecond)),
        of_latency("written", write_latency, "4K", between(microsecond, millisecond)),
        of_latency("read", read_latency, "16M", at_least(millisecond)),
        of_latency("written", write_latency, "16M", at_least(millisecond))}},
      {"M26",
       "The best range of sizes is 256 B to 4 KB.",
       {{"reads, 4 threads: worst of 256 B to 4 KB over the best of all sizes", unit::times,
         worst_of_the_range(load, bandwidth_sizes()), at_least(1 / same)},
        {"writes, 4 threads: worst of 256 B to 4 KB over the best of all sizes", unit::times,
         worst_of_the_range(store_then_fence, then_fence_sizes()), at_least(1 / same)},
        {"reads, 4 threads: 64 B over the best of all sizes", unit::times,
         share_of_highest(load, "random", "64", 4, bandwidth_sizes()), at_most(1 / same)},
        {"writes, 4 threads: 64 B over the best of all sizes", unit::times,
         share_of_highest(store_then_fence, "random", "64", 4, then_fence_sizes()), at_most(1 / same)},
        {"reads, 16 threads: 64 KB over 4 KB", unit::times, ratio(load("random", "64K", 16), load("random", "4K", 16)),
         at_most(falls)},
        {"writes, 16 threads: 64 KB over 4 KB", unit::times,
         ratio(store_then_fence("random", "64K", 16), store_then_fence("random", "4K", 16)), at_most(falls)}}},
  };
}

}  // namespace pmlab::claims
