// Facts of this build from the build system.
#pragma once

#include <string_view>

namespace pmlab::bench {

[[nodiscard]] std::string_view build_flags() noexcept;
[[nodiscard]] std::string_view build_commit() noexcept;
[[nodiscard]] std::string_view build_version() noexcept;

}  // namespace pmlab::bench
