// The radix trees' own behaviour, WORT's and WOART's: nodes that grow and shrink, paths that are split and merged at
// every depth, nodes that are released, and damaged pools.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/woart.hpp>
#include <pmlab/indexes/wort.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/pmem.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/campaign.hpp"
#include "support/comparison.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/restartable_medium.hpp"
#include "support/settings.hpp"
#include "support/temporary_folder.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests {
namespace {

namespace parts = indexes::detail::radix;
using indexes::outcome;

template <class Index>
struct layout_of;
template <class Medium, class Layout>
struct layout_of<parts::tree<Medium, Layout>> {
  using type = Layout;
};

template <class Medium, class Layout>
[[nodiscard]] parts::header& root_of(Medium& medium, std::type_identity<Layout> /*of*/) {
  const auto head = medium.named_root(Layout::layout_name, Layout::layout_name, Layout::layout_version).word->load();
  return parts::root_at<typename Layout::kinds>(medium, parts::head_at(medium, media::pointer<parts::tree_head>(head)));
}

template <class Setting>
class radix : public testing::Test {
 protected:
  using index_type = typename Setting::index;
  using layout = typename layout_of<index_type>::type;
  using kinds = typename layout::kinds;
  using digits = typename kinds::digits;

  // Nodes below the root, by kind, but for those of `sweep`.
  [[nodiscard]] std::map<unsigned, std::size_t> nodes() {
    std::map<unsigned, std::size_t> result;
    parts::walk<kinds>(
        *under_.medium, root_of(*under_.medium, std::type_identity<layout>()),
        [&](const parts::walked_node& at) {
          if (at.level != 0 && digits::at(at.path, 0) != digits::values - 1) ++result[at.kind];
        },
        [](std::uint64_t, std::uint64_t) {});
    return result;
  }
  [[nodiscard]] std::map<unsigned, std::size_t> one_of(unsigned kind) { return {{kind, 1}}; }

  void insert(std::uint64_t key) {
    ASSERT_EQ(index_.insert(key, ~key), outcome::inserted);
    model_[key] = ~key;
  }
  void erase(std::uint64_t key) {
    ASSERT_EQ(index_.erase(key), outcome::erased);
    model_.erase(key);
  }
  // A node is replaced by a smaller one when the next erase leaves a sparse node elsewhere.
  void sweep() {
    for (const std::uint64_t key : {~std::uint64_t{0} - 1, ~std::uint64_t{0}}) index_.insert(key, key);
    for (const std::uint64_t key : {~std::uint64_t{0} - 1, ~std::uint64_t{0}}) index_.erase(key);
  }
  void expect_sound() { ASSERT_EQ(compare_all(index_, model_), ""); }

