// Each fault does what its name says, to the requests it was planned for and to no other.
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/synchronous.hpp>

#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace pmlab::tests::faulty_test {
namespace {

using namespace blocks;

constexpr geometry small{.blocks = 64, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = true};

class FaultyDevice : public ::testing::Test {
 protected:
  FaultyDevice() {
    std::ranges::fill(ones_.bytes(), std::byte{1});
    std::ranges::fill(sixes_.bytes(), std::byte{6});
    drive_.write(0, sixes_.bytes());
  }

  // The error of one request.
  std::errc run(operation what, std::uint64_t first, std::uint32_t count, buffer& data) {
    faulty<memory>::queue q(device_, 1);
    return perform(q, {what, stream::data, count, first, data.data(), 0});
  }

  [[nodiscard]] std::byte stored(std::uint64_t block) { return device_.inner().content()[block * 512 + 100]; }

  // Bits by which the drive differs from all sixes but in the given blocks.
  [[nodiscard]] int wrong_bits(std::span<const std::byte> bytes, std::byte right) {
    int wrong = 0;
    for (const std::byte b : bytes) wrong += std::popcount(static_cast<unsigned>(b ^ right));
    return wrong;
  }

  faulty<memory> device_{std::uint64_t{5}, small};
  synchronous<faulty<memory>> drive_{device_};
  buffer ones_{8 * 512};
  buffer sixes_{64 * 512};
  buffer read_{8 * 512};
};

TEST_F(FaultyDevice, an_error_does_nothing) {
  device_.inject({.kind = fault::io_error, .what = operation::write});
  EXPECT_EQ(run(operation::read, 0, 8, read_), std::errc{});
  EXPECT_EQ(run(operation::write, 0, 8, ones_), request_failed);
  EXPECT_EQ(stored(0), std::byte{6});
  EXPECT_EQ(run(operation::write, 0, 8, ones_), std::errc{}) << "it was planned once";
  EXPECT_EQ(stored(0), std::byte{1});
}

TEST_F(FaultyDevice, a_full_device_does_nothing) {
  device_.inject({.kind = fault::no_space, .skip = 1});
  EXPECT_EQ(run(operation::write, 0, 8, ones_), std::errc{});
  EXPECT_EQ(run(operation::write, 8, 8, ones_), std::errc::no_space_on_device);
  EXPECT_EQ(stored(8), std::byte{6});
}

TEST_F(FaultyDevice, a_short_transfer_moves_the_first_half) {
  device_.inject({.kind = fault::short_transfer});
  EXPECT_EQ(run(operation::write, 0, 8, ones_), request_failed);
  EXPECT_EQ(stored(3), std::byte{1});
  EXPECT_EQ(stored(4), std::byte{6});
}

TEST_F(FaultyDevice, a_failed_flush_fails_the_device) {
  device_.inject({.kind = fault::failed_flush});
  EXPECT_EQ(run(operation::write, 0, 8, ones_), std::errc{});
  EXPECT_EQ(run(operation::flush, 0, 0, ones_), request_failed);
  for (const operation what : {operation::read, operation::write, operation::write_durable, operation::flush})
    EXPECT_EQ(run(what, 0, 1, ones_), device_failed);
  EXPECT_PRED2(says, device_.failure(), "flush");
  EXPECT_PRED2(says, message_of([&] { drive_.read(0, read_.bytes()); }), "no request succeeds after a failed flush");
  device_.stop();
  EXPECT_EQ(run(operation::flush, 0, 0, ones_), device_failed);
}

TEST_F(FaultyDevice, a_bit_of_a_read_flips_on_its_way) {
  device_.inject({.kind = fault::bit_flip});
  EXPECT_EQ(run(operation::read, 0, 8, read_), std::errc{});
  EXPECT_EQ(wrong_bits(read_.bytes(), std::byte{6}), 1);
  EXPECT_EQ(run(operation::read, 0, 8, read_), std::errc{});
  EXPECT_EQ(wrong_bits(read_.bytes(), std::byte{6}), 0);
}

TEST_F(FaultyDevice, a_bit_of_a_write_flips_on_its_way) {
  device_.inject({.kind = fault::bit_flip});
  EXPECT_EQ(run(operation::write, 0, 8, ones_), std::errc{});
  EXPECT_EQ(wrong_bits(device_.inner().content().first(8 * 512), std::byte{1}), 1);
  EXPECT_EQ(wrong_bits(ones_.bytes(), std::byte{1}), 0) << "the user's data is unchanged";
}

TEST_F(FaultyDevice, a_misdirected_write_goes_elsewhere) {
  device_.inject({.kind = fault::misdirected});
  EXPECT_EQ(run(operation::write, 8, 1, ones_), std::errc{});
  EXPECT_EQ(stored(8), std::byte{6});
  EXPECT_EQ(std::ranges::count(device_.inner().content(), std::byte{1}), 512);
}

TEST_F(FaultyDevice, a_lost_write_completes) {
  device_.inject({.kind = fault::lost_write});
  EXPECT_EQ(run(operation::write, 8, 1, ones_), std::errc{});
  EXPECT_EQ(stored(8), std::byte{6});
}

TEST_F(FaultyDevice, a_write_with_a_failed_answer_is_done) {
  device_.inject({.kind = fault::failed_answer});
  EXPECT_EQ(run(operation::write, 8, 1, ones_), request_failed);
  EXPECT_EQ(stored(8), std::byte{1});
}

TEST_F(FaultyDevice, faults_at_random_are_recorded_and_stop) {
  device_.inject_at_random({fault::io_error, fault::lost_write}, 4);
  std::size_t failed = 0;
  for (int i = 0; i < 400; ++i) failed += run(operation::write, 0, 1, ones_) == request_failed ? 1 : 0;
  const auto injected = device_.injected();
  EXPECT_GT(failed, 20U);
  EXPECT_EQ(static_cast<std::size_t>(std::ranges::count(injected, fault::io_error, &injected_fault::kind)), failed);
  EXPECT_GT(injected.size(), failed);
  device_.stop();
  for (int i = 0; i < 100; ++i) EXPECT_EQ(run(operation::write, 0, 1, ones_), std::errc{});
}

TEST_F(FaultyDevice, a_plan_meets_only_the_stream_it_names) {
  device_.inject({.kind = fault::io_error, .only = stream::index});
  EXPECT_EQ(run(operation::write, 0, 1, ones_), std::errc{});
  EXPECT_THROW(drive_.write(0, ones_.bytes(), stream::index), error);
}

}  // namespace
}  // namespace pmlab::tests::faulty_test
