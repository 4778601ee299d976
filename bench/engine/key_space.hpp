// Which keys one index holds in the course of a run.
#pragma once

#include <cstdint>
#include <vector>

namespace pmlab::bench {

// Record i has the key key_of(first + i), of the whole 64-bit space of i:
//
//   [0, records)                loaded, then grown by workloads that insert
//   [2^62, 2^62 + fresh)        added by insert phases, removed by erase phases
//   [2^63, ...)                 never inserted: the keys of absent phases
struct key_space {
  static constexpr std::uint64_t first_fresh = std::uint64_t{1} << 62;
  static constexpr std::uint64_t first_absent = std::uint64_t{1} << 63;

  std::uint64_t first = 0;  // below 2^61
  std::uint64_t records = 0;
  std::uint64_t fresh = 0;           // keys that insert phases were given so far
  std::vector<std::uint64_t> added;  // keys that insert phases added and no erase phase took away yet
};

}  // namespace pmlab::bench
