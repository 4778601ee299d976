// Options of a benchmark run.
#pragma once

#include "checker/simulator/coherence.hpp"
#include "bench/catalogue/medium_spec.hpp"
#include "bench/catalogue/pool_files.hpp"
#include "bench/devices/calibration.hpp"
#include "bench/engine/phase.hpp"
#include "bench/workload/distribution.hpp"
#include "bench/workload/trace.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::bench {

struct bench_options {
  std::vector<std::string> indexes;
  std::string baseline;  // the index whose throughput is 1 in the ratios; empty: the last one
  medium_spec medium;
  // What platforms save, in place of the profile's: everything is measured for each in turn. Empty: as it is.
  std::vector<media::persistence_domain> persistence;
  std::shared_ptr<const media::calibration> emulation;  // profile of an emulated medium, as this machine can play it
  std::uint64_t records = 1'000'000;
  std::uint64_t operations = 1'000'000;           // per phase, over all threads
  double seconds = 0;                             // > 0: every phase but load runs this long; `operations` is ignored
  std::vector<unsigned> threads = {1};            // threads of each host
  std::vector<unsigned> hosts = {1};              // that share the memory
  std::optional<simulator::coherence> coherence;  // between hosts; nothing: full
  std::vector<phase> phases;                      // in their order; `load` is always first, requested or not
  std::optional<workload::distribution> keys;     // nothing: uniform, and workloads their own
  std::shared_ptr<const workload::trace> trace;   // load and run come from it instead; null: no trace
  bool verify = false;
  unsigned repeats = 1;
  std::uint32_t batch = 1;
  std::uint32_t scan_length = 100;
  std::uint64_t seed = 1;
  std::uint64_t rate = 0;  // > 0: operations that begin in a second, over all threads, whether earlier ones have ended
  double interval_seconds = 0;        // > 0: operations are counted for each interval of so long
  bool histograms = false;            // latencies are kept whole
  bool cpu_counters = false;          // events of the CPU are counted
  std::uint64_t cpu_cache_bytes = 0;  // the share of a core of a simulated machine; 0: the profile's
  std::uint64_t layout = 1;           // on simulated media: of the first repeat; each has the next one
  bool huge_pages = true;             // 2 MB pages under all subjects, or 4 KB pages; on real media
  std::uint64_t pool_bytes = 0;       // 0: from the number of records
  existing_file on_existing = existing_file::refuse;
  bool keep = false;
};

// As --pages has them.
[[nodiscard]] inline const char* name_of_pages(const bench_options& o) noexcept { return o.huge_pages ? "2M" : "4K"; }

}  // namespace pmlab::bench
