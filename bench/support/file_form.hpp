// Names of things as names of files.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace pmlab {

// "simulated:aep@/x" -> "simulated-aep-x": for names of files, and for links to them.
[[nodiscard]] inline std::string file_form(std::string_view text) {
  std::string form;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
    if (plain)
      form += c;
    else if (!form.empty() && form.back() != '-')
      form += '-';
  }
  while (!form.empty() && form.back() == '-') form.pop_back();
  return form;
}

}  // namespace pmlab
