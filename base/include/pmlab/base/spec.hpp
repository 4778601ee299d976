// A specification of an object that is composed of others: NAME(ARGUMENT,...,KEY=VALUE,...).
//
//   fast_fair
//   cache(fast_fair,mode=adaptive,capacity=10%)
//   hybrid(hash=cache(cceh)@pmem,tree=fast_fair@dram)
//
// Arguments and values are text, which may hold commas within brackets of its own, and so be the specification of
// another thing. Blanks around the parts do not count.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab {

// NAME(ARGUMENT,...,KEY=VALUE,...) in its parts.
struct spec {
  std::string name;                                          // the text before the bracket
  std::vector<std::string> arguments;                        // those without a key, in their order
  std::vector<std::pair<std::string, std::string>> options;  // key and value, in their order; no key twice

  // The value of `key`, or std::nullopt if it was not given.
  [[nodiscard]] std::optional<std::string_view> option(std::string_view key) const {
    for (const auto& [given, value] : options)
      if (given == key) return value;
    return std::nullopt;
  }

  // Another word for an option, and the option.
  using synonym = std::pair<std::string_view, std::string_view>;

  // Throws pmlab::error if a key is given that is none of `known`, with the one that is meant by it among `synonyms`,
  // or else the nearest; with all of them, if none is near.
  void allow(std::span<const std::string_view> known, std::span<const synonym> synonyms = {}) const {
    for (const auto& [key, value] : options) {
      if (std::find(known.begin(), known.end(), key) != known.end()) continue;
      throw error(name + "() has no option '" + key + "'",
                  known.empty() ? "leave it out" : remedy(key, known, synonyms));
    }
  }

 private:
  [[nodiscard]] static std::string remedy(std::string_view key, std::span<const std::string_view> known,
                                          std::span<const synonym> synonyms) {
    for (const auto& [word, meant] : synonyms)
      if (word == key) return "did you mean " + std::string(meant) + "?";
    if (const std::string near = nearest(key, known); is_near(key, near)) return "did you mean " + near + "?";
    std::string all;
    for (const std::string_view k : known) all += (all.empty() ? "" : ", ") + std::string(k);
    return "its options are " + all;
  }
};

namespace detail {

[[nodiscard]] inline std::string_view without_blanks(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

[[nodiscard]] inline std::string in_quotes(std::string_view text) {
  std::string result(1, '\'');
  result.append(text).push_back('\'');
  return result;
}

}  // namespace detail

// "a,b(c,d),e" -> "a", "b(c,d)", "e": the commas within brackets separate nothing. An empty text is one empty part.
// Throws pmlab::error: a bracket has no partner.
[[nodiscard]] inline std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  std::size_t depth = 0;
  std::size_t start = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')' && depth-- == 0)
      throw error(detail::in_quotes(text) + " closes a bracket that it never opened", "write NAME(...,KEY=VALUE,...)");
    if (text[i] == ',' && depth == 0) {
      parts.emplace_back(detail::without_blanks(text.substr(start, i - start)));
      start = i + 1;
    }
  }
  if (depth != 0)
    throw error(detail::in_quotes(text) + " does not close a bracket that it opens", "write NAME(...,KEY=VALUE,...)");
  parts.emplace_back(detail::without_blanks(text.substr(start)));
  return parts;
}

// Throws pmlab::error: no name, an empty part, a key twice, text after the last bracket, brackets without a partner.
[[nodiscard]] inline spec parse_spec(std::string_view text) {
  const std::string_view whole = detail::without_blanks(text);
  const auto refuse = [&](const std::string& what) {
    return error(detail::in_quotes(whole) + " " + what, "write NAME or NAME(ARGUMENT,...,KEY=VALUE,...)");
  };
  const std::size_t open = whole.find('(');
  spec result;
  result.name = detail::without_blanks(whole.substr(0, open));
  if (result.name.empty()) throw refuse("names nothing");
  // Every bracket has a partner, so the last one has.
  static_cast<void>(split_list(whole));
  if (open == std::string_view::npos) return result;
  if (whole.back() != ')') throw refuse("continues after its last bracket");
  for (const std::string& part : split_list(whole.substr(open + 1, whole.size() - open - 2))) {
    if (part.empty()) throw refuse("has an empty part");
    // An equals sign within brackets belongs to the specification in them.
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals > part.find('(')) {
      result.arguments.push_back(part);
      continue;
    }
    const std::string key(detail::without_blanks(std::string_view(part).substr(0, equals)));
    const std::string value(detail::without_blanks(std::string_view(part).substr(equals + 1)));
    if (key.empty() || value.empty()) throw refuse("has a key or a value that is empty");
    if (result.option(key)) throw refuse("gives " + detail::in_quotes(key) + " twice");
    result.options.emplace_back(key, value);
  }
  return result;
}

}  // namespace pmlab
