// Random operations on an index and on a std::map side by side: every answer must agree.
#pragma once

#include <pmlab/indexes/index.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "support/comparison.hpp"
#include "support/operations.hpp"

namespace pmlab::tests {

struct differential_options {
  std::uint64_t seed = 1;
  std::size_t operations = 2000;
  key_set keys = key_set::anywhere;
  std::size_t key_count = 500;
  step_mix mix = {};
};

namespace detail {

inline std::uint64_t hard_value(random& source) {
  switch (source.below(8)) {
    case 0: return 0;
    case 1: return ~std::uint64_t{0};
    case 2: return 1;  // the same again and again: equal neighbours
    case 3: return std::uint64_t{1} << 63;
    default: return source.next();
  }
}

template <indexes::point_index Index>
std::string compare_batch(Index& index, const contents& model, const std::vector<std::uint64_t>& keys, random& source) {
  std::vector<std::uint64_t> asked(source.below(40));
  for (std::uint64_t& key : asked) key = source.one_in(4) ? source.next() : keys[source.below(keys.size())];
  std::vector<std::optional<std::uint64_t>> got(asked.size(), std::uint64_t{17});
  index.find_batch(asked, got);
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (got[i] != state_in(model, asked[i]))
      return "find_batch of " + std::to_string(asked.size()) + " is wrong about key " + std::to_string(asked[i]);
  return "";
}

}  // namespace detail

// Runs the operations that the options describe, starting from `model`, which `index` must hold. Returns "" or the
// difference.
template <indexes::point_index Index>
std::string run_differential(Index& index, contents& model, const differential_options& options) {
  random source(options.seed);
  const std::vector<std::uint64_t> keys = make_keys(options.keys, options.key_count, source);
  const bool in_order = options.keys == key_set::sequential || options.keys == key_set::descending;
  std::size_t next = 0;
  for (std::size_t i = 0; i < options.operations; ++i) {
    step s;
    s.what = random_action(source, options.mix);
    s.key = keys[source.below(keys.size())];
    if (in_order && s.what == action::insert && next < keys.size()) s.key = keys[next++];
    s.value = detail::hard_value(source);
    const answer expected = expect(s, model);
    const answer got = perform(s, index);
    const std::string where = "operation " + std::to_string(i) + " of " + std::string(to_string(options.keys)) +
                              " keys, seed " + std::to_string(options.seed) + ": ";
    if (got != expected) return where + to_string(s) + " answered " + to_string(got) + ", not " + to_string(expected);
    std::string wrong;
    if (source.one_in(16)) wrong = detail::compare_batch(index, model, keys, source);
    if constexpr (indexes::ordered_index<Index>) {
      if (wrong.empty() && source.one_in(8))
        wrong = compare_scan(index, model, s.key + source.below(3) - 1, source.below(50));
      if (wrong.empty() && source.one_in(32)) {
        const std::uint64_t other = keys[source.below(keys.size())];
        wrong = compare_range(index, model, s.key, other);
      }
    }
    if (wrong.empty() && source.one_in(options.operations / 8 + 1)) wrong = compare_all(index, model);
    if (!wrong.empty()) return where + wrong;
  }
  std::string wrong = compare_all(index, model);
  return wrong.empty() ? "" : "after seed " + std::to_string(options.seed) + ": " + wrong;
}

}  // namespace pmlab::tests
