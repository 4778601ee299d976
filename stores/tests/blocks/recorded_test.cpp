// The log of a device's requests: its entries, and the files that its reader refuses.
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/recorded.hpp>
#include <pmlab/blocks/synchronous.hpp>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sys/resource.h>

namespace pmlab::tests::recorded_test {
namespace {

using namespace blocks;

constexpr geometry small{.blocks = 16, .block_bytes = 512, .atomic_bytes = 512, .volatile_cache = true};

class RecordedDevice : public ::testing::Test {
 protected:
  void record() {
    recorded<memory> device(log_, small);
    synchronous drive(device);
    buffer data(1024);
    data.data()[600] = std::byte{42};
    drive.write(2, data.bytes(), stream::log);
    device.mark("block 2 is written");
    drive.flush();
  }

  [[nodiscard]] std::string message_of_reading() {
    return message_of([this] {
      io_log_reader reader(log_);
      while (reader.next()) continue;
    });
  }

  void change_byte(std::streamoff at) {
    std::fstream file(log_, std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(at);
    const int old = file.get();
    file.seekp(at);
    file.put(static_cast<char>(old ^ 1));
  }

  temporary_folder folder_;
  std::string log_ = folder_.file("log");
};

TEST_F(RecordedDevice, logs_submissions_completions_and_marks_in_order) {
  record();
  io_log_reader reader(log_);
  EXPECT_EQ(reader.shape(), small);
  std::vector<io_log_reader::entry> all;
  while (auto e = reader.next()) all.push_back(std::move(*e));
  EXPECT_FALSE(reader.cut_off());
  ASSERT_EQ(all.size(), 5U);
  EXPECT_EQ(all[0].record.event, io_event::submitted);
  EXPECT_EQ(all[0].record.what, operation::write);
  EXPECT_EQ(all[0].record.of, stream::log);
  EXPECT_EQ(all[0].record.first, 2U);
  EXPECT_EQ(all[0].record.count, 2U);
  ASSERT_EQ(all[0].data.size(), 1024U);
  EXPECT_EQ(all[0].data[600], std::byte{42});
  EXPECT_EQ(all[1].record.event, io_event::completed);
  EXPECT_EQ(all[1].record.id, all[0].record.id);
  EXPECT_EQ(all[2].text(), "block 2 is written");
  EXPECT_EQ(all[3].record.what, operation::flush);
  EXPECT_EQ(all[4].record.event, io_event::completed);
  EXPECT_NE(all[4].record.id, all[0].record.id);
}

TEST_F(RecordedDevice, a_log_that_was_cut_off_ends_before_the_cut_record) {
  record();
  const auto whole = std::filesystem::file_size(log_);
  for (std::uintmax_t bytes = sizeof(io_log_header); bytes < whole; ++bytes) {
    std::filesystem::resize_file(log_, bytes);
    record();
    std::filesystem::resize_file(log_, bytes);
    io_log_reader reader(log_);
    std::uint64_t end = reader.position();
    while (reader.next()) end = reader.position();
    EXPECT_LE(end, bytes);
    EXPECT_EQ(reader.cut_off(), end != bytes) << bytes;
  }
}

TEST_F(RecordedDevice, a_damaged_byte_is_found) {
  record();
  const auto whole = static_cast<std::streamoff>(std::filesystem::file_size(log_));
  for (std::streamoff at = 0; at < whole; ++at) {
    change_byte(at);
    bool cut_off = false;
    const std::string message = message_of([&] {
      io_log_reader r(log_);
      while (r.next()) continue;
      cut_off = r.cut_off();
    });
    EXPECT_TRUE(!message.empty() || cut_off) << "byte " << at;
    change_byte(at);
  }
  EXPECT_EQ(message_of_reading(), "");
}

TEST_F(RecordedDevice, a_log_of_a_release_before_is_read) {
  record();
  std::ifstream file(log_, std::ios::binary);
  std::string content{std::istreambuf_iterator<char>(file), {}};
  io_log_header header;
  std::memcpy(static_cast<void*>(&header), content.data(), sizeof header);
  header.checksum = hash_of_bytes(&header, offsetof(io_log_header, checksum));
  std::memcpy(content.data(), &header, sizeof header);
  int records = 0;
  for (std::size_t at = sizeof header; at < content.size(); ++records) {
    io_record record;
    std::memcpy(static_cast<void*>(&record), &content[at], sizeof record);
    const char* const data = &content[at] + sizeof record;
    record.checksum = blocks::detail::io_checksum(record, data, hash_of_bytes);
    std::memcpy(&content[at], &record, sizeof record);
    at += sizeof record + (record.data_bytes + blocks::detail::io_log_padding - 1) / blocks::detail::io_log_padding *
                              blocks::detail::io_log_padding;
  }
  EXPECT_EQ(records, 5);
  std::ofstream(log_, std::ios::binary) << content;
  EXPECT_EQ(message_of_reading(), "");
  change_byte(static_cast<std::streamoff>(content.size()) - 1);
  EXPECT_NE(message_of_reading(), "");
}

TEST_F(RecordedDevice, another_file_is_no_log) {
  std::ofstream(log_) << "something else";
  EXPECT_PRED2(says, message_of_reading(), "no log");
  log_ = folder_.file("absent");
  EXPECT_PRED2(says, message_of_reading(), "cannot read");
}

TEST_F(RecordedDevice, says_that_its_log_cannot_be_made) {
  EXPECT_PRED2(says, message_of([] { recorded<memory> device("/dev/full", small); }), "cannot write the log");
}

// The kernel's limit for the size of a file stands for a full one.
TEST_F(RecordedDevice, passes_no_request_on_that_it_cannot_log) {
  recorded<counted<memory>> device(log_, small);
  synchronous drive(device);
  buffer data(512);
  rlimit old{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &old), 0);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit now{std::filesystem::file_size(log_), old.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &now), 0);
  const std::string message = message_of([&] { drive.write(0, data.bytes()); });
  setrlimit(RLIMIT_FSIZE, &old);
  std::signal(SIGXFSZ, handler);
  EXPECT_PRED2(says, message, "cannot write the log");
  EXPECT_EQ(device.inner().total(), counts{});
  drive.write(0, data.bytes());
  EXPECT_EQ(device.inner().total().writes, 1U);
}

}  // namespace
}  // namespace pmlab::tests::recorded_test
