// Shared by the subcommands.
#include "tools/cli/command.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/spec.hpp>
#include "bench/support/lists.hpp"
#include "bench/support/quantity.hpp"

#include <cstddef>
#include <utility>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {

void text_options::operator()(const std::string& name, std::string& target, const std::string& what) const {
  app_.add_option(name, target, what)->type_name("");
}

CLI::Option* parsed_text_options::operator()(const std::string& name, const std::string& otherwise,
                                             const std::string& what,
                                             const std::function<void(const std::string&)>& read) const {
  if (!otherwise.empty()) read(otherwise);
  return app_.add_option_function<std::string>(name, read, what)->type_name("")->default_str(otherwise);
}

std::uint32_t count_within(const std::string& text, const std::string& option, std::uint64_t least,
                           std::uint64_t most) {
  const std::uint64_t count = bench::parse_count(text, option, least);
  if (count > most)
    throw error(fmt::format("{} '{}' is too large", option, text), fmt::format("give at most {}", most));
  return static_cast<std::uint32_t>(count);
}

std::uint64_t count_from_1(const std::string& text, const std::string& option) {
  return bench::parse_count(text, option);
}

std::uint64_t count_from_0(const std::string& text, const std::string& option) {
  return bench::parse_count(text, option, 0);
}

bool on_or_off(const std::string& text, const std::string& option) {
  if (text != "on" && text != "off")
    throw error(fmt::format("{} '{}' is neither on nor off", option, text), "give on or off");
  return text == "on";
}

std::vector<std::string> index_names(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists)
    for (std::string& name : split_list(list)) names.push_back(std::move(name));
  bench::refuse_twice(names, "--index");
  return names;
}

std::vector<unsigned> numbers_of(const std::string& list, const std::string& option) {
  const auto number = [&](const std::string& text) -> unsigned {
    constexpr std::uint64_t most = 1024;
    return count_within(text, option, 1, most);
  };
  std::vector<unsigned> numbers;
  for (const std::string& text : bench::words_of(list)) {
    // A sign in front is no range.
    const std::size_t dash = text.find('-', 1);
    const unsigned first = number(text.substr(0, dash));
    const unsigned last = dash == std::string::npos ? first : number(text.substr(dash + 1));
    if (last < first)
      throw error(fmt::format("{} '{}' ends before it begins", option, text), fmt::format("write {}-{}", last, first));
    for (unsigned n = first; n <= last; ++n) numbers.push_back(n);
  }
  bench::refuse_twice(numbers, option);
  return numbers;
}

}  // namespace pmlab::cli
