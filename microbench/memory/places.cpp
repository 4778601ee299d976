// In which order places are accessed: tables of place numbers, and chains through memory.
#include "microbench/memory/places.hpp"
#include <pmlab/base/random.hpp>
#include <pmlab/media/lines.hpp>
#include "bench/workload/permutation.hpp"
#include "bench/workload/zipfian.hpp"

#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

namespace pmlab::microbench {
namespace {

// Fisher and Yates: every order is as likely as any other.
void shuffle(std::span<std::uint32_t> table, random_source& random) {
  for (std::size_t left = table.size(); left > 1; --left) std::swap(table[left - 1], table[random.below(left)]);
}

void fill_random(std::span<std::uint32_t> table, std::uint64_t places, random_source& random, std::uint64_t part) {
  if (table.size() == places) {
    std::iota(table.begin(), table.end(), std::uint32_t{0});
    shuffle(table, random);
    return;
  }
  const workload::permutation scattered(places);
  const std::uint64_t first = part * table.size() % places;
  for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::uint32_t>(scattered((first + i) % places));
  // The permutation needs no memory, but its parts are only as random as its arithmetic: mix each one.
  shuffle(table, random);
}

}  // namespace

void fill_places(std::span<std::uint32_t> table, std::uint64_t places, const bench_case& c, std::uint64_t seed,
                 std::uint64_t part) {
  random_source random(seed, part);
  switch (c.pattern) {
    case pattern_kind::random: fill_random(table, places, random, part); break;
    case pattern_kind::zipfian: {
      const workload::zipfian_ranks rank(places, c.theta);
      const workload::permutation scattered(places);
      for (std::uint32_t& place : table) place = static_cast<std::uint32_t>(scattered(rank(random)));
      break;
    }
    case pattern_kind::hot:
      for (std::uint32_t& place : table) place = static_cast<std::uint32_t>(random.below(places));
      break;
    case pattern_kind::halves: {
      const std::uint64_t even = (places + 1) / 2;
      for (std::size_t i = 0; i < table.size(); ++i)
        table[i] = static_cast<std::uint32_t>(i < even ? 2 * i : 2 * (i - even) + 1);
      break;
    }
    case pattern_kind::sequential:
    case pattern_kind::strided:
    case pattern_kind::chase: std::iota(table.begin(), table.end(), std::uint32_t{0}); break;
  }
}

void link_chase(std::byte* start, std::uint64_t places, std::uint64_t distance, std::uint64_t bytes,
                std::uint64_t seed) {
  std::vector<std::uint32_t> order(places);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  random_source random(seed);
  shuffle(order, random);
  // A shuffled list closed to a ring is one cycle, and every cycle is as likely as any other.
  for (std::uint64_t i = 0; i < places; ++i) {
    std::byte* const place = start + order[i] * distance;
    for (std::uint64_t line = media::cache_line_bytes; line < bytes; line += media::cache_line_bytes)
      std::memset(place + line, 0, 8);
    const std::byte* const next = start + order[i + 1 == places ? 0 : i + 1] * distance;
    std::memcpy(place, static_cast<const void*>(&next), sizeof next);
  }
}

}  // namespace pmlab::microbench
