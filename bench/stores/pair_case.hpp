// A case of `pmlab stores bench --kind kv`: operations of one mix, so many of them under way. Plain data.
#pragma once

#include "bench/workload/mix.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::store_bench {

enum class pair_phase_kind : std::uint8_t {
  load,   // puts into an empty store
  mix,    // operations in the shares of a mix: the phases of YCSB; insert, update, read
  erase,  // of each record once, and, unmeasured, their puts again
  open    // closing and opening the store
};

struct pair_phase {
  pair_phase_kind kind = pair_phase_kind::mix;
  std::string name{};    // "ycsb-a"
  workload::mix mix{};   // of a mix
  bool is_ycsb = false;  // its pattern is its own

  [[nodiscard]] bool changes() const noexcept;
  [[nodiscard]] bool scans() const noexcept;
  // The share of operations that add a key.
  [[nodiscard]] double insert_share() const noexcept;
};

// How the keys of operations are chosen.
enum class pair_order : std::uint8_t {
  random,      // load, insert, erase: each key once, in a random order. Other phases: as `uniform`
  sequential,  // keys in their order, each thread in its own part; load, insert and erase: each once
  uniform,     // each with the same probability. Load: about 15 % of the puts meet a key that is there
  zipfian,     // with parameter 0.99, scattered. Load: about 80 % of the puts meet a key that is there
  latest       // of ycsb-d: the youngest keys are the most popular ones
};

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

[[nodiscard]] std::string_view to_string(pair_order value) noexcept;

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
