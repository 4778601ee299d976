// The skip lists' own behaviour: reuse of nodes, interrupted deletions, towers as hints.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/skip_list.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/comparison.hpp"
#include "support/history.hpp"
#include "support/medium_under_test.hpp"
#include "support/message_of.hpp"
#include "support/operations.hpp"
#include "support/restartable_medium.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;

struct in_dram {
  template <class Medium>
  using index = indexes::skip_list<Medium>;
};
struct in_the_medium {
  template <class Medium>
  using index = indexes::skip_list_pm<Medium>;
};

template <class Towers>
class skip_lists : public testing::Test {
 protected:
  template <class Medium>
  using index = typename Towers::template index<Medium>;
};

using placements = testing::Types<in_dram, in_the_medium>;
TYPED_TEST_SUITE(skip_lists, placements);

// S2: a walk is at a node while it, and its neighbours, are deleted and inserted again.
TYPED_TEST(skip_lists, S2_a_scan_finds_its_way_over_nodes_that_are_deleted_meanwhile) {
  media::dram medium;
  auto list = TestFixture::template index<media::dram>::open(medium);
  constexpr std::uint64_t keys = 64;
  for (std::uint64_t key = 0; key < keys; key += 4) ASSERT_EQ(list.insert(key, key), outcome::inserted);
  std::atomic<unsigned> writing{2};
  std::string wrong;
  std::uint64_t scans = 0;
  run_threads(3, [&](unsigned t) {
    if (t != 0) {
      random source(t);
      for (int i = 0; i < 150'000; ++i) {
        const std::uint64_t key = source.below(keys / 4) * 4 + 1 + source.below(3);
        source.one_in(2) ? list.insert(key, key) : list.erase(key);
      }
      --writing;
      return;
    }
    std::array<indexes::entry, keys> got;
    for (; writing > 0; ++scans) {
      const std::size_t count = list.scan(0, got);
      std::uint64_t stays = 0;
      for (std::size_t i = 0; i < count; ++i) {
        if (i > 0 && got[i].key <= got[i - 1].key) wrong = "keys do not ascend";
        if (got[i].value != got[i].key) wrong = "a value of another key";
        if (got[i].key == stays) stays += 4;
      }
      if (stays != keys) wrong = "misses key " + std::to_string(stays);
    }
  });
  EXPECT_EQ(wrong, "") << "in one of " << scans << " scans";
  EXPECT_TRUE(list.check().ok());
}

// All threads on one key: each insert that succeeds is matched by one erase.
TYPED_TEST(skip_lists, S2_a_storm_around_one_key_leaves_it_there_once_or_not_at_all) {
  media::dram medium;
  auto list = TestFixture::template index<media::dram>::open(medium);
  std::atomic<std::int64_t> balance{0};
  std::atomic<std::uint64_t> wrong{0};
  run_threads(4, [&](unsigned t) {
    random source(t);
    for (int i = 0; i < 60'000; ++i) {
      const std::uint64_t key = 7;
      switch (source.below(5)) {
        case 0: balance += list.insert(key, 5) == outcome::inserted ? 1 : 0; break;
        case 1: balance -= list.erase(key) == outcome::erased ? 1 : 0; break;
        case 2: list.update(key, 6); break;
        case 3:
          if (const auto value = list.find(key); value && *value != 5 && *value != 6) ++wrong;
          break;
        default: {
          std::array<indexes::entry, 3> got;
          if (list.scan(0, got) > 1) ++wrong;
        }
      }
    }
  });
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(balance, list.find(7) ? 1 : 0);
  EXPECT_EQ(list.size(), list.find(7) ? 1U : 0U);
  EXPECT_TRUE(list.check().ok());
}

