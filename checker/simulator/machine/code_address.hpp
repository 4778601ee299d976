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

namespace detail {

[[nodiscard]] inline std::string code_addresses(std::span<const void* const> callers, const char* separator) {
  std::string text;
  for (const void* c : callers) {
    const std::string one = code_address(c);
    text.append(text.empty() ? "{" : separator).append(one, 1, one.size() - 2);
  }
  return text + "}";
}

}  // namespace detail

// "{0x...|0x...}": an address, its caller, and so on. The report names the first one that is not of the library's
// blocks.
[[nodiscard]] inline std::string code_address(std::span<const void* const> callers) {
  return detail::code_addresses(callers, "|");
}

// "{0x...>0x...}": the same, of which the report names the first one and its callers.
[[nodiscard]] inline std::string code_address_with_callers(std::span<const void* const> callers) {
  return detail::code_addresses(callers, ">");
}

}  // namespace pmlab::simulator
