#include "bench/stores/pair_case.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/support/lists.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

constexpr std::array<std::string_view, 12> phases{"load",   "ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e",
                                                  "ycsb-f", "insert", "update", "read",   "erase",  "open"};

pair_phase pair_phase_of(const std::string& word) {
  if (std::ranges::find(phases, word) == phases.end())
    throw error(fmt::format("there is no phase '{}' of key-value stores", word),
                fmt::format("did you mean {}? The phases are {}", nearest(word, phases), fmt::join(phases, ", ")));
  if (word == "load") return {pair_phase_kind::load, word};
  if (word == "erase") return {pair_phase_kind::erase, word};
  if (word == "open") return {pair_phase_kind::open, word};
  if (word.starts_with("ycsb-")) return {pair_phase_kind::mix, word, workload::parse_mix(word), true};
  return {pair_phase_kind::mix, word, workload::parse_mix(word + "=1")};
}

pair_order own_pattern(const pair_phase& p) {
  return p.mix.usual_keys.kind == workload::distribution_kind::latest ? pair_order::latest : pair_order::zipfian;
}

}  // namespace

bool pair_phase::changes() const noexcept {
  using enum workload::operation_kind;
  return kind == pair_phase_kind::load || kind == pair_phase_kind::erase ||
         (kind == pair_phase_kind::mix && mix[insert] + mix[update] + mix[read_modify_write] > 0);
}
bool pair_phase::scans() const noexcept {
  return kind == pair_phase_kind::mix && mix[workload::operation_kind::scan] > 0;
}
double pair_phase::insert_share() const noexcept {
  return kind == pair_phase_kind::mix ? mix[workload::operation_kind::insert] : 0;
}

std::vector<pair_phase> parse_pair_phases(const std::string& list) { return bench::list_of(list, pair_phase_of); }

std::vector<pair_order> parse_pair_orders(const std::string& list) {
  return orders_among(std::array{order::random, order::sequential, order::uniform, order::zipfian}, list, " of keys",
                      "choose random, sequential, uniform, zipfian");
}

std::vector<std::string> pair_phase_names() { return {phases.begin(), phases.end()}; }

std::vector<pair_case> cases_of(const std::vector<pair_phase>& wanted, const std::vector<pair_order>& orders,
                                const std::vector<std::size_t>& sizes, const std::vector<unsigned>& depths) {
  std::vector<pair_case> cases;
  for (const std::size_t size : sizes)
    for (const pair_phase& p : wanted) {
      if (p.kind == pair_phase_kind::open) {
        cases.push_back({p, pair_order::random, size, 1});
        continue;
      }
      for (const pair_order o : p.is_ycsb ? std::vector<pair_order>{own_pattern(p)} : orders)
        for (const unsigned depth : depths) cases.push_back({p, o, size, depth});
    }
  return cases;
}

std::string text_of(const pair_case& c) {
  if (c.what.kind == pair_phase_kind::open) return fmt::format("{} {}", c.what.name, c.value_bytes);
  return fmt::format("{} {} {} depth {}", c.what.name, to_string(c.pattern), c.value_bytes, c.depth);
}

}  // namespace pmlab::store_bench
