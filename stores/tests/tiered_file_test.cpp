// Stores on files: that may only be read; and of other blocks than the usual ones.
#include <pmlab/blocks/file.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>
#include <pmlab/stores/tiered.hpp>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

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

// The size of the blocks is the store's: `use(drive)` opens it, and makes it the first time.
template <class Use>
void expect_blocks_of_the_store(const std::string& path, const std::string& refusal, Use&& use) {
  blocks::create_file(path, 8 << 20);
  std::filesystem::resize_file(path, (8 << 20) - 1024);  // no multiple of the usual blocks
  {
    blocks::file drive(path, {.block_bytes = 512, .page_cache = true});
    use(drive);
  }
  {
    blocks::file drive(path, {.page_cache = true});
    EXPECT_EQ(drive.shape().block_bytes, 512U);
    use(drive);
  }
  blocks::file drive(path, {.block_bytes = 1024, .page_cache = true, .read_only = true});
  EXPECT_PRED2(says, message_of([&] { use(drive); }), refusal);
}

TEST(StoreFiles, HaveTheBlocksThatTheStoreWasMadeWith) {
  const temporary_folder folder;
  expect_blocks_of_the_store(folder.file("chunks"), "of 512 bytes", [](blocks::file& drive) {
    auto chunks = stores::chunk_store<stores::records_on_blocks, blocks::file>::open(drive, {.chunk_bytes = 1 << 16});
    std::vector<std::byte> got(512);
    chunks.volume("v", {.bytes = 1 << 20}).read(0, got);
  });
  media::dram memory;
  expect_blocks_of_the_store(folder.file("pairs"), "of 512 bytes", [&](blocks::file& drive) {
    using pairs = stores::kv_device<media::dram, blocks::file>;
    auto device =
        pairs::open(memory, drive, {.superblock_bytes = 1 << 17, .buffer_bytes = 1 << 20, .largest_value = 1 << 16});
    static_cast<void>(device.put("a key", {}));
  });
  expect_blocks_of_the_store(folder.file("tables"), "was made with 512", [](blocks::file& drive) {
    const auto db =
        store::open({.capacity = drive},
                    {.place = stores::placement::capacity_only, .segment_bytes = 1 << 16, .manifest_bytes = 1 << 14});
    db->table("t").put("key", "value");
  });
  // One without a store has the usual ones.
  const std::string none = folder.file("none");
  blocks::create_file(none, 8 << 20);
  EXPECT_EQ(blocks::file(none, {.page_cache = true}).shape().block_bytes, 4096U);
}

}  // namespace
}  // namespace pmlab::tests::tiered_file_test
