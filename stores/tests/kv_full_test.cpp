// A key-value device that was filled, over a grid of drives, memories and values: after half of the pairs are deleted, two
// fifths of the first capacity can be stored again, in bounded work.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "stores/tests/kv_devices.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

using stores::kv_outcome;

struct drive_case {
  std::uint64_t superblocks;
  std::size_t superblock_bytes;
  std::size_t unit_bytes;
  std::size_t largest_value;
  std::size_t buffers;  // the least write buffer, so often
  double over_provisioning;
};
// Values of one size; 0: of any size, to the largest.
struct value_case {
  std::size_t bytes;
  bool in_one_bucket;
};

std::string describe(const drive_case& d, const value_case& v) {
  return std::to_string(d.superblocks) + " superblocks of " + std::to_string(d.superblock_bytes) + ", units of " +
         std::to_string(d.unit_bytes) + ", " + std::to_string(d.buffers) + " buffers, spare " +
         std::to_string(d.over_provisioning) + ", values of " + std::to_string(v.bytes) +
         (v.in_one_bucket ? " in one bucket" : "");
}

class filled {
 public:
  // `memory_bytes`: of the medium; 0: no limit.
  filled(const drive_case& d, const value_case& v, std::uint64_t memory_bytes = 0)
      : largest_(d.largest_value),
        values_(v),
        memory_(media::dram_options{.capacity_bytes = memory_bytes}),
        on_(1U, blocks::geometry{.blocks = (d.superblocks * d.superblock_bytes + 4096) / 512, .block_bytes = 512}) {
    options_.unit_bytes = d.unit_bytes;
    options_.superblock_bytes = d.superblock_bytes;
    options_.largest_value = d.largest_value;
    options_.bucket_bytes = 320;
    options_.over_provisioning = d.over_provisioning;
    using namespace stores::detail::kv_ssd;
    options_.buffer_bytes = d.buffers * 2 *
                            (lines_for(record_bytes(most_key_bytes, d.largest_value)) + lines_for(std::size_t{320})) *
                            media::cache_line_bytes;
    open();
  }
  void open() {
    device_.reset();
    device_ = std::make_unique<held>(memory_, on_, options_);
  }
  // Until it is full for the least values, too, and for each of some keys: where the memory is full, it is so for keys of
  // one part of the index first. Returns the bytes that the pairs take on the drive.
  std::uint64_t fill() {
    std::uint64_t bytes = 0;
    int refused = 0;
    for (std::size_t most = largest_; refused < 30;) {
      const std::size_t size = values_.bytes != 0 ? std::min(values_.bytes, most) : random_.below(most);
      if (put_one(size)) {
        refused = 0;
        bytes += room_of(pairs_.back());
      } else {
        most = std::max<std::size_t>(size / 2, 1);
        ++refused;
      }
    }
    return bytes;
  }
  // A new pair. False: the device is full.
  bool put_one(std::size_t size) {
    std::string key =
        (values_.in_one_bucket ? "same" : std::to_string(1000 + random_.below(9000))) + "-" + std::to_string(next_++);
    if (device_->of.put(key, bytes_of(random_value(random_, size))) == kv_outcome::full) return false;
    pairs_.push_back({std::move(key), size});
    return true;
  }
  // Deletes pairs until those that are left take at most `bytes`.
  void erase_down_to(std::uint64_t bytes, bool in_order) {
    if (!in_order)
      for (std::size_t i = pairs_.size(); i > 1; --i) std::swap(pairs_[i - 1], pairs_[random_.below(i)]);
    std::uint64_t left = 0;
    for (const pair& p : pairs_) left += room_of(p);
    std::size_t n = 0;
    for (; n < pairs_.size() && left > bytes; ++n) {
      ASSERT_TRUE(device_->of.erase(pairs_[n].first)) << pairs_[n].first;
      left -= room_of(pairs_[n]);
    }
    pairs_.erase(pairs_.begin(), pairs_.begin() + static_cast<std::ptrdiff_t>(n));
  }
  void expect_all() {
    for (const auto& [key, size] : pairs_) {
      const auto found = device_->of.get(key);
      ASSERT_TRUE(found && found->size() == size) << key;
    }
    const auto report = device_->of.check();
    ASSERT_TRUE(report.ok()) << report.violations.front();
  }
  device& of() { return device_->of; }
  std::uint64_t written() { return on_.inner().total().bytes_written; }

