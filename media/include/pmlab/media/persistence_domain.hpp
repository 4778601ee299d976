// What a platform saves when the power fails, and so whether code on it has to flush.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace pmlab::media {

// Non-temporal stores wait in buffers outside of the caches: they need their fence under each of these.
enum class persistence_domain : std::uint8_t {
  adr,           // the memory controllers' queues: a line is durable once it has been written back
  eadr,          // the caches too: a store is durable once other threads can see it
  gpf,           // as eadr, by CXL's global persistent flush
  gpf_may_fail,  // a flush by the platform that may not finish: it leaves what adr does
};

// The names as users write them, in the order of the values.
inline constexpr std::array<std::string_view, 4> persistence_domain_names{"adr", "eadr", "gpf", "gpf-may-fail"};
// The name as users write it.
[[nodiscard]] constexpr std::string_view to_string(persistence_domain domain) noexcept {
  return persistence_domain_names[static_cast<std::size_t>(domain)];
}

// The domain of this name, or std::nullopt if there is none.
[[nodiscard]] constexpr std::optional<persistence_domain> persistence_domain_of(std::string_view name) noexcept {
  for (std::size_t i = 0; i < persistence_domain_names.size(); ++i)
    if (persistence_domain_names[i] == name) return static_cast<persistence_domain>(i);
  return std::nullopt;
}

// True if a store is durable as soon as other threads can see it: flushes are left out, fences stay.
[[nodiscard]] constexpr bool keeps_caches(persistence_domain domain) noexcept {
  return domain == persistence_domain::eadr || domain == persistence_domain::gpf;
}

// What the platform of a medium saves: `adr` of media that do not tell. Indexes need not ask: they always flush, and
// where the caches are saved the medium's own `flush` does nothing.
template <class Medium>
[[nodiscard]] persistence_domain persistence_of(const Medium& medium) noexcept {
  if constexpr (requires { medium.persistence(); })
    return medium.persistence();
  else
    return persistence_domain::adr;
}

}  // namespace pmlab::media
