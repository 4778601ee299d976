// A tiered store against a std::map: batches, snapshots, cursors, reopened and crashed, full, on drives that fail; and
// the bound of the loss on a virtual clock.
#include <pmlab/base/random.hpp>
#include <pmlab/stores/tiered.hpp>

#include "stores/tests/tiered_store.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::tests::tiered_test {
namespace {

using namespace std::chrono_literals;
using store = stores::tiered<drive, blocks::virtual_clock>;

stores::tiered_options small_options() {
  stores::tiered_options o;
  o.loss = {.at_most = 10ms, .or_bytes = 2048};
  o.memory_limit = 32 << 10;
  o.background = false;
  o.most_sets = 2;
  o.most_leaf_sets = 2;
  o.leaf_bytes = 6000;
  o.segment_bytes = 8192;
  o.manifest_bytes = 32 << 10;
  o.page_bytes = 1024;
  o.identity = {3, 4};
  return o;
}

struct machine : two_drives {
  explicit machine(std::uint64_t blocks = 1024, std::uint64_t capacity_blocks = 1024)
      : two_drives(blocks, capacity_blocks) {}

  std::unique_ptr<store> open(const stores::tiered_options& options = small_options()) {
    return store::open({.staging = staging, .capacity = capacity}, options, blocks::virtual_clock(time));
  }
};

std::string key_of(splitmix64& random, std::uint64_t keys) {
  const std::uint64_t n = random.below(keys);
  std::string key = "key" + std::to_string(n * 7919 % keys);
  if (n % 5 == 0) key.append(n % 90, 'x');
  return n == 1 ? std::string() : n == 2 ? std::string("\0\xff", 2) : key;
}

TEST(Tiered, PutsGetsErases) {
  machine m;
  {
    auto db = m.open();
    auto orders = db->table("orders");
    auto people = db->table("people");
    EXPECT_EQ(orders.put("a", "1"), 1U);
    EXPECT_EQ(orders.put("b", "2"), 2U);
    EXPECT_EQ(people.put("a", "3"), 3U);
    EXPECT_EQ(orders.erase("b"), 4U);
    EXPECT_EQ(orders.erase("never"), 5U);
    EXPECT_EQ(orders.get("a"), "1");
    EXPECT_EQ(orders.get("b"), std::nullopt);
    EXPECT_EQ(people.get("a"), "3");
    EXPECT_EQ(all_of(orders), (content{{"a", "1"}}));
  }
  auto db = m.open();
  EXPECT_EQ(db->table("orders").get("a"), "1");
  EXPECT_EQ(db->table("people").get("a"), "3");
  EXPECT_EQ(db->stats().sequence, 5U);
  db->compact();
  EXPECT_EQ(db->stats().entries, 2U);
  EXPECT_EQ(db->table("orders").get("a"), "1");
  EXPECT_EQ(db->table("orders").get("b"), std::nullopt);
  expect_sound(*db);
}

TEST(Tiered, KeysAndValuesUpToTheirLimits) {
  machine m(48 << 10, 32 << 10);
  auto options = small_options();
  options.page_bytes = 4096;
  options.segment_bytes = 2 << 20;
  options.memory_limit = 8 << 20;
  auto db = m.open(options);
  auto t = db->table("t");
  const std::string key(1344, 'k');
  const std::string value(1 << 20, 'v');
  t.put(key, value);
  EXPECT_EQ(t.get(key), value);
  EXPECT_PRED2(says, message_of([&] { t.put(key + "k", "v"); }), "a key of 1345 bytes");
  EXPECT_PRED2(says, message_of([&] { t.put("k", value + "v"); }), "a value of 1048577 bytes");
  db->compact();
  EXPECT_EQ(t.get(key), value);
  db.reset();
  db = m.open(options);
  EXPECT_EQ(db->table("t").get(key), value);
}

// Random operations on two tables beside two maps; snapshots beside copies of these.
void operate(std::uint64_t seed, int rounds, bool crashes) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  splitmix64 random(seed);
  machine m(1024);
  std::array<content, 2> right;
  std::uint64_t number = 0;
  for (int round = 0; round < rounds; ++round) {
    auto db = m.open();
    std::array<store::table_handle, 2> tables{db->table("one"), db->table("two")};
    ASSERT_EQ(all_of(tables[0]), right[0]);
    ASSERT_EQ(all_of(tables[1]), right[1]);
    std::vector<std::pair<store::snapshot_handle, std::array<content, 2>>> snapshots;
    for (int step = 0; step < 300; ++step) {
      const std::size_t t = random.below(2);
      const std::string key = key_of(random, 60);
      switch (random.below(14)) {
        case 0:
        case 1: {
          tables[t].erase(key);
          right[t].erase(key);
          break;
        }
        case 2: write_batch(*db, tables[t], right[t], random, number, [&] { return key_of(random, 60); }); break;
        case 3:
          if (snapshots.size() < 3) snapshots.emplace_back(db->snapshot(), right);
          break;
        case 4:
          if (!snapshots.empty()) {
            const std::size_t i = random.below(snapshots.size());
            const auto& [at, then] = snapshots[i];
            ASSERT_EQ(tables[t].get(key, &at), value_in(then[t], key));
            ASSERT_EQ(
                all_of(tables[t], &at, random.one_in(2) ? stores::direction::forward : stores::direction::backward),
                then[t]);
            if (random.one_in(2)) snapshots.pop_back();
          }
          break;
        case 5: {
          std::string to = key_of(random, 60);
          std::string from = key_of(random, 60);
          if (to < from) std::swap(from, to);
          const bool forward = random.one_in(2);
          auto c = tables[t].cursor({.from = from,
                                     .to = std::string_view(to),
                                     .way = forward ? stores::direction::forward : stores::direction::backward});
          std::vector<std::pair<std::string, std::string>> want(right[t].lower_bound(from), right[t].lower_bound(to));
          if (!forward) std::reverse(want.begin(), want.end());
          for (const auto& [k, v] : want) {
            ASSERT_TRUE(c.next());
            ASSERT_EQ(c.key(), k);
            ASSERT_EQ(c.value(), v);
          }
          ASSERT_FALSE(c.next());
          break;
        }
        case 6:
          if (random.one_in(10)) db->compact();
          if (random.one_in(5)) db->sync();
          break;
        case 7: ASSERT_EQ(tables[t].get(key), value_in(right[t], key)); break;
        default: {
          const std::string v = value_of(random, ++number);
          tables[t].put(key, v);
          right[t][key] = v;
        }
      }
      ASSERT_LE(db->stats().memory_bytes, small_options().memory_limit);
    }
    ASSERT_EQ(all_of(tables[0]), right[0]);
    ASSERT_EQ(all_of(tables[1], stores::direction::backward), right[1]);
    expect_sound(*db);
    if (crashes) {
      db->sync();
      snapshots.clear();
      m.crash(db, random);
    }
  }
}

