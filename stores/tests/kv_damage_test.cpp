// A key-value device whose memory and flash are copies of different moments, or damaged: the answer is a right one, or
// one error that names the cause.
#include <pmlab/base/checksum.hpp>
#include <pmlab/base/random.hpp>

#include "stores/tests/kv_devices.hpp"
#include "support/crash_medium.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::tests {
namespace {

namespace layout = stores::detail::kv_ssd;
using stores::kv_outcome;
using bytes = std::vector<std::byte>;
using content = std::map<std::string, std::string>;
using store = stores::kv_device<crash_medium, flash>;

constexpr std::size_t memory_bytes = std::size_t{512} << 10;
constexpr int keys = 40;

std::string key_of(std::uint64_t n) { return "key " + std::to_string(n); }

// A memory and a flash, whose content can be kept and brought back.
struct machine {
  [[nodiscard]] store open() { return store::open(*memory, on, small); }
  [[nodiscard]] std::span<std::byte> flash_bytes() { return on.inner().inner().content(); }
  [[nodiscard]] bytes flash_now() { return {flash_bytes().begin(), flash_bytes().end()}; }
  void restore(const crash_medium& m, const bytes& f) {
    memory->restore(m, {});
    std::ranges::copy(f, flash_bytes().begin());
  }
  [[nodiscard]] std::unique_ptr<crash_medium> memory_now() {
    auto copy = std::make_unique<crash_medium>(memory_bytes);
    memory->track({});
    copy->restore(*memory, {});
    memory->stop_tracking();
    copy->track({});  // its content is what `restore` takes
    return copy;
  }
  [[nodiscard]] layout::state& root() {
    const auto at = memory->named_root(store::layout_name, store::layout_name, store::layout_version).word;
    return *memory->resolve(media::pointer<layout::state>(at->load()));
  }

  flash on{1U, blocks::geometry{.blocks = 300, .block_bytes = 512}};
  std::unique_ptr<crash_medium> memory = std::make_unique<crash_medium>(memory_bytes);
};

// Puts and deletions; most records reach the flash.
void change(store& db, content& right, std::uint64_t count, splitmix64& random) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string key = key_of(random.below(keys));
    if (random.one_in(5)) {
      db.erase(key);
      right.erase(key);
    } else {
      right[key] = random_value(random, random.below(400));
      ASSERT_NE(db.put(key, bytes_of(right[key])), kv_outcome::full);
    }
    if (i % 16 != 0) continue;
    ASSERT_TRUE(db.empty_buffer());
  }
}
void expect_content(store& db, const content& right, const std::string& where) {
  for (std::uint64_t n = 0; n < keys; ++n) {
    const auto found = db.get(key_of(n));
    const auto expected = right.find(key_of(n));
    ASSERT_EQ(found.has_value(), expected != right.end()) << key_of(n) << where;
    if (found) {
      ASSERT_EQ(text_of(*found), expected->second) << key_of(n) << where;
    }
  }
}
// As a release before left them: the header of version 1, and any bits where the moment is now.
void make_layout_1(machine& m) {
  m.root().step = layout::ready;
  m.root().moment = 0x0123456789abcdef;
  layout::flash_header h;
  std::memcpy(static_cast<void*>(&h), m.flash_bytes().data(), sizeof h);
  h.version = layout::flash_header::first_version;
  h.checksum = checksum(&h, offsetof(layout::flash_header, checksum));
  std::ranges::fill(m.flash_bytes().first(512), std::byte{});
  std::memcpy(m.flash_bytes().data(), &h, sizeof h);
}

struct moment {
  std::unique_ptr<crash_medium> memory;
  bytes on_flash;
  std::size_t changes;  // the content that both have
};
// Memories and flashes of a history: after each session, and after each crash of an opening.
struct history {
  std::vector<moment> moments;
  std::vector<content> right{{}};