 private:
  struct held {
    held(media::dram& m, flash& f, const stores::kv_options& o) : of(device::open(m, f, o)) {}
    device of;
  };
  using pair = std::pair<std::string, std::size_t>;  // key, bytes of the value
  [[nodiscard]] std::uint64_t room_of(const pair& p) const {
    const std::size_t bytes = stores::detail::kv_ssd::record_bytes(p.first.size(), p.second);
    return stores::detail::kv_ssd::pieces_for(bytes, options_.unit_bytes) * options_.unit_bytes;
  }

  std::size_t largest_;
  value_case values_;
  media::dram memory_;
  flash on_;
  stores::kv_options options_;
  splitmix64 random_{seed_or(51)};
  std::vector<pair> pairs_;
  std::uint64_t next_ = 0;
  std::unique_ptr<held> device_;
};

// What each of three rounds of deletions and puts gives, and costs.
struct figures {
  double worst_share = 1;  // of the first capacity, that was stored again
  double written = 0;      // bytes to flash in a round, of the drive's
};
void empty_half_and_fill(filled& f, std::uint64_t first, std::uint64_t drive_bytes, figures& all) {
  for (int round = 0; round < 3; ++round) {
    f.erase_down_to(first / 2, round == 1);
    if (round == 2) f.open();
    const std::uint64_t before = f.written();
    const double share = static_cast<double>(f.fill()) / static_cast<double>(first);
    EXPECT_GE(share, 0.4) << "in round " << round;
    all.worst_share = std::min(all.worst_share, share);
    all.written = std::max(all.written, static_cast<double>(f.written() - before) / static_cast<double>(drive_bytes));
  }
  f.expect_all();
}

// All sizes that `open` accepts.
TEST(KvFull, two_fifths_of_the_capacity_are_stored_again_when_half_is_deleted) {
  figures all;
  int cases = 0;
  for (const std::size_t superblock_bytes : {std::size_t{4096}, std::size_t{16384}})
    for (const std::uint64_t superblocks : {6U, 7U, 8U, 12U, 40U})
      for (const std::size_t unit_bytes : {64U, 1024U})
        for (const std::size_t largest_value : {std::size_t{1000}, superblock_bytes - 400})
          for (const std::size_t buffers : {1U, 8U})
            for (const double spare : {0.0, 0.5})
              for (const value_case v :
                   {value_case{10, true}, value_case{300, false}, value_case{900, false}, value_case{0, true}}) {
                const drive_case d{superblocks, superblock_bytes, unit_bytes, largest_value, buffers, spare};
                SCOPED_TRACE(describe(d, v));
                std::unique_ptr<filled> f;
                const std::string refused = message_of([&] { f = std::make_unique<filled>(d, v); });
                // Five superblocks are in reserve, at least.
                ASSERT_EQ(refused.empty(), superblocks >= 7) << refused;
                if (!refused.empty()) continue;
                const std::uint64_t first = f->fill();
                ASSERT_GE(2 * first, f->of().stats().capacity_bytes);
                empty_half_and_fill(*f, first, superblocks * superblock_bytes, all);
                if (HasFailure()) return;
                ++cases;
              }
  EXPECT_EQ(cases, 512);
  EXPECT_LT(all.written, 10);
  RecordProperty("worst_share", std::to_string(all.worst_share));
  RecordProperty("written", std::to_string(all.written));
}

// The memory is full before the drive: a put that is refused leaves nothing behind, neither a bucket nor a page of it.
TEST(KvFull, a_put_that_finds_no_memory_takes_none) {
  int refused = 0;
  for (const std::uint64_t kib : {60U, 80U, 120U, 160U, 240U})
    for (const bool in_one_bucket : {false, true}) {
      const drive_case d{60, 16384, 64, 1000, 4, 0};
      const value_case v{10, in_one_bucket};
      SCOPED_TRACE(describe(d, v) + ", memory of " + std::to_string(kib) + " KiB");
      filled f(d, v, kib << 10);
      const std::uint64_t first = f.fill();
      ASSERT_LT(first, f.of().stats().capacity_bytes);
      for (int i = 0; i < 300; ++i) {
        const std::uint64_t used = f.of().stats().used_bytes;
        if (f.put_one(v.bytes)) continue;
        ASSERT_EQ(f.of().stats().used_bytes, used) << i;
        ++refused;
      }
      f.erase_down_to(first / 2, false);
      // Not two fifths: a full part of the index refuses its keys while others have space.
      EXPECT_GE(3 * f.fill(), first);
      f.expect_all();
    }
  EXPECT_GT(refused, 1000);
}

}  // namespace
}  // namespace pmlab::tests