  medium_under_test<typename Setting::medium> under_;
  index_type index_ = index_type::open(*under_.medium);
  contents model_;
};

using radix_kinds = testing::Types<kind<indexes::wort>, kind<indexes::woart>>;
using radix_settings = detail::on_media<radix_kinds, media::dram, media::pmem, restartable_medium>::all;
TYPED_TEST_SUITE(radix, radix_settings, setting_name);

// One node below the root gets a child for each digit, and loses them again.
TYPED_TEST(radix, a_node_grows_through_all_kinds_and_shrinks_again) {
  using node_kinds = typename TestFixture::kinds;
  constexpr std::size_t values = TestFixture::digits::values;
  constexpr std::uint64_t path = std::uint64_t{7} << 56;
  std::size_t kind = 0;
  for (std::size_t n = 0; n < values; ++n) {
    this->insert(path + n * 11 % values);
    if (n == 0) continue;
    if (kind == 0 || n == node_kinds::capacity(static_cast<unsigned>(kind))) ++kind;
    ASSERT_EQ(this->nodes(), this->one_of(static_cast<unsigned>(kind))) << n;
    this->expect_sound();
  }
  EXPECT_EQ(kind, node_kinds::largest);
  for (std::size_t n = 0; n + 2 < values; ++n) {
    this->erase(path + n * 5 % values);
    this->expect_sound();
  }
  this->sweep();
  EXPECT_EQ(this->nodes(), this->one_of(node_kinds::smallest));
  this->erase(this->model_.begin()->first);
  this->sweep();
  EXPECT_TRUE(this->nodes().empty()) << "the last entry is in the root's slot";
  this->expect_sound();
}

// For each depth: a key leaves a path there that skips all digits, and is erased again.
TYPED_TEST(radix, a_path_is_split_and_merged_at_every_depth) {
  using key_digits = typename TestFixture::digits;
  constexpr std::uint64_t path = 0x0123456789abcdefU;
  this->insert(path);
  this->insert(path ^ 1);
  ASSERT_EQ(this->nodes(), this->one_of(1));
  for (unsigned depth = 1; depth + 1 < key_digits::per_key; ++depth) {
    const std::uint64_t other = path ^ (std::uint64_t{1} << (64 - key_digits::bits * (depth + 1)));
    this->insert(other);
    ASSERT_EQ(this->nodes()[1], 2U) << depth;
    this->expect_sound();
    this->erase(other);
    this->sweep();
    ASSERT_EQ(this->nodes(), this->one_of(1)) << depth;
    this->expect_sound();
  }
  // All of them at a time, from below and from above.
  for (const bool from_below : {true, false}) {
    for (unsigned n = 1; n + 1 < key_digits::per_key; ++n) {
      const unsigned depth = from_below ? key_digits::per_key - 1 - n : n;
      this->insert(path ^ (std::uint64_t{1} << (64 - key_digits::bits * (depth + 1))));
      this->expect_sound();
    }
    EXPECT_EQ(this->index_.stats().depth, key_digits::per_key);
    for (unsigned depth = 1; depth + 1 < key_digits::per_key; ++depth) {
      this->erase(path ^ (std::uint64_t{1} << (64 - key_digits::bits * (depth + 1))));
      this->expect_sound();
    }
    this->sweep();
    EXPECT_EQ(this->nodes(), this->one_of(1));
  }
}

TYPED_TEST(radix, an_emptied_tree_holds_a_root_alone) {
  random source(1);
  for (const key_set set : {key_set::anywhere, key_set::sequential, key_set::dense}) {
    for (const std::uint64_t key : make_keys(set, 5000, source)) this->insert(key);
    EXPECT_GT(this->index_.stats().nodes, 1U);
    while (!this->model_.empty()) this->erase(this->model_.begin()->first);
    this->sweep();
    EXPECT_TRUE(this->nodes().empty());
    this->expect_sound();
  }
}

TYPED_TEST(radix, scans_begin_anywhere_on_a_path) {
  using key_digits = typename TestFixture::digits;
  constexpr std::uint64_t path = 0x5555555555555555U;
  for (unsigned depth = 0; depth < key_digits::per_key; ++depth)
    for (const std::uint64_t way : {1U, 2U}) {
      const std::uint64_t step = way << (64 - key_digits::bits * (depth + 1));
      this->insert(path + step);
      this->insert(path - step);
    }
  std::vector<indexes::entry> out(100);
  for (const auto& [key, value] : this->model_)
    for (const std::uint64_t from : {key - 1, key, key + 1}) {
      const std::size_t count = this->index_.scan(from, out);
      auto expected = this->model_.lower_bound(from);
      for (std::size_t i = 0; i < count; ++i, ++expected) {
        ASSERT_NE(expected, this->model_.end());
        ASSERT_EQ(out[i].key, expected->first);
        ASSERT_EQ(out[i].value, expected->second);
      }
      ASSERT_EQ(expected, this->model_.end());
    }
}

template <class Kind>
class radix_under_readers : public testing::Test {};
TYPED_TEST_SUITE(radix_under_readers, radix_kinds, setting_name);

// Nodes are replaced under readers: growth, splits, merges and shrinking of the same few nodes.
TYPED_TEST(radix_under_readers, find_the_keys_that_stay_while_nodes_are_replaced) {
  using index_type = typename TypeParam::template index<media::dram>;
  const watchdog hang(std::chrono::seconds(240), replay_command(1));
  media::dram memory;
  auto index = index_type::open(memory);
  constexpr std::uint64_t stay = 8;  // one in so many
  const auto key_of = [](std::uint64_t n) { return (n % 2 << 40) + n * 0x0101; };
  for (std::uint64_t n = 0; n < 512; n += stay) ASSERT_EQ(index.insert(key_of(n), n), outcome::inserted);
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> wrong{0};
  const auto reader = [&] {
    std::vector<indexes::entry> out(600);
    while (!done) {
      for (std::uint64_t n = 0; n < 512; n += stay) wrong += index.find(key_of(n)) != n;
      std::uint64_t stayed = 0;
      const std::size_t count = index.scan(0, out);
      for (std::size_t i = 0; i < count; ++i) {
        stayed += out[i].value % stay == 0;
        wrong += key_of(out[i].value) != out[i].key || (i > 0 && out[i].key <= out[i - 1].key);
      }
      wrong += stayed != 512 / stay;
    }
  };
  std::thread first(reader);
  std::thread second([&] {
    for (int round = 0; round < 300; ++round) {
      for (std::uint64_t n = 1; n < 512; ++n)
        if (n % stay != 0 && n % 2 == 0) wrong += index.insert(key_of(n), n) != outcome::inserted;
      for (std::uint64_t n = 1; n < 512; ++n)
        if (n % stay != 0 && n % 2 == 0) wrong += index.erase(key_of(n)) != outcome::erased;
    }
  });
  for (int round = 0; round < 300; ++round) {
    for (std::uint64_t n = 1; n < 512; n += 2)
      if (n % stay != 0) wrong += index.insert(key_of(n), n) != outcome::inserted;
    for (std::uint64_t n = 1; n < 512; n += 2)
      if (n % stay != 0) wrong += index.erase(key_of(n)) != outcome::erased;
  }
  second.join();
  done = true;
  first.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_TRUE(index.check().ok());
  EXPECT_EQ(index.size(), 512 / stay);
}

// A pool with a thousand keys, and its words.
template <class Setting>
class radix_pool : public testing::Test {
 protected:
  using index_type = typename Setting::index;
  using layout = typename layout_of<index_type>::type;
  using kinds = typename layout::kinds;

