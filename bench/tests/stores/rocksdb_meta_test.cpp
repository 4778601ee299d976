// The peer rocksdb_meta is right: its volume is as a map of blocks, also after reopening and after a crash.
#include "bench/stores/peers/rocksdb_meta.hpp"
#include "bench/stores/peers/device_region.hpp"
#include "bench/stores/peers/medium_device.hpp"

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/wrapper.hpp>
#include <pmlab/media/dram.hpp>

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::tests {
namespace {

constexpr std::uint32_t unit = 4096;
constexpr std::uint32_t units = 1500;  // units of the volume, no multiple of a row
constexpr blocks::geometry data_drive{.blocks = 1700, .block_bytes = unit, .atomic_bytes = 0, .volatile_cache = false};
constexpr blocks::geometry meta_drive{.blocks = 65536, .block_bytes = 512, .atomic_bytes = 0, .volatile_cache = false};

// Cuts the power after a number of requests, of all devices that have it: the last one is made by half, later ones are
// not made at all.
struct power {
  std::atomic<std::int64_t> left{std::numeric_limits<std::int64_t>::max()};
  [[nodiscard]] bool is_off() const noexcept { return left.load() <= 0; }
};

class powered : public blocks::wrapper<blocks::reference<blocks::memory>> {
 public:
  powered(blocks::memory& of, power& from) : wrapper(std::in_place, of), power_(from) {}
  class queue : public blocks::reference<blocks::memory>::queue {
   public:
    queue(powered& of, unsigned depth)
        : blocks::reference<blocks::memory>::queue(of.inner(), depth), power_(of.power_) {}
    [[nodiscard]] std::size_t submit(std::span<const blocks::request> requests) {
      std::vector<blocks::request> made(requests.begin(), requests.end());
      for (blocks::request& r : made) {
        if (r.what == blocks::operation::read) continue;
        const std::int64_t left = power_.left.fetch_sub(1);
        if (left == 1) r.count /= 2;
        if (left < 1 || r.count == 0) r.what = blocks::operation::flush;
      }
      return blocks::reference<blocks::memory>::queue::submit(made);
    }

   private:
    power& power_;
  };

 private:
  power& power_;
};

// Each unit holds a number: of the write, which tells its content. 0: zeros.
void fill(std::span<std::byte> data, std::uint64_t number) {
  for (std::size_t at = 0; at < data.size(); at += 8) std::memcpy(data.data() + at, &number, 8);
}
[[nodiscard]] std::optional<std::uint64_t> number_in(std::span<const std::byte> data) {
  std::uint64_t number = 0;
  std::memcpy(&number, data.data(), 8);
  for (std::size_t at = 0; at < data.size(); at += 8)
    if (std::memcmp(data.data() + at, &number, 8) != 0) return std::nullopt;
  return number;
}

// Random operations of one thread on a store, and what they must leave.
class model {
 public:
  explicit model(std::uint64_t seed) : random_(seed) {
    for (blocks::buffer& b : data_) b = blocks::buffer(std::size_t{most} * unit);
  }

  // Until `operations` are done, or the power is off.
  void run(stores::rocksdb_meta& store, unsigned operations, const power& from) {
    stores::rocksdb_meta::queue queue(store, depth);
    unsigned begun = 0;
    while (!from.is_off() && (begun < operations || queue.in_flight() > 0)) {
      if (begun < operations && queue.in_flight() < depth) {
        begun += begin(queue) ? 1 : 0;
        if (queue.in_flight() < depth && !random_.one_in(4)) continue;
      }
      std::array<blocks::completion, 4> done;
      const std::size_t count = queue.reap(done, 1);
      if (from.is_off()) break;  // not acknowledged: it was reaped after
      for (std::size_t i = 0; i < count; ++i) end(done[i]);
    }
    // Those under way may be there or not.
  }

  void check(stores::rocksdb_meta& store) {
    stores::rocksdb_meta::queue queue(store, 1);
    blocks::buffer data(unit);
    for (std::uint32_t u = 0; u < units; ++u) {
      ASSERT_TRUE(queue.read(std::uint64_t{u} * unit, data.bytes(), 0));
      std::array<blocks::completion, 1> done;
      ASSERT_EQ(queue.reap(done, 1), 1U);
      ASSERT_TRUE(done[0].succeeded());
      const std::optional<std::uint64_t> found = number_in(data.bytes());
      ASSERT_TRUE(found) << "unit " << u << " is torn";
      const auto under_way = may_be_.find(u);
      ASSERT_TRUE(*found == right_[u] || (under_way != may_be_.end() && under_way->second == *found))
          << "unit " << u << " has write " << *found << ", not " << right_[u];
      right_[u] = *found;
    }
    may_be_.clear();
    operations_ = {};
  }

 private:
  static constexpr unsigned depth = 16;
  static constexpr std::uint32_t most = 8;  // units of an operation

  struct operation {
    std::uint32_t first = 0, count = 0;  // 0: none
    bool reads = false;
    std::uint64_t number = 0;
  };

  bool begin(stores::rocksdb_meta::queue& queue) {
    std::size_t at = 0;
    while (operations_[at].count != 0) ++at;
    const auto count = static_cast<std::uint32_t>(1 + random_.below(random_.one_in(2) ? 1 : most));
    // Half of them among a few units, so that writes replace deferred ones.
    const auto first = static_cast<std::uint32_t>(random_.below(random_.one_in(2) ? 40 : units - count));
    for (std::uint32_t u = first; u < first + count; ++u)
      for (const operation& o : operations_)
        if (u >= o.first && u < o.first + o.count) return false;
    operation& o = operations_[at];
    o = {first, count, random_.one_in(3), ++numbers_};
    const std::span<std::byte> data = data_[at].bytes().first(std::size_t{count} * unit);
    const std::uint64_t offset = std::uint64_t{first} * unit;
    bool begun = false;
    if (o.reads) {
      begun = queue.read(offset, data, at);
    } else if (random_.one_in(10)) {
      o.number = 0;
      begun = queue.discard(offset, data.size(), at);
    } else {
      fill(data, o.number);
      begun = queue.write(offset, data, at);
    }
    EXPECT_TRUE(begun);
    if (!o.reads)
      for (std::uint32_t u = first; u < first + count; ++u) may_be_[u] = o.number;
    return true;
  }

  void end(const blocks::completion& done) {
    operation& o = operations_[done.tag];
    EXPECT_TRUE(done.succeeded()) << blocks::describe(done.error);
    for (std::uint32_t i = 0; i < o.count; ++i) {
      if (o.reads) {
        const auto found = number_in(data_[done.tag].bytes().subspan(std::size_t{i} * unit, unit));
        EXPECT_EQ(found, std::optional(right_[o.first + i])) << "unit " << o.first + i;
      } else {
        right_[o.first + i] = o.number;
        may_be_.erase(o.first + i);
      }
    }
    o = {};
  }

  splitmix64 random_;
  std::vector<std::uint64_t> right_ = std::vector<std::uint64_t>(units);
  std::map<std::uint32_t, std::uint64_t> may_be_;  // values that operations under way may leave
  std::array<operation, depth> operations_{};
  std::array<blocks::buffer, depth> data_;
  std::uint64_t numbers_ = 0;
};

struct way {
  std::uint64_t deferred_bytes = 0;
  bool checksums = false;
};

[[nodiscard]] stores::rocksdb_meta_options options_of(const way& w, bool format) {
  return {.volume_bytes = std::uint64_t{units} * unit,
          .deferred_bytes = w.deferred_bytes,
          .checksums = w.checksums,
          .format = format,
          .threads = 1};
}

class RocksDbMeta : public testing::TestWithParam<way> {};

TEST_P(RocksDbMeta, is_as_a_map_of_blocks_and_keeps_it_over_reopening) {
  constexpr std::uint64_t seed = 7;
  SCOPED_TRACE("seed " + std::to_string(seed));
  blocks::any_device data(std::in_place_type<blocks::memory>, data_drive);
  blocks::any_device meta(std::in_place_type<blocks::counted<blocks::memory>>, meta_drive);
  model right(seed);
  const power on;
  std::uint64_t free_bytes = 0;
  for (int round = 0; round < 3; ++round) {
    stores::rocksdb_meta store(data, meta, options_of(GetParam(), round == 0));
    if (round != 0) {
      EXPECT_EQ(store.stats().free_bytes, free_bytes) << "the free map is rebuilt exactly";
    }
    right.run(store, 6000, on);
    right.check(store);
    const stores::rocksdb_meta_stats s = store.stats();
    EXPECT_LT(s.commits, s.redirected + s.deferred) << "one sync for several writes";
    if (GetParam().deferred_bytes > 0) {
      EXPECT_GT(s.deferred, 100U);
    }
    free_bytes = s.free_bytes;
  }
  const auto written = meta.get<blocks::counted<blocks::memory>>()->of(blocks::stream::manifest);
  EXPECT_LT(written.writes, 2000U) << "a sync of the log is one write";
}

// PMLAB_SEED=N: that seed alone, for a failure.
TEST_P(RocksDbMeta, keeps_acknowledged_writes_over_a_crash) {
  const char* const given = std::getenv("PMLAB_SEED");
  const std::uint64_t begin = given != nullptr ? std::stoull(given) : 1;
  for (std::uint64_t seed = begin; seed < begin + (given != nullptr ? 1 : 6) && !HasFailure(); ++seed) {
    SCOPED_TRACE("again by PMLAB_SEED=" + std::to_string(seed));
    blocks::memory data_memory(data_drive);
    blocks::memory meta_memory(meta_drive);
    model right(seed);
    splitmix64 random(seed);
    for (int round = 0; round < 3 && !HasFailure(); ++round) {
      power from;
      blocks::any_device data(std::in_place_type<powered>, data_memory, from);
      blocks::any_device meta(std::in_place_type<powered>, meta_memory, from);
      stores::rocksdb_meta store(data, meta, options_of(GetParam(), round == 0));
      right.check(store);
      from.left = static_cast<std::int64_t>(1 + random.below(3000));
      right.run(store, 100'000, from);
    }
    blocks::any_device data(std::in_place_type<blocks::reference<blocks::memory>>, data_memory);
    blocks::any_device meta(std::in_place_type<blocks::reference<blocks::memory>>, meta_memory);
    stores::rocksdb_meta store(data, meta, options_of(GetParam(), false));
    right.check(store);
  }
}

INSTANTIATE_TEST_SUITE_P(Deferred, RocksDbMeta,
                         testing::Values(way{0, false}, way{2 * unit, false}, way{2 * unit, true}), [](const auto& p) {
                           return std::to_string(p.param.deferred_bytes / unit) + "_units" +
                                  (p.param.checksums ? "_with_checksums" : "");
                         });

TEST(RocksDbMetaDevices, a_checksum_finds_data_that_the_drive_has_changed) {
  for (const bool checksums : {false, true}) {
    SCOPED_TRACE(checksums ? "with checksums" : "without");
    blocks::memory memory(data_drive);
    blocks::any_device data(std::in_place_type<blocks::reference<blocks::memory>>, memory);
    blocks::any_device meta(std::in_place_type<blocks::memory>, meta_drive);
    stores::rocksdb_meta store(data, meta, options_of({.checksums = checksums}, true));
    stores::rocksdb_meta::queue queue(store, 1);
    blocks::buffer bytes(unit);
    fill(bytes.bytes(), 0x1234);
    std::array<blocks::completion, 1> done;
    ASSERT_TRUE(queue.write(0, bytes.bytes(), 0));
    ASSERT_EQ(queue.reap(done, 1), 1U);
    std::size_t changed = 0;
    for (std::byte& b : memory.content()) {
      if (b != std::byte{0x34}) continue;
      b = std::byte{0x35};
      ++changed;
    }
    ASSERT_GT(changed, 0U);
    ASSERT_TRUE(queue.read(0, bytes.bytes(), 0));
    ASSERT_EQ(queue.reap(done, 1), 1U);
    EXPECT_EQ(done[0].error, checksums ? std::errc::bad_message : std::errc{});
  }
}

TEST(RocksDbMetaDevices, works_in_a_medium_and_in_a_region_of_a_drive) {
  media::dram memory;
  const power on;
  {
    blocks::any_device data(std::in_place_type<blocks::memory>, data_drive);
    blocks::any_device meta(std::in_place_type<stores::medium_device<media::dram>>, memory, std::uint64_t{64} << 20);
    stores::rocksdb_meta store(data, meta, options_of({}, true));
    model right(3);
    right.run(store, 1000, on);
    right.check(store);
  }
  blocks::any_device drive(std::in_place_type<blocks::memory>,
                           blocks::geometry{.blocks = 32768, .volatile_cache = true});
  blocks::any_device data(std::in_place_type<stores::device_region>, drive, 0U, 1700U);
  blocks::any_device meta(std::in_place_type<stores::device_region>, drive, 1700U, 32768U - 1700);
  stores::rocksdb_meta store(data, meta, options_of({.deferred_bytes = unit}, true));
  model right(4);
  right.run(store, 1000, on);
  right.check(store);
}

TEST(RocksDbMetaDevices, a_full_drive_refuses_writes_and_goes_on) {
  blocks::any_device data(std::in_place_type<blocks::memory>,
                          blocks::geometry{.blocks = units, .block_bytes = unit, .volatile_cache = false});
  blocks::any_device meta(std::in_place_type<blocks::memory>, meta_drive);
  stores::rocksdb_meta store(data, meta, options_of({}, true));
  stores::rocksdb_meta::queue queue(store, 1);
  blocks::buffer bytes(unit);
  std::array<blocks::completion, 1> done;
  for (std::uint32_t u = 0; u < units; ++u) {
    ASSERT_TRUE(queue.write(std::uint64_t{u} * unit, bytes.bytes(), u));
    ASSERT_EQ(queue.reap(done, 1), 1U);
    ASSERT_TRUE(done[0].succeeded());
  }
  ASSERT_TRUE(queue.write(0, bytes.bytes(), 0));
  ASSERT_EQ(queue.reap(done, 1), 1U);
  EXPECT_EQ(done[0].error, std::errc::no_space_on_device);
  ASSERT_TRUE(queue.discard(unit, unit, 0));
  ASSERT_EQ(queue.reap(done, 1), 1U);
  ASSERT_TRUE(queue.write(0, bytes.bytes(), 0));
  ASSERT_EQ(queue.reap(done, 1), 1U);
  EXPECT_TRUE(done[0].succeeded());
}

}  // namespace
}  // namespace pmlab::tests
