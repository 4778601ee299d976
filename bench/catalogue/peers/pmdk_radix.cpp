// pmem::obj::experimental::radix_tree in the benchmark.
#include "bench/catalogue/peers/peer.hpp"
#include "bench/catalogue/peers/pmdk_pool.hpp"
#include "bench/catalogue/peers/shared_lock.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <libpmemobj++/experimental/radix_tree.hpp>
#include <libpmemobj++/p.hpp>

namespace pmlab::bench::peers {
namespace {

// The container allows threads only if none of them writes, so all of them use a readers-writer lock.
class pmdk_radix {
 public:
  static constexpr bool durable = true;

  explicit pmdk_radix(const subject_setup& setup)
      : pool_(setup, "pmdk_radix"), map_(pool_.container()), lock_(setup.threads) {}

  indexes::outcome insert(indexes::key_type key, indexes::value_type value) {
    const auto held = lock_.exclusive();
    return unless_full(
        [&] { return map_.try_emplace(key, value).second ? indexes::outcome::inserted : indexes::outcome::exists; });
  }
  indexes::outcome update(indexes::key_type key, indexes::value_type value) {
    const auto held = lock_.exclusive();
    const auto found = map_.find(key);
    if (found == map_.end()) return indexes::outcome::absent;
    found->value().get_rw() = value;
    pool_.handle().persist(found->value());
    return indexes::outcome::updated;
  }
  indexes::outcome erase(indexes::key_type key) {
    const auto held = lock_.exclusive();
    return unless_full([&] { return map_.erase(key) == 1 ? indexes::outcome::erased : indexes::outcome::absent; });
  }
  std::optional<indexes::value_type> find(indexes::key_type key) {
    const auto held = lock_.shared();
    const auto found = map_.find(key);
    if (found == map_.end()) return std::nullopt;
    return found->value().get_ro();
  }
  std::size_t scan(indexes::key_type key, std::span<indexes::entry> out) {
    const auto held = lock_.shared();
    std::size_t count = 0;
    for (auto at = map_.lower_bound(key); at != map_.end() && count < out.size(); ++at)
      out[count++] = {at->key(), at->value().get_ro()};
    return count;
  }

  space_used space() { return {map_.size(), pool_.allocated_bytes(), 0}; }

 private:
  using map = ::pmem::obj::experimental::radix_tree<std::uint64_t, ::pmem::obj::p<std::uint64_t>>;

  pmdk_pool<map> pool_;
  map& map_;
  optional_shared_lock lock_;
};

const auto registered = register_peer<pmdk_radix>({
    .name = "pmdk_radix",
    .what = "pmem::obj::experimental::radix_tree (libpmemobj-cpp), in a pool of its own",
    .threading = "one thread, or readers only; with more, all of them behind a std::shared_mutex",
    .ordered = true,
    .place = placement::own_pool,
    .pool_bytes_per_entry = 400,
    .refusal = [](workload::operation_kind, unsigned) { return std::string(); },
});

}  // namespace
}  // namespace pmlab::bench::peers
