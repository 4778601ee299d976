// A hash of 64-bit keys that loses nothing: every hash has exactly one key, so that a table may store the hash (or the
// part of it that its place does not imply) and still give the key back.
#pragma once

#include <pmlab/base/hash.hpp>

#include <cstdint>

namespace pmlab::indexes::detail {

// The finalizer of MurmurHash3 (see docs/references.md): every bit of the key affects every bit of the hash.
[[nodiscard]] constexpr std::uint64_t hash_of_key(std::uint64_t key) noexcept {
  key ^= key >> 33;
  key *= 0xff51afd7ed558ccd;
  key ^= key >> 33;
  key *= 0xc4ceb9fe1a85ec53;
  key ^= key >> 33;
  return key;
}

// The key whose hash is `hash`.
[[nodiscard]] constexpr std::uint64_t key_of_hash(std::uint64_t hash) noexcept {
  // x ^= x >> 33 is its own inverse, since 33 is more than half of the width.
  hash ^= hash >> 33;
  hash *= inverse_of(0xc4ceb9fe1a85ec53);
  hash ^= hash >> 33;
  hash *= inverse_of(0xff51afd7ed558ccd);
  hash ^= hash >> 33;
  return hash;
}

static_assert(key_of_hash(hash_of_key(0)) == 0 && key_of_hash(hash_of_key(~0ULL)) == ~0ULL);
static_assert(key_of_hash(hash_of_key(0x0123456789abcdef)) == 0x0123456789abcdef);

}  // namespace pmlab::indexes::detail
