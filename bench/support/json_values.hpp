// Values that may be missing, in JSON. For sources that include nlohmann/json.hpp.
#pragma once

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pmlab {

// Null for nothing.
template <class T, class Json = nlohmann::ordered_json>
[[nodiscard]] Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// Null for an empty text.
template <class Json = nlohmann::ordered_json>
[[nodiscard]] Json text_or_null(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}

}  // namespace pmlab
