// A key-value device whose memory and flash are copies of different moments, or damaged: the answer is a right one, or
// one error that names the cause.
#include <pmlab/base/checksum.hpp>
#include <pmlab/base/random.hpp>

#include "stores/kv_devices.hpp"
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

TEST(KvMoments, a_rebuilt_memory_fits_no_other_flash_and_its_flash_no_other_memory) {
  for (const bool of_layout_1 : {false, true}) {
    machine m;
    splitmix64 random(seed_or(9));
    content right;
    {
      store db = m.open();
      change(db, right, 60, random);
      ASSERT_TRUE(db.empty_buffer());
    }
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
  {
    store db = m.open();
    change(db, right, 60, random);
    ASSERT_TRUE(db.empty_buffer());
  }
  for (std::size_t bit = 0; bit < 8 * sizeof(layout::flash_moment); ++bit) {
    std::byte& one = m.flash_bytes()[layout::flash_moment::offset + bit / 8];
    one ^= std::byte{1} << bit % 8;
    const std::string what = message_of([&] { static_cast<void>(m.open()); });
    ASSERT_NE(what.find("the moment in block 0 of the flash"), std::string::npos) << what;
    ASSERT_TRUE(store::are_of_different_moments(*m.memory, m.on));
    if (bit != 77) one ^= std::byte{1} << bit % 8;
    if (bit == 77) break;
  }
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

}  // namespace
}  // namespace pmlab::tests
