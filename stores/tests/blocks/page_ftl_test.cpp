// The drive model by itself: write amplification against closed forms, its map, its times.
#include "stores/tests/blocks/small_drive.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace pmlab::tests::page_ftl_test {
namespace {

using namespace blocks;

constexpr std::uint64_t mb = std::uint64_t{1} << 20;

geometry of_bytes(std::uint64_t bytes, std::uint32_t block_bytes = 4096) {
  return {.blocks = bytes / block_bytes, .block_bytes = block_bytes, .atomic_bytes = 0, .volatile_cache = false};
}

request one(operation what, std::uint64_t first, std::uint32_t count = 1, stream of = stream::data) {
  return {what, of, count, first, nullptr, 0};
}

// ---- Closed forms of write amplification under uniform random overwrites, with T places for L units

// First in, first out (and least recently used): a share p of the oldest superblock is valid with
// p = exp(-(T/L) (1 - p)). The same as Xiang and Kurkoski's expression (arXiv 1110.4245).
double first_in_first_out(double over_provisioning) {
  double p = 0.5;
  for (int i = 0; i < 10000; ++i) p = std::exp(-(1 + over_provisioning) * (1 - p));
  return 1 / (1 - p);
}

double harmonic(double n) { return std::log(n + 0.5) + 0.5772156649 + 1 / (24 * (n + 0.5) * (n + 0.5)); }

// Greedy, with superblocks of n units: a superblock loses each valid unit at the same rate, and is collected at m. So
// T/L = n / (n - m) * (H(n) - H(m)). For large n this is the form above.
double greedy(double over_provisioning, double n) {
  double low = 0;
  double high = n - 1e-6;
  for (int i = 0; i < 200; ++i) {
    const double m = (low + high) / 2;
    (n / (n - m) * (harmonic(n) - harmonic(m)) > 1 + over_provisioning ? low : high) = m;
  }
  return n / (n - low);
}

TEST(PageFtl, AmplifiesRandomOverwritesAsGreedyCleaningDoes) {
  struct row {
    double over_provisioning;
    double pinned;  // pinned figure of this model
  };
  for (const row& r : {row{0.07, 7.3631}, row{0.15, 3.9107}, row{0.28, 2.4400}, row{0.50, 1.7021}}) {
    SCOPED_TRACE("over-provisioning " + std::to_string(r.over_provisioning));
    drive_profile profile = small_drive(r.over_provisioning);
    profile.capacity_bytes = 512 * mb;
    profile.pages_per_block = 4;  // superblocks of 256 units
    page_ftl model(profile, of_bytes(512 * mb));
    model.precondition();
    random_source random(11);
    const std::uint64_t units = 512 * mb / 4096;
    for (std::uint64_t i = 0; i < 2 * units; ++i)
      static_cast<void>(model.perform(one(operation::write, random.below(units)), 0));
    const double found = model.counts().amplification();
    EXPECT_LT(found, first_in_first_out(r.over_provisioning));
    // Between the form for the spare alone and that for the spare with the superblocks that are open or free.
    const double open = 3 * 256 / static_cast<double>(units);
    EXPECT_LT(found, 1.005 * greedy(r.over_provisioning, 256));
    EXPECT_GT(found, 0.995 * greedy(r.over_provisioning + open, 256));
    EXPECT_NEAR(found, r.pinned, 0.00006);
    EXPECT_EQ(model.check(), "");
  }
}

TEST(PageFtl, TheClosedFormsAgreeWithPublishedOnes) {
  EXPECT_NEAR(first_in_first_out(0.07), 7.8, 0.05);
  EXPECT_NEAR(first_in_first_out(0.15), 4.0, 0.06);
  EXPECT_NEAR(first_in_first_out(0.28), 2.5, 0.05);
  EXPECT_NEAR(first_in_first_out(0.50), 1.7, 0.03);
  EXPECT_NEAR(first_in_first_out(0.30), 2.36, 0.01);  // Xiang and Kurkoski
  EXPECT_NEAR(greedy(0.15, 1e6), first_in_first_out(0.15), 0.01);
}

TEST(PageFtl, DoesNotAmplifyOverwritesInOrder) {
  const std::uint64_t bytes = 128 * mb;
  page_ftl model(small_drive(0.07), of_bytes(bytes));
  model.fill();
  picoseconds now = 0;
  static_cast<void>(closed_loop(model, now, 8, 8 * bytes / (32 * 4096), in_order(operation::write, 32, bytes / 4096)));
  EXPECT_EQ(model.counts().units_moved, 0U);
  EXPECT_NEAR(model.counts().amplification(), 1.0, 0.001);
  EXPECT_GT(model.counts().erases, 0U);
}

TEST(PageFtl, DiscardedBlocksAreSpare) {
  const std::uint64_t blocks = 128 * mb / 4096;
  const auto amplification = [&](bool discards) {
    page_ftl model(small_drive(0.07), of_bytes(128 * mb));
    model.fill();
    if (discards)
      for (std::uint64_t b = blocks / 2; b < blocks; b += 64)
        static_cast<void>(model.perform(one(operation::discard, b, 64), 0));
    random_source random(3);
    for (std::uint64_t i = 0; i < 3 * blocks; ++i)
      static_cast<void>(model.perform(one(operation::write, random.below(blocks / 2)), 0));
    EXPECT_EQ(model.counts().units_discarded, discards ? blocks / 2 : 0U);
    EXPECT_EQ(model.check(), "");
    return model.counts().amplification();
  };
  const double with = amplification(true);
  const double without = amplification(false);
  EXPECT_LT(with, 1.2);
  EXPECT_GT(without, 1.3 * with);
}

TEST(PageFtl, DiscardedBlocksAreNotRead) {
  page_ftl model(small_drive(), of_bytes(128 * mb));
  model.fill();
  const picoseconds flash = model.perform(one(operation::read, 7), 0);
  static_cast<void>(model.perform(one(operation::discard, 7), flash));
  const picoseconds later = 1'000'000'000;
  const picoseconds empty = model.perform(one(operation::read, 7), later) - later;
  EXPECT_GT(flash, 65'000'000U);
  EXPECT_LT(empty, 10'000'000U);
}

TEST(PageFtl, AFlushCostsWithoutACapacitorOnly) {
  drive_profile with = small_drive();
  drive_profile without = small_drive();
  without.capacitor = false;
  const auto write_and_flush = [](const drive_profile& profile) {
    page_ftl model(profile, of_bytes(128 * mb));
    picoseconds now = model.perform(one(operation::write, 5), 0);
    const picoseconds acknowledged = now;
    now = model.perform(one(operation::flush, 0, 0), now);
    EXPECT_EQ(model.counts().units_padded, profile.capacitor ? 0U : 7U);
    return now - acknowledged;
  };
  EXPECT_LT(write_and_flush(with), 15'000'000U);
  // A program and the map.
  EXPECT_GT(write_and_flush(without), 700'000'000U);
  EXPECT_LT(write_and_flush(without), 800'000'000U);

  page_ftl durable(without, of_bytes(128 * mb));
  EXPECT_GT(durable.perform(one(operation::write_durable, 5), 0), 700'000'000U);
  page_ftl clean(without, of_bytes(128 * mb));
  EXPECT_LT(clean.perform(one(operation::flush, 0, 0), 0), 15'000'000U);
}

TEST(PageFtl, WritesWaitForTheBufferNotForTheFlash) {
  page_ftl model(small_drive(), of_bytes(128 * mb));
  EXPECT_LT(model.perform(one(operation::write, 0), 0), 15'000'000U);
  // Without end, faster than the dies: 8 dies of 32 KB in 600 us are 437 MB/s.
  picoseconds now = 0;
  const loop_result all = closed_loop(model, now, 32, 20000, in_order(operation::write, 1, 64 * mb / 4096));
  EXPECT_NEAR(all.requests_per_s * 4096 / 1e6, 437, 10);
}

TEST(PageFtl, ReadsTheRestOfAUnitThatIsWrittenInPart) {
  drive_profile coarse = small_drive();
  coarse.mapping_unit_bytes = 16384;
  page_ftl model(coarse, of_bytes(128 * mb));
  model.fill();
  random_source random(5);
  for (int i = 0; i < 1000; ++i)
    static_cast<void>(model.perform(one(operation::write, random.below(128 * mb / 4096)), 0));
  EXPECT_GT(model.counts().flash_reads, 900U);
  EXPECT_GT(model.counts().amplification(), 3.9);
  // All of a unit, one block after the other: nothing to read, nothing amplified.
  page_ftl whole(coarse, of_bytes(128 * mb));
  whole.fill();
  for (std::uint64_t b = 0; b < 4000; ++b) static_cast<void>(whole.perform(one(operation::write, b), 0));
  EXPECT_EQ(whole.counts().flash_reads, 0U);
  EXPECT_NEAR(whole.counts().amplification(), 1, 0.01);
}

TEST(PageFtl, GarbageCollectionTakesTheDiesFromReads) {
  drive_profile profile = small_drive(0.15);
  const std::uint64_t blocks = 128 * mb / 4096;
  const auto tail = [&](double suspend_ns, bool writes) {
    profile.suspend_ns = suspend_ns;
    page_ftl model(profile, of_bytes(128 * mb));
    model.precondition();
    random_source random(9);
    picoseconds now = 0;
    const auto mix = [&](std::uint64_t i) {
      return one(writes && i % 4 == 0 ? operation::write : operation::read, random.below(blocks));
    };
    return closed_loop(model, now, 4, 20000, mix).percentile_us(0.99);
  };
  const double alone = tail(0, false);
  const double beside_writes = tail(0, true);
  const double suspending = tail(20000, true);
  EXPECT_LT(alone, 300);
  EXPECT_GT(beside_writes, 600);  // the rest of a program
  EXPECT_LT(suspending, 0.8 * beside_writes);
}

TEST(PageFtl, NeighboursThatWereWrittenTogetherAreReadTogether) {
  const std::uint64_t blocks = 128 * mb / 4096;
  page_ftl ordered(small_drive(), of_bytes(128 * mb));
  ordered.fill();
  page_ftl scattered(small_drive(), of_bytes(128 * mb));
  scattered.precondition();
  static_cast<void>(ordered.perform(one(operation::read, blocks / 2, 32), 0));
  static_cast<void>(scattered.perform(one(operation::read, blocks / 2, 32), 0));
  EXPECT_LE(ordered.counts().flash_reads, 5U);
  EXPECT_GE(scattered.counts().flash_reads, 28U);
}

TEST(PageFtl, StreamsKeepHotAndColdDataApart) {
  const std::uint64_t blocks = 256 * mb / 4096;
  const auto amplification = [&](std::uint64_t streams) {
    drive_profile profile = small_drive(0.15);
    profile.streams = streams;
    page_ftl model(profile, of_bytes(256 * mb));
    model.fill();
    random_source random(7);
    for (std::uint64_t i = 0; i < 8 * blocks; ++i) {
      // Nine of ten writes to a tenth of the drive.
      const bool hot = random.below(10) != 0;
      const std::uint64_t block = hot ? random.below(blocks / 10) : blocks / 10 + random.below(blocks * 9 / 10);
      static_cast<void>(model.perform(one(operation::write, block, 1, hot ? stream::index : stream::data), 0));
      if (i == 4 * blocks) model.reset_counts();
    }
    EXPECT_EQ(model.check(), "");
    return model.counts().amplification();
  };
  EXPECT_LT(amplification(2), 0.9 * amplification(1));
}

// The same megabyte again and again, on a drive that is empty otherwise.
TEST(PageFtl, ErasesAllSuperblocksInTurn) {
  page_ftl model(small_drive(0.15), of_bytes(128 * mb));
  for (std::uint64_t i = 0; i < 10 * (128 * mb / 4096); ++i)
    static_cast<void>(model.perform(one(operation::write, i % 256), 0));
  const std::vector<std::uint32_t> erases = model.erase_counts();
  const double mean = std::accumulate(erases.begin(), erases.end(), 0.0) / static_cast<double>(erases.size());
  EXPECT_GT(mean, 5);
  EXPECT_LT(*std::max_element(erases.begin(), erases.end()), 1.5 * mean);
}

// Any requests, on drives of any form: the map is sound at every time, and no time goes backwards.
TEST(PageFtl, KeepsItsMapUnderAnyRequests) {
  struct form {
    std::uint64_t bytes;
    std::uint32_t block_bytes;
    std::uint64_t mapping_unit_bytes;
    std::uint64_t streams;
    std::uint64_t links;
    bool capacitor;
  };
  for (const form& f : {form{4 * mb, 4096, 4096, 1, 1, true}, form{4 * mb, 512, 4096, 2, 1, false},
                        form{8 * mb, 4096, 16384, 1, 4, false}, form{64 * 4096, 4096, 4096, 1, 1, false},
                        form{2 * mb + 512, 512, 16384, 3, 2, false}, form{8 * mb, 65536, 4096, 1, 1, true}}) {
    const std::uint64_t seed = 41;
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(f.bytes) + " bytes in blocks of " +
                 std::to_string(f.block_bytes) +
                 "; replay: test_blocks --gtest_filter=PageFtl.KeepsItsMapUnderAnyRequests");
    drive_profile profile = small_drive(0.07);
    profile.channels = 2;
    profile.dies_per_channel = 1;
    profile.mapping_unit_bytes = f.mapping_unit_bytes;
    profile.streams = f.streams;
    profile.links = f.links;
    profile.capacitor = f.capacitor;
    const geometry shape = of_bytes(f.bytes, f.block_bytes);
    page_ftl model(profile, shape);
    splitmix64 random(seed);
    picoseconds now = 0;
    for (int i = 0; i < 20000; ++i) {
      const std::uint64_t first = random.below(shape.blocks);
      const auto count =
          static_cast<std::uint32_t>(1 + random.below(std::min<std::uint64_t>(shape.blocks - first, 40)));
      const auto kind = random.below(16);
      const operation what = kind < 10   ? operation::write
                             : kind < 12 ? operation::read
                             : kind < 13 ? operation::discard
                             : kind < 14 ? operation::write_durable
                                         : operation::flush;
      const auto of = static_cast<stream>(random.below(streams));
      const picoseconds done = model.perform({what, of, count, first, nullptr, 0}, now);
      ASSERT_GT(done, now);
      if (random.one_in(4)) now = done;
      if (i % (i < 2000 ? 20 : 500) == 0) {
        ASSERT_EQ(model.check(), "") << "after " << i << " requests";
      }
      if (i == 12000) model.precondition(seed);
    }
    ASSERT_EQ(model.check(), "");
    const flash_counts counts = model.counts();
    EXPECT_GE(counts.units_programmed, counts.units_moved + counts.units_padded);
  }
}

