// The header of a pool file, read without opening the pool.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

namespace pmlab::media {

// The name of the layout that libpmemobj keeps in a pool. std::nullopt: this is no pool of one file, or it cannot be
// read (a device cannot). `file`: an open descriptor.
[[nodiscard]] inline std::optional<std::string> layout_of_pool(int file) {
  // PMDK's own format: a signature, and behind the first page the name, with zeros behind it.
  constexpr std::string_view signature("PMEMOBJ\0", 8);
  constexpr off_t name_at = 4096;
  std::array<char, signature.size()> first{};
  std::array<char, 1024> name{};
  if (::pread(file, first.data(), first.size(), 0) != static_cast<ssize_t>(first.size()) ||
      std::string_view(first.data(), first.size()) != signature ||
      ::pread(file, name.data(), name.size() - 1, name_at) != static_cast<ssize_t>(name.size() - 1))
    return std::nullopt;
  const std::string layout(name.data());
  const bool readable = std::all_of(layout.begin(), layout.end(), [](char c) { return c >= ' ' && c <= '~'; });
  return readable ? std::optional(layout) : std::nullopt;
}

// True if the file is that of the pool that is mapped at `pool`: each pool has random numbers in its first page.
[[nodiscard]] inline bool is_of_pool(int file, const void* pool) noexcept {
  std::array<char, 4096> page{};
  return ::pread(file, page.data(), page.size(), 0) == static_cast<ssize_t>(page.size()) &&
         std::memcmp(page.data(), pool, page.size()) == 0;
}

// The word at `offset` of the root object of a pool, whose content starts at the first multiple of `alignment` in it.
// std::nullopt: this is no pool, has no root object, or ends before the word. word_at(place): the pool's word there, as
// a std::optional.
template <class WordAt>
[[nodiscard]] std::optional<std::uint64_t> root_word_of_pool(WordAt&& word_at, std::uint64_t offset,
                                                             std::uint64_t alignment) {
  // PMDK's own format, of libpmemobj 1: behind the descriptor (2 KB from the second page on) the root object's place.
  constexpr std::uint64_t root_at = 4096 + 2048;
  constexpr std::uint64_t most = std::uint64_t{1} << 62;
  const std::optional<std::uint64_t> root = word_at(root_at);
  if (!root || *root == 0 || *root > most) return std::nullopt;
  return word_at((*root + alignment - 1) / alignment * alignment + offset);
}

// The words of a file.
struct words_of_file {
  int file;  // an open descriptor
  // The word at this offset; std::nullopt: the file ends before it.
  [[nodiscard]] std::optional<std::uint64_t> operator()(std::uint64_t place) const {
    std::uint64_t word = 0;
    if (::pread(file, &word, sizeof word, static_cast<off_t>(place)) != static_cast<ssize_t>(sizeof word))
      return std::nullopt;
    return word;
  }
};

// The words of a mapped file.
struct words_of_memory {
  const std::byte* begin;  // the first byte
  std::uint64_t bytes;     // the length of the mapping
  // The word at this offset; std::nullopt: the mapping ends before it.
  [[nodiscard]] std::optional<std::uint64_t> operator()(std::uint64_t place) const {
    std::uint64_t word = 0;
    if (bytes < sizeof word || place > bytes - sizeof word) return std::nullopt;
    std::memcpy(&word, begin + place, sizeof word);
    return word;
  }
};

}  // namespace pmlab::media
