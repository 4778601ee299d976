// Options that PiBench has no place for: in environment variables, written as `pmlab bench` has them.
#pragma once

#include <pmlab/base/error.hpp>

#include <cstdlib>
#include <string>

namespace pmlab::pibench {

// parse(text), where text is the value of `variable`, or `otherwise` if that is empty or not set. A pmlab::error of
// `parse` names the variable.
template <class Parse>
[[nodiscard]] auto from_environment(const std::string& variable, const std::string& otherwise, Parse&& parse) {
  const char* const set = std::getenv(variable.c_str());
  const std::string text = set != nullptr ? set : "";
  try {
    return parse(text.empty() ? otherwise : text);
  } catch (const error& e) {
    throw error(variable + " '" + text + "': " + e.what(), "");
  }
}

}  // namespace pmlab::pibench
