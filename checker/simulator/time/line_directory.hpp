// The coherence directory: which caches hold which line.
#pragma once

#include "checker/simulator/machine/mapping.hpp"
#include "checker/simulator/time/page_frames.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::simulator {

// A set of cores.
class core_set {
 public:
  static constexpr unsigned most_cores = 128;

  [[nodiscard]] bool has(unsigned core) const noexcept { return (words_[core / 64] >> (core % 64) & 1) != 0; }
  [[nodiscard]] bool empty() const noexcept { return (words_[0] | words_[1]) == 0; }
  void add(unsigned core) noexcept { words_[core / 64] |= std::uint64_t{1} << (core % 64); }
  void remove(unsigned core) noexcept { words_[core / 64] &= ~(std::uint64_t{1} << (core % 64)); }

  [[nodiscard]] bool has_others_than(unsigned core) const noexcept {
    core_set others = *this;
    others.remove(core);
    return !others.empty();
  }

  // In ascending order. `visit` may change the set.
  template <class Visit>
  void for_each(Visit&& visit) const {
    const auto words = words_;
    for (unsigned i = 0; i < words.size(); ++i)
      for (std::uint64_t left = words[i]; left != 0; left &= left - 1)
        visit(i * 64 + static_cast<unsigned>(std::countr_zero(left)));
  }

 private:
  std::array<std::uint64_t, 2> words_{};
};

// One line. All zero: no cache has it, and memory is up to date.
struct line_state {
  core_set holders;                 // have it in their own caches
  std::uint64_t free_at = 0;        // until then it is on its way from one core to another
  std::uint8_t owner_plus_one = 0;  // the holder that may store to it without asking
  bool dirty = false;               // newer than memory
  std::uint8_t last_levels = 0;     // hosts whose last level has it, a bit for each

  static constexpr unsigned nobody = ~0U;
  [[nodiscard]] unsigned owner() const noexcept { return owner_plus_one == 0 ? nobody : owner_plus_one - 1U; }
  void give_to(unsigned core) noexcept { owner_plus_one = static_cast<std::uint8_t>(core + 1); }
  void take_from_owner() noexcept { owner_plus_one = 0; }
};

// The states of all lines, in memory that costs nothing until a page is touched. Not thread-safe.
class line_directory {
 public:
  line_directory() : states_(lines * sizeof(line_state)) {}

  [[nodiscard]] line_state& at(line_number line) noexcept { return states()[line]; }
  [[nodiscard]] const line_state& at(line_number line) const noexcept { return states()[line]; }

 private:
  static constexpr std::size_t lines = std::size_t{2} << (line_bits + frame_bits);

  [[nodiscard]] line_state* states() const noexcept { return reinterpret_cast<line_state*>(states_.start()); }

  mapping states_;
};

}  // namespace pmlab::simulator
