// A key-value device whose memory and flash are copies of different moments, or damaged: the answer is a right one, or
// one error that names the cause.
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>

#include "stores/tests/kv_devices.hpp"
#include "support/message_of.hpp"
#include "support/restartable_medium.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::tests::kv_damage_test {
namespace {

namespace layout = stores::detail::kv_ssd;
using stores::kv_outcome;
using bytes = std::vector<std::byte>;
using content = std::map<std::string, std::string>;
using store = stores::kv_device<restartable_medium, flash>;

constexpr std::size_t memory_bytes = std::size_t{512} << 10;
constexpr int keys = 40;

std::string key_of(std::uint64_t n) { return "key " + std::to_string(n); }

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
void expect_value(store& db, const content& right, const std::string& key, const std::string& where) {
  const auto found = db.get(key);
  const auto expected = right.find(key);
  ASSERT_EQ(found.has_value(), expected != right.end()) << key << where;
  if (found) {
    ASSERT_TRUE(text_of(*found) == expected->second) << key << where;
  }
}
void expect_content(store& db, const content& right, const std::string& where) {
  for (std::uint64_t n = 0; n < keys; ++n) ASSERT_NO_FATAL_FAILURE(expect_value(db, right, key_of(n), where));
}
// Versions 'a', 'b' and 'c' of eight keys, all in the write buffer.
void overwrite_in_the_buffer(store& db, content& right) {
  for (const char value : {'a', 'b', 'c'})
    for (std::uint64_t n = 0; n < 8; ++n) {
      right[key_of(n)] = std::string(100 + n, value);
      db.put(key_of(n), bytes_of(right[key_of(n)]));
    }
}
// The medium has no room any more for a node of the directory.
void fill(restartable_medium& memory) {
  restartable_medium::publication all(memory);
  while (all.allocate(512, 64) != nullptr) all.commit();
}
// Copies of a memory and a flash.
struct moment {
  std::unique_ptr<restartable_medium> memory;
  bytes on_flash;
  std::size_t changes = 0;  // the content that both have
};

// A memory and a flash, whose content can be kept and brought back.
struct machine {
  [[nodiscard]] store open() { return store::open(*memory, on, small); }
  // The error of opening it. Empty: it opens, and has `right`.
  [[nodiscard]] std::string refusal() {
    return message_of([&] { static_cast<void>(open()); });
  }
  [[nodiscard]] std::string refusal(const content& right, const std::string& where = "") {
    return message_of([&] {
      store db = open();
      expect_content(db, right, where);
    });
  }
  // Opened, changed and closed.
  void use(content& right, splitmix64& random) {
    store db = open();
    change(db, right, 60, random);
  }
  // A memory that was lost is rebuilt from the flash.
  void rebuild() {
    lose_memory();
    stores::kv_rebuilt result;
    { store db = store::rebuild(*memory, on, small, result); }
    EXPECT_EQ(result.damaged, 0U);
  }
  void lose_memory() { memory = std::make_unique<restartable_medium>(memory_bytes); }

  [[nodiscard]] std::span<std::byte> flash_bytes() { return on.inner().inner().content(); }
  [[nodiscard]] moment now(surviving what = surviving::all) {
    moment copy{std::make_unique<restartable_medium>(memory_bytes), {flash_bytes().begin(), flash_bytes().end()}};
    copy.memory->restore(*memory, what);
    return copy;
  }
  void restore(const moment& of_memory, const moment& of_flash) {
    memory->restore(*of_memory.memory);
    std::ranges::copy(of_flash.on_flash, flash_bytes().begin());
  }
  void restore(const moment& both) { restore(both, both); }

  // Crashes at event `at` of `work`; `surviving`: of the memory. False, and nothing is restored: it has fewer events.
  template <class Work>
  [[nodiscard]] bool crash(std::uint64_t at, surviving what, Work&& work) {
    std::optional<moment> left;
    std::uint64_t event = 0;
    work([&] {
      memory->watch([&, at, what] {
        if (event++ == at) left = now(what);
      });
    });
    memory->stop_watching();
    if (left) restore(*left);
    return left.has_value();
  }

  [[nodiscard]] layout::state& root() {
    const auto at = memory->named_root(store::layout_name, store::layout_name, store::layout_version).word;
    return *memory->resolve(media::pointer<layout::state>(at->load()));
  }
  [[nodiscard]] layout::flash_moment moment_on_flash() {
    layout::flash_moment found;
    std::memcpy(&found, flash_bytes().data() + layout::flash_moment::offset, sizeof found);
    return found;
  }
  void set_moment_on_flash(const layout::flash_moment& to) {
    std::memcpy(flash_bytes().data() + layout::flash_moment::offset, &to, sizeof to);
  }
  // Gives the header of the flash another version.
  void set_version(std::uint64_t version) {
    layout::flash_header h;
    std::memcpy(static_cast<void*>(&h), flash_bytes().data(), sizeof h);
    h.version = static_cast<decltype(h.version)>(version);
    h.checksum = hash_of_bytes(&h, offsetof(layout::flash_header, checksum));
    std::memcpy(flash_bytes().data(), &h, sizeof h);
  }
  // The start of the write buffer.
  [[nodiscard]] std::byte* ring() { return memory->resolve(media::pointer<std::byte>(root().ring)); }
  // The records in the write buffer that `is_wanted(record)` selects.
  template <class IsWanted>
  [[nodiscard]] std::vector<std::byte*> records(IsWanted&& is_wanted) {
    std::vector<std::byte*> found;
    for (std::uint64_t line = 0; line < root().ring_lines; ++line) {
      std::byte* const at = ring() + line * media::cache_line_bytes;
      const layout::record_view record({at, 512});
      if (record.has_whole_head(root().identity[0]) && is_wanted(record)) found.push_back(at);
    }
    return found;
  }

  using table = indexes::cceh<restartable_medium>;
  // The word of the index that leads to the key's record; as it is there, with its name.
  [[nodiscard]] std::uint64_t word_of(const std::string& key) {
    return table::open(*memory, "kv_ssd:i").find(slot_of(key)).value();
  }
  [[nodiscard]] layout::place_word place_of(const std::string& key) {
    return layout::place_word::of_named(word_of(key), table::hash_of(slot_of(key)));
  }
  // The words of the table that have a slot's name: one, and what splits have left behind.
  [[nodiscard]] std::vector<std::uint64_t*> names_of(std::uint64_t slot) {
    constexpr std::size_t begin = 4096;  // before it no address may be used
    auto* const words = memory->resolve(media::pointer<std::uint64_t>(begin));
    std::vector<std::uint64_t*> found;
    for (auto* w = words; w != words + (memory_bytes - begin) / sizeof *words; ++w)
      if (*w >> 6 == table::hash_of(slot) >> 6 && (*w & 1) != 0) found.push_back(w);
    return found;
  }
  void set_word(const std::string& key, std::uint64_t w) {
    indexes::cceh<restartable_medium>::open(*memory, "kv_ssd:i").update(slot_of(key), w);
  }
  [[nodiscard]] static std::uint64_t slot_of(const std::string& key) {
    return layout::base_of_hash(layout::default_hash{}(0, key), false);
  }

  flash on{1U, blocks::geometry{.blocks = 300, .block_bytes = 512}};
  std::unique_ptr<restartable_medium> memory = std::make_unique<restartable_medium>(memory_bytes);
};

// As a release before left them: the header of version 1, and any bits where the moment is now.
void make_layout_1(machine& m) {
  m.root().notes &= layout::all_notes;
  m.root().step = layout::ready;
  m.root().begun = 0x0123456789abcdef;
  m.root().durable = stores::detail::moment(m.root().durable).number();
  m.set_version(layout::flash_header::first_version);
  std::ranges::fill(m.flash_bytes().first(512).subspan(sizeof(layout::flash_header)), std::byte{});
}

// Changes an empty device; all that it has is on flash then.
content write_some(machine& m, splitmix64& random, bool of_layout_1 = false) {
  content right;
  {
    store db = m.open();
    change(db, right, 60, random);
    EXPECT_TRUE(db.empty_buffer());
  }
  if (of_layout_1) make_layout_1(m);
  return right;
}

// Memories and flashes of a history: after each session, and after each crash of an opening.
struct history {
  std::vector<moment> moments;
  std::vector<content> right{{}};

