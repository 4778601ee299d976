// Kernels touch exactly the bytes that they say, flush exactly their lines, and fence exactly as often as asked.
#include <pmlab/media/counted.hpp>
#include <pmlab/media/dram.hpp>
#include "microbench/memory/charged_kernels.hpp"
#include "microbench/memory/copy_destination.hpp"
#include "microbench/memory/cpu_features.hpp"
#include "microbench/memory/native_kernels.hpp"
#include "microbench/memory/region.hpp"
#include "microbench/memory/stored_word.hpp"

#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::microbench {
namespace {

using counted_dram = media::counted<media::dram>;

constexpr std::byte untouched{0xa5};
constexpr std::uint64_t sizes[] = {8, 16, 32, 64, 128, 192, 256, 512, 1024, 4096};
constexpr load_kind widths[] = {load_kind::scalar, load_kind::avx2, load_kind::avx512};
constexpr store_kind stores[] = {store_kind::ntstore, store_kind::clwb,  store_kind::clflushopt,
                                 store_kind::clflush, store_kind::plain, store_kind::movdir64b};

bool possible(store_kind store, load_kind width, std::uint64_t bytes) {
  bench_case c;
  c.operation = operation_kind::store;
  c.store = store;
  c.load = width;
  return lack_for(c, features_of_this_cpu()).empty() && (store != store_kind::movdir64b || bytes % 64 == 0);
}

// Memory that begins at a line.
struct lines {
  explicit lines(std::size_t bytes) : memory(bytes + 64, untouched) {
    start = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64) % 64;
  }
  std::vector<std::byte> memory;
  std::byte* start;
};

// The expected bytes of [start, start + bytes): every place of `way` in `places` stored to.
void expect_stored(const lines& m, std::uint64_t region, const std::vector<std::uint64_t>& starts, std::uint64_t bytes,
                   const std::string& what) {
  std::vector<std::byte> expected(region, untouched);
  for (const std::uint64_t at : starts)
    for (std::uint64_t i = 0; i < bytes; i += 8) std::memcpy(expected.data() + at + i, &stored_word, 8);
  ASSERT_EQ(std::memcmp(expected.data(), m.start, region), 0) << what;
}

TEST(NativeKernels, StoresWriteTheirBytesAndNoOthers) {
  for (const std::uint64_t bytes : sizes)
    for (const load_kind width : widths)
      for (const store_kind store : stores) {
        if (!possible(store, width, bytes)) continue;
        const std::uint64_t distance = bytes + 64;
        const std::uint64_t region = 8 * distance;
        lines m(region);
        const auto k = make_native_kernels({width, store, bytes, false});
        const std::vector<std::uint32_t> table = {5, 1, 6};
        walk way{.base = m.start, .distance = distance, .places = 3, .table = table.data(), .bytes = bytes};
        k->store(way, 3);
        expect_stored(m, region, {5 * distance, distance, 6 * distance}, bytes,
                      std::string(to_string(store)) + " " + std::string(to_string(width)));
        EXPECT_EQ(way.at, 0U);
        k->store_one(m.start + 2 * distance, true);
        expect_stored(m, region, {5 * distance, distance, 6 * distance, 2 * distance}, bytes, "alone");
        walk in_order{.base = m.start, .distance = distance, .places = 8, .at = 7, .bytes = bytes};
        in_order.fence_bytes = bytes;
        k->store(in_order, 2);
        expect_stored(m, region, {5 * distance, distance, 6 * distance, 2 * distance, 7 * distance, 0}, bytes,
                      "in order");
        EXPECT_EQ(in_order.at, 1U);
      }
}

TEST(NativeKernels, FencesWithinAnAccessLeaveNothingOut) {
  lines m(4096);
  const auto k = make_native_kernels({load_kind::scalar, store_kind::ntstore, 4096, false});
  walk way{.base = m.start, .distance = 4096, .places = 1, .bytes = 4096, .fence_bytes = 256};
  k->store(way, 1);
  expect_stored(m, 4096, {0}, 4096, "fence every 256 bytes");
}

TEST(NativeKernels, LoadsChangeNothingAndCome) {
  for (const std::uint64_t bytes : sizes)
    for (const load_kind width : widths) {
      if (!possible(store_kind::plain, width, bytes)) continue;
      for (const bool dependent : {false, true}) {
        lines m(4 * bytes);
        const auto k = make_native_kernels({width, store_kind::plain, bytes, dependent});
        walk way{.base = m.start, .distance = bytes, .places = 4, .bytes = bytes};
        k->load(way, 9);
        EXPECT_EQ(way.at, 1U);
        k->load_one(m.start);
        expect_stored(m, 4 * bytes, {}, 0, "loads");
      }
    }
}

