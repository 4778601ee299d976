// Which lines of a memory are the same for all hosts that share it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pmlab::simulator {

enum class coherence : std::uint8_t {
  full,     // all lines are coherent
  partial,  // the first bytes are
  none,
};

inline constexpr std::array<std::string_view, 3> coherence_names = {"full", "partial", "none"};

[[nodiscard]] constexpr std::string_view to_string(coherence c) noexcept {
  return coherence_names[static_cast<std::size_t>(c)];
}
[[nodiscard]] constexpr std::optional<coherence> coherence_of(std::string_view name) noexcept {
  for (std::size_t i = 0; i < coherence_names.size(); ++i)
    if (coherence_names[i] == name) return static_cast<coherence>(i);
  return std::nullopt;
}

}  // namespace pmlab::simulator
