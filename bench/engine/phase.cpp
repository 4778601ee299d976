// The phases of a benchmark run.
#include "bench/engine/phase.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

using workload::operation_kind;

// In the order of phase_kind; mix and trace have options of their own.
constexpr std::array<std::string_view, 10> kind_names = {"load", "read",  "absent", "update", "insert",
                                                         "scan", "erase", "mix",    "trace",  "reopen"};
constexpr std::array<std::string_view, 8> selectable = {"load",   "read", "absent", "update",
                                                        "insert", "scan", "erase",  "reopen"};

workload::mix only(operation_kind kind) {
  workload::mix shares{};
  shares.name = to_string(kind);
  shares.share[static_cast<std::size_t>(kind)] = 1;
  return shares;
}

}  // namespace

bool phase::has(operation_kind operation) const noexcept {
  switch (kind) {
    case phase_kind::load:
    case phase_kind::insert: return operation == operation_kind::insert;
    case phase_kind::read:
    case phase_kind::absent: return operation == operation_kind::read;
    case phase_kind::update: return operation == operation_kind::update;
    case phase_kind::scan: return operation == operation_kind::scan;
    case phase_kind::erase: return operation == operation_kind::erase;
    case phase_kind::mix:
    case phase_kind::trace: return shares.share[static_cast<std::size_t>(operation)] > 0;
    case phase_kind::reopen: return false;
  }
  return false;
}

bool phase::changes_entries() const noexcept { return has(operation_kind::insert) || has(operation_kind::erase); }

double phase::relative_cost(std::uint32_t scan_length) const noexcept {
  constexpr double change = 1.5;
  constexpr double entry = 0.15;
  const double scan = 1 + entry * scan_length;
  switch (kind) {
    case phase_kind::load:
    case phase_kind::insert:
    case phase_kind::erase: return change;
    case phase_kind::reopen: return 0.1;
    default: break;
  }
  double sum = 0;
  for (std::size_t k = 0; k < workload::operation_kinds; ++k) {
    const auto operation = static_cast<operation_kind>(k);
    const double cost = operation == operation_kind::read ? 1 : operation == operation_kind::scan ? scan : change;
    sum += shares.share[k] * cost;
  }
  return sum;
}

std::span<const std::string_view> phase_names() noexcept { return selectable; }

phase make_phase(phase_kind kind) {
  phase p;
  p.kind = kind;
  p.name = kind_names[static_cast<std::size_t>(kind)];
  if (kind == phase_kind::read || kind == phase_kind::absent) p.shares = only(operation_kind::read);
  if (kind == phase_kind::update) p.shares = only(operation_kind::update);
  if (kind == phase_kind::scan) p.shares = only(operation_kind::scan);
  return p;
}

phase make_trace_phase(std::span<const workload::operation> run) {
  phase p = make_phase(phase_kind::trace);
  for (const workload::operation& op : run)
    p.shares.share[static_cast<std::size_t>(op.kind)] += 1 / static_cast<double>(run.size());
  return p;
}

std::vector<phase> parse_phases(std::string_view text) {
  std::vector<phase> phases;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const std::string_view name = text.substr(start, end - start);
    const auto known = std::find(selectable.begin(), selectable.end(), name);
    if (known == selectable.end())
      throw error(
          fmt::format("there is no phase '{}'", name),
          fmt::format("did you mean {}? The phases are {}", nearest(name, selectable), fmt::join(selectable, ", ")));
    const auto kind = std::find(kind_names.begin(), kind_names.end(), name) - kind_names.begin();
    phases.push_back(make_phase(static_cast<phase_kind>(kind)));
    start = end + 1;
  }
  return phases;
}

phase parse_workload(std::string_view text) {
  phase p;
  p.kind = phase_kind::mix;
  p.shares = workload::parse_mix(text);
  p.name = text;
  return p;
}

void make_names_unique(std::vector<phase>& phases) {
  std::map<std::string, int> seen;
  for (phase& p : phases)
    if (const int number = ++seen[p.name]; number > 1) p.name += fmt::format("-{}", number);
}

}  // namespace pmlab::bench
