// How reports name a place in code, until checker/verify/source_lines.hpp puts the source line there.
#pragma once

#include <cstdio>
#include <string>

namespace pmlab::simulator {

// "{0x...}".
[[nodiscard]] inline std::string code_address(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "{%p}", address);
  return text;
}

}  // namespace pmlab::simulator
