// The drives on which tests of the tiered store open it, changes that they make, and looks at what it has.
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/clock.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/stores/tiered.hpp>

#include "stores/tests/crashing_drive.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace pmlab::tests {

using drive = blocks::faulty<blocks::counted<crashing_drive>>;
// The keys and values of a table.
using content = std::map<std::string, std::string>;

[[nodiscard]] constexpr blocks::geometry shape_of(std::uint64_t blocks) noexcept {
  return {.blocks = blocks, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true};
}

// Two drives and a clock, on which a store is opened again and again.
struct two_drives {
  two_drives(std::uint64_t staging_blocks, std::uint64_t capacity_blocks)
      : staging(1, shape_of(staging_blocks)), capacity(2, shape_of(capacity_blocks)) {}

  [[nodiscard]] static crashing_drive& of(drive& d) { return d.inner().inner(); }

  // Power fails while `db` is open, and is there again. Closing it writes nothing: what is in the caches of the drives
  // may be lost.
  template <class Store>
  void crash(std::unique_ptr<Store>& db, splitmix64& random) {
    const auto a = of(staging).after_crash(random);
    const auto b = of(capacity).after_crash(random);
    for (drive* d : {&staging, &capacity}) d->inject({.kind = blocks::fault::io_error, .times = 1'000'000});
    db.reset();
    stop();
    of(staging).restore(a);
    of(capacity).restore(b);
  }

  // Both drives fail now and then, until `stop`.
  void fail_at_random() {
    for (drive* d : {&staging, &capacity})
      d->inject_at_random({blocks::fault::io_error, blocks::fault::short_transfer}, 6);
  }
  // Does `action` while each request fails but the first `passed` of the staging drive, and half as many of the other
  // one. It may throw pmlab::error.
  template <class Action>
  void cut_off(std::uint64_t passed, Action&& action) {
    staging.inject({.kind = blocks::fault::io_error, .skip = passed, .times = 1000});
    capacity.inject({.kind = blocks::fault::io_error, .skip = passed / 2, .times = 1000});
    static_cast<void>(message_of(action));
    stop();
  }
  // Neither drive fails.
  void stop() {
    staging.stop();
    capacity.stop();
  }

  drive staging;
  drive capacity;
  blocks::virtual_time time;
};

// ---- looks at a store

// The pairs that are left of a cursor. Their keys are in order.
template <class Cursor>
[[nodiscard]] content rest_of(Cursor c, stores::direction way) {
  content found;
  std::vector<std::string> keys;
  while (c.next()) {
    found[c.key()] = c.value();
    keys.push_back(c.key());
  }
  if (way == stores::direction::backward) std::reverse(keys.begin(), keys.end());
  EXPECT_TRUE(std::is_sorted(keys.begin(), keys.end()));
  EXPECT_EQ(keys.size(), found.size());
  return found;
}
template <class Table>
[[nodiscard]] content all_of(Table table, stores::direction way = stores::direction::forward) {
  return rest_of(table.cursor({.way = way}), way);
}
template <class Table, class Snapshot>
[[nodiscard]] content all_of(Table table, const Snapshot* at, stores::direction way = stores::direction::forward) {
  return rest_of(table.cursor({.at = at, .way = way}), way);
}

template <class Cursor>
[[nodiscard]] int count_of(Cursor c) {
  int found = 0;
  while (c.next()) ++found;
  return found;
}

// The answer to a get, by a table of this content.
[[nodiscard]] inline std::optional<std::string> value_in(const content& right, const std::string& key) {
  const auto it = right.find(key);
  return it == right.end() ? std::nullopt : std::optional<std::string>(it->second);
}

template <class Store>
void expect_sound(Store& db) {
  const auto report = db.check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
}

// ---- changes of a store, and of the content that it is to have

// Short ones, long ones and empty ones. `number`: its characters follow from it.
[[nodiscard]] inline std::string value_of(splitmix64& random, std::uint64_t number) {
  std::string value = "value" + std::to_string(number);
  value.append(random.one_in(8) ? random.below(1500) : random.below(60), static_cast<char>('a' + number % 26));
  return random.one_in(20) ? std::string() : value;
}

