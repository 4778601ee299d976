// The history model of a run.
#include "checker/verify/history_model.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <bit>
#include <optional>

namespace pmlab::verify {
namespace {

bool is_change(const answer& a) {
  using indexes::outcome;
  return a.changed == outcome::inserted || a.changed == outcome::updated || a.changed == outcome::erased;
}

std::string not_inserted(const indexes::entry& e) {
  return "key " + std::to_string(e.key) + " is present, with value " + std::to_string(e.value) +
         ", and no thread inserted it";
}

key_state state_in(std::span<const indexes::entry> entries, std::uint64_t key) {
  const auto found = std::lower_bound(entries.begin(), entries.end(), key,
                                      [](const indexes::entry& e, std::uint64_t wanted) { return e.key < wanted; });
  return found != entries.end() && found->key == key ? key_state(found->value) : std::nullopt;
}

}  // namespace

history_model::history_model(std::vector<std::uint64_t> keys) : keys_(std::move(keys)), states_(keys_.size()) {}

history_model::key_history& history_model::of(std::uint64_t key) {
  return states_[static_cast<std::size_t>(std::lower_bound(keys_.begin(), keys_.end(), key) - keys_.begin())];
}

void history_model::there_before(const indexes::entry& e) { of(e.key).courses.front().state = e.value; }

void history_model::add_operation(key_history& k, unsigned thread, const step& s, const answer* coming) const {
  k.under_way.push_back({thread, s, coming == nullptr ? taken_effect{} : taken_effect::with(*coming), clock_});
  k.reachable.clear();
}

history_model::taken_effect history_model::taken_effect::with(const answer& a) noexcept {
  constexpr std::uint16_t first_outcome = 3;
  if (a.changed) return {0, static_cast<std::uint16_t>(first_outcome + static_cast<std::uint16_t>(*a.changed))};
  return a.found ? taken_effect{*a.found, 2} : taken_effect{0, 1};
}

// Adds courses to some that are distinct, by a table: eight operations under way on one key have ten thousands of
// courses. Effects beyond `operations` are empty.
class history_model::distinct_courses {
 public:
  distinct_courses(std::vector<course>& courses, std::size_t operations)
      : courses_(courses), operations_(static_cast<std::ptrdiff_t>(operations)) {}

  void add_if_new(const course& c) {
    if (courses_.size() < few) {
      // The last ones first: an equal course was mostly added a moment ago.
      if (std::find_if(courses_.rbegin(), courses_.rend(), [&](const course& o) { return same(o, c); }) ==
          courses_.rend())
        courses_.push_back(c);
      return;
    }
    if (2 * courses_.size() >= table_.size()) make_table();
    if (std::uint32_t& place = place_of(c); place == free) {
      courses_.push_back(c);
      place = static_cast<std::uint32_t>(courses_.size());
    }
  }

 private:
  static constexpr std::size_t few = 32;
  static constexpr std::uint32_t free = 0;

  [[nodiscard]] bool same(const course& a, const course& b) const noexcept {
    return a.state == b.state && std::equal(a.effects.begin(), a.effects.begin() + operations_, b.effects.begin());
  }
  [[nodiscard]] std::uint64_t hash_of(const course& c) const noexcept {
    std::uint64_t hash = c.state ? mix_bits(*c.state + 1) : 0;
    std::for_each(c.effects.begin(), c.effects.begin() + operations_,
                  [&](const taken_effect& e) { hash = mix_bits(hash ^ e.found) + e.kind; });
    return mix_bits(hash);
  }
  // The place of an equal course, or a free one.
  [[nodiscard]] std::uint32_t& place_of(const course& c) noexcept {
    std::size_t at = hash_of(c) & (table_.size() - 1);
    while (table_[at] != free && !same(courses_[table_[at] - 1], c)) at = (at + 1) & (table_.size() - 1);
    return table_[at];
  }
  void make_table() {
    table_.assign(std::bit_ceil(4 * courses_.size()), free);
    for (std::size_t i = 0; i < courses_.size(); ++i) place_of(courses_[i]) = static_cast<std::uint32_t>(i + 1);
  }

