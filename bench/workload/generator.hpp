// The operations of a synthetic workload, made before the clock starts.
#pragma once

#include "bench/workload/distribution.hpp"
#include "bench/workload/mix.hpp"
#include "bench/workload/operation.hpp"

#include <cstdint>
#include <vector>

namespace pmlab::workload {

struct generator_options {
  mix operations_mix;
  distribution keys;
  std::uint64_t records = 0;     // loaded before: the keys key_of(first) ... key_of(first + records - 1)
  std::uint64_t operations = 0;  // operations of all threads together
  std::uint64_t first = 0;
  std::uint64_t seed = 0;
  std::uint32_t thread = 0;  // whose operations to make: 0 ... threads - 1
  std::uint32_t threads = 1;
  std::uint32_t max_scan_length = 100;
};

// How many of `total` things the thread number `thread` of `threads` does: the total is split evenly, the first ones
// do one more where it does not divide.
[[nodiscard]] constexpr std::uint64_t share_of(std::uint64_t total, std::uint32_t thread,
                                               std::uint32_t threads) noexcept {
  return total / threads + (thread < total % threads ? 1 : 0);
}

// The operations of one thread, share_of(operations, thread, threads) of them. The same options always give the same
// operations; another seed, or another thread, gives others.
//
//  * read, update, erase, read-modify-write and the start of a scan take a key that `keys` draws among the loaded
//    records and those that this very thread inserted before (keys that other threads insert are used by these only, so
//    that the answer to every operation can be known beforehand). With "latest", the thread's own youngest record is
//    the most popular one. Erased records stay in the draw, as an index must answer for absent keys too.
//  * insert takes a fresh record. The n-th one of a thread is record `records + n * threads + thread`: no two threads
//    ever insert the same key.
//  * scan asks for 1 ... max_scan_length entries, uniformly.
//  * The operation number n of a thread writes value_of(key, 1 + n * threads + thread): every write of a run has a
//    sequence of its own, and 0 is left for the load.
//
// Throws pmlab::error if there is no record to read or max_scan_length is 0 where the mix scans;
// std::invalid_argument if `thread` is not below `threads`.
[[nodiscard]] std::vector<operation> generate(const generator_options& options);

// The inserts that load the records of one thread: a run of share_of(records, thread, threads) consecutive indexes, in
// order, each with value_of(key, 0). All threads together load key_of(0) ... key_of(records - 1).
[[nodiscard]] std::vector<operation> generate_load(std::uint64_t records, std::uint32_t thread = 0,
                                                   std::uint32_t threads = 1);

}  // namespace pmlab::workload
