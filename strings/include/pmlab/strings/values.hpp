// The values of a string index: a word, or bytes of any length.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/blocks.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace pmlab::strings {

// 8 bytes, in the key's own record: an update is one store, one flush and one fence.
struct word_values {
  // The result type of `find`.
  using value_type = std::uint64_t;
  // The parameter type of `insert`.
  using view = std::uint64_t;
  // Its name in the layout of an index.
  static constexpr std::string_view name = "words";
  // Whether a value has a block of its own in the medium.
  static constexpr bool in_blocks = false;

  // Every word is a value.
  static void check(view /*value*/) noexcept {}
};

// Up to `most_bytes` bytes, zeros included, in a block of their own: an update publishes the new block in the place of
// the old one, so that a crash leaves all of one or all of the other.
struct blob_values {
  // The result type of `find`: a copy.
  using value_type = std::string;
  // The parameter type of `insert`.
  using view = std::string_view;
  // Its name in the layout of an index.
  static constexpr std::string_view name = "blobs";
  // Whether a value has a block of its own in the medium.
  static constexpr bool in_blocks = true;
  // The longest value.
  static constexpr std::size_t most_bytes = std::size_t{1} << 20;

  // Throws pmlab::error: too long.
  static void check(view value) {
    if (value.size() > most_bytes)
      throw error("a value of " + std::to_string(value.size()) + " bytes is too long",
                  "a blob may have " + std::to_string(most_bytes) + " bytes: cut it into several entries");
  }
};

}  // namespace pmlab::strings
