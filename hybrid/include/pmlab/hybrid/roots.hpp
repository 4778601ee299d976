// The mark of a half that is the replica: for code that inspects media.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cstdint>
#include <string_view>

namespace pmlab::hybrid {

// Suffix of the name of a replica in a durable medium: the root of its mark, whose word is 1.
inline constexpr std::string_view replica_suffix = ":r";
// The layout of that root.
inline constexpr std::string_view replica_layout = "hybrid_replica";
// The version of that layout.
inline constexpr std::uint64_t replica_version = 1;

}  // namespace pmlab::hybrid
