// Devices with the speed of a modelled drive: on a virtual clock to the digit, on the real one with wide limits, so
// that other work on the machine cannot fail a test, and a device that holds nothing back cannot pass one.
#include "stores/tests/blocks/small_drive.hpp"

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/emulated.hpp>
#include <pmlab/blocks/faulty.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/blocks/timed.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace pmlab::tests::timed_test {
namespace {

using namespace blocks;

using in_virtual_time = timed<memory, virtual_clock>;

static_assert(device<in_virtual_time>);
static_assert(device<emulated<memory>>);
static_assert(device<counted<emulated<memory>>>);
static_assert(device<emulated<counted<memory>>>);

constexpr std::uint64_t mb = std::uint64_t{1} << 20;

TEST(Timed, OneRequestAfterTheOtherTakesTheLatencyOfEach) {
  virtual_time time;
  const drive_profile profile = small_drive();
  in_virtual_time drive(profile, virtual_clock(time), shape_of(profile, 64 * mb));
  EXPECT_EQ(drive.name(), "timed:small");
  EXPECT_EQ(drive.shape(), shape_of(profile, 64 * mb));
  drive.model().fill();
  synchronous one(drive);
  buffer data(4096);
  one.read(77, data.bytes());
  // Command 1 us, overhead 5, flash 60, 4 KB at 500 and at 3,200 MB/s.
  EXPECT_NEAR(static_cast<double>(time.now()), (1 + 5 + 60 + 8.192 + 1.28) * 1e6, 100);
  const picoseconds before = time.now();
  one.write(77, data.bytes());
  EXPECT_NEAR(static_cast<double>(time.now() - before), (1 + 1.28 + 10) * 1e6, 100);
}

TEST(Timed, CompletionsComeInTheOrderOfTheirTimes) {
  virtual_time time;
  const drive_profile profile = small_drive();
  in_virtual_time drive(profile, virtual_clock(time), shape_of(profile, 64 * mb));
  drive.model().fill();
  in_virtual_time::queue q(drive, 4);
  buffer data(2 * 4096);
  const std::array<request, 2> both{request{operation::read, stream::data, 1, 5, data.data(), 5},
                                    request{operation::write, stream::data, 1, 6, data.data() + 4096, 6}};
  EXPECT_EQ(q.submit(both), 2U);
  std::array<completion, 2> done{};
  EXPECT_EQ(q.reap(done, 0), 0U) << "before its time";
  EXPECT_EQ(time.now(), 0U);
  EXPECT_EQ(q.reap(done, 1), 1U);
  EXPECT_EQ(done[0].tag, 6U);
  EXPECT_LT(time.now(), 20'000'000U);
  EXPECT_EQ(q.reap(done, 1), 1U);
  EXPECT_EQ(done[0].tag, 5U);
  EXPECT_GT(time.now(), 70'000'000U);
  EXPECT_EQ(q.in_flight(), 0U);
  EXPECT_EQ(drive.emulation().late_ns, 0U);
}

// Two logical threads on two drives with a time each; the one that is behind goes next.
TEST(Timed, SeveralQueuesInOneThreadRepeatToTheDigit) {
  const auto run = [] {
    const drive_profile profile = small_drive(0.15);
    std::array<virtual_time, 2> times;
    in_virtual_time drive(profile, virtual_clock(times[0]), shape_of(profile, 64 * mb));
    drive.model().precondition();
    in_virtual_time::queue first(drive, 8);
    in_virtual_time::queue second(drive, 8, virtual_clock(times[1]));
    random_source random(21);
    buffer data(4096);
    std::uint64_t sum = 0;
    std::array<completion, 8> done{};
    for (int i = 0; i < 20000; ++i) {
      auto& q = times[0].now() <= times[1].now() ? first : second;
      const request r{random.below(4) == 0 ? operation::read : operation::write,
                      stream::data,
                      1,
                      random.below(64 * mb / 4096),
                      data.data(),
                      static_cast<std::uint64_t>(i)};
      if (q.submit({&r, 1}) == 0) {
        const std::size_t count = q.reap(done, 1);
        for (std::size_t c = 0; c < count; ++c) sum = sum * 31 + done[c].tag;
        sum = sum * 31 + q.now();
      }
    }
    EXPECT_GT(times[0].now(), 1'000'000'000U);
    EXPECT_NEAR(static_cast<double>(times[0].now()), static_cast<double>(times[1].now()),
                0.1 * static_cast<double>(times[1].now()));
    return sum;
  };
  EXPECT_EQ(run(), run());
  EXPECT_EQ(run(), 3647747310690079313U);  // on every machine
}

TEST(Timed, AQueueOfManyIsFasterThanOneByOne) {
  const drive_profile profile = small_drive();
  const auto read_all = [&](unsigned depth) {
    virtual_time time;
    in_virtual_time drive(profile, virtual_clock(time), shape_of(profile, 64 * mb));
    drive.model().fill();
    in_virtual_time::queue q(drive, depth);
    buffer data(4096);
    random_source random(4);
    std::array<completion, 32> done{};
    for (int i = 0; i < 2000; ++i) {
      const request r{operation::read, stream::data, 1, random.below(64 * mb / 4096), data.data(), 0};
      while (q.submit({&r, 1}) == 0) static_cast<void>(q.reap(done, 1));
    }
    while (q.in_flight() != 0) static_cast<void>(q.reap(done, 1));
    return time.now();
  };
  EXPECT_GT(read_all(1), 5 * read_all(32));
}

TEST(Timed, TellsTheWorseOfTwoPromises) {
  virtual_time time;
  drive_profile profile = small_drive();
  geometry shape = shape_of(profile, mb);
  shape.volatile_cache = true;
  shape.atomic_bytes = 512;
  const in_virtual_time on_a_file(profile, virtual_clock(time), shape);
  EXPECT_TRUE(on_a_file.shape().volatile_cache);
  EXPECT_EQ(on_a_file.shape().atomic_bytes, 512U);
  profile.capacitor = false;
  profile.atomic_bytes = 0;
  shape.volatile_cache = false;
  const in_virtual_time without(profile, virtual_clock(time), shape);
  EXPECT_TRUE(without.shape().volatile_cache);
  EXPECT_EQ(without.shape().atomic_bytes, 0U);
}

TEST(Timed, ErrorsOfTheInnerDevicePass) {
  virtual_time time;
  const drive_profile profile = small_drive();
  timed<faulty<memory>, virtual_clock> drive(profile, virtual_clock(time), std::uint64_t{1}, shape_of(profile, mb));
  drive.inner().inject({.kind = fault::io_error, .what = operation::read});
  drive.inner().inject({.kind = fault::failed_flush});
  timed<faulty<memory>, virtual_clock>::queue q(drive, 4);
  buffer data(4096);
  EXPECT_EQ(perform(q, {operation::read, stream::data, 1, 0, data.data(), 0}), request_failed);
  EXPECT_GT(time.now(), 0U);
  EXPECT_EQ(perform(q, {operation::read, stream::data, 1, 0, data.data(), 0}), std::errc{});
  EXPECT_EQ(perform(q, {operation::flush, stream::data, 0, 0, nullptr, 0}), request_failed);
  EXPECT_NE(drive.failure(), "");
  EXPECT_EQ(perform(q, {operation::read, stream::data, 1, 0, data.data(), 0}), device_failed);
}

double wall_us(const std::function<void()>& action) {
  const auto from = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - from).count();
}

// Ten times slower than usual flash, so that the machine's own time disappears beside it.
drive_profile slow_drive() {
  drive_profile slow = small_drive();
  slow.read_ns = 600000;
  return slow;
}

TEST(EmulatedDrive, ReadsTakeTheTimeOfTheDrive) {
  const drive_profile profile = slow_drive();
  emulated<memory> drive(profile, shape_of(profile, 8 * mb));
  EXPECT_EQ(drive.name(), "emulated:small");
  drive.model().fill();
  synchronous one(drive);
  buffer data(4096);
  std::vector<double> each;
  for (std::uint64_t i = 0; i < 21; ++i) each.push_back(wall_us([&] { one.read(i * 37, data.bytes()); }));
  std::sort(each.begin(), each.end());
  EXPECT_GE(each.front(), 615);  // command, overhead, flash and transfers are 615.5
  EXPECT_LT(each[10], 3 * 615);
  EXPECT_EQ(drive.emulation().charged, 21U);
  EXPECT_GT(drive.emulation().waited_ns, 21U * 500'000);
}

TEST(EmulatedDrive, RequestsInFlightOverlap) {
  const drive_profile profile = slow_drive();
  emulated<memory> drive(profile, shape_of(profile, 8 * mb));
  drive.model().fill();
  emulated<memory>::queue q(drive, 8);
  buffer data(8 * 4096);
  // Neighbouring units are on eight dies.
  std::vector<request> requests;
  for (std::uint64_t i = 0; i < 8; ++i)
    requests.push_back({operation::read, stream::data, 1, i * 8, data.data() + i * 4096, i});
  std::vector<double> each;
  std::array<completion, 8> done{};
  for (int round = 0; round < 11; ++round)
    each.push_back(wall_us([&] {
      EXPECT_EQ(q.submit(requests), 8U);
      EXPECT_EQ(q.reap(done, 8), 8U);
    }));
  std::sort(each.begin(), each.end());
  EXPECT_GE(each.front(), 600);
  EXPECT_LT(each[5], 4 * 615) << "eight one by one take 4900";
}

TEST(EmulatedDrive, ThreadsMeetInTheDrive) {
  drive_profile profile = slow_drive();
  profile.channels = 1;
  profile.dies_per_channel = 1;
  emulated<memory> drive(profile, shape_of(profile, 8 * mb));
  drive.model().fill();
  const auto read_ten = [&drive](std::uint64_t at) {
    synchronous one(drive);
    buffer data(4096);
    for (std::uint64_t i = 0; i < 10; ++i) one.read(at + i * 16, data.bytes());
  };
  const double two = wall_us([&] {
    std::thread other([&] { read_ten(0); });
    read_ten(1000);
    other.join();
  });
  EXPECT_GE(two, 20 * 600) << "one die";
}

// An inner device that takes longer than the drive.
struct sluggish : memory {
  using memory::memory;
  class queue : public memory::queue {
   public:
    queue(sluggish& device, unsigned depth) : memory::queue(device, depth) {}
    [[nodiscard]] std::size_t reap(std::span<completion> completions, std::size_t at_least) {
      if (at_least == 0) return 0;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return memory::queue::reap(completions, at_least);
    }
  };
};

TEST(EmulatedDrive, WarnsOfALateMachine) {
  const drive_profile profile = small_drive();
  emulated<sluggish> drive(profile, shape_of(profile, mb));
  EXPECT_EQ(drive.warning(), "");
  synchronous one(drive);
  buffer data(4096);
  for (std::uint64_t i = 0; i < 5; ++i) one.read(i, data.bytes());
  EXPECT_GT(drive.emulation().late_ns, 5 * 4'000'000U);
  EXPECT_NE(drive.warning().find("emulated:small was late"), std::string::npos) << drive.warning();
}

}  // namespace
}  // namespace pmlab::tests::timed_test
