#include "bench/stores/pair_stores.hpp"
#include "bench/stores/cached_pair_subject.hpp"
#if defined(PMLAB_SIMULATED)
#include "bench/stores/simulated_kv_ssd.hpp"
#else
#include "bench/stores/library_pair_stores.hpp"
#include "bench/stores/pair_peers.hpp"
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

struct known_store {
  pair_store_description described;
  std::unique_ptr<pair_subject> (*make)(const pair_setup& setup, const pair_drives& drives);
};

const std::vector<known_store>& known_stores() {
  static const std::vector<known_store> stores = {
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
      .has_memtable = true},
     make_tiered},
#endif
  };
  return stores;
}

#if defined(PMLAB_SIMULATED)
// This build has none: no peer runs in virtual time.
std::vector<pair_store_description> peers() { return {}; }
#else
std::vector<pair_store_description> peers() {
  std::vector<pair_store_description> found;
  for (const pair_peer& p : pair_peers()) found.push_back(p.described);
  return found;
}
#endif

const known_store* find_known(std::string_view name) {
  const auto at = std::ranges::find_if(known_stores(), [&](const known_store& s) { return s.described.name == name; });
  return at == known_stores().end() ? nullptr : &*at;
}

}  // namespace

const std::vector<pair_store_description>& all_pair_stores() {
  static const std::vector<pair_store_description> all = [] {
    std::vector<pair_store_description> found;
    for (const known_store& s : known_stores()) found.push_back(s.described);
    for (const pair_store_description& d : peers()) found.push_back(d);
    return found;
  }();
  return all;
}

const pair_store_description& find_pair_store(std::string_view name) {
#if defined(PMLAB_SIMULATED)
  if (!name.starts_with("kv_ssd"))
    throw error(fmt::format("{} cannot run in virtual time", name), "measure it on --device emulated:p4610");
#endif
  std::vector<std::string_view> names;
  for (const pair_store_description& d : all_pair_stores()) {
    if (d.name == name) return d;
    names.push_back(d.name);
  }
  bench::refuse_left_out(name);
  throw error(fmt::format("there is no key-value store '{}'", name),
              fmt::format("did you mean {}? The stores are {}", nearest(name, names), fmt::join(names, ", ")));
}

std::unique_ptr<pair_subject> make_pair_subject(const pair_setup& setup, const pair_drives& drives) {
  const pair_store_description& described = find_pair_store(setup.store);
  if (drives.staging != nullptr && !described.has_staging)
    throw error(fmt::format("{} has no use for a second drive", setup.store),
                "leave --staging out, or measure tiered or rocksdb");
  if (const known_store* const store = find_known(setup.store)) return store->make(setup, drives);
#if defined(PMLAB_SIMULATED)
  return nullptr;
#else
  return make_pair_peer(*find_pair_peer(setup.store), setup, drives);
#endif
}

}  // namespace pmlab::store_bench
