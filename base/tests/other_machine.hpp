// The facts of a machine that does not exist, for <pmlab/base/platform.hpp>.
#pragma once

#include <cstdint>

namespace pmlab::platform {

inline constexpr bool may_have_transactions = false;
inline constexpr bool binds_threads = false;
inline constexpr bool has_huge_pages = false;
inline constexpr bool watches_heap = true;
inline constexpr bool watches_words = true;
inline constexpr unsigned recovery_threads = 3;
inline constexpr bool has_virtual_time = true;
inline std::uint64_t now() noexcept { return 42; }

}  // namespace pmlab::platform