// A7: erased nodes make room for new ones, within a run and over many.
TYPED_TEST(skip_lists, A7_nodes_of_erased_keys_are_used_again) {
  medium_under_test<restartable_medium> under;
  std::uint64_t after_the_first = 0;
  for (std::uint64_t run = 0; run < 10; ++run) {
    if (run % 3 == 2) under.reopen();
    auto list = TestFixture::template index<restartable_medium>::open(*under.medium);
    for (std::uint64_t cycle = 0; cycle < 10; ++cycle) {
      for (std::uint64_t key = 0; key < 3000; ++key) ASSERT_EQ(list.insert(key * 977, key), outcome::inserted);
      for (std::uint64_t key = 0; key < 3000; ++key) ASSERT_EQ(list.erase(key * 977), outcome::erased);
    }
    const std::uint64_t bytes = list.stats().medium_bytes;
    if (run == 0) after_the_first = bytes;
    // Persistent towers: the nodes of the slab that is judged first are free too late for the insert that judges it.
    const std::uint64_t slabs_more = std::is_same_v<TypeParam, in_dram> ? 1 : run;
    EXPECT_LE(bytes, after_the_first + slabs_more * (std::uint64_t{64} << 10)) << "in run " << run;
  }
}

// The words of a list in a medium, for damaging them.
template <class Towers>
class nodes_of {
  static constexpr std::size_t levels = std::is_same_v<Towers, in_dram> ? 1 : 13;
  using root_type = indexes::detail::skip_list::root_object<levels>;
  using slab_type = indexes::detail::skip_list::slab<indexes::detail::skip_list::slab_bytes<restartable_medium>()>;

 public:
  using node = indexes::detail::skip_list::node;

  explicit nodes_of(restartable_medium& medium) : medium_(medium) {
    const auto named = medium.named_root(Towers::template index<restartable_medium>::layout_name,
                                         Towers::template index<restartable_medium>::layout_name, 1);
    root_ = medium.resolve(media::pointer<root_type>(named.word->load()));
  }

  // The head and the nodes that follow it in the list of entries.
  [[nodiscard]] std::vector<node*> in_order() const {
    std::vector<node*> nodes{&root_->heads[0]};
    while (nodes.back()->next != 0)
      nodes.push_back(medium_.resolve(media::pointer<node>(nodes.back()->next & ~std::uint64_t{31})));
    return nodes;
  }

  // In the list of the first level of persistent towers.
  [[nodiscard]] bool has_tower(std::uint64_t key) const {
    if constexpr (levels > 1)
      for (std::uint64_t at = root_->heads[1].next; at != 0;) {
        const node& n = *medium_.resolve(media::pointer<node>(at & ~std::uint64_t{31}));
        if (n.key == key) return true;
        at = n.next & ~std::uint64_t{31};
      }
    return false;
  }

  // The node of `key`, copied to one that was never used, as an interrupted move leaves it: before (`linked`:
  // after) the copy took the place of the node. The copy has another value.
  void move(std::uint64_t key, std::uint64_t value, bool linked) const {
    slab_type& newest = *medium_.resolve(media::pointer<slab_type>(root_->slabs));
    node& copy = newest.nodes.back();
    const std::uint64_t place = medium_.locate(&copy).word();
    for (node* const n : in_order()) {
      if (n == &root_->heads[0] || n->key != key) continue;
      copy.level = indexes::detail::skip_list::origin{1, ++root_->writers, 0}.word(place);
      copy.key = key;
      copy.value = value;
      copy.next = n->next.load();
      if (linked) n->next = place | indexes::detail::skip_list::mark;
    }
  }

  // Removes a node from the list and makes its link point outside of the list's slabs, as if that slab had been freed.
  void lose(std::size_t number) const {
    const std::vector<node*> nodes = in_order();
    nodes[number - 1]->next = nodes[number]->next.load();
    nodes[number]->next = medium_.locate(root_).word();
  }

  // Makes the list look like one of a release without origins in nodes.
  void make_old() const {
    for (std::uint64_t at = root_->slabs; at != 0;) {
      slab_type& s = *medium_.resolve(media::pointer<slab_type>(at));
      s.kind = 0x1234;
      for (node& n : s.nodes)
        if (n.level > 255) n.level = indexes::detail::skip_list::origin::of(n.level, medium_.locate(&n).word()).level;
      at = s.next;
    }
    root_->writers = 0;
  }

 private:
  restartable_medium& medium_;
  root_type* root_;
};

