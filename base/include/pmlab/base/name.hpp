// The names that users give to what lies in a medium: indexes, stores, volumes, tables.
#pragma once

#include <pmlab/base/error.hpp>

#include <cstddef>
#include <string>
#include <string_view>

namespace pmlab {

// Throws pmlab::error if `name` has not 1 to `longest` characters, or a 0 among them: media keep names padded with
// zeros, and "a" and "a\0" would be one name. `thing` is what it shall name, for the message: "a volume".
inline void check_name(std::string_view name, std::size_t longest, std::string_view thing) {
  if (!name.empty() && name.size() <= longest && name.find('\0') == std::string_view::npos) return;
  std::string shown;
  for (const char c : name) c == '\0' ? shown.append("\\0") : shown.append(1, c);
  throw error("'" + shown + "' cannot name " + std::string(thing),
              "use 1 to " + std::to_string(longest) + " characters, none of them 0");
}

}  // namespace pmlab
