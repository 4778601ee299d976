// The tree of strings over woart: its nodes, the cost of its operations, and what is damaged.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/woart.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/wrapper.hpp>
#include <pmlab/strings/detail/radix/node.hpp>
#include <pmlab/strings/roots.hpp>
#include <pmlab/strings/string_index.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "support/operations.hpp"

namespace pmlab::tests::tree_test {
namespace {

using indexes::outcome;
using namespace strings::detail::radix;

template <class Medium>
using tree_index = strings::string_index<Medium, indexes::woart<Medium>>;

// ---- slots and nodes ----

TEST(tree_of_strings, a_slot_has_what_was_put_into_it) {
  for (const std::uint64_t place : {std::uint64_t{16}, (std::uint64_t{1} << 48) - 16})
    for (const std::size_t digit : {std::size_t{0}, std::size_t{1}, digit_values - 1}) {
      const slot_word record = slot_word::record(place, digit);
      EXPECT_FALSE(record.is_link());
      EXPECT_FALSE(record.is_empty());
      EXPECT_EQ(std::tuple(record.place(), record.digit()), std::tuple(place, digit));
      for (const std::size_t skip : {1U, 127U, 128U, 65536U}) {
        const slot_word link = slot_word::link(place, kinds::largest, digit, skip);
        EXPECT_TRUE(link.is_link());
        EXPECT_EQ(std::tuple(link.place(), link.kind(), link.digit(), link.skip()),
                  std::tuple(place, kinds::largest, digit, skip > 127 ? 0 : skip));
        EXPECT_EQ(link.moved_to(7, 3), slot_word::link(place, kinds::largest, 7, 3));
      }
      EXPECT_EQ(record.moved_to(9, 3), slot_word::record(place, 9));
    }
  EXPECT_TRUE(slot_word().is_empty());
  EXPECT_FALSE(slot_word().is_link());
}

TEST(tree_of_strings, digits_are_in_the_order_of_keys) {
  EXPECT_EQ(digit_at("", 0), 0U);
  EXPECT_EQ(digit_at(std::string_view("\0", 1), 0), 1U);
  EXPECT_EQ(digit_at("\xff", 0), digit_values - 1);
  EXPECT_EQ(digit_at("a", 1), 0U);
}

TEST(tree_of_strings, a_header_knows_the_bytes_before_it) {
  header h;
  h.set_path("0123456789abc", 12);
  EXPECT_EQ(h.depth(), 12U);
  EXPECT_FALSE(h.is_gone());
  EXPECT_TRUE(h.follows("----456789abX", 12, 8));
  EXPECT_FALSE(h.follows("----X56789ab", 12, 8));
  EXPECT_TRUE(h.follows("----X56789ab", 12, 7));
  EXPECT_FALSE(h.follows("0123456789aX", 12, 1));
  EXPECT_FALSE(h.follows("0123456789a", 12, 1)) << "the key ends before the node";
  EXPECT_TRUE(h.follows("", 12, 0));
  h.set_path("abc", 2);
  EXPECT_TRUE(h.follows("abX", 2, 2));
  EXPECT_FALSE(h.follows("Xb", 2, 2));
  h.depth_and_gone = header::gone_at(2);
  EXPECT_TRUE(h.is_gone());
  EXPECT_EQ(h.depth(), 2U);
}

// Every kind holds its capacity, finds each digit and no other, and gives them in ascending order.
TEST(tree_of_strings, nodes_hold_what_is_added) {
  const auto nothing = [](const auto&) {};
  const auto store = [](std::atomic<std::uint64_t>& word, std::uint64_t value) { word = value; };
  for (unsigned kind = kinds::smallest; kind <= kinds::largest; ++kind) {
    random source(kind);
    const std::unique_ptr<std::byte, void (*)(void*)> room(
        static_cast<std::byte*>(std::aligned_alloc(64, (kinds::bytes(kind) + 63) / 64 * 64)), std::free);
    header& n = kinds::make(room.get(), kind);
    std::map<std::size_t, slot_word> model;
    for (int i = 0; i < 5000; ++i) {
      const std::size_t digit = source.below(digit_values);
      const bool there = model.contains(digit);
      kinds::as_kind(n, kind, [&](auto& node) {
        if (there && source.below(2) == 0) {
          node.slot_of(digit) = 0;
          model.erase(digit);
        } else if (!there) {
          const slot_word word = slot_word::record(16 * (1 + source.below(1000)), digit);
          ASSERT_EQ(node.add(word, store), model.size() < kinds::capacity(kind));
          if (model.size() < kinds::capacity(kind)) model.emplace(digit, word);
        }
        const std::size_t asked = source.below(digit_values);
        const auto found = model.find(asked);
        ASSERT_EQ(node.of_digit(asked, nothing), found == model.end() ? slot_word() : found->second);
        const auto next = model.lower_bound(asked);
        ASSERT_EQ(node.from_digit(asked, nothing), next == model.end() ? slot_word() : next->second);
      });
    }
  }
  EXPECT_EQ(kinds::fitting(kinds::largest, 44), 3U);
  EXPECT_EQ(kinds::fitting(kinds::largest, 45), 0U) << "a slot stays free";
  EXPECT_EQ(kinds::fitting(kinds::smallest, 2), 0U);
}

// ---- the tree ----

std::uint64_t nodes_of(const tree_index<media::dram>& index) { return index.stats().nodes; }

// Nodes become larger with every child, and smaller again; a last child takes the place of its node.
TEST(tree_of_strings, nodes_follow_the_number_of_their_children) {
  for (const std::string beginning : {"", "p", "a beginning of more than eight bytes"}) {
    media::dram medium;
    auto index = tree_index<media::dram>::open(medium, "t");
    const auto key_of = [&](std::size_t i) {
      return beginning + "/" + (i == 0 ? std::string() : std::string(1, static_cast<char>(i - 1)));
    };
    for (std::size_t i = 0; i < digit_values; ++i) {
      ASSERT_EQ(index.insert(key_of(i), i), outcome::inserted);
      ASSERT_TRUE(index.check().ok()) << index.check().violations.front();
      ASSERT_EQ(nodes_of(index), i == 0 ? 1U : 2U);
    }
    for (std::size_t i = 0; i < digit_values; ++i) ASSERT_EQ(index.find(key_of(i)), i);
    const std::uint64_t most = index.stats().medium_bytes;
    for (std::size_t i = digit_values; i-- > 1;) {
      ASSERT_EQ(index.erase(key_of(i)), outcome::erased);
      ASSERT_EQ(index.find(key_of(i)), std::nullopt);
      ASSERT_EQ(index.find(key_of(i - 1)), i - 1);
      ASSERT_TRUE(index.check().ok()) << index.check().violations.front();
      ASSERT_EQ(nodes_of(index), i == 1 ? 1U : 2U);
    }
    EXPECT_LT(index.stats().medium_bytes + kinds::bytes(kinds::largest), most);
    EXPECT_EQ(index.erase(key_of(0)), outcome::erased);
    EXPECT_EQ(index.size(), 0U);
  }
}

// A key leaves its way at every position of the bytes that a node skips, and behind them.
TEST(tree_of_strings, keys_leave_the_way_everywhere) {
  for (const std::size_t skipped : {1U, 7U, 8U, 9U, 20U, 126U, 127U, 128U, 300U}) {
    media::dram medium;
    auto index = tree_index<media::dram>::open(medium, "t");
    const std::string way = "x" + std::string(skipped, 's');
    std::map<std::string, std::uint64_t> model{{way + "a", 1}, {way + "b", 2}};
    for (const auto& [key, value] : model) ASSERT_EQ(index.insert(key, value), outcome::inserted);
    std::vector<std::string> others;
    for (std::size_t at = 0; at <= way.size(); ++at) {
      // Behind the way, with a digit that the node has not, and has.
      for (const char* const end : {"c", "a"})
        others.push_back(way.substr(0, at) + "~" + way.substr(std::min(at + 1, way.size())) + end);
      others.push_back(way.substr(0, at));
    }
    for (const std::string& key : others) {
      ASSERT_EQ(index.find(key), std::nullopt);
      ASSERT_EQ(index.erase(key), outcome::absent);
      ASSERT_EQ(index.update(key, 0), outcome::absent);
      ASSERT_EQ(index.insert(key, key.size()), outcome::inserted) << skipped;
      model.emplace(key, key.size());
      ASSERT_TRUE(index.check().ok()) << index.check().violations.front();
    }
    for (const auto& from : model) {
      auto next = model.find(from.first);
      index.scan(from.first + '\0', 5, [&](std::string_view key, std::uint64_t value) {
        ASSERT_NE(++next, model.end());
        ASSERT_EQ(key, next->first);
        ASSERT_EQ(value, next->second);
      });
    }
    for (const std::string& key : others) {
      ASSERT_EQ(index.erase(key), outcome::erased);
      ASSERT_TRUE(index.check().ok()) << index.check().violations.front();
    }
    EXPECT_EQ(nodes_of(index), 2U) << "as before";
    EXPECT_EQ(index.find(way + "a"), 1U);
    EXPECT_EQ(index.find(way + "b"), 2U);
  }
}

// ---- cost ----

struct cost {
  double lines_read;
  double flushes;
  double fences;
};
template <class Operation>
cost cost_of(media::counted<media::dram>& medium, std::size_t operations, Operation&& operation) {
  medium.reset();
  for (std::size_t i = 0; i < operations; ++i) {
    medium.begin_operation();
    operation(i);
    medium.end_operation();
  }
  const auto total = medium.total();
  const auto each = static_cast<double>(operations);
  return {static_cast<double>(total.lines_read) / each, static_cast<double>(total.lines_flushed) / each,
          static_cast<double>(total.fences) / each};
}

// 20,000 random keys of 32 bytes: a root, 256 nodes of 257 slots or 45, and a few small ones.
TEST(tree_of_strings, counts_what_operations_read_and_flush) {
  media::counted<media::dram> medium;
  auto index = tree_index<media::counted<media::dram>>::open(medium, "t");
  random source(1);
  std::vector<std::string> keys(20000);
  for (std::string& key : keys)
    while (key.size() < 32) key += static_cast<char>(source.next());
  const cost insert = cost_of(medium, keys.size(), [&](std::size_t i) { index.insert(keys[i], i); });
  const cost find = cost_of(medium, keys.size(), [&](std::size_t i) { EXPECT_EQ(index.find(keys[i]), i); });
  const cost update = cost_of(medium, keys.size(), [&](std::size_t i) { index.update(keys[i], i); });
  const cost absent = cost_of(medium, keys.size(), [&](std::size_t i) { EXPECT_FALSE(index.find(keys[i] + "?")); });
  // A line of the root, one or two of the node below, one or two of another one for a third of the keys, and the
  // record.
  EXPECT_LE(find.lines_read, 4.0);
  EXPECT_GE(find.lines_read, 3.0);
  EXPECT_NEAR(absent.lines_read, find.lines_read, 0.01);
  EXPECT_EQ(update.flushes, 1.0);
  EXPECT_EQ(update.fences, 1.0);
  // The record, and what a publication needs; new nodes are rare.
  EXPECT_LT(insert.fences, 3.0) << insert.fences;
}

// ---- damage ----

class damaged_tree : public testing::Test {
 protected:
  damaged_tree() {
    for (int i = 0; i < 2000; ++i) index_.insert("key " + std::to_string(i * 7919 % 2000), 1);
    const media::root state = medium_.named_root("t:s", strings::layout_of(strings::tree_words, "words"), 1);
    const auto* const words =
        medium_.resolve(media::pointer<std::atomic<std::uint64_t>>(state.word->load(std::memory_order_relaxed)));
    constexpr std::size_t tree_word = 2;
    root_ = medium_.resolve(media::pointer<direct_node>(words[tree_word].load(std::memory_order_relaxed)));
    top_ = &root_->slots[digit_at("k", 0)];
    link_ = load(*top_);
  }

