// Values that may be missing, in JSON. For sources that include nlohmann/json.hpp.
#pragma once

#include <pmlab/base/counters.hpp>

#include <functional>
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

// The counters of `counts` that have names, each as figure(its count).
template <class Json = nlohmann::ordered_json, class Counts, class Figure = std::identity>
[[nodiscard]] Json counters_to_json(const Counts& counts, Figure&& figure = {}) {
  Json j;
  for (const counter<Counts>& c : Counts::counters)
    if (!c.name.empty()) j[std::string(c.name)] = figure(counts.*c.value);
  return j;
}

}  // namespace pmlab
