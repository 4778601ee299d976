#include "bench/input/reading_notes.hpp"

namespace pmlab::input {

std::vector<std::string>& reading_notes() {
  static std::vector<std::string> notes;
  return notes;
}

}  // namespace pmlab::input
