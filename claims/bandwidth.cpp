// M12 to M18: bandwidth by size, order, threads and fences.
#include "claims/memory.hpp"

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using namespace detail;

constexpr unsigned several = 4;
constexpr unsigned many = 16;

quantity highest_of(std::string_view group, const std::vector<std::string_view>& sizes) {
  std::vector<quantity> all;
  for (const std::string_view size : sizes)
    for (const unsigned threads : {1U, 2U, 4U, 8U, 12U, 24U})
      all.push_back(measured(fmt::format("{}/access_bytes={}/threads={}", group, size, threads)));
  return times(gb_per_gib, highest(std::move(all)));
}

condition share(std::string_view side, bandwidth kind, std::string_view pattern, std::string_view bytes,
                unsigned threads, const std::vector<std::string_view>& sizes, range r) {
  return {fmt::format("{} {}, {} threads: {} over the best of all sizes", pattern, side, threads, readable_size(bytes)),
          unit::times, share_of_highest(kind, pattern, bytes, threads, sizes), r};
}

condition waste(std::string_view side, bandwidth kind) {
  return {fmt::format("random {}, 4 threads: bandwidth at 64 B over that at 256 B", side), unit::times,
          ratio(kind("random", "64", several), kind("random", "256", several)), at_most(0.5)};
}

condition amplified(std::string_view side, std::string_view group, std::string_view path) {
  return {fmt::format("{} at 64 B: bytes that the media moved over those asked for", side), unit::times,
          measured(fmt::format("{}/pattern=random/access_bytes=64/threads=4", group), path), at_least(2),
          /*where_counted=*/true};
}

quantity fenced_every_256(std::string_view bytes) {
  return measured(fmt::format("ntstore-fenced-by-size/access_bytes={}/threads=16", bytes));
}

}  // namespace

std::vector<claim> bandwidth_claims() {
  return {
      {"M12",
       "One DIMM reads at most about 7 GB/s and writes at most about 2 GB/s.",
       {{"highest read bandwidth of any size and number of threads", unit::gb_per_s,
         highest_of("load-random", {"64", "256", "4K"}), between(6.5, 7.5)},
        {"highest write bandwidth of any size and number of threads", unit::gb_per_s,
         highest_of("ntstore-random", {"64", "256"}), between(1.5, 2.5)}}},
      {"M13",
       "With several threads, random access reaches its highest bandwidth at 256 B.",
       {share("reads", load, "random", "256", several, bandwidth_sizes(), at_least(falls)),
        share("reads", load, "random", "128", several, bandwidth_sizes(), at_most(falls)),
        share("writes", store, "random", "256", several, bandwidth_sizes(), at_least(falls)),
        share("writes", store, "random", "128", several, bandwidth_sizes(), at_most(falls))}},
      {"M14",
       "Accesses below 256 B are amplified and waste bandwidth.",
       {waste("reads", load), waste("writes", store), amplified("reads", "load-by-size", "media/read_amplification"),
        amplified("writes", "ntstore-by-size", "media/write_amplification")}},
      {"M15",
       "Beyond some size, read and write bandwidth fall.",
       {share("reads", load, "random", "64K", many, bandwidth_sizes(), at_most(falls)),
        share("writes", store_then_fence, "random", "64K", many, then_fence_sizes(), at_most(falls))}},
      {"M16",
       "A fence every 256 B stops the fall of write bandwidth with many threads.",
       {{"random writes, 16 threads, a fence every 256 B: 64 KB over 256 B", unit::times,
         ratio(fenced_every_256("64K"), fenced_every_256("256")), at_least(falls)},
        {"random writes of 64 KB, 16 threads: a fence every 256 B over one at the end", unit::times,
         ratio(fenced_every_256("64K"), store_then_fence("random", "64K", many)), at_least(same)},
        {"sequential writes, 16 threads: a fence every 256 B over none", unit::times,
         ratio(measured("fence-every/threads=16/fence=256"), measured("fence-every/threads=16/fence=never")),
         at_least(same)}}},
      {"M17",
       "Sequential access reaches its highest bandwidth at 64 B already.",
       {share("reads", load, "sequential", "64", several, bandwidth_sizes(), at_least(falls)),
        share("writes", store, "sequential", "64", several, bandwidth_sizes(), at_least(falls))}},
      {"M18",
       "Large sequential accesses degrade too.",
       {share("reads", load, "sequential", "64K", many, bandwidth_sizes(), at_most(falls)),
        share("writes", store_then_fence, "sequential", "64K", many, then_fence_sizes(), at_most(falls))}},
  };
}

}  // namespace pmlab::claims