  std::vector<course>& courses_;
  std::ptrdiff_t operations_;
  std::vector<std::uint32_t> table_;  // numbers of courses, from 1 on; empty while there are few
};

// Lets operations under way take effect in `courses`, in every order; of operation `last` only its orders up to it
// (none: all of them).
void history_model::let_happen(std::vector<course>& courses, const std::vector<operation>& under_way,
                               std::optional<std::size_t> last) {
  distinct_courses all(courses, under_way.size());
  for (std::size_t i = 0; i < courses.size(); ++i) {
    if (last && courses[i].effects[*last]) continue;
    for (std::size_t which = 0; which < under_way.size(); ++which) {
      if (courses[i].effects[which]) continue;
      course next = courses[i];
      next.effects[which] = taken_effect::with(expect(under_way[which].what, next.state));
      if (const taken_effect& coming = under_way[which].coming; coming && coming != next.effects[which]) continue;
      all.add_if_new(next);
    }
  }
}

// The operation is over. Courses that differed in it only are one now.
void history_model::drop(key_history& k, std::size_t which) {
  const std::size_t count = k.under_way.size();
  std::vector<course> left;
  distinct_courses all(left, count - 1);
  for (course& c : k.courses) {
    for (std::size_t i = which; i + 1 < count; ++i) c.effects[i] = c.effects[i + 1];
    c.effects[count - 1] = {};
    all.add_if_new(c);
  }
  k.courses = std::move(left);
  k.under_way.erase(k.under_way.begin() + static_cast<std::ptrdiff_t>(which));
  k.reachable.clear();
  if (is_settled(k)) k.told.clear();
}

void history_model::begin(key_history& k, unsigned thread, const step& s, const answer* coming) {
  if (is_settled(k))
    for (const active_scan& scan : scans_)
      if (s.key >= scan.from) add_operation(k, scan.thread, {scan.what, s.key, 0});
  add_operation(k, thread, s, coming);
}

std::optional<std::size_t> history_model::place_of(const key_history& k, unsigned thread) {
  for (std::size_t i = 0; i < k.under_way.size(); ++i)
    if (k.under_way[i].thread == thread) return i;
  return std::nullopt;
}

// The history of the key since it was settled, a line for each operation; `blame`: the last answer is the wrong one.
std::string history_model::story(const key_history& k, bool blame) {
  std::string text;
  const auto add = [&text](const operation& o, const std::string& end, bool blamed = false) {
    text.append(blamed ? "\n  > thread " : "\n    thread ").append(std::to_string(o.thread)).append(": ");
    text.append(to_string(o.what)).append(end);
  };
  for (std::size_t i = 0; i < k.told.size(); ++i)
    add(k.told[i].first, " -> " + to_string(k.told[i].second), blame && i + 1 == k.told.size());
  for (const operation& o : k.under_way) add(o, o.died != 0 ? " (its host died)" : " (under way)");
  return text;
}

std::string history_model::end(key_history& k, std::size_t which, const answer& got) {
  // It found no space: right in any state, and it changed nothing.
  const bool full = got.changed == indexes::outcome::full;
  if (!full) let_happen(k.courses, k.under_way, which);
  std::erase_if(k.courses, [&](const course& c) {
    return full ? bool(c.effects[which]) : c.effects[which] != taken_effect::with(got);
  });
  const operation ended = k.under_way[which];
  if (k.courses.empty()) {
    k.under_way.erase(k.under_way.begin() + static_cast<std::ptrdiff_t>(which));
    k.told.emplace_back(ended, got);
    return "no order of these operations gives their answers:" + story(k, true);
  }
  constexpr std::size_t most_told = 40;
  if (k.told.size() == most_told) k.told.erase(k.told.begin());
  k.told.emplace_back(ended, got);
  if (is_change(got)) k.not_acknowledged.clear();
  drop(k, which);
  if (!is_change(got)) return {};
  for (std::size_t i = k.under_way.size(); i > 0; --i)
    if (const operation& o = k.under_way[i - 1]; o.died != 0 && o.died < ended.began) drop(k, i - 1);
  return {};
}

void history_model::set_running(unsigned thread, std::string words) {
  if (running_.size() <= thread) running_.resize(thread + 1);
  running_[thread] = {true, std::move(words)};
  ++clock_;
}

void history_model::set_ended(unsigned thread) {
  running_[thread].on = false;
  ++clock_;
}

void history_model::called(unsigned thread, const step& s, const answer* coming) {
  set_running(thread, to_string(s));
  begin(of(s.key), thread, s, coming);
}

std::string history_model::returned(unsigned thread, const step& s, const answer& got) {
  set_ended(thread);
  key_history& k = of(s.key);
  return end(k, *place_of(k, thread), got);
}

void history_model::batch_called(unsigned thread, std::span<const std::uint64_t> keys) {
  set_running(thread, "find_batch of " + std::to_string(keys.size()) + " keys");
  for (const std::uint64_t key : keys) begin(of(key), thread, {action::find, key, 0});
}

std::string history_model::batch_returned(unsigned thread, std::span<const std::uint64_t> keys,
                                          std::span<const std::optional<std::uint64_t>> got) {
  set_ended(thread);
  std::string wrong;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    key_history& k = of(keys[i]);
    const std::string why = end(k, *place_of(k, thread), {{}, got[i]});
    if (wrong.empty() && !why.empty())
      wrong = "find_batch, key " + std::to_string(i + 1) + " of " + std::to_string(keys.size()) + ": " + why;
  }
  return wrong;
}

