// Damage of a tiered store: every bit of its headers, manifests, log groups, pages and values flipped; drives and
// memory of different moments; a store of the layout before. The answer is a right one, or one error that names the
// damage.
//
// PMLAB_TEST_STRIDE=1 flips each bit of each block; by default each test opens its store a few thousand times.
#include <pmlab/base/random.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/tiered.hpp>
#include <pmlab/stores/tiered/memory.hpp>

#include "stores/tests/tiered_store.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::tests::tiered_damage_test {
namespace {

using namespace std::chrono_literals;
using store = stores::tiered<drive, blocks::virtual_clock>;
using bytes = std::vector<std::byte>;
namespace layout = stores::detail::tiered;

stores::tiered_options small_options(stores::placement place = stores::placement::staging_max_capacity) {
  stores::tiered_options o;
  o.loss = {.at_most = 10ms, .or_bytes = 1 << 20};
  o.memory_limit = 64 << 10;
  o.background = false;
  o.most_sets = 2;
  o.most_leaf_sets = 2;
  o.leaf_bytes = 3000;
  o.segment_bytes = 4096;
  o.manifest_bytes = 4096;
  o.page_bytes = 512;
  o.place = place;
  o.identity = {3, 4};
  return o;
}

// The content of both drives.
struct moment {
  bytes staging, capacity;
};

struct machine : two_drives {
  explicit machine(stores::placement p = stores::placement::staging_max_capacity)
      : two_drives(160, 80), options(small_options(p)) {}

  std::unique_ptr<store> open() {
    return store::open({.staging = staging, .capacity = capacity}, options, blocks::virtual_clock(time));
  }
  std::unique_ptr<store> open_to_read() {
    auto o = options;
    o.read_only = true;
    return store::open({.staging = staging, .capacity = capacity}, o, blocks::virtual_clock(time));
  }
  [[nodiscard]] moment now() { return {of(staging).content(), of(capacity).content()}; }
  void restore(const moment& m) { restore(m.staging, m.capacity); }
  void restore(const bytes& a, const bytes& b) {
    of(staging).restore(a);
    of(capacity).restore(b);
  }

