// Reads beside writes of the same chunk: each write is seen whole or not at all, and none without those that ended
// before it began; for each container of records, on drives that promise a block and on drives that promise nothing.
#include <pmlab/blocks/immediate_queue.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/wrapper.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::tests::chunk_overlap_test {
namespace {

constexpr std::uint32_t block = 4096;
constexpr blocks::geometry torn{.blocks = 128, .block_bytes = block, .atomic_bytes = 0, .volatile_cache = true};
constexpr blocks::geometry whole{.blocks = 128, .block_bytes = block, .atomic_bytes = block, .volatile_cache = true};
constexpr stores::chunk_store_options small{.chunk_bytes = 8 * block, .ring = 6};

// A drive that performs the first block of a read when it is submitted, and the others when it is reaped: all that is
// done between the two comes between its blocks. It keeps a block whole, and promises it.
class slow_reads {
 public:
  explicit slow_reads(const blocks::geometry& shape) : inner_(shape) {}
  [[nodiscard]] blocks::geometry shape() const noexcept { return inner_.shape(); }
  [[nodiscard]] std::string name() const { return "slow reads"; }
  [[nodiscard]] std::string failure() const { return {}; }

  class queue {
   public:
    queue(slow_reads& of, unsigned depth) : queue_(of.inner_, 1), depth_(depth) {}
    [[nodiscard]] std::size_t submit(std::span<const blocks::request> requests) {
      const std::size_t taken = std::min(requests.size(), depth_ - in_flight_.size());
      for (const blocks::request& r : requests.first(taken)) {
        blocks::request now = r;
        if (r.what == blocks::operation::read) now.count = 1;
        static_cast<void>(blocks::perform(queue_, now));
        in_flight_.push_back(r);
      }
      return taken;
    }
    [[nodiscard]] std::size_t reap(std::span<blocks::completion> completions, std::size_t /*at_least*/) {
      const std::size_t count = std::min(completions.size(), in_flight_.size());
      for (blocks::completion& c : completions.first(count)) {
        blocks::request rest = in_flight_.front();
        in_flight_.pop_front();
        c = {rest.tag, std::errc{}};
        if (rest.what != blocks::operation::read || rest.count == 1) continue;
        ++rest.first;
        --rest.count;
        rest.data += block;
        static_cast<void>(blocks::perform(queue_, rest));
      }
      return count;
    }
    [[nodiscard]] std::size_t in_flight() const noexcept { return in_flight_.size(); }
    [[nodiscard]] unsigned depth() const noexcept { return depth_; }

   private:
    blocks::memory::queue queue_;
    unsigned depth_;
    std::deque<blocks::request> in_flight_;
  };