// The error of `Index` for its list: "" if it opens and its check finds nothing.
template <class Index>
std::string problem_of(restartable_medium& medium) {
  std::string violation;
  const std::string refusal = message_of([&] {
    const indexes::check_report report = Index::open(medium).check();
    if (!report.ok()) violation = report.violations.front();
  });
  return refusal + violation;
}

constexpr std::uint64_t scattered(std::uint64_t i) { return i * 0x9e3779b97f4a7c15U; }

// K5: a lost link is detected, anywhere; no writer destroys the entries behind it; and salvage reads all of them.
TYPED_TEST(skip_lists, K5_entries_behind_a_lost_link_are_noticed_kept_and_brought_back) {
  using list_type = typename TestFixture::template index<restartable_medium>;
  constexpr std::uint64_t keys = 600;
  for (const bool is_old : {false, true})
    for (const std::size_t broken : {std::size_t{0}, std::size_t{1}, std::size_t{250}, std::size_t{500}}) {
      SCOPED_TRACE((is_old ? "old, node " : "node ") + std::to_string(broken));
      medium_under_test<restartable_medium> under;
      {
        auto list = list_type::open(*under.medium);
        for (std::uint64_t i = 0; i < keys; ++i) ASSERT_EQ(list.insert(scattered(i), i), outcome::inserted);
        for (std::uint64_t i = 0; i < keys; i += 10) ASSERT_EQ(list.erase(scattered(i)), outcome::erased);
      }
      const nodes_of<TypeParam> nodes(*under.medium);
      if (is_old) nodes.make_old();
      ASSERT_EQ(problem_of<list_type>(*under.medium), "");
      nodes.in_order()[broken]->next = 0;
      under.reopen();
      const std::string problem = problem_of<list_type>(*under.medium);
      EXPECT_PRED2(says, problem, "outside its list");
      std::uint64_t more = 0;
      if constexpr (std::is_same_v<TypeParam, in_the_medium>) {
        auto list = list_type::open(*under.medium);
        for (; more < 3000; ++more) ASSERT_NE(list.insert(scattered(keys + more), keys + more), outcome::full);
      } else {
        EXPECT_PRED2(says, problem, "'skip_list'");
        EXPECT_PRED2(says, problem, "pmlab pool repair");
      }
      std::vector<bool> found(keys + more);
      EXPECT_THROW(list_type::salvage(*under.medium, list_type::layout_name,
                                      [&](std::uint64_t key, std::uint64_t value) {
                                        ASSERT_LT(value, keys + more);
                                        EXPECT_EQ(key, scattered(value));
                                        EXPECT_FALSE(found[value]) << "twice: " << value;
                                        found[value] = true;
                                      }),
                   error);
      for (std::uint64_t i = 0; i < keys + more; ++i) EXPECT_EQ(found[i], i >= keys || i % 10 != 0) << i;
    }
}

// K5: a slab may go that a lost entry leads to.
TYPED_TEST(skip_lists, K5_a_lost_entry_is_noticed_wherever_its_own_link_leads) {
  using list_type = typename TestFixture::template index<restartable_medium>;
  constexpr std::uint64_t keys = 100;
  medium_under_test<restartable_medium> under;
  {
    auto list = list_type::open(*under.medium);
    for (std::uint64_t i = 0; i < keys; ++i) ASSERT_EQ(list.insert(scattered(i), i), outcome::inserted);
  }
  nodes_of<TypeParam>(*under.medium).lose(50);
  under.reopen();
  const std::string problem = problem_of<list_type>(*under.medium);
  EXPECT_PRED2(says, problem, "outside its list");
  std::uint64_t salvaged = 0;
  EXPECT_THROW(list_type::salvage(*under.medium, list_type::layout_name,
                                  [&](std::uint64_t key, std::uint64_t value) {
                                    ++salvaged;
                                    EXPECT_EQ(key, scattered(value));
                                  }),
               error);
  EXPECT_EQ(salvaged, keys);
}

