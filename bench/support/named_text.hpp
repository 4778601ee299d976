// A text with a name: a file that a program carries in itself, so that it finds it wherever it runs.
#pragma once

#include <string_view>

namespace pmlab {

// Both are literals of the program.
struct named_text {
  std::string_view name;  // name of the file, without its ending
  std::string_view text;  // all of it
};

}  // namespace pmlab
