#include "bench/support/json_text.hpp"
#include "bench/support/printable.hpp"

#include <nlohmann/json.hpp>

namespace pmlab {
namespace {

// Escapes what is no UTF-8 in all texts and keys of `value`.
template <class Json>
Json escaped(const Json& value) {
  if (value.is_string()) {
    const auto& text = value.template get_ref<const std::string&>();
    return is_utf8(text) ? value : Json(printable(text));
  }
  if (value.is_array()) {
    Json made = Json::array();
    for (const Json& one : value) made.push_back(escaped(one));
    return made;
  }
  if (value.is_object()) {
    Json made = Json::object();
    for (const auto& [key, one] : value.items()) made[is_utf8(key) ? key : printable(key)] = escaped(one);
    return made;
  }
  return value;
}

template <class Json>
std::string text_of(const Json& document, int indent) {
  try {
    return document.dump(indent);
  } catch (const typename Json::type_error&) {
    return escaped(document).dump(indent);
  }
}

}  // namespace

std::string json_text(const nlohmann::ordered_json& document, int indent) { return text_of(document, indent); }
std::string json_text(const nlohmann::json& document, int indent) { return text_of(document, indent); }

}  // namespace pmlab
