#include "bench/stores/case.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/stores/lists.hpp"
#include "bench/support/quantity.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

constexpr std::array<std::string_view, 9> simple_phases{"fill",  "overwrite", "read",  "mix-a", "mix-b",
                                                        "mix-c", "discard",   "pages", "open"};
constexpr std::array<std::string_view, 3> orders{"random", "sequential", "zipfian"};

phase phase_of(const std::string& word) {
  if (word == "fill") return {phase_kind::fill, word, 0, false};
  if (word == "overwrite") return {phase_kind::overwrite, word, 0, false};
  if (word == "read") return {phase_kind::read, word, 100, false};
  if (word == "mix-a") return {phase_kind::mix, word, 50, true};
  if (word == "mix-b") return {phase_kind::mix, word, 95, true};
  if (word == "mix-c") return {phase_kind::mix, word, 100, true};
  if (word == "discard") return {phase_kind::discard, word, 0, false};
  if (word == "pages") return {phase_kind::pages, word, 50, false};
  if (word == "open") return {phase_kind::open, word, 0, false};
  if (word.starts_with("mix:")) {
    const std::uint64_t percent = bench::parse_count(word.substr(4), "--phases mix:PERCENT", 0);
    if (percent > 100) throw error(fmt::format("--phases {}: more than 100 % reads", word), "give mix:0 to mix:100");
    return {phase_kind::mix, word, static_cast<unsigned>(percent), false};
  }
  throw error(fmt::format("there is no phase '{}'", word),
              fmt::format("did you mean {}? The phases are {} and mix:PERCENT", nearest(word, simple_phases),
                          fmt::join(simple_phases, ", ")));
}

}  // namespace

std::string_view to_string(order value) noexcept { return orders[static_cast<std::size_t>(value)]; }

std::vector<phase> parse_phases(const std::string& list) {
  std::vector<phase> phases;
  for (const std::string& word : words_of(list)) phases.push_back(phase_of(word));
  return phases;
}

std::vector<order> parse_orders(const std::string& list) {
  std::vector<order> found;
  for (const std::string& word : words_of(list)) {
    const auto at = std::ranges::find(orders, word);
    if (at == orders.end())
      throw error(fmt::format("there is no pattern '{}'", word), "choose random, sequential or zipfian");
    found.push_back(static_cast<order>(at - orders.begin()));
  }
  return found;
}

std::vector<std::string> phase_names() { return {simple_phases.begin(), simple_phases.end()}; }

std::vector<bench_case> cases_of(const std::vector<phase>& phases, const std::vector<order>& patterns,
                                 const std::vector<std::uint64_t>& sizes, const std::vector<unsigned>& depths) {
  std::vector<bench_case> cases;
  for (const phase& p : phases) {
    if (p.kind == phase_kind::open) {
      cases.push_back({p, order::random, 4096, 1});
      continue;
    }
    for (const std::uint64_t size : sizes)
      for (const order pattern : p.zipfian_always ? std::vector<order>{order::zipfian} : patterns)
        for (const unsigned depth : depths) cases.push_back({p, pattern, size, depth});
  }
  return cases;
}

std::string text_of(const bench_case& c) {
  if (c.what.kind == phase_kind::open) return c.what.name;
  return fmt::format("{} {} {} depth {}", c.what.name, to_string(c.pattern), bench::readable_bytes(c.size), c.depth);
}

}  // namespace pmlab::store_bench