  stores::tiered_options options;
};

std::string key_of(std::uint64_t n) { return "key" + std::to_string(n); }

// The contents behind each sync, and how many changes each had.
struct past {
  std::vector<content> states{{}};      // by sequence
  std::vector<std::uint64_t> synced{};  // sequences
};

// Changes of 40 keys, one by one, each `each`-th synced.
void change(store& db, past& p, std::uint64_t count, std::uint64_t each, splitmix64& random) {
  auto t = db.table("t");
  for (std::uint64_t i = 0; i < count; ++i) {
    content next = p.states.back();
    const std::string key = key_of(random.below(40));
    if (random.one_in(5)) {
      t.erase(key);
      next.erase(key);
    } else {
      next[key] = "v" + std::to_string(p.states.size()) + std::string(random.below(60), 'x');
      t.put(key, next[key]);
    }
    p.states.push_back(std::move(next));
    if (i % each == each - 1) {
      db.sync();
      p.synced.push_back(p.states.size() - 1);
    }
  }
}

// What an opening may do on damaged or mixed drives: each answer is right for one moment of `p` that is no older than
// `least`, or is an error. Returns false if `open` refused.
bool answers_right(machine& m, const past& p, std::uint64_t least, const std::string& what, std::uint64_t* errors) {
  std::unique_ptr<store> db;
  try {
    db = m.open();
  } catch (const error& e) {
    EXPECT_GT(std::string(e.what()).size(), 20U);
    return false;
  }
  const std::uint64_t sequence = db->stats().sequence;
  EXPECT_LT(sequence, p.states.size()) << what;
  EXPECT_GE(sequence, least) << what << ": changes are lost in silence";
  if (sequence < least || sequence >= p.states.size()) return true;
  const content& right = p.states[sequence];
  auto t = db->table("t");
  for (std::uint64_t n = 0; n < 40; ++n) {
    try {
      EXPECT_EQ(t.get(key_of(n)), value_in(right, key_of(n))) << what;
    } catch (const error&) {
      ++*errors;
    }
  }
  // A cursor is right as far as it comes.
  try {
    auto c = t.cursor();
    auto at = right.begin();
    while (c.next()) {
      EXPECT_TRUE(at != right.end() && c.key() == at->first && c.value() == at->second) << what;
      if (at == right.end()) break;
      ++at;
    }
    EXPECT_TRUE(at == right.end()) << what;
  } catch (const error&) {
  }
  return true;
}

std::uint64_t stride(std::uint64_t usual) {
  const char* const wanted = std::getenv("PMLAB_TEST_STRIDE");
  return wanted == nullptr ? usual : std::strtoull(wanted, nullptr, 10);
}

// Flips bits of all words that are not zero. `least`: the sequence that must be there.
void flip(machine& m, const past& p, std::uint64_t least, std::uint64_t usual_stride) {
  const moment sound = m.now();
  std::uint64_t opened = 0;
  std::uint64_t refused = 0;
  std::uint64_t errors = 0;
  const std::uint64_t step = stride(usual_stride);
  for (int d = 0; d < 2; ++d) {
    const bytes& from = d == 0 ? sound.staging : sound.capacity;
    std::uint64_t used = 0;  // bits of such words
    for (std::size_t bit = 0; bit < from.size() * 8; ++bit) {
      std::uint64_t word = 0;
      std::memcpy(&word, &from[bit / 64 * 8], sizeof word);
      if (word == 0) continue;  // rests of blocks, and most of what was never written
      if (used++ % step != 0) continue;
      moment damaged = sound;
      (d == 0 ? damaged.staging : damaged.capacity)[bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      m.restore(damaged);
      ++opened;
      const std::string what = "bit " + std::to_string(bit) + " of " + (d == 0 ? "staging" : "capacity");
      if (!answers_right(m, p, least, what, &errors)) ++refused;
      if (::testing::Test::HasFailure()) return;
    }
  }
  m.restore(sound);
  std::uint64_t none = 0;
  EXPECT_TRUE(answers_right(m, p, least, "sound", &none));
  EXPECT_EQ(none, 0U);
  EXPECT_GT(refused, 0U);
  ::testing::Test::RecordProperty("opened", std::to_string(opened));
  std::printf("opened %lu, refused %lu, errors of get %lu\n", opened, refused, errors);
}

TEST(TieredDamage, AnyBitOfAStoreThatWasClosed) {
  for (const bool compacts : {false, true}) {
    machine m;
    past p;
    splitmix64 random(1);
    {
      auto db = m.open();
      change(*db, p, 60, 3, random);
      if (compacts) db->compact();
      change(*db, p, 20, 3, random);
    }
    flip(m, p, p.states.size() - 1, 47);
  }
}

// What the last flush made durable has no proof behind it; all before has.
TEST(TieredDamage, AnyBitOfAStoreThatWasCutOff) {
  machine m;
  past p;
  splitmix64 random(2);
  auto db = m.open();
  change(*db, p, 60, 3, random);
  db->compact();
  change(*db, p, 18, 3, random);
  const moment last = m.now();
  db.reset();
  m.restore(last);
  flip(m, p, p.synced[p.synced.size() - 2], 47);
}

TEST(TieredDamage, AFlippedBitOfTheLogIsNamedAndNothingIsOverwritten) {
  machine m;
  past p;
  splitmix64 random(3);
  {
    auto db = m.open();
    change(*db, p, 30, 3, random);
  }
  bytes& on = m.of(m.staging).content();
  const std::size_t first_segment = 512 + 2 * 4096;
  on[first_segment + 512 * 3 + 70] ^= std::byte{1};
  const bytes before = on;
  const std::string what = message_of([&] { m.open(); });
  EXPECT_PRED2(says, what, "the log of the tiered store is damaged in segment 0 of the staging drive at byte 1536");
  EXPECT_PRED2(says, what, "changes 10 to 12 are lost");
  EXPECT_PRED2(says, what, "up to change 30, are intact");
  EXPECT_TRUE(on == before);
  // It can be read as it was before the gap.
  {
    auto db = m.open_to_read();
    EXPECT_EQ(db->stats().sequence, 9U);
    EXPECT_EQ(all_of(db->table("t")), p.states[9]);
    EXPECT_EQ(db->damage().size(), 1U);
    EXPECT_PRED2(says, message_of([&] { db->table("t").put("a", "1"); }), "opened to be read only");
    EXPECT_PRED2(says, message_of([&] { static_cast<void>(db->table("new")); }), "no table 'new'");
    EXPECT_PRED2(says, message_of([&] { db->compact(); }), "opened to be read only");
  }
  // And salvage finds the changes behind it.
  content found;
  const std::string problems = message_of([&] {
    store::salvage(
        {.staging = m.staging, .capacity = m.capacity},
        [&](const std::string& table, const std::string& key, const std::string& value) {
          EXPECT_EQ(table, "t");
          found[key] = value;
        },
        m.options, blocks::virtual_clock(m.time));
  });
  EXPECT_PRED2(says, problems, "changes 10 to 12 are lost");
  std::uint64_t newest = 0;
  for (const auto& [key, value] : p.states.back()) newest += found.count(key) == 1 && found[key] == value ? 1 : 0;
  EXPECT_GE(newest + 3, p.states.back().size());
  EXPECT_TRUE(on == before);
}

// The bit is in the group with which a segment begins, and the store was cut off.
TEST(TieredDamage, ADamagedGroupWithWhichASegmentBegins) {
  machine m;
  past p;
  splitmix64 random(4);
  auto db = m.open();
  change(*db, p, 30, 3, random);  // ten groups of a block: eight in the first segment
  const moment last = m.now();
  db.reset();
  const std::size_t second_segment = 512 + 2 * 4096 + 4096;
  for (const std::size_t byte : std::initializer_list<std::size_t>{0, 8, 16, 24, 32, 40, 44, 48, 52, 56, 70}) {
    moment damaged = last;
    damaged.staging[second_segment + byte] ^= std::byte{1};
    m.restore(damaged);
    const std::string what = message_of([&] { m.open(); });
    EXPECT_PRED2(says, what, "changes 25 to 27 are lost") << byte << ": " << what;
  }
}

// Nothing is left of the header of that group: it was a lost write, or another one went there.
TEST(TieredDamage, AGroupWithWhichASegmentBeginsAndThatIsGone) {
  struct gone_group {
    const char* what;
    bool opens_again;  // the group is the first of a session
    std::byte filling;
  };
  for (const auto& [what, opens_again, filling] :
       {gone_group{"zeros in a session", false, std::byte{0}}, gone_group{"junk in a session", false, std::byte{0xa5}},
        gone_group{"zeros at the start of a session", true, std::byte{0}}}) {
    SCOPED_TRACE(what);
    machine m;
    past p;
    splitmix64 random(4);
    auto db = m.open();
    change(*db, p, opens_again ? 24 : 30, 3, random);  // a group of a block for three changes: eight in a segment
    if (opens_again) {
      db.reset();
      db = m.open();
      change(*db, p, 6, 3, random);
    }
    moment last = m.now();
    db.reset();
    const auto second_segment = last.staging.begin() + 512 + 2 * 4096 + 4096;
    std::fill(second_segment, second_segment + 512, filling);
    m.restore(last);
    const std::string message = message_of([&] { m.open(); });
    EXPECT_PRED2(says, message, "changes 25 to 27 are lost");
    EXPECT_TRUE(m.now().staging == last.staging);
  }
}

// A long group is not read to know whether it is intact, unless the gap is there.
TEST(TieredDamage, AFlippedBitOfALongGroupWithWhichASegmentBegins) {
  two_drives m(6000, 6000);
  auto options = small_options();
  options.segment_bytes = 128 << 10;
  options.memory_limit = 2 << 20;
  options.loss.or_bytes = 4 << 20;
  const auto open = [&] {
    return store::open({.staging = m.staging, .capacity = m.capacity}, options, blocks::virtual_clock(m.time));
  };
  auto db = open();
  auto t = db->table("t");
  t.put_synced("a", std::string(70'000, 'a'));
  t.put_synced("b", std::string(80'000, 'b'));  // the first one of the second segment
  t.put_synced("c", "c");
  const bytes staging = two_drives::of(m.staging).content();
  const bytes capacity = two_drives::of(m.capacity).content();
  db.reset();
  const std::size_t second_segment = 512 + 2 * 4096 + (128 << 10);
  layout::group_header h;
  std::memcpy(&h, &staging[second_segment], sizeof h);
  ASSERT_EQ(h.first, 2U);
  ASSERT_GT(h.bytes, 65536U);
  for (const std::size_t word : {offsetof(layout::group_header, generation), offsetof(layout::group_header, first)})
    for (std::size_t bit = 0; bit < 64; ++bit) {
      bytes damaged = staging;
      damaged[second_segment + word + bit / 8] ^= static_cast<std::byte>(1U << bit % 8);
      two_drives::of(m.staging).restore(damaged);
      two_drives::of(m.capacity).restore(capacity);
      const std::string message = message_of([&] { open(); });
      EXPECT_PRED2(says, message, "changes 2 to 2 are lost") << "bit " << bit << " of word " << word << ": " << message;
    }
}

// It is no blank drive, on which a store would be made.
TEST(TieredDamage, AStoreOnOneDriveWithoutItsHeader) {
  two_drives m(0x200, 0x200);
  auto options = small_options(stores::placement::capacity_only);
  const auto open = [&] { return store::open({.capacity = m.capacity}, options, blocks::virtual_clock(m.time)); };
  for (const bool closes : {true, false}) {
    SCOPED_TRACE(closes ? "closed" : "cut off");
    two_drives::of(m.capacity).restore(bytes(512 * 0x200));
    auto db = open();
    db->table("t").put_synced("key", "value");
    bytes last = two_drives::of(m.capacity).content();
    db.reset();
    if (closes) last = two_drives::of(m.capacity).content();
    std::fill(last.begin(), last.begin() + 512, std::byte{0});
    for (const bool reads_only : {true, false}) {
      two_drives::of(m.capacity).restore(last);
      options.read_only = reads_only;
      const std::string message = message_of(open);
      EXPECT_PRED2(says, message, "has the manifest of a tiered store, and its header is lost");
      EXPECT_TRUE(two_drives::of(m.capacity).content() == last);
    }
    options.read_only = false;
    options.format = true;
    options.identity = {5, closes ? 6U : 7U};  // another store
    EXPECT_EQ(open()->table("t").get("key"), std::nullopt);
    options.format = false;
  }
}

TEST(TieredDamage, ADamagedPageIsAnErrorOfItsKeysOnly) {
  for (const auto place : {stores::placement::staging_max_capacity, stores::placement::staging_min_capacity}) {
    machine m(place);
    content right;
    {
      auto db = m.open();
      auto t = db->table("t");
      for (std::uint64_t n = 0; n < 60; ++n) t.put(key_of(n), right[key_of(n)] = "value" + std::to_string(n));
      db->compact();
    }
    drive& with_keys = place == stores::placement::staging_min_capacity ? m.capacity : m.staging;
    bytes& on = m.of(with_keys).content();
    const std::string wanted = "key33";
    const auto at = std::search(on.begin(), on.end(), reinterpret_cast<const std::byte*>(wanted.data()),
                                reinterpret_cast<const std::byte*>(wanted.data()) + wanted.size());
    ASSERT_TRUE(at != on.end());
    // The page, not the group of the log that has the key, too.
    std::size_t pages = 0;
    for (std::size_t b = 512 * 2; b + 512 <= on.size(); b += 512) {
      const std::string text(reinterpret_cast<const char*>(&on[b]), 512);
      if (text.find(wanted) == std::string::npos || text.find("value") != std::string::npos) continue;
      on[b + 100] ^= std::byte{4};
      ++pages;
    }
    ASSERT_GT(pages, 0U);
    const moment damaged = m.now();
    for (const bool reads_only : {true, false}) {
      m.restore(damaged);
      auto db = reads_only ? m.open_to_read() : m.open();
      EXPECT_EQ(db->damage().size(), 1U);
      EXPECT_PRED2(says, db->damage().front(), "is damaged (keys from '") << db->damage().front();
      auto t = db->table("t");
      std::uint64_t errors = 0;
      for (std::uint64_t n = 0; n < 60; ++n) {
        const std::string what = message_of([&] { EXPECT_EQ(t.get(key_of(n)), right[key_of(n)]); });
        if (!what.empty()) ++errors;
        if (key_of(n) == wanted) {
          EXPECT_PRED2(says, what, "is damaged");
        }
      }
      EXPECT_LT(errors, 20U);
      EXPECT_FALSE(db->check().ok());
      EXPECT_NE(message_of([&] { static_cast<void>(all_of(t)); }), "");
      if (reads_only) continue;
      t.put(wanted, "new");
      EXPECT_EQ(t.get(wanted), "new");
    }
    m.restore(damaged);
    content found;
    const std::string problems = message_of([&] {
      store::salvage(
          {.staging = m.staging, .capacity = m.capacity},
          [&](const std::string&, const std::string& key, const std::string& value) { found[key] = value; }, m.options,
          blocks::virtual_clock(m.time));
    });
    EXPECT_PRED2(says, problems, "of the keys of set");
    EXPECT_GT(found.size(), 40U);
    for (const auto& [key, value] : found) EXPECT_EQ(value, right[key]);
    EXPECT_TRUE(m.of(m.staging).content() == damaged.staging && m.of(m.capacity).content() == damaged.capacity);
  }
}

// Each pair of states of the two drives, of a history of sessions, syncs, spills and closings.
TEST(TieredDamage, DrivesOfDifferentMoments) {
  for (const auto place : {stores::placement::staging_max_capacity, stores::placement::staging_min_capacity}) {
    machine m(place);
    past p;
    splitmix64 random(5);
    struct recorded {
      moment drives;
      std::uint64_t synced;
    };
    std::vector<recorded> history;
    for (int session = 0; session < 4; ++session) {
      auto db = m.open();
      for (int i = 0; i < 4; ++i) {
        change(*db, p, 12, 3, random);
        if (i % 2 == 1) db->compact();
        history.push_back({m.now(), p.synced.back()});
      }
      const bool closes = session % 2 == 0;
      const moment last = m.now();
      db.reset();
      if (!closes) m.restore(last);
      history.push_back({m.now(), p.synced.back()});
    }
    std::uint64_t refused = 0;
    std::uint64_t opened = 0;
    std::uint64_t errors = 0;
    for (std::size_t a = 0; a < history.size(); ++a)
      for (std::size_t b = 0; b < history.size(); ++b) {
        m.restore(history[a].drives.staging, history[b].drives.capacity);
        const std::string what = "staging of " + std::to_string(a) + ", capacity of " + std::to_string(b);
        // Where the other drive was the same at both moments, this is the older moment, whole.
        const bool same = history[a].drives.capacity == history[b].drives.capacity;
        const std::uint64_t least = same ? history[a].synced : std::max(history[a].synced, history[b].synced);
        if (answers_right(m, p, least, what, &errors)) {
          ++opened;
          EXPECT_TRUE(same) << what << " were opened";
        } else {
          ++refused;
          m.restore(history[a].drives.staging, history[b].drives.capacity);
          EXPECT_PRED2(says, message_of([&] { m.open(); }), "older moment") << what;
        }
      }
    EXPECT_EQ(errors, 0U);
    EXPECT_GT(refused, opened);
    std::printf("pairs opened %lu, refused %lu\n", opened, refused);
  }
}

// Two copies of a store that are both used: the numbers of sessions and manifests are the same.
TEST(TieredDamage, HalvesOfTwoCopiesThatWereBothUsed) {
  for (const auto place : {stores::placement::staging_max_capacity, stores::placement::staging_min_capacity}) {
    machine m(place);
    past p;
    splitmix64 random(6);
    change(*m.open(), p, 12, 3, random);
    const moment before = m.now();
    std::vector<moment> copies;
    for (int copy = 0; copy < 2; ++copy) {
      m.restore(before);
      for (int session = 0; session < 2; ++session) {
        auto db = m.open();
        change(*db, p, 12, 3, random);
        db->compact();
      }
      copies.push_back(m.now());
    }
    for (const int a : {0, 1}) {
      m.restore(copies[a].staging, copies[1 - a].capacity);
      const std::string what = message_of([&] { m.open(); });
      EXPECT_PRED2(says, what, "moment");
      m.restore(copies[a]);
      EXPECT_EQ(message_of([&] { m.open(); }), "");
    }
  }
}

// Writes that fail, and are on a drive nevertheless: each key has its last acknowledged value, or that of a later
// change which failed.
TEST(TieredDamage, AFailedAnswerOfADriveUndoesNothingThatIsAcknowledged) {
  std::uint64_t failed = 0, opened = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    splitmix64 random(seed);
    two_drives m(400, 300);
    const auto options = small_options(random.one_in(2) ? stores::placement::staging_max_capacity
                                                        : stores::placement::staging_min_capacity);
    const auto open = [&] {
      ++opened;
      return store::open({.staging = m.staging, .capacity = m.capacity}, options, blocks::virtual_clock(m.time));
    };
    auto db = open();
    // An absent key has the empty value.
    std::map<std::string, std::set<std::string>> may_have;
    for (std::uint64_t n = 0; n < 20; ++n) may_have[key_of(n)] = {""};
    for (int step = 0; step < 120; ++step) {
      for (drive* d : {&m.staging, &m.capacity})
        if (random.one_in(8))
          d->inject({.kind = random.one_in(4) ? blocks::fault::io_error : blocks::fault::failed_answer,
                     .skip = random.below(4),
                     .times = 1 + random.below(2)});
      const std::string key = key_of(random.below(20));
      const bool erases = random.one_in(4);
      const std::string value = erases ? "" : "v" + std::to_string(step) + std::string(random.below(200), 'x');
      const std::string what = message_of([&] {
        auto t = db->table("t");
        if (erases)
          t.erase(key);
        else
          t.put(key, value);
        db->sync();
        if (random.one_in(10)) db->compact();
      });
      if (what.empty()) may_have[key].clear();
      may_have[key].insert(value);
      failed += what.empty() ? 0 : 1;
      if (!what.empty() && random.one_in(2)) {
        m.stop();
        db.reset();
        db = open();
      }
      if (!random.one_in(8)) continue;
      m.crash(db, random);
      db = open();
      auto t = db->table("t");
      for (auto& [k, values] : may_have) {
        const std::string found = t.get(k).value_or("");
        ASSERT_TRUE(values.contains(found)) << k << " has " << found << ", seed " << seed << ", step " << step;
        values = {found};
      }
    }
    m.stop();
  }
  EXPECT_GT(failed, 500U);
  EXPECT_GT(opened, 900U);
}

// A store of layout 2 is one without epochs: it is opened, and becomes one of layout 4; a crash in between is no harm.
void make_layout_2(bytes& drive_bytes, bool has_manifests, std::uint32_t segments_from, std::uint64_t segment_count) {
  layout::drive_header h;
  std::memcpy(&h, drive_bytes.data(), sizeof h);
  h.version = 2;
  h.checksum = layout::checksum_of(h);
  std::memset(drive_bytes.data(), 0, 512);
  std::memcpy(drive_bytes.data(), &h, sizeof h);
  if (!has_manifests) return;
  for (std::size_t area : std::initializer_list<std::size_t>{512, 512 + 4096}) {
    layout::manifest_header head;
    std::memcpy(&head, &drive_bytes[area], sizeof head);
    if (head.bytes < 40) continue;
    head.bytes -= 40;  // the epoch
    std::memcpy(&drive_bytes[area], &head, sizeof head);
    head.checksum = hash_of_bytes(&drive_bytes[area] + 8, sizeof head - 8 + head.bytes, 3);
    std::memcpy(&drive_bytes[area], &head, sizeof head);
  }
  std::uint64_t before = 0;
  for (std::uint64_t at = segments_from; at + 512 <= segments_from + segment_count * 4096; at += 512) {
    layout::group_header g;
    std::memcpy(&g, &drive_bytes[at], sizeof g);
    if (g.store != layout::identity{3, 4} || g.records == 0) continue;
    g.durable = 0;
    if (before != 0) g.previous = before;
    before = layout::seal(&drive_bytes[at], g);
  }
}

// The headers of layout 3 had other checksums.
void make_layout_3(bytes& drive_bytes) {
  layout::drive_header h;
  std::memcpy(&h, drive_bytes.data(), sizeof h);
  h.version = 3;
  h.checksum = hash_of_bytes(&h, offsetof(layout::drive_header, checksum), 4);
  std::memcpy(drive_bytes.data(), &h, sizeof h);
  layout::drive_epoch e;
  std::memcpy(&e, &drive_bytes[layout::drive_epoch::offset], sizeof e);
  e.checksum = hash_of_bytes(&e, offsetof(layout::drive_epoch, checksum), 6);
  std::memcpy(&drive_bytes[layout::drive_epoch::offset], &e, sizeof e);
}

TEST(TieredDamage, AStoreOfAnEarlierLayout) {
  machine m;
  past p;
  splitmix64 random(6);
  {
    auto db = m.open();
    change(*db, p, 24, 3, random);  // in one segment
  }
  moment layout_2 = m.now();
  make_layout_2(layout_2.staging, true, 512 + 2 * 4096, 1);
  make_layout_2(layout_2.capacity, false, 0, 0);
  moment layout_3 = m.now();
  make_layout_3(layout_3.staging);
  make_layout_3(layout_3.capacity);
  for (std::uint64_t round = 0; round < 24; ++round) {
    const std::uint64_t passed = round % 12;
    const moment& old = round < 12 ? layout_2 : layout_3;
    m.restore(old);
    // The manifests of `old` have another length: both areas count.
    m.cut_off(passed + 200, [&] { m.open_to_read(); });
    EXPECT_TRUE(m.now().staging == old.staging);
    for (drive* d : {&m.staging, &m.capacity})
      d->inject(
          {.kind = blocks::fault::io_error, .skip = passed, .times = 1000, .what = blocks::operation::write_durable});
    static_cast<void>(message_of([&] { m.open(); }));
    m.stop();
    const bytes now = m.now().staging;
    const bool has_new_manifest = !std::equal(&now[512], &now[512 + 2 * 4096], &old.staging[512]);
    if (has_new_manifest && round >= 12) {
      EXPECT_EQ(now[8], std::byte{4}) << "(U4) comes behind the manifest";
    }
    std::uint64_t errors = 0;
    EXPECT_TRUE(answers_right(m, p, p.states.size() - 1, round < 12 ? "layout 2" : "layout 3", &errors))
        << message_of([&] { m.open(); });
    EXPECT_EQ(errors, 0U);
    layout::drive_header h;
    std::memcpy(&h, m.of(m.staging).content().data(), sizeof h);
    EXPECT_EQ(h.version, 4U);
  }
}

TEST(TieredDamage, MemoryAndDrivesOfDifferentMoments) {
  using pool = media::dram;
  using on_memory = stores::tiered<drive, blocks::virtual_clock, stores::memtable_on<pool>>;
  two_drives m(320, 320);
  auto options = small_options();
  options.loss.at_most = 0ms;
  options.memtable_bytes = 4000;
  options.identity = {5, 6};
  const auto open = [&](pool& memory) {
    return on_memory::open({.staging = m.staging, .capacity = m.capacity, .memory = &memory}, options,
                           blocks::virtual_clock(m.time));
  };
  pool memory{media::dram_options{}};
  {
    auto db = open(memory);
    for (std::uint64_t n = 0; n < 30; ++n) db->table("t").put(key_of(n), "old");
  }
  const bytes staging = m.of(m.staging).content();
  const bytes capacity = m.of(m.capacity).content();
  {
    auto db = open(memory);
    for (std::uint64_t n = 0; n < 30; ++n) db->table("t").put(key_of(n), "new");
    EXPECT_EQ(db->table("t").get("key1"), "new");
  }
  const bytes staging_now = m.of(m.staging).content();
  const bytes capacity_now = m.of(m.capacity).content();
  // Older drives.
  m.of(m.staging).restore(staging);
  m.of(m.capacity).restore(capacity);
  EXPECT_PRED2(says, message_of([&] { open(memory); }), "the drives are of an older moment")
      << message_of([&] { open(memory); });
  m.of(m.staging).restore(staging_now);
  m.of(m.capacity).restore(capacity_now);
  EXPECT_EQ(open(memory)->table("t").get("key1"), "new");
  // Older memory: the epoch of the pool goes back, as a copy of the pool would.
  {
    stores::detail::tiered::version_index<pool, indexes::skip_list<pool>> versions(memory);
    auto e = versions.epoch();
    EXPECT_GT(e.session, 1U);
    e.session -= 1;
    e.promised -= 2;
    e.confirmed -= 2;
    versions.become(e);
  }
  const std::string what = message_of([&] { open(memory); });
  EXPECT_PRED2(says, what, "the memory is of an older moment");
}

}  // namespace
}  // namespace pmlab::tests::tiered_damage_test
