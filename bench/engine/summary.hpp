// From the results of all repeats to one row for each index, number of threads and phase.
#pragma once

#include "bench/engine/result.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::bench {

// The middle one; of an even number, the mean of the two in the middle; of none 0.
[[nodiscard]] double median(std::vector<double> values);

struct summary_row {
  std::string index;
  std::string medium;
  unsigned threads = 1;
  unsigned hosts = 1;
  std::string phase;
  std::size_t repeats = 0;
  std::uint64_t operations = 0;            // operations of all repeats together
  double throughput = 0;                   // median over the repeats, operations a second
  double spread = 0;                       // (highest - lowest) / median
  std::optional<double> ratio;             // throughput / that of the baseline in the same phase with as many threads
  latency_summary latency;                 // medians over the repeats
  std::optional<media::counts> accesses;   // accesses of all repeats together
  std::optional<persist_sums> persists;    // flushes and fences of all repeats together
  std::optional<media_sums> media_bytes;   // media bytes of all repeats together
  std::optional<host_sums> between_hosts;  // what several hosts did in all repeats together
  std::optional<pm_counts> modules;        // counts of Optane modules of all repeats together
  std::optional<media::persistence_domain> persistence;     // what its medium saves; nothing: it does not follow any
  std::optional<media::persistence_domain> measured_under;  // what keeps the rows of one run together
  std::optional<bytes_per_key> space;     // after the first repeat: later ones run on the remains of erase phases
  std::optional<std::uint64_t> wrong;     // wrong answers of all repeats together
  std::optional<double> driver_ns;        // time of each operation that the benchmark itself takes
  std::optional<double> huge_page_share;  // median over the repeats
  std::string invalid;                    // reason of the first repeat that was; empty: none was
};

// Rows in the order: hosts, threads, phase, persistence and index as first measured. A baseline is that of its own
// persistence.
[[nodiscard]] std::vector<summary_row> summarize(const std::vector<phase_result>& results, const std::string& baseline);

}  // namespace pmlab::bench