  void SetUp() override {
    auto index = index_type::open(pool_);
    for (std::uint64_t n = 0; n < 1000; ++n) {
      const std::uint64_t key = n % 10 << 60 | n * 0x10001;
      ASSERT_EQ(index.insert(key, n), outcome::inserted);
      model_[key] = n;
    }
  }

  [[nodiscard]] std::atomic<std::uint64_t>& root_word() {
    return *pool_.named_root(layout::layout_name, layout::layout_name, layout::layout_version).word;
  }
  [[nodiscard]] parts::tree_head& head() {
    return parts::head_at(pool_, media::pointer<parts::tree_head>(root_word().load()));
  }
  // The nodes of the tree, from the root.
  [[nodiscard]] std::vector<parts::walked_node> nodes() {
    std::vector<parts::walked_node> result;
    parts::walk<kinds>(
        pool_, parts::root_at<kinds>(pool_, head()), [&](const parts::walked_node& at) { result.push_back(at); },
        [](std::uint64_t, std::uint64_t) {});
    return result;
  }
  // The slot of the root that leads to the second node.
  [[nodiscard]] parts::slot& first_link() {
    auto& root = static_cast<parts::direct_node<typename kinds::digits>&>(*nodes()[0].n);
    for (parts::slot& s : root.slots)
      if (s.load().is_link()) return s;
    throw error("the root has no link", "");
  }

  void expect_refused() { EXPECT_THROW(static_cast<void>(index_type::open(pool_)), error); }
  // The entries of a salvage, which are some of those that were there, and its message.
  std::string salvage(contents& found) {
    found.clear();
    try {
      index_type::salvage(pool_, layout::layout_name, [&](std::uint64_t key, std::uint64_t value) {
        EXPECT_TRUE(model_.contains(key) && model_[key] == value) << key;
        EXPECT_TRUE(found.emplace(key, value).second) << key;
      });
    } catch (const error& e) {
      return e.what();
    }
    return "";
  }

