// Command lines in the form in which they are typed.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pmlab {

// In quotation marks, if it holds characters with a meaning to a shell: 'cache(cceh)'.
[[nodiscard]] inline std::string shell_form(std::string_view word) {
  if (!word.empty() && word.find_first_of(" \t\"'$&|;<>()*?{}") == std::string_view::npos) return std::string(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted += "'";
}

// pmlab with these arguments: "pmlab bench --index 'cache(cceh)'".
[[nodiscard]] inline std::string shell_form(std::span<const std::string> arguments) {
  std::string text = "pmlab";
  for (const std::string& word : arguments) text.append(" ").append(shell_form(std::string_view{word}));
  return text;
}

}  // namespace pmlab