// K5: the last node of a writer may have been cut off before its link, once for each crash: that is no damage, it does
// not pile up, and any other node is.
TYPED_TEST(skip_lists, K5_an_insert_that_a_crash_cut_off_is_no_damage_and_does_not_pile_up) {
  using list_type = typename TestFixture::template index<restartable_medium>;
  medium_under_test<restartable_medium> under;
  const auto unlink = [&](std::uint64_t key) {
    const nodes_of<TypeParam> all(*under.medium);
    if (all.has_tower(key)) return;  // it was linked, then
    const auto nodes = all.in_order();
    for (std::size_t i = 1; i < nodes.size(); ++i)
      if (nodes[i]->key == key) nodes[i - 1]->next = nodes[i]->next.load();
  };
  std::uint64_t bytes = 0;
  for (std::uint64_t run = 0; run < 300; ++run) {
    {
      auto list = list_type::open(*under.medium);
      const indexes::check_report report = list.check();
      ASSERT_TRUE(report.ok()) << report.violations.front() << " in run " << run;
      for (std::uint64_t i = 0; run == 0 && i < 100; ++i) ASSERT_EQ(list.insert(scattered(i), i), outcome::inserted);
      list.erase(scattered(103));
      for (std::uint64_t i = 100; i < 104; ++i) ASSERT_EQ(list.insert(scattered(i), i), outcome::inserted);
      for (std::uint64_t i = 100; i < 103; ++i) ASSERT_EQ(list.erase(scattered(i)), outcome::erased);
      if (run == 100) bytes = list.stats().medium_bytes;
      if (run > 100) {
        ASSERT_LE(list.stats().medium_bytes, bytes + 2048) << run;
      }
    }
    unlink(scattered(103));
    if (run % 10 == 0) under.reopen();
  }
  ASSERT_EQ(problem_of<list_type>(*under.medium), "");
  std::uint64_t linked = 0;
  while (nodes_of<TypeParam>(*under.medium).has_tower(scattered(linked))) ++linked;
  unlink(scattered(linked));
  EXPECT_PRED2(says, problem_of<list_type>(*under.medium), "1 entry is outside its list");
}

// C6, K5: a crash image in which a node leads to its copy has one entry there, the copy; one in which the copy was only
// written has the node alone. Neither is damage.
TYPED_TEST(skip_lists, K5_a_move_that_a_crash_cut_off_leaves_one_entry) {
  using list_type = typename TestFixture::template index<restartable_medium>;
  constexpr std::uint64_t keys = 100;
  for (const bool linked : {false, true}) {
    SCOPED_TRACE(linked ? "linked" : "not linked");
    medium_under_test<restartable_medium> under;
    {
      auto list = list_type::open(*under.medium);
      for (std::uint64_t i = 0; i < keys; ++i) ASSERT_EQ(list.insert(scattered(i), i), outcome::inserted);
    }
    const std::uint64_t moved = scattered(7);
    nodes_of<TypeParam>(*under.medium).move(moved, 1000, linked);
    under.reopen();
    std::uint64_t salvaged = 0;
    list_type::salvage(*under.medium, list_type::layout_name, [&](std::uint64_t key, std::uint64_t value) {
      ++salvaged;
      EXPECT_EQ(value, linked && key == moved ? 1000 : value);
    });
    EXPECT_EQ(salvaged, keys);
    ASSERT_EQ(problem_of<list_type>(*under.medium), "");
    auto list = list_type::open(*under.medium);
    EXPECT_EQ(list.size(), keys);
    EXPECT_EQ(list.find(moved), linked ? 1000 : 7);
    EXPECT_EQ(list.insert(moved, 1), outcome::exists);
    EXPECT_EQ(list.update(moved, 8), outcome::updated);
    EXPECT_EQ(list.find(moved), 8U);
    std::array<indexes::entry, keys + 1> got;
    EXPECT_EQ(list.scan(0, got), keys);
    EXPECT_EQ(list.erase(moved), outcome::erased);
    EXPECT_EQ(list.find(moved), std::nullopt);
    for (std::uint64_t i = keys; i < 5000; ++i) ASSERT_EQ(list.insert(scattered(i), i), outcome::inserted);
    ASSERT_EQ(list.check().ok(), true) << list.check().violations.front();
    EXPECT_EQ(list.find(moved), std::nullopt);
    EXPECT_EQ(list.size(), 4999U);
  }
}

