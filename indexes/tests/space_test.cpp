// Space is reclaimed: after any history an index holds at most twice the bytes of a fresh one with the same entries, in
// the medium and together with its DRAM, not counting retired blocks; and a scan over an erased range costs only its
// remaining entries.
//
// Fresh: each entry that is left, inserted once, in the order in which the history inserted it. Hash tables never
// shrink: for them it is a fresh one with as many entries as there ever were at a time.
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/counted.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/counted_index.hpp"
#include "support/medium_under_test.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"

namespace pmlab::tests {
namespace {

using indexes::index_stats;
using indexes::outcome;

// Retired blocks: two batches of the epochs, of nodes of half a kilobyte.
constexpr std::uint64_t waiting_bytes = std::uint64_t{64} << 10;

// Inserts and erases, and keeps the present entries in the order of insertion.
template <class Index>
class history {
 public:
  explicit history(Index& index) : index_(index) {}

  void insert(std::uint64_t key) {
    ASSERT_EQ(index_.insert(key, ~key), outcome::inserted) << key;
    inserted_.push_back(key);
    most_ = std::max(most_, ++entries_);
  }
  void erase(std::uint64_t key) {
    ASSERT_EQ(index_.erase(key), outcome::erased) << key;
    --entries_;
  }

  // The present keys, in the order of their last insertion.
  [[nodiscard]] std::vector<std::uint64_t> left() const {
    std::vector<std::uint64_t> keys;
    for (const std::uint64_t key : inserted_)
      if (index_.find(key)) keys.push_back(key);
    return keys;
  }
  // So many of the keys that were inserted last.
  [[nodiscard]] std::span<const std::uint64_t> latest(std::size_t count) const {
    return std::span(inserted_).last(count);
  }
  [[nodiscard]] std::size_t most() const { return most_; }

 private:
  Index& index_;
  std::vector<std::uint64_t> inserted_;
  std::size_t entries_ = 0;
  std::size_t most_ = 0;
};

template <class Setting>
class space : public testing::Test {
 protected:
  using index_type = typename Setting::index;
  static constexpr std::uint64_t window = 10'000;
  static constexpr std::uint64_t windows = 10;

  void expect_little(const history<index_type>& done) {
    const std::vector<std::uint64_t> left = done.left();
    medium_under_test<typename Setting::medium> other;
    auto fresh = index_type::open(*other.medium);
    if (is_ordered<typename Setting::kind>) {
      for (const std::uint64_t key : left) ASSERT_EQ(fresh.insert(key, ~key), outcome::inserted);
    } else {
      for (const std::uint64_t key : done.latest(done.most())) static_cast<void>(fresh.insert(key, ~key));
    }
    const index_stats now = index_.stats();
    const index_stats then = fresh.stats();
    ASSERT_EQ(now.entries, left.size());
    ASSERT_TRUE(index_.check().ok()) << index_.check().violations.front();
    std::printf("  %zu entries: %zu KiB in the medium (fresh: %zu), %zu in DRAM (%zu)\n", left.size(),
                static_cast<std::size_t>(now.medium_bytes >> 10), static_cast<std::size_t>(then.medium_bytes >> 10),
                static_cast<std::size_t>(now.dram_bytes >> 10), static_cast<std::size_t>(then.dram_bytes >> 10));
    EXPECT_LE(now.medium_bytes, 2 * then.medium_bytes + waiting_bytes);
    EXPECT_LE(now.medium_bytes + now.dram_bytes, 2 * (then.medium_bytes + then.dram_bytes) + waiting_bytes);
  }

