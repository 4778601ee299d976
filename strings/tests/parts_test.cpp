// The words that stand for strings, by themselves.
#include <pmlab/media/dram.hpp>
#include <pmlab/strings/detail/hash.hpp>
#include <pmlab/strings/detail/layer_gates.hpp>
#include <pmlab/strings/detail/layer_numbers.hpp>
#include <pmlab/strings/detail/slice.hpp>
#include <pmlab/strings/numbered.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "support/operations.hpp"

namespace pmlab::tests::parts_test {
namespace {

using strings::detail::code_of;
using strings::detail::codes_of;
using strings::detail::layer;

// All strings of up to `most` of these bytes.
std::vector<std::string> all_strings(std::string_view bytes, std::size_t most) {
  std::vector<std::string> all{""};
  for (std::size_t first = 0, length = 0; length < most; ++length) {
    const std::size_t end = all.size();
    for (; first < end; ++first)
      for (const char c : bytes) all.push_back(all[first] + c);
  }
  return all;
}

TEST(string_slices, codes_are_ordered_as_strings_and_tell_apart_what_is_shorter_than_a_slice) {
  const std::string bytes("\0\1a\xff", 4);
  for (std::size_t width = 1; width <= 4; ++width) {
    std::vector<std::string> all = all_strings(bytes, 5);
    std::sort(all.begin(), all.end());
    for (std::size_t i = 1; i < all.size(); ++i) {
      const std::uint64_t before = code_of(all[i - 1], width);
      const std::uint64_t code = code_of(all[i], width);
      ASSERT_LT(code, codes_of(width));
      const bool one_slice = all[i - 1].size() >= width && all[i].compare(0, width, all[i - 1], 0, width) == 0;
      if (one_slice) {
        ASSERT_EQ(code, before) << i << " of width " << width;
      } else {
        ASSERT_GT(code, before) << i << " of width " << width;
      }
    }
  }
}

TEST(string_slices, the_first_and_the_last_string_have_the_first_and_the_last_code) {
  for (const std::size_t width : {1U, 2U, 3U, 4U, 7U}) {
    EXPECT_EQ(code_of("", width), 0U);
    EXPECT_EQ(code_of(std::string(9, '\xff'), width), codes_of(width) - 1);
  }
}

TEST(string_slices, a_layers_words_lie_between_those_of_its_neighbours) {
  const layer root;
  const layer first{1, 4, 0};
  const layer second{2, 2, 9};
  const layer last{strings::detail::most_layers, 4, 0};
  const std::string high(9, '\xff');
  EXPECT_LT(root.word_of(high), root.last_word());
  EXPECT_LT(root.last_word(), first.word_of(""));
  EXPECT_LT(first.word_of(high), first.last_word());
  EXPECT_LT(first.last_word(), second.word_of(""));
  EXPECT_LT(second.word_of(high), second.last_word());
  EXPECT_LT(last.word_of(high), last.last_word());
}

TEST(string_slices, a_link_says_what_it_was_made_of) {
  for (const layer& l : {layer{1, 1, 0}, layer{77, 3, 12}, layer{strings::detail::most_layers, 4, 65535}}) {
    const std::uint64_t link = strings::detail::link_to(l);
    EXPECT_TRUE(strings::detail::is_layer(link));
    const layer again = strings::detail::layer_of(link);
    EXPECT_EQ(again.number, l.number);
    EXPECT_EQ(again.width, l.width);
    EXPECT_EQ(again.skip, l.skip);
  }
}

TEST(string_slices, a_whole_slice_is_known_by_its_code) {
  for (std::size_t width = 1; width <= 7; ++width)
    for (const std::string_view text :
         {std::string_view("\0\0\0\0\0\0\0", 7), std::string_view("abcdefg"),
          std::string_view("\xff\xff\xff\xff\xff\xff\xff"), std::string_view("\1\0\xff\0z\0\1", 7)}) {
      const std::string_view slice = text.substr(0, width);
      EXPECT_EQ(strings::detail::whole_slice(code_of(slice, width), width).text(), slice) << width;
    }
}

// ---- numbers of layers ----

using numbers = strings::detail::layer_numbers<media::dram>;

TEST(layer_numbers, are_given_again_when_they_came_back_the_least_first) {
  media::dram medium;
  std::atomic<std::uint64_t> end{1};
  numbers all(medium, end);
  for (std::uint64_t n = 1; n <= 600; ++n) ASSERT_EQ(all.take(), n);
  const std::uint64_t end_then = end;
  random source(1);
  std::set<std::uint64_t> back;
  for (int i = 0; i < 20000; ++i) {
    const std::uint64_t n = 1 + source.below(600);
    if (!back.contains(n)) {
      all.give_back(n);
      back.insert(n);
    } else {
      ASSERT_EQ(all.take(), *back.begin()) << i;
      back.erase(back.begin());
    }
  }
  for (std::uint64_t n = 1; n <= 600; ++n)
    if (!back.contains(n)) all.give_back(n);
  EXPECT_EQ(all.bytes(), 0U);
  for (std::uint64_t n = 1; n <= 600; ++n) ASSERT_EQ(all.take(), n);
  EXPECT_EQ(end, end_then);
}

TEST(layer_numbers, that_were_forgotten_are_found_when_they_get_short) {
  media::dram medium;
  std::atomic<std::uint64_t> end{1000};
  EXPECT_FALSE(numbers(medium, end).are_short());
  end = strings::detail::most_layers + 1;
  numbers all(medium, end);
  EXPECT_EQ(all.take(), 0U);
  ASSERT_TRUE(all.are_short());
  all.find_free({5, 1, 2, 2, 9});
  for (const std::uint64_t n : {3U, 4U, 6U, 7U, 8U, 10U, 11U}) EXPECT_EQ(all.take(), n);
}

// ---- gates of layers ----

TEST(layer_gates, a_writer_that_enters_keeps_the_layer) {
  using strings::detail::layer_gates;
  const layer_gates gates(2);
  const layer_gates::ticket first = gates.arm(1);
  EXPECT_TRUE(gates.is_armed(first, 1));
  EXPECT_EQ(gates.arm(1), layer_gates::nothing);
  EXPECT_EQ(gates.arm(3), layer_gates::later);
  EXPECT_TRUE(gates.enter(3));
  EXPECT_TRUE(gates.is_armed(first, 1));
  EXPECT_TRUE(gates.enter(1));
  EXPECT_FALSE(gates.is_armed(first, 1));
  EXPECT_FALSE(gates.shut(first));
  const layer_gates::ticket second = gates.arm(1);
  EXPECT_NE(second, first);
  EXPECT_TRUE(gates.shut(second));
  EXPECT_FALSE(gates.enter(1));
  EXPECT_TRUE(gates.enter(3));
  EXPECT_EQ(gates.arm(3), layer_gates::later);
  gates.open(3);
  EXPECT_FALSE(gates.enter(1));
  gates.open(1);
  EXPECT_TRUE(gates.enter(1));
  gates.disarm(gates.arm(3));
  EXPECT_NE(gates.arm(1), layer_gates::later);
}

TEST(string_hash, each_byte_and_the_length_change_it) {
  std::set<std::uint64_t> seen;
  for (std::size_t length = 0; length < 40; ++length) {
    std::string key(length, '\0');
    ASSERT_TRUE(seen.insert(strings::detail::hash_of(key)).second) << "zeros: " << length;
    for (std::size_t i = 0; i < length; ++i) {
      key[i] = 1;
      ASSERT_TRUE(seen.insert(strings::detail::hash_of(key)).second) << length << ", " << i;
      key[i] = 0;
    }
  }
}

// Half of the bits, give or take, whichever byte changes.
TEST(string_hash, one_bit_of_the_key_changes_half_of_the_bits) {
  for (const std::size_t length : {1U, 7U, 8U, 9U, 32U, 100U}) {
    std::size_t changed = 0;
    std::size_t tried = 0;
    for (std::size_t bit = 0; bit < 8 * length; ++bit)
      for (unsigned fill = 0; fill < 4; ++fill) {
        std::string key(length, static_cast<char>(fill * 85));
        const std::uint64_t before = strings::detail::hash_of(key);
        key[bit / 8] = static_cast<char>(key[bit / 8] ^ (1 << bit % 8));
        changed += static_cast<std::size_t>(std::popcount(before ^ strings::detail::hash_of(key)));
        ++tried;
      }
    const double mean = static_cast<double>(changed) / static_cast<double>(tried);
    EXPECT_GT(mean, 29) << length;
    EXPECT_LT(mean, 35) << length;
  }
}

TEST(string_hash, is_part_of_the_layout_and_stays) {
  EXPECT_EQ(strings::detail::hash_of(""), 14624652385007919916U);
  EXPECT_EQ(strings::detail::hash_of("persistent memory"), 2423816206727921458U);
}

TEST(varied_keys, are_in_the_order_of_their_numbers_and_name_them) {
  const strings::varied_keys keys;
  constexpr std::uint64_t greatest = ~std::uint64_t{0};
  std::string last;
  strings::key_room room;
  for (const std::uint64_t number :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{3}, std::uint64_t{10}, std::uint64_t{11},
        std::uint64_t{255}, std::uint64_t{256}, std::uint64_t{511}, std::uint64_t{512}, std::uint64_t{513},
        std::uint64_t{65536}, greatest - 1, greatest}) {
    const std::string key(keys.key_of(number, room));
    EXPECT_EQ(keys.number_of(key), number);
    if (number != 0) {
      EXPECT_LT(last, key) << number;
    }
    last = key;
  }
  EXPECT_NE(keys.number_of(std::string(keys.key_of(10, room)) + 'y'), 10U);
}

}  // namespace
}  // namespace pmlab::tests::parts_test