TEST(PageFtl, SameRequestsTakeTheSameTime) {
  const auto all_times = [] {
    page_ftl model(small_drive(0.15), of_bytes(128 * mb));
    model.precondition();
    random_source random(13);
    std::uint64_t sum = 0;
    picoseconds now = 0;
    for (int i = 0; i < 50000; ++i) {
      const picoseconds done =
          model.perform(one(random.below(3) == 0 ? operation::read : operation::write, random.below(32768)), now);
      sum = sum * 31 + done;
      if (i % 16 == 0) now = done;
    }
    return sum;
  };
  EXPECT_EQ(all_times(), all_times());
  EXPECT_EQ(all_times(), 17117025931454532070U);  // on every machine
}

// The time of so many random overwrites, eight in flight.
std::uint64_t time_of_overwrites(page_ftl& model, picoseconds begin, int count) {
  random_source random(17);
  picoseconds now = begin;
  for (int i = 0; i < count; ++i) {
    const picoseconds done = model.perform(one(operation::write, random.below(32768)), now);
    if (i % 8 == 0) now = done;
  }
  return now - begin;
}

TEST(PageFtl, PreconditionedItRemembersNothing) {
  page_ftl fresh(small_drive(0.15), of_bytes(128 * mb));
  page_ftl used(small_drive(0.15), of_bytes(128 * mb));
  used.fill();
  const picoseconds later = time_of_overwrites(used, 0, 30001);
  const double of_fresh = fresh.precondition(5);
  EXPECT_EQ(used.precondition(5), of_fresh);
  EXPECT_EQ(used.check(), "");
  const std::uint64_t time = time_of_overwrites(fresh, 0, 20000);
  EXPECT_EQ(time_of_overwrites(used, later, 20000), time);
  used.precondition(6);
  EXPECT_NE(time_of_overwrites(used, later, 20000), time) << "other units were written";
}