TEST(Tiered, IsAMapThatIsReopened) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) operate(seed, 6, false);
}
TEST(Tiered, IsAMapThatIsSyncedAndCrashes) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) operate(seed, 6, true);
}

// A history: the content behind each sequence, and when it was acknowledged.
struct history {
  std::vector<content> states{content{}};
  std::vector<std::uint64_t> acknowledged{0};
  std::vector<bool> is_end{true};  // ends of a batch
};

// Crashes at random moments of a virtual clock, again and again: what survives is one prefix, as long as promised.
void lose(std::uint64_t seed, std::chrono::nanoseconds bound) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(bound.count()) + " ns");
  splitmix64 random(seed);
  machine m;
  auto options = small_options();
  options.loss = {.at_most = bound, .or_bytes = random.one_in(2) ? std::uint64_t{1} << 30 : 3000};
  history past;
  std::uint64_t lost = 0;
  for (int round = 0; round < 25; ++round) {
    auto db = m.open(options);
    auto t = db->table("t");
    std::uint64_t synced = past.states.size() - 1;
    for (std::uint64_t step = random.below(80); step > 0; --step) {
      // Time passes to the next operation; the flusher steps whenever it is due.
      const std::uint64_t until = m.time.now() + random.below(static_cast<std::uint64_t>(bound.count()) * 1000 / 4);
      for (std::uint64_t due = db->step(); due <= until; due = db->step()) m.time.advance_to(due);
      m.time.advance_to(until);
      content next = past.states.back();
      store::batch b;
      for (std::uint64_t i = random.one_in(4) ? 1 + random.below(4) : 1; i > 0; --i) {
        const std::string k = key_of(random, 30);
        const std::string v = value_of(random, past.states.size());
        if (random.one_in(4)) {
          b.erase(t, k);
          next.erase(k);
        } else {
          b.put(t, k, v);
          next[k] = v;
        }
        past.states.push_back(next);
        past.acknowledged.push_back(m.time.now());
        past.is_end.push_back(i == 1);
      }
      ASSERT_EQ(db->write(b), past.states.size() - 1);
      if (random.one_in(30)) {
        db->sync();
        synced = past.states.size() - 1;
      }
    }
    const std::uint64_t now = m.time.now();
    m.crash(db, random);
    db = m.open(options);
    const std::uint64_t survived = db->stats().sequence;
    ASSERT_LT(survived, past.states.size());
    ASSERT_GE(survived, synced);
    ASSERT_TRUE(past.is_end[survived]) << "half of a batch";
    ASSERT_EQ(all_of(db->table("t")), past.states[survived]) << "sequence " << survived;
    for (std::uint64_t s = survived + 1; s < past.states.size(); ++s) {
      ++lost;
      ASSERT_GT(past.acknowledged[s] + static_cast<std::uint64_t>(bound.count()) * 1000, now)
          << "sequence " << s << " is older than the bound";
    }
    past.states.resize(survived + 1);
    past.acknowledged.resize(survived + 1);
    past.is_end.resize(survived + 1);
    expect_sound(*db);
    if (random.one_in(2)) m.crash(db, random);
  }
  EXPECT_GT(lost, 0U) << "nothing was at stake";
}

TEST(Tiered, LosesNoMoreThanTheBound) {
  for (const auto bound : {1ms, 10ms, 100ms, 1000ms})
    for (std::uint64_t seed = 1; seed <= 6; ++seed) lose(seed, bound);
}

