// The facts of the simulated machine, for <pmlab/base/platform.hpp>, which defines their meaning.
#pragma once

#include <cstdint>

// calls.hpp has it, too. NOLINTNEXTLINE(readability-redundant-declaration)
extern "C" std::uint64_t pmlab_machine_now() noexcept;

namespace pmlab::platform {

// The machine would have to undo their stores.
inline constexpr bool may_have_transactions = false;
// Simulated cores are not the kernel's.
inline constexpr bool binds_threads = false;
// Its pages are its own.
inline constexpr bool has_huge_pages = false;
// It reports accesses to freed blocks.
inline constexpr bool watches_heap = true;
// It observes atomic loads, and vectors only where they are asked for: platform_with_vectors.hpp.
#if defined(PMLAB_SIMULATED_VECTORS)
inline constexpr bool watches_words = false;
#else
inline constexpr bool watches_words = true;
#endif
// Not as many as the host has cores: figures repeat on any host.
inline constexpr unsigned recovery_threads = 2;
inline constexpr bool has_virtual_time = true;
inline std::uint64_t now() noexcept { return pmlab_machine_now(); }

}  // namespace pmlab::platform
