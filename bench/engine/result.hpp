// The result of a run.
#pragma once

#include "bench/catalogue/subject.hpp"
#include "bench/engine/simulated_run.hpp"
#include "bench/support/cpu_counters.hpp"
#include "bench/support/pm_counters.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::bench {

struct latency_summary {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0, p99_9 = 0, p99_99 = 0, max = 0;  // nanoseconds
  std::uint64_t samples = 0;
};

struct bytes_per_key {
  double pm = 0;
  double dram = 0;
};

// How soon after it was closed an index that is opened again answers, in nanoseconds.
struct restart_times {
  double find = 0;
  std::optional<double> scan;  // nothing: it has no order
};

// One index in one phase of one repeat.
struct phase_result {
  std::string index;
  std::string medium;
  unsigned threads = 1;   // threads of each host
  unsigned hosts = 1;     // that share the memory
  std::string coherence;  // between several; empty: there is one
  std::string phase;
  unsigned repeat = 1;  // from 1
  std::uint64_t operations = 0;
  double seconds = 0;  // from the common start to the last thread's end; with --verify, of the busiest thread
  double throughput = 0;
  latency_summary latency;
  std::optional<media::counts> accesses;                 // on a counting medium
  std::optional<persist_sums> persists;                  // on a counting or simulated medium
  std::optional<media_sums> media_bytes;                 // where they are counted or modelled
  std::optional<host_sums> between_hosts;                // nothing: there is one host
  std::optional<media::persistence_domain> persistence;  // nothing: it lives in DRAM, or its own library decides
  std::optional<media::persistence_domain>
      measured_under;                    // that of --persistence, whether the index follows it or not
  std::optional<bytes_per_key> space;    // nothing while the index is empty
  std::uint64_t entries = 0;             // after the phase
  std::optional<restart_times> restart;  // times of phase reopen
  layer_statistics layer;                // its counts are the phase's
  std::optional<std::uint64_t> wrong;    // nothing: answers were not checked
  std::uint64_t cpu_cache_bytes = 0;     // the sum over all cores of a simulated machine; 0: another one
  std::vector<std::uint64_t>
      intervals;                     // operations that ended in each interval of --interval; the last one is shorter
  std::string distribution;          // latencies, for --histograms
  std::optional<cpu_events> cpu;     // with --cpu-counters, where the kernel counts any
  std::optional<pm_counts> modules;  // what Optane modules did; nothing: the medium is none, or they are not read
  std::optional<double> driver_ns;   // time of each operation that the benchmark itself takes; nothing: not known
  std::optional<double> huge_page_share;  // share of the memory that the entries live in, 0 to 1; nothing: not known
  std::string invalid;                    // why an emulated figure is not valid for the device; empty: it is
};

struct skipped_phase {
  std::string index;
  unsigned threads = 1;
  std::string phase;
  std::string reason;
};

// The part of every latency that is due to the clock.
struct clock_limits {
  double cost_ns = 0;   // between two readings of the clock with nothing between them: the median
  double floor_ns = 0;  // the 99th percentile of such pairs: a latency up to here means only "less"
};

struct bench_report {
  std::vector<phase_result> results;  // in the order in which they were measured
  std::vector<skipped_phase> skipped;
  clock_limits clock;                    // limits of real clocks
  std::vector<std::string> remarks;      // warnings about the figures
  std::vector<std::string> first_wrong;  // wrong answers in words, the first of each index
  std::optional<std::string> failure;    // why the run ended early; earlier results stand

  [[nodiscard]] std::uint64_t wrong_answers() const noexcept {
    std::uint64_t sum = 0;
    for (const phase_result& r : results) sum += r.wrong.value_or(0);
    return sum;
  }
};

}  // namespace pmlab::bench