// Whatever makes changes durable: those that were older than the bound then are counted, and how old they were.
TEST(Tiered, CountsChangesThatBecameDurableTooLate) {
  struct way {
    const char* name;
    void (*make_durable)(store&);
  };
  constexpr std::array<way, 4> ways{{{"sync", [](store& db) { db.sync(); }},
                                     {"a step of the flusher", [](store& db) { static_cast<void>(db.step()); }},
                                     {"an ingest", [](store& db) { db.compact(); }},
                                     {"a put that is synced", [](store& db) { db.table("t").put_synced("b", "1"); }}}};
  for (const way& w : ways)
    for (const auto age : {9ms, 15ms}) {
      SCOPED_TRACE(w.name + std::string(" behind ") + std::to_string(age.count()) + " ms");
      machine m;
      auto options = small_options();
      options.loss = {.at_most = 10ms, .or_bytes = 1 << 20};
      auto db = m.open(options);
      db->table("t").put("a", "1");
      m.time.advance(static_cast<std::uint64_t>(age.count()) * 1'000'000'000);
      w.make_durable(*db);
      const stores::tiered_stats s = db->stats();
      EXPECT_EQ(s.durable, s.sequence);
      EXPECT_EQ(s.longest_loss, age);
      EXPECT_EQ(s.late_flushes, age > 10ms ? 1U : 0U);
    }
}

// A flusher on a bound of 80: what it does when it is woken, in order.
TEST(Tiered, AFlusherThatWasWokenLateLeavesFlushesToWriters) {
  constexpr std::uint64_t ms = 1'000'000'000;
  struct waking {
    std::uint64_t due, now, oldest, newest;  // ms
    bool leaves;
    const char* why;
  };
  constexpr std::array<waking, 7> wakings{{{140, 141, 101, 140, false, "in time"},
                                           {181, 189, 141, 188, true, "8 late: it may lose the processor again"},
                                           {194, 194, 151, 193, true, "in time, and not long after it was late"},
                                           {199, 210, 151, 190, false, "no writer goes on"},
                                           {500, 500, 460, 499, true, "in time, and still not long after it was late"},
                                           {700, 700, 655, 699, false, "in time again"},
                                           {740, 741, 690, 740, true, "it is a writer's turn"}}};
  stores::detail::tiered::flusher_turn turn(40 * ms);
  for (const waking& w : wakings) {
    turn.sleeps_until(w.due * ms);
    turn.is_awake(w.now * ms);
    EXPECT_EQ(turn.leaves_to_writers({1, w.oldest * ms, w.newest * ms}, w.now * ms), w.leaves) << w.why;
  }
}

// A clock that its user sets: the time of `true_time`, and what was added to it.
struct set_clock {
  static constexpr std::string_view kind = "set";
  [[nodiscard]] blocks::picoseconds now() const noexcept { return true_time->now() - *behind; }
  void wait_until(blocks::picoseconds /*time*/) const noexcept {}
  const blocks::virtual_time* true_time;
  const std::uint64_t* behind;
};

// Puts every millisecond, and steps; now and then the clock is set back. What is older than the bound is durable.
TEST(Tiered, AClockThatIsSetBackKeepsTheBound) {
  constexpr std::uint64_t ms = 1'000'000'000;
  for (const std::uint64_t jump : {ms / 2, 2 * ms, 30 * ms, 500 * ms}) {
    SCOPED_TRACE(jump);
    two_drives drives(1024, 1024);
    std::uint64_t behind = 0;
    drives.time.advance(50'000 * ms);
    auto options = small_options();
    options.loss = {.at_most = 10ms, .or_bytes = 1 << 20};
    using set_store = stores::tiered<drive, set_clock>;
    auto db = set_store::open({.staging = drives.staging, .capacity = drives.capacity}, options,
                              set_clock{&drives.time, &behind});
    auto t = db->table("t");
    std::vector<std::uint64_t> made{0};
    for (int i = 0; i < 200; ++i) {
      t.put("key" + std::to_string(i % 20), "value");
      made.push_back(drives.time.now());
      drives.time.advance(ms);
      if (i % 17 == 16) behind += jump;
      const std::uint64_t due = db->step();
      if (due != ~std::uint64_t{0}) {
        ASSERT_LE(due + behind, drives.time.now() + 6 * ms) << "the time of the next step is too late";
      }
      for (std::uint64_t s = db->stats().durable + 1; s < made.size(); ++s)
        ASSERT_GT(made[s] + 10 * ms, drives.time.now()) << "put " << s << " is older than the bound";
    }
    EXPECT_LT(db->stats().durable, made.size() - 1) << "each step flushes, so nothing was at stake";
  }
}

TEST(Tiered, WhatWasSyncedSurvives) {
  machine m;
  splitmix64 random(7);
  auto db = m.open();
  db->table("t").put("a", "1");
  db->table("t").put_synced("b", "2");
  db->table("t").put("c", "3");
  EXPECT_EQ(db->stats().durable, 2U);
  for (int i = 0; i < 8; ++i) {
    m.crash(db, random);
    db = m.open();
    EXPECT_EQ(db->table("t").get("a"), "1");
    EXPECT_EQ(db->table("t").get("b"), "2");
  }
}

// The making of a store is cut off behind each of its requests.
TEST(Tiered, MakingMayBeInterrupted) {
  for (std::uint64_t passed = 0; passed < 14; ++passed) {
    machine m;
    m.cut_off(passed, [&] { static_cast<void>(m.open()->table("t")); });
    auto db = m.open();
    db->table("t").put_synced("a", "1");
    db.reset();
    EXPECT_EQ(m.open()->table("t").get("a"), "1") << passed;
  }
}

TEST(Tiered, AFullStoreLosesNothingAndGoesOn) {
  machine m(320);
  auto options = small_options();
  options.leaf_bytes = 0;
  auto db = m.open(options);
  auto t = db->table("t");
  content right;
  fill(t, right, 1000, [](int) { return 700; });
  EXPECT_GT(right.size(), 40U);
  EXPECT_EQ(all_of(t), right);
  db.reset();
  db = m.open(options);
  t = db->table("t");
  EXPECT_EQ(all_of(t), right);
  EXPECT_THROW(for (int i = 0; i < 200; ++i) t.put("more", std::string(700, 'm')), stores::tiered_full);
  t.erase("more");
  empty_and_use_again(*db, t, right);
}

TEST(Tiered, ValuesAreWrittenOnce) {
  machine m(8192, 8192);
  auto options = small_options();
  options.segment_bytes = 64 << 10;
  options.leaf_bytes = 0;
  options.memory_limit = 1 << 20;
  options.loss.or_bytes = 32 << 10;
  auto db = m.open(options);
  auto t = db->table("t");
  m.staging.inner().reset();
  const std::uint64_t user = load(*db, t, 2000);
  const auto log = m.staging.inner().of(blocks::stream::log).bytes_written;
  const auto keys = m.staging.inner().of(blocks::stream::keys).bytes_written;
  EXPECT_LT(static_cast<double>(log), 1.1 * static_cast<double>(user));
  EXPECT_LT(static_cast<double>(keys), 0.6 * static_cast<double>(user));
  EXPECT_EQ(m.staging.inner().of(blocks::stream::values).bytes_written, 0U);
  RecordProperty("log_per_user_byte", std::to_string(static_cast<double>(log) / static_cast<double>(user)));
}

TEST(Tiered, AFailedWriteOfTheLogIsTriedAgain) {
  machine m;
  splitmix64 random(3);
  auto db = m.open();
  auto t = db->table("t");
  t.put("a", "1");
  m.staging.inject({.kind = blocks::fault::io_error, .times = 2, .only = blocks::stream::log});
  EXPECT_NE(message_of([&] { db->sync(); }), "");
  EXPECT_NE(message_of([&] { t.put("b", "2"); }), "") << "acknowledged while the log cannot be written";
  EXPECT_EQ(t.get("a"), "1");
  t.put("b", "2");
  db->sync();
  m.crash(db, random);
  EXPECT_EQ(all_of(m.open()->table("t")), (content{{"a", "1"}, {"b", "2"}}));
}

TEST(Tiered, AFailedFlushEndsWritingNotReading) {
  machine m;
  auto db = m.open();
  auto t = db->table("t");
  t.put("a", "1");
  db->compact();
  t.put("b", "2");
  m.staging.inject({.kind = blocks::fault::failed_flush});
  EXPECT_NE(message_of([&] { db->sync(); }), "");
  EXPECT_NE(message_of([&] { t.put("c", "3"); }), "");
  EXPECT_EQ(t.get("b"), "2");
}

TEST(Tiered, DamageIsAnErrorNeverAnAnswer) {
  machine m;
  splitmix64 random(5);
  auto db = m.open();
  auto t = db->table("t");
  content right;
  for (int i = 0; i < 40; ++i) {
    right["key" + std::to_string(i)] = std::string(100, static_cast<char>('a' + i % 26));
    t.put("key" + std::to_string(i), right["key" + std::to_string(i)]);
  }
  db->compact();
  int errors = 0;
  for (drive* d : {&m.staging, &m.capacity})
    d->inject_at_random({blocks::fault::bit_flip, blocks::fault::misdirected, blocks::fault::io_error}, 3);
  for (int i = 0; i < 400; ++i) {
    const std::string key = "key" + std::to_string(random.below(50));
    try {
      ASSERT_EQ(t.get(key), value_in(right, key));
    } catch (const error&) {
      ++errors;
    }
  }
  EXPECT_GT(errors, 10);
  m.stop();
  EXPECT_EQ(all_of(t), right);
}

// Leaves that cannot be read cannot be compacted. The root is spilled all the same, and does not grow for ever.
TEST(Tiered, ALeafThatCannotBeReadStopsNoSpill) {
  machine m;
  splitmix64 random(6);
  auto options = small_options();
  options.place = stores::placement::staging_min_capacity;
  auto db = m.open(options);
  auto t = db->table("t");
  content right;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const std::string key = key_of(random, 40);
    t.put(key, right[key] = value_of(random, i));
  }
  db->compact();
  const std::uint64_t spills = db->stats().spills;
  m.capacity.inject({.times = 1'000'000, .what = blocks::operation::read});
  for (std::uint64_t i = 0; i < 600; ++i) {
    const std::string key = key_of(random, 40);
    try_to_put(*db, t, right, key, value_of(random, i));
  }
  EXPECT_GT(db->stats().spills, spills + 5);
  m.capacity.stop();
  EXPECT_EQ(all_of(t), right);
  expect_sound(*db);
}

// An ingest whose requests fail at random is an ingest later; nothing is lost, and no segment leaks.
TEST(Tiered, FailedIngestsSpillsAndCompactionsChangeNothing) {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    splitmix64 random(seed);
    machine m;
    content right;
    auto db = m.open();
    auto t = db->table("t");
    put_while_drives_fail(m, *db, t, right, random, [&] { return key_of(random, 40); });
    ASSERT_EQ(all_of(t), right);
    db->compact();
    expect_sound(*db);
    db->sync();
    m.crash(db, random);
    ASSERT_EQ(all_of(m.open()->table("t")), right);
  }
}