  [[nodiscard]] header& below() { return *medium_.resolve(media::pointer<header>(link_.place())); }
  // Operations may give wrong answers or throw pmlab::error, but they end.
  void use() {
    const auto all = [&] {
      index_.find("key 17");
      index_.find("other");
      index_.scan("key", 100, [](std::string_view, std::uint64_t) {});
      index_.insert("key x", 1);
      index_.erase("key 18");
    };
    try {
      all();
    } catch (const error& e) {
      EXPECT_NE(std::string_view(e.what()).find("radix tree of strings is damaged"), std::string_view::npos);
    }
  }
  [[nodiscard]] std::string violation() {
    const indexes::check_report report = index_.check();
    return report.ok() ? std::string() : report.violations.front();
  }

  media::dram medium_;
  tree_index<media::dram> index_ = tree_index<media::dram>::open(medium_, "t");
  direct_node* root_ = nullptr;
  slot* top_ = nullptr;
  slot_word link_;
};

TEST_F(damaged_tree, is_sound_at_first) {
  ASSERT_TRUE(link_.is_link());
  EXPECT_EQ(violation(), "");
}

TEST_F(damaged_tree, a_link_of_no_kind_is_reported) {
  *top_ = link_.word() | 15;
  EXPECT_NE(violation().find("a link"), std::string::npos) << violation();
  EXPECT_THROW(index_.find("key 17"), error);
  use();
  *top_ = link_.word();
}

TEST_F(damaged_tree, another_depth_is_reported) {
  *top_ = slot_word::link(link_.place(), link_.kind(), link_.digit(), link_.skip() + 1).word();
  EXPECT_NE(violation().find("T1"), std::string::npos) << violation();
  use();
  *top_ = link_.word();
}

TEST_F(damaged_tree, another_digit_is_reported) {
  *top_ = link_.moved_to(link_.digit() + 1, link_.skip()).word();
  EXPECT_NE(violation().find("T2"), std::string::npos) << violation();
  use();
  *top_ = link_.word();
}

TEST_F(damaged_tree, other_bytes_before_a_node_are_reported) {
  below().before.store(0, std::memory_order_relaxed);
  EXPECT_NE(violation().find("T1"), std::string::npos) << violation();
  use();
}

TEST_F(damaged_tree, an_unlinked_node_that_is_linked_is_reported) {
  below().depth_and_gone.store(header::gone_at(below().depth()), std::memory_order_relaxed);
  EXPECT_NE(violation().find("T4"), std::string::npos) << violation();
  EXPECT_EQ(index_.find("key 17"), 1U);
}

TEST_F(damaged_tree, a_node_that_two_slots_lead_to_is_reported) {
  root_->slots[digit_at("l", 0)] = link_.moved_to(digit_at("l", 0), link_.skip()).word();
  EXPECT_NE(violation(), "");
  use();
  root_->slots[digit_at("l", 0)] = 0;
}

TEST_F(damaged_tree, a_circle_ends) {
  // The node leads to itself, one byte further each time.
  kinds::as_kind(below(), link_.kind(), [&](auto& n) {
    for (slot& s : n.slots)
      if (!load(s).is_empty()) s = slot_word::link(link_.place(), link_.kind(), load(s).digit(), 1).word();
  });
  EXPECT_NE(violation(), "");
  EXPECT_EQ(index_.find("key " + std::string(1000, '1')), std::nullopt);
  EXPECT_THROW(index_.scan("key", 1, [](std::string_view, std::uint64_t) {}), error);
  use();
  *top_ = 0;
}

// DRAM that calls `on_read` before each read that an index announces.
class watched_dram : public media::wrapper<media::dram> {
 public:
  static constexpr media::optional_parts parts{};
  watched_dram() : wrapper(std::in_place) {}

