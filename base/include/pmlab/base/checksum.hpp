// A checksum of bytes, for finding damage: not for secrets, and not for telling apart inputs that an enemy chose.
#pragma once

#include <pmlab/base/hash.hpp>
#if !defined XXH_INLINE_ALL && defined XXHASH_H_5627135585666179
#define PMLAB_XXHASH_WAS_THERE  ///< xxHash's header has come before, as a library.
#endif
#ifndef XXH_INLINE_ALL
#define XXH_INLINE_ALL 5627  ///< Compiled here: a simulated machine sees no code of a library.
#endif
#include <xxhash.h>  // xxHash's header: install it (Debian: libxxhash-dev)

#include <cstddef>
#include <cstdint>

namespace pmlab {

// XXH3 with 64 bits over [start, start + bytes), as other programs compute it (`xxhsum -H3`, for seed 0). Damage that
// is no forgery is missed once in 2^64 times. `seed` makes checksums of equal bytes in different places differ. The
// same on every machine; 10 bytes per ns. Collet: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md
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

// A file that includes this may include xxHash as a library, before or behind it: its names are no macros there. A file
// that has XXH_INLINE_ALL itself includes xxHash before.
#if XXH_INLINE_ALL + 0 == 5627
#undef XXH_versionNumber
#undef XXH_errorcode
#undef XXH_OK
#undef XXH_ERROR
#undef XXH32
#undef XXH32_canonicalFromHash
#undef XXH32_canonical_t
#undef XXH32_copyState
#undef XXH32_createState
#undef XXH32_digest
#undef XXH32_freeState
#undef XXH32_hashFromCanonical
#undef XXH32_reset
#undef XXH32_state_s
#undef XXH32_state_t
#undef XXH32_update
#undef XXH64
#undef XXH64_canonicalFromHash
#undef XXH64_canonical_t
#undef XXH64_copyState
#undef XXH64_createState
#undef XXH64_digest
#undef XXH64_freeState
#undef XXH64_hashFromCanonical
#undef XXH64_reset
#undef XXH64_state_s
#undef XXH64_state_t
#undef XXH64_update
#undef XXH3_state_s
#undef XXH3_state_t
#undef XXH3_createState
#undef XXH3_freeState
#undef XXH3_copyState
#undef XXH3_generateSecret
#undef XXH3_generateSecret_fromSeed
#undef XXH3_64bits
#undef XXH3_64bits_digest
#undef XXH3_64bits_reset
#undef XXH3_64bits_reset_withSecret
#undef XXH3_64bits_reset_withSecretandSeed
#undef XXH3_64bits_reset_withSeed
#undef XXH3_64bits_update
#undef XXH3_64bits_withSecret
#undef XXH3_64bits_withSecretandSeed
#undef XXH3_64bits_withSeed
#undef XXH128
#undef XXH128_canonicalFromHash
#undef XXH128_canonical_t
#undef XXH128_cmp
#undef XXH128_hashFromCanonical
#undef XXH128_hash_t
#undef XXH128_isEqual
#undef XXH3_128bits
#undef XXH3_128bits_digest
#undef XXH3_128bits_reset
#undef XXH3_128bits_reset_withSecret
#undef XXH3_128bits_reset_withSecretandSeed
#undef XXH3_128bits_reset_withSeed
#undef XXH3_128bits_update
#undef XXH3_128bits_withSecret
#undef XXH3_128bits_withSecretandSeed
#undef XXH3_128bits_withSeed
#undef XXH_NAMESPACE
#undef XXH_IPREF
#undef XXH_PUBLIC_API
#undef XXH_STATIC_LINKING_ONLY
#undef XXH_IMPLEMENTATION
#undef XXH_INLINE_ALL
#undef XXH_INLINE_ALL_31684351384
#ifndef PMLAB_XXHASH_WAS_THERE
#undef XXHASH_H_5627135585666179
#undef XXHASH_H_STATIC_13879238742
#endif
#undef PMLAB_XXHASH_WAS_THERE
#endif