  void keep(machine& m) { moments.push_back({m.memory_now(), m.flash_now(), right.size() - 1}); }
  // At event `at` of an opening; what was not durable is there, or is lost.
  void crash_while_opening(machine& m, std::uint64_t at, bool loses) {
    std::unique_ptr<crash_medium> left;
    bytes on_flash;
    std::uint64_t event = 0;
    m.memory->track([&] {
      if (event++ != at) return;
      std::vector<std::size_t> choice;
      for (const unpersisted_line& l : m.memory->unpersisted_lines()) choice.push_back(loses ? 0 : l.contents - 1);
      left = std::make_unique<crash_medium>(memory_bytes);
      left->restore(*m.memory, choice);
      on_flash = m.flash_now();
    });
    { store db = m.open(); }
    ASSERT_NE(left, nullptr);
    m.memory = std::move(left);
    std::ranges::copy(on_flash, m.flash_bytes().begin());
    keep(m);
  }
};

TEST(KvMoments, pairs_of_different_moments_are_refused) {
  std::uint64_t opened = 0, refused = 0;
  for (const bool of_layout_1 : {false, true}) {
    machine m;
    history h;
    splitmix64 random(seed_or(7));
    const auto session = [&] {
      content next = h.right.back();
      store db = m.open();
      expect_content(db, next, "");
      change(db, next, 60, random);
      h.right.push_back(next);
    };
    session();
    if (of_layout_1) make_layout_1(m);
    h.keep(m);
    for (int i = 0; i < 3; ++i) {
      for (std::uint64_t event = 0; event < 8; ++event) h.crash_while_opening(m, event, random.one_in(2));
      session();
      h.keep(m);
      if (HasFatalFailure()) return;
    }
    for (std::size_t a = 0; a < h.moments.size(); ++a)
      for (std::size_t b = 0; b < h.moments.size(); ++b) {
        m.restore(*h.moments[a].memory, h.moments[b].on_flash);
        const std::string where = ", memory of " + std::to_string(a) + ", flash of " + std::to_string(b);
        const bool same = h.moments[a].changes == h.moments[b].changes;
        const std::string what = message_of([&] {
          store db = m.open();
          expect_content(db, h.right[h.moments[a].changes], where);
        });
        ++(what.empty() ? opened : refused);
        if (a == b) {
          ASSERT_EQ(what, "") << where;
        }
        ASSERT_TRUE(same || !what.empty()) << where << " were opened";
        if (what.empty()) {
          // And again, behind what the crash left.
          store db = m.open();
          expect_content(db, h.right[h.moments[a].changes], where);
        } else {
          ASSERT_NE(what.find("older moment"), std::string::npos) << what << where;
          ASSERT_TRUE(store::are_of_different_moments(*m.memory, m.on)) << where;
        }
        if (HasFatalFailure()) return;
      }
  }
  EXPECT_GT(opened, 50U);
  EXPECT_GT(refused, 1000U);
  std::printf("pairs opened %lu, refused %lu\n", opened, refused);
}

// A memory whose opening was begun, and ended by a crash before the flash had its number: the next opening has another
// one.
TEST(KvMoments, a_number_is_not_begun_twice) {
  for (const bool of_layout_1 : {false, true}) {
    machine m;
    history h;
    splitmix64 random(seed_or(8));
    {
      store db = m.open();
      change(db, h.right.back(), 60, random);
    }
    if (of_layout_1) make_layout_1(m);
    for (int crash = 0; crash < 2; ++crash) {
      m.on.inject({.what = blocks::operation::write_durable, .only = blocks::stream::manifest});
      EXPECT_NE(message_of([&] { static_cast<void>(m.open()); }), "");
      m.on.stop();
    }
    const std::unique_ptr<crash_medium> begun = m.memory_now();
    {
      store db = m.open();
      expect_content(db, h.right.back(), "");
      change(db, h.right.back(), 60, random);
    }
    const bytes later = m.flash_now();
    m.restore(*begun, later);
    EXPECT_NE(message_of([&] { static_cast<void>(m.open()); }).find("is of an older moment"), std::string::npos);
  }
}

// Changes an empty device; all that it has is on flash then.
void write_some(machine& m, splitmix64& random, content& right) {
  store db = m.open();
  change(db, right, 60, random);
  ASSERT_TRUE(db.empty_buffer());
}

