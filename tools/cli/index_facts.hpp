// indexes/indexes.json as a text of the program: the facts of pmlab's own indexes.
#pragma once

#include "bench/support/named_text.hpp"

#include <span>

namespace pmlab::cli {

// One text, "indexes". CMake writes the function.
[[nodiscard]] std::span<const named_text> index_facts() noexcept;

}  // namespace pmlab::cli
