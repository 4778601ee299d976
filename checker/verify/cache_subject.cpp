// cache(INDEX,...) under verification: built by pmlab_simulate, in front of any subject's instrumented half.
//
// Small wherever an option is not given, so that short histories fill, evict, drop and choose.
#include "checker/verify/index_of_target.hpp"
#include "checker/verify/register_subject.hpp"
#include "checker/verify/target.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/cache/async_cache.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/cache/options.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::verify {
namespace {

// Arbitrary times, so that adaptive caches change their choice often; the same in every replay.
std::atomic<std::uint64_t> ticks{0};
std::uint64_t arbitrary_time() { return ticks.fetch_add(1, std::memory_order_relaxed) * golden_ratio >> 40; }

cache::options small_options(const spec& given) {
  cache::options o = cache::parse_options(given);
  if (!given.option("capacity")) o.size = cache::capacity::entries(2 * cache::ways);
  if (!given.option("queue")) o.queue = 4;
  if (!given.option("rest_us")) o.rest = std::chrono::microseconds(0);
  if (!given.option("shards")) o.shards = 2;
  if (!given.option("helpers") && o.lookup == cache::mode::parallel) o.helpers = 3;
  if (!given.option("helpers") && o.lookup == cache::mode::adaptive) o.helpers = 2;
  o.helper_spins = 2;
  o.sample_period = 1;
  o.window = 6;
  o.now = arbitrary_time;
  return o;
}

class cached_target final : public target {
 public:
  using cached = cache::async_cache<index_of_target, cache::chosen_eviction>;

  cached_target(const spec& given, std::unique_ptr<target> behind)
      : behind_(std::move(behind)), cache_(cached::open(*behind_, "", small_options(given))) {
    ticks.store(0, std::memory_order_relaxed);
  }

  answer perform(const step& s) override { return verify::perform(s, cache_); }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) override {
    cache_.find_batch(keys, values);
  }
  std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) override { return behind_->scan(from, out); }
  void entries(std::vector<indexes::entry>& out) override { behind_->entries(out); }
  void know_keys(const std::vector<std::uint64_t>& keys) override { behind_->know_keys(keys); }
  std::string check() override {
    const indexes::check_report report = cache_.check();
    return report.ok() ? std::string() : report.violations.front();
  }
  std::optional<std::uint64_t> held_bytes() override { return behind_->held_bytes(); }

 private:
  std::unique_ptr<target> behind_;
  cached cache_;
};

std::vector<std::string> parts(const spec& given) {
  static_cast<void>(small_options(given));
  return given.arguments;
}

std::unique_ptr<target> combine(const spec& given, std::vector<std::unique_ptr<target>> behind) {
  return std::make_unique<cached_target>(given, std::move(behind.front()));
}

const bool registered = [] {
  const combination made{"cache", parts, combine};
  pmlab_verify_register_combination(&made);
  return true;
}();

}  // namespace
}  // namespace pmlab::verify