TEST(Tiered, RefusesBadInput) {
  machine m;
  const auto message = [&](auto&& change) {
    auto options = small_options();
    change(options);
    return message_of([&] { m.open(options); });
  };
  EXPECT_PRED2(says, message([](auto& o) { o.loss.at_most = 0ms; }), "put_synced or sync");
  EXPECT_PRED2(says, message([](auto& o) { o.loss.at_most = 2h; }), "a loss bound of");
  EXPECT_PRED2(says, message([](auto& o) { o.loss.or_bytes = 0; }), "0 bytes");
  EXPECT_PRED2(says, message([](auto& o) { o.memory_limit = 1; }), "memory limit of 1 byte");
  EXPECT_PRED2(says, message([](auto& o) { o.page_bytes = 700; }), "pages of 700 bytes");
  EXPECT_PRED2(says, message([](auto& o) { o.segment_bytes = 1024; }), "segments of 1024 bytes");
  EXPECT_PRED2(says, message([](auto& o) { o.manifest_bytes = 100; }), "manifests of 100 bytes");
  EXPECT_PRED2(says, message([](auto& o) { o.segment_bytes = 1 << 20; }), "has room for");
  EXPECT_PRED2(says, message([](auto& o) { o.background = true; }), "cannot have threads");
  EXPECT_PRED2(says, message_of([&] {
                 store::open({.staging = m.staging, .capacity = m.staging}, small_options(),
                             blocks::virtual_clock(m.time));
               }),
               "the same drive");
  auto db = m.open();
  for (const std::string& name : {std::string(), std::string(41, 'n'), std::string("a\0", 2)})
    EXPECT_PRED2(says, message_of([&] { static_cast<void>(db->table(name)); }), "cannot name a table");
  EXPECT_PRED2(says, message_of([&] { db->table("t").put("k", std::string(9000, 'v')); }), "a segment has room for");
  for (int i = 1; i < 256; ++i) static_cast<void>(db->table(std::to_string(i)));
  EXPECT_PRED2(says, message_of([&] { static_cast<void>(db->table("one more")); }), "can have no more");
}

TEST(Tiered, RefusesOtherDrives) {
  machine a;
  machine b;
  a.open()->table("t").put("a", "1");
  auto other = small_options();
  other.identity = {5, 6};
  b.open(other)->table("t").put("b", "2");
  const auto message = [&](drive& staging, drive& capacity) {
    return message_of([&] {
      store::open({.staging = staging, .capacity = capacity}, small_options(), blocks::virtual_clock(a.time));
    });
  };
  EXPECT_PRED2(says, message(a.capacity, a.staging), "the drives are swapped");
  EXPECT_PRED2(says, message(a.staging, b.capacity), "different stores");
  drive blank(1, shape_of(1024));
  EXPECT_PRED2(says, message(blank, a.capacity), "is blank");
  EXPECT_PRED2(says, message(a.staging, blank), "is blank");
  drive short_one(1, shape_of(1023));
  a.of(short_one).content().assign(a.of(a.staging).content().begin(), a.of(a.staging).content().end() - 512);
  EXPECT_PRED2(says, message(short_one, a.capacity), "was cut off");
  a.of(a.staging).content()[20] ^= std::byte{1};
  EXPECT_PRED2(says, message(a.staging, a.capacity), "header is damaged");
  a.of(a.staging).content()[20] ^= std::byte{1};
  // One damaged manifest is as if it had not been written; with both there is no store.
  a.of(a.staging).content()[512 + 20] ^= std::byte{1};
  a.of(a.staging).content()[512 + (32 << 10) + 20] ^= std::byte{1};
  EXPECT_PRED2(says, message(a.staging, a.capacity), "neither manifest");
}

// ---- leaves and placement

stores::tiered_options placed(stores::placement p) {
  auto o = small_options();
  o.place = p;
  return o;
}

TEST(Tiered, EachPolicyPutsKeysAndValuesWhereItSays) {
  struct row {
    stores::placement place;
    bool log, leaf_keys, leaf_values;  // on the staging drive
  };
  for (const row& r : {row{stores::placement::staging_only, true, true, true},
                       row{stores::placement::capacity_only, false, false, false},
                       row{stores::placement::staging_max_capacity, true, true, false},
                       row{stores::placement::staging_min_capacity, true, false, false}}) {
    SCOPED_TRACE(name_of(r.place));
    machine m;
    auto db = m.open(placed(r.place));
    auto t = db->table("t");
    m.staging.inner().reset();
    m.capacity.inner().reset();
    for (int i = 0; i < 60; ++i) t.put("key" + std::to_string(i), std::string(300, 'v'));
    db->sync();
    const auto written = [](drive& d, blocks::stream of) { return d.inner().of(of).bytes_written; };
    EXPECT_EQ(written(m.staging, blocks::stream::log) > 0, r.log);
    EXPECT_EQ(written(m.capacity, blocks::stream::log) > 0, !r.log);
    db->compact();
    m.staging.inner().reset();
    m.capacity.inner().reset();
    t.put("a", "1");
    db->compact();
    t.put("key1", std::string(300, 'w'));
    for (int i = 0; i < 60; ++i) t.put("key" + std::to_string(i), std::string(300, 'x'));
    db->compact();
    EXPECT_EQ(written(m.staging, blocks::stream::values) > 0, r.leaf_values);
    EXPECT_EQ(written(m.capacity, blocks::stream::values) > 0, !r.leaf_values);
    if (r.log == r.leaf_keys) {
      EXPECT_EQ(written(r.log ? m.capacity : m.staging, blocks::stream::keys), 0U);
    } else {
      EXPECT_GT(written(m.capacity, blocks::stream::keys), 0U);
    }
    db.reset();
    EXPECT_EQ(m.open(placed(r.place))->table("t").get("key59"), std::string(300, 'x'));
  }
}

