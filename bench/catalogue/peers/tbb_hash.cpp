// tbb::concurrent_hash_map in the benchmark.
#include "bench/catalogue/peers/byte_counter.hpp"
#include "bench/catalogue/peers/peer.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <tbb/concurrent_hash_map.h>
#include <tbb/tbb_allocator.h>

namespace pmlab::bench::peers {
namespace {

// oneTBB's allocator does not report its rounding: the bytes are those requested.
constexpr auto as_asked = [](std::size_t bytes) { return bytes; };

class tbb_hash {
 public:
  static constexpr bool durable = false;

  explicit tbb_hash(const subject_setup& /*setup*/) {}

  indexes::outcome insert(indexes::key_type key, indexes::value_type value) {
    return map_.insert(std::make_pair(key, value)) ? indexes::outcome::inserted : indexes::outcome::exists;
  }
  indexes::outcome update(indexes::key_type key, indexes::value_type value) {
    map::accessor found;
    if (!map_.find(found, key)) return indexes::outcome::absent;
    found->second = value;
    return indexes::outcome::updated;
  }
  indexes::outcome erase(indexes::key_type key) {
    return map_.erase(key) ? indexes::outcome::erased : indexes::outcome::absent;
  }
  std::optional<indexes::value_type> find(indexes::key_type key) {
    map::const_accessor found;
    if (!map_.find(found, key)) return std::nullopt;
    return found->second;
  }

  space_used space() { return {map_.size(), 0, bytes_.total()}; }

 private:
  using item = std::pair<const indexes::key_type, indexes::value_type>;
  using allocator = counting_allocator<tbb::tbb_allocator<item>, as_asked>;
  using map = tbb::concurrent_hash_map<indexes::key_type, indexes::value_type, tbb::tbb_hash_compare<indexes::key_type>,
                                       allocator>;

  byte_counter bytes_;
  map map_{allocator(bytes_)};
};

const auto registered = register_peer<tbb_hash>({
    .name = "tbb_hash",
    .what = "tbb::concurrent_hash_map (oneTBB), always in DRAM",
    .threading = "any number of threads",
    .place = placement::own_dram,
    .refusal = [](workload::operation_kind kind, unsigned) -> std::string {
      return kind == workload::operation_kind::scan ? "a hash table has no order to scan" : "";
    },
});

}  // namespace
}  // namespace pmlab::bench::peers
