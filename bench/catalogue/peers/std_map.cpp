// std::map in the benchmark.
#include "bench/catalogue/peers/byte_counter.hpp"
#include "bench/catalogue/peers/peer.hpp"
#include "bench/catalogue/peers/shared_lock.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#if !defined(PMLAB_SIMULATED)
#include <jemalloc/jemalloc.h>
#endif

namespace pmlab::bench::peers {
namespace {

#if defined(PMLAB_SIMULATED)
// The simulated heap's rounding. Asking jemalloc would run jemalloc, in virtual time, and differently on each machine.
constexpr auto as_heap_rounds = [](std::size_t bytes) { return (bytes + 15) / 16 * 16; };
#else
constexpr auto as_heap_rounds = [](std::size_t bytes) { return nallocx(bytes, 0); };
#endif

class std_map {
 public:
  static constexpr bool durable = false;

  explicit std_map(const subject_setup& setup) : lock_(setup.threads) {}

  indexes::outcome insert(indexes::key_type key, indexes::value_type value) {
    const auto held = lock_.exclusive();
    return map_.try_emplace(key, value).second ? indexes::outcome::inserted : indexes::outcome::exists;
  }
  indexes::outcome update(indexes::key_type key, indexes::value_type value) {
    const auto held = lock_.exclusive();
    const auto found = map_.find(key);
    if (found == map_.end()) return indexes::outcome::absent;
    found->second = value;
    return indexes::outcome::updated;
  }
  indexes::outcome erase(indexes::key_type key) {
    const auto held = lock_.exclusive();
    return map_.erase(key) == 1 ? indexes::outcome::erased : indexes::outcome::absent;
  }
  std::optional<indexes::value_type> find(indexes::key_type key) {
    const auto held = lock_.shared();
    const auto found = map_.find(key);
    if (found == map_.end()) return std::nullopt;
    return found->second;
  }
  std::size_t scan(indexes::key_type key, std::span<indexes::entry> out) {
    const auto held = lock_.shared();
    std::size_t count = 0;
    for (auto at = map_.lower_bound(key); at != map_.end() && count < out.size(); ++at)
      out[count++] = {at->first, at->second};
    return count;
  }

  space_used space() { return {map_.size(), 0, bytes_.total()}; }

 private:
  using item = std::pair<const indexes::key_type, indexes::value_type>;
  using allocator = counting_allocator<std::allocator<item>, as_heap_rounds>;

  byte_counter bytes_;
  std::map<indexes::key_type, indexes::value_type, std::less<>, allocator> map_{allocator(bytes_)};
  optional_shared_lock lock_;
};

const auto registered = register_peer<std_map>({
    .name = "std_map",
    .what = "std::map, always in DRAM",
    .threading = "one thread; with more, all of them behind a std::shared_mutex",
    .ordered = true,
    .place = placement::own_dram,
    .refusal = [](workload::operation_kind, unsigned) { return std::string(); },
});

}  // namespace
}  // namespace pmlab::bench::peers
