// The word that every store of the kernels writes, so that a test can see where they wrote.
#pragma once

#include <cstdint>

namespace pmlab::microbench {

inline constexpr std::uint64_t stored_word = 0x706d6c6162706d6c;

}  // namespace pmlab::microbench
