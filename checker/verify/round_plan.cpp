// The plan of a round.
#include "checker/verify/round_plan.hpp"
#include "checker/verify/image_medium.hpp"
#include <pmlab/base/random.hpp>

#include <algorithm>
#include <iterator>
#include <memory>
#include <span>
#include <utility>

namespace pmlab::verify {
namespace {

constexpr std::size_t trial_bytes = std::size_t{64} << 20;

// More than enough to split every index's nodes.
constexpr std::size_t grown_keys = 2600;
// More than enough for a library with segments of many kilobytes, and as few as its first changes need.
constexpr std::size_t tried_keys = 12'000;
constexpr std::size_t keys_after_a_change = 60;

using key_list = std::vector<std::uint64_t>;

simulator::space_limit::plan drawn_limit(const round_options& options, splitmix64& source) {
  simulator::space_limit::plan p;
  // A load, or an index about to split, allocates the next block soon.
  const std::uint64_t soon = options.grown || options.loaded ? 2 : 5;
  p.spare = source.below(source.one_in(2) ? soon : options.loaded ? 20 : 60);
  switch (source.below(4)) {
    case 0: break;  // for good
    case 1: p.refused = 1 + source.below(4); break;
    case 2: p = {.spare = p.spare / 4, .refused = 40, .one_in = 2 + source.below(2)}; break;
    default: p = {.most_bytes = source.below(8000)}; break;
  }
  return p;
}

// Makes the plan of one round.
class planner {
 public:
  planner(const subject& kind, const round_options& options, const growth_trial& trial)
      : kind_(kind),
        options_(options),
        trial_(trial),
        source_(options.seed * 1000003 + 11),
        iterators_(options.seed * 769 + 3),
        near_(options.seed * 5693 + 29) {}

  round_plan make() {
    plan_.kills = options_.kills;
    if (options_.full)
      plan_.space = drawn_limit(options_, source_), plan_.space_of_copies = drawn_limit(options_, source_);
    if (options_.short_dram) plan_.space_of_heap = drawn_limit_of_heap(options_, kind_.has_threads);
    // Either of two media, or both.
    if (options_.full && kind_.has_threads) {
      const std::uint64_t which = source_.below(3);
      if (which == 0) plan_.space = {};
      if (which == 1) plan_.space_of_copies = {};
    }
    for (unsigned p = 0; p <= options_.reopenings; ++p) plan_.phases.emplace_back(options_.threads);
    // Nodes become thin by erasures.
    if (options_.joining && !kind_.missing.erase)
      joining();
    else if (options_.thin && !kind_.missing.erase)
      thin();
    else
      usual();
    std::sort(plan_.keys.begin(), plan_.keys.end());
    plan_.keys.erase(std::unique(plan_.keys.begin(), plan_.keys.end()), plan_.keys.end());
    leave_out_steps(options_, plan_.phases);
    if (options_.hosts && kind_.reserves_sentinels) widen_values();
    return std::move(plan_);
  }

 private:
  // What a line holds of two stores by two hosts is to be seen in each half of a value, and in nearly each byte: small
  // numbers have the same upper ones.
  void widen_values() {
    const auto widen = [](std::uint64_t& value) {
      constexpr std::uint32_t upper = 0x9e3779b1, lower = 0x85ebca6b;  // odd: no two numbers have the same half
      const auto number = static_cast<std::uint32_t>(value);
      value = std::uint64_t{number * upper} << 32 | std::uint64_t{number * lower};
    };
    for (step& s : plan_.prepare) widen(s.value);
    for (auto& phase : plan_.phases)
      for (auto& thread : phase)
        for (planned_step& s : thread) {
          widen(s.what.value);
          for (indexes::entry& e : s.load) widen(e.value);
        }
  }

  // ---- keys, in the order in which they are hard ----