TEST(PageFtl, AtRestItsBufferIsEmptyAndItsDataIsThere) {
  page_ftl model(small_drive(0.15), of_bytes(128 * mb));
  model.precondition();
  const auto in_buffer = static_cast<int>(model.buffer_bytes() / 4096);
  // From one instant on, so that nothing leaves the buffer.
  const auto slowest = [&](int count) {
    random_source random(19);
    picoseconds last = 0;
    for (int i = 0; i < count; ++i) last = std::max(last, model.perform(one(operation::write, random.below(32768)), 0));
    return last;
  };
  const picoseconds fits = slowest(in_buffer / 2);
  const picoseconds full = slowest(4 * in_buffer);
  EXPECT_GT(full, 10 * fits);
  model.come_to_rest();
  EXPECT_EQ(model.check(), "");
  EXPECT_LT(slowest(in_buffer / 2), 2 * fits);
}

TEST(PageFtl, ASmallerCapacityHasSmallerSuperblocks) {
  const drive_profile profile = small_drive();
  const page_ftl whole(profile, of_bytes(profile.capacity_bytes));
  const page_ftl half(profile, of_bytes(profile.capacity_bytes / 2));
  const page_ftl tiny(profile, of_bytes(4 * mb));
  EXPECT_EQ(whole.scale().pages_per_block, profile.pages_per_block);
  EXPECT_EQ(half.scale().pages_per_block, profile.pages_per_block / 2);
  EXPECT_EQ(half.scale().superblocks, whole.scale().superblocks);
  EXPECT_EQ(half.scale().text(), "1:2 of the drive, 1311 superblocks of 1311");
  EXPECT_TRUE(half.scale().keeps_ratios());
  EXPECT_FALSE(tiny.scale().keeps_ratios());
  EXPECT_PRED2(says, tiny.scale().text(), "use 13107200 bytes or more") << tiny.scale().text();
  const page_ftl least(profile, of_bytes(tiny.scale().least_bytes));
  EXPECT_TRUE(least.scale().keeps_ratios());
}

