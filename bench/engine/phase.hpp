// The phases of a benchmark run: loading, single operations, mixes, traces.
#pragma once

#include "bench/workload/mix.hpp"
#include "bench/workload/operation.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::bench {

enum class phase_kind : std::uint8_t {
  load,    // every record, once
  read,    // present records
  absent,  // reads of keys that never were there
  update,  // present records
  insert,  // fresh keys
  scan,    // from present records
  erase,   // the keys that insert phases added since the last erase phase
  mix,     // a workload: operations by shares
  trace,   // the operations of a trace file
  reopen,  // close index and medium, and open them again
};

struct phase {
  phase_kind kind = phase_kind::read;
  std::string name;        // as results name it: "read", "ycsb-a", "read=.9,update=.1", "read-2" for the second one
  workload::mix shares{};  // shares of a mix or trace; of read, update and scan: that operation alone

  // Operations of this kind that the phase may contain.
  [[nodiscard]] bool has(workload::operation_kind operation) const noexcept;
  // Adds or removes entries.
  [[nodiscard]] bool changes_entries() const noexcept;
  // About how long an operation takes, if a point find takes 1; scans read `scan_length` entries. In phase reopen: the
  // time for each record.
  [[nodiscard]] double relative_cost(std::uint32_t scan_length) const noexcept;
};

// Names of the phases for --phases.
[[nodiscard]] std::span<const std::string_view> phase_names() noexcept;

// "load,read,erase". Throws pmlab::error with the nearest name.
[[nodiscard]] std::vector<phase> parse_phases(std::string_view text);
// One workload: "ycsb-a" or "read=.9,update=.1". Throws pmlab::error.
[[nodiscard]] phase parse_workload(std::string_view text);
[[nodiscard]] phase make_phase(phase_kind kind);
[[nodiscard]] phase make_trace_phase(std::span<const workload::operation> run);

// Gives the second phase of a name the suffix "-2", and so on, so that a name means one phase of a run.
void make_names_unique(std::vector<phase>& phases);

}  // namespace pmlab::bench
