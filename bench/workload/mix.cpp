#include "bench/workload/mix.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/workload/numbers.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

namespace pmlab::workload {

namespace {

using enum operation_kind;

struct named_kind {
  std::string_view name;
  operation_kind kind;
};

constexpr std::array kinds = {
    named_kind{to_string(read), read},     named_kind{to_string(insert), insert},
    named_kind{to_string(update), update}, named_kind{to_string(erase), erase},
    named_kind{to_string(scan), scan},     named_kind{to_string(read_modify_write), read_modify_write},
    named_kind{"rmw", read_modify_write},
};

constexpr auto kind_names = [] {
  std::array<std::string_view, kinds.size()> names;
  std::transform(kinds.begin(), kinds.end(), names.begin(), [](const named_kind& kind) { return kind.name; });
  return names;
}();

struct core_workload {
  std::string_view name;
  operation_kind common;
  double common_share;
  operation_kind rare;
  double rare_share;
  distribution_kind keys;
};

constexpr std::array core_workloads = {
    core_workload{"ycsb-a", read, 0.5, update, 0.5, distribution_kind::zipfian},
    core_workload{"ycsb-b", read, 0.95, update, 0.05, distribution_kind::zipfian},
    core_workload{"ycsb-c", read, 1, update, 0, distribution_kind::zipfian},
    core_workload{"ycsb-d", read, 0.95, insert, 0.05, distribution_kind::latest},
    core_workload{"ycsb-e", scan, 0.95, insert, 0.05, distribution_kind::zipfian},
    core_workload{"ycsb-f", read, 0.5, read_modify_write, 0.5, distribution_kind::zipfian},
};

constexpr double ycsb_theta = 0.99;

constexpr auto core_names = [] {
  std::array<std::string_view, core_workloads.size()> names;
  std::transform(core_workloads.begin(), core_workloads.end(), names.begin(),
                 [](const core_workload& workload) { return workload.name; });
  return names;
}();

[[nodiscard]] std::string quoted(std::string_view text) {
  std::string result = "'";
  result += text;
  result += '\'';
  return result;
}

// One "kind=share" of `whole`.
[[nodiscard]] std::pair<operation_kind, double> parse_part(std::string_view part, std::string_view whole) {
  const std::string problem = "workload " + quoted(whole) + ": ";
  const std::size_t equals = part.find('=');
  if (equals == std::string_view::npos)
    throw error(problem + quoted(part) + " is not a share", "write shares as in read=.9,update=.1");
  const std::string_view name = part.substr(0, equals);
  const auto* const kind = std::find_if(kinds.begin(), kinds.end(), [&](const auto& k) { return k.name == name; });
  if (kind == kinds.end())
    throw error(problem + "unknown operation " + quoted(name),
                "did you mean " + nearest(name, kind_names) +
                    "? known: read, insert, update, erase, scan, read-modify-write (rmw)");
  const std::optional<double> share = parse_number(part.substr(equals + 1));
  if (!share || !(*share >= 0 && *share <= 1))
    throw error(problem + "the share of " + std::string(name) + " is " + quoted(part.substr(equals + 1)),
                "it must be a number from 0 to 1");
  return {kind->kind, *share};
}

[[nodiscard]] mix parse_shares(std::string_view text) {
  mix result{std::string(text), {}, {}};
  std::array<bool, operation_kinds> given{};
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(',', start), text.size());
    const auto [kind, share] = parse_part(text.substr(start, end - start), text);
    const auto position = static_cast<std::size_t>(kind);
    if (given[position])
      throw error("workload " + quoted(text) + ": " + std::string(to_string(kind)) + " is given twice",
                  "give each operation once");
    given[position] = true;
    result.share[position] = share;
    start = end + 1;
  }
  constexpr double tolerance = 1e-6;
  const double sum = std::accumulate(result.share.begin(), result.share.end(), 0.0);
  if (std::fabs(sum - 1) > tolerance)
    throw error("workload " + quoted(text) + ": the shares add up to " + format_number(sum), "they must add up to 1");
  for (double& share : result.share) share /= sum;
  return result;
}

}  // namespace

mix parse_mix(std::string_view text) {
  if (text.find('=') != std::string_view::npos) return parse_shares(text);
  const auto* const core = std::find_if(core_workloads.begin(), core_workloads.end(),
                                        [&](const core_workload& workload) { return workload.name == text; });
  if (core == core_workloads.end())
    throw error(
        "unknown workload " + quoted(text),
        "did you mean " + nearest(text, core_names) + "? known: ycsb-a to ycsb-f, or shares such as read=.9,update=.1");
  mix result{std::string(text), {}, {core->keys, ycsb_theta}};
  result.share[static_cast<std::size_t>(core->common)] = core->common_share;
  result.share[static_cast<std::size_t>(core->rare)] = core->rare_share;
  return result;
}

std::span<const std::string_view> mix_names() noexcept { return core_names; }

}  // namespace pmlab::workload
