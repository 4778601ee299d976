// M7 to M10: what more threads do to the latency of one access.
#include "claims/memory.hpp"

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using namespace detail;

constexpr unsigned many = 16;
// "Little affected", "about twice": a memory that shared its time evenly would take 16 times as long.
constexpr double twice_low = 1.5;
constexpr double twice_high = 2.5;

condition little(std::string_view bytes, range r) {
  return {fmt::format("{} B reads: latency of 16 threads over that of 1", bytes), unit::times,
          slowed_by_threads("read", bytes, many), r};
}

condition sensitivity(std::string_view bytes) {
  return {fmt::format("{} B: what 16 threads do to writes, over what they do to reads", bytes), unit::times,
          ratio(slowed_by_threads("write", bytes, many), slowed_by_threads("read", bytes, many)), at_least(same)};
}

quantity fastest_write_of_one_thread() {
  std::vector<sized> sizes;
  for (const std::uint64_t bytes : {8U, 16U, 32U, 64U, 128U, 256U, 512U})
    sizes.push_back({bytes, write_latency("random", std::to_string(bytes))});
  sizes.push_back({1024, write_latency("random", "1K")});
  sizes.push_back({4096, write_latency("random", "4K")});
  return largest_size_near_lowest(std::move(sizes), 1.05);
}

}  // namespace

std::vector<claim> thread_claims() {
  return {
      {"M7",
       "Read latency rises with threads, and more so for large reads.",
       {{"64 KB reads: latency of 16 threads over that of 1", unit::times, slowed_by_threads("read", "64K", many),
         at_least(same)},
        {"the same over that of 256 B reads", unit::times,
         ratio(slowed_by_threads("read", "64K", many), slowed_by_threads("read", "256", many)), at_least(same)}}},
      {"M8",
       "Random reads of up to 256 B are little affected by threads.",
       {little("64", at_most(twice_high)), little("256", at_most(twice_high))}},
      {"M9",
       "Write latency is more sensitive to threads than read latency, and lowest near 256 B.",
       {sensitivity("64"),
        sensitivity("256"),
        {"1 thread: largest write within 5 % of the fastest", unit::bytes, fastest_write_of_one_thread(),
         between(128, 512)}}},
      {"M10",
       "From 1 to 16 threads, reads of 256 B and less take about twice as long, large ones about 16 times.",
       {little("64", between(twice_low, twice_high)),
        little("256", between(twice_low, twice_high)),
        {"64 KB reads: latency of 16 threads over that of 1", unit::times, slowed_by_threads("read", "64K", many),
         between(many / 2.0, many * 1.5)}}},
  };
}

}  // namespace pmlab::claims
