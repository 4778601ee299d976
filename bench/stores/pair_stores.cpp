#include "bench/stores/pair_stores.hpp"
#include "bench/stores/cached_pair_subject.hpp"
#include "bench/stores/pair_peers.hpp"
#if defined(PMLAB_SIMULATED)
#include "bench/stores/simulated_stores.hpp"
#else
#include "bench/stores/library_pair_stores.hpp"
#endif
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/support/optional_packages.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace pmlab::store_bench {

namespace {

#if defined(PMLAB_SIMULATED)

std::unique_ptr<pair_subject> make_kv_ssd(const pair_setup& setup, const pair_drives& drives) {
  return make_simulated_kv_ssd(setup, drives);
}

#else

std::unique_ptr<pair_subject> make_tiered(const pair_setup& setup, const pair_drives& drives) {
  if (setup.memtable != "pmem") return make_tiered_on_drives(setup, drives);
  if (setup.medium.plain_dram())
    throw error("a memtable in persistent memory, and --medium dram", "give --medium pmem:PATH or emulated:aep");
  return make_tiered_on_medium(setup, drives);
}

#endif

std::unique_ptr<pair_subject> make_kv_ssd_with_cache(const pair_setup& setup, const pair_drives& drives) {
  return with_host_cache(make_kv_ssd(setup, drives), setup.cache_bytes);
}

// With the peers, none of which runs in virtual time.
const std::vector<known_pair_store>& known_stores() {
  static const std::vector<known_pair_store> stores = [] {
    std::vector<known_pair_store> all = {
      {{.name = "kv_ssd",
        .what = "a key-value SSD: its translation layer in this process (docs/stores.md)",
        .has_medium = true},
       make_kv_ssd_with_cache},
      {{.name = "kv_ssd_no_local",
        .what = "kv_ssd whose overwrites change its global index at once: without local tables",
        .has_medium = true},
       make_kv_ssd_with_cache},
      {{.name = "kv_ssd_no_filter",
        .what = "kv_ssd without Bloom filters in front of its local tables",
        .has_medium = true},
       make_kv_ssd_with_cache},
#if !defined(PMLAB_SIMULATED)
      {{.name = "tiered",
        .what = "an ordered store over a staging and a capacity drive, with a bound on the loss (docs/stores.md)",
        .has_medium = true,
        .has_staging = true,
        .has_memtable = true,
        .has_memory_limit = true,
        .has_loss_bound = true,
        .largest_value = std::size_t{1} << 20},
       make_tiered},
#endif
    };
#if !defined(PMLAB_SIMULATED)
    all.insert(all.end(), pair_peers().begin(), pair_peers().end());
#endif
    return all;
  }();
  return stores;
}

const known_pair_store& find_known(std::string_view name) {
#if defined(PMLAB_SIMULATED)
  if (!name.starts_with("kv_ssd"))
    throw error(fmt::format("{} cannot run in virtual time", name), "measure it on --device emulated:p4610");
#endif
  std::vector<std::string_view> names;
  for (const known_pair_store& s : known_stores()) {
    if (s.described.name == name) return s;
    names.push_back(s.described.name);
  }
  bench::refuse_left_out(name);
  throw error(fmt::format("there is no key-value store '{}'", name),
              fmt::format("did you mean {}? The stores are {}", nearest(name, names), fmt::join(names, ", ")));
}

}  // namespace

const std::vector<pair_store_description>& all_pair_stores() {
  static const std::vector<pair_store_description> all = [] {
    std::vector<pair_store_description> found;
    for (const known_pair_store& s : known_stores()) found.push_back(s.described);
    return found;
  }();
  return all;
}

const pair_store_description& find_pair_store(std::string_view name) { return find_known(name).described; }

std::unique_ptr<pair_subject> make_pair_subject(const pair_setup& setup, const pair_drives& drives) {
  const known_pair_store& store = find_known(setup.store);
  if (drives.staging != nullptr && !store.described.has_staging)
    throw error(fmt::format("{} has no use for a second drive", setup.store),
                "leave --staging out, or measure tiered or rocksdb");
  return store.make(setup, drives);
}

}  // namespace pmlab::store_bench