TEST(KvMoments, a_rebuilt_memory_fits_no_other_flash_and_its_flash_no_other_memory) {
  for (const bool of_layout_1 : {false, true}) {
    machine m;
    splitmix64 random(seed_or(9));
    content right;
    ASSERT_NO_FATAL_FAILURE(write_some(m, random, right));
    if (of_layout_1) make_layout_1(m);
    const std::unique_ptr<crash_medium> before = m.memory_now();
    const bytes flash_before = m.flash_now();
    m.memory = std::make_unique<crash_medium>(memory_bytes);
    stores::kv_rebuilt result;
    { store db = store::rebuild(*m.memory, m.on, small, result); }
    const std::unique_ptr<crash_medium> rebuilt = m.memory_now();
    const bytes flash_rebuilt = m.flash_now();
    { store db = m.open(); }  // they fit each other
    for (const bool old_memory : {true, false}) {
      m.restore(old_memory ? *before : *rebuilt, old_memory ? flash_rebuilt : flash_before);
      const std::string what = message_of([&] { static_cast<void>(m.open()); });
      EXPECT_NE(what.find("moment"), std::string::npos) << what;
    }
  }
}

TEST(KvMoments, a_damaged_moment_is_named_and_rebuilt) {
  machine m;
  splitmix64 random(seed_or(10));
  content right;
  ASSERT_NO_FATAL_FAILURE(write_some(m, random, right));
  const auto flip = [&](std::size_t bit) {
    m.flash_bytes()[layout::flash_moment::offset + bit / 8] ^= std::byte{1} << bit % 8;
  };
  for (std::size_t bit = 0; bit < 8 * sizeof(layout::flash_moment); ++bit) {
    flip(bit);
    const std::string what = message_of([&] { static_cast<void>(m.open()); });
    ASSERT_NE(what.find("the moment in block 0 of the flash"), std::string::npos) << what;
    ASSERT_TRUE(store::are_of_different_moments(*m.memory, m.on));
    flip(bit);
  }
  flip(77);
  m.memory = std::make_unique<crash_medium>(memory_bytes);
  stores::kv_rebuilt result;
  { store db = store::rebuild(*m.memory, m.on, small, result); }
  store db = m.open();
  EXPECT_EQ(result.damaged, 0U);
  for (const auto& [key, value] : right) EXPECT_EQ(text_of(db.get(key).value()), value) << key;
}

TEST(KvMoments, the_last_opening_is_the_last) {
  machine m;
  { store db = m.open(); }
  m.root().opens = layout::moment_word::most_openings;
  const std::string what = message_of([&] { static_cast<void>(m.open()); });
  EXPECT_NE(what.find("is of an older moment"), std::string::npos) << what;
  m.root().opens = 1;
  m.root().moment = layout::moment_word(m.root().moment >> 24, layout::moment_word::most_openings).word();
  const std::string last = message_of([&] { static_cast<void>(m.open()); });
  EXPECT_NE(last.find("copy its pairs to a new device"), std::string::npos) << last;
}

// ---- flipped bits

// Runs work() with one bit of the flash flipped.
template <class Work>
void with_flipped(machine& m, std::size_t bit, Work&& work) {
  std::byte& one = m.flash_bytes()[bit / 8];
  one ^= std::byte{1} << bit % 8;
  work();
  one ^= std::byte{1} << bit % 8;
}

TEST(KvFlippedBits, of_the_header_are_named_when_the_device_is_opened) {
  machine m;
  content right;
  splitmix64 random(seed_or(11));
  {
    store db = m.open();
    change(db, right, 60, random);
  }
  const std::size_t end = 8 * (layout::flash_moment::offset + sizeof(layout::flash_moment));
  for (std::size_t bit = 0; bit < 8 * 512; ++bit) {
    with_flipped(m, bit, [&] {
      const std::string what = message_of([&] {
        store db = m.open();
        expect_content(db, right, ", bit " + std::to_string(bit));
      });
      ASSERT_EQ(what.empty(), bit >= end) << what << bit;
      const bool names_it = what.find("block 0 of") != std::string::npos || what.find("no header") != std::string::npos;
      ASSERT_TRUE(what.empty() || names_it) << what;
    });
    if (HasFatalFailure()) return;
  }
}

