// A text that a child process leaves for the one that made it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <string_view>

namespace pmlab::verify {

// Lives in memory that both processes map. Cut off if it is too long.
template <std::size_t Bytes>
class shared_text {
 public:
  void put(std::string_view text) noexcept {
    const std::size_t length = std::min(text.size(), Bytes - 1);
    std::memcpy(text_.data(), text.data(), length);
    text_[length] = '\0';
  }
  [[nodiscard]] const char* get() const noexcept { return text_.data(); }

 private:
  std::array<char, Bytes> text_{};
};

}  // namespace pmlab::verify
