// Least recently used: the policy of the paper [ASYNCCACHE].
//
// Hits on the three most recently used entries of a set change nothing: popular entries are read by many threads at a
// time, which would otherwise take the set's line from each other at every hit.
//
// Use it to compare with the paper, or if recent reads predict the next ones best. Otherwise s3_fifo hits more.
#pragma once

#include <pmlab/cache/eviction/eviction.hpp>

#include <cstdint>

namespace pmlab::cache {

// Word: the ways, the most recently used one first.
class lru {
 public:
  [[nodiscard]] bool uses_side_words() const noexcept { return false; }
  [[nodiscard]] eviction_state initial() const noexcept { return {detail::way_order::initial, {}}; }
  [[nodiscard]] std::uint32_t hit(std::uint32_t word, unsigned way) const noexcept {
    return detail::way_order::position_of(word, way) < recent ? word : detail::way_order::with_first(word, way);
  }
  [[nodiscard]] unsigned victim(eviction_state& state, const tags_of_set& /*tags*/) const noexcept {
    return detail::way_order::at(state.word, ways - 1);
  }
  void filled(eviction_state& state, unsigned way, tag_type /*tag*/) const noexcept {
    state.word = detail::way_order::with_first(state.word, way);
  }
  [[nodiscard]] bool is_sound(const eviction_state& state) const noexcept {
    return detail::way_order::is_sound(state.word);
  }

 private:
  static constexpr unsigned recent = 3;
};

static_assert(eviction_policy<lru>);

}  // namespace pmlab::cache
