// The stores that `pmlab stores pairs` knows, and how each is made.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/catalogue/medium_spec.hpp"
#include "bench/devices/calibration.hpp"
#include "bench/stores/pair_subject.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::store_bench {

// The parts of a setup, as far as a store has them.
struct pair_setup {
  std::string store{};          // "kv_ssd"
  bench::medium_spec medium{};  // memory of kv_ssd; of tiered's memtables with `memtable` = "pmem"
  std::shared_ptr<const media::calibration> emulation{};  // calibration of an emulated medium
  std::uint64_t medium_bytes = 0;                         // bytes of a pool
  bool overwrite = false;                                 // an existing pool is replaced
  std::uint64_t records = 0;                              // that are loaded
  std::size_t value_bytes = 1000;                         // bytes of the largest value
  std::uint64_t cache_bytes = 0;                          // DRAM for values and pages that were read; 0: none
  std::uint64_t memory_bytes = 0;  // memory limit: memtables, indexes and filters too; 0: the store's default
  double loss_ms = 100;            // stores with a loss bound; 0: each change is durable on return
  bool log = true;                 // a write-ahead log, where a store can be without
  std::string place{};             // placement policy of tiered and rocksdb; empty: the default
  std::string memtable = "dram";   // tiered: dram | pmem
  unsigned threads = 1;
};

// Where the store's bytes go. They outlive it.
struct pair_drives {
  std::vector<blocks::any_device*> main;  // capacity of two classes; several: the store spreads its keys over them
  blocks::any_device* staging = nullptr;  // a faster one; null: none
};

struct pair_store_description {
  std::string_view name;
  std::string_view what;
  bool has_medium = false;        // --medium means something
  bool has_staging = false;       // --staging does
  bool has_memtable = false;      // --memtable does; --medium then means something with pmem only
  bool has_cache = true;          // --cache does
  bool has_memory_limit = false;  // --memory does
  bool has_loss_bound = false;    // --loss-ms does
  std::size_t largest_value = std::size_t{2} << 20;
};

struct known_pair_store {
  pair_store_description described;
  // An empty store.
  std::unique_ptr<pair_subject> (*make)(const pair_setup& setup, const pair_drives& drives) = nullptr;
};

// The stores of this build, in the order in which help texts have them.
[[nodiscard]] const std::vector<pair_store_description>& all_pair_stores();
// Throws pmlab::error, with the nearest one, for a name that is not known.
[[nodiscard]] const pair_store_description& find_pair_store(std::string_view name);

// An empty store on `drives`. Throws pmlab::error for what no store can be made of.
[[nodiscard]] std::unique_ptr<pair_subject> make_pair_subject(const pair_setup& setup, const pair_drives& drives);

}  // namespace pmlab::store_bench
