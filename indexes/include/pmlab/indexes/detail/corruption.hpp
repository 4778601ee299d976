// The damage of a tree that does not open. It never leaves the index, which adds its name.
#pragma once

#include <pmlab/base/error.hpp>

#include <string>
#include <string_view>

namespace pmlab::indexes::detail {

struct corruption {
  std::string what;
};

// Returns open(). Replaces a corruption by a pmlab::error that names the tree: its `kind` and its `name`.
template <class Open>
decltype(auto) with_the_name(std::string_view kind, std::string_view name, Open&& open) {
  try {
    return open();
  } catch (const corruption& found) {
    throw error(std::string(kind) + " '" + std::string(name) + "' is corrupt: " + found.what,
                "`pmlab pool repair` copies its readable entries to a new pool");
  }
}

}  // namespace pmlab::indexes::detail
