// Colour, where a person sees it.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <unistd.h>

namespace pmlab {

// True: `file` is a terminal that shows colours, and the user does not refuse them (NO_COLOR, https://no-color.org).
[[nodiscard]] inline bool shows_colours(std::FILE* file) {
  const auto set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::string_view() : std::string_view(value);
  };
  return set("NO_COLOR").empty() && !set("TERM").empty() && set("TERM") != "dumb" && ::isatty(::fileno(file)) == 1;
}

// Every `word` of `text` in red.
[[nodiscard]] inline std::string reddened(std::string text, std::string_view word) {
  constexpr std::string_view red = "\x1b[1;31m";
  constexpr std::string_view plain = "\x1b[0m";
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    text.insert(at + word.size(), plain).insert(at, red);
    at += red.size() + word.size() + plain.size();
  }
  return text;
}

}  // namespace pmlab