TEST(PageFtl, RefusesAnImpossibleDrive) {
  const auto refusal = [](auto&& change, std::uint64_t bytes = 128 * mb) {
    drive_profile p = small_drive();
    change(p);
    return message_of([&] { const page_ftl model(p, of_bytes(bytes)); });
  };
  const auto contains = [](const std::string& message, const std::string& part) {
    return message.find("'small'") != std::string::npos && message.find(part) != std::string::npos
               ? ::testing::AssertionSuccess()
               : ::testing::AssertionFailure() << "'" << message << "' does not contain '" << part << "'";
  };
  EXPECT_TRUE(contains(refusal([](auto& p) { p.channels = 0; }), "none of"));
  EXPECT_TRUE(contains(refusal([](auto& p) { p.page_bytes = 10000; }), "page_bytes is 10000"));
  EXPECT_TRUE(contains(refusal([](auto& p) { p.mapping_unit_bytes = 3000; }), "mapping_unit_bytes is 3000"));
  EXPECT_TRUE(contains(refusal([](auto& p) {
                         p.page_bytes = 4096;
                         p.planes = 1;
                         p.mapping_unit_bytes = 16384;
                       }),
                       "does not divide"));
  EXPECT_TRUE(contains(refusal([](auto& p) { p.over_provisioning = 0; }), "over_provisioning"));
  EXPECT_TRUE(contains(refusal([](auto& p) { p.buffer_bytes = 40000; }), "buffer_bytes is 40000"));
  EXPECT_TRUE(contains(refusal([](auto& p) { p.channel_mb_per_s = 0; }), "bandwidth"));
  EXPECT_TRUE(contains(refusal([](auto& p) { p.program_ns = 0; }), "program_ns"));
  EXPECT_TRUE(contains(refusal([](auto& p) {
                         p.links = 2;
                         p.stripe_bytes = 5000;
                       }),
                       "stripe_bytes"));
  EXPECT_TRUE(contains(refusal([](auto&) {}, std::uint64_t{1} << 44), "2^31"));
}

}  // namespace
}  // namespace pmlab::tests::page_ftl_test
