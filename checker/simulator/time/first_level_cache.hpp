// The first-level cache of one core: most accesses hit it and need no other cache.
#pragma once

#include <pmlab/media/lines.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace pmlab::simulator {

// 32 KiB, eight ways. The set is the line's place in its 4 KiB page and full tags are compared, so the result is the
// same wherever the kernel placed the page, and no page needs to be looked up. Not thread-safe.
class first_level_cache {
 public:
  // `line` is an address / 64. `writable`: only if this core has stored to it, and since then no other core has taken
  // it or written it back.
  [[nodiscard]] bool holds(std::uintptr_t line, bool writable) const noexcept {
    const auto& set = sets_[line % set_count];
    const std::uint64_t tag = tag_of(line);
    for (const std::uint64_t word : set)
      if ((word | writable_bit) == (tag | writable_bit)) return !writable || (word & writable_bit) != 0;
    return false;
  }

  // Answers as `holds` does, and puts the line first if so.
  [[nodiscard]] bool use(std::uintptr_t line, bool writable) noexcept {
    auto& set = sets_[line % set_count];
    const std::uint64_t tag = tag_of(line);
    const std::uint64_t first = set[0];
    if (first == (tag | writable_bit) || (first == tag && !writable)) return true;
    for (std::size_t i = 1; i < ways; ++i) {
      const std::uint64_t here = set[i];
      if ((here | writable_bit) != (tag | writable_bit)) continue;
      if (writable && (here & writable_bit) == 0) return false;
      for (; i > 0; --i) set[i] = set[i - 1];
      set[0] = here;
      return true;
    }
    return false;
  }

  // Puts the line first, whether or not it is here. Lines that leave are in the second level still.
  void insert(std::uintptr_t line, bool writable) noexcept {
    auto& set = sets_[line % set_count];
    const std::uint64_t tag = tag_of(line);
    std::uint64_t moved = tag | (writable ? writable_bit : 0);
    for (std::size_t i = 0; i < ways; ++i) {
      const std::uint64_t here = set[i];
      set[i] = moved;
      if ((here | writable_bit) == (tag | writable_bit)) return;
      moved = here;
    }
  }

  void make_read_only(std::uintptr_t line) noexcept {
    for (std::uint64_t& word : sets_[line % set_count])
      if (word == (tag_of(line) | writable_bit)) word = tag_of(line);
  }

  void remove(std::uintptr_t line) noexcept {
    for (std::uint64_t& word : sets_[line % set_count])
      if ((word | writable_bit) == (tag_of(line) | writable_bit)) word = 0;
  }

 private:
  static constexpr std::size_t set_count = 64;
  static constexpr std::size_t ways = 8;
  static constexpr std::uint64_t writable_bit = 1;

  // 0 is the empty way.
  [[nodiscard]] static std::uint64_t tag_of(std::uintptr_t line) noexcept { return (line + 1) << 1; }

  alignas(media::cache_line_bytes) std::array<std::array<std::uint64_t, ways>, set_count> sets_{};
};

}  // namespace pmlab::simulator