  void keep(machine& m) {
    moments.push_back(m.now());
    moments.back().changes = right.size() - 1;
  }
  // The error of the memory of one moment with the flash of another; empty: it has the content of the memory's.
  [[nodiscard]] std::string refusal(machine& m, const moment& of_memory, const moment& of_flash,
                                    const std::string& where = "") const {
    m.restore(of_memory, of_flash);
    return m.refusal(right[of_memory.changes], where);
  }
  // At event `at` of an opening; what was not durable is there, or is lost.
  void crash_while_opening(machine& m, std::uint64_t at, bool loses) {
    ASSERT_TRUE(m.crash(at, loses ? surviving::durable : surviving::all, [&](auto&& begin) {
      begin();
      store db = m.open();
    }));
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
        const std::string where = ", memory of " + std::to_string(a) + ", flash of " + std::to_string(b);
        const bool same = h.moments[a].changes == h.moments[b].changes;
        const std::string what = h.refusal(m, h.moments[a], h.moments[b], where);
        ++(what.empty() ? opened : refused);
        if (a == b) {
          ASSERT_EQ(what, "") << where;
        }
        ASSERT_TRUE(same || !what.empty()) << where << " were opened";
        if (what.empty()) {
          // And again, behind what the crash left.
          ASSERT_EQ(m.refusal(h.right[h.moments[a].changes], where), "");
        } else {
          ASSERT_PRED2(says, what, "older moment") << what << where;
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
    splitmix64 random(seed_or(8));
    content right;
    m.use(right, random);
    if (of_layout_1) make_layout_1(m);
    for (int crash = 0; crash < 2; ++crash) {
      m.on.inject({.what = blocks::operation::write_durable, .only = blocks::stream::manifest});
      EXPECT_NE(m.refusal(), "");
      m.on.stop();
    }
    const moment begun = m.now();
    EXPECT_EQ(m.refusal(right), "");
    m.use(right, random);
    m.restore(begun, m.now());
    EXPECT_PRED2(says, m.refusal(), "is of an older moment");
  }
}

TEST(KvMoments, a_rebuilt_memory_fits_no_other_flash_and_its_flash_no_other_memory) {
  for (const bool of_layout_1 : {false, true}) {
    machine m;
    splitmix64 random(seed_or(9));
    write_some(m, random, of_layout_1);
    const moment before = m.now();
    m.rebuild();
    const moment rebuilt = m.now();
    EXPECT_EQ(m.refusal(), "") << "they fit each other";
    for (const bool old_memory : {true, false}) {
      m.restore(old_memory ? before : rebuilt, old_memory ? rebuilt : before);
      const std::string what = m.refusal();
      EXPECT_PRED2(says, what, "moment");
    }
  }
}

TEST(KvMoments, a_damaged_moment_is_named_and_rebuilt) {
  machine m;
  splitmix64 random(seed_or(10));
  const content right = write_some(m, random);
  const auto flip = [&](std::size_t bit) {
    m.flash_bytes()[layout::flash_moment::offset + bit / 8] ^= std::byte{1} << bit % 8;
  };
  for (std::size_t bit = 0; bit < 8 * sizeof(layout::flash_moment); ++bit) {
    flip(bit);
    const std::string what = m.refusal();
    ASSERT_PRED2(says, what, "the moment in block 0 of the flash");
    ASSERT_TRUE(store::are_of_different_moments(*m.memory, m.on));
    flip(bit);
  }
  flip(77);
  m.rebuild();
  EXPECT_EQ(m.refusal(right), "");
}

// As the last release left them: all openings with one mark, and the number of the durable one only.
void give_all_openings_one_mark(machine& m) {
  constexpr std::uint64_t mark = 0x123456789a;
  const std::uint64_t number = stores::detail::moment(m.root().begun).number();
  m.root().begun = stores::detail::moment(mark, number).word();
  m.root().durable = number;
  layout::flash_moment on_flash{m.root().begun, 0};
  on_flash.checksum = hash_of_bytes(&on_flash.word, sizeof on_flash.word, m.root().identity[0]);
  m.set_moment_on_flash(on_flash);
}

TEST(KvMoments, those_of_the_last_release_are_compared_by_their_numbers) {
  machine m;
  history h;
  splitmix64 random(seed_or(15));
  for (int i = 0; i < 3; ++i) {
    content next = h.right.back();
    m.use(next, random);
    h.right.push_back(next);
    give_all_openings_one_mark(m);
    h.keep(m);
  }
  for (const moment& a : h.moments)
    for (const moment& b : h.moments) {
      const std::string what = h.refusal(m, a, b);
      ASSERT_EQ(what.empty(), &a == &b) << what;
      if (what.empty()) {
        EXPECT_NE(stores::detail::moment(m.root().durable).mark(), 0U);
      }
    }
}

// Two copies of a device that are both used: the numbers of their openings are the same.
TEST(KvMoments, halves_of_two_copies_that_were_both_used_are_refused) {
  for (const bool of_layout_1 : {false, true}) {
    machine m;
    history h;
    splitmix64 random(seed_or(16));
    h.right.back() = write_some(m, random, of_layout_1);
    h.keep(m);
    const content before = h.right.back();
    for (int copy = 0; copy < 2; ++copy) {
      m.restore(h.moments[0]);
      content next = before;
      for (int openings = 0; openings < 2; ++openings) m.use(next, random);
      h.right.push_back(next);
      h.keep(m);
    }
    for (const std::size_t a : {1, 2})
      for (const std::size_t b : {1, 2}) {
        const std::string what = h.refusal(m, h.moments[a], h.moments[b]);
        ASSERT_EQ(what.empty(), a == b) << what;
        ASSERT_TRUE(what.empty() || what.find("two copies that were both used") != std::string::npos) << what;
      }
  }
}

// Each crash in the last steps of an opening, which begin its moment, behind each of the opening before it.
TEST(KvMoments, openings_that_crash_one_behind_the_other_are_of_one_moment) {
  constexpr std::uint64_t last_steps = 6;
  for (const bool of_layout_1 : {false, true}) {
    machine m;
    history h;
    splitmix64 random(seed_or(17));
    h.right.back() = write_some(m, random, of_layout_1);
    h.keep(m);
    for (std::uint64_t first = 0; first < 2 * last_steps; ++first)
      for (std::uint64_t second = 0; second < 2 * last_steps; ++second) {
        m.restore(h.moments[0]);
        for (const std::uint64_t crash : {first, second}) {
          const moment before = m.now();
          std::uint64_t events = 0;
          bool is_open = false;
          m.memory->watch([&] { events += is_open ? 0 : 1; });
          {
            store db = m.open();
            is_open = true;  // the closing has events, too
          }
          m.restore(before);
          ASSERT_GE(events, last_steps);
          h.crash_while_opening(m, events - 1 - crash / 2, crash % 2 == 0);
        }
        const std::string where = ", crashes " + std::to_string(first) + " and " + std::to_string(second);
        ASSERT_EQ(m.refusal(h.right.back(), where), "") << where;
      }
  }
}

// A crash that tears a write between the words of the moment.
TEST(KvMoments, a_torn_moment_is_one_of_the_two_that_the_memory_knows) {
  machine m;
  splitmix64 random(seed_or(18));
  const content right = write_some(m, random);
  const layout::flash_moment old = m.moment_on_flash();
  for (const bool has_word : {false, true}) {
    const std::uint64_t durable = m.root().durable;
    { store db = m.open(); }
    const layout::flash_moment next = m.moment_on_flash();
    if (!has_word) m.root().durable = durable;  // the crash was before (E3)
    m.set_moment_on_flash(has_word ? layout::flash_moment{next.word, old.checksum}
                                   : layout::flash_moment{old.word, next.checksum});
    const std::string what = m.refusal(right);
    // With the next moment known to be durable, the write was whole: this is damage.
    ASSERT_EQ(what.empty(), !has_word) << what;
  }
}

TEST(KvMoments, an_opening_that_fails_has_begun_none) {
  machine m;
  splitmix64 random(seed_or(19));
  content right = write_some(m, random);
  {
    store db = m.open();
    change(db, right, 20, random);
  }
  const moment before = m.now();
  // A damaged size is noticed behind the comparison of moments.
  const std::uint64_t lines = m.root().ring_lines;
  m.root().ring_lines = 1;
  EXPECT_NE(m.refusal(), "");
  m.root().ring_lines = lines;
  const moment behind = m.now();
  EXPECT_EQ(behind.on_flash, before.on_flash);
  m.restore(before, behind);
  EXPECT_EQ(m.refusal(right), "");
}

TEST(KvMoments, a_memory_of_the_making_does_not_take_a_used_flash) {
  machine m;
  splitmix64 random(seed_or(20));
  m.on.inject({.what = blocks::operation::write_durable, .only = blocks::stream::manifest});
  EXPECT_NE(m.refusal(), "");
  m.on.stop();
  const moment forming = m.now();
  write_some(m, random);
  m.restore(forming, m.now());
  const std::string what = m.refusal();
  EXPECT_PRED2(says, what, "an older moment than the flash");
}

TEST(KvMoments, a_flash_of_a_later_release_is_no_copy_of_another_moment) {
  machine m;
  { store db = m.open(); }
  m.set_version(layout::flash_header::current_version + 1);
  EXPECT_FALSE(store::are_of_different_moments(*m.memory, m.on));
  const std::string what = m.refusal();
  EXPECT_PRED2(says, what, "has version 5");
}

TEST(KvMoments, the_last_opening_is_the_last) {
  machine m;
  { store db = m.open(); }
  const auto last = stores::detail::moment::largest_number;
  m.root().durable = last;
  const std::string what = m.refusal();
  EXPECT_PRED2(says, what, "is of an older moment");
  m.root().durable = 1;
  m.root().begun = stores::detail::moment(stores::detail::moment(m.root().begun).mark(), last).word();
  const std::string no_more = m.refusal();
  EXPECT_PRED2(says, no_more, "has no number for one time more");
}

// Damages each page of keys on flash; of one key space, if it is given.
void lose_pages_of_keys(machine& m, std::optional<std::uint8_t> space = {}) {
  const std::span<std::byte> all = m.flash_bytes().subspan(512);
  for (std::size_t at = 0; at + sizeof(layout::record_head) < all.size(); at += small.unit_bytes) {
    const layout::record_view record(all.subspan(at));
    if (!record.has_whole_head(m.root().identity[0]) || record.head().space != layout::bucket_space) continue;
    std::uint64_t bucket = 0;
    std::memcpy(&bucket, record.key().data(), sizeof bucket);
    if (!space || bucket >> 32 == *space) all[at] ^= std::byte{1};
  }
}

// A copy from within an opening, and one from behind its closing.
TEST(KvMoments, a_closing_is_a_moment) {
  machine m;
  history h;
  splitmix64 random(seed_or(22));
  {
    store db = m.open();
    change(db, h.right.back(), 60, random);
    h.keep(m);
    content next = h.right.back();
    change(db, next, 60, random);
    h.right.push_back(next);
  }
  h.keep(m);
  for (const std::size_t a : {0, 1})
    for (const std::size_t b : {0, 1}) {
      const std::string what = h.refusal(m, h.moments[a], h.moments[b]);
      EXPECT_EQ(what.empty(), a == b) << what;
    }
}

// A rebuilding that ends at any of its writes takes no record from the flash that the next one needs.
TEST(KvRebuilding, that_is_interrupted_at_any_write_is_begun_again_from_what_is_there) {
  // The ring is longer than superblocks: old records would be overwritten before new ones are on flash.
  stores::kv_options many = small;
  many.superblock_bytes = 4096;
  many.buffer_bytes = 16384;
  std::uint64_t interrupted = 0;
  for (const std::uint64_t one_erased_in : {4, 8, 16}) {
    machine m;
    splitmix64 random(seed_or(21));
    content right;
    {
      store db = store::open(*m.memory, m.on, many);
      for (std::uint64_t n = 0;; ++n) {
        const std::string value = random_value(random, 300 + random.below(900));
        if (db.put(key_of(n), bytes_of(value)) == kv_outcome::full) break;
        right[key_of(n)] = value;
      }
      std::erase_if(right, [&](const auto& pair) { return random.one_in(one_erased_in) && db.erase(pair.first); });
      // Until few superblocks are free.
      for (int i = 0; i < 300; ++i) {
        const auto at = std::next(right.begin(), static_cast<std::ptrdiff_t>(random.below(right.size())));
        at->second = random_value(random, at->second.size());
        ASSERT_EQ(db.put(at->first, bytes_of(at->second)), kv_outcome::replaced);
      }
      ASSERT_TRUE(db.empty_buffer());
    }
    lose_pages_of_keys(m);  // so each pair is put again
    const moment before = m.now();
    for (std::uint64_t writes = 0, is_done = 0; is_done == 0; ++writes) {
      m.restore(before);
      m.lose_memory();
      stores::kv_rebuilt result;
      m.on.inject({.skip = writes, .times = 1000000, .what = blocks::operation::write_durable});
      const std::string what = message_of([&] { store db = store::rebuild(*m.memory, m.on, many, result); });
      m.on.stop();
      is_done = what.empty() ? 1 : 0;
      const bool is_whole = store::is_complete(*m.memory);
      if (!is_whole) {
        ++interrupted;
        m.lose_memory();
      }
      store db = is_whole ? store::open(*m.memory, m.on, many) : store::rebuild(*m.memory, m.on, many, result);
      for (const auto& [key, value] : right) {
        const auto found = db.get(key);
        ASSERT_TRUE(found && text_of(*found) == value) << key << ", interrupted at write " << writes << ": " << what;
      }
    }
  }
  EXPECT_GT(interrupted, 5U);
}

// ---- a flash that fails

// A read that fails once, and a drive that reads nothing for a while: puts need nothing of it, but room.
TEST(KvFailures, reads_that_fail_for_a_while_fail_no_put) {
  machine m;
  splitmix64 random(seed_or(23));
  content right;
  store db = m.open();
  for (int i = 0; i < 30; ++i) ASSERT_NO_FATAL_FAILURE(change(db, right, 60, random));
  for (int i = 0; i < 40; ++i) {
    const bool reads_nothing = i >= 38;
    m.on.inject({.times = reads_nothing ? 100000U : 1U, .what = blocks::operation::read});
    for (int n = 0; n < 60; ++n) {
      const std::string key = key_of(random.below(keys));
      const std::string value = random_value(random, random.below(400));
      const std::string what = message_of([&] {
        if (db.put(key, bytes_of(value)) != kv_outcome::full) right[key] = value;
      });
      ASSERT_TRUE(what.empty() || (reads_nothing && what.find("cannot read blocks of") != std::string::npos)) << what;
    }
    m.on.stop();
  }
  EXPECT_GT(m.on.injected().size(), 40U);
  expect_content(db, right, "");
}

// A drive that reads nothing for a while: its superblocks are given up one by one, and taken back when it is well.
TEST(KvFailures, of_all_reads_for_a_while_cost_no_room_afterwards) {
  machine m;
  splitmix64 random(seed_or(29));
  content right;
  store db = m.open();
  std::uint64_t count = 0;
  const auto put = [&](const std::string& key) {
    const std::string value = random_value(random, 300);
    if (db.put(key, bytes_of(value)) == kv_outcome::full) return false;
    right[key] = value;
    return true;
  };
  while (db.stats().utilisation() < 0.7) ASSERT_TRUE(put("cold " + std::to_string(count++)));
  const auto one_of_them = [&] { return "cold " + std::to_string(random.below(count)); };
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(put(one_of_them()));
  m.on.inject({.times = ~std::uint64_t{0}, .what = blocks::operation::read});
  for (int i = 0; i < 300; ++i) static_cast<void>(message_of([&] { static_cast<void>(put(one_of_them())); }));
  m.on.stop();
  EXPECT_GT(db.stats().lost_bytes, 0U);
  int full = 0;  // a full device seldom tries it
  for (int i = 0; i < 2000; ++i) full += put(one_of_them()) ? 0 : 1;
  EXPECT_LE(full, 64);
  EXPECT_EQ(db.stats().lost_bytes, 0U);
  expect_content(db, right, "");
  for (const auto& [key, value] : right) ASSERT_EQ(text_of(*db.get(key)), value) << key;
  EXPECT_EQ(db.check().violations, std::vector<std::string>());
}

// A failed write leaves an old head before records that are live.
TEST(KvFailures, a_failed_write_costs_no_superblock) {
  machine m;
  splitmix64 random(seed_or(24));
  content right;
  store db = m.open();
  for (int i = 0; i < 200; ++i) db.put(key_of(static_cast<std::uint64_t>(i) % 30), bytes_of(std::string(1500, 'l')));
  for (std::uint64_t n = 0; n < 30; ++n) db.erase(key_of(n));
  std::uint64_t failed = 0;
  for (int i = 0; i < 3000; ++i) {
    if (i % 40 == 0) m.on.inject({.what = blocks::operation::write_durable});
    const std::string key = key_of(random.below(keys));
    const std::string value = random_value(random, random.below(400));
    const std::string what = message_of([&] {
      if (db.put(key, bytes_of(value)) != kv_outcome::full) right[key] = value;
    });
    failed += what.empty() ? 0 : 1;
  }
  m.on.stop();
  EXPECT_GT(failed, 10U);
  EXPECT_EQ(db.stats().lost_bytes, 0U);
  expect_content(db, right, "");
}

// ---- flipped bits

// The keys whose values are damaged; `is_named(error)`: besides, for each. All other answers are right.
template <class IsNamed>
std::vector<std::string> damaged_keys(store& db, const content& right, const std::string& where, IsNamed&& is_named) {
  std::vector<std::string> damaged;
  for (std::uint64_t n = 0; n < keys; ++n) {
    const std::string key = key_of(n);
    try {
      expect_value(db, right, key, where);
    } catch (const stores::kv_damaged& e) {
      damaged.push_back(key);
      is_named(e);
    }
  }
  return damaged;
}
std::vector<std::string> damaged_keys(store& db, const content& right, const std::string& where) {
  return damaged_keys(db, right, where, [](const error&) {});
}

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
  m.use(right, random);
  const std::size_t end = 8 * (layout::flash_moment::offset + sizeof(layout::flash_moment));
  for (std::size_t bit = 0; bit < 8 * 512; ++bit) {
    with_flipped(m, bit, [&] {
      const std::string what = m.refusal(right, ", bit " + std::to_string(bit));
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
        ASSERT_PRED2(says, std::string(e.what()), "the record at unit ") << e.what() << where;
      };
      damaged_keys(db, right, where, is_named);
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

// ---- damage costs its key

// Flips a bit of the head, the key or the value of the key's record on flash, wherever it is. Returns how many it hit.
enum class hit : std::uint8_t { head, key, value };
int damage_record(machine& m, const std::string& key, hit what, std::uint8_t space = 0) {
  const std::span<std::byte> all = m.flash_bytes().subspan(512);
  int hits = 0;
  for (std::size_t at = 0; at + sizeof(layout::record_head) < all.size(); at += small.unit_bytes) {
    const layout::record_view record(all.subspan(at));
    if (!record.has_whole_head(m.root().identity[0]) || record.head().space != space || record.key() != key) continue;
    const std::size_t in_value = sizeof(layout::record_head) + key.size();
    const std::size_t offset = what == hit::head ? 24 : what == hit::key ? in_value - 1 : in_value;
    all[at + offset] ^= std::byte{1};
    ++hits;
  }
  return hits;
}

std::vector<std::string> keys_of(const content& right) {
  std::vector<std::string> all;
  for (const auto& [key, value] : right) all.push_back(key);
  return all;
}
std::vector<std::string> walk_over(store& db, stores::kv_skipped& skipped) {
  std::vector<std::string> found;
  skipped = db.for_each_key({}, 0, [&](const std::string& key) { found.push_back(key); });
  std::ranges::sort(found);
  return found;
}

TEST(KvDamage, of_a_record_costs_its_key_until_that_is_put_again_or_erased) {
  for (const hit what : {hit::head, hit::key, hit::value}) {
    machine m;
    content right;
    {
      store db = m.open();
      for (std::uint64_t n = 0; n < keys; ++n) {
        right[key_of(n)] = std::string(100 + n, 'a');
        db.put(key_of(n), bytes_of(right[key_of(n)]));
      }
      ASSERT_TRUE(db.empty_buffer());
    }
    for (const std::uint64_t n : {3, 7, 11}) ASSERT_EQ(damage_record(m, key_of(n), what), 1);
    store db = m.open();
    std::vector<std::string> named;
    EXPECT_EQ(damaged_keys(db, right, "", [&](const error& e) { named.emplace_back(e.what()); }),
              (std::vector<std::string>{key_of(3), key_of(7), key_of(11)}));
    ASSERT_EQ(named.size(), 3U);
    EXPECT_PRED2(says, named[0], "of key 'key 3' of key space 0, is damaged");
    // It is not absent.
    const std::array<std::string_view, 2> both{"key 3", "key 5"};
    EXPECT_EQ(db.exist(both), (std::vector<bool>{true, true}));
    EXPECT_EQ(db.put(key_of(3), bytes_of("x"), stores::kv_mode::no_overwrite), kv_outcome::exists);
    EXPECT_THROW(static_cast<void>(db.put(key_of(3), bytes_of("x"), stores::kv_mode::append)), stores::kv_damaged);
    EXPECT_THROW(static_cast<void>(db.retrieve_and_erase(key_of(3))), stores::kv_damaged);
    const auto size = db.size_of(key_of(3));
    ASSERT_TRUE(size);
    EXPECT_LE(size->least, key_of(3).size() + 103);
    EXPECT_GE(size->most, key_of(3).size() + 103);
    stores::kv_skipped skipped;
    auto found = walk_over(db, skipped);
    found.insert(found.end(), skipped.keys.begin(), skipped.keys.end());
    std::ranges::sort(found);
    EXPECT_EQ(found, keys_of(right));
    EXPECT_EQ(skipped.keys.size(), what == hit::value ? 0U : 3U);
    EXPECT_EQ(skipped.pages, 0U);
    EXPECT_EQ(db.list("", 1000), keys_of(right));
    EXPECT_GT(db.stats().damaged, 0U);
    EXPECT_FALSE(db.check().violations.empty());

    EXPECT_EQ(db.put(key_of(3), bytes_of("new")), kv_outcome::replaced);
    right[key_of(3)] = "new";
    EXPECT_TRUE(db.erase(key_of(7)));
    EXPECT_FALSE(db.erase(key_of(7)));
    right.erase(key_of(7));
    EXPECT_TRUE(db.erase(key_of(11)));
    EXPECT_EQ(db.put(key_of(11), bytes_of("again")), kv_outcome::added);
    right[key_of(11)] = "again";
    expect_content(db, right, "");
    EXPECT_EQ(walk_over(db, skipped), keys_of(right));
    EXPECT_FALSE(skipped.any());
    EXPECT_EQ(db.check().violations, std::vector<std::string>());
  }
}

TEST(KvDamage, of_a_page_of_keys_costs_no_pair_and_its_keys_are_listed_again) {
  machine m;
  content right;
  {
    store db = m.open();
    for (std::uint64_t n = 0; n < keys; ++n) {
      right[key_of(n)] = "value";
      db.put(key_of(n), bytes_of(right[key_of(n)]));
    }
    ASSERT_TRUE(db.empty_buffer());
  }
  lose_pages_of_keys(m);
  store db = m.open();
  expect_content(db, right, "");
  for (std::uint64_t n = 0; n < keys; ++n) {
    const std::string key = "key new " + std::to_string(n);
    right[key] = "new";
    ASSERT_EQ(db.put(key, bytes_of("new")), kv_outcome::added);
  }
  EXPECT_TRUE(db.erase(key_of(0)));
  right.erase(key_of(0));
  stores::kv_skipped skipped;
  EXPECT_EQ(walk_over(db, skipped).size(), std::size_t{keys});
  EXPECT_EQ(skipped.pages, 1U);
  EXPECT_THROW(static_cast<void>(db.list("", 1000)), stores::kv_damaged);
  EXPECT_EQ(db.list("", 1000, 0, &skipped).size(), std::size_t{keys});
  EXPECT_EQ(skipped.pages, 2U);
  std::size_t records = 0;
  db.for_each_record(0, [&](const std::string&, std::size_t) { ++records; });
  EXPECT_EQ(records, right.size());

  const stores::kv_repaired repaired = db.repair();
  EXPECT_EQ(repaired.pages, 1U);
  EXPECT_EQ(repaired.relisted, std::size_t{keys} - 1);
  EXPECT_EQ(repaired.left + repaired.damaged, 0U);
  EXPECT_EQ(walk_over(db, skipped), keys_of(right));
  EXPECT_FALSE(skipped.any());
  EXPECT_EQ(db.check().violations, std::vector<std::string>());
}

// A record that does not name its key, on a damaged page: it is counted, and goes with its key space; unless it may be
// of another one, whose pages are damaged, too.
TEST(KvDamage, of_a_record_and_of_its_page_is_counted_and_goes_with_its_key_space) {
  for (const bool of_both_spaces : {false, true}) {
    machine m;
    {
      store db = m.open();
      for (const std::uint8_t space : {std::uint8_t{0}, std::uint8_t{1}})
        for (std::uint64_t n = 0; n < keys; ++n) db.put(key_of(n), bytes_of(std::string(100, 'v')), {}, space);
      ASSERT_TRUE(db.empty_buffer());
    }
    ASSERT_EQ(damage_record(m, key_of(3), hit::key), 1);   // unnamed
    ASSERT_EQ(damage_record(m, key_of(7), hit::head), 1);  // its key is readable
    lose_pages_of_keys(m, of_both_spaces ? std::nullopt : std::optional<std::uint8_t>(0));
    store db = m.open();
    std::vector<std::string> met;
    const stores::kv_damage found = db.for_each_key_there({}, 0, [&](const std::string& key) { met.push_back(key); });
    std::ranges::sort(met);
    EXPECT_EQ(met.size(), std::size_t{keys} - 1);
    EXPECT_EQ(std::ranges::adjacent_find(met), met.end());
    EXPECT_EQ(found.keys, 1U);
    EXPECT_EQ(found.pages, 1U);
    EXPECT_EQ(found.records, 1U);
    EXPECT_GE(found.most_bytes, key_of(3).size() + 100);
    EXPECT_EQ(db.erase_space(0), 2U);
    EXPECT_FALSE(db.get(key_of(5)));
    for (std::uint64_t n = 0; n < keys; ++n) EXPECT_TRUE(db.get(key_of(n), 1)) << n;
    EXPECT_EQ(message_of([&] { static_cast<void>(db.get(key_of(3))); }).empty(), !of_both_spaces);
    db.erase_space(1);
    EXPECT_EQ(db.stats().used_bytes, 0U);
  }
}

// Behind a repair its page does not list it: it may be of any key space, and stays until its key is put or erased.
TEST(KvDamage, of_a_record_whose_page_was_repaired_is_not_lost_with_another_key_space) {
  machine m;
  {
    store db = m.open();
    for (const std::uint8_t space : {std::uint8_t{0}, std::uint8_t{1}})
      for (std::uint64_t n = 0; n < keys; ++n) db.put(key_of(n), bytes_of(std::string(100, 'v')), {}, space);
    ASSERT_TRUE(db.empty_buffer());
  }
  ASSERT_EQ(damage_record(m, key_of(3), hit::key, 1), 1);
  lose_pages_of_keys(m, 1);
  {
    store db = m.open();
    EXPECT_EQ(db.repair().pages, 1U);
    ASSERT_TRUE(db.empty_buffer());
  }
  lose_pages_of_keys(m, 0);
  store db = m.open();
  db.erase_space(0);
  EXPECT_THROW(static_cast<void>(db.get(key_of(3), 1)), stores::kv_damaged);
  EXPECT_TRUE(db.erase(key_of(3), 1));
  db.erase_space(1);
  EXPECT_EQ(db.stats().used_bytes, 0U);
}

// One bit of the flash is flipped between two openings, or a block of it gets other bytes. Each round has another
// history, which ends with a closing or a crash.
struct attack {
  std::uint64_t damaged = 0, skipped_keys = 0, skipped_pages = 0, harmless = 0, relisted = 0, spaces = 0;

  // What lies at the byte: keys of records, and whether a page of keys does; of old versions, too.
  struct touched {
    std::vector<std::string> keys;
    bool has_page = false;

    [[nodiscard]] bool any() const noexcept { return has_page || !keys.empty(); }
  };
  static touched at_bytes(machine& m, std::size_t first, std::size_t end) {
    touched result;
    const std::span<std::byte> all = m.flash_bytes();
    for (std::size_t at = 512; at + sizeof(layout::record_head) < all.size(); at += small.unit_bytes) {
      const layout::record_view record(all.subspan(at));
      if (!record.has_whole_head(m.root().identity[0]) || end <= at || first >= at + bytes_of(record.head())) continue;
      if (record.head().space == layout::bucket_space)
        result.has_page = true;
      else
        result.keys.emplace_back(record.key());
    }
    return result;
  }

  // A byte that was written: any, one of a record, or one of the newest page of keys.
  static std::size_t choose(machine& m, splitmix64& random) {
    if (random.one_in(4))
      if (const std::size_t page = newest_page(m); page != 0)
        return page + random.below(sizeof(layout::record_head) + 64);
    const bool any = random.one_in(2);
    for (;;) {
      const std::size_t byte = 512 + random.below(m.flash_bytes().size() - 512);
      if (any ? m.flash_bytes()[byte] != std::byte{} || random.one_in(8) : at_bytes(m, byte, byte + 1).any())
        return byte;
    }
  }

  static std::size_t newest_page(machine& m) {
    const std::span<std::byte> all = m.flash_bytes();
    std::size_t newest = 0;
    std::uint64_t sequence = 0;
    for (std::size_t at = 512; at + sizeof(layout::record_head) < all.size(); at += small.unit_bytes) {
      const layout::record_view record(all.subspan(at));
      if (!record.has_whole_head(m.root().identity[0]) || record.head().space != layout::bucket_space ||
          record.head().sequence < sequence)
        continue;
      newest = at;
      sequence = record.head().sequence;
    }
    return newest;
  }

  void round(std::uint64_t seed) {
    machine m;
    content right;
    splitmix64 random(seed);
    const std::string where = ", seed " + std::to_string(seed);
    const std::uint64_t more = random.below(6);
    const bool crashes = random.one_in(3);
    const bool hits_block = random.one_in(3);
    moment crashed;
    {
      store db = m.open();
      for (std::uint64_t i = 0; i <= more; ++i) ASSERT_NO_FATAL_FAILURE(change(db, right, 40, random));
      if (random.one_in(2)) {
        ASSERT_TRUE(db.empty_buffer());
      }
      if (crashes) crashed = m.now();
    }
    if (crashes) m.restore(crashed);
    const std::size_t byte = choose(m, random);
    const std::size_t first = hits_block ? byte / 512 * 512 : byte;
    const std::size_t end = hits_block ? first + 512 : byte + 1;
    const touched there = at_bytes(m, first, end);
    if (hits_block)
      for (std::byte& b : m.flash_bytes().subspan(first, 512)) b = static_cast<std::byte>(random.next());
    else
      m.flash_bytes()[byte] ^= std::byte{1} << random.below(8);

    store db = m.open();
    const auto may_be_damaged = [&](const std::string& key) { return std::ranges::count(there.keys, key) != 0; };
    const std::vector<std::string> lost = damaged_keys(db, right, where);
    for (const std::string& key : lost) ASSERT_TRUE(may_be_damaged(key) && right.contains(key)) << key << where;
    for (std::uint64_t n = 0; n < keys; ++n) {
      const std::string key = key_of(n);
      const std::string_view one = key;
      ASSERT_EQ(db.exist({&one, 1}).front(), right.contains(key)) << key << where;
    }
    stores::kv_skipped skipped;
    const auto found = walk_over(db, skipped);
    expect_walk(db, right, found, skipped, there, where);
    stores::kv_skipped of_list;
    const auto listed = db.list("", 1000, 0, &of_list);
    ASSERT_EQ(of_list.pages, skipped.pages) << where;
    ASSERT_EQ(listed.size(), found.size() + skipped.keys.size()) << where;
    damaged += lost.size();
    skipped_keys += skipped.keys.size();
    skipped_pages += skipped.pages;
    harmless += lost.empty() && !skipped.any() ? 1 : 0;
    ASSERT_TRUE(there.any() || !skipped.any()) << where;
    if (::testing::Test::HasFatalFailure()) return;

    if (random.one_in(4)) {
      // All of the key space goes.
      ++spaces;
      db.erase_space(0);
      right.clear();
      // Also records that do not name their keys, and whose page is damaged.
      ASSERT_EQ(db.stats().used_bytes, 0U) << where;
    }
    if (random.one_in(3)) relisted += db.repair().relisted;
    // Each key may be changed, and new ones of the prefix come.
    for (int i = 0; i < 120; ++i) {
      const std::string key = key_of(random.below(keys + 8));
      const std::uint64_t what = random.below(8);
      if (what == 0) {
        ASSERT_EQ(db.erase(key), right.erase(key) != 0) << key << where;
      } else if (what == 1) {
        try {
          const std::string value = random_value(random, random.below(50));
          if (db.put(key, bytes_of(value), stores::kv_mode::append) != kv_outcome::full) right[key] += value;
        } catch (const stores::kv_damaged&) {
          ASSERT_TRUE(may_be_damaged(key)) << key << where;
        }
      } else {
        const std::string value = random_value(random, random.below(400));
        ASSERT_NE(db.put(key, bytes_of(value)), kv_outcome::full) << where;
        right[key] = value;
      }
    }
    for (const std::string& key : damaged_keys(db, right, where)) {
      ASSERT_TRUE(may_be_damaged(key)) << key << where;
      ASSERT_TRUE(db.erase(key)) << key << where;
      right.erase(key);
    }
    relisted += db.repair().relisted;
    for (std::uint64_t n = 0; n < keys + 8; ++n) ASSERT_NO_FATAL_FAILURE(expect_value(db, right, key_of(n), where));
    ASSERT_EQ(walk_over(db, skipped), keys_of(right)) << where;
    ASSERT_FALSE(skipped.any()) << where;
    ASSERT_EQ(db.check().violations, std::vector<std::string>()) << where;
  }
  // The keys that a walk returned, and those that it passed over, are all keys: but for those of a damaged page.
  static void expect_walk(store& db, const content& right, const std::vector<std::string>& found,
                          const stores::kv_skipped& skipped, const touched& there, const std::string& where) {
    ASSERT_TRUE(skipped.pages == 0 || there.has_page) << where;
    ASSERT_EQ(std::ranges::adjacent_find(found), found.end()) << where;
    for (const std::string& key : found) ASSERT_TRUE(right.contains(key)) << key << where;
    for (const std::string& key : skipped.keys)
      ASSERT_TRUE(right.contains(key) && std::ranges::count(there.keys, key) != 0) << key << where;
    if (skipped.pages == 0) {
      ASSERT_EQ(found.size() + skipped.keys.size(), right.size()) << where;
    }
    std::size_t records = 0;
    db.for_each_record(0, [&](const std::string& key, std::size_t value_bytes) {
      ++records;
      ASSERT_TRUE(right.contains(key) && right.at(key).size() == value_bytes) << key << where;
    });
    ASSERT_GE(records + there.keys.size(), right.size()) << where;
  }
};

// PMLAB_KV_ROUNDS: more of them.
TEST(KvDamage, of_any_bit_or_block_costs_no_more_than_the_keys_that_it_touches) {
  const char* const given = std::getenv("PMLAB_KV_ROUNDS");
  const std::uint64_t rounds = given == nullptr ? 400 : std::strtoull(given, nullptr, 10);
  attack a;
  for (std::uint64_t i = 0; i < rounds; ++i) ASSERT_NO_FATAL_FAILURE(a.round(seed_or(1000) + i));
  std::printf(
      "%lu devices: %lu damaged values, %lu keys and %lu pages passed over, %lu harmless, %lu keys listed again\n",
      rounds, a.damaged, a.skipped_keys, a.skipped_pages, a.harmless, a.relisted);
  EXPECT_GT(a.damaged, rounds / 10);
  EXPECT_GT(a.skipped_keys, 0U);
  EXPECT_GT(a.skipped_pages, 0U);
  EXPECT_GT(a.relisted, 0U);
  EXPECT_GT(a.spaces, 0U);
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
    errors += damaged_keys(db, right, where).size();
  }
  EXPECT_GT(errors, 5U);  // those of keys that no put replaced
}

// Sizes, and the place of the write buffer, are words of the memory. Those that decide nothing yet may have other bits.
TEST(KvFlippedBits, of_sizes_in_the_memory_are_named) {
  machine m;
  { store db = m.open(); }
  const auto flip_each = [&](layout::word& w, unsigned bits, bool is_named) {
    for (unsigned bit = 0; bit < bits; ++bit) {
      w ^= std::uint64_t{1} << bit;
      const std::string what = m.refusal();
      w ^= std::uint64_t{1} << bit;
      ASSERT_TRUE(what.find("is damaged: its") != std::string::npos || what.find("was made for") != std::string::npos ||
                  (what.empty() && !is_named))
          << what << ", bit " << bit;
    }
  };
  const std::vector<layout::word*> sizes{
      &m.root().unit_bytes,        &m.root().superblock_bytes, &m.root().blocks,       &m.root().block_bytes,
      &m.root().spare_superblocks, &m.root().largest_value,    &m.root().bucket_bytes, &m.root().ring,
      &m.root().ring_lines};
  for (layout::word* size : sizes) ASSERT_NO_FATAL_FAILURE(flip_each(*size, 64, true));
  ASSERT_NO_FATAL_FAILURE(flip_each(m.root().notes, 1, true));
  for (unsigned bit = 8; bit < 64; ++bit) {
    m.root().notes ^= std::uint64_t{1} << bit;
    EXPECT_PRED2(says, m.refusal(), "is damaged: its") << "bit " << bit << " of the notes";
    m.root().notes ^= std::uint64_t{1} << bit;
  }
  // A device of a release before has no check.
  m.root().notes &= layout::all_notes;
  EXPECT_EQ(m.refusal(), "");
  for (std::size_t i = 0; i < 7; ++i) ASSERT_NO_FATAL_FAILURE(flip_each(*sizes[i], 64, i < 4));
  // Pages of keys in which no key has space, or which are larger than any.
  for (const std::uint64_t bucket : {0U, 64U, 1U << 17}) {
    const std::uint64_t right = m.root().bucket_bytes.exchange(bucket);
    EXPECT_PRED2(says, m.refusal(), "is damaged: its") << bucket;
    m.root().bucket_bytes = right;
  }
}

// Overwrites that the index did not lead to while the device was open. Behind a closing, none is taken for torn.
TEST(KvFlippedBits, of_the_write_buffer_of_a_closed_device_bring_no_older_value_back) {
  machine m;
  content right;
  {
    store db = m.open();
    overwrite_in_the_buffer(db, right);
  }
  const moment closed = m.now();
  std::byte* const ring = m.ring();
  const std::uint64_t ring_bytes = m.root().ring_lines * media::cache_line_bytes;
  std::uint64_t damaged = 0, harmless = 0;
  splitmix64 random(seed_or(14));
  for (std::uint64_t at = 0; at < ring_bytes; ++at) {
    const std::uint64_t bit = random.below(8);
    ring[at] ^= std::byte{1} << bit;
    const std::string where = ", byte " + std::to_string(at) + ", bit " + std::to_string(bit);
    {
      store db = m.open();
      const std::size_t errors = damaged_keys(db, right, where).size();
      ASSERT_LE(errors, 1U) << where;
      ++(errors != 0 ? damaged : harmless);
    }
    if (HasFatalFailure()) return;
    m.restore(closed);
  }
  std::printf("bytes of the ring: damaged %lu, harmless %lu\n", damaged, harmless);
  EXPECT_GE(damaged, 8 * 153U);  // heads, keys and values
  EXPECT_GT(harmless, 0U);
}

// Each bit of each head in the write buffer, and of each key: the device opens, and the damage costs one key, until
// that is put again; or a page of keys. Behind a crash the key may have a value that was overwritten: its record counts
// as torn. A page does not, if a key is there that only its newest version lists.
TEST(KvFlippedBits, of_a_head_in_the_write_buffer_cost_its_key) {
  for (const bool crashes : {false, true}) {
    machine m;
    content right;
    splitmix64 random(seed_or(25));
    moment left;
    {
      store db = m.open();
      // The ring wraps around: words that the index has for overwritten keys lead to lines that are used again.
      for (int i = 0; i < 60; ++i) db.put(key_of(random.below(8)), bytes_of(random_value(random, random.below(300))));
      overwrite_in_the_buffer(db, right);
      db.put("long", bytes_of(right["long"] = std::string(1200, 'l')));
      if (crashes) left = m.now();
    }
    if (!crashes) left = m.now();
    m.restore(left);
    const auto heads = m.records([](const layout::record_view& /*record*/) { return true; });
    ASSERT_GT(heads.size(), 9U);
    std::uint64_t damaged = 0, older = 0, pages = 0;
    for (std::byte* const head : heads) {
      const layout::record_view sound({head, 512});
      const std::string hit(sound.key());
      const bool is_page = sound.head().space == layout::bucket_space;
      const std::size_t end = 8 * (sizeof(layout::record_head) + hit.size());
      const auto first = static_cast<std::size_t>(head - m.ring());
      for (std::size_t bit = 0; bit < end; ++bit) {
        m.ring()[first + bit / 8] ^= std::byte{1} << bit % 8;
        const std::string where = ", line " + std::to_string(first / 64) + ", bit " + std::to_string(bit);
        {
          store db = m.open();
          content now = right;
          for (const auto& [key, value] : right) try {
              const auto found = db.get(key);
              ASSERT_TRUE(found) << key << where;
              if (text_of(*found) == value) continue;
              // Behind a crash: an older version of the key that was hit.
              ASSERT_TRUE(crashes && key == hit) << key << where;
              ++older;
              now[key] = text_of(*found);
            } catch (const stores::kv_damaged&) {
              ASSERT_TRUE(!is_page && key == hit) << where;
              ++damaged;
              EXPECT_GT(db.stats().damaged, 0U);
              now.erase(key);
            }
          if (now.size() != right.size()) {
            ASSERT_EQ(db.put(hit, bytes_of("new")), kv_outcome::replaced) << where;
            now[hit] = "new";
          }
          // The buffer is emptied, and used again.
          for (int i = 0; i < 20; ++i) ASSERT_NE(db.put("more", bytes_of(std::string(900, 'm'))), kv_outcome::full);
          now["more"] = std::string(900, 'm');
          ASSERT_TRUE(db.empty_buffer()) << where;
          if (is_page) pages += db.repair().pages;
          for (const auto& [key, value] : now) {
            const auto found = db.get(key);
            ASSERT_TRUE(found && text_of(*found) == value) << key << where;
          }
          ASSERT_EQ(db.check().violations, std::vector<std::string>()) << where;
        }
        m.restore(left);
      }
    }
    std::printf("bits of %lu heads: %lu keys damaged, %lu with an older value, %lu pages\n", heads.size(), damaged,
                older, pages);
    EXPECT_GT(pages, 0U);
    EXPECT_GT(damaged, crashes ? 8U * 8U : 8U * 9U * 48U);
    EXPECT_EQ(older == 0, !crashes);
  }
}

// A crash at any event, without damage: no page is taken for a damaged one.
TEST(KvClosing, or_any_operation_that_a_crash_ends_damages_no_page) {
  for (std::uint64_t event = 0, reached = 1; reached != 0; ++event) {
    reached = 0;
    for (const surviving what : {surviving::all, surviving::durable}) {
      machine m;
      if (!m.crash(event, what, [&](auto&& begin) {
            splitmix64 random(seed_or(31));
            store db = m.open();
            begin();
            for (int i = 0; i < 80; ++i) {
              const std::string key = key_of(random.below(16));
              if (random.one_in(3))
                db.erase(key);
              else
                db.put(key, bytes_of(std::string(random.below(300), 'v')));
            }
          }))
        continue;
      ++reached;
      store db = m.open();
      ASSERT_EQ(db.stats().damaged, 0U) << event;
      stores::kv_skipped skipped;
      std::size_t there = 0;
      for (std::uint64_t n = 0; n < 16; ++n) there += db.get(key_of(n)) ? 1 : 0;
      ASSERT_EQ(walk_over(db, skipped).size(), there) << event;
      ASSERT_FALSE(skipped.any()) << event;
    }
  }
}

// Keys come and go, and their records leave the write buffer before and after the pages that list them; a crash; then a
// bit of a page in the write buffer flips. A walk returns all keys, or says that it has passed over their page.
TEST(KvDamage, of_a_page_in_the_write_buffer_behind_a_crash_hides_no_key) {
  std::uint64_t damaged = 0, harmless = 0;
  for (std::uint64_t round = 0; round < 300; ++round) {
    machine m;
    content right;
    splitmix64 random(seed_or(3000) + round);
    const std::string where = ", round " + std::to_string(round);
    std::optional<moment> crashed;
    {
      store db = m.open();
      m.memory->watch();
      const std::uint64_t steps = 20 + random.below(150);
      for (std::uint64_t i = 0; i < steps; ++i) {
        const std::string key = key_of(random.below(keys));
        if (random.one_in(3)) {
          db.erase(key);
          right.erase(key);
        } else {
          right[key] = random_value(random, random.below(60));
          ASSERT_NE(db.put(key, bytes_of(right[key])), kv_outcome::full);
        }
        if (random.one_in(30)) {
          ASSERT_TRUE(db.empty_buffer());
        }
      }
      crashed = m.now(random.one_in(2) ? surviving::durable : surviving::all);
    }
    m.restore(*crashed);
    // The newest page, most often.
    auto pages = m.records([](const layout::record_view& r) { return r.head().space == layout::bucket_space; });
    if (pages.empty()) continue;
    std::ranges::sort(pages, {}, [](const std::byte* at) { return layout::record_view({at, 512}).head().sequence; });
    std::byte* const page = random.one_in(4) ? pages[random.below(pages.size())] : pages.back();
    page[random.below(layout::bytes_of(layout::record_view({page, 512}).head()))] ^= std::byte{1} << random.below(8);

    store db = m.open();
    ASSERT_NO_FATAL_FAILURE(expect_content(db, right, where));
    stores::kv_skipped skipped;
    const auto found = walk_over(db, skipped);
    ASSERT_TRUE(skipped.pages != 0 || found == keys_of(right)) << where;
    ++(skipped.any() ? damaged : harmless);
    const stores::kv_repaired repaired = db.repair();
    ASSERT_EQ(repaired.left + repaired.damaged, 0U) << where;
    ASSERT_EQ(walk_over(db, skipped), keys_of(right)) << where;
    ASSERT_EQ(db.check().violations, std::vector<std::string>()) << where;
  }
  std::printf("pages in the write buffer: %lu damaged, %lu of before or whole\n", damaged, harmless);
  EXPECT_GT(damaged, 50U);
  EXPECT_GT(harmless, 20U);
}

// The same of a key that was there before: `repair` has listed it again, or a put that met its damaged record.
TEST(KvDamage, of_a_page_that_lists_a_key_again_behind_a_crash_hides_it_not) {
  for (const bool by_repair : {true, false}) {
    machine m;
    content right;
    moment crashed;
    {
      store db = m.open();
      for (std::uint64_t n = 0; n < 8; ++n) {
        right[key_of(n)] = std::string(600, 'v');
        db.put(key_of(n), bytes_of(right[key_of(n)]));
      }
      ASSERT_TRUE(db.empty_buffer());
    }
    {
      // Replay knows nothing of the time before. The page and the record cannot be read, and the page is written again
      // without the key.
      store db = m.open();
      const auto fail = [&](std::size_t byte) {
        m.on.inject(
            {.times = ~std::uint64_t{0}, .what = blocks::operation::read, .first = byte / 512, .end = byte / 512 + 1});
      };
      fail(attack::newest_page(m));
      for (std::size_t at = 512; at + sizeof(layout::record_head) < m.flash_bytes().size(); at += small.unit_bytes)
        if (const layout::record_view record(m.flash_bytes().subspan(at));
            record.has_whole_head(m.root().identity[0]) && record.key() == key_of(3))
          fail(at);
      const stores::kv_repaired repaired = db.repair();
      EXPECT_EQ(repaired.pages, 1U);
      EXPECT_GT(repaired.damaged, 0U);
      if (by_repair) m.on.stop();
      ASSERT_TRUE(db.empty_buffer());
      if (by_repair)
        EXPECT_GT(db.repair().relisted, 0U);
      else
        EXPECT_EQ(db.put(key_of(3), bytes_of(right[key_of(3)] = "new")), kv_outcome::replaced);
      m.on.stop();
      crashed = m.now();
    }
    m.restore(crashed);
    auto pages = m.records([](const layout::record_view& r) { return r.head().space == layout::bucket_space; });
    ASSERT_FALSE(pages.empty());
    std::ranges::sort(pages, {}, [](const std::byte* at) { return layout::record_view({at, 512}).head().sequence; });
    pages.back()[sizeof(layout::record_head) + 20] ^= std::byte{1};
    store db = m.open();
    stores::kv_skipped skipped;
    EXPECT_LT(walk_over(db, skipped).size(), right.size());
    EXPECT_EQ(skipped.pages, 1U);
    EXPECT_EQ(db.repair().pages, 1U);
    static_cast<void>(db.repair());
    EXPECT_EQ(walk_over(db, skipped), keys_of(right));
    EXPECT_FALSE(skipped.any());
    EXPECT_EQ(text_of(db.get(key_of(3)).value()), right[key_of(3)]);
  }
}

// The index leads to a page on flash, which lists no key that was added since. The newest version of the page is in the
// write buffer; the versions between, and the records of these keys, have left it.
TEST(KvDamage, of_a_page_whose_versions_have_left_the_write_buffer_hides_no_key) {
  std::uint64_t damaged = 0;
  for (unsigned between = 1; between < 6; ++between)
    for (unsigned behind = 0; behind < 6; ++behind) {
      machine m;
      content right;
      moment crashed;
      {
        store db = m.open();
        std::uint64_t filled = 0;
        const auto fill = [&](unsigned count) {
          for (unsigned i = 0; i < count; ++i) {
            const std::string key = "fill " + std::to_string(filled++ % 40);
            ASSERT_NE(db.put(key, bytes_of(right[key] = std::string(900, 'f'))), kv_outcome::full);
          }
        };
        fill(40);
        for (std::uint64_t n = 0; n < 10; ++n) db.put(key_of(n), bytes_of(right[key_of(n)] = "v"));
        ASSERT_TRUE(db.empty_buffer());
        for (std::uint64_t n = 10; n < 12; ++n) db.put(key_of(n), bytes_of(right[key_of(n)] = "v"));
        for (std::uint64_t n = 0; n < 6; ++n) {
          fill(between);
          db.erase(key_of(n));
          right.erase(key_of(n));
        }
        fill(behind);
        crashed = m.now();
      }
      m.restore(crashed);
      auto pages = m.records([](const layout::record_view& r) { return r.head().space == layout::bucket_space; });
      std::ranges::sort(pages, {}, [](const std::byte* at) { return layout::record_view({at, 512}).head().sequence; });
      if (!pages.empty()) pages.back()[sizeof(layout::record_head) + 20] ^= std::byte{1};
      store db = m.open();
      stores::kv_skipped skipped;
      const auto found = walk_over(db, skipped);
      ASSERT_TRUE(skipped.pages != 0 || found == keys_of(right)) << between << ", " << behind;
      damaged += skipped.pages;
      db.repair();
      ASSERT_EQ(walk_over(db, skipped), keys_of(right)) << between << ", " << behind;
      ASSERT_EQ(db.check().violations, std::vector<std::string>()) << between << ", " << behind;
    }
  EXPECT_GT(damaged, 0U);
}

// Any bit of a word of the index: also those that lead it to no place of the ring or the flash, or say that the key is
// deleted.
TEST(KvFlippedBits, of_a_word_of_the_index_cost_its_key) {
  for (const bool in_buffer : {false, true}) {
    machine m;
    content right;
    {
      store db = m.open();
      for (std::uint64_t n = 0; n < 8; ++n) {
        right[key_of(n)] = std::string(100 + n, 'a');
        db.put(key_of(n), bytes_of(right[key_of(n)]));
      }
      if (!in_buffer) {
        ASSERT_TRUE(db.empty_buffer());
      }
    }
    const moment closed = m.now();
    std::uint64_t damaged = 0, lost = 0;
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::string where = ", bit " + std::to_string(bit);
      m.set_word(key_of(3), m.word_of(key_of(3)) ^ std::uint64_t{1} << bit);
      {
        store db = m.open();
        content now = right;
        for (const std::string& key : damaged_keys(db, right, where)) {
          ASSERT_EQ(key, key_of(3)) << where;
          ++damaged;
          const auto size = db.size_of(key);
          ASSERT_TRUE(size && size->least <= size->most) << where;
          lost += size->most == key.size() ? 1 : 0;  // it takes no space, and no limit counts more
          EXPECT_FALSE(db.check().violations.empty());
          ASSERT_EQ(db.put(key, bytes_of("new")), kv_outcome::replaced) << where;
          now[key] = "new";
        }
        if (HasFatalFailure()) return;
        for (int i = 0; i < 20; ++i) ASSERT_NE(db.put("more", bytes_of(std::string(900, 'm'))), kv_outcome::full);
        ASSERT_TRUE(db.empty_buffer()) << where;
        expect_content(db, now, where);
        ASSERT_EQ(db.check().violations, std::vector<std::string>()) << where;
      }
      m.restore(closed);
    }
    EXPECT_GT(damaged, 40U);
    EXPECT_GT(lost, 20U);
  }
}

// The device is open. Its write buffer goes on, and others keep their records.
TEST(KvFlippedBits, of_a_word_of_the_index_of_an_open_device_cost_its_key) {
  for (const bool in_buffer : {true, false})
    for (unsigned bit = 0; bit < 64; ++bit) {
      const std::string where = ", bit " + std::to_string(bit);
      machine m;
      content right;
      store db = m.open();
      for (std::uint64_t n = 0; n < 8; ++n) db.put(key_of(n), bytes_of(right[key_of(n)] = std::string(60, 'a')));
      if (!in_buffer) {
        ASSERT_TRUE(db.empty_buffer());
      }
      m.set_word(key_of(3), m.word_of(key_of(3)) ^ std::uint64_t{1} << bit);
      for (int i = 0; i < 100; ++i) ASSERT_NE(db.put("more", bytes_of(std::string(900, 'm'))), kv_outcome::full);
      // Without bit 62 a word has no name, and the parity may fit.
      const std::vector<std::string> damaged = damaged_keys(db, right, where);
      ASSERT_TRUE(damaged == std::vector<std::string>{key_of(3)} || (bit == 62 && damaged.empty())) << where;
      ASSERT_EQ(db.put(key_of(3), bytes_of(right[key_of(3)] = "new")), kv_outcome::replaced) << where;
      for (int i = 0; i < 100; ++i) ASSERT_NE(db.put("more", bytes_of(std::string(900, 'm'))), kv_outcome::full);
      expect_content(db, right, where);
      if (HasFailure()) return;
    }
}

// Any bit of a name of the index, of a page of keys or of a key: opening finds the right name in the record, or behind
// a crash in a newer one in the write buffer. What a split of the table has left behind harms nothing.
TEST(KvFlippedBits, of_a_name_of_the_index_are_mended) {
  const auto page_slot = [](std::uint32_t number) {
    const auto name = stores::detail::kv_ssd::buckets<restartable_medium, flash, layout::default_hash>::name_of_page(
        layout::bucket_of(0, "key "), number);
    return layout::base_of_hash(layout::default_hash{}(layout::bucket_space, {name.data(), name.size()}), true);
  };
  for (const bool crashes : {false, true})
    for (const bool on_flash : {true, false})
      for (const bool splits : {false, true}) {
        machine m;
        content right;
        moment left;
        {
          store db = m.open();
          for (std::uint64_t n = 0; n < 100; ++n)
            ASSERT_NE(db.put(key_of(n), bytes_of(right[key_of(n)] = "v")), kv_outcome::full);
          if (on_flash) {
            ASSERT_TRUE(db.empty_buffer());
          } else {
            for (const char* const value : {"w", "x"})
              ASSERT_NE(db.put(key_of(7), bytes_of(right[key_of(7)] = value)), kv_outcome::full);
          }
          left = m.now();
        }
        if (crashes) m.restore(left);
        if (splits) {
          auto table = machine::table::open(*m.memory, "kv_ssd:i");
          m.root().notes &= ~std::uint64_t{layout::index_check};
          for (std::uint64_t n = 1; table.stats().nodes < 4; ++n)
            table.insert(layout::base_of_slot(mix_bits(n)), layout::place_word::gone_with_follower().word());
        }
        left = m.now();
        std::uint64_t mended = 0, harmless = 0, left_behind = 0;
        for (const std::uint64_t slot :
             {page_slot(1), page_slot(2), machine::slot_of(key_of(7)), machine::slot_of(key_of(8))}) {
          m.restore(left);
          const std::size_t words = m.names_of(slot).size();
          ASSERT_NE(words, 0U);
          left_behind += words - 1;
          for (std::size_t i = 0; i < words; ++i)
            for (unsigned bit = 0; bit < 64; ++bit) {
              if ((splits || !on_flash) && bit % 3 != 0) continue;
              const std::string where = ", word " + std::to_string(i) + ", bit " + std::to_string(bit);
              m.restore(left);
              *m.names_of(slot)[i] ^= std::uint64_t{1} << bit;
              store db = m.open();
              const bool is_mended = db.stats().damaged != 0;
              ++(is_mended ? mended : harmless);
              for (const auto& [key, value] : right) ASSERT_EQ(text_of(db.get(key).value()), value) << key << where;
              stores::kv_skipped skipped;
              ASSERT_EQ(walk_over(db, skipped), keys_of(right)) << where;
              ASSERT_FALSE(skipped.any()) << where;
              if (is_mended) {
                ASSERT_EQ(db.check().violations, std::vector<std::string>()) << where;
              }
              if (bit % 10 != 0) continue;
              ASSERT_EQ(db.erase_space(0), 0U) << where;
              ASSERT_EQ(db.stats().used_bytes, 0U) << where;
            }
        }
        EXPECT_GE(mended, 4 * 20U);
        EXPECT_GE(harmless, 4U);
        EXPECT_EQ(left_behind != 0, splits);
      }
}

// A word of the directory, which leads to the pages of a bucket, and the bucket that names it: opening writes it again.
// If the device is open, a walk reports that it has passed over pages, and `repair` finds them again.
TEST(KvFlippedBits, of_the_directory_of_pages_are_noticed_and_mended) {
  using directory = indexes::fast_fair<restartable_medium>;
  machine m;
  content right;
  {
    store db = m.open();
    for (std::uint64_t n = 0; n < 300; ++n) db.put(key_of(n), bytes_of("v"));
    for (std::uint64_t n = 0; n < 120; ++n) db.erase(key_of(n));
    for (std::uint64_t n = 120; n < 300; ++n) right[key_of(n)] = "v";
  }
  const std::uint64_t bucket = layout::bucket_of(0, "key ");
  const std::uint64_t word = directory::open(*m.memory, "kv_ssd:b").find(bucket).value();
  EXPECT_GT(layout::page_range(word).oldest(), 1U);
  EXPECT_GT(layout::page_range(word).newest(), layout::page_range(word).oldest());
  const moment closed = m.now();
  for (const bool is_open : {false, true})
    for (unsigned bit = 0; bit < (is_open ? 64 : 128); ++bit) {
      const std::string where = std::string(is_open ? ", open" : "") + ", bit " + std::to_string(bit);
      std::unique_ptr<store> db;
      const auto open = [&] { db.reset(new store(m.open())); };
      if (is_open) open();
      {
        auto pages = directory::open(*m.memory, "kv_ssd:b");
        if (bit >= 64) {
          ASSERT_EQ(pages.erase(bucket), indexes::outcome::erased);
          pages.insert(bucket ^ std::uint64_t{1} << bit % 64, word);
        } else {
          pages.update(bucket, word ^ std::uint64_t{1} << bit);
        }
      }
      if (!is_open) open();
      for (const auto& [key, value] : right) ASSERT_TRUE(db->get(key)) << key << where;
      stores::kv_skipped skipped;
      if (is_open) {
        EXPECT_TRUE(walk_over(*db, skipped).empty()) << where;
        EXPECT_EQ(skipped.pages, 1U) << where;
        EXPECT_FALSE(db->check().violations.empty()) << where;
        EXPECT_THROW(static_cast<void>(db->put("key new", bytes_of("v"))), stores::kv_damaged) << where;
      } else {
        EXPECT_EQ(walk_over(*db, skipped), keys_of(right)) << where;
        EXPECT_FALSE(skipped.any()) << where;
        EXPECT_EQ(db->check().violations, std::vector<std::string>()) << where;
        EXPECT_GT(db->stats().damaged, 0U) << where;
      }
      if (bit % 2 == 0) {
        EXPECT_EQ(db->repair().buckets, is_open ? 1U : 0U) << where;
        EXPECT_EQ(walk_over(*db, skipped), keys_of(right)) << where;
        EXPECT_FALSE(skipped.any()) << where;
        EXPECT_EQ(db->put("key new", bytes_of("v")), kv_outcome::added) << where;
        EXPECT_TRUE(db->erase("key new"));
      }
      EXPECT_EQ(db->erase_space(0), 0U) << where;
      EXPECT_FALSE(db->get(key_of(200))) << where;
      EXPECT_EQ(db->stats().used_bytes, 0U) << where;
      EXPECT_EQ(db->check().violations, std::vector<std::string>()) << where;
      if (HasFailure()) return;
      db.reset();
      m.restore(closed);
    }
}

// Pairs of forty prefixes, and the nodes of the directory that leads to their pages: two leaves, and the root.
struct many_prefixes : machine {
  using directory = indexes::fast_fair<restartable_medium>;
  using node = indexes::detail::fast_fair::node;

