// "Did you mean ...?": the known name that is nearest to one that a user mistyped.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab {

// How many single-character insertions, deletions and replacements turn `a` into `b` (Levenshtein distance). Time
// O(|a| * |b|), memory O(|b|).
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

// The name of `known` that is nearest to `wrong`; the first one of several. Empty if nothing is known.
[[nodiscard]] inline std::string nearest(std::string_view wrong, std::span<const std::string_view> known) {
  const auto best = std::min_element(known.begin(), known.end(), [&](std::string_view a, std::string_view b) {
    return edit_distance(wrong, a) < edit_distance(wrong, b);
  });
  return best == known.end() ? std::string() : std::string(*best);
}

// True if `wrong` looks like a typing error for `name`: at most a third of its letters, and one more, differ. A word
// that is further away is another word, and suggesting it would mislead.
[[nodiscard]] inline bool is_near(std::string_view wrong, std::string_view name) {
  return edit_distance(wrong, name) <= wrong.size() / 3 + 1;
}

}  // namespace pmlab
