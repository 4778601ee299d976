// Lists on the command line: "a,b,c".
#pragma once

#include <pmlab/base/error.hpp>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace pmlab::bench {

// parse(word) of each word between commas.
template <class Parse>
[[nodiscard]] auto list_of(const std::string& list, Parse&& parse) {
  std::vector<decltype(parse(list))> values;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t end = std::min(list.find(',', start), list.size());
    values.push_back(parse(list.substr(start, end - start)));
    start = end + 1;
  }
  return values;
}

[[nodiscard]] inline std::vector<std::string> words_of(const std::string& list) {
  return list_of(list, [](const std::string& word) { return word; });
}

// Throws pmlab::error if two values of an option are alike: both would be measured, under one name.
template <class Value>
void refuse_twice(const std::vector<Value>& values, const std::string& option) {
  for (auto value = values.begin(); value != values.end(); ++value)
    if (std::find(values.begin(), value, *value) != value)
      throw error(fmt::format("{} names {} twice", option, *value), "name each once");
}

}  // namespace pmlab::bench
