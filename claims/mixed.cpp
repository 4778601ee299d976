// M23 to M25: readers beside writers, 256 B each.
#include "claims/memory.hpp"

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using namespace detail;

quantity reads_beside(unsigned writers) {
  return measured(fmt::format("mix-by-writers/writers={}", writers), "reads/gib_per_s");
}

quantity writes_beside(unsigned readers) {
  return measured(fmt::format("mix-by-readers/readers={}", readers), "writes/gib_per_s");
}

// Of every number of readers and writers.
quantity highest_latency(std::string_view side) {
  std::vector<quantity> all;
  for (const int readers : {1, 4, 8})
    for (const int writers : {1, 4, 8})
      all.push_back(measured(fmt::format("mix-latency/readers={}/writers={}", readers, writers),
                             fmt::format("{}/latency_ns/mean", side)));
  return highest(std::move(all));
}

constexpr double microsecond = 1e3;
constexpr range near_a_microsecond = between(microsecond / 2, microsecond * 2);

}  // namespace

std::vector<claim> mixed_claims() {
  return {
      {"M23",
       "The first writer lowers the bandwidth of readers sharply; then it levels off.",
       {{"8 readers: bandwidth beside 1 writer over that without", unit::times,
         ratio(reads_beside(1), measured("load-random/access_bytes=256/threads=8")), at_most(sharply_less)},
        {"8 readers: bandwidth beside 8 writers over that beside 4", unit::times,
         ratio(reads_beside(8), reads_beside(4)), at_least(1 / same)}}},
      {"M24",
       "Readers lower the bandwidth of writers; then it levels off.",
       {{"8 writers: bandwidth beside 8 readers over that without", unit::times,
         ratio(writes_beside(8), measured("ntstore-fenced/threads=8")), at_most(sharply_less)},
        {"8 writers: bandwidth beside 8 readers over that beside 4", unit::times,
         ratio(writes_beside(8), writes_beside(4)), at_least(1 / same)}}},
      {"M25",
       "Both latencies stay near 1 us in the mix.",
       {{"highest read latency of 1 to 8 readers and writers", unit::ns, highest_latency("reads"), near_a_microsecond},
        {"highest write latency of 1 to 8 readers and writers", unit::ns, highest_latency("writes"),
         near_a_microsecond}}},
  };
}

}  // namespace pmlab::claims