// The slabs that `entries` entries take in a list on `Medium` where nothing was erased.
template <class List, class Medium>
std::uint64_t fresh_bytes(std::uint64_t entries) {
  medium_under_test<Medium> under;
  auto list = List::open(*under.medium);
  for (std::uint64_t i = 0; i < entries; ++i) EXPECT_EQ(list.insert(scattered(i), i), outcome::inserted);
  return list.stats().medium_bytes;
}

constexpr std::uint64_t slab_of_pools = std::uint64_t{64} << 10;

// Erases after an open release slabs, too, and so do several runs.
TYPED_TEST(skip_lists, space_comes_back_in_runs_that_find_the_entries_there) {
  using list_type = typename TestFixture::template index<restartable_medium>;
  constexpr std::uint64_t keys = 40'000;
  constexpr std::uint64_t stay = 20;
  medium_under_test<restartable_medium> under;
  {
    auto list = list_type::open(*under.medium);
    for (std::uint64_t i = 0; i < keys; ++i) ASSERT_EQ(list.insert(scattered(i), i), outcome::inserted);
  }
  for (std::uint64_t run = 0; run < 2; ++run) {
    under.reopen();
    auto list = list_type::open(*under.medium);
    for (std::uint64_t i = run * keys / 2; i < (run + 1) * keys / 2; ++i) {
      if (i % stay == 0) continue;
      ASSERT_EQ(list.erase(scattered(i)), outcome::erased);
    }
    const indexes::check_report report = list.check();
    ASSERT_TRUE(report.ok()) << report.violations.front();
  }
  under.reopen();
  auto list = list_type::open(*under.medium);
  for (std::uint64_t i = 0; i < keys; ++i)
    ASSERT_EQ(list.find(scattered(i)), i % stay == 0 ? std::optional(i) : std::nullopt) << i;
  const std::uint64_t bytes = list.stats().medium_bytes;
  const std::uint64_t fresh = fresh_bytes<list_type, restartable_medium>(keys / stay);
  std::printf("  %llu KiB (fresh: %llu)\n", static_cast<unsigned long long>(bytes >> 10),
              static_cast<unsigned long long>(fresh >> 10));
  EXPECT_LE(bytes, 2 * fresh + slab_of_pools);
}

// Entries are moved while other threads read and change them: no value is lost or old, no entry is missed, and the
// space is reclaimed.
TYPED_TEST(skip_lists, space_comes_back_while_others_read_and_update) {
  using list_type = typename TestFixture::template index<media::dram>;
  constexpr std::uint64_t keys = 60'000;
  constexpr std::uint64_t stay = 20;
  constexpr std::uint64_t left = keys / stay;
  media::dram medium;
  auto list = list_type::open(medium);
  for (std::uint64_t i = 0; i < keys; ++i) ASSERT_EQ(list.insert(i, 0), outcome::inserted);
  std::atomic<bool> erasing{true};
  std::string wrong;
  std::string wrong_read;
  run_threads(3, [&](unsigned t) {
    random source(t);
    if (t == 0) {
      for (std::uint64_t n = 0; n < keys; ++n)
        if (const std::uint64_t i = n * 7919 % keys; i % stay != 0) list.erase(i);
      erasing = false;
    } else if (t == 1) {
      // It is the only one that updates: it reads its own values.
      std::vector<std::uint64_t> last(left);
      for (std::uint64_t value = 1; erasing; ++value) {
        const std::uint64_t i = source.below(left);
        if (list.find(i * stay) != last[i]) wrong = "an update of key " + std::to_string(i * stay) + " is lost";
        if (list.update(i * stay, value) != outcome::updated) wrong = "key " + std::to_string(i * stay) + " is lost";
        last[i] = value;
      }
      for (std::uint64_t i = 0; i < left; ++i)
        if (list.find(i * stay) != last[i]) wrong = "the last update of key " + std::to_string(i * stay) + " is lost";
    } else {
      std::vector<indexes::entry> got(64 * stay);
      while (erasing) {
        const std::uint64_t from = source.below(left - 64) * stay;
        const std::size_t count = list.scan(from, got);
        std::uint64_t next = from;
        for (std::size_t i = 0; i < count; ++i) {
          if (i > 0 && got[i].key <= got[i - 1].key) wrong_read = "keys do not ascend";
          if (got[i].key == next) next += stay;
        }
        if (next < from + 64 * stay) wrong_read = "a scan misses key " + std::to_string(next);
      }
    }
  });
  EXPECT_EQ(wrong, "");
  EXPECT_EQ(wrong_read, "");
  // Nodes that readers have held back are freed with the next erased ones.
  for (std::uint64_t i = 0; i < 2000; ++i) ASSERT_EQ(list.insert(keys + i, 0), outcome::inserted);
  for (std::uint64_t i = 0; i < 2000; ++i) ASSERT_EQ(list.erase(keys + i), outcome::erased);
  const indexes::check_report report = list.check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
  EXPECT_EQ(report.entries, left);
  const std::uint64_t bytes = list.stats().medium_bytes;
  const std::uint64_t fresh = fresh_bytes<list_type, media::dram>(left);
  std::printf("  %llu KiB (fresh: %llu)\n", static_cast<unsigned long long>(bytes >> 10),
              static_cast<unsigned long long>(fresh >> 10));
  // Each thread may hold a part of a slab.
  EXPECT_LE(bytes, 2 * fresh + 2 * slab_of_pools);
}