TEST(Tiered, AStoreOnOneDrive) {
  machine m;
  const auto open = [&](stores::placement p) {
    return store::open({.capacity = m.capacity}, placed(p), blocks::virtual_clock(m.time));
  };
  const auto message = [&](stores::placement p) { return message_of([&] { open(p); }); };
  EXPECT_PRED2(says, message(stores::placement::staging_max_capacity),
               "policy staging_max_capacity names the staging drive");
  EXPECT_PRED2(says, message(stores::placement::pmem_only), "policy pmem_only");
  EXPECT_PRED2(says,
               message_of([&] { store::open({.staging = m.staging}, small_options(), blocks::virtual_clock(m.time)); }),
               "no capacity drive");
  open(stores::placement::capacity_only)->table("t").put("a", "1");
  EXPECT_EQ(open(stores::placement::capacity_only)->table("t").get("a"), "1");
  EXPECT_PRED2(says, message_of([&] { m.open(); }), "is blank");
  // And one of two drives is missing.
  machine both;
  both.open()->table("t").put("a", "1");
  EXPECT_PRED2(says, message_of([&] {
                 store::open({.capacity = both.capacity}, placed(stores::placement::capacity_only),
                             blocks::virtual_clock(m.time));
               }),
               "it is missing");
  EXPECT_EQ(both.open()->table("t").get("a"), "1");
}

TEST(Tiered, AnOlderLayoutIsRefusedByItsVersion) {
  machine m;
  m.open()->table("t").put("a", "1");
  m.of(m.staging).content()[8] = std::byte{1};
  EXPECT_PRED2(says, message_of([&] { m.open(); }), "has version 1 of the layout, not 2 to 4");
}

TEST(Tiered, LeavesSplitAndAnswerInBothDirections) {
  machine m(2048, 2048);
  content right;
  splitmix64 random(11);
  {
    auto db = m.open();
    auto t = db->table("t");
    auto other = db->table("other");
    for (int i = 0; i < 3000; ++i) {
      const std::string key = key_of(random, 400);
      right[key] = value_of(random, static_cast<std::uint64_t>(i));
      t.put(key, right[key]);
      if (i % 7 == 0) other.put(key, "other");
    }
    EXPECT_GT(db->stats().leaves, 8U);
    EXPECT_GT(db->stats().splits, 7U);
    EXPECT_GT(db->stats().spills, 10U);
    EXPECT_GT(db->stats().compactions, 10U);
    EXPECT_EQ(all_of(t), right);
    EXPECT_EQ(all_of(t, stores::direction::backward), right);
    for (const auto& [key, value] : right) ASSERT_EQ(t.get(key), value);
    expect_sound(*db);
  }
  auto db = m.open();
  auto t = db->table("t");
  EXPECT_EQ(all_of(t), right);
  expect_sound(*db);
  for (const auto& [key, value] : right) t.erase(key);
  db->compact();
  EXPECT_EQ(all_of(t), content{});
  EXPECT_LT(db->stats().leaves, 8U) << "leaves without keys go";
  expect_sound(*db);
}

// Leaf values lie in the order of keys: a walk reads those of a block once, and blocks that follow one another
// together.
TEST(Tiered, AWalkReadsNeighbouringValuesTogether) {
  machine m(4096, 4096);
  auto db = m.open();
  auto t = db->table("t");
  splitmix64 random(14);
  content right;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    const std::string key = key_of(random, 1000);
    t.put(key, right[key] = "value" + std::to_string(i) + std::string(60, 'v'));
  }
  db->compact();
  for (drive* d : {&m.staging, &m.capacity}) d->inner().reset();
  EXPECT_EQ(all_of(t), right);
  std::uint64_t reads = 0;
  for (drive* d : {&m.staging, &m.capacity}) reads += d->inner().of(blocks::stream::values).reads;
  EXPECT_GT(reads, 0U);
  EXPECT_LT(reads, right.size() / 20);
}

// Values of the root lie in the log, in the order of puts: the reads of a walk are in flight together. A short walk
// reads few that it does not need.
TEST(Tiered, AWalkReadsScatteredValuesTogether) {
  machine m(4096, 4096);
  auto options = small_options();
  options.most_sets = 8;
  auto db = m.open(options);
  auto t = db->table("t");
  splitmix64 random(17);
  content right;
  for (std::uint64_t i = 0; db->stats().ingests < 6; ++i) {
    const std::string key = key_of(random, 200);
    if (i % 5 == 0) {
      t.erase(key);
      right.erase(key);
    } else {
      t.put(key, right[key] = "value" + std::to_string(i) + std::string(random.below(3000), 'v'));
    }
  }
  ASSERT_EQ(db->stats().spills, 0U);
  drive& log = m.staging;
  const auto reads = [&] { return log.inner().of(blocks::stream::values).reads; };
  for (const auto way : {stores::direction::forward, stores::direction::backward}) {
    static_cast<void>(two_drives::of(log).take_most_in_flight());
    EXPECT_EQ(all_of(t, way), right);
    EXPECT_GT(two_drives::of(log).take_most_in_flight(), 4U);
    const std::uint64_t before = reads();
    auto walk = t.cursor({.way = way});
    constexpr int pairs = 10;
    for (int i = 0; i < pairs; ++i) ASSERT_TRUE(walk.next());
    EXPECT_LT(reads() - before, 2U * pairs);
  }
}

// A store with values of several spills, and a root of several sets.
content fill_levels(store& db, splitmix64& random) {
  auto t = db.table("t");
  content right;
  for (std::uint64_t i = 0; i < 4000 || db.stats().sets < 5; ++i) {
    const std::string key = "key" + std::to_string(100000 + random.below(90000));
    t.put(key, right[key] = "value" + std::to_string(i) + std::string(random.below(200), 'v'));
  }
  return right;
}
stores::tiered_options options_of_levels() {
  auto options = small_options();
  options.most_sets = 8;
  options.most_leaf_sets = 4;
  options.leaf_bytes = 64 << 10;
  options.memory_limit = 128 << 10;
  return options;
}

// A short walk waits for the pages of all sets at once, and for the values of all pairs at once.
TEST(Tiered, AWalkOfSoManyPairsWaitsForTheDriveAFewTimes) {
  machine m(8192, 8192);
  auto db = m.open(options_of_levels());
  splitmix64 random(31);
  const content right = fill_levels(*db, random);
  ASSERT_GE(db->stats().sets, 5U);
  ASSERT_GE(db->stats().leaf_sets, db->stats().leaves);
  auto t = db->table("t");
  constexpr int walks = 200;
  constexpr std::size_t pairs = 8;
  std::uint64_t waits = 0;
  for (drive* d : {&m.staging, &m.capacity}) {
    static_cast<void>(two_drives::of(*d).take_waits());
    d->inner().reset();
  }
  for (int i = 0; i < walks; ++i) {
    auto at = right.lower_bound("key" + std::to_string(100000 + random.below(80000)));
    auto walk = t.cursor({.from = at->first, .most = pairs});
    std::size_t found = 0;
    for (; walk.next(); ++found, ++at) {
      ASSERT_EQ(walk.key(), at->first);
      ASSERT_EQ(walk.value(), at->second);
    }
    EXPECT_EQ(found, pairs);
  }
  for (drive* d : {&m.staging, &m.capacity}) waits += two_drives::of(*d).take_waits();
  std::uint64_t values = 0;
  for (drive* d : {&m.staging, &m.capacity}) values += d->inner().of(blocks::stream::values).reads;
  RecordProperty("waits", static_cast<int>(waits));
  // Pages, values on both drives, and a page behind the first one of a set now and then.
  EXPECT_LT(waits, 4U * walks);
  EXPECT_LE(values, pairs * walks) << "none is read in vain";
}

