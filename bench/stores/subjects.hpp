// The stores that `pmlab stores volumes` knows, and how each is made.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/catalogue/medium_spec.hpp"
#include "bench/devices/calibration.hpp"
#include "bench/stores/volume_subject.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::store_bench {

// The parts of a setup, as far as a store has them.
struct store_setup {
  std::string store{};             // "chunk_store"
  std::string container = "pmem";  // where chunk_store has its records: pmem, blocks, kv
  bench::medium_spec medium{};
  std::shared_ptr<const media::calibration> emulation{};  // calibration of an emulated medium
  std::uint64_t medium_bytes = 0;                         // bytes of a pool
  bool overwrite = false;                                 // an existing pool is replaced
  std::string index = "cceh";                             // level 1 of chunk_store
  std::string merge = "remap";                            // how chunk_store merges full rings
  std::uint32_t ring = 16;
  std::uint64_t chunk_bytes = std::uint64_t{1} << 20;
  std::uint64_t volume_bytes = 0;
  std::uint64_t cache_bytes = 0;  // DRAM for records of container kv
  unsigned threads = 1;
};

struct store_description {
  std::string_view name;
  std::string_view what;
  bool has_chunks = false;  // container, medium, index, merge, ring and chunk mean something
  bool has_medium = false;  // container and medium do
};

// The stores of this build, in the order in which help texts have them.
[[nodiscard]] const std::vector<store_description>& all_stores();
// Throws pmlab::error, with the nearest one, for a name that is not known.
[[nodiscard]] const store_description& find_store(std::string_view name);

[[nodiscard]] const std::vector<std::string_view>& level1_indexes();

// Throws pmlab::error for what no store can be made of: a volume that does not fit, an impossible ring or chunk, an
// unknown index, container or merge. `device_bytes`: of its device.
void check_setup(const store_setup& setup, std::uint64_t device_bytes);

// To be called before the simulated machine begins: what loads the library of a store, of pairs too, takes space by the
// length of its path, and only from then on does the machine know its code. Without virtual time: nothing. Throws
// pmlab::error: the library is not there.
void load_library_of(std::string_view store);

// An empty store on `device`, which outlives it. Throws pmlab::error.
[[nodiscard]] std::unique_ptr<volume_subject> make_subject(const store_setup& setup, blocks::any_device& device);

// The bytes of a device that the store needs for a volume, at least.
[[nodiscard]] std::uint64_t least_device_bytes(const store_setup& setup);

}  // namespace pmlab::store_bench
