// How reports name a place in code, until checker/verify/source_lines.hpp puts the source line there.
#pragma once

#include <cstdio>
#include <span>
#include <string>

namespace pmlab::simulator {

// "{0x...}".
[[nodiscard]] inline std::string code_address(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "{%p}", address);
  return text;
}

// "{0x...|0x...}": an address, its caller, and so on. The report names the first one that is not of the library's blocks.
[[nodiscard]] inline std::string code_address(std::span<const void* const> callers) {
  std::string text;
  for (const void* c : callers) {
    const std::string one = code_address(c);
    text.append(text.empty() ? "{" : "|").append(one, 1, one.size() - 2);
  }
  return text + "}";
}

}  // namespace pmlab::simulator