// A spill writes values in the order of keys: however many spills lie over each other, a walk reads the values of each
// together.
TEST(Tiered, AWalkReadsTheValuesOfEachSpillTogether) {
  machine m(16384, 16384);
  auto options = options_of_levels();
  options.most_sets = 3;
  options.memory_limit = 512 << 10;
  options.leaf_bytes = 4 << 20;
  options.segment_bytes = 128 << 10;
  options.manifest_bytes = 128 << 10;
  auto db = m.open(options);
  auto t = db->table("t");
  splitmix64 random(33);
  constexpr std::uint64_t walks = 20;
  constexpr std::uint64_t pairs = 100;
  constexpr std::uint64_t keys = 8000;
  const auto key = [](std::uint64_t i) { return "key" + std::to_string(100000 + i); };
  std::vector<std::uint64_t> order(keys);
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = keys; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  for (const std::uint64_t i : order) t.put(key(i), std::string(200, 'v'));
  while (db->stats().sets > 0) t.put("other", std::string(200, 'o'));
  const std::uint64_t spills = db->stats().spills;
  ASSERT_GE(spills, 4U);
  ASSERT_LT(spills, pairs / 5);
  ASSERT_EQ(db->stats().leaves, 1U);
  for (drive* d : {&m.staging, &m.capacity}) d->inner().reset();
  for (std::uint64_t i = 0; i < walks; ++i) {
    const std::uint64_t first = random.below(keys - pairs);
    auto walk = t.cursor({.from = key(first), .most = pairs});
    for (std::uint64_t k = first; k < first + pairs; ++k) {
      ASSERT_TRUE(walk.next());
      EXPECT_EQ(walk.key(), key(k));
    }
  }
  // A run of a spill goes on in another segment now and then.
  EXPECT_LE(m.capacity.inner().of(blocks::stream::values).reads, walks * (spills + 3));
}

// A walk that is limited is the begin of the one that is not, in both directions and whatever is read ahead.
TEST(Tiered, AWalkEndsBehindItsMost) {
  machine m(8192, 8192);
  auto db = m.open(options_of_levels());
  splitmix64 random(32);
  const content right = fill_levels(*db, random);
  auto t = db->table("t");
  std::vector<std::string> keys;
  for (const auto& [key, value] : right) keys.push_back(key);
  for (const auto way : {stores::direction::forward, stores::direction::backward}) {
    for (const std::size_t most :
         {std::size_t{0}, std::size_t{1}, std::size_t{4}, std::size_t{127}, std::size_t{128}, std::size_t{129},
          std::size_t{400}, right.size() - 1, right.size(), right.size() + 1}) {
      SCOPED_TRACE(most);
      auto walk = t.cursor({.way = way, .most = most});
      std::size_t found = 0;
      for (; walk.next(); ++found) {
        ASSERT_EQ(walk.key(), keys[found]);
        ASSERT_EQ(walk.value(), right.at(keys[found]));
      }
      EXPECT_EQ(found, std::min(most, right.size()));
      EXPECT_FALSE(walk.next());
    }
    std::reverse(keys.begin(), keys.end());
  }
}

// A spill merges the sets of the root once, however many leaves take their versions.
TEST(Tiered, ASpillReadsEachSetOfTheRootOnce) {
  machine m(4096, 4096);
  auto options = small_options();
  splitmix64 random(21);
  const auto put = [&](auto& t) { t.put("key" + std::to_string(random.next()), std::string(random.below(200), 'v')); };
  {
    auto db = m.open(options);
    auto t = db->table("t");
    for (int i = 0; i < 2000; ++i) put(t);
    db->compact();
  }
  options.leaf_bytes = 1 << 20;  // none is split
  auto db = m.open(options);
  auto t = db->table("t");
  const auto before = db->stats();
  ASSERT_GT(before.leaves, 8U);
  m.staging.inner().reset();
  while (db->stats().spills == before.spills) put(t);
  ASSERT_EQ(db->stats().compactions, before.compactions);
  EXPECT_EQ(m.staging.inner().of(blocks::stream::keys).reads, options.most_sets + 1);
}

// The values of a spill lie in the log in the order of puts: so many are asked for at once that some are neighbours.
TEST(Tiered, ASpillReadsNeighboursInTheLogTogether) {
  machine m(16384, 16384);
  auto options = options_of_levels();
  options.memory_limit = 3 << 19;
  options.segment_bytes = 128 << 10;
  options.manifest_bytes = 128 << 10;
  auto db = m.open(options);
  auto t = db->table("t");
  splitmix64 random(34);
  std::uint64_t puts = 0;
  for (; db->stats().spills == 0; ++puts) t.put("key" + std::to_string(random.next()), std::string(1000, 'v'));
  ASSERT_GT(puts, 1024U);
  ASSERT_GT(db->stats().spilled_value_bytes, 1024U * 1000);
  EXPECT_LT(m.staging.inner().of(blocks::stream::values).reads, puts / 2);
}

// Values move in batches of 1024 values, or of 1 MiB, and are read by 128 requests at a time: on either side of the
// bounds, none is lost.
TEST(Tiered, BatchesOfASpillEndAnywhere) {
  struct size {
    std::uint64_t values;
    std::size_t bytes;
  };
  constexpr std::size_t kib = 1024;
  for (const size s : {size{127, 10},
                       {128, 10},
                       {129, 10},
                       {256, 10},
                       {257, 0},
                       {1023, 10},
                       {1024, 10},
                       {1025, 1000},
                       {2049, 200},
                       {128, 8 * kib - 1},
                       {128, 8 * kib},
                       {128, 8 * kib + 1},
                       {17, 64 * kib},
                       {1, kib * kib},
                       {3, kib * kib}}) {
    SCOPED_TRACE(std::to_string(s.values) + " values of " + std::to_string(s.bytes));
    machine m(48 << 10, 32 << 10);
    auto options = small_options();
    options.segment_bytes = 2 << 20;
    options.memory_limit = 8 << 20;
    options.leaf_bytes = 64 << 20;
    content right;
    {
      auto db = m.open(options);
      auto t = db->table("t");
      const auto put = [&](std::uint64_t i, char letter) {
        const std::string key = "key" + std::to_string(1000 + i);
        t.put(key, right[key] = std::string(s.bytes, letter));
      };
      for (std::uint64_t i = 0; i < s.values; ++i) put(i, static_cast<char>('a' + i % 26));
      db->compact();
      EXPECT_EQ(all_of(t), right);
      for (std::uint64_t i = 0; i < s.values; i += 2) put(i, 'X');
      db->compact();
      EXPECT_EQ(db->stats().entries, s.values);
      expect_sound(*db);
    }
    EXPECT_EQ(all_of(m.open(options)->table("t")), right);
  }
}