  medium_under_test<typename Setting::medium> under_;
  index_type index_ = index_type::open(*under_.medium);
  history<index_type> history_{index_};
};

using everywhere = detail::joined<
    detail::on_media<offered_kinds, media::dram>::all,
    testing::Types<setting<kind<indexes::fast_fair>, media::pmem>, setting<kind<indexes::fp_tree>, media::pmem>>>::type;
TYPED_TEST_SUITE(space, everywhere, setting_name);

TYPED_TEST(space, of_a_rolling_window_of_ascending_keys) {
  for (std::uint64_t key = 0; key < this->window * this->windows; ++key) {
    this->history_.insert(key);
    if (key >= this->window) this->history_.erase(key - this->window);
  }
  this->expect_little(this->history_);
}

TYPED_TEST(space, of_a_rolling_window_of_descending_keys) {
  const std::uint64_t top = this->window * this->windows;
  for (std::uint64_t n = 0; n < top; ++n) {
    this->history_.insert(top - n);
    if (n >= this->window) this->history_.erase(top - (n - this->window));
  }
  this->expect_little(this->history_);
}

TYPED_TEST(space, of_what_a_random_nine_tenths_were_erased_from) {
  random source(1);
  const std::vector<std::uint64_t> keys = make_keys(key_set::anywhere, 8 * this->window, source);
  for (const std::uint64_t key : keys) this->history_.insert(key);
  for (const std::uint64_t key : keys)
    if (source.below(10) != 0) this->history_.erase(key);
  this->expect_little(this->history_);
}

// One key of each leaf stays, and its neighbours are full when it is left alone.
TYPED_TEST(space, of_what_runs_of_neighbours_were_erased_from) {
  constexpr std::uint64_t stays = 28;
  for (std::uint64_t key = 0; key < 8 * this->window; ++key) this->history_.insert(key);
  for (std::uint64_t key = 0; key < 8 * this->window; ++key)
    if (key % stays != stays - 1) this->history_.erase(key);
  this->expect_little(this->history_);
}

// Every twentieth key stays, while another thread reads.
TYPED_TEST(space, of_what_one_in_twenty_is_left_of_under_a_reader) {
  constexpr std::uint64_t stays = 20;
  random source(2);
  std::vector<std::uint64_t> keys = make_keys(key_set::anywhere, 8 * this->window, source);
  for (const std::uint64_t key : keys) this->history_.insert(key);
  std::sort(keys.begin(), keys.end());
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::jthread reader([&] {
    random which(3);
    while (!stop.load(std::memory_order_relaxed)) {
      const std::size_t i = which.below(keys.size());
      const auto found = this->index_.find(keys[i]);
      if (found ? *found != ~keys[i] : i % stays == 0) wrong.fetch_add(1, std::memory_order_relaxed);
    }
  });
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (i % stays != 0) this->history_.erase(keys[i]);
  stop = true;
  reader.join();
  EXPECT_EQ(wrong.load(), 0U);
  // Blocks that waited for the reader are freed with those of the next erases: of four batches at least, as a reader
  // that the system stopped in the middle of a search may have held back all of them.
  constexpr std::uint64_t others = 24'000;
  for (std::uint64_t key = 0; key < others; ++key) this->index_.upsert(key, ~key);
  for (std::uint64_t key = 0; key < others; ++key) this->index_.erase(key);
  this->expect_little(this->history_);
}

TYPED_TEST(space, of_what_was_filled_and_emptied_elsewhere) {
  for (std::uint64_t place = 0; place < this->windows; ++place) {
    if (place > 0)
      for (std::uint64_t n = 0; n < this->window; ++n) this->history_.erase(((place - 1) << 40) + n);
    for (std::uint64_t n = 0; n < this->window; ++n) this->history_.insert((place << 40) + n);
  }
  this->expect_little(this->history_);
}

template <class Kind>
class scan_of_what_is_left : public testing::Test {};
using ordered_kinds = each_ordered_index<testing::Types, kind>;

struct kind_name {
  template <class Kind>
  static std::string GetName(int /*position*/) {
    return Kind::name;
  }
};
TYPED_TEST_SUITE(scan_of_what_is_left, ordered_kinds, kind_name);

// Lines that a scan from the first key reads, after a window that rolled, against those in a fresh index.
TYPED_TEST(scan_of_what_is_left, costs_no_more_for_the_entries_that_were_erased) {
  using index_type = typename TypeParam::template index<counted_medium>;
  constexpr std::uint64_t window = 2'000;
  constexpr std::uint64_t end = 40'000;
  counted_index<index_type> rolled;
  counted_index<index_type> fresh;
  for (std::uint64_t key = 0; key < end; ++key) {
    ASSERT_EQ(rolled.index().insert(key, key), outcome::inserted);
    if (key >= window) {
      ASSERT_EQ(rolled.index().erase(key - window), outcome::erased);
    }
  }
  for (std::uint64_t key = end - window; key < end; ++key) ASSERT_EQ(fresh.index().insert(key, key), outcome::inserted);
  std::vector<indexes::entry> out(100);
  const auto scan = [&](index_type& i) { ASSERT_EQ(i.scan(0, out), out.size()); };
  const std::uint64_t lines = rolled.cost_of(scan).lines_read;
  const std::uint64_t fresh_lines = fresh.cost_of(scan).lines_read;
  std::printf("  100 entries: %llu lines (fresh: %llu)\n", static_cast<unsigned long long>(lines),
              static_cast<unsigned long long>(fresh_lines));
  EXPECT_LE(lines, 2 * fresh_lines + 64);
}

}  // namespace
}  // namespace pmlab::tests