void history_model::load_called(unsigned thread, std::span<const indexes::entry> ascending) {
  set_running(thread, "load of " + std::to_string(ascending.size()) + " entries");
  loads_.push_back({thread, {ascending.begin(), ascending.end()}});
  for (const indexes::entry& e : ascending) begin(of(e.key), thread, {action::load, e.key, e.value});
}

std::string history_model::load_returned(unsigned thread, std::size_t done) {
  set_ended(thread);
  const auto mine = std::find_if(loads_.begin(), loads_.end(), [&](const auto& l) { return l.thread == thread; });
  std::string wrong;
  for (std::size_t i = 0; i < mine->ascending.size(); ++i) {
    using indexes::outcome;
    key_history& k = of(mine->ascending[i].key);
    const std::string why = end(k, *place_of(k, thread), {i < done ? outcome::inserted : outcome::full, {}});
    if (wrong.empty() && !why.empty())
      wrong = "load, which processed " + std::to_string(done) + " of " + std::to_string(mine->ascending.size()) +
              " entries, at number " + std::to_string(i + 1) + ": " + why;
  }
  loads_.erase(mine);
  return wrong;
}

void history_model::scan_called(unsigned thread, std::uint64_t from) {
  set_running(thread, "scan(" + std::to_string(from) + ")");
  begin_scan({thread, from, action::find});
}

void history_model::begin_scan(const active_scan& scan) {
  scans_.push_back(scan);
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (keys_[i] >= scan.from && !is_settled(states_[i]))
      add_operation(states_[i], scan.thread, {scan.what, keys_[i], 0});
}

void history_model::iterate_called(unsigned thread) {
  set_running(thread, "an iterator over all keys");
  begin_scan({thread, 0, action::meet});
}

std::string history_model::iterate_returned(unsigned thread, std::span<const std::uint64_t> got) {
  set_ended(thread);
  std::erase_if(scans_, [&](const active_scan& scan) { return scan.thread == thread; });
  std::vector<std::uint64_t> keys(got.begin(), got.end());
  std::sort(keys.begin(), keys.end());
  std::string wrong;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && keys[i] == keys[i - 1]) wrong = "an iterator returns key " + std::to_string(keys[i]) + " twice";
    if (!std::binary_search(keys_.begin(), keys_.end(), keys[i]))
      wrong = "an iterator returns key " + std::to_string(keys[i]) + ", which no thread inserted";
  }
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    key_history& k = states_[i];
    const bool is_met = std::binary_search(keys.begin(), keys.end(), keys_[i]);
    std::string why;
    if (const std::optional<std::size_t> mine = place_of(k, thread))
      why = end(k, *mine, {{}, is_met ? key_state(met) : std::nullopt});
    else if (k.courses.front().state.has_value() != is_met)  // no other operation on the key ran meanwhile
      why = "key " + std::to_string(keys_[i]) + " is " + in_words(k.courses.front().state) + story(k, false);
    if (wrong.empty() && !why.empty())
      wrong = "an iterator " + std::string(is_met ? "returns" : "does not return") + " key " +
              std::to_string(keys_[i]) + ": " + why;
  }
  return wrong;
}

std::string history_model::scan_returned(unsigned thread, std::uint64_t from, std::size_t wanted,
                                         std::span<const indexes::entry> got) {
  const std::string what = "scan(" + std::to_string(from) + ", " + std::to_string(wanted) + ")";
  set_ended(thread);
  std::string wrong;
  std::erase_if(scans_, [&](const active_scan& scan) { return scan.thread == thread; });
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i].key < from) wrong = what + " returns key " + std::to_string(got[i].key);
    if (i > 0 && got[i].key <= got[i - 1].key) wrong = what + " is not ascending at key " + std::to_string(got[i].key);
    if (!std::binary_search(keys_.begin(), keys_.end(), got[i].key))
      wrong = what + " returns key " + std::to_string(got[i].key) + ", which no thread inserted";
  }
  // Beyond the last entry of a full scan nothing was read.
  const std::uint64_t end_key = got.size() == wanted && !got.empty() ? got.back().key : ~std::uint64_t{0};
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] < from) continue;
    key_history& k = states_[i];
    const std::optional<std::size_t> mine = place_of(k, thread);
    if (keys_[i] > end_key) {
      // It is unknown what the scan would have read there.
      if (mine) drop(k, *mine);
      continue;
    }
    const key_state seen = state_in(got, keys_[i]);
    std::string why;
    if (mine)
      why = end(k, *mine, {{}, seen});
    else if (!allows(k, seen))
      why = why_not(k, keys_[i], seen);
    if (wrong.empty() && !why.empty()) wrong.append(what).append(": ").append(why);
  }
  return wrong;
}

