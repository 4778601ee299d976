// pmlab's own stores of pairs as subjects, on real media. Each is defined in a source of its own, which is long to
// compile.
#pragma once

#include "bench/stores/pair_stores.hpp"
#include "bench/stores/pair_subject.hpp"

#include <memory>

namespace pmlab::store_bench {

// Key-value SSDs, whose memory is the medium of the setup.
[[nodiscard]] std::unique_ptr<pair_subject> make_kv_ssd(const pair_setup& setup, const pair_drives& drives);
// The tiered store with its memtables in the medium of the setup.
[[nodiscard]] std::unique_ptr<pair_subject> make_tiered_on_medium(const pair_setup& setup, const pair_drives& drives);
// The tiered store with its memtables in DRAM, and a log.
[[nodiscard]] std::unique_ptr<pair_subject> make_tiered_on_drives(const pair_setup& setup, const pair_drives& drives);

}  // namespace pmlab::store_bench
