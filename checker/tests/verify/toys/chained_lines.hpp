// A block with lines of entries, and further lines for their chains: the part of the toy chained_table without a
// defect.
#pragma once

#include "small_map.hpp"

#include <array>
#include <new>

namespace pmlab::toys {

struct alignas(media::cache_line_bytes) chained_line {
  static constexpr std::size_t entries = 3;
  std::array<word, entries> key{};
  std::array<word, entries> value{};
  word present{0};  // a bit for each entry
  word next{0};     // number of the chain's next line; 0: none
};

// Followed by twice as many lines: where a hash leads to, and those of chains.
struct alignas(media::cache_line_bytes) chained_lines {
  word lines{0};
  word chained{0};
  std::array<word, 6> unused{};

  struct place {
    chained_line* in = nullptr;
    std::size_t slot = 0;
  };

  static std::size_t bytes_of(std::size_t lines) { return sizeof(chained_lines) + 2 * lines * sizeof(chained_line); }
  [[nodiscard]] std::size_t bytes() const { return bytes_of(get(lines)); }
  [[nodiscard]] chained_line& line(std::size_t n) { return reinterpret_cast<chained_line*>(this + 1)[n]; }
  [[nodiscard]] bool is_crowded() const { return get(chained) * 2 >= get(lines); }

  template <class Publication>
  static chained_lines* make(Publication& change, std::size_t lines) {
    void* const block = change.allocate(bytes_of(lines), alignof(chained_lines));
    if (block == nullptr) return nullptr;
    auto* const made = ::new (block) chained_lines;
    for (std::size_t n = 0; n < 2 * lines; ++n) ::new (&made->line(n)) chained_line;
    put(made->lines, lines);
    return made;
  }

  place search(std::uint64_t key) {
    for (std::size_t n = hash_of(key) % get(lines);; n = get(line(n).next)) {
      chained_line& l = line(n);
      for (std::size_t s = 0; s < chained_line::entries; ++s)
        if ((get(l.present) >> s & 1) != 0 && get(l.key[s]) == key) return {&l, s};
      if (get(l.next) == 0) return {};
    }
  }

  // (C1) < (C2): a line is durable before its chain leads to it. `medium` is null for a block that nothing leads to
  // yet.
  // False: no line is left.
  template <class Medium>
  bool add(Medium* medium, std::uint64_t key, std::uint64_t value) {
    const auto durably = [&](const auto& object) {
      if (medium != nullptr) media::persist(*medium, object);
    };
    chained_line* l = &line(hash_of(key) % get(lines));
    for (;; l = &line(get(l->next))) {
      for (std::size_t s = 0; s < chained_line::entries; ++s)
        if ((get(l->present) >> s & 1) == 0) {
          put(l->key[s], key);
          put(l->value[s], value);
          put(l->present, get(l->present) | std::uint64_t{1} << s);  // the last one of its line
          durably(*l);
          return true;
        }
      if (get(l->next) == 0) break;
    }
    const std::uint64_t used = get(chained);
    if (used == get(lines)) return false;
    chained_line& further = line(get(lines) + used);
    put(further.key[0], key);
    put(further.value[0], value);
    put(further.present, 1);
    put(chained, used + 1);
    durably(further);
    durably(*this);                   // (C1)
    put(l->next, get(lines) + used);  // (C2)
    durably(*l);
    return true;
  }

  template <class Function>
  void for_each(Function&& function) {
    for (std::size_t first = 0; first < get(lines); ++first)
      for (std::size_t n = first;; n = get(line(n).next)) {
        chained_line& l = line(n);
        for (std::size_t e = 0; e < chained_line::entries; ++e)
          if ((get(l.present) >> e & 1) != 0) function(get(l.key[e]), get(l.value[e]));
        if (get(l.next) == 0) break;
      }
  }
};

}  // namespace pmlab::toys
