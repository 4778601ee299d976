// One operation of a test and the model that computes its expected result.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::verify {

enum class action : std::uint8_t {
  insert,
  update,
  upsert,
  erase,
  find,
  load,  // the effect of a load on one key: it is present, with its old value if it had one
  meet,  // whether an iterator meets the key: it is present, with any value
};

[[nodiscard]] constexpr std::string_view to_string(action a) noexcept {
  switch (a) {
    case action::insert: return "insert";
    case action::update: return "update";
    case action::upsert: return "upsert";
    case action::erase: return "erase";
    case action::find: return "find";
    case action::load: return "load";
    case action::meet: return "meet";
  }
  return "?";
}

// Values from here on are large in a store of values of many sizes, and all of one size.
inline constexpr std::uint64_t first_large_value = std::uint64_t{1} << 63;

struct step {
  action what = action::find;
  std::uint64_t key = 0;
  std::uint64_t value = 0;  // insert, update, upsert, load
};

// The result of a step: an outcome, or the result of find.
struct answer {
  std::optional<indexes::outcome> changed;
  std::optional<std::uint64_t> found;
  friend bool operator==(const answer&, const answer&) = default;
};

[[nodiscard]] inline std::string to_string(const answer& a) {
  if (a.changed) return std::string(indexes::to_string(*a.changed));
  return a.found ? "found " + std::to_string(*a.found) : std::string("not found");
}

[[nodiscard]] inline std::string to_string(const step& s) {
  return std::string(to_string(s.what)) + "(" + std::to_string(s.key) +
         (s.what == action::erase || s.what == action::find || s.what == action::meet
              ? ""
              : ", " + std::to_string(s.value)) +
         ")";
}

using contents = std::map<std::uint64_t, std::uint64_t>;

// The state of one key: absent, or a value.
using key_state = std::optional<std::uint64_t>;

[[nodiscard]] inline std::string in_words(const key_state& state) { return to_string(answer{{}, state}); }

// Stands for a value, where it is of no matter.
inline constexpr std::uint64_t met = 1;

// The expected result of `s` on a key in `state`, which it changes.
inline answer expect(const step& s, key_state& state) {
  using indexes::outcome;
  const bool there = state.has_value();
  switch (s.what) {
    case action::insert:
      if (there) return {outcome::exists, {}};
      state = s.value;
      return {outcome::inserted, {}};
    case action::update:
      if (!there) return {outcome::absent, {}};
      state = s.value;
      return {outcome::updated, {}};
    case action::upsert: state = s.value; return {there ? outcome::updated : outcome::inserted, {}};
    case action::erase: state.reset(); return {there ? outcome::erased : outcome::absent, {}};
    case action::load:
      if (!there) state = s.value;
      return {outcome::inserted, {}};
    case action::meet: return {{}, there ? std::optional(met) : std::nullopt};
    case action::find: break;
  }
  return {{}, state};
}

[[nodiscard]] inline key_state state_in(const contents& model, std::uint64_t key) {
  const auto found = model.find(key);
  return found == model.end() ? key_state() : key_state(found->second);
}

inline void put_state(contents& model, std::uint64_t key, const key_state& state) {
  if (state)
    model.insert_or_assign(key, *state);
  else
    model.erase(key);
}

// True if a key that was in state `before` when `s` was cut off may be in state `found`: `s` happened, or it did not.
[[nodiscard]] inline bool wholly_or_not_at_all(const step& s, const key_state& before, const key_state& found) {
  if (found == before) return true;
  switch (s.what) {
    case action::insert:
    case action::load: return !before && found == s.value;
    case action::update: return before && found == s.value;
    case action::upsert: return found == s.value;
    case action::erase: return !found;
    case action::meet:
    case action::find: break;
  }
  return false;
}

// The expected result of `s` on `model`, which it changes.
inline answer expect(const step& s, contents& model) {
  key_state state = state_in(model, s.key);
  answer expected = expect(s, state);
  put_state(model, s.key, state);
  return expected;
}

template <indexes::point_index Index>
answer perform(const step& s, Index& index) {
  switch (s.what) {
    case action::insert: return {index.insert(s.key, s.value), {}};
    case action::update: return {index.update(s.key, s.value), {}};
    case action::upsert: return {index.upsert(s.key, s.value), {}};
    case action::erase: return {index.erase(s.key), {}};
    case action::load: index.insert(s.key, s.value); return {indexes::outcome::inserted, {}};
    case action::meet:
    case action::find: break;
  }
  return {{}, index.find(s.key)};
}