  many_prefixes() {
    {
      store db = open();
      for (std::uint64_t n = 0; n < 40; ++n) {
        const std::string key = "p" + std::to_string(10 + n) + "-key";
        db.put(key, bytes_of("v"));
        right[key] = "v";
      }
    }
    EXPECT_EQ(root_node()->level.load(), 1U);
    nodes = {root_node()->first_child.load().word(), root_node()->value_at(0), memory->locate(root_node()).word()};
  }
  [[nodiscard]] node* root_node() {
    const auto at = memory->named_root("kv_ssd:b", directory::layout_name, directory::layout_version).word;
    return memory->resolve(media::pointer<node>(at->load()));
  }
  // Everything is there, or `skipped` has something.
  void expect_walks(store& db, const std::string& where, stores::kv_skipped& skipped) {
    for (const auto& [key, value] : right) ASSERT_TRUE(db.get(key)) << key << where;
    const std::vector<std::string> found = walk_over(db, skipped);
    ASSERT_TRUE(skipped.any() || found == keys_of(right)) << where;
    stores::kv_skipped of_list;
    const std::vector<std::string> listed = db.list("", 1000, 0, &of_list);
    ASSERT_EQ(of_list.any(), skipped.any()) << where;
    ASSERT_TRUE(of_list.any() || listed == keys_of(right)) << where;
  }
  // Nothing is left, or erasing failed.
  void expect_erased(store& db, const std::string& failure, const std::string& where) {
    for (const auto& [key, value] : right) ASSERT_TRUE(!failure.empty() || !db.get(key)) << key << where;
  }