  temporary_folder folder_;
  media::pmem pool_{folder_.file("pool"), {.create_bytes = 32 << 20, .huge_pages = false}};
  contents model_;
};

using pool_settings =
    testing::Types<setting<kind<indexes::wort>, media::pmem>, setting<kind<indexes::woart>, media::pmem>>;
TYPED_TEST_SUITE(radix_pool, pool_settings, setting_name);

TYPED_TEST(radix_pool, a_sound_one_is_salvaged_whole) {
  contents found;
  EXPECT_EQ(this->salvage(found), "");
  EXPECT_EQ(found, this->model_);
}

TYPED_TEST(radix_pool, a_damaged_head_root_or_limbo_is_refused) {
  const auto with = [&](std::atomic<std::uint64_t>& word, std::uint64_t damaged) {
    const std::uint64_t before = word.exchange(damaged);
    this->expect_refused();
    word.store(before);
    const auto again = TypeParam::index::open(this->pool_);
    EXPECT_EQ(again.size(), this->model_.size());
  };
  for (const std::uint64_t damaged : {std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 40}) {
    with(this->root_word(), damaged);
    with(this->head().root, damaged);
    with(this->head().limbo.waiting[5], damaged);
    with(reinterpret_cast<std::atomic<std::uint64_t>&>(this->head().limbo.next), damaged);
    with(this->nodes()[0].n->path_and_depth, damaged);
  }
}

TYPED_TEST(radix_pool, a_damaged_limbo_is_reported) {
  const auto index = TypeParam::index::open(this->pool_);
  auto& next = reinterpret_cast<std::atomic<std::uint64_t>&>(this->head().limbo.next);
  EXPECT_TRUE(index.check().ok());
  for (const std::uint64_t damaged : {std::uint64_t{1}, ~std::uint64_t{0}, std::uint64_t{1} << 40}) {
    next.store(damaged);
    const indexes::check_report report = index.check();
    ASSERT_EQ(report.violations.size(), 1U);
    EXPECT_TRUE(report.violations.front().starts_with("B1: ")) << report.violations.front();
    EXPECT_EQ(report.entries, this->model_.size());
  }
  next.store(0);
}

// What the link led to is lost; a search ends with an error, or without an entry; the others are found.
TYPED_TEST(radix_pool, a_damaged_link_costs_the_entries_below) {
  parts::slot& link = this->first_link();
  const std::uint64_t before = link.word.load();
  for (const std::uint64_t damaged :
       {before ^ 1 << 20, before | 15, before | std::uint64_t{15} << 56, before ^ std::uint64_t{1} << 62,
        ~std::uint64_t{0}, before & ~std::uint64_t{15}}) {
    link.word.store(damaged);
    auto index = TypeParam::index::open(this->pool_);
    EXPECT_FALSE(index.check().ok()) << std::hex << damaged;
    std::size_t found_by_search = 0;
    for (const auto& [key, value] : this->model_) {
      try {
        if (const auto found = index.find(key)) {
          EXPECT_EQ(found, value);
          ++found_by_search;
        }
      } catch (const error&) {
      }
    }
    EXPECT_GE(found_by_search, this->model_.size() / 2);
    contents found;
    EXPECT_NE(this->salvage(found), "");
    EXPECT_GE(found.size(), found_by_search);
    EXPECT_LT(found.size(), this->model_.size());
  }
  link.word.store(before);
}

TYPED_TEST(radix_pool, a_damaged_header_costs_no_entry) {
  for (const parts::walked_node& at : this->nodes()) {
    if (at.level == 0) continue;
    const std::uint64_t before = at.n->path_and_depth.exchange(0x1234567890abcdefU);
    {
      auto index = TypeParam::index::open(this->pool_);
      EXPECT_FALSE(index.check().ok());
      for (const auto& [key, value] : this->model_) EXPECT_EQ(index.find(key), value);
      // A scan has the upper bits of its keys from the header.
      std::vector<indexes::entry> out(2000);
      EXPECT_THROW(static_cast<void>(index.scan(0, out)), error);
    }
    contents found;
    EXPECT_NE(this->salvage(found), "");
    EXPECT_EQ(found, this->model_);
    at.n->path_and_depth.store(before);
  }
}

// A byte of an index that is no slot's, and a slot with the word of another node: the check sees it. A salvage returns
// the entries that the index does not lead to.
TYPED_TEST(radix_pool, a_damaged_index_costs_no_entry) {
  using node = indexes::detail::woart::indexed_node<typename TestFixture::kinds::digits>;
  constexpr unsigned kind = 3;
  if (TestFixture::kinds::largest <= kind) GTEST_SKIP() << "no node has an index";
  {
    auto index = TypeParam::index::open(this->pool_);
    for (std::uint64_t n = 0; n < 30; ++n) {
      const std::uint64_t key = std::uint64_t{0xabcdef} << 40 | n << 8;
      ASSERT_EQ(index.insert(key, n), outcome::inserted);
      this->model_[key] = n;
    }
  }
  std::size_t seen = 0;
  for (const parts::walked_node& at : this->nodes()) {
    if (at.kind != kind) continue;
    auto& n = static_cast<node&>(*at.n);
    for (auto& word : n.index) {
      if (word == 0) continue;
      const std::uint64_t before = word.exchange(~std::uint64_t{0});
      ++seen;
      EXPECT_FALSE(TypeParam::index::open(this->pool_).check().ok());
      contents found;
      EXPECT_NE(this->salvage(found), "");
      EXPECT_EQ(found, this->model_);
      word = before;
    }
    // Below another node's path.
    auto& slot = n.slots[0].word;
    const std::uint64_t before = slot.exchange(slot ^ std::uint64_t{1} << 59 ^ std::uint64_t{0xff} << 48);
    EXPECT_FALSE(TypeParam::index::open(this->pool_).check().ok());
    slot = before;
  }
  EXPECT_GE(seen, 4U);
  EXPECT_TRUE(TypeParam::index::open(this->pool_).check().ok());
}

// Random words anywhere in the nodes: no operation crashes or loops, and no entry has a wrong key.
TYPED_TEST(radix_pool, damaged_words_are_survived) {
  random source(5);
  for (int round = 0; round < 200; ++round) {
    const auto all = this->nodes();
    const parts::walked_node& at = all[source.below(all.size())];
    auto* const words = reinterpret_cast<std::atomic<std::uint64_t>*>(at.n);
    const std::size_t count = TestFixture::kinds::bytes(at.kind) / sizeof(std::uint64_t);
    auto& word = words[2 + 2 * source.below((count - 2) / 2)];  // word of a slot, or of an index
    const std::uint64_t before = word.exchange(source.next() >> source.below(64));
    {
      auto index = TypeParam::index::open(this->pool_);
      static_cast<void>(index.check());
      std::vector<indexes::entry> out(2000);
      for (const auto& [key, value] : this->model_) try {
          static_cast<void>(index.find(key));
        } catch (const error&) {
        }
      try {
        static_cast<void>(index.scan(0, out));
      } catch (const error&) {
      }
    }
    word.store(before);
  }
}

TYPED_TEST(radix_pool, nodes_that_waited_at_a_crash_are_released_by_the_next_open) {
  const auto before = this->pool_.used().allocated_bytes;
  {
    auto index = TypeParam::index::open(this->pool_);
    for (const auto& [key, value] : this->model_) ASSERT_EQ(index.erase(key), outcome::erased);
  }
  auto index = TypeParam::index::open(this->pool_);
  EXPECT_LE(index.stats().nodes, 3U);
  EXPECT_LT(this->pool_.used().allocated_bytes, before);
  for (const auto& [key, value] : this->model_) ASSERT_EQ(index.insert(key, value), outcome::inserted);
  EXPECT_EQ(compare_all(index, this->model_), "");
}

}  // namespace
}  // namespace pmlab::tests
