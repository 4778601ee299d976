// Requests that overlap: each device keeps whole what it promises (B8).
#include "stores/tests/blocks/devices.hpp"

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/synchronous.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

namespace pmlab::tests::overlap_test {
namespace {

using namespace blocks;

constexpr std::uint32_t long_block = 65536;  // a copy of it takes so long that another thread comes between
constexpr geometry shape{.blocks = 16, .block_bytes = long_block, .atomic_bytes = long_block, .volatile_cache = true};

// True: all of it is one byte, again and again.
[[nodiscard]] bool is_whole(const std::byte* data, std::size_t bytes) {
  return std::memcmp(data, data + 1, bytes - 1) == 0;
}

template <class Made>
class OverlappingRequests : public ::testing::Test {
 protected:
  Made made_;
  decltype(made_.make(shape)) device_ = made_.make(shape);
};
TYPED_TEST_SUITE(OverlappingRequests, all_devices);

// Two threads write two blocks that a third one reads.
TYPED_TEST(OverlappingRequests, keep_each_promised_unit_whole) {
  const std::uint32_t unit = this->device_->shape().atomic_bytes;
  if (unit == 0) GTEST_SKIP() << this->device_->name() << " promises nothing";
  const std::size_t checked = std::min(unit, long_block);
  std::atomic<bool> ended{false};
  std::atomic<bool> failed{false};
  std::vector<std::thread> writers;
  for (int w = 0; w < 2; ++w)
    writers.emplace_back([&, w] {
      try {
        synchronous drive(*this->device_);
        buffer data(2 * std::size_t{long_block});
        for (int i = 0; !ended.load(); ++i) {
          std::memset(data.data(), 1 + (2 * i + w) % 200, data.size());
          drive.write(3, data.bytes());
          if (i % 8 == 0) drive.discard(3, 1);
        }
      } catch (const error&) {
        failed = true;
      }
    });
  synchronous drive(*this->device_);
  buffer got(2 * std::size_t{long_block});
  constexpr int reads = 1500;
  int torn = 0;
  for (int i = 0; i < reads; ++i) {
    drive.read(3, got.bytes());
    for (std::size_t at = 0; at < got.size(); at += checked) torn += is_whole(got.data() + at, checked) ? 0 : 1;
  }
  ended = true;
  for (std::thread& t : writers) t.join();
  EXPECT_EQ(torn, 0) << "of " << reads << " reads";
  EXPECT_FALSE(failed.load());
  drive.read(3, got.bytes());
  EXPECT_TRUE(is_whole(got.data(), checked)) << "a unit has bytes of two writes";
}

// Whatever it promises for a power failure.
TEST(OverlappingRequestsToMemory, keep_each_block_whole) {
  for (const std::uint32_t bytes : {512U, 4096U, 65536U}) {
    memory device({.blocks = 64, .block_bytes = bytes, .atomic_bytes = 0, .volatile_cache = true});
    std::atomic<bool> ended{false};
    std::thread writer([&] {
      synchronous drive(device);
      buffer data(16 * std::size_t{bytes});
      for (int i = 0; !ended.load(); ++i) {
        std::memset(data.data(), 1 + i % 200, data.size());
        drive.write(5, data.bytes());
      }
    });
    synchronous drive(device);
    buffer got(16 * std::size_t{bytes});
    int torn = 0;
    for (int i = 0; i < 3000; ++i) {
      drive.read(5, got.bytes());
      for (std::size_t at = 0; at < got.size(); at += bytes) torn += is_whole(got.data() + at, bytes) ? 0 : 1;
    }
    ended = true;
    writer.join();
    EXPECT_EQ(torn, 0) << bytes;
  }
}

}  // namespace
}  // namespace pmlab::tests::overlap_test
