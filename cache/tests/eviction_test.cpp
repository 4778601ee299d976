// Hit ratios of the eviction policies.
#include <pmlab/base/random.hpp>
#include <pmlab/cache/async_cache.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/media/dram.hpp>
#include "bench/workload/zipfian.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <unordered_map>

#include <gtest/gtest.h>

namespace pmlab::tests::eviction_test {
namespace {

using cached = cache::async_cache<indexes::cceh<media::dram>, cache::chosen_eviction>;

constexpr std::uint64_t keys = 50'000;
constexpr std::uint64_t capacity = keys / 10;

class zipfian_keys {
 public:
  explicit zipfian_keys(std::uint64_t seed) : source_(seed) {}
  std::uint64_t next() { return ranks_(source_); }

 private:
  random_source source_;
  workload::zipfian_ranks ranks_{keys, 0.99};
};

class exact_lru {
 public:
  bool read(std::uint64_t key) {
    const auto found = places_.find(key);
    const bool hit = found != places_.end();
    if (hit) order_.erase(found->second);
    order_.push_front(key);
    places_[key] = order_.begin();
    if (order_.size() > capacity) {
      places_.erase(order_.back());
      order_.pop_back();
    }
    return hit;
  }

 private:
  std::list<std::uint64_t> order_;
  std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> places_;
};

// Hit ratio of the keys of `next`, with every fill installed at once; the first tenth warms up.
template <class Next>
double hit_ratio(cache::eviction evict, std::size_t reads, Next&& next) {
  media::dram medium;
  cache::options o;
  o.size = cache::capacity::entries(capacity);
  o.evict = evict;
  o.fillers = 0;
  auto index = cached::open(medium, "x", o);
  for (std::uint64_t key = 0; key < 2 * keys; ++key) index.insert(key, key);
  cache::statistics before;
  for (std::size_t i = 0; i < reads; ++i) {
    if (i == reads / 10) before = index.cache_statistics();
    EXPECT_TRUE(index.find(next(i)).has_value());
    index.run_fills();
  }
  cache::statistics s = index.cache_statistics();
  s -= before;
  return s.hit_ratio();
}

TEST(eviction, lru_hits_within_two_points_of_an_exact_one) {
  constexpr std::size_t reads = 500'000;
  zipfian_keys ours(1);
  const double ratio = hit_ratio(cache::eviction::lru, reads, [&](std::size_t) { return ours.next(); });
  zipfian_keys theirs(1);
  exact_lru exact;
  std::size_t hits = 0;
  for (std::size_t i = 0; i < reads; ++i) hits += exact.read(theirs.next()) && i >= reads / 10 ? 1 : 0;
  const double expected = static_cast<double>(hits) / (0.9 * reads);
  RecordProperty("exact", std::to_string(expected));
  RecordProperty("ours", std::to_string(ratio));
  EXPECT_NEAR(ratio, expected, 0.02);
  EXPECT_GT(ratio, 0.5);
}

// Every other read is of a one-time scan.
TEST(eviction, s3_fifo_keeps_a_working_set_from_a_scan_better_than_lru) {
  const auto mixed = [](cache::eviction e) {
    zipfian_keys working_set(2);
    return hit_ratio(e, 200'000, [&](std::size_t i) { return i % 2 == 0 ? working_set.next() : keys + i / 2 % keys; });
  };
  const double lru = mixed(cache::eviction::lru);
  const double s3_fifo = mixed(cache::eviction::s3_fifo);
  EXPECT_GT(s3_fifo, lru + 0.02) << "lru " << lru;
}

// The reason why it is the default policy.
TEST(eviction, s3_fifo_hits_more_zipfian_reads_than_lru) {
  const auto ratio = [](cache::eviction e) {
    zipfian_keys read(4);
    return hit_ratio(e, 300'000, [&](std::size_t) { return read.next(); });
  };
  EXPECT_GT(ratio(cache::eviction::s3_fifo), ratio(cache::eviction::lru) + 0.015);
}

TEST(eviction, clock_is_near_lru) {
  const auto ratio = [](cache::eviction e) {
    zipfian_keys read(3);
    return hit_ratio(e, 200'000, [&](std::size_t) { return read.next(); });
  };
  EXPECT_NEAR(ratio(cache::eviction::clock), ratio(cache::eviction::lru), 0.03);
}

}  // namespace
}  // namespace pmlab::tests::eviction_test
