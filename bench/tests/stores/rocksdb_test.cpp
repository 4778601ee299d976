// RocksDB works on a block device: its own checks of its files are on, and what it has synced is there after reopening.
#include "bench/stores/peers/rocksdb_files.hpp"

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/memory.hpp>

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <map>
#include <memory>
#include <string>
#include <utility>

namespace pmlab::tests {
namespace {

using counted_drive = blocks::counted<blocks::memory>;

constexpr blocks::geometry drive{.blocks = 65536, .block_bytes = 4096, .atomic_bytes = 0, .volatile_cache = true};

[[nodiscard]] std::unique_ptr<rocksdb::DB> open(rocksdb::Env* environment) {
  rocksdb::Options options;
  options.env = environment;
  options.create_if_missing = true;
  options.write_buffer_size = 256 << 10;
  options.target_file_size_base = 256 << 10;
  options.max_bytes_for_level_base = 1 << 20;
  options.compression = rocksdb::kNoCompression;
  options.paranoid_checks = true;
  rocksdb::DB* db = nullptr;
  const rocksdb::Status s = rocksdb::DB::Open(options, "/db", &db);
  EXPECT_TRUE(s.ok()) << s.ToString();
  return std::unique_ptr<rocksdb::DB>(db);
}

TEST(RocksDbOnBlocks, keeps_its_data_over_compactions_and_reopening) {
  blocks::any_device device(std::in_place_type<counted_drive>, drive);
  std::map<std::string, std::string> right;
  splitmix64 random(11);
  for (int round = 0; round < 3; ++round) {
    stores::block_files files(device, round == 0);
    const auto environment = stores::rocksdb_environment(files);
    const auto db = open(environment.get());
    ASSERT_NE(db, nullptr);
    rocksdb::WriteOptions synced;
    synced.sync = true;
    for (int i = 0; i < 8000; ++i) {
      const std::string key = "key" + std::to_string(random.below(5000));
      if (random.one_in(5)) {
        ASSERT_TRUE(db->Delete({}, key).ok());
        right.erase(key);
      } else {
        const std::string value(100 + random.below(300), static_cast<char>('a' + random.below(26)));
        ASSERT_TRUE(db->Put(i % 1000 == 999 ? synced : rocksdb::WriteOptions(), key, value).ok());
        right[key] = value;
      }
    }
    ASSERT_TRUE(db->SyncWAL().ok());
    std::uint64_t found = 0;
    const std::unique_ptr<rocksdb::Iterator> all(db->NewIterator({}));
    auto expected = right.begin();
    for (all->SeekToFirst(); all->Valid(); all->Next(), ++found, ++expected) {
      ASSERT_NE(expected, right.end());
      ASSERT_EQ(all->key().ToString(), expected->first);
      ASSERT_EQ(all->value().ToString(), expected->second);
    }
    EXPECT_TRUE(all->status().ok()) << all->status().ToString();
    EXPECT_EQ(found, right.size());
  }
  const auto& counts = *device.get<counted_drive>();
  EXPECT_GT(counts.of(blocks::stream::log).bytes_written, 2U << 20) << "most of the log was synced or written out";
  EXPECT_GT(counts.of(blocks::stream::data).bytes_written, 5U << 20) << "compactions write tables";
  EXPECT_GT(counts.of(blocks::stream::data).bytes_read, 0U);
  EXPECT_GT(counts.total().bytes_discarded, 0U);
}

TEST(RocksDbOnBlocks, reports_a_full_device) {
  blocks::any_device device(std::in_place_type<blocks::memory>, blocks::geometry{.blocks = 2048});
  stores::block_files files(device, true);
  const auto environment = stores::rocksdb_environment(files);
  const auto db = open(environment.get());
  ASSERT_NE(db, nullptr);
  rocksdb::Status s;
  for (int i = 0; i < 200'000 && s.ok(); ++i) s = db->Put({}, "key" + std::to_string(i), std::string(300, 'x'));
  // A put that waits for a flush that fails is "incomplete", with the flush's reason.
  EXPECT_NE(s.ToString().find("No space left on device"), std::string::npos) << s.ToString();
}

}  // namespace
}  // namespace pmlab::tests