// A walk whose read failed goes on: behind the key whose value it was, or where it was. No key is lost, and none comes
// twice.
TEST(Tiered, AWalkGoesOnBehindAFailedRead) {
  machine m(2048, 2048);
  splitmix64 random(15);
  auto options = small_options();
  options.memory_limit = 64 << 10;
  auto db = m.open(options);
  auto t = db->table("t");
  content right;
  for (int i = 0; i < 1500; ++i) {
    const std::string key = key_of(random, 300);
    t.put(key, right[key] = value_of(random, static_cast<std::uint64_t>(i)));
  }
  const auto fail = [&] {
    for (drive* d : {&m.staging, &m.capacity}) d->inject_at_random({blocks::fault::io_error}, 3);
  };
  int failed = 0;
  for (const auto way : {stores::direction::forward, stores::direction::backward}) {
    content found;
    std::string last;
    auto walk = t.cursor({.way = way});
    for (bool any = true; any;) {
      fail();
      const std::string said = message_of([&] { any = walk.next(); });
      m.stop();
      if (!said.empty()) {
        ++failed;
        // The value could not be read: its key is named.
        if (!found.empty() && walk.key() != last) found[walk.key()] = right[walk.key()];
        any = walk.next();
      }
      if (!any) continue;
      last = walk.key();
      EXPECT_TRUE(found.emplace(last, walk.value()).second) << last << " came twice";
    }
    EXPECT_TRUE(found == right);
  }
  EXPECT_GT(failed, 20);
}

// Snapshots and cursors have their moment, whatever is spilled, compacted and split under them.
TEST(Tiered, SnapshotsAndCursorsOutliveSpills) {
  machine m(2048, 2048);
  splitmix64 random(12);
  auto options = small_options();
  options.memory_limit = 64 << 10;
  auto db = m.open(options);
  auto t = db->table("t");
  content right;
  for (int i = 0; i < 300; ++i) {
    const std::string key = key_of(random, 100);
    t.put(key, right[key] = value_of(random, static_cast<std::uint64_t>(i)));
  }
  const content then = right;
  const auto snapshot = db->snapshot();
  auto walking = t.cursor();
  auto at = then.begin();
  const std::uint64_t before = db->stats().spills;
  for (int i = 0; i < 1500; ++i) {
    const std::string key = key_of(random, 100);
    if (random.one_in(3)) {
      t.erase(key);
      right.erase(key);
    } else {
      t.put(key, right[key] = value_of(random, static_cast<std::uint64_t>(i)));
    }
    if (i % 20 == 0 && at != then.end()) {
      ASSERT_TRUE(walking.next());
      ASSERT_EQ(walking.key(), at->first);
      ASSERT_EQ(walking.value(), at->second);
      ++at;
    }
    if (i % 500 == 0) db->compact();
    if (i % 100 == 0) {
      ASSERT_EQ(all_of(t, &snapshot), then);
      ASSERT_EQ(all_of(t, &snapshot, stores::direction::backward), then);
    }
  }
  EXPECT_GT(db->stats().spills, before + 5);
  EXPECT_EQ(all_of(t), right);
}

// The capacity drive has no room for a spill.
// `bytes_of`: of the value of a number.
void fill_in_the_middle_of_a_spill(const std::function<std::size_t(int)>& bytes_of) {
  machine m(2048, 100);
  splitmix64 random(13);
  auto options = small_options();
  options.memory_limit = 256 << 10;
  options.leaf_bytes = 0;
  auto db = m.open(options);
  auto t = db->table("t");
  content right;
  fill(t, right, 4000, bytes_of);
  static_cast<void>(message_of([&] { db->compact(); }));
  EXPECT_EQ(all_of(t), right);
  expect_sound(*db);
  db->sync();
  m.crash(db, random);
  db = m.open(options);
  t = db->table("t");
  EXPECT_EQ(all_of(t), right);
  int compactions = 0;
  for (auto it = right.begin(); it != right.end();) {
    if (const std::string why = message_of([&] { t.erase(it->first); }); !why.empty()) {
      ASSERT_LT(++compactions, 20) << why << "; " << right.size() << " keys are left";
      static_cast<void>(message_of([&] { db->compact(); }));
      continue;
    }
    it = right.erase(it);
    if (right.size() < 40) break;
  }
  db->compact();
  EXPECT_EQ(all_of(t), right);
  for (int i = 0; i < 200; ++i) t.put("again" + std::to_string(i % 20), right["again" + std::to_string(i % 20)] = "x");
  EXPECT_EQ(all_of(t), right);
  expect_sound(*db);
}

TEST(Tiered, FullInTheMiddleOfASpill) {
  fill_in_the_middle_of_a_spill([](int) { return 500; });
}

// A short value fits into a segment whose rest is too small for the one before it.
TEST(Tiered, FullInTheMiddleOfASpillOfUnequalValues) {
  fill_in_the_middle_of_a_spill([](int i) {
    return std::array<std::size_t, 4>{900, 40, 700, 3}[static_cast<std::size_t>(i % 4)];
  });
}

// Overwrites `keys` keys of `key_bytes` bytes, alone and in batches, with values of `value_bytes`. The old versions
// fill the drives many times over.
void overwrite_a_few(std::uint64_t seed, machine& m, const stores::tiered_options& options, std::uint64_t keys,
                     std::size_t key_bytes, std::size_t value_bytes) {
  splitmix64 random(seed);
  auto db = m.open(options);
  auto t = db->table("t");
  const auto key = [&] {
    std::string k = std::to_string(random.below(keys));
    k.resize(key_bytes, 'x');
    return k;
  };
  const std::uint64_t most = std::min<std::uint64_t>(5, 7800 / (key_bytes + value_bytes + 60));
  for (int i = 0; i < 4000; ++i) {
    store::batch b;
    for (std::uint64_t n = random.one_in(4) ? 1 + random.below(most) : 1; n > 0; --n)
      b.put(t, key(), std::string(value_bytes, 'v'));
    ASSERT_EQ(message_of([&] { db->write(b); }), "") << "change " << i;
  }
  expect_sound(*db);
}

// The root has too many old versions for one set more: a spill makes the room.
TEST(Tiered, AnIngestWithoutRoomSpills) {
  machine m(782, 585);
  auto options = small_options();
  options.memory_limit = 256 << 10;
  options.most_sets = 26;
  options.most_leaf_sets = 4;
  options.leaf_bytes = 24000;
  options.page_bytes = 4096;
  overwrite_a_few(7, m, options, 129, 216, 0);
}

