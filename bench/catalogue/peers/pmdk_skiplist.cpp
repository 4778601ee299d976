// pmem::obj::experimental::concurrent_map, a persistent skip list, in the benchmark.
#include "bench/catalogue/peers/peer.hpp"
#include "bench/catalogue/peers/pmdk_pool.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <libpmemobj++/experimental/concurrent_map.hpp>
#include <libpmemobj++/p.hpp>

namespace pmlab::bench::peers {
namespace {

class pmdk_skiplist {
 public:
  static constexpr bool durable = true;

  explicit pmdk_skiplist(const subject_setup& setup) : pool_(setup, "pmdk_skiplist"), map_(pool_.container()) {
    map_.runtime_initialize();
  }

  indexes::outcome insert(indexes::key_type key, indexes::value_type value) {
    return unless_full([&] {
      return map_.try_emplace(word(key), value).second ? indexes::outcome::inserted : indexes::outcome::exists;
    });
  }
  // The container locks no values: an 8-byte atomic store is the cheapest correct update that it allows.
  indexes::outcome update(indexes::key_type key, indexes::value_type value) {
    const auto found = map_.find(word(key));
    if (found == map_.end()) return indexes::outcome::absent;
    std::atomic_ref(found->second.get_rw()).store(value, std::memory_order_release);
    pool_.handle().persist(found->second);
    return indexes::outcome::updated;
  }
  indexes::outcome erase(indexes::key_type key) {
    return unless_full(
        [&] { return map_.unsafe_erase(word(key)) == 1 ? indexes::outcome::erased : indexes::outcome::absent; });
  }
  std::optional<indexes::value_type> find(indexes::key_type key) {
    const auto found = map_.find(word(key));
    if (found == map_.end()) return std::nullopt;
    return value_of(found->second);
  }
  std::size_t scan(indexes::key_type key, std::span<indexes::entry> out) {
    std::size_t count = 0;
    for (auto at = map_.lower_bound(word(key)); at != map_.end() && count < out.size(); ++at)
      out[count++] = {at->first.get_ro(), value_of(at->second)};
    return count;
  }

  space_used space() { return {map_.size(), pool_.allocated_bytes(), 0}; }

 private:
  using word = ::pmem::obj::p<std::uint64_t>;
  using map = ::pmem::obj::experimental::concurrent_map<word, word>;

  static std::uint64_t value_of(const word& stored) {
    return std::atomic_ref(const_cast<std::uint64_t&>(stored.get_ro())).load(std::memory_order_acquire);
  }

  pmdk_pool<map> pool_;
  map& map_;
};

const auto registered = register_peer<pmdk_skiplist>({
    .name = "pmdk_skiplist",
    .what = "pmem::obj::experimental::concurrent_map, a skip list (libpmemobj-cpp), in a pool of its own",
    .threading = "any number of threads; erase only with one",
    .ordered = true,
    .place = placement::own_pool,
    .pool_bytes_per_entry = 220,
    .refusal = [](workload::operation_kind kind, unsigned threads) -> std::string {
      const bool unsafe = kind == workload::operation_kind::erase && threads > 1;
      return unsafe ? "the container has only unsafe_erase, for one thread" : "";
    },
});

}  // namespace
}  // namespace pmlab::bench::peers