// A batch of up to five random changes: puts, and half as many erases. `key()` chooses keys; `number`: of the last
// value. Returns how many changes it has.
template <class Store, class Table, class Key>
std::uint64_t write_batch(Store& db, Table& t, content& right, splitmix64& random, std::uint64_t& number, Key&& key) {
  typename Store::batch b;
  const std::uint64_t count = random.below(6);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string k = key();
    if (random.one_in(3)) {
      b.erase(t, k);
      right.erase(k);
    } else {
      right[k] = value_of(random, ++number);
      b.put(t, k, right[k]);
    }
  }
  db.write(b);
  return count;
}

// A put on drives that may fail: some errors come behind the change, which is made then.
template <class Store, class Table>
void try_to_put(Store& db, Table& t, content& right, const std::string& key, const std::string& value) {
  const std::uint64_t before = db.stats().sequence;
  static_cast<void>(message_of([&] { t.put(key, value); }));
  if (db.stats().sequence != before) right[key] = value;
}

// Puts while the drives fail at random for half of the time.
template <class Store, class Table, class Key>
void put_while_drives_fail(two_drives& drives, Store& db, Table& t, content& right, splitmix64& random, Key&& key) {
  for (std::uint64_t i = 0; i < 600; ++i) {
    if (i % 100 == 50) drives.fail_at_random();
    if (i % 100 == 0) drives.stop();
    const std::string k = key();
    try_to_put(db, t, right, k, value_of(random, i));
  }
  drives.stop();
}

// Puts until the store is full; up to `most`. `bytes_of(i)`: of the value of a number.
template <class Table, class Bytes>
void fill(Table& t, content& right, int most, Bytes&& bytes_of) {
  std::string what;
  for (int i = 0; what.empty() && i < most; ++i) {
    const std::string key = "key" + std::to_string(i);
    const std::string value(static_cast<std::size_t>(bytes_of(i)), static_cast<char>('a' + i % 26));
    what = message_of([&] { t.put(key, value); });
    if (what.empty()) right[key] = value;
  }
  EXPECT_PRED2(says, what, "the tiered store is full");
}
// A store that was full takes erases of all that it has, and is used again.
template <class Store, class Table>
void empty_and_use_again(Store& db, Table& t, const content& right) {
  for (const auto& [key, value] : right) t.erase(key);
  db.compact();
  EXPECT_EQ(all_of(t), content{});
  for (int i = 0; i < 30; ++i) t.put("again" + std::to_string(i), std::string(700, 'n'));
  EXPECT_EQ(t.get("again29"), std::string(700, 'n'));
  expect_sound(db);
}

// Puts so many values of 1,000 bytes, and compacts. Returns the bytes of the keys and values.
template <class Store, class Table>
std::uint64_t load(Store& db, Table& t, int count) {
  std::uint64_t user = 0;
  for (int i = 0; i < count; ++i) {
    const std::string key = "key" + std::to_string(i);
    t.put(key, std::string(1000, 'v'));
    user += key.size() + 1000;
  }
  db.compact();
  return user;
}

// Puts of real threads, `each` keys by each of them, and gets. `look(thread, i)`: besides, behind each put.
template <class Table, class Look>
void put_by_threads(Table& t, int threads, int each, Look&& look) {
  std::vector<std::thread> all;
  for (int n = 0; n < threads; ++n)
    all.emplace_back([&, n] {
      for (int i = 0; i < each; ++i) {
        const std::string key = std::to_string(n) + "/" + std::to_string(i);
        t.put(key, std::string(100, static_cast<char>('a' + n)));
        if (i % 3 == 0) {
          EXPECT_TRUE(t.get(key).has_value());
        }
        look(n, i);
      }
    });
  for (std::thread& one : all) one.join();
}

}  // namespace pmlab::tests
