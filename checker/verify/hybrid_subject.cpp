// hybrid(hash=...,tree=...,...) under verification: built by pmlab_simulate, over any two subjects' instrumented
// halves.
//
// Options that are not given are small, so that short histories fill queues, share stripes and switch modes. In a
// quarter of the rounds the queues are long, so that an updater takes many changes of the same keys at once. A hybrid
// whose primary is the tree rebuilds its hash repeatedly, while the operations run.
#include "checker/verify/index_of_target.hpp"
#include "checker/verify/register_subject.hpp"
#include "checker/verify/seed_of_round.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/hybrid/specification.hpp>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::verify {
namespace {

hybrid::description small_description(const spec& given) {
  hybrid::description d = hybrid::parse_description(given);
  if (d.durable().in_dram || !d.replica().in_dram)
    throw error("only a hybrid index with one half in pmem and one in dram can be verified",
                "write hybrid(hash=INDEX@pmem,tree=INDEX@dram), or the other way round");
  if (!given.option("stripes")) d.how.stripes = 4;
  if (!given.option("queues")) d.how.queues = 2;
  // A sort of up to 16 changes is stable, whichever it is.
  const bool is_long = mix_bits(pmlab_verify_seed_of_round()) % 4 == 0;
  if (!given.option("queue")) d.how.queue = is_long ? 64 : 4;
  if (!given.option("batch")) d.how.batch = is_long ? 32 : 3;
  if (!given.option("rebuilders")) d.how.rebuilders = 1;
  d.how.rest = std::chrono::microseconds(0);
  d.how.window = 6;
  return d;
}

template <hybrid::primary Primary>
class hybrid_target final : public target {
  using index = hybrid::hybrid_index<index_of_target, index_of_target, Primary>;
  static constexpr bool can_rebuild = Primary == hybrid::primary::tree;

 public:
  hybrid_target(const hybrid::options& o, std::unique_ptr<target> primary, std::unique_ptr<target> replica)
      : primary_(std::move(primary)),
        replica_(std::move(replica)),
        index_(index::open(can_rebuild ? *replica_ : *primary_, can_rebuild ? *primary_ : *replica_, o)) {}

  answer perform(const step& s) override {
    rebuild_sometimes();
    return verify::perform(s, index_);
  }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) override {
    rebuild_sometimes();
    index_.find_batch(keys, values);
  }
  std::size_t scan(std::uint64_t from, std::span<indexes::entry> out) override { return index_.scan(from, out); }
  void entries(std::vector<indexes::entry>& out) override { primary_->entries(out); }
  void know_keys(const std::vector<std::uint64_t>& keys) override {
    // A rebuild of thousands of keys takes as long as a round.
    operations_per_rebuild_ = keys.size() < few_keys ? 7 : seldom;
    primary_->know_keys(keys);
    replica_->know_keys(keys);
  }
  std::string check() override {
    const indexes::check_report report = index_.check();
    if (!report.ok()) return report.violations.front();
    // A replica that was refused space is incomplete until it is rebuilt.
    return index_.is_complete() || index_.hybrid_statistics().refused_by_replica != 0
               ? ""
               : "the replica never became complete";
  }
  std::optional<std::uint64_t> held_bytes() override { return primary_->held_bytes(); }

 private:
  static constexpr std::size_t few_keys = 500;
  static constexpr std::uint64_t seldom = 900;

  void rebuild_sometimes() {
    if constexpr (can_rebuild) {
      // Nor where thousands of operations prepare a round.
      const std::uint64_t number = operations_.fetch_add(1, std::memory_order_relaxed);
      if (number % (number < few_keys ? operations_per_rebuild_ : seldom) != 3) return;
      const std::unique_lock lock(rebuilding_, std::try_to_lock);
      constexpr bool empty_first = true;
      if (lock.owns_lock()) index_.rebuild(empty_first);
    }
  }

  std::unique_ptr<target> primary_;
  std::unique_ptr<target> replica_;
  std::uint64_t operations_per_rebuild_ = 7;
  std::atomic<std::uint64_t> operations_{0};
  std::mutex rebuilding_;
  index index_;
};

// The primary first: it is all that a crash leaves.
std::vector<std::string> parts(const spec& given) {
  const hybrid::description d = small_description(given);
  return {d.durable().index, d.replica().index + "@dram"};
}

std::unique_ptr<target> combine(const spec& given, std::vector<std::unique_ptr<target>> halves) {
  const hybrid::description d = small_description(given);
  if (d.which == hybrid::primary::hash)
    return std::make_unique<hybrid_target<hybrid::primary::hash>>(d.how, std::move(halves[0]), std::move(halves[1]));
  return std::make_unique<hybrid_target<hybrid::primary::tree>>(d.how, std::move(halves[0]), std::move(halves[1]));
}

const bool registered = [] {
  const combination made{"hybrid", parts, combine};
  pmlab_verify_register_combination(&made);
  return true;
}();

}  // namespace
}  // namespace pmlab::verify
