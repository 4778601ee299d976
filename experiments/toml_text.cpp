// Values of TOML files as text.
#include "experiments/toml_text.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>

#include <algorithm>

#include <fmt/format.h>

namespace pmlab::experiments {

std::string text_of(const toml::node& node, std::string_view key, std::string_view file) {
  if (const auto* const text = node.as_string()) return text->get();
  if (const auto* const whole = node.as_integer()) return std::to_string(whole->get());
  if (const auto* const number = node.as_floating_point()) return fmt::format("{}", number->get());
  throw error(fmt::format("{}: {} is neither a text nor a number", place_of(file, node), key),
              "write it as on the command line, in quotation marks");
}

std::vector<std::string> texts_of(const toml::node& node, std::string_view key, std::string_view file) {
  const toml::array* const list = node.as_array();
  if (list == nullptr || list->empty())
    throw error(fmt::format("{}: {} is no list", place_of(file, node), key), fmt::format("write {} = [\"...\"]", key));
  std::vector<std::string> texts;
  for (const toml::node& one : *list) texts.push_back(text_of(one, key, file));
  return texts;
}

void refuse_unknown_keys(const toml::table& table, const std::vector<std::string_view>& known, std::string_view file) {
  for (const auto& [key, node] : table)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      throw error(fmt::format("{}: key '{}' is not known", place_of(file, key.source()), key.str()),
                  fmt::format("did you mean '{}'? docs/experiments.md lists them", nearest(key.str(), known)));
}

}  // namespace pmlab::experiments