std::vector<key_state> history_model::reachable_states(const key_history& k) {
  std::vector<course> courses = k.courses;
  let_happen(courses, k.under_way, std::nullopt);
  std::vector<key_state> states;
  for (const course& c : courses)
    if (std::find(states.begin(), states.end(), c.state) == states.end()) states.push_back(c.state);
  return states;
}

void history_model::died(unsigned thread) {
  ++clock_;
  std::erase_if(scans_, [&](const active_scan& scan) { return scan.thread == thread; });
  for (key_history& k : states_)
    for (std::size_t i = k.under_way.size(); i > 0; --i) {
      operation& o = k.under_way[i - 1];
      if (o.thread != thread) continue;
      if (is_read(o.what.what))
        drop(k, i - 1);
      else
        o.died = clock_;
    }
}

void history_model::settled(std::span<const indexes::entry> found) {
  ++clock_;
  loads_.clear();
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    key_history& k = states_[i];
    k.under_way.clear();
    k.reachable.clear();
    k.courses.assign(1, course{});
    k.courses.front().state = state_in(found, keys_[i]);
  }
}

void history_model::go_on_after_kill(std::span<const indexes::entry> found) {
  scans_.clear();
  loads_.clear();
  running_.clear();
  ++clock_;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    key_history& k = states_[i];
    const key_state now = state_in(found, keys_[i]);
    std::vector<key_state> left = reachable_states(k);
    k = {};
    k.courses.front().state = now;
    if (left.size() > 1 || left.front() != now) k.not_acknowledged = std::move(left);
  }
}

bool history_model::allows(key_history& k, const key_state& found) {
  if (is_settled(k)) return k.courses.front().state == found;
  if (k.reachable.empty()) k.reachable = reachable_states(k);
  return std::find(k.reachable.begin(), k.reachable.end(), found) != k.reachable.end();
}

std::string history_model::why_not(const key_history& k, std::uint64_t key, const key_state& found) {
  std::string text = "key " + std::to_string(key) + " is " + in_words(found) + ", and can only be";
  const std::vector<key_state> possible = is_settled(k) ? std::vector<key_state>{k.courses.front().state} : k.reachable;
  for (std::size_t i = 0; i < possible.size(); ++i) text.append(i == 0 ? " " : " or ").append(in_words(possible[i]));
  return text + story(k, false);
}

std::string history_model::judge(std::span<const indexes::entry> entries, bool is_crashed) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    key_state found;
    if (at < entries.size() && entries[at].key < keys_[i]) return not_inserted(entries[at]);
    if (at < entries.size() && entries[at].key == keys_[i]) {
      found = entries[at++].value;
      if (at < entries.size() && entries[at].key == keys_[i])
        return "key " + std::to_string(keys_[i]) + " is present twice, with values " + std::to_string(*found) +
               " and " + std::to_string(entries[at].value);
    }
    const std::vector<key_state>& killed = states_[i].not_acknowledged;
    if (is_crashed && std::find(killed.begin(), killed.end(), found) != killed.end()) continue;
    if (!allows(states_[i], found)) return why_not(states_[i], keys_[i], found);
  }
  if (at < entries.size()) return not_inserted(entries[at]);
  for (const active_load& l : loads_)
    if (std::string wrong = judge_load(l, entries); !wrong.empty()) return wrong;
  return {};
}

// A prefix of it is present. Keys that other threads have changed since are ignored.
std::string history_model::judge_load(const active_load& l, std::span<const indexes::entry> entries) {
  const indexes::entry* missing = nullptr;
  for (const indexes::entry& e : l.ascending) {
    const key_history& k = of(e.key);
    if (k.under_way.size() != 1 || !k.told.empty()) continue;
    const key_state found = state_in(entries, e.key);
    if (!found && missing == nullptr) missing = &e;
    if (found == e.value && missing != nullptr)
      return "a load was interrupted: key " + std::to_string(e.key) + " is present, and key " +
             std::to_string(missing->key) + ", which precedes it in the load, is not";
  }
  return {};
}

std::vector<std::uint64_t> history_model::keys_under_way() const {
  std::vector<std::uint64_t> keys;
  for (std::size_t i = 0; i < keys_.size(); ++i)
    if (std::any_of(states_[i].under_way.begin(), states_[i].under_way.end(),
                    [](const operation& o) { return !is_read(o.what.what); }))
      keys.push_back(keys_[i]);
  return keys;
}

std::string history_model::under_way() const {
  std::string text;
  for (std::size_t t = 0; t < running_.size(); ++t) {
    const running_operation& r = running_[t];
    if (!r.on) continue;
    text += (text.empty() ? "" : ", ") + r.words + (running_.size() > 1 ? " of thread " + std::to_string(t) : "");
  }
  return text;
}

}  // namespace pmlab::verify
