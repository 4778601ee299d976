#include "bench/stores/case.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/support/lists.hpp"
#include "bench/support/quantity.hpp"

#include <array>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

const std::vector<phase>& simple_phases() {
  static const std::vector<phase> all{
      {phase_kind::fill, "fill"},           {phase_kind::overwrite, "overwrite"}, {phase_kind::read, "read", 100},
      {phase_kind::mix, "mix-a", 50, true}, {phase_kind::mix, "mix-b", 95, true}, {phase_kind::mix, "mix-c", 100, true},
      {phase_kind::discard, "discard"},     {phase_kind::pages, "pages", 50},     {phase_kind::open, "open"}};
  return all;
}

phase phase_of(const std::string& word) {
  for (const phase& p : simple_phases())
    if (p.name == word) return p;
  if (word.starts_with("mix:")) {
    const std::uint64_t percent = bench::parse_count(word.substr(4), "--phases mix:PERCENT", 0);
    if (percent > 100) throw error(fmt::format("--phases {}: more than 100 % reads", word), "give mix:0 to mix:100");
    return {phase_kind::mix, word, static_cast<unsigned>(percent), false};
  }
  std::vector<std::string_view> known;
  for (const phase& p : simple_phases()) known.push_back(p.name);
  throw error(
      fmt::format("there is no phase '{}'", word),
      fmt::format("did you mean {}? The phases are {} and mix:PERCENT", nearest(word, known), fmt::join(known, ", ")));
}

}  // namespace

std::vector<phase> parse_phases(const std::string& list) { return bench::list_of(list, phase_of); }

std::vector<order> parse_orders(const std::string& list) {
  return orders_among(std::array{order::random, order::sequential, order::zipfian}, list, "",
                      "choose random, sequential or zipfian");
}

std::vector<std::string> phase_names() {
  std::vector<std::string> names;
  for (const phase& p : simple_phases()) names.push_back(p.name);
  return names;
}

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