 private:
  blocks::memory inner_;
};
static_assert(blocks::device<slow_reads>);

template <class Device>
struct in_memory {
  using store = stores::chunk_store<media::dram, Device>;
  media::dram pool{};
  [[nodiscard]] store open(Device& drive) { return store::open(pool, drive, small); }
};
template <class Device>
struct in_memory_by_copy {
  using store = stores::chunk_store<media::dram, Device>;
  media::dram pool{};
  [[nodiscard]] store open(Device& drive) {
    return store::open(pool, drive, {.chunk_bytes = 8 * block, .ring = 6, .merge = stores::merge_policy::copy});
  }
};
template <class Device>
struct on_blocks {
  using store = stores::chunk_store<stores::records_on_blocks, Device>;
  [[nodiscard]] store open(Device& drive) { return store::open(drive, small); }
};
template <class Device>
struct on_pairs {
  using pairs_type = stores::kv_device<media::dram, blocks::memory>;
  using store = stores::chunk_store<stores::records_on_kv<pairs_type>, Device>;
  media::dram pool{};
  blocks::memory flash{blocks::geometry{.blocks = 2049, .block_bytes = 512}};
  pairs_type pairs = pairs_type::open(pool, flash,
                                      {.unit_bytes = 64,
                                       .superblock_bytes = 16384,
                                       .over_provisioning = 0.2,
                                       .buffer_bytes = 16384,
                                       .largest_value = 4096});
  [[nodiscard]] store open(Device& drive) { return store::open(pairs, drive, small, {.cache_bytes = 2100}); }
};

[[nodiscard]] std::vector<std::byte> filled(std::uint64_t blocks_of, std::uint64_t value) {
  std::vector<std::byte> data(blocks_of * block);
  for (std::size_t at = 0; at < data.size(); at += sizeof value) std::memcpy(data.data() + at, &value, sizeof value);
  return data;
}

template <template <class> class Container>
struct named {
  template <class Device>
  using on = Container<Device>;
};
template <class Container>
class ChunkOverlap : public ::testing::Test {};
using containers = ::testing::Types<named<in_memory>, named<in_memory_by_copy>, named<on_blocks>, named<on_pairs>>;
TYPED_TEST_SUITE(ChunkOverlap, containers);

TYPED_TEST(ChunkOverlap, a_read_sees_no_write_without_those_that_ended_before_it) {
  for (const auto& shape : {torn, whole}) {
    typename TypeParam::template on<slow_reads> container;
    slow_reads drive(shape);
    auto store = container.open(drive);
    auto disk = store.volume("a", {.bytes = 32 * block});
    disk.write(0, filled(8, 1));
    stores::chunk_queue queue(store, 1);
    blocks::buffer got(4 * std::size_t{block});
    ASSERT_TRUE(queue.read(disk, 0, got.bytes(), 0));
    // The first block of the read is read.
    disk.write(0, filled(1, 2));
    disk.write(std::uint64_t{2} * block, filled(1, 3));
    std::array<stores::chunk_completion, 1> done;
    while (queue.reap(done, 1) == 0) continue;
    EXPECT_EQ(done[0].error, std::errc{});
    std::array<std::uint64_t, 4> seen{};
    for (std::size_t b = 0; b < seen.size(); ++b) std::memcpy(&seen[b], got.data() + b * block, sizeof seen[b]);
    EXPECT_EQ(seen, (std::array<std::uint64_t, 4>{1, 1, 1, 1}));
    // With no read under way a block is written in its place again, where the drive promises it.
    const std::uint64_t before = store.stats().in_place;
    disk.write(std::uint64_t{5} * block, filled(1, 4));
    EXPECT_EQ(store.stats().in_place - before, shape.atomic_bytes == block ? 1U : 0U);
  }
}

// One thread writes a chunk's blocks one by one, each time with the next number, and then all of them; other threads
// read the chunk. In the order of writing the numbers of a snapshot fall by one at one place at most.
TYPED_TEST(ChunkOverlap, a_chunk_is_read_as_of_one_moment) {
  for (const auto& shape : {torn, whole}) {
    typename TypeParam::template on<blocks::memory> container;
    blocks::memory drive(shape);
    auto store = container.open(drive);
    auto disk = store.volume("a", {.bytes = 32 * block});
    disk.write(0, filled(8, 1));
    std::atomic<bool> ended{false};
    std::thread writer([&] {
      for (std::uint64_t number = 2; !ended.load(); ++number) {
        if (number % 3 == 0) {
          disk.write(0, filled(8, number));
          continue;
        }
        const auto data = filled(1, number);
        for (std::uint64_t b = 0; b < 8; ++b) disk.write(b * block, data);
      }
    });
    int wrong = 0;
    std::vector<std::byte> got(std::size_t{8} * block);
    for (int i = 0; i < 1500; ++i) {
      disk.read(0, got);
      std::array<std::uint64_t, 8> seen{};
      for (std::size_t b = 0; b < seen.size(); ++b) {
        std::memcpy(&seen[b], got.data() + b * block, sizeof seen[b]);
        wrong += std::memcmp(got.data() + b * block, filled(1, seen[b]).data(), block) == 0 ? 0 : 1;
      }
      // Blocks that the round has reached, and then those of the round before.
      const bool falls_once = std::ranges::is_sorted(seen, std::greater<>()) && seen.front() - seen.back() <= 1;
      wrong += falls_once && (seen.front() % 3 != 0 || seen.front() == seen.back()) ? 0 : 1;
    }
    ended = true;
    writer.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_TRUE(store.check().ok());
  }
}

}  // namespace
}  // namespace pmlab::tests::chunk_overlap_test
