// A checksum of the words of a pool that libpmemobj follows when it opens it.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/media/pool_heap.hpp>

#include <cstdint>
#include <optional>

namespace pmlab::media {

// Over the headers, the root object's place, the lanes with their logs, and the headers of zones and chunks. Blocks and
// the headers of runs are not in it: opening a pool reads none of them. The pool is mapped at `base` and has `bytes`
// bytes. std::nullopt: a pool of another format, or a damaged one. Reads 3 MB, and 8 bytes for each 256 KB of the pool.
// `sum`: what each part is given to, with the sum of the parts before it as its seed.
template <class Sum>
[[nodiscard]] std::optional<std::uint64_t> seal_of_pool(const char* base, std::uint64_t bytes, Sum&& sum) {
  // PMDK's own format, of libpmemobj 1. Two parts change at a closing, and are left out: the end of the first page, the
  // mark of a shutdown, which has a checksum of its own; and, behind the persistent words of the second page, those of
  // a running process, which no opening reads.
  constexpr std::uint64_t shutdown_at = 4096 - 64;
  constexpr std::uint64_t descriptor_at = 4096;
  constexpr std::uint64_t statistics_at = descriptor_at + 2048 + 40;
  constexpr std::uint64_t lanes_at = 8192;
  const std::optional<std::uint64_t> first = first_zone_of_pool(base, bytes);
  if (!first || *first < lanes_at) return std::nullopt;
  std::uint64_t seal = sum(base, shutdown_at, bytes);
  const auto add = [&](std::uint64_t begin, std::uint64_t end) { seal = sum(base + begin, end - begin, seal); };
  add(descriptor_at, statistics_at);
  add(lanes_at, *first);
  for_each_zone(base, bytes, [&](const pool_zone& zone) {
    add(zone.begin, zone.begin + pool_zone::header_bytes + zone.chunks * pool_zone::chunk_header_bytes);
  });
  return seal;
}

// The same with this release's checksum.
[[nodiscard]] inline std::optional<std::uint64_t> seal_of_pool(const char* base, std::uint64_t bytes) {
  return seal_of_pool(base, bytes, checksum);
}

// As is_checksum: whether a pool, which this or an earlier release has closed, is as `seal` says.
[[nodiscard]] inline bool is_seal_of_pool(std::uint64_t seal, const char* base, std::uint64_t bytes) {
  return seal == seal_of_pool(base, bytes) || seal == seal_of_pool(base, bytes, hash_of_bytes);
}

}  // namespace pmlab::media
