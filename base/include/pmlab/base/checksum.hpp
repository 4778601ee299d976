// A checksum of bytes, for finding damage: not for secrets, and not for telling apart inputs that an enemy chose.
#pragma once

#include <pmlab/base/hash.hpp>

#if !__has_include(<xxhash.h>)
#error pmlab: pools on persistent memory and stores have checksums of xxHash: install xxhash.h (Debian: libxxhash-dev)
#endif
// Its code is compiled here: a library of its own would be code that a simulated machine does not see.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstddef>
#include <cstdint>

namespace pmlab {

// XXH3 with 64 bits over [start, start + bytes): what other programs compute, too (`xxhsum -H3`, for seed 0). Damage is
// missed once in 2^64 times. `seed` makes checksums of the same bytes in different places differ. 10 bytes and more per
// nanosecond. The same on every machine. XXH3: Collet, https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
[[nodiscard]] inline std::uint64_t checksum(const void* start, std::size_t bytes, std::uint64_t seed = 0) noexcept {
  return XXH3_64bits_withSeed(start, bytes, seed);
}

// Whether `stored`, which was read from a medium, is the checksum of the bytes there. Releases before 0.2 wrote
// hash_of_bytes in its place: what they wrote can still be read.
[[nodiscard]] inline bool is_checksum(std::uint64_t stored, const void* start, std::size_t bytes,
                                      std::uint64_t seed = 0) noexcept {
  return stored == checksum(start, bytes, seed) || stored == hash_of_bytes(start, bytes, seed);
}

}  // namespace pmlab