// The values of a spill would take the last segments of the drive, and its keys had none.
TEST(Tiered, ValuesLeaveRoomForKeysOfASpill) {
  machine m(782, 647);
  auto options = small_options();
  options.place = stores::placement::capacity_only;
  options.memory_limit = 256 << 10;
  options.most_sets = 20;
  options.most_leaf_sets = 4;
  options.leaf_bytes = 24000;
  overwrite_a_few(317, m, options, 22, 10, 2069);
}

// The drive refuses a write in the middle of a spill, each in turn.
TEST(Tiered, ASpillThatFailsChangesNothing) {
  for (std::uint64_t skip = 0; skip < 6; ++skip) {
    machine m;
    splitmix64 random(14);
    auto db = m.open();
    auto t = db->table("t");
    content right;
    for (int i = 0; i < 20; ++i)
      t.put("key" + std::to_string(i), right["key" + std::to_string(i)] = std::string(900, 'v'));
    drive& failing = skip % 2 == 0 ? m.capacity : m.staging;
    failing.inject({.kind = blocks::fault::io_error,
                    .skip = skip / 2,
                    .times = 1000,
                    .only = skip % 2 == 0 ? blocks::stream::values : blocks::stream::keys});
    EXPECT_NE(message_of([&] { db->compact(); }), "") << skip;
    failing.stop();
    EXPECT_EQ(all_of(t), right);
    db->compact();
    EXPECT_EQ(all_of(t), right);
    expect_sound(*db);
    db->sync();
    m.crash(db, random);
    EXPECT_EQ(all_of(m.open()->table("t")), right);
  }
}

// A staging drive that is full sends the log and keys to the capacity drive.
TEST(Tiered, AFullStagingDriveIsNoFailure) {
  machine m(320, 4096);
  splitmix64 random(15);
  auto options = small_options();
  options.memory_limit = 128 << 10;
  options.leaf_bytes = 0;
  auto db = m.open(options);
  auto t = db->table("t");
  content right;
  for (int i = 0; i < 3000; ++i) {
    const std::string key = "a rather long key, for keys fill the staging drive " + std::to_string(i % 1500);
    t.put(key, right[key] = value_of(random, static_cast<std::uint64_t>(i)));
  }
  EXPECT_GT(m.capacity.inner().of(blocks::stream::keys).bytes_written, 0U);
  EXPECT_EQ(all_of(t), right);
  expect_sound(*db);
  db->sync();
  m.crash(db, random);
  db = m.open(options);
  EXPECT_EQ(all_of(db->table("t")), right);
  expect_sound(*db);
}

// The budget of writes, and of space, over a load and five overwrites of each key in random order.
TEST(Tiered, StaysWithinItsBudget) {
  constexpr std::uint64_t keys = 3000;
  machine m(16384, 32768);
  auto options = small_options();
  options.page_bytes = 4096;
  options.segment_bytes = 32 << 10;
  options.manifest_bytes = 64 << 10;
  options.leaf_bytes = 0;
  options.most_sets = 8;
  options.most_leaf_sets = stores::tiered_options().most_leaf_sets;
  options.memory_limit = 400 << 10;  // 13 % of the data
  options.loss.or_bytes = 64 << 10;
  auto db = m.open(options);
  auto t = db->table("t");
  splitmix64 random(16);
  std::vector<std::uint64_t> order(keys);
  for (std::uint64_t i = 0; i < keys; ++i) order[i] = i;
  double user = 0;
  double space = 0;
  int looks = 0;
  for (int round = 0; round < 6; ++round) {
    for (std::uint64_t i = keys; i-- > 1;) std::swap(order[i], order[random.below(i + 1)]);
    for (const std::uint64_t k : order) {
      const std::string key = "user" + std::to_string(100'000'000'000 + k * 2'654'435'761 % 1'000'000'007);
      t.put(key, std::string(1000, static_cast<char>('a' + round)));
      user += 1000.0 + static_cast<double>(key.size());
      if (round > 0 && k % 50 == 0) {
        const auto s = db->stats();
        space += static_cast<double>(s.staging_used_bytes + s.capacity_used_bytes) / (1016.0 * keys);
        ++looks;
      }
    }
  }
  const auto s = db->stats();
  const auto share = [&](blocks::stream of) {
    return static_cast<double>(m.staging.inner().of(of).bytes_written + m.capacity.inner().of(of).bytes_written) / user;
  };
  EXPECT_LE(share(blocks::stream::log), 1.06);
  EXPECT_LE(share(blocks::stream::keys), 0.3);
  EXPECT_LE(static_cast<double>(s.spilled_value_bytes) / user, 1.0);
  EXPECT_LE(static_cast<double>(s.compacted_value_bytes) / user, 1.0);
  EXPECT_LE(space / looks, 1.5) << "on average while it is overwritten";
  EXPECT_LE(static_cast<double>(s.staging_used_bytes + s.capacity_used_bytes), 1.5 * 1016.0 * keys);
}

TEST(Tiered, EverythingOnCapacity) {
  machine m;
  drive large(2, shape_of(1024));
  auto options = small_options();
  options.place = stores::placement::capacity_only;
  drive tiny(1, shape_of(8));
  const auto open = [&] {
    return store::open({.staging = tiny, .capacity = large}, options, blocks::virtual_clock(m.time));
  };
  open()->table("t").put("a", "1");
  EXPECT_EQ(open()->table("t").get("a"), "1");
  EXPECT_EQ(tiny.inner().of(blocks::stream::log).bytes_written, 0U);
}

// Real threads, the real clock: changes become durable by themselves.
TEST(Tiered, ThreadsOfItsOwn) {
  using real = stores::tiered<drive>;
  drive staging(1, shape_of(1 << 15));
  drive capacity(2, shape_of(1 << 15));
  auto options = small_options();
  options.manifest_bytes = 128 << 10;
  options.background = true;
  options.loss = {.at_most = 20ms, .or_bytes = 64 << 10};
  options.memory_limit = 256 << 10;
  const auto open = [&] { return real::open({.staging = staging, .capacity = capacity}, options); };
  constexpr int threads = 4;
  constexpr int each = 1500;
  {
    auto db = open();
    auto t = db->table("t");
    put_by_threads(t, threads, each, [&](int n, int i) {
      if (i % 300 != 0) return;
      const auto then = db->snapshot();
      auto c = t.cursor({.at = &then, .from = std::to_string(n)});
      EXPECT_TRUE(c.next());
    });
    for (int i = 0; i < 5; ++i) expect_sound(*db);  // while threads of the store ingest and age
    const std::uint64_t last = db->stats().sequence;
    EXPECT_EQ(last, threads * each);
    for (int i = 0; db->stats().durable < last && i < 200; ++i) std::this_thread::sleep_for(5ms);
    EXPECT_EQ(db->stats().durable, last) << db->stats().background_failure;
    EXPECT_GT(db->stats().spills, 0U) << db->stats().background_failure;
  }
  auto db = open();
  EXPECT_EQ(count_of(db->table("t").cursor()), threads * each);
}

}  // namespace
}  // namespace pmlab::tests::tiered_test