  class publication : public media::dram::publication {
   public:
    explicit publication(watched_dram& medium) noexcept : media::dram::publication(medium.inner()) {}
  };

  void flush(const void* /*start*/, std::size_t /*bytes*/) noexcept {}
  void fence() noexcept {}
  void copy(void* target, const void* source, std::size_t bytes) noexcept { inner().copy(target, source, bytes); }
  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {
    if (on_read) on_read();
  }

  std::function<void()> on_read;
};

// It was taken for a damaged one without children.
TEST(tree_of_strings, a_node_whose_children_are_replaced_by_others_while_it_is_read_is_sound) {
  const std::string path = "a way of more than eight bytes ";
  const auto key = [&](int last) { return path + static_cast<char>(last); };
  constexpr int children = 20;
  // The children change before each of the reads of a scan in turn.
  bool changed = true;
  for (int at = 1; changed; ++at) {
    ASSERT_LT(at, 1000);
    watched_dram medium;
    auto index = tree_index<watched_dram>::open(medium, "t");
    for (int i = 0; i < children; ++i) ASSERT_EQ(index.insert(key(100 + i), 1), outcome::inserted);
    int reads = 0;
    changed = false;
    medium.on_read = [&] {
      if (changed || ++reads != at) return;
      changed = true;
      for (int i = 0; i < children; ++i) ASSERT_EQ(index.insert(key(1 + i), 1), outcome::inserted);
      for (int i = 0; i < children; ++i) ASSERT_EQ(index.erase(key(100 + i)), outcome::erased);
    };
    ASSERT_NO_THROW(index.scan(key(127), 1, [](std::string_view, std::uint64_t) {})) << "before read " << at;
    medium.on_read = nullptr;
    EXPECT_TRUE(index.check().ok());
  }
}

}  // namespace
}  // namespace pmlab::tests::tree_test
