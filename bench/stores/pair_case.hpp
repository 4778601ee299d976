// A case of `pmlab stores pairs`: operations of one mix, so many of them under way. Plain data.
#pragma once

#include "bench/stores/order.hpp"
#include "bench/workload/mix.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::store_bench {

enum class pair_phase_kind : std::uint8_t {
  load,   // puts into an empty store
  mix,    // operations in the shares of a mix: the phases of YCSB; insert, update, read
  erase,  // each record once, and, unmeasured, their puts again
  open,   // closing and opening the store
  check   // no phase of its own: a read of each key that was ever put
};

struct pair_phase {
  pair_phase_kind kind = pair_phase_kind::mix;
  std::string name{};    // "ycsb-a"
  workload::mix mix{};   // operations of a mix
  bool is_ycsb = false;  // its pattern is its own

  [[nodiscard]] bool changes() const noexcept;
  [[nodiscard]] bool scans() const noexcept;
  // The share of operations that add a key.
  [[nodiscard]] double insert_share() const noexcept;
};

using pair_order = order;

struct pair_case {
  pair_phase what;
  pair_order pattern = pair_order::random;
  std::size_t value_bytes = 1000;
  unsigned depth = 1;  // operations under way, of each thread

  // A load whose keys repeat.
  [[nodiscard]] bool loads_duplicates() const noexcept {
    return what.kind == pair_phase_kind::load && (pattern == pair_order::uniform || pattern == pair_order::zipfian);
  }
};

// "load", "ycsb-a" to "ycsb-f", "insert", "update", "read", "erase", "open", separated by commas. Throws pmlab::error.
[[nodiscard]] std::vector<pair_phase> parse_pair_phases(const std::string& list);
[[nodiscard]] std::vector<pair_order> parse_pair_orders(const std::string& list);
// The names of the phases, for completion.
[[nodiscard]] std::vector<std::string> pair_phase_names();

// Each size of values, with each phase, pattern and depth, in this order of loops; a phase `open` once for each size,
// those of YCSB with their own pattern once for each depth.
[[nodiscard]] std::vector<pair_case> cases_of(const std::vector<pair_phase>& phases,
                                              const std::vector<pair_order>& patterns,
                                              const std::vector<std::size_t>& sizes,
                                              const std::vector<unsigned>& depths);

// "ycsb-a zipfian 1000 depth 8".
[[nodiscard]] std::string text_of(const pair_case& c);

}  // namespace pmlab::store_bench