// A full list uses the free nodes of slabs that are being emptied.
TYPED_TEST(skip_lists, a_full_medium_has_room_for_as_many_as_were_erased) {
  using list_type = typename TestFixture::template index<media::dram>;
  medium_under_test<media::dram> under(std::uint64_t{1} << 20);
  auto list = list_type::open(*under.medium);
  std::uint64_t keys = 0;
  while (list.insert(scattered(keys), keys) == outcome::inserted) ++keys;
  for (const std::uint64_t stay : {2U, 10U}) {
    for (std::uint64_t i = 0; i < keys; ++i)
      if (i % stay != 0) {
        ASSERT_EQ(list.erase(scattered(i)), outcome::erased);
      }
    // Towers take as many nodes as before, but perhaps others.
    std::uint64_t failed = 0;
    for (std::uint64_t i = 0; i < keys; ++i)
      if (i % stay != 0 && list.insert(scattered(i), i) != outcome::inserted) ++failed;
    constexpr bool in_dram_only = std::is_same_v<TypeParam, in_dram>;
    EXPECT_LE(failed, in_dram_only ? 0 : keys / 100) << "one in " << stay << " stayed";
    for (std::uint64_t i = 0; i < keys; ++i) static_cast<void>(list.insert(scattered(i), i));
    const indexes::check_report report = list.check();
    ASSERT_TRUE(report.ok()) << report.violations.front();
    ASSERT_GE(report.entries + failed, keys);
    if (report.entries != keys) break;
  }
}

TYPED_TEST(skip_lists, recovery_of_a_million_keys_is_fast_and_finds_them_all) {
  constexpr std::uint64_t keys = 1'000'000;
  medium_under_test<media::pmem> under;
  {
    auto list = TestFixture::template index<media::pmem>::open(*under.medium);
    for (std::uint64_t key = 0; key < keys; ++key)
      ASSERT_EQ(list.insert(key * 0x9e3779b97f4a7c15U, key), outcome::inserted);
    for (std::uint64_t key = 0; key < keys; key += 3) ASSERT_EQ(list.erase(key * 0x9e3779b97f4a7c15U), outcome::erased);
  }
  under.reopen();
  const auto start = std::chrono::steady_clock::now();
  auto list = TestFixture::template index<media::pmem>::open(*under.medium);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  std::printf("  opened in %.1f ms\n", took.count());
  const indexes::check_report report = list.check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
  EXPECT_EQ(report.entries, keys - (keys + 2) / 3);
  for (std::uint64_t key = 0; key < keys; key += 1009)
    EXPECT_EQ(list.find(key * 0x9e3779b97f4a7c15U).has_value(), key % 3 != 0);
}

}  // namespace
}  // namespace pmlab::tests
