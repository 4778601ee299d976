// In which order places are accessed: tables of place numbers, and chains through memory.
#pragma once

#include "microbench/memory/case.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace pmlab::microbench {

// Place numbers are 32 bits wide: a table is half as large, and so is its share of the caches.
inline constexpr std::uint64_t most_places = std::uint64_t{1} << 32;

// Fills `table` with places in the order of `c.pattern` (not chase): one pass if the table is as long as there are
// places. A random order that is longer than the table is delivered in parts: `part` is its number, and consecutive
// parts have no place in common until all were used. Other patterns are drawn, from `seed` and `part`.
void fill_places(std::span<std::uint32_t> table, std::uint64_t places, const bench_case& c, std::uint64_t seed,
                 std::uint64_t part);

// Makes the places from `start` on, `distance` apart, one cycle in random order: the first word of each place holds the
// address of the next, the first words of its other lines hold 0. `places` is at least 1; a place has `bytes` bytes, at
// least 8.
void link_chase(std::byte* start, std::uint64_t places, std::uint64_t distance, std::uint64_t bytes,
                std::uint64_t seed);

}  // namespace pmlab::microbench
