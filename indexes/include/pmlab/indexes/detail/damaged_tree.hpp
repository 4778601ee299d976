// The error of a tree that was damaged from outside.
#pragma once

#include <pmlab/base/error.hpp>

#include <string>
#include <string_view>

namespace pmlab::indexes::detail {

// `tree`: its kind; `part`: its damaged part.
[[nodiscard]] inline error damaged_tree(std::string_view tree, const std::string& part) {
  return {"this " + std::string(tree) + " is corrupt: " + part, "restore the pool from a copy, or repair it"};
}

}  // namespace pmlab::indexes::detail