// The destination is in the kernels: what can be seen is that a copy reads all of its place and stores nothing there.
TEST(NativeKernels, CopiesChangeNothingAndCome) {
  for (const std::uint64_t bytes : sizes)
    for (const bool dependent : {false, true}) {
      lines m(4 * bytes);
      const auto k = make_native_kernels({load_kind::scalar, store_kind::plain, bytes, dependent, true});
      walk way{.base = m.start, .distance = bytes, .places = 4, .bytes = bytes};
      k->load(way, 9);
      EXPECT_EQ(way.at, 1U);
      k->load_one(m.start);
      expect_stored(m, 4 * bytes, {}, 0, "copies");
    }
}

TEST(CopyDestination, PiecesFollowEachOtherAndBeginAgain) {
  copy_destination to(4096);
  ASSERT_TRUE(to);
  EXPECT_EQ(to.next(1024), to.start());
  EXPECT_EQ(to.next(3072), to.start() + 1024);
  EXPECT_EQ(to.next(1024), to.start());
  EXPECT_FALSE(copy_destination(0));
}

struct counting {
  explicit counting(kernel_choice choice) : memory(), block(memory, 1 << 20), k(memory, choice) { memory.reset(); }
  counted_dram memory;
  region<counted_dram> block;
  charged_kernels<counted_dram> k;
};

TEST(ChargedKernels, LoadsAreOfTheirLines) {
  for (const bool dependent : {false, true}) {
    counting t({load_kind::scalar, store_kind::plain, 256, dependent});
    walk way{.base = t.block.start(), .distance = 512, .places = 100, .bytes = 256};
    t.k.begin();
    t.k.load(way, 100);
    t.k.finish();
    EXPECT_EQ(t.memory.total().lines_read, 400U) << dependent;
    EXPECT_EQ(t.memory.total().device_lines_read, 100U);
    EXPECT_EQ(t.memory.total().lines_flushed, 0U);
  }
}

TEST(ChargedKernels, CopiesReadTheirLinesAndStoreToNoneOfThem) {
  for (const bool dependent : {false, true}) {
    counting t({load_kind::scalar, store_kind::plain, 4096, dependent, true});
    walk way{.base = t.block.start(), .distance = 4096, .places = 100, .bytes = 4096};
    t.k.begin();
    t.k.load(way, 100);
    t.k.finish();
    EXPECT_EQ(t.memory.total().lines_read, 6400U) << dependent;
    EXPECT_EQ(t.memory.total().lines_flushed, 0U);
    EXPECT_EQ(t.memory.total().lines_copied, 0U);
  }
}

TEST(ChargedKernels, UnalignedLoadsAreOfTwoLines) {
  counting t({load_kind::scalar, store_kind::plain, 64, true});
  walk way{.base = t.block.start() + 32, .distance = 256, .places = 10, .bytes = 64};
  t.k.begin();
  t.k.load(way, 10);
  EXPECT_EQ(t.memory.total().lines_read, 20U);
}

TEST(ChargedKernels, FlushesAndFencesAreAsManyAsAskedFor) {
  struct expectation {
    std::uint64_t bytes, fence, accesses, flushed, fences;
  };
  for (const expectation& e : {expectation{64, fence_never, 100, 100, 0}, expectation{64, 64, 100, 100, 100},
                               expectation{64, 256, 100, 100, 25}, expectation{256, 256, 10, 40, 10},
                               expectation{4096, 256, 2, 128, 32}, expectation{256, 1024, 10, 40, 2}}) {
    counting t({load_kind::scalar, store_kind::clwb, e.bytes, false});
    walk way{.base = t.block.start(), .distance = e.bytes, .places = 50, .bytes = e.bytes, .fence_bytes = e.fence};
    t.k.store(way, e.accesses);
    EXPECT_EQ(t.memory.total().lines_flushed, e.flushed) << e.bytes << " " << e.fence;
    EXPECT_EQ(t.memory.total().fences, e.fences) << e.bytes << " " << e.fence;
    EXPECT_EQ(t.memory.total().lines_copied, 0U);
  }
}

TEST(ChargedKernels, NonTemporalStoresAreCopies) {
  counting t({load_kind::scalar, store_kind::ntstore, 1024, false});
  walk way{.base = t.block.start(), .distance = 1024, .places = 10, .bytes = 1024};
  t.k.store(way, 10);
  EXPECT_EQ(t.memory.total().lines_copied, 160U);
  EXPECT_EQ(t.memory.total().lines_flushed, 0U);
  for (std::uint64_t i = 0; i < 10'240; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, t.block.start() + i, sizeof word);
    ASSERT_EQ(word, stored_word) << i;
  }
}

}  // namespace
}  // namespace pmlab::microbench
