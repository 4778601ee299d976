// pmem::obj::concurrent_hash_map in the benchmark.
#include "bench/catalogue/peers/peer.hpp"
#include "bench/catalogue/peers/pmdk_pool.hpp"

#include <atomic>
#include <cstdint>
#include <optional>

#include <libpmemobj++/container/concurrent_hash_map.hpp>
#include <libpmemobj++/p.hpp>

namespace pmlab::bench::peers {
namespace {

class pmdk_hash {
 public:
  static constexpr bool durable = true;

  explicit pmdk_hash(const subject_setup& setup) : pool_(setup, "pmdk_hash"), map_(pool_.container()) {
    map_.runtime_initialize();
  }

  indexes::outcome insert(indexes::key_type key, indexes::value_type value) {
    return unless_full([&] {
      return map_.insert(map::value_type(key, value)) ? indexes::outcome::inserted : indexes::outcome::exists;
    });
  }
  indexes::outcome update(indexes::key_type key, indexes::value_type value) {
    map::accessor found;
    if (!map_.find(found, key)) return indexes::outcome::absent;
    found->second.get_rw() = value;
    pool_.handle().persist(found->second);
    return indexes::outcome::updated;
  }
  indexes::outcome erase(indexes::key_type key) {
    return unless_full([&] { return map_.erase(key) ? indexes::outcome::erased : indexes::outcome::absent; });
  }
  std::optional<indexes::value_type> find(indexes::key_type key) {
    map::const_accessor found;
    if (!map_.find(found, key)) return std::nullopt;
    return found->second.get_ro();
  }

  space_used space() { return {map_.size(), pool_.allocated_bytes(), 0}; }

 private:
  using word = ::pmem::obj::p<std::uint64_t>;
  using map = ::pmem::obj::concurrent_hash_map<word, word>;

  pmdk_pool<map> pool_;
  map& map_;
};

const auto registered = register_peer<pmdk_hash>({
    .name = "pmdk_hash",
    .what = "pmem::obj::concurrent_hash_map (libpmemobj-cpp), in a pool of its own",
    .threading = "any number of threads",
    .place = placement::own_pool,
    .pool_bytes_per_entry = 400,
    .refusal = [](workload::operation_kind kind, unsigned) -> std::string {
      return kind == workload::operation_kind::scan ? "a hash table has no order to scan" : "";
    },
});

}  // namespace
}  // namespace pmlab::bench::peers