// Each answer is right, or an error that names a record; an iterator misses a key only behind such an error.
TEST(KvFlippedBits, of_records_and_pages_are_never_served) {
  machine m;
  content right;
  splitmix64 random(seed_or(12));
  store db = m.open();
  for (int i = 0; i < 20; ++i) change(db, right, 60, random);
  ASSERT_TRUE(db.empty_buffer());
  std::uint64_t values = 0, keys_damaged = 0, harmless = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::size_t bit = 8 * 512 + random.below(8 * (m.flash_bytes().size() - 512));
    with_flipped(m, bit, [&] {
      const std::string where = ", bit " + std::to_string(bit);
      std::uint64_t errors = 0;
      const auto is_named = [&](const error& e) {
        ++errors;
        ASSERT_NE(std::string(e.what()).find("the record at unit "), std::string::npos) << e.what() << where;
      };
      for (std::uint64_t n = 0; n < keys; ++n) {
        const std::string key = key_of(n);
        const auto expected = right.find(key);
        try {
          const auto found = db.get(key);
          ASSERT_EQ(found.has_value(), expected != right.end()) << key << where;
          if (found) {
            ASSERT_TRUE(text_of(*found) == expected->second) << key << where;
          }
        } catch (const stores::kv_damaged& e) {
          is_named(e);
        }
      }
      values += errors;
      const std::uint64_t of_values = errors;
      std::vector<std::string> found;
      auto walk = db.iterate();
      for (bool ends = false; !ends;) {
        try {
          const auto some = walk.next(7);
          ends = some.size() < 7;
          found.insert(found.end(), some.begin(), some.end());
        } catch (const stores::kv_damaged& e) {
          is_named(e);
        }
      }
      std::sort(found.begin(), found.end());
      ASSERT_EQ(std::unique(found.begin(), found.end()), found.end()) << where;
      for (const std::string& key : found) ASSERT_TRUE(right.contains(key)) << key << where;
      if (errors == of_values) {
        ASSERT_EQ(found.size(), right.size()) << where;
      }
      keys_damaged += errors - of_values;
      harmless += errors == 0 ? 1 : 0;
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(values, 500U);
  EXPECT_GT(keys_damaged, 100U);
  EXPECT_GT(harmless, 100U);
  RecordProperty("values", static_cast<int>(values));
  RecordProperty("iterations", static_cast<int>(keys_damaged));
}

// Records move while a bit is wrong: collection takes no damaged byte along, and gives the rest of the superblock up.
TEST(KvFlippedBits, stay_with_their_record_while_others_are_collected) {
  splitmix64 random(seed_or(13));
  std::uint64_t errors = 0;
  for (int i = 0; i < 150; ++i) {
    machine m;
    content right;
    store db = m.open();
    for (int n = 0; n < 4; ++n) change(db, right, 60, random);
    ASSERT_TRUE(db.empty_buffer());
    const std::size_t bit = 8 * 512 + random.below(8 * (m.flash_bytes().size() / 2 - 512));
    m.flash_bytes()[bit / 8] ^= std::byte{1} << bit % 8;
    const std::string where = ", round " + std::to_string(i) + ", bit " + std::to_string(bit);
    std::uint64_t stored = 0;
    for (int n = 0; n < 1500; ++n) {
      // Half of the keys stay as they are.
      const std::string key = key_of(random.below(keys / 2));
      const std::string value = random_value(random, random.below(400));
      try {
        if (db.put(key, bytes_of(value)) == kv_outcome::full) continue;
        right[key] = value;
        ++stored;
      } catch (const stores::kv_damaged&) {
        ++errors;
      }
    }
    ASSERT_GT(stored, 1000U) << where;
    for (std::uint64_t n = 0; n < keys; ++n) {
      const auto expected = right.find(key_of(n));
      try {
        const auto found = db.get(key_of(n));
        ASSERT_EQ(found.has_value(), expected != right.end()) << key_of(n) << where;
        if (found) {
          ASSERT_TRUE(text_of(*found) == expected->second) << key_of(n) << where;
        }
      } catch (const stores::kv_damaged&) {
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 10U);
}

TEST(KvFlippedBits, of_sizes_in_the_memory_are_named) {
  machine m;
  { store db = m.open(); }
  for (layout::word* size : {&m.root().unit_bytes, &m.root().superblock_bytes, &m.root().blocks, &m.root().block_bytes})
    for (unsigned bit = 0; bit < 64; ++bit) {
      *size ^= std::uint64_t{1} << bit;
      const std::string what = message_of([&] { static_cast<void>(m.open()); });
      *size ^= std::uint64_t{1} << bit;
      ASSERT_TRUE(what.find("is damaged: its units") != std::string::npos ||
                  what.find("was made for") != std::string::npos)
          << what;
    }
}

}  // namespace
}  // namespace pmlab::tests
