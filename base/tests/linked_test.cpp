// A list whose links are members of its items.
#include <pmlab/base/linked.hpp>

#include <array>
#include <cstddef>
#include <list>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

struct item {
  int number = 0;
  item* previous = nullptr;
  item* next = nullptr;
};
using items = linked<&item::previous, &item::next>;

// Forwards, after a look at each link back.
std::vector<int> numbers_of(const item* first) {
  std::vector<int> numbers;
  const item* previous = nullptr;
  for (const item* i = first; i != nullptr; previous = i, i = i->next) {
    EXPECT_EQ(i->previous, previous);
    numbers.push_back(i->number);
  }
  return numbers;
}

TEST(linked, items_enter_in_front_and_leave_from_anywhere) {
  std::array<item, 5> all;
  for (std::size_t i = 0; i < all.size(); ++i) all[i].number = static_cast<int>(i);
  item* first = nullptr;
  for (item& i : all) items::push(first, i);
  EXPECT_EQ(numbers_of(first), (std::vector{4, 3, 2, 1, 0}));
  items::remove(first, all[2]);  // in the middle
  EXPECT_EQ(numbers_of(first), (std::vector{4, 3, 1, 0}));
  items::remove(first, all[4]);  // the first
  EXPECT_EQ(numbers_of(first), (std::vector{3, 1, 0}));
  items::remove(first, all[0]);  // the last
  EXPECT_EQ(numbers_of(first), (std::vector{3, 1}));
  items::push(first, all[2]);  // pushed again, with old links
  EXPECT_EQ(numbers_of(first), (std::vector{2, 3, 1}));
  for (const std::size_t i : {3U, 1U, 2U}) items::remove(first, all[i]);
  EXPECT_EQ(first, nullptr);
}

}  // namespace
}  // namespace pmlab::tests
