// The facts of the simulated machine as platform.hpp states them, but one: words that threads share are read by vectors
// where the CPU has them, as in the programs that are measured. The machine sees such a load as one of 16 or 32 bytes.
//
// Not the usual: virtual times would depend on the CPU of the host. Chosen by -DPMLAB_PLATFORM_HEADER.
#pragma once

#include <cstdint>

// calls.hpp has it, too. NOLINTNEXTLINE(readability-redundant-declaration)
extern "C" std::uint64_t pmlab_machine_now() noexcept;

namespace pmlab::platform {

inline constexpr bool may_have_transactions = false;
inline constexpr bool binds_threads = false;
inline constexpr bool has_huge_pages = false;
inline constexpr bool watches_heap = true;
inline constexpr bool watches_words = false;
inline constexpr unsigned recovery_threads = 2;
inline constexpr bool has_virtual_time = true;
inline std::uint64_t now() noexcept { return pmlab_machine_now(); }

}  // namespace pmlab::platform