  [[nodiscard]] key_list usual_keys(std::size_t count) {
    splitmix64 source(options_.seed * 31 + 7);
    // Dense keys share nodes and lines; the others spread over the whole range.
    constexpr key_set kinds[] = {key_set::dense,    key_set::dense,    key_set::clustered,
                                 key_set::anywhere, key_set::extremes, key_set::high_bits};
    const key_set keys = kinds[source.below(std::size(kinds))];
    if (kind_.ordered && options_.branching) return branching_keys(count);
    if (kind_.key_of_hash != nullptr && (options_.branching || (count <= keys_of_one_place && !near_.one_in(4))))
      return colliding_keys(count);
    const bool tame = keys == key_set::dense || keys == key_set::anywhere;
    return make_keys(kind_.reserves_sentinels && !tame ? key_set::dense : keys, count, source);
  }

  // Keys that leave a common prefix at any of their bytes, most of them late: a compressed path is cut at several
  // depths.
  [[nodiscard]] key_list branching_keys(std::size_t count) {
    const std::uint64_t trunk = near_.next() & ~(std::uint64_t{3} << 62);
    key_list keys;
    while (keys.size() < count) {
      std::uint64_t key = keys.empty() || near_.one_in(3) ? trunk : keys[near_.below(keys.size())];
      const std::uint64_t shift = 8 * near_.below(7);
      key ^= (1 + near_.below(near_.one_in(2) ? 3 : 40)) << shift;
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    return keys;
  }

  // Keys that a hash table keeps in the same few places, whose slots and locks they take turns about. Few of them are
  // in one place, which may not divide; of many, the first bits of the hash differ, by which it does.
  [[nodiscard]] key_list colliding_keys(std::size_t count) {
    constexpr std::uint64_t own_bits = std::uint64_t{0xffff} << 8;
    constexpr std::uint64_t first_bits = std::uint64_t{0x3f} << 58;
    const bool are_few = count <= keys_of_one_place;
    key_list bases;
    for (std::size_t n = are_few ? 1 : 1 + near_.below(8); n > 0; --n) bases.push_back(near_.next());
    key_list keys;
    while (keys.size() < count) {
      const std::uint64_t hash =
          bases[near_.below(bases.size())] ^ (near_.next() & (are_few ? own_bits : own_bits | first_bits));
      const std::uint64_t key = kind_.key_of_hash(hash);
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    return keys;
  }

  static constexpr std::uint64_t top_bit = std::uint64_t{1} << 63;

  // Keys of a few places that lie side by side or near one another, in one half of a table: they fill a segment soon.
  // In half of the rounds they divide it evenly; in the others they have some more of their first bits in common, so
  // that all of them move, or none. In half of the rounds places come in turn, and their locks are held equally often.
  // A key costs several hosts more than it does one.
  [[nodiscard]] key_list crowded_keys() {
    constexpr std::size_t count = 320;
    constexpr std::uint64_t places = 0xff, near_places = 0xc9, other_lock = 1U << 3;
    const std::uint64_t common_bits = near_.one_in(2) ? 1 : 2 + near_.below(3);
    const std::uint64_t fixed = ~(~std::uint64_t{0} >> common_bits) | places;
    const bool in_turn = near_.one_in(2);
    const std::uint64_t place = source_.next();
    key_list keys;
    while (keys.size() < count) {
      const std::uint64_t hash = source_.next();
      std::uint64_t away = hash & near_places;
      if (in_turn) away = (away & ~other_lock) | (keys.size() % 2 == 0 ? 0 : other_lock);
      keys.push_back(kind_.key_of_hash((hash & ~fixed) | ((place ^ away) & fixed)));
    }
    return keys;
  }

  // First keys of one 32nd of the hashes, which deepen the directory there; then keys of the other half, whose segment
  // splits while so many entries of the directory lead to it that they fill several lines.
  [[nodiscard]] key_list uneven_keys() {
    constexpr unsigned prefix_bits = 5;
    const std::uint64_t prefix = source_.next() << (64 - prefix_bits);
    key_list keys;
    for (std::size_t i = 0; i < grown_keys; ++i) {
      const std::uint64_t hash = source_.next();
      const std::uint64_t other_half = (~prefix & top_bit) | (hash & ~top_bit);
      keys.push_back(kind_.key_of_hash(i < grown_keys * 2 / 5 ? prefix | hash >> prefix_bits : other_half));
    }
    return keys;
  }

  [[nodiscard]] key_list keys_of_half(bool upper) {
    key_list keys;
    for (std::size_t i = 0; i < grown_keys / 2; ++i)
      keys.push_back(kind_.key_of_hash((source_.next() & ~top_bit) | (upper ? top_bit : 0)));
    return keys;
  }

  // How many of the keys are needed to be just before an operation that allocates: measured on plain memory.
  [[nodiscard]] std::size_t entries_before_a_split(key_list& keys) {
    if (trial_) return entries_before_a_change(keys);
    // If an index has a copy, either one is about to split.
    const bool of_replica = kind_.open_replica_on_image != nullptr && source_.one_in(2);
    const auto open = of_replica ? kind_.open_replica_on_image : kind_.open_image;
    if (open == nullptr) return keys.size() / 2;
    image_medium medium(trial_bytes);
    medium.begin(simulator::persistent_memory::first_block, std::make_shared<simulator::block_table::extents>(), 0);
    const std::unique_ptr<target> index = open(medium);
    std::vector<std::size_t> splits;
    std::uint64_t bytes = medium.used().allocated_bytes;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      index->perform({action::insert, keys[i], i});
      const std::uint64_t now = medium.used().allocated_bytes;
      if (now != bytes) splits.push_back(i);
      bytes = now;
    }
    return before_one_of(splits, keys.size());
  }

  // The same where an insert that takes another course shows it. Leaves no more keys than these rounds need: every
  // state is searched for each of them.
  [[nodiscard]] std::size_t entries_before_a_change(key_list& keys) {
    const growth found = trial_(keys);
    const bool large = !found.large_changes.empty() && !source_.one_in(4);
    const std::size_t entries =
        before_one_of(large ? found.large_changes : found.changes, std::min(found.inserted, grown_keys));
    keys.resize(std::min(found.inserted, entries + keys_after_a_change));
    return std::min(entries, keys.size());
  }

  [[nodiscard]] std::size_t before_one_of(const std::vector<std::size_t>& splits, std::size_t keys) {
    const std::size_t at = splits.empty() ? keys / 2 : splits[source_.below(splits.size())];
    const std::size_t before = source_.below(6);
    return at > before ? at - before : 0;
  }

  // ---- rounds that begin empty, or just before a split ----

  // Fills `fresh_` with the keys that come next.
  void begin_grown() {
    const std::uint64_t form = kind_.key_of_hash == nullptr ? 0 : source_.below(4);
    std::vector<key_list> lists;
    if (form <= 1) lists = {usual_keys(trial_ ? tried_keys : grown_keys)};
    if (form == 2) lists = {uneven_keys()};
    // Both halves of a hash table, each before a split of its own: they grow at the same time.
    if (form == 3) lists = {keys_of_half(false), keys_of_half(true)};
    if (options_.hosts) lists = {crowded_keys()};
    std::vector<std::size_t> next;
    for (key_list& keys : lists) {
      next.push_back(entries_before_a_split(keys));
      // The full places are in use for a while before they divide.
      if (options_.hosts && source_.one_in(2)) next.back() -= std::min(next.back(), source_.below(grown_keys / 64));
      for (std::size_t i = 0; i < next.back(); ++i) plan_.prepare.push_back({action::insert, keys[i], ++unique_});
      plan_.keys.insert(plan_.keys.end(), keys.begin(), keys.end());
    }
    for (std::size_t i = 0; i < grown_keys; ++i)
      for (std::size_t l = 0; l < lists.size(); ++l)
        if (next[l] + i < lists[l].size()) fresh_.push_back(lists[l][next[l] + i]);
  }

  // Fills the drive: each superblock, or whatever the store collects, has been written, and most of it is garbage.
  void begin_in_use() {
    constexpr std::size_t keys = 24;
    constexpr std::size_t writes = 100;
    plan_.keys = usual_keys(keys);
    for (std::size_t i = 0; i < writes; ++i)
      plan_.prepare.push_back({action::upsert, plan_.keys[i % plan_.keys.size()], ++unique_});
  }

  void fill() {
    splitmix64 own(options_.seed * 2897 + 41);
    // A small index still has room for what the round adds.
    constexpr std::size_t most = 16;
    for (std::size_t i = 0; i < std::min(most, plan_.keys.size()); ++i) {
      const std::uint64_t key = plan_.keys[i];
      if (own.one_in(4)) continue;
      plan_.prepare.push_back({action::insert, key, ++unique_});
      for (std::uint64_t n = own.below(3); n > 0; --n) {
        plan_.prepare.push_back({action::erase, key, 0});
        plan_.prepare.push_back({action::insert, key, ++unique_});
      }
    }
  }

  // A key that the split may have moved: a neighbour of a key that was added last, or, of a hash table, one of these.
  [[nodiscard]] std::uint64_t near_the_change(std::size_t added) {
    if (fresh_.empty()) return ascending_[near_.below(ascending_.size())];
    const std::size_t last = std::min(added, fresh_.size() - 1);
    if (!kind_.ordered) {
      const std::size_t before = plan_.prepare.size();
      // Hosts take turns about the same lines: those of the keys that came last, which lie where there was still room.
      const std::size_t reach = options_.hosts && near_.one_in(2) ? 6 : 48;
      const std::size_t back = near_.below(std::min<std::size_t>(before + last, reach) + 1);
      if (back <= last) return fresh_[last - back];
      return plan_.prepare[before - (back - last)].key;
    }
    constexpr std::size_t reach = 16;
    const auto at = static_cast<std::size_t>(std::lower_bound(ascending_.begin(), ascending_.end(), fresh_[last]) -
                                             ascending_.begin());
    const std::size_t first = at - std::min(at, reach);
    return ascending_[first + near_.below(std::min(2 * reach, ascending_.size() - first))];
  }

  // Some of the keys that came last, which lie where there was still room: those that came together, lie together.
  [[nodiscard]] key_list few_of_the_last() {
    constexpr std::size_t reach = 40, together = 6;
    key_list few;
    const std::size_t before = plan_.prepare.size();
    const std::size_t back = near_.below(reach);
    for (std::size_t n = 2 + near_.below(4); n > 0 && before > reach + together; --n)
      few.push_back(plan_.prepare[before - 1 - back - near_.below(together)].key);
    return few;
  }

  void usual() {
    const bool in_use = options_.grown && kind_.fills_up;
    if (in_use)
      begin_in_use();
    else if (options_.grown)
      begin_grown();
    else
      plan_.keys = usual_keys(options_.loaded ? std::max<std::size_t>(options_.keys, loaded_keys) : options_.keys);
    if (options_.filled) fill();
    ascending_ = plan_.keys;
    std::sort(ascending_.begin(), ascending_.end());
    std::size_t next_fresh = 0;
    // A part of the rounds only adds keys, so that nodes fill and split; another one adds and then removes them, so
    // that nodes empty again; the others stay where they are.
    const bool adds =
        (options_.grown && !in_use && !options_.hosts) || options_.full || options_.nearly_full || source_.one_in(2);
    const bool removes = !adds && source_.one_in(2);
    // With threads, a quarter of the rounds use a few keys mostly: other threads should see operations half done.
    const bool collides = options_.threads > 1 && (in_use || (!options_.grown && source_.one_in(4)));
    const std::size_t hot = collides ? 3 + source_.below(in_use ? 3 : 6) : 0;
    const step_mix adding{.insert = 60, .update = 8, .upsert = 14, .erase = 8};
    const step_mix removing{.insert = 6, .update = 4, .upsert = 4, .erase = 76};
    // What a split of a hash table leaves in the old half is erased there.
    const step_mix both{.insert = 40, .update = 6, .upsert = 10, .erase = 38};
    const bool erases_behind = options_.near_split && !kind_.ordered && near_.one_in(2);
    // Defects of a cache are visible to readers: in half of its rounds most operations are reads.
    const bool reads = kind_.has_threads && source_.one_in(2);
    const step_mix reading{.insert = 12, .update = 8, .upsert = 4, .erase = 6};
    // Hosts take turns about a few keys of full places, before these divide and behind it: they look at one, and change
    // it then, or look again.
    const key_list crowded = options_.hosts && options_.near_split && near_.one_in(2) ? few_of_the_last() : key_list();
    const step_mix changing{.insert = 15, .update = 30, .upsert = 10, .erase = 15};
    const auto mix_of = [&](std::size_t i) {
      if (reads) return reading;
      if (!crowded.empty()) return changing;
      if (erases_behind) return both;
      if (hot != 0 || (!adds && !removes)) return step_mix{};
      return removes && i >= options_.operations / 2 ? removing : adding;
    };
    // A load finds room for rows of nodes where others do not put keys in between.
    const std::size_t apart = options_.loaded && !source_.one_in(4) ? keys_apart : 0;
    for (auto& phase : plan_.phases)
      for (auto& thread : phase)
        for (std::size_t i = 0; i < options_.operations; ++i) {
          planned_step s;
          s.what = {random_action(source_, mix_of(i)), plan_.keys[source_.below(plan_.keys.size())],
                    source_.one_in(4) && !kind_.reserves_sentinels ? source_.below(3) : ++unique_};
          if (kind_.reserves_sentinels && s.what.what == action::upsert) s.what.what = action::insert;
          s.what.what = in_place_of(s.what.what, kind_.missing);
          if (hot != 0 && !source_.one_in(4)) s.what.key = plan_.keys[source_.below(std::min(hot, plan_.keys.size()))];
          const bool adds_key = s.what.what == action::insert || s.what.what == action::upsert;
          // Hosts change each other's lines, so they add keys again, too.
          const bool is_fresh =
              options_.grown && adds_key && next_fresh < fresh_.size() && !(options_.hosts && near_.one_in(2));
          if (is_fresh) s.what.key = fresh_[next_fresh++];
          if (options_.near_split && !is_fresh && (options_.hosts || !adds_key) && near_.one_in(2))
            s.what.key = near_the_change(next_fresh);
          if (!crowded.empty() && !is_fresh && !near_.one_in(8)) s.what.key = crowded[near_.below(crowded.size())];
          if (!crowded.empty() && !is_fresh && !thread.empty() && near_.one_in(2)) s.what.key = thread.back().what.key;
          if (apart != 0 && adds_key) s.what.key = ascending_[source_.below(apart)];
          if (options_.nearly_full) s.what.value |= first_large_value;
          several_at_once(s);
          thread.push_back(std::move(s));
        }
    if (options_.loaded) plan_.phases.front().front().front() = long_load(apart);
  }

  // ---- rounds that begin with many nodes of few entries ----

  void thin() {
    const std::size_t count = 300 + source_.below(source_.one_in(4) ? 1700 : 300);
    constexpr key_set kinds[] = {key_set::dense, key_set::sequential, key_set::clustered, key_set::anywhere};
    key_set chosen = kinds[source_.below(std::size(kinds))];
    if (kind_.reserves_sentinels && chosen == key_set::clustered) chosen = key_set::dense;  // the former has key 0
    const key_list keys = make_keys(chosen, count, source_);
    ascending_ = keys;
    std::sort(ascending_.begin(), ascending_.end());
    if (source_.one_in(3)) return rolling_window();
    for (const std::uint64_t key : keys) plan_.prepare.push_back({action::insert, key, ++unique_});
    // Nearly all keys of a range go, elsewhere most of them.
    constexpr std::size_t lengths[] = {40, 200, 900, 900};
    const std::size_t length = std::min(lengths[source_.below(std::size(lengths))], count);
    const std::size_t from = source_.below(count - length + 1);
    const std::size_t left_in_range = 1 + source_.below(10);
    const std::size_t left_elsewhere = 8 + source_.below(24);
    key_list left;
    key_list victims;
    for (std::size_t i = 0; i < count; ++i) {
      const bool in_range = i - from < length;
      const bool stays = in_range ? source_.below(length) < left_in_range : source_.one_in(left_elsewhere);
      if (!stays) {
        plan_.prepare.push_back({action::erase, ascending_[i], 0});
        continue;
      }
      left.push_back(ascending_[i]);
      if (in_range || i >= from + length) victims.push_back(ascending_[i]);
    }
    victims.insert(victims.end(), left.begin(), left.end() - static_cast<std::ptrdiff_t>(victims.size()));
    key_list refill;
    for (std::size_t run = 1 + source_.below(3); run > 0; --run) {
      const std::size_t at = source_.one_in(2) ? from + source_.below(length) : source_.below(count);
      const std::size_t end = std::min(at + 8 + source_.below(50), count);
      refill.insert(refill.end(), ascending_.begin() + static_cast<std::ptrdiff_t>(at),
                    ascending_.begin() + static_cast<std::ptrdiff_t>(end));
    }
    plan_.keys = left;
    plan_.keys.insert(plan_.keys.end(), refill.begin(), refill.end());
    ascending_ = plan_.keys;
    std::sort(ascending_.begin(), ascending_.end());
    ascending_.erase(std::unique(ascending_.begin(), ascending_.end()), ascending_.end());
    empty_and_refill(victims, refill);
  }

  // Each thread erases some keys, adds others elsewhere, and most of the time erases those again.
  void empty_and_refill(const key_list& victims, const key_list& refill) {
    const bool together = source_.one_in(2);
    for (auto& phase : plan_.phases) {
      const std::size_t reader = source_.one_in(2) && options_.threads > 1 ? options_.threads - 1 : options_.threads;
      std::size_t erased = 0;
      std::size_t added = 0;
      for (std::size_t t = 0; t < phase.size(); ++t) {
        if (t == reader) {
          while (phase[t].size() < options_.operations) phase[t].push_back(a_read());
          continue;
        }
        if (together) erased = added = 0;
        while (phase[t].size() < options_.operations) {
          for (std::size_t n = 4 + source_.below(20); n > 0 && !victims.empty(); --n)
            add_with_reads(phase[t], {action::erase, victims[erased++ % victims.size()], 0});
          const std::size_t first = added;
          for (std::size_t n = 4 + source_.below(30); n > 0; --n)
            add_with_reads(phase[t], {source_.one_in(4) && !kind_.reserves_sentinels ? action::upsert : action::insert,
                                      refill[added++ % refill.size()], ++unique_});
          if (source_.one_in(3)) continue;
          for (std::size_t i = first; i < added; ++i)
            add_with_reads(phase[t], {action::erase, refill[i % refill.size()], 0});
        }
        phase[t].resize(options_.operations);
      }
    }
  }

  // The oldest key is erased as the next one is inserted.
  void rolling_window() {
    const std::size_t width = 30 + source_.below(std::min<std::size_t>(ascending_.size() / 2, 120));
    for (std::size_t i = 0; i < width; ++i) plan_.prepare.push_back({action::insert, ascending_[i], ++unique_});
    plan_.keys = ascending_;
    std::size_t number = 0;
    for (auto& phase : plan_.phases)
      while (phase.front().size() < options_.operations)
        for (auto& thread : phase) {
          const std::size_t oldest = number / 2 % (ascending_.size() - width);
          const bool adds = number++ % 2 == 0;
          if (source_.one_in(6))
            thread.push_back(a_read());
          else if (adds)
            thread.push_back({{action::insert, ascending_[width + oldest], ++unique_}});
          else
            thread.push_back({{action::erase, ascending_[oldest], 0}});
        }
  }

  // ---- rounds that begin with nodes that a few erasures join ----

  // A thread that joins two nodes, or has found the place of a key, waits for their locks, and others make them other
  // nodes meanwhile: so the threads take turns about the same key, some of them erasing on one side of it, and some
  // inserting on the other one.
  void joining() {
    const std::size_t count = 120 + source_.below(source_.one_in(3) ? 900 : 240);
    constexpr key_set kinds[] = {key_set::dense, key_set::sequential, key_set::anywhere};
    ascending_ = make_keys(kinds[source_.below(std::size(kinds))], count, source_);
    for (const std::uint64_t key : ascending_) plan_.prepare.push_back({action::insert, key, ++unique_});
    std::sort(ascending_.begin(), ascending_.end());
    constexpr std::size_t all_shares = 12;
    const std::size_t share_that_stays = 3 + source_.below(6);
    std::vector<bool> present(count);
    for (std::size_t i = 0; i < count; ++i) {
      present[i] = source_.below(all_shares) < share_that_stays;
      if (present[i])
        plan_.keys.push_back(ascending_[i]);
      else
        plan_.prepare.push_back({action::erase, ascending_[i], 0});
    }
    constexpr std::size_t distances[] = {1, 6, 24};
    for (auto& phase : plan_.phases) {
      std::size_t middle = source_.below(count);
      while (phase.front().size() < options_.operations) {
        if (source_.one_in(4)) middle = source_.below(count);
        const bool upwards = source_.one_in(2);
        const std::size_t away = source_.below(distances[source_.below(std::size(distances))]);
        const std::size_t turn = std::min(2 + source_.below(10), options_.operations - phase.front().size());
        for (auto& thread : phase) {
          const std::uint64_t part = source_.below(8);
          for (std::size_t n = 0; n < turn; ++n) thread.push_back(next_of_turn(part, middle, upwards, away, present));
        }
      }
    }
  }

  // Erasures go away from the middle `upwards`, or downwards, and inserts the other way: each changes the nearest key
  // that is to be there, or not, by then.
  [[nodiscard]] planned_step next_of_turn(std::uint64_t part, std::size_t middle, bool upwards, std::size_t away,
                                          std::vector<bool>& present) {
    constexpr std::uint64_t erases = 3, inserts = 6, both = 7;  // parts below these
    const auto count = static_cast<std::ptrdiff_t>(present.size());
    const bool is_erasure = part < erases || (part >= inserts && part < both && source_.one_in(2));
    if (part >= both || source_.one_in(10)) return near_.one_in(3) ? an_update_near(middle) : a_read_near(middle);
    const std::ptrdiff_t step = is_erasure == upwards ? 1 : -1;
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(middle) + step * static_cast<std::ptrdiff_t>(away);
    for (std::ptrdiff_t i = first; i >= 0 && i < count; i += step) {
      const auto at = static_cast<std::size_t>(i);
      if (present[at] != is_erasure) continue;
      present[at] = !is_erasure;
      const std::uint64_t key = ascending_[at];
      plan_.keys.push_back(key);
      planned_step s;
      s.what = {is_erasure ? action::erase : action::insert, key, is_erasure ? 0 : ++unique_};
      return s;
    }
    return a_read_near(middle);
  }

  // An entry that moves between two nodes is changed meanwhile.
  [[nodiscard]] planned_step an_update_near(std::size_t middle) {
    constexpr std::size_t reach = 30;
    const std::size_t first = middle - std::min(middle, reach);
    planned_step s;
    s.what = {action::update, ascending_[first + near_.below(std::min(2 * reach, ascending_.size() - first))],
              ++unique_};
    s.what.what = in_place_of(s.what.what, kind_.missing);
    plan_.keys.push_back(s.what.key);
    return s;
  }

  [[nodiscard]] planned_step a_read_near(std::size_t middle) {
    constexpr std::size_t reach = 60;
    const std::size_t first = middle - std::min(middle, reach);
    const std::uint64_t key = ascending_[first + source_.below(std::min(2 * reach, ascending_.size() - first))];
    plan_.keys.push_back(key);
    planned_step s;
    s.what = {action::find, key, 0};
    if (source_.one_in(2)) s.scan_length = 1 + source_.below(source_.one_in(2) ? 120 : 20);
    return s;
  }

  void add_with_reads(std::vector<planned_step>& thread, const step& s) {
    if (source_.one_in(6)) thread.push_back(a_read());
    if (!kind_.missing.update && near_.one_in(12)) thread.push_back({{action::update, s.key, ++unique_}});
    thread.push_back({s});
  }

  // ---- operations of many keys ----

  [[nodiscard]] planned_step a_read() {
    planned_step s;
    s.what = {action::find, ascending_[source_.below(ascending_.size())], 0};
    if (kind_.ordered && source_.one_in(3))
      s.scan_length = 1 + source_.below(40);
    else if (source_.one_in(3))
      s.batch = some_keys();
    return s;
  }

  void several_at_once(planned_step& s) {
    if (kind_.iterates && iterators_.one_in(10)) {
      s = {};
      s.iterates = true;
      return;
    }
    if (kind_.ordered && source_.one_in(24))
      s.scan_length = 1 + source_.below(source_.one_in(4) ? std::min<std::size_t>(plan_.keys.size(), 120) + 2 : 16);
    else if (source_.one_in(s.what.what == action::find ? 3 : 30))
      s.batch = some_keys();
    else if (kind_.loads && source_.one_in(40))
      s.load = neighbours(2 + source_.below(20));
  }

  // A batch is searched for sixteen at a time. Only a thread alone has a key in it twice: each further find under way
  // on a key multiplies the courses of the history model.
  [[nodiscard]] key_list some_keys() {
    constexpr std::size_t widths[] = {3, 9, 17, 40};
    const std::size_t times = options_.threads == 1 ? 2 : 1;
    key_list keys;
    for (std::size_t n = 2 + source_.below(widths[source_.below(std::size(widths))]); n > 0; --n) {
      const std::uint64_t key = ascending_[source_.below(ascending_.size())];
      if (static_cast<std::size_t>(std::count(keys.begin(), keys.end(), key)) < times) keys.push_back(key);
    }
    return keys;
  }

  // Not among the first `left_out` keys.
  [[nodiscard]] std::vector<indexes::entry> neighbours(std::size_t count, std::size_t left_out = 0) {
    count = std::min(count, ascending_.size() - left_out);
    const std::size_t from = left_out + source_.below(ascending_.size() - left_out - count + 1);
    std::vector<indexes::entry> entries;
    for (std::size_t i = from; i < from + count; ++i) entries.push_back({ascending_[i], ++unique_});
    return entries;
  }

  // Into an empty index, or beside a few keys.
  [[nodiscard]] planned_step long_load(std::size_t apart) {
    if (source_.one_in(2))
      for (std::size_t n = 1 + source_.below(40); n > 0; --n)
        plan_.prepare.push_back(
            {action::insert, ascending_[source_.below(apart != 0 ? apart : ascending_.size())], ++unique_});
    constexpr std::size_t counts[] = {40, 150, loaded_keys, loaded_keys};
    planned_step s;
    s.load = neighbours(counts[source_.below(std::size(counts))], apart);
    s.what = {action::load, s.load.front().key, 0};
    return s;
  }

  // ---- the rest ----

  static constexpr std::size_t loaded_keys = 500;
  static constexpr std::size_t keys_apart = 40;

  const subject& kind_;
  const round_options& options_;
  const growth_trial& trial_;
  splitmix64 source_;
  splitmix64 iterators_;  // theirs: the other steps do not depend on them
  splitmix64 near_;       // the same of keys near a split, and of branching ones
  round_plan plan_;
  key_list fresh_;
  key_list ascending_;  // the keys that operations are about
  std::uint64_t unique_ = 1000;
};

}  // namespace

simulator::space_limit::plan drawn_limit_of_heap(const round_options& options, bool has_threads) {
  splitmix64 own(options.seed * 3571 + 17);
  simulator::space_limit::plan plan;
  // Counts allocations: the heap has no limit in bytes.
  do plan = drawn_limit(options, own);
  while (plan.most_bytes != simulator::space_limit::never);
  // Threads of the subject's own may wait for memory: there is some again.
  constexpr std::uint64_t most_refusals = 40;
  if (has_threads) plan.refused = std::min(plan.refused, most_refusals);
  return plan;
}

std::string to_string(const planned_step& s) {
  if (s.iterates) return "iterate over all keys";
  if (s.scan_length != 0) return "scan(" + std::to_string(s.what.key) + ", " + std::to_string(s.scan_length) + ")";
  std::string text;
  for (const std::uint64_t key : s.batch) text.append(text.empty() ? "find_batch(" : ", ").append(std::to_string(key));
  for (const indexes::entry& e : s.load)
    text.append(text.empty() ? "load(" : ", ")
        .append(std::to_string(e.key))
        .append(": ")
        .append(std::to_string(e.value));
  return text.empty() ? to_string(s.what) : text + ")";
}

std::string to_string(const round_plan& plan, const phases_of<planned_step>& phases) {
  std::string text;
  contents before;
  for (const step& s : plan.prepare) expect(s, before);
  if (!plan.prepare.empty())
    text.append("(")
        .append(std::to_string(plan.prepare.size()))
        .append(" inserts and erases before, which leave ")
        .append(std::to_string(before.size()))
        .append(" keys)\n");
  return text + to_string(phases, plan.kills ? "the process is killed, and the next one goes on" : "a crash");
}

round_plan make_plan(const subject& kind, const round_options& options, const growth_trial& trial) {
  return planner(kind, options, trial).make();
}

}  // namespace pmlab::verify
