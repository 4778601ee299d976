// Counting, and devices that another object owns.
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/synchronous.hpp>

#include "support/message_of.hpp"

#include <gtest/gtest.h>

namespace pmlab::tests::wrapper_test {
namespace {

using namespace blocks;

constexpr geometry small{.blocks = 64, .block_bytes = 4096, .atomic_bytes = 0, .volatile_cache = true};

TEST(CountedDevice, keeps_streams_apart) {
  counted<memory> device(small);
  synchronous drive(device);
  buffer data(3 * 4096);
  drive.write(0, data.bytes(), stream::data);
  drive.write_durable(3, data.bytes().first(4096), stream::index);
  drive.flush(stream::index);
  drive.read(0, data.bytes(), stream::merge);
  drive.discard(8, 16, stream::log);
  EXPECT_EQ(device.of(stream::data), (counts{.writes = 1, .bytes_written = 3 * 4096}));
  EXPECT_EQ(device.of(stream::index), (counts{.writes = 1, .durable_writes = 1, .flushes = 1, .bytes_written = 4096}));
  EXPECT_EQ(device.of(stream::merge), (counts{.reads = 1, .bytes_read = 3 * 4096}));
  EXPECT_EQ(device.of(stream::log), (counts{.discards = 1, .bytes_discarded = 16 * 4096}));
  EXPECT_EQ(device.total().bytes_written, 4U * 4096);
  device.reset();
  EXPECT_EQ(device.total(), counts{});
}

TEST(CountedDevice, counts_only_taken_requests) {
  counted<memory> device(small);
  counted<memory>::queue q(device, 1);
  buffer data(4096);
  const std::vector<request> two(2, {operation::read, stream::data, 1, 0, data.data(), 0});
  EXPECT_EQ(q.submit(two), 1U);
  EXPECT_EQ(device.total().reads, 1U);
}

TEST(ReferencedDevice, is_the_device_of_its_owner) {
  memory owner(small);
  counted<reference<memory>> device{owner};
  synchronous drive(device);
  buffer data(4096);
  data.data()[0] = std::byte{7};
  drive.write(1, data.bytes());
  EXPECT_EQ(owner.content()[4096], std::byte{7});
  EXPECT_EQ(device.total().writes, 1U);
}

TEST(DeviceGeometry, is_refused_where_it_is_impossible) {
  const auto message = [](const geometry& g) { return message_of([&] { memory m(g); }); };
  EXPECT_PRED2(says, message({.blocks = 0}), "no blocks");
  EXPECT_PRED2(says, message({.blocks = 8, .block_bytes = 100}), "power of two");
  EXPECT_PRED2(says, message({.blocks = 8, .block_bytes = 256}), "512");
  EXPECT_PRED2(says, message({.blocks = 8, .atomic_bytes = 100}), "atomic unit");
}

TEST(SynchronousRequests, are_whole_numbers_of_blocks) {
  memory device(small);
  synchronous drive(device);
  buffer data(4096);
  EXPECT_PRED2(says, message_of([&] { drive.write(0, data.bytes().first(100)); }), "4096");
}

}  // namespace
}  // namespace pmlab::tests::wrapper_test
