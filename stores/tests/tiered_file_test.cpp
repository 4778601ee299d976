// A store on files that may only be read.
#include <pmlab/blocks/file.hpp>
#include <pmlab/stores/tiered.hpp>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>

namespace pmlab::tests::tiered_file_test {
namespace {

using store = stores::tiered<blocks::file>;

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(TieredFiles, ThatMayOnlyBeReadAreReadByTwoStoresAndStayAsTheyAre) {
  const temporary_folder folder;
  const std::string fast = folder.file("fast"), large = folder.file("large");
  for (const std::string& path : {fast, large}) blocks::create_file(path, 64 << 20);
  {
    blocks::file a(fast, {.page_cache = true}), b(large, {.page_cache = true});
    const auto db = store::open({.staging = a, .capacity = b}, {});
    db->table("t").put("key", "value");
  }
  const std::string before = bytes_of(fast) + bytes_of(large);
  const blocks::file_options reads{.page_cache = true, .read_only = true};
  {
    blocks::file a(fast, reads), b(large, reads), c(fast, reads), d(large, reads);
    const auto db = store::open({.staging = a, .capacity = b}, {.read_only = true});
    const auto beside = store::open({.staging = c, .capacity = d}, {.read_only = true});
    EXPECT_EQ(db->table("t").get("key"), "value");
    EXPECT_EQ(beside->table("t").get("key"), "value");
    EXPECT_PRED2(says, message_of([&] { db->table("t").put("key", "other"); }), "read only");
  }
  EXPECT_TRUE(bytes_of(fast) + bytes_of(large) == before);
}

}  // namespace
}  // namespace pmlab::tests::tiered_file_test
