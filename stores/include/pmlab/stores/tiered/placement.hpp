// Policies of placement: which drive holds what, with the names of HSE.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/tiered/layout.hpp>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace pmlab::stores {

// Which drive holds the log, and keys and values of the root and of the leaves. Values of the root are where the log
// is, since the log is their store. A drive that is full is no failure while the capacity drive has room: segments
// meant for the staging drive are taken there.
enum class placement : std::uint8_t {
  staging_only,          // all on the staging drive
  capacity_only,         // all on the capacity drive
  staging_max_capacity,  // all but the values of leaves on the staging drive
  staging_min_capacity,  // log and root on the staging drive, leaves on the capacity drive
  pmem_only,             // all on persistent memory
  pmem_max_capacity,     // all but the values of leaves on persistent memory
};

// The names, in the order of the enumerators.
inline constexpr std::array<std::string_view, 6> placement_names{
    "staging_only", "capacity_only", "staging_max_capacity", "staging_min_capacity", "pmem_only", "pmem_max_capacity"};
// The enumerator's name.
[[nodiscard]] constexpr std::string_view name_of(placement p) noexcept {
  return placement_names[static_cast<std::size_t>(p)];
}

namespace detail::tiered {

// The row of a policy.
struct placement_table {
  media_class log;  // and values of the root, and manifests
  media_class root_keys;
  media_class leaf_keys;
  media_class leaf_values;
};

// Throws pmlab::error: the policy names a class that the store does not have.
[[nodiscard]] inline placement_table table_of(placement p, bool has_staging) {
  constexpr media_class staging = media_class::staging;
  constexpr media_class capacity = media_class::capacity;
  const std::string policy = "policy " + std::string(name_of(p));
  if (p == placement::pmem_only || p == placement::pmem_max_capacity)
    throw error(policy + " puts keys and values on persistent memory, and the store has drives only",
                "choose another one; `staging` may be a file on persistent memory");
  if (p != placement::capacity_only && !has_staging)
    throw error(policy + " names the staging drive, and there is none", "give one, or choose capacity_only");
  if (p == placement::staging_only) return {staging, staging, staging, staging};
  if (p == placement::staging_max_capacity) return {staging, staging, staging, capacity};
  if (p == placement::staging_min_capacity) return {staging, staging, capacity, capacity};
  return {capacity, capacity, capacity, capacity};
}

}  // namespace detail::tiered
}  // namespace pmlab::stores
