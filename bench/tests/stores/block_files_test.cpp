// Files on a block device: against files in a map, across reopening, with a full device and a failing one.
#include "bench/stores/peers/block_files.hpp"

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::tests {
namespace {

using stores::block_files;

constexpr blocks::geometry drive{.blocks = 4096, .block_bytes = 4096, .atomic_bytes = 0, .volatile_cache = true};

[[nodiscard]] std::vector<std::byte> random_bytes(splitmix64& random, std::size_t count) {
  std::vector<std::byte> all(count);
  for (std::byte& b : all) b = static_cast<std::byte>(random.next());
  return all;
}

[[nodiscard]] std::vector<std::byte> content(block_files& files, const std::string& name) {
  const auto f = files.open(name);
  std::vector<std::byte> all(files.size(*f));
  EXPECT_EQ(files.read(*f, 0, all), all.size());
  return all;
}

TEST(BlockFiles, agree_with_files_in_a_map) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    splitmix64 random(seed);
    blocks::any_device device(std::in_place_type<blocks::memory>, drive);
    auto files = std::make_unique<block_files>(device, true);
    std::map<std::string, std::vector<std::byte>> right;
    for (int step = 0; step < 300; ++step) {
      const std::string name = "/db/" + std::to_string(random.below(6));
      const std::string other = "/db/" + std::to_string(random.below(6));
      switch (random.below(8)) {
        case 0:
          static_cast<void>(files->create(name, blocks::stream::data));
          right[name].clear();
          break;
        case 1: EXPECT_EQ(files->remove(name), right.erase(name) == 1); break;
        case 2:
          EXPECT_EQ(files->rename(name, other), right.contains(name));
          if (right.contains(name) && name != other) right[other] = std::exchange(right[name], {}), right.erase(name);
          break;
        case 3:
          if (const auto f = files->open(name)) {
            const std::uint64_t bytes = random.below(right[name].size() + 1);
            files->truncate(*f, bytes);
            right[name].resize(bytes);
          }
          break;
        case 4:
          if (const auto f = files->open(name)) files->sync(*f);
          break;
        case 5:
          for (const auto& [each, bytes] : right) files->sync(*files->open(each));
          files->sync_names();
          files.reset();
          files = std::make_unique<block_files>(device, false);
          break;
        default:
          if (const auto f = files->open(name)) {
            const auto data = random_bytes(random, random.below(random.one_in(10) ? 1'500'000 : 9'000));
            if (right[name].size() + data.size() > 2'500'000) break;
            files->append(*f, data);
            right[name].insert(right[name].end(), data.begin(), data.end());
          }
      }
      ASSERT_EQ(files->names().size(), right.size());
      for (const auto& [each, bytes] : right)
        ASSERT_EQ(content(*files, each) == bytes, true) << each << ", step " << step;
    }
    for (const auto& [name, bytes] : right) files->remove(name);
    files->sync_names();
    EXPECT_EQ(files->free_bytes(), drive.bytes() - (std::uint64_t{2} << 20));
  }
}

TEST(BlockFiles, a_file_that_was_not_synced_is_not_there_after_reopening) {
  blocks::any_device device(std::in_place_type<blocks::memory>, drive);
  {
    block_files files(device, true);
    const auto f = files.create("a", blocks::stream::data);
    files.append(*f, std::vector<std::byte>(10'000, std::byte{1}));
  }
  block_files files(device, false);
  EXPECT_EQ(files.open("a"), nullptr);
}

TEST(BlockFiles, a_full_device_changes_nothing_and_goes_on) {
  blocks::any_device device(std::in_place_type<blocks::memory>, drive);
  block_files files(device, true);
  const auto small = files.create("small", blocks::stream::data);
  files.append(*small, std::vector<std::byte>(1000, std::byte{7}));
  files.sync(*small);
  const auto large = files.create("large", blocks::stream::data);
  const std::vector<std::byte> part(1 << 20, std::byte{3});
  EXPECT_THROW(for (int i = 0; i < 100; ++i) files.append(*large, part), block_files::no_room);
  EXPECT_EQ(content(files, "small"), std::vector<std::byte>(1000, std::byte{7}));
  EXPECT_TRUE(files.remove("large"));
  files.sync_names();
  const auto again = files.create("again", blocks::stream::data);
  for (int i = 0; i < 10; ++i) files.append(*again, part);
  files.sync(*again);
  EXPECT_EQ(content(files, "again").size(), 10U << 20);
}

TEST(BlockFiles, a_failed_flush_is_an_error_of_each_later_sync) {
  blocks::any_device device(std::in_place_type<blocks::faulty<blocks::memory>>, std::uint64_t{1}, drive);
  block_files files(device, true);
  const auto f = files.create("a", blocks::stream::data);
  files.append(*f, std::vector<std::byte>(1000, std::byte{7}));
  device.get<blocks::faulty<blocks::memory>>()->inject({.kind = blocks::fault::failed_flush});
  EXPECT_THROW(files.sync(*f), error);
  EXPECT_THROW(files.sync(*f), error);
  EXPECT_THROW(files.sync_names(), error);
}

TEST(BlockFiles, a_device_without_a_directory_is_refused) {
  blocks::any_device empty(std::in_place_type<blocks::memory>, drive);
  EXPECT_THROW(block_files(empty, false), error);
  blocks::any_device small(std::in_place_type<blocks::memory>, blocks::geometry{.blocks = 100});
  EXPECT_THROW(block_files(small, true), error);
}

TEST(BlockFiles, folders_are_parts_of_names) {
  blocks::any_device device(std::in_place_type<blocks::memory>, drive);
  block_files files(device, true);
  for (const char* name : {"/db/b", "/db/a/1", "/db/a/2", "/db/a!", "/dbx/c", "/d"})
    static_cast<void>(files.create(name, blocks::stream::data));
  const std::vector<std::string> of_db{"a", "a!", "b"};
  EXPECT_EQ(files.children("/db"), of_db);
  EXPECT_EQ(files.children("/db/"), of_db);
  EXPECT_EQ(files.children("/db/a"), (std::vector<std::string>{"1", "2"}));
  EXPECT_TRUE(files.children("/db/b").empty());
}

TEST(BlockFiles, an_older_directory_is_used_if_the_newer_is_damaged) {
  blocks::any_device device(std::in_place_type<blocks::memory>, drive);
  const auto bytes = device.get<blocks::memory>()->content();
  std::uint64_t first = 0;
  {
    block_files files(device, true);
    const auto f = files.create("a", blocks::stream::data);
    files.append(*f, std::vector<std::byte>(1000, std::byte{7}));
    files.sync(*f);
    static_cast<void>(files.create("b", blocks::stream::data));
    files.sync_names();
  }
  for (const std::uint64_t place : {0U, 1U}) {
    std::uint64_t sequence = 0;
    std::memcpy(&sequence, bytes.data() + (place << 20) + 8, sizeof sequence);
    first = std::max(first, sequence * 2 + place);
  }
  bytes[((first % 2) << 20) + 40] ^= std::byte{1};
  block_files files(device, false);
  EXPECT_EQ(files.names(), std::vector<std::string>{"a"});
  EXPECT_EQ(content(files, "a"), std::vector<std::byte>(1000, std::byte{7}));
}

TEST(BlockFiles, serve_readers_while_a_writer_appends) {
  blocks::any_device device(std::in_place_type<blocks::memory>, drive);
  block_files files(device, true);
  const auto f = files.create("a", blocks::stream::data);
  constexpr std::uint64_t words = 600'000;
  std::thread writer([&] {
    for (std::uint64_t at = 0; at < words; at += 100) {
      std::vector<std::uint64_t> part(100);
      for (std::uint64_t i = 0; i < 100; ++i) part[i] = at + i;
      files.append(*f, std::as_bytes(std::span(part)));
      if (at % 5000 == 0) files.sync(*f);
    }
  });
  splitmix64 random(3);
  std::uint64_t wrong = 0;
  while (files.size(*f) < words * 8) {
    const std::uint64_t had = files.size(*f) / 8;
    if (had == 0) continue;
    const std::uint64_t from = random.below(had);
    std::vector<std::uint64_t> got(std::min<std::uint64_t>(had - from, 2000));
    if (files.read(*f, from * 8, std::as_writable_bytes(std::span(got))) != got.size() * 8) ++wrong;
    for (std::uint64_t i = 0; i < got.size(); ++i) wrong += got[i] == from + i ? 0U : 1U;
  }
  writer.join();
  EXPECT_EQ(wrong, 0U);
}

}  // namespace
}  // namespace pmlab::tests
