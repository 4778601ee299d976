#include "bench/stores/subjects.hpp"
#if defined(PMLAB_SIMULATED)
#include "bench/stores/simulated_stores.hpp"
#endif
#include "bench/stores/chunk_stores.hpp"
#include "bench/stores/peers/page_stores.hpp"
#include "bench/stores/raw_subject.hpp"
#if defined(PMLAB_WITH_ROCKSDB)
#include "bench/stores/rocksdb_meta_subject.hpp"
#endif
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/support/optional_packages.hpp"
#include "bench/support/quantity.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include <fmt/format.h>

namespace pmlab::store_bench {

namespace {

constexpr std::uint64_t block = 4096;
constexpr std::uint64_t mebibyte = 1 << 20;

#if defined(PMLAB_SIMULATED)

std::unique_ptr<volume_subject> make_chunk_store(const store_setup& setup, blocks::any_device& device) {
  return make_simulated_chunk_store(setup, device);
}

#else

std::unique_ptr<volume_subject> make_chunk_store(const store_setup& setup, blocks::any_device& device) {
  if (setup.container == "blocks") return make_chunk_store_on_blocks(setup, device);
  if (setup.container == "kv") return make_chunk_store_on_kv(setup, device);
  return make_chunk_store_on_medium(setup, device);
}

#endif

void check_chunks(const store_setup& setup) {
#if defined(PMLAB_SIMULATED)
  if (!setup.medium.simulated && setup.container != "blocks")
    throw error(fmt::format("records on {} beside a drive in virtual time", setup.medium.text()),
                "give --medium simulated:aep");
#endif
  if (std::ranges::find(level1_indexes(), setup.index) == level1_indexes().end())
    throw error(fmt::format("there is no level-1 index '{}'", setup.index),
                fmt::format("did you mean {}? chunk_store takes {}", nearest(setup.index, level1_indexes()),
                            fmt::join(level1_indexes(), ", ")));
  if (setup.container != "pmem" && setup.container != "blocks" && setup.container != "kv")
    throw error(fmt::format("there is no container '{}'", setup.container), "choose pmem, blocks or kv");
  if (setup.merge != "remap" && setup.merge != "copy")
    throw error(fmt::format("there is no merge '{}'", setup.merge), "choose remap or copy");
  if (setup.container != "pmem" && setup.merge != "copy")
    throw error("records on a drive have no maps for a merge by remapping", "leave --merge out, or give copy");
  if (setup.ring == 0 || setup.ring > 30)
    throw error(fmt::format("--ring {}: a ring has 1 to 30 entries", setup.ring), "give a number in this range");
  if (!std::has_single_bit(setup.chunk_bytes) || setup.chunk_bytes < block || setup.chunk_bytes > 256 * block)
    throw error(fmt::format("--chunk {}: a chunk is a power of two of blocks, 1 to 256 of them", setup.chunk_bytes),
                "give 4K to 1M");
}

}  // namespace

#if !defined(PMLAB_SIMULATED)
void load_library_of(std::string_view /*store*/) {}
#endif

const std::vector<store_description>& all_stores() {
  static const std::vector<store_description> stores = {
    {"chunk_store", "redirect-on-write with an 8-byte commit in persistent memory (docs/stores.md)", true},
    {"raw_dwb", "the drive with a double write of each page, as InnoDB has it", false},
    {"raw_fpw", "the drive with full pages in a log, as PostgreSQL has it", false},
#if defined(PMLAB_WITH_ROCKSDB)
    {"rocksdb_meta", "BlueStore's algorithm: redirect-on-write, and the places of blocks in RocksDB", false, true},
    {deferring_rocksdb_meta,
     "the same with checksums of data, and overwrites of 4 KiB are deferred through RocksDB's log", false, true},
#endif
    {"raw", "the drive itself: a durable write in place; a crash may tear it", false},
  };
  return stores;
}

const store_description& find_store(std::string_view name) {
#if defined(PMLAB_SIMULATED)
  if (name.starts_with("rocksdb_meta"))
    throw error("RocksDB cannot run in virtual time", "measure rocksdb_meta on --device emulated:p4610");
#endif
  for (const store_description& d : all_stores())
    if (d.name == name) return d;
  bench::refuse_left_out(name);
  std::vector<std::string_view> names;
  for (const store_description& d : all_stores()) names.push_back(d.name);
  throw error(fmt::format("there is no store '{}'", name),
              fmt::format("did you mean {}? The stores are {}", nearest(name, names), fmt::join(names, ", ")));
}

const std::vector<std::string_view>& level1_indexes() {
  static const std::vector<std::string_view> names = {"cceh", "skip_list", "fast_fair", "fp_tree", "hybrid"};
  return names;
}

std::uint64_t least_device_bytes(const store_setup& setup) {
  if (setup.store == "raw_dwb") return setup.volume_bytes + area_of_raw_dwb(setup);
  if (setup.store == "raw_fpw") return setup.volume_bytes + area_of_raw_fpw(setup);
#if defined(PMLAB_WITH_ROCKSDB)
  if (is_rocksdb_meta(setup.store))
    return setup.volume_bytes + std::max(setup.volume_bytes / 16, 16 * mebibyte) +
           (setup.container == "blocks" ? rocksdb_meta_bytes(setup) : 0);
#endif
  if (!find_store(setup.store).has_chunks) return setup.volume_bytes;
  // Redirected writes need blocks before those that they replace are free.
  const std::uint64_t chunks = (setup.volume_bytes + setup.chunk_bytes - 1) / setup.chunk_bytes;
  // The region of records on the drive is for all of its chunks, two blocks for each 21: a 2,000th part.
  const std::uint64_t records = setup.container == "blocks" ? 2 * mebibyte + setup.volume_bytes / 512
                                : setup.container == "kv"   ? flash_of_records(setup)
                                                            : 0;
  return chunks * setup.chunk_bytes + std::max(chunks * setup.chunk_bytes / 16, 16 * mebibyte) + records + block;
}

void check_setup(const store_setup& setup, std::uint64_t device_bytes) {
  if (setup.volume_bytes == 0 || setup.volume_bytes % block != 0)
    throw error(fmt::format("a volume of {} bytes", setup.volume_bytes), "give --volume-bytes a multiple of 4K");
  if (find_store(setup.store).has_chunks) check_chunks(setup);
  if (setup.container == "kv" && !find_store(setup.store).has_chunks)
    throw error(fmt::format("{} has no records for a key-value device", setup.store),
                "give --container kv to chunk_store alone");
  const std::uint64_t least = least_device_bytes(setup);
  if (device_bytes < least)
    throw error(
        fmt::format("a device of {} is too small for {} with a volume of {}", bench::readable_bytes(device_bytes),
                    setup.store, bench::readable_bytes(setup.volume_bytes)),
        fmt::format("give --device-bytes at least {}", least));
}

std::unique_ptr<volume_subject> make_subject(const store_setup& setup, blocks::any_device& device) {
  if (setup.store == "chunk_store") return make_chunk_store(setup, device);
  if (setup.store == "raw_dwb") return make_raw_dwb(setup, device);
  if (setup.store == "raw_fpw") return make_raw_fpw(setup, device);
#if defined(PMLAB_WITH_ROCKSDB)
  if (is_rocksdb_meta(setup.store)) return make_rocksdb_meta(setup, device);
#endif
  return make_raw(setup, device);
}

}  // namespace pmlab::store_bench
