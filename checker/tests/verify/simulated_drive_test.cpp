// The device `simulated_drive`: a drive of the simulated machine, without a crash, and with a drive model in virtual
// time.
#include "checker/simulator/simulated_drive.hpp"
#include "checker/simulator/drive_clock.hpp"
#include "checker/simulator/machine/machine.hpp"

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/blocks/timed.hpp>
#include "stores/tests/blocks/small_drive.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

namespace pmlab::simulator {
namespace {

constexpr blocks::geometry shape{.blocks = 64, .block_bytes = 4096, .atomic_bytes = 4096};

class SimulatedDrive : public ::testing::Test {
 protected:
  void SetUp() override { the_machine().begin({}); }
  void TearDown() override { the_machine().end(); }
};

TEST_F(SimulatedDrive, keeps_its_blocks) {
  simulated_drive drive(shape);
  blocks::synchronous blocks(drive);
  blocks::buffer data(8192);
  std::memset(data.data(), 'x', data.size());
  blocks.write(3, data.bytes());
  blocks.flush();
  std::memset(data.data(), 0, data.size());
  blocks.read(3, data.bytes());
  EXPECT_TRUE(std::all_of(data.bytes().begin(), data.bytes().end(), [](std::byte b) { return b == std::byte{'x'}; }));
}

TEST_F(SimulatedDrive, completes_requests_in_any_order) {
  simulated_drive drive(shape);
  simulated_drive::queue queue(drive, 8);
  std::vector<blocks::buffer> data;
  std::vector<blocks::request> requests;
  for (std::uint64_t i = 0; i < 10; ++i) {
    data.emplace_back(4096);
    requests.push_back({.what = blocks::operation::write, .first = i, .data = data.back().data(), .tag = i});
  }
  EXPECT_EQ(queue.submit(requests), 8u);
  EXPECT_EQ(queue.in_flight(), 8u);
  std::array<blocks::completion, 8> done;
  EXPECT_EQ(queue.reap(done, 8), 8u);
  EXPECT_FALSE(std::is_sorted(done.begin(), done.end(), [](const auto& a, const auto& b) { return a.tag < b.tag; }));
  EXPECT_EQ(queue.reap(done, 1), 0u);
}

TEST_F(SimulatedDrive, refuses_what_no_device_can_do) {
  simulated_drive drive(shape);
  simulated_drive::queue queue(drive, 1);
  const blocks::request beyond{.what = blocks::operation::discard, .count = 2, .first = 63};
  EXPECT_EQ(queue.submit({&beyond, 1}), 1u);
  blocks::completion done;
  EXPECT_EQ(queue.reap({&done, 1}, 1), 1u);
  EXPECT_EQ(done.error, blocks::beyond_end);
  EXPECT_EQ(queue.in_flight(), 0u);
  EXPECT_NE(tests::message_of([] { simulated_drive(3); }).find("watches no drive 3"), std::string::npos);
}

TEST_F(SimulatedDrive, takes_the_virtual_time_of_a_drive_model) {
  const auto picoseconds_of_ten_reads = [] {
    const drive_clock clock;
    blocks::timed<simulated_drive, drive_clock> drive(tests::small_drive(), clock,
                                                      blocks::geometry{.blocks = 4096, .block_bytes = 4096});
    blocks::synchronous blocks(drive);
    blocks::buffer data(4096);
    blocks.write(0, data.bytes());
    blocks.flush();
    const blocks::picoseconds before = clock.now();
    for (int i = 0; i < 10; ++i) blocks.read(0, data.bytes());
    return clock.now() - before;
  };
  const blocks::picoseconds first = picoseconds_of_ten_reads();
  EXPECT_GT(first, 10'000'000u);  // a microsecond each, at least
  EXPECT_EQ(picoseconds_of_ten_reads(), first);
}

}  // namespace
}  // namespace pmlab::simulator
