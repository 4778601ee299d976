// Indexes of several roots: what is refused makes none of them.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/strings/string_index.hpp>
#include <pmlab/strings/typed_index.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pmlab::tests::roots_test {
namespace {

using media::pmem;
constexpr std::uint64_t pool_bytes = std::uint64_t{32} << 20;

struct three_words {
  std::array<std::uint64_t, 3> words;
};

struct kind {
  const char* what;
  std::size_t roots;
  void (*open)(pmem&);
};

template <class Index>
void open_index(pmem& pool) {
  static_cast<void>(Index::open(pool, "n"));
}

constexpr std::array kinds{
    kind{"strings", 2, open_index<strings::string_index<pmem, indexes::cceh<pmem>>>},
    kind{"typed words", 2, open_index<strings::typed_index<std::uint64_t, double, pmem, indexes::fast_fair<pmem>>>},
    kind{"typed blocks", 3, open_index<strings::typed_index<std::uint64_t, three_words, pmem, indexes::cceh<pmem>>>}};

TEST(roots_of_an_index, are_all_made_or_none) {
  for (const kind& k : kinds) {
    for (std::size_t places = 0; places <= k.roots; ++places) {
      SCOPED_TRACE(std::string(k.what) + ", places: " + std::to_string(places));
      const temporary_folder folder;
      pmem pool(folder.file("pool"), {.create_bytes = pool_bytes});
      const std::size_t others = media::root_limit - places;
      for (std::size_t i = 0; i < others; ++i) static_cast<void>(pool.named_root(std::to_string(i), "other", 1));
      const std::string said = message_of([&] { k.open(pool); });
      EXPECT_EQ(said.find("no room for index 'n") != std::string::npos, places < k.roots) << said;
      EXPECT_EQ(pool.roots().size(), places < k.roots ? others : media::root_limit);
    }
  }
}

TEST(roots_of_an_index, are_not_made_if_another_layout_has_the_name_of_one) {
  for (const kind& k : kinds) {
    SCOPED_TRACE(k.what);
    const temporary_folder folder;
    pmem pool(folder.file("pool"), {.create_bytes = pool_bytes});
    static_cast<void>(pool.named_root(k.what == kinds[0].what ? "n:s" : "n:t", "other", 1));
    EXPECT_NE(message_of([&] { k.open(pool); }).find("is an index of layout other"), std::string::npos);
    EXPECT_EQ(pool.roots().size(), 1U);
  }
}

}  // namespace
}  // namespace pmlab::tests::roots_test