// How many of a hundred steps are of each kind; the rest are finds.
struct step_mix {
  unsigned insert = 30;
  unsigned update = 15;
  unsigned upsert = 15;
  unsigned erase = 25;
};

[[nodiscard]] inline action random_action(splitmix64& source, const step_mix& mix) {
  const std::uint64_t roll = source.below(100);
  if (roll < mix.insert) return action::insert;
  if (roll < mix.insert + mix.update) return action::update;
  if (roll < mix.insert + mix.update + mix.upsert) return action::upsert;
  return roll < mix.insert + mix.update + mix.upsert + mix.erase ? action::erase : action::find;
}

[[nodiscard]] constexpr bool is_read(action a) noexcept { return a == action::find || a == action::meet; }

// What an index does not have.
struct missing_operations {
  bool update = false;
  bool erase = false;
};

// The operation that an index has in the place of `a`.
[[nodiscard]] constexpr action in_place_of(action a, const missing_operations& missing) noexcept {
  if (a == action::update && missing.update) return action::insert;
  return a == action::erase && missing.erase ? action::find : a;
}

// Sets of keys that are hard on an index, each in its own way.
enum class key_set : std::uint8_t {
  few,         // sixteen keys: the same slots again and again
  dense,       // neighbours, in random order
  sequential,  // ascending: the rightmost node splits, and all high bits are equal
  descending,  // the leftmost position of the leftmost node
  clustered,   // dense clusters far from each other
  anywhere,    // all 64 bits random
  high_bits,   // differ only in their highest bits
  extremes,    // around 0, 2^63 and 2^64 - 1
};

inline constexpr key_set all_key_sets[] = {key_set::few,        key_set::dense,     key_set::sequential,
                                           key_set::descending, key_set::clustered, key_set::anywhere,
                                           key_set::high_bits,  key_set::extremes};

[[nodiscard]] constexpr std::string_view to_string(key_set k) noexcept {
  switch (k) {
    case key_set::few: return "few";
    case key_set::dense: return "dense";
    case key_set::sequential: return "sequential";
    case key_set::descending: return "descending";
    case key_set::clustered: return "clustered";
    case key_set::anywhere: return "anywhere";
    case key_set::high_bits: return "high_bits";
    case key_set::extremes: return "extremes";
  }
  return "?";
}

// `count` distinct keys (fewer for `few`), in the order in which they are hard.
[[nodiscard]] inline std::vector<std::uint64_t> make_keys(key_set kind, std::size_t count, splitmix64& source) {
  std::vector<std::uint64_t> keys;
  const std::uint64_t start = source.next() >> 1;
  for (std::uint64_t i = 0; i < count; ++i) switch (kind) {
      case key_set::few:
        if (i < 16) keys.push_back(i);
        break;
      case key_set::dense:
      case key_set::sequential: keys.push_back(start + i); break;
      case key_set::descending: keys.push_back(start + count - i); break;
      case key_set::clustered: keys.push_back((i / 64) * golden_ratio + i % 64); break;
      case key_set::anywhere: keys.push_back(source.next()); break;
      case key_set::high_bits: keys.push_back(i << 44); break;
      case key_set::extremes: {
        constexpr std::uint64_t anchors[] = {0, std::uint64_t{1} << 63, 0};
        keys.push_back(i % 3 == 2 ? ~std::uint64_t{0} - i / 3 : anchors[i % 3] + i / 3);
        break;
      }
    }
  if (kind == key_set::dense || kind == key_set::clustered || kind == key_set::extremes)
    for (std::size_t i = keys.size(); i > 1; --i) std::swap(keys[i - 1], keys[source.below(i)]);
  return keys;
}

// All entries of `index` in ascending order of keys, duplicates included.
template <indexes::point_index Index>
std::vector<indexes::entry> entries_of(const Index& index) {
  std::vector<indexes::entry> all;
  index.for_each([&](std::uint64_t key, std::uint64_t value) { all.push_back({key, value}); });
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  return all;
}

}  // namespace pmlab::verify
