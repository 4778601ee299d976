// A text with a name: a file that a program carries in itself, so that it finds it wherever it runs.
#pragma once

#include <string_view>

namespace pmlab {

struct named_text {
  std::string_view name;
  std::string_view text;
};

}  // namespace pmlab
