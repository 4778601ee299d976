// A key-value device that was filled, over a grid of drives, memories and values: after half of the pairs are deleted,
// two fifths of the first capacity can be stored again, in bounded work.
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/counted.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "checker/verify/partly_full.hpp"
#include "stores/tests/kv_devices.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

namespace pmlab::tests::kv_full_test {
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
  // Until it is full for the least values, too, and for each of some keys: where the memory is full, it is so for keys
  // of one part of the index first. Returns the bytes that the pairs take on the drive.
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
  // Pairs of one size until it is full, for keys of each part of the index. Returns how many.
  std::uint64_t fill_with_pairs() {
    std::uint64_t pairs = 0;
    for (int refused = 0; refused < 30;) {
      const bool is_there = put_one(values_.bytes);
      refused = is_there ? 0 : refused + 1;
      pairs += is_there ? 1 : 0;
    }
    return pairs;
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
    std::uint64_t left = 0;
    for (const pair& p : pairs_) left += room_of(p);
    erase_while(in_order, [&](const pair& next) {
      if (left <= bytes) return false;
      left -= room_of(next);
      return true;
    });
  }
  void erase_down_to_pairs(std::uint64_t count, bool in_order) {
    std::uint64_t left = pairs_.size();
    erase_while(in_order, [&](const pair& /*next*/) { return left-- > count; });
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
  template <class Goes>
  void erase_while(bool in_order, Goes&& goes) {
    if (!in_order)
      for (std::size_t i = pairs_.size(); i > 1; --i) std::swap(pairs_[i - 1], pairs_[random_.below(i)]);
    std::size_t n = 0;
    for (; n < pairs_.size() && goes(pairs_[n]); ++n)
      ASSERT_TRUE(device_->of.erase(pairs_[n].first)) << pairs_[n].first;
    pairs_.erase(pairs_.begin(), pairs_.begin() + static_cast<std::ptrdiff_t>(n));
  }
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
  double worst_share = 1;  // share of the first capacity that was stored again
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

// The memory is full before the drive: a put that is refused leaves nothing behind, neither a bucket nor a page of it,
// and two fifths can be stored again. Keys of a full part of the index are in others then: they are found, and deleted,
// and found again when the device is opened or rebuilt.
TEST(KvFull, a_put_that_finds_no_memory_takes_none) {
  int refused = 0;
  double worst_share = 1;
  for (const std::uint64_t kib : {60U, 70U, 80U, 100U, 120U, 160U, 200U, 240U})
    for (const bool in_one_bucket : {false, true}) {
      const drive_case d{200, 16384, 64, 1000, 4, 0};
      const value_case v{10, in_one_bucket};
      SCOPED_TRACE(describe(d, v) + ", memory of " + std::to_string(kib) + " KiB");
      filled f(d, v, kib << 10);
      const std::uint64_t first = f.fill_with_pairs();
      ASSERT_LT(f.of().stats().used_bytes, f.of().stats().capacity_bytes);
      for (int i = 0; i < 300; ++i) {
        const std::uint64_t used = f.of().stats().used_bytes;
        if (f.put_one(v.bytes)) continue;
        ASSERT_EQ(f.of().stats().used_bytes, used) << i;
        ++refused;
      }
      for (int round = 0; round < 6; ++round) {
        f.erase_down_to_pairs(first / 2, round % 3 == 1);
        if (round % 3 == 2) f.open();
        const double share = static_cast<double>(f.fill_with_pairs()) / static_cast<double>(first);
        EXPECT_GE(share, 0.4) << "in round " << round;
        worst_share = std::min(worst_share, share);
        f.expect_all();
      }
    }
  EXPECT_GT(refused, 1000);
  RecordProperty("worst_share", std::to_string(worst_share));
}

std::string key_of(std::uint64_t n) { return "key-" + std::to_string(n); }

struct refusing_hash : stores::detail::kv_ssd::default_hash {
  template <media::medium Medium>
  using index = verify::partly_full<Medium>;
};

// Keys whose chain finds no space for them: they are found, overwritten, deleted and iterated over as others, also
// behind an opening that replays their overwrites, and in a memory that was rebuilt.
TEST(KvFull, keys_in_outlying_slots_are_as_others) {
  using refusing_device = stores::kv_device<media::dram, flash, refusing_hash>;
  splitmix64 random(seed_or(53));
  auto memory = std::make_unique<media::dram>();
  flash on(1U, blocks::geometry{.blocks = 2048, .block_bytes = 512});
  std::map<std::string, std::string> right;
  const auto expect_right = [&](refusing_device& d) {
    for (std::uint64_t n = 0; n < 600; ++n) {
      const auto found = d.get(key_of(n));
      const auto expected = right.find(key_of(n));
      ASSERT_EQ(found.has_value(), expected != right.end()) << n;
      if (found) {
        ASSERT_TRUE(text_of(*found) == expected->second) << n;
      }
    }
    ASSERT_EQ(d.list("", 1000).size(), right.size());
    const auto report = d.check();
    ASSERT_TRUE(report.ok()) << report.violations.front();
    ASSERT_EQ(report.entries, right.size());
  };
  for (int round = 0; round < 6; ++round) {
    {
      auto d = refusing_device::open(*memory, on, small);
      ASSERT_NO_FATAL_FAILURE(expect_right(d));
      for (int i = 0; i < 1500; ++i) {
        const std::string key = key_of(random.below(600));
        if (random.below(4) == 0) {
          ASSERT_EQ(d.erase(key), right.erase(key) == 1);
        } else {
          right[key] = std::string(random.below(200), static_cast<char>('a' + i % 26));
          ASSERT_NE(d.put(key, bytes_of(right[key])), kv_outcome::full);
        }
      }
      if (round == 3) {
        ASSERT_TRUE(d.empty_buffer());
      }
      ASSERT_NO_FATAL_FAILURE(expect_right(d));
    }
    if (round != 3) continue;
    memory = std::make_unique<media::dram>();
    stores::kv_rebuilt found;
    auto d = refusing_device::rebuild(*memory, on, small, found);
    for (const auto& [key, value] : right) {
      const auto there = d.get(key);
      ASSERT_TRUE(there && text_of(*there) == value) << key;
    }
    // Deleted keys may be there again.
    for (std::uint64_t n = 0; n < 600; ++n)
      if (!right.contains(key_of(n))) static_cast<void>(d.erase(key_of(n)));
  }
}

struct one_hash {
  template <media::medium Medium>
  using index = verify::partly_full<Medium>;
  std::uint64_t operator()(std::uint8_t space, std::string_view key) const noexcept {
    return key.starts_with("same") ? 0x1234567800 : stores::detail::kv_ssd::default_hash{}(space, key);
  }
};

// More keys of one hash than a chain has slots, in a memory that was full: they are refused, and no other chain
// changes.
TEST(KvFull, a_chain_that_is_full_refuses_its_keys_in_a_memory_that_was_full) {
  media::dram memory;
  flash on(1U, blocks::geometry{.blocks = 4096, .block_bytes = 512});
  auto d = stores::kv_device<media::dram, flash, one_hash>::open(memory, on, small);
  for (std::uint64_t n = 0; n < 100; ++n) ASSERT_EQ(d.put(key_of(n), bytes_of("x")), kv_outcome::added);
  std::set<std::string> there;
  for (std::uint64_t n = 0; n < 300; ++n) {
    const std::string key = "same" + std::to_string(n);
    if (d.put(key, bytes_of(key)) != kv_outcome::full) there.insert(key);
  }
  EXPECT_GE(there.size(), 253U);
  EXPECT_LE(there.size(), 256U);
  for (const std::string& key : there) {
    const auto found = d.get(key);
    ASSERT_TRUE(found && text_of(*found) == key) << key;
  }
  const auto report = d.check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
}

// A crash behind the reservation of a slot leaves a word without a record: opening removes it, unless it leads on.
TEST(KvFull, words_that_a_crash_left_without_a_record_are_removed) {
  media::dram memory;
  stores::detail::kv_ssd::word notes{stores::detail::kv_ssd::has_outlying_slots};
  using stores::detail::kv_ssd::place_word;
  using chains_type = stores::detail::kv_ssd::chains<media::dram>;
  chains_type index(memory, "index", notes, false, false);
  for (std::uint64_t hash = 1; hash <= 100; ++hash) {
    const std::uint64_t base = stores::detail::kv_ssd::base_of_hash(hash * golden_ratio, false);
    auto at = index.find(base, [](place_word) { return false; });
    ASSERT_TRUE(index.can_add(at));
    ASSERT_TRUE(index.is_empty(base));
    if (hash % 2 == 0) continue;
    ASSERT_TRUE(index.put(at, place_word::in_ring(static_cast<std::uint32_t>(hash), 1)));
    auto next = index.find(base, [](place_word) { return false; });
    ASSERT_TRUE(index.put(next, place_word::in_ring(static_cast<std::uint32_t>(hash + 1000), 1)));
    index.erase(index.find_place(base, place_word::in_ring(static_cast<std::uint32_t>(hash), 1)));
  }
  auto words = [&] {
    std::size_t n = 0;
    auto table = indexes::cceh<media::dram>::open(memory, "index");
    table.for_each([&](std::uint64_t, std::uint64_t) { ++n; });
    return n;
  };
  ASSERT_EQ(words(), 150U);
  index.recover([](std::uint64_t /*slot*/, place_word /*place*/) {});
  EXPECT_EQ(words(), 100U);
  for (std::uint64_t hash = 1; hash <= 100; hash += 2) {
    const std::uint64_t base = stores::detail::kv_ssd::base_of_hash(hash * golden_ratio, false);
    EXPECT_TRUE(index.find_place(base, place_word::in_ring(static_cast<std::uint32_t>(hash + 1000), 1)).found) << hash;
  }
}

}  // namespace
}  // namespace pmlab::tests::kv_full_test