  content right;
  std::array<std::size_t, 3> nodes{};
};

// Names, words of pages, bounds and separators, and the marks of a node: opening writes the directory again, from the
// names of the pages. Where the medium has no room for that, walks report that they miss some, and no key space is
// erased in part without an exception.
TEST(KvFlippedBits, of_any_word_of_the_directory_hide_no_key) {
  many_prefixes m;
  const moment closed = m.now();
  for (const bool has_room : {true, false}) {
    std::uint64_t whole = 0, reported = 0, refused = 0;
    for (const std::size_t at : m.nodes)
      for (std::size_t word = 0; word < sizeof(many_prefixes::node) / sizeof(std::uint64_t); ++word)
        for (unsigned bit = 0; bit < 64; ++bit) {
          const std::string where = std::string(has_room ? "" : "no room, ") + "node " + std::to_string(at) +
                                    ", word " + std::to_string(word) + ", bit " + std::to_string(bit);
          many_prefixes::node& n = *m.memory->resolve(media::pointer<many_prefixes::node>(at));
          const bool is_slot = word >= 8, is_key = is_slot && word % 8 < 4, is_leaf = n.level.load() == 0;
          const bool is_mark = word == 0 || word == 4 || word == 7;  // high key, greatest key, retired
          if (!is_mark && !is_key && !(is_leaf && is_slot)) continue;
          if ((word + bit) % (has_room ? 5 : 7) != 0) continue;
          if (!has_room) fill(*m.memory);
          reinterpret_cast<std::uint64_t*>(&n)[word] ^= std::uint64_t{1} << bit;
          const std::string refusal = message_of([&] {
            store db = m.open();
            stores::kv_skipped skipped;
            m.expect_walks(db, where, skipped);
            ++(skipped.any() ? reported : whole);
            const bool is_repaired = bit % 2 == 0;
            std::uint64_t left = 0;
            const std::string failure = message_of([&] {
              if (is_repaired) left = db.repair().left;
            });
            if (is_repaired && failure.empty() && left == 0) {
              stores::kv_skipped then;
              m.expect_walks(db, where + ", repaired", then);
              ASSERT_FALSE(then.any()) << where;
            }
            ASSERT_TRUE(!has_room || failure.empty()) << where << failure;
            const std::string failed = message_of([&] { db.erase_space(0); });
            ASSERT_TRUE(!has_room || failed.empty()) << where << failed;
            m.expect_erased(db, failed, where);
          });
          if (HasFatalFailure()) return;
          refused += refusal.empty() ? 0 : 1;
          ASSERT_TRUE(refusal.empty() || is_mark) << where << refusal;
          m.restore(closed);
        }
    std::printf("directory%s: %lu whole, %lu reported, %lu refused\n", has_room ? "" : ", no room", whole, reported,
                refused);
    EXPECT_EQ(reported != 0, !has_room);
    EXPECT_GT(whole, 20 * refused);
  }
}

// A link is damaged while the device is open: walks report it. The next opening writes the directory again.
TEST(KvFlippedBits, of_a_link_of_the_directory_are_reported_by_walks) {
  for (const bool of_root : {false, true}) {
    many_prefixes m;
    {
      store db = m.open();
      many_prefixes::node& leaf = *m.memory->resolve(media::pointer<many_prefixes::node>(m.nodes[0]));
      if (of_root)
        m.root_node()->first_child.store(media::pointer<many_prefixes::node>(0));
      else
        leaf.sibling.store(media::pointer<many_prefixes::node>(m.nodes[0]));
      for (const auto& [key, value] : m.right) ASSERT_TRUE(db.get(key)) << key;
      stores::kv_skipped skipped;
      EXPECT_LT(walk_over(db, skipped).size(), m.right.size());
      EXPECT_GE(skipped.pages, 1U);
      stores::kv_skipped of_list;
      EXPECT_LT(db.list("", 1000, 0, &of_list).size(), m.right.size());
      EXPECT_GE(of_list.pages, 1U);
      EXPECT_PRED2(says, message_of([&] { static_cast<void>(db.list("", 1000)); }), "open the device again");
      EXPECT_PRED2(says, message_of([&] { db.erase_space(0); }), "open the device again");
      EXPECT_FALSE(db.check().violations.empty());
    }
    if (of_root) continue;  // opening refuses it
    store db = m.open();
    stores::kv_skipped skipped;
    EXPECT_EQ(walk_over(db, skipped), keys_of(m.right));
    EXPECT_FALSE(skipped.any());
    EXPECT_EQ(db.erase_space(0), 0U);
    for (const auto& [key, value] : m.right) EXPECT_FALSE(db.get(key)) << key;
  }
}

// The directory of the index leads to its segments: closing leaves a check of it, and opening refuses another one. The
// memory can be rebuilt from the flash.
TEST(KvFlippedBits, of_the_directory_of_the_index_are_refused) {
  machine m;
  content right;
  {
    store db = m.open();
    for (std::uint64_t n = 0; n < 100; ++n) db.put(key_of(n), bytes_of(right[key_of(n)] = "v"));
  }
  const moment closed = m.now();
  const std::uint64_t at =
      m.memory->named_root("kv_ssd:i", machine::table::layout_name, machine::table::layout_version).word->load();
  for (std::size_t word = 0; word < 3; ++word)
    for (unsigned bit = 0; bit < 64; ++bit) {
      if (word == 0 && bit > 1) continue;  // a depth whose block is not all in the medium
      m.memory->resolve(media::pointer<std::uint64_t>(at))[word] ^= std::uint64_t{1} << bit;
      EXPECT_NE(m.refusal(), "") << word << ", bit " << bit;
      m.restore(closed);
    }
  for (unsigned bit = 16; bit < 32; ++bit) {
    m.root().notes ^= std::uint64_t{1} << bit;
    EXPECT_PRED2(says, m.refusal(), "rebuild the memory") << bit;
    m.restore(closed);
  }
  EXPECT_EQ(m.refusal(), "");
  // A crash leaves no check: splits may have come since.
  moment crashed;
  {
    store db = m.open();
    EXPECT_EQ(m.root().notes & layout::index_check, 0U);
    crashed = m.now();
  }
  EXPECT_NE(m.root().notes & layout::index_check, 0U);
  m.restore(crashed);
  EXPECT_EQ(m.refusal(), "");
}

// Versions 'a' to 'd' of eight keys, of two lines each, all in the write buffer or on flash; closed.
void write_versions(machine& m, content& right, bool on_flash) {
  store db = m.open();
  for (const char value : {'a', 'b', 'c', 'd'}) {
    for (std::uint64_t n = 0; n < 8; ++n) {
      right[key_of(n)] = std::string(60, value);
      db.put(key_of(n), bytes_of(right[key_of(n)]));
    }
    if (on_flash) {
      ASSERT_TRUE(db.empty_buffer());
    }
  }
}

// A bit of a word of the index that leads it to an older version of its key, which is whole.
TEST(KvFlippedBits, of_a_word_of_the_index_that_lead_to_an_older_version_bring_no_value_back) {
  for (const bool on_flash : {false, true}) {
    machine m;
    content right;
    ASSERT_NO_FATAL_FAILURE(write_versions(m, right, on_flash));
    const moment closed = m.now();
    std::uint64_t damaged = 0;
    for (std::uint64_t n = 0; n < 8; ++n)
      for (unsigned bit = 0; bit < 64; ++bit) {
        m.set_word(key_of(n), m.word_of(key_of(n)) ^ std::uint64_t{1} << bit);
        {
          store db = m.open();
          for (const std::string& key : damaged_keys(db, right, ", bit " + std::to_string(bit))) {
            ASSERT_EQ(key, key_of(n)) << bit;
            ++damaged;
          }
        }
        if (HasFatalFailure()) return;
        m.restore(closed);
      }
    EXPECT_GT(damaged, 8 * 60U);
  }
}

// The word leads to another version of its key, and has the right parity: as if the write of the record there was
// lost. It stays with its key when the record is moved.
TEST(KvFlippedBits, of_a_word_of_the_index_and_its_parity_bring_no_older_version_back) {
  for (const bool on_flash : {false, true}) {
    machine m;
    content right;
    ASSERT_NO_FATAL_FAILURE(write_versions(m, right, on_flash));
    const moment closed = m.now();
    std::uint64_t tried = 0;
    const std::span<std::byte> all =
        on_flash ? m.flash_bytes().subspan(512) : std::span(m.ring(), m.root().ring_lines * media::cache_line_bytes);
    const std::size_t step = on_flash ? small.unit_bytes : media::cache_line_bytes;
    for (std::size_t at = 0; at + 512 < all.size(); at += step) {
      const layout::record_view record(all.subspan(at));
      if (!record.has_whole_head(m.root().identity[0]) || record.head().space != 0) continue;
      const std::string key(record.key());
      const layout::place_word now = m.place_of(key);
      if (now.address() == at / step) continue;
      ++tried;
      // All bits but those of the place; the parity fits.
      const std::uint64_t moved = (now.word() & ~std::uint64_t{0xffffff}) | at / step;
      const bool is_even = (std::popcount(now.word()) + std::popcount(moved)) % 2 == 0;
      const layout::place_word other(is_even ? moved : moved ^ std::uint64_t{1} << 38);
      m.set_word(key, other.named(machine::table::hash_of(machine::slot_of(key))));
      EXPECT_TRUE(m.place_of(key).is_whole());
      {
        store db = m.open();
        EXPECT_EQ(damaged_keys(db, right, ""), std::vector<std::string>{key});
        ASSERT_TRUE(db.empty_buffer());
        EXPECT_EQ(damaged_keys(db, right, ""), std::vector<std::string>{key});
      }
      m.restore(closed);
      if (HasFailure()) return;
    }
    EXPECT_EQ(tried, 3 * 8U);
  }
}

// Words of a release before, which are not checked: the device opens, goes on, and its words are checked when their
// records are moved. Releases before refuse it from then on.
TEST(KvChecks, words_of_a_release_before_are_checked_from_the_next_move_on) {
  for (const bool crashes : {false, true})
    for (const bool on_flash : {false, true}) {
      machine m;
      content right;
      ASSERT_NO_FATAL_FAILURE(write_versions(m, right, on_flash));
      const auto is_checked = [&](std::uint64_t n) { return (m.word_of(key_of(n)) >> 39 & 1) != 0; };
      for (std::uint64_t n = 0; n < 8; ++n) EXPECT_TRUE(is_checked(n));
      {
        auto index = indexes::cceh<restartable_medium>::open(*m.memory, "kv_ssd:i");
        std::vector<std::pair<std::uint64_t, std::uint64_t>> old;
        index.for_each([&](std::uint64_t slot, std::uint64_t w) {
          const auto place = layout::place_word::of_named(w, machine::table::hash_of(slot));
          const std::uint64_t no_check = place.is_in_ring() ? std::uint64_t{31} << 56 : 0;
          old.emplace_back(slot, (place.word() >> 40 << 40 & ~no_check) | place.address());
        });
        for (const auto& [slot, w] : old) index.update(slot, w);
      }
      m.set_version(2);
      moment left = m.now();
      {
        store db = m.open();
        expect_content(db, right, "");
        EXPECT_EQ(db.check().violations, std::vector<std::string>());
        for (std::uint64_t n = 0; n < 4; ++n) db.put(key_of(n), bytes_of(right[key_of(n)] = "new"));
        left = m.now();
        if (!crashes) {
          ASSERT_TRUE(db.empty_buffer());
          EXPECT_EQ(db.check().violations, std::vector<std::string>());
        }
      }
      layout::flash_header h;
      std::memcpy(static_cast<void*>(&h), m.flash_bytes().data(), sizeof h);
      EXPECT_EQ(h.version, layout::flash_header::current_version);
      if (crashes) m.restore(left);
      EXPECT_EQ(m.refusal(right), "");
      EXPECT_TRUE(is_checked(0));
      EXPECT_EQ(is_checked(5), !crashes && !on_flash);
    }
}

// The mover does not go by the bytes of a record: a length, a key or a hash that is damaged leads it nowhere else.
TEST(KvFlippedBits, of_the_write_buffer_of_an_open_device_stay_with_their_record) {
  std::uint64_t damaged = 0, stored = 0;
  for (std::size_t bit = 0; bit < 8 * (sizeof(layout::record_head) + 5); ++bit) {
    machine m;
    content right;
    const std::string where = ", bit " + std::to_string(bit);
    {
      store db = m.open();
      for (std::uint64_t n = 0; n < 8; ++n) {
        right[key_of(n)] = std::string(100 + n, 'a');
        db.put(key_of(n), bytes_of(right[key_of(n)]));
      }
      const auto hit = m.records([](const layout::record_view& record) { return record.key() == key_of(3); });
      ASSERT_FALSE(hit.empty());
      hit.front()[bit / 8] ^= std::byte{1} << bit % 8;
      // Many times the buffer: the record is moved.
      for (std::uint64_t n = 10; n < 400; ++n) {
        const std::string key = key_of(10 + n % 20);
        try {
          if (db.put(key, bytes_of(std::string(200, 'b'))) == kv_outcome::full) continue;
          right[key] = std::string(200, 'b');
          ++stored;
        } catch (const stores::kv_damaged&) {
          ++damaged;
        }
      }
      for (const std::string& key : damaged_keys(db, right, where)) {
        ASSERT_EQ(key, key_of(3)) << where;
        ++damaged;
      }
    }
    store db = m.open();
    for (const std::string& key : damaged_keys(db, right, where)) ASSERT_EQ(key, key_of(3)) << where;
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(damaged, 300U);
  EXPECT_GT(stored, 100'000U);
}

// At each event of closing, whatever of the memory was not durable then is there, or lost.
TEST(KvClosing, that_a_crash_ends_loses_no_overwrite) {
  std::uint64_t crashes = 0;
  for (std::uint64_t event = 0, reached = 1; reached != 0; ++event) {
    reached = 0;
    for (const surviving what : {surviving::all, surviving::durable}) {
      machine m;
      content right;
      if (!m.crash(event, what, [&](auto&& begin) {
            store db = m.open();
            overwrite_in_the_buffer(db, right);
            begin();
          }))
        continue;
      ++reached;
      for (int opening = 0; opening < 2; ++opening) ASSERT_EQ(m.refusal(right, ", event " + std::to_string(event)), "");
      if (HasFatalFailure()) return;
    }
    crashes += reached;
  }
  EXPECT_GT(crashes, 20U);
}

// A second opening that fails beside an open device takes nothing of what is acknowledged afterwards.
TEST(KvMoments, an_opening_that_fails_beside_an_open_device_takes_nothing_from_it) {
  for (const bool crashes : {false, true})
    for (const auto what : {blocks::operation::write_durable, blocks::operation::read}) {
      machine m;
      moment crashed;
      {
        store db = m.open();
        db.put(key_of(0), bytes_of("old"));
        m.on.inject({.what = what, .only = blocks::stream::manifest});
        EXPECT_NE(m.refusal(), "");
        m.on.stop();
        EXPECT_EQ(db.put(key_of(0), bytes_of("new")), kv_outcome::replaced);
        crashed = m.now();
      }
      if (crashes) m.restore(crashed);
      store db = m.open();
      const auto found = db.get(key_of(0));
      EXPECT_TRUE(found && text_of(*found) == "new") << crashes;
    }
}

// A tail that replay took for later than it is would hide overwrites, behind a crash.
TEST(KvFlippedBits, of_the_tail_of_the_write_buffer_lose_no_overwrite) {
  machine m;
  moment crashed;
  content right;
  {
    store db = m.open();
    overwrite_in_the_buffer(db, right);
    crashed = m.now();
  }
  unsigned errors = 0;
  layout::word& tail = m.root().ring_tail;
  for (unsigned bit = 0; bit < 64; ++bit) {
    m.restore(crashed);
    tail = tail.load() ^ std::uint64_t{1} << bit;
    const std::string what = m.refusal(right, ", bit " + std::to_string(bit));
    if (HasFailure()) return;
    if (what.empty()) continue;  // a tail without a check
    ASSERT_PRED2(says, what, "the tail of its write buffer");
    ++errors;
  }
  EXPECT_GE(errors, 63U);
}

// The index leads to a record of another key, which is whole, and has its own word.
TEST(KvFlippedBits, of_a_word_of_the_index_that_leads_to_another_record_cost_its_key) {
  machine m;
  {
    store db = m.open();
    for (std::uint64_t n = 0; n < 2; ++n) db.put(key_of(n), bytes_of(std::string(100, 'v')));
  }
  const auto found = m.records([](const layout::record_view& record) { return record.head().space == 0; });
  ASSERT_EQ(found.size(), 2U);
  std::memcpy(found[0], found[1], 192);
  store db = m.open();
  EXPECT_THROW(static_cast<void>(db.get(key_of(0))), stores::kv_damaged);
  EXPECT_TRUE(db.get(key_of(1)));
}

// The record there is whole, and of a key that was erased.
TEST(KvFlippedBits, of_a_word_of_the_index_that_leads_to_a_record_of_before_cost_its_key) {
  machine m;
  for (std::uint64_t n = 0; n < 2; ++n) m.open().put(key_of(n), bytes_of(std::string(100, 'v')));
  const std::uint64_t word = m.word_of(key_of(0));
  m.open().erase(key_of(0));
  m.set_word(key_of(1), word);
  store db = m.open();
  EXPECT_THROW(static_cast<void>(db.get(key_of(1))), stores::kv_damaged);
  EXPECT_FALSE(db.get(key_of(0)));
  EXPECT_EQ(db.put(key_of(1), bytes_of("new")), kv_outcome::replaced);
  EXPECT_EQ(db.check().violations, std::vector<std::string>());
}

// A block that cannot be read costs its records while that lasts: rebuilding overwrites nothing of its superblock.
TEST(KvRebuilding, of_a_flash_with_a_block_that_cannot_be_read_goes_on_and_loses_nothing) {
  splitmix64 random(seed_or(27));
  std::uint64_t missed = 0;
  for (int round = 0; round < 40; ++round) {
    machine m;
    const content right = write_some(m, random);
    const std::uint64_t hit = attack::choose(m, random) / 512;
    m.on.inject({.times = 1'000'000, .what = blocks::operation::read, .first = hit, .end = hit + 1});
    m.lose_memory();
    stores::kv_rebuilt result;
    {
      store db = store::rebuild(*m.memory, m.on, small, result);
      EXPECT_EQ(result.unreadable, 1U);
      for (const auto& [key, value] : right) missed += db.get(key) ? 0 : 1;
      for (int i = 0; i < 200; ++i) ASSERT_NE(db.put("more", bytes_of(std::string(900, 'm'))), kv_outcome::full);
    }
    m.on.stop();
    m.lose_memory();
    store db = store::rebuild(*m.memory, m.on, small, result);
    EXPECT_EQ(result.unreadable, 0U);
    for (const auto& [key, value] : right) {
      const auto found = db.get(key);
      ASSERT_TRUE(found && text_of(*found) == value) << key << ", round " << round;
    }
  }
  EXPECT_GT(missed, 5U);
}

// ---- blocks that the drive cannot read: they cost the keys whose records are there, as flipped bits do

TEST(KvFailures, a_block_that_cannot_be_read_costs_its_keys) {
  splitmix64 random(seed_or(26));
  std::uint64_t values = 0, pages = 0, keys_passed_over = 0, given_up = 0;
  for (int round = 0; round < 60; ++round) {
    machine m;
    content right;
    store db = m.open();
    // Keys that stay lie between keys that change, so that superblocks with both are collected.
    const auto put = [&](const std::string& key) {
      const std::string value = random_value(random, 100 + random.below(300));
      const bool is_there = db.put(key, bytes_of(value)) != kv_outcome::full;
      if (is_there) right[key] = value;
      return is_there;
    };
    for (std::uint64_t n = 0; db.stats().utilisation() < 0.7; ++n) {
      ASSERT_TRUE(put("cold " + std::to_string(n)));
      ASSERT_TRUE(put(key_of(random.below(keys))));
    }
    ASSERT_TRUE(db.empty_buffer());
    const std::string cold = "cold " + std::to_string(random.below(30));
    std::size_t byte = random.one_in(4) ? attack::newest_page(m) : 0;
    for (std::size_t at = 512; byte == 0; at += small.unit_bytes)
      if (const layout::record_view record(m.flash_bytes().subspan(at));
          record.has_whole_head(m.root().identity[0]) && record.key() == cold)
        byte = at + random.below(bytes_of(record.head()));
    const std::uint64_t hit = byte / 512;
    const std::string where = ", round " + std::to_string(round) + ", block " + std::to_string(hit);
    m.on.inject({.times = ~std::uint64_t{0}, .what = blocks::operation::read, .first = hit, .end = hit + 1});
    // The keys that are damaged now: each has a record in the block.
    const auto expect_all = [&] {
      const attack::touched there = attack::at_bytes(m, hit * 512, hit * 512 + 512);
      std::size_t damaged = 0;
      for (const auto& [key, value] : right) try {
          const auto found = db.get(key);
          EXPECT_TRUE(found && text_of(*found) == value) << key << where;
        } catch (const stores::kv_damaged&) {
          ++damaged;
          EXPECT_NE(std::ranges::count(there.keys, key), 0) << key << where;
        }
      return damaged;
    };
    values += expect_all();
    stores::kv_skipped skipped;
    const auto found = walk_over(db, skipped);
    attack::expect_walk(db, right, found, skipped, attack::at_bytes(m, hit * 512, hit * 512 + 512), where);
    pages += skipped.pages;
    keys_passed_over += skipped.keys.size();
    // Puts and deletions need nothing of it, also when superblocks are collected.
    for (int n = 0; n < 600; ++n) {
      const std::string key = key_of(random.below(keys));
      if (random.one_in(6)) {
        ASSERT_EQ(db.erase(key), right.erase(key) != 0) << key << where;
      } else {
        static_cast<void>(put(key));
      }
    }
    given_up += db.stats().lost_bytes != 0 ? 1 : 0;
    expect_all();
    // What could not be read was not moved: it is there as it was.
    m.on.stop();
    EXPECT_EQ(expect_all(), 0U);
    if (HasFailure()) return;
  }
  std::printf("blocks that cannot be read: %lu values, %lu keys and %lu pages passed over, %lu superblocks given up\n",
              values, keys_passed_over, pages, given_up);
  EXPECT_GT(values, 30U);
  EXPECT_GT(pages, 3U);
  EXPECT_GT(keys_passed_over, 10U);
  EXPECT_GT(given_up, 10U);
}

// A page of keys, and a record without a name, that the drive cannot read for so many reads, while their key space is
// deleted: nothing of it is left.
TEST(KvFailures, that_end_while_a_key_space_is_deleted_leave_no_key) {
  std::uint64_t passed_over = 0;
  for (std::uint64_t times = 1; times < 40; ++times)
    for (const bool page_alone : {false, true}) {
      machine m;
      {
        store db = m.open();
        for (const std::uint8_t space : {std::uint8_t{0}, std::uint8_t{1}})
          for (std::uint64_t n = 0; n < keys; ++n) db.put(key_of(n), bytes_of(std::string(600, 'v')), {}, space);
        ASSERT_TRUE(db.empty_buffer());
      }
      ASSERT_EQ(damage_record(m, key_of(3), hit::key), 1);
      store db = m.open();
      const auto fail = [&](std::size_t byte) {
        m.on.inject({.times = times, .what = blocks::operation::read, .first = byte / 512, .end = byte / 512 + 2});
      };
      const std::span<std::byte> all = m.flash_bytes().subspan(512);
      for (std::size_t at = 0; at + sizeof(layout::record_head) < all.size(); at += small.unit_bytes) {
        const layout::record_view record(all.subspan(at));
        if (!record.has_whole_head(m.root().identity[0])) continue;
        const bool is_page = record.head().space == layout::bucket_space && record.key()[4] == 0;
        if (is_page || (!page_alone && record.head().space == 0 && record.key() == key_of(7))) fail(512 + at);
      }
      passed_over += db.erase_space(0);
      m.on.stop();
      for (std::uint64_t n = 0; n < keys; ++n) {
        EXPECT_EQ(message_of([&] { EXPECT_FALSE(db.get(key_of(n))) << n; }), "") << n << ", " << times;
        EXPECT_TRUE(db.get(key_of(n), 1)) << n;
      }
      db.erase_space(1);
      EXPECT_EQ(db.stats().used_bytes, 0U) << times;
      EXPECT_EQ(db.check().violations, std::vector<std::string>()) << times;
      if (HasFailure()) return;
    }
  EXPECT_GT(passed_over, 40U);
}

// Pages of another key space fail, too: a record that does not name its key may be of that one, and stays. When it can
// be read, another call deletes it, and `repair` lists it.
TEST(KvFailures, of_another_key_space_leave_a_key_to_the_next_call) {
  for (const bool is_repaired : {false, true}) {
    machine m;
    store db = m.open();
    for (const std::uint8_t space : {std::uint8_t{0}, std::uint8_t{1}})
      for (std::uint64_t n = 0; n < keys; ++n) db.put(key_of(n), bytes_of(std::string(600, 'v')), {}, space);
    ASSERT_TRUE(db.empty_buffer());
    const std::span<std::byte> all = m.flash_bytes().subspan(512);
    for (std::size_t at = 0; at + sizeof(layout::record_head) < all.size(); at += small.unit_bytes) {
      const layout::record_view record(all.subspan(at));
      if (!record.has_whole_head(m.root().identity[0])) continue;
      if (record.head().space == layout::bucket_space || (record.head().space == 0 && record.key() == key_of(7)))
        m.on.inject(
            {.times = ~std::uint64_t{0}, .what = blocks::operation::read, .first = 1 + at / 512, .end = 2 + at / 512});
    }
    EXPECT_GT(db.erase_space(0), 0U);
    m.on.stop();
    EXPECT_TRUE(db.get(key_of(7)));
    if (is_repaired) {
      static_cast<void>(db.repair());
      stores::kv_skipped skipped;
      EXPECT_EQ(walk_over(db, skipped).size(), 1U);
      EXPECT_FALSE(skipped.any());
    }
    static_cast<void>(db.erase_space(0));
    for (std::uint64_t n = 0; n < keys; ++n) {
      EXPECT_FALSE(db.get(key_of(n))) << n;
      EXPECT_TRUE(db.get(key_of(n), 1)) << n;
    }
    db.erase_space(1);
    EXPECT_EQ(db.stats().used_bytes, 0U);
    EXPECT_EQ(db.check().violations, std::vector<std::string>());
  }
}

// A record and its page that cannot be read for a while, in which `repair` writes the page again, without the key. The
// pair is there when the drive is well: it goes with its key space, and another repair lists it.
TEST(KvFailures, beside_a_repair_hide_no_pair_for_ever) {
  for (const bool is_repaired : {false, true}) {
    machine m;
    content right;
    store db = m.open();
    for (std::uint64_t n = 0; n < keys; ++n) {
      right[key_of(n)] = std::string(600, 'v');
      db.put(key_of(n), bytes_of(right[key_of(n)]));
    }
    ASSERT_TRUE(db.empty_buffer());
    std::vector<std::size_t> bad{attack::newest_page(m)};
    for (std::size_t at = 512; bad.size() == 1; at += small.unit_bytes)
      if (const layout::record_view record(m.flash_bytes().subspan(at));
          record.has_whole_head(m.root().identity[0]) && record.key() == key_of(3))
        bad.push_back(at);
    for (const std::size_t byte : bad)
      m.on.inject(
          {.times = ~std::uint64_t{0}, .what = blocks::operation::read, .first = byte / 512, .end = byte / 512 + 1});
    const stores::kv_repaired repaired = db.repair();
    EXPECT_EQ(repaired.pages, 1U);
    EXPECT_GT(repaired.damaged, 0U);
    m.on.stop();
    std::vector<std::string> met;
    EXPECT_EQ(db.for_each_key_there({}, 0, [&](const std::string& key) { met.push_back(key); }).keys, 0U);
    std::ranges::sort(met);
    EXPECT_EQ(met, keys_of(right));
    stores::kv_skipped skipped;
    if (is_repaired) {
      const std::size_t unlisted = keys - walk_over(db, skipped).size();
      EXPECT_GT(unlisted, 0U);
      EXPECT_EQ(db.repair().relisted, unlisted);
      EXPECT_EQ(walk_over(db, skipped), keys_of(right));
      for (const auto& [key, value] : right) EXPECT_EQ(text_of(*db.get(key)), value);
    }
    db.erase_space(0);
    for (const auto& [key, value] : right) EXPECT_FALSE(db.get(key)) << key;
    EXPECT_EQ(db.stats().used_bytes, 0U);
    EXPECT_EQ(db.check().violations, std::vector<std::string>());
  }
}

}  // namespace
}  // namespace pmlab::tests::kv_damage_test
