// A case of `pmlab stores volumes`: operations of one kind, so many of them under way. Plain data.
#pragma once

#include "bench/stores/order.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::store_bench {

enum class phase_kind : std::uint8_t {
  fill,       // the first write of each place
  overwrite,  // writes of places that were written
  read,
  mix,      // reads and overwrites
  pages,    // a page store: two reads of pages, a write of one, a write of a block to a redo log; again and again
  discard,  // and, unmeasured, a write of the place again
  open,     // closing and opening the store
  complete  // no phase of its own: the first writes of all blocks that need one
};

struct phase {
  phase_kind kind = phase_kind::overwrite;
  std::string name;             // "overwrite", "mix-a", "mix:67"
  unsigned read_percent = 0;    // reads in a hundred operations of a mix
  bool zipfian_always = false;  // mix-a, mix-b, mix-c: as YCSB has them
};

struct bench_case {
  phase what;
  order pattern = order::random;
  std::uint64_t size = 4096;  // bytes of an operation
  unsigned depth = 1;         // operations under way, of each thread
};

// "fill", "overwrite", "read", "mix-a" (half reads), "mix-b" (95 % reads), "mix-c" (reads only), "mix:67" (67 % reads),
// "discard", "pages", "open", separated by commas. Throws pmlab::error.
[[nodiscard]] std::vector<phase> parse_phases(const std::string& list);
[[nodiscard]] std::vector<order> parse_orders(const std::string& list);
// The names of the phases, for completion.
[[nodiscard]] std::vector<std::string> phase_names();

// Each phase with each size, pattern and depth, in this order of loops; a phase `open` once, mixes with a pattern of
// their own once for each size and depth.
[[nodiscard]] std::vector<bench_case> cases_of(const std::vector<phase>& phases, const std::vector<order>& patterns,
                                               const std::vector<std::uint64_t>& sizes,
                                               const std::vector<unsigned>& depths);

// "overwrite random 4096 depth 32".
[[nodiscard]] std::string text_of(const bench_case& c);

}  // namespace pmlab::store_bench
