// RocksDB on a recorded device: with synced writes each state that a crash may have left opens, and has each
// acknowledged write; without sync, a state that lacks one is found. A check of the recorder and of the files below
// RocksDB.
#include "checker/verify/io_log_states.hpp"
#include "bench/stores/peers/rocksdb_files.hpp"
#include "support/temporary_folder.hpp"

#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/recorded.hpp>

#include <gtest/gtest.h>
#include <rocksdb/db.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace pmlab::tests {
namespace {

using recorded_drive = blocks::recorded<blocks::memory>;

constexpr blocks::geometry drive{.blocks = 4096, .block_bytes = 4096, .atomic_bytes = 0, .volatile_cache = true};
constexpr std::uint64_t keys = 7;

[[nodiscard]] rocksdb::Options options_of(rocksdb::Env* environment, bool create) {
  rocksdb::Options options;
  options.env = environment;
  options.create_if_missing = create;
  options.write_buffer_size = 64 << 10;  // tables and compactions are among the states
  options.compression = rocksdb::kNoCompression;
  options.max_background_jobs = 1;
  return options;
}

[[nodiscard]] std::string key_of(std::uint64_t number) { return "key" + std::to_string(number % keys); }
[[nodiscard]] std::string value_of(std::uint64_t number) {
  return std::to_string(number) + ":" + std::string(3000, static_cast<char>('a' + number % 26));
}

void record(const std::string& log, bool sync, std::uint64_t writes) {
  blocks::any_device device(std::in_place_type<recorded_drive>, log, drive);
  stores::block_files files(device, true);
  const auto environment = stores::rocksdb_environment(files);
  rocksdb::DB* opened = nullptr;
  ASSERT_TRUE(rocksdb::DB::Open(options_of(environment.get(), true), "/db", &opened).ok());
  const std::unique_ptr<rocksdb::DB> db(opened);
  device.get<recorded_drive>()->mark("0");
  rocksdb::WriteOptions how;
  how.sync = sync;
  for (std::uint64_t number = 1; number <= writes; ++number) {
    ASSERT_TRUE(db->Put(how, key_of(number), value_of(number)).ok());
    device.get<recorded_drive>()->mark(std::to_string(number));
  }
}

// "" or why this state must not be. Acknowledged are the writes up to the last mark; one more may have been under way.
[[nodiscard]] std::string check(const verify::io_log_state& state) {
  if (state.marks.empty()) return {};
  const std::uint64_t last = std::stoull(state.marks.back());
  blocks::any_device device(std::in_place_type<blocks::memory>, drive);
  std::ifstream(state.image, std::ios::binary)
      .read(reinterpret_cast<char*>(device.get<blocks::memory>()->content().data()),
            static_cast<std::streamsize>(drive.bytes()));
  try {
    stores::block_files files(device, false);
    const auto environment = stores::rocksdb_environment(files);
    rocksdb::DB* opened = nullptr;
    const rocksdb::Status s = rocksdb::DB::Open(options_of(environment.get(), false), "/db", &opened);
    if (!s.ok()) return "RocksDB does not open: " + s.ToString();
    const std::unique_ptr<rocksdb::DB> db(opened);
    for (std::uint64_t number = last + 1 > keys ? last + 1 - keys : 1; number <= last; ++number) {
      std::string value;
      const rocksdb::Status found = db->Get({}, key_of(number), &value);
      const bool is_next = last + 1 > keys && key_of(number) == key_of(last + 1) && value == value_of(last + 1);
      if (!found.ok() || (value != value_of(number) && !is_next))
        return "write " + std::to_string(number) + " of " + std::to_string(last) + " is lost: " + found.ToString() +
               " " + value.substr(0, 8);
    }
  } catch (const error& failed) {
    return failed.what();
  }
  return {};
}

[[nodiscard]] verify::io_log_result explore(const std::string& log) {
  verify::io_log_options options;
  options.log = log;
  options.states_per_point = 4;
  options.budget_seconds = 8;
  return verify::explore_io_log(options, check, {});
}

TEST(RocksDbIoLog, each_state_of_synced_writes_is_sound) {
  const temporary_folder folder;
  record(folder.file("log"), true, 60);
  if (HasFatalFailure()) return;
  const auto result = explore(folder.file("log"));
  EXPECT_FALSE(result.found) << result.found->what << "\nlost: " << result.found->lost;
  EXPECT_GT(result.checked, 30U);
}

TEST(RocksDbIoLog, a_lost_write_without_sync_is_found) {
  const temporary_folder folder;
  record(folder.file("log"), false, 30);
  if (HasFatalFailure()) return;
  const auto result = explore(folder.file("log"));
  ASSERT_TRUE(result.found);
  EXPECT_NE(result.found->what.find("is lost"), std::string::npos) << result.found->what;
}

}  // namespace
}  // namespace pmlab::tests
