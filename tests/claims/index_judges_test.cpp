// Claims about indexes are judged by their figures: each holds in a world that is as claimed, and each of its
// conditions can fail.
#include "judging.hpp"

#include "claims/indexes.hpp"

#include <map>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace pmlab::claims {
namespace {

using nlohmann::json;

struct figures {
  double throughput = 0;                    // "value"
  std::map<std::string, double> more = {};  // path below the case: "latency_ns/mean"
};

// Hybrid indexes, caches and choices that are just as the paper claims.
class indexes_world {
 public:
  std::map<std::string, figures> cases;

  indexes_world() {
    add_hybrids();
    add_caches();
    add_choices();
  }

  // Multiplies a figure of every case whose name has a match. Returns how many there were.
  int multiply(const std::string& expression, double factor, const std::string& path) {
    const std::regex wanted(expression);
    int changed = 0;
    for (auto& [name, f] : cases) {
      if (!std::regex_search(name, wanted)) continue;
      double* const figure = path == "value" ? &f.throughput : f.more.contains(path) ? &f.more[path] : nullptr;
      if (figure == nullptr) continue;
      *figure *= factor;
      ++changed;
    }
    return changed;
  }

  [[nodiscard]] evidence found() const {
    json document = {{"schema", 1}, {"machine", {{"medium", "simulated:aep"}}}, {"cases", json::array()}};
    for (const auto& [name, f] : cases) {
      json one = {{"name", name}, {"value", f.throughput}, {"unit", "ops/s"}, {"skipped", nullptr}};
      for (const auto& [path, value] : f.more) one[json::json_pointer("/" + path)] = value;
      document["cases"].push_back(std::move(one));
    }
    return {document, "world"};
  }

 private:
  void add(std::string_view experiment, std::string_view index, std::string_view threads, std::string_view phase,
           figures f) {
    cases[fmt::format("{}/index={}/threads={}/phase={}", experiment, index, threads, phase)] = std::move(f);
  }

  void add_hybrids() {
    for (const auto& [threads, plain, plus] : {std::tuple("1", 4e6, 6e6), {"most", 60e6, 108e6}}) {
      add("hybrid", "hybrid_index", threads, "read", {plain});
      add("hybrid", "hybrid_index_plus", threads, "read", {plus});
      for (const char* const phase : {"update", "insert"}) {
        add("hybrid", "hybrid_index", threads, phase, {plain / 4});
        add("hybrid", "hybrid_index_plus", threads, phase, {0.7 * plain / 4});
      }
    }
    const auto restart = [](double opened, double find, double scan) {
      return figures{1, {{"latency_ns/max", opened}, {"restart/find_ns", find}, {"restart/scan_ns", scan}}};
    };
    add("hybrid_restart", "hybrid_index", "1", "reopen", restart(1e4, 1.1e4, 3e7));
    add("hybrid_restart", "hybrid_index_plus", "1", "reopen", restart(1e4, 1.1e4, 1.5e4));
  }

  void add_caches() {
    // The slower the index, the larger the gain.
    for (const auto& [index, bare, gain] :
         {std::tuple("fast_fair", 1000.0, 0.40), {"skip_list", 800.0, 0.33}, {"fp_tree", 500.0, 0.25}}) {
      const std::string cached = fmt::format("cache({})", index);
      for (const auto& [distribution, left] : {std::pair("uniform", 1.05), {"zipfian:0.99", 1 - gain}}) {
        const std::string experiment = fmt::format("cache/distribution={}", distribution);
        for (const auto& [phase, factor] : {std::pair("read", left), {"update", 1.25}, {"insert", 1.02}}) {
          add(experiment, index, "1", phase, {1e6, {{"latency_ns/mean", bare}}});
          add(experiment, cached, "1", phase, {1e6, {{"latency_ns/mean", bare * factor}}});
        }
      }
    }
    for (const auto& [distribution, serial, parallel] :
         {std::tuple("uniform", 1.15, 1.02), {"zipfian:0.99", 0.5, 0.55}})
      for (const char* const phase : {"read", "update"}) {
        const std::string experiment = fmt::format("cache_parallel/distribution={}", distribution);
        add(experiment, "fast_fair", "1", phase, {1e6, {{"latency_ns/mean", 1000}}});
        add(experiment, "cache(fast_fair)", "1", phase, {1e6, {{"latency_ns/mean", 1000 * serial}}});
        add(experiment, "cache(fast_fair,mode=parallel)", "1", phase, {1e6, {{"latency_ns/mean", 1000 * parallel}}});
      }
  }

  void add_choices() {
    for (const char* const phase : {"update", "read", "ycsb-a"})
      for (const auto& [how, speed] : {std::pair("sync", 1e6), {"async", 1.2e6}, {"adaptive", 1.15e6}})
        add("adaptive_hybrid", fmt::format("hybrid(hash=cceh@dram,tree=fast_fair@pmem,update={})", how), "most", phase,
            {speed});
    for (const char* const distribution : {"uniform", "zipfian:0.99"})
      for (const auto& [mode, speed] : {std::pair("serial", 1e6), {"parallel", 1.2e6}, {"adaptive", 1.15e6}})
        add(fmt::format("adaptive_cache/distribution={}", distribution), fmt::format("cache(fast_fair,mode={})", mode),
            "most", "read", {speed});
  }
};

TEST(IndexJudges, ThereAreElevenClaimsInOrder) {
  ASSERT_EQ(index_claims().size(), 11U);
  for (std::size_t i = 0; i < index_claims().size(); ++i) EXPECT_EQ(index_claims()[i].id, fmt::format("I{}", i + 1));
}

TEST(IndexJudges, EveryClaimHoldsWhereThingsAreAsClaimed) {
  expect_that_every_claim_holds(index_claims(), indexes_world());
}

const std::vector<spoiled>& changes() {
  static const std::string mean = "latency_ns/mean";
  static const std::vector<spoiled> all = {
      {"I1", 0, "^hybrid/index=hybrid_index_plus/.*read$", 0.8},
      {"I1", 1, "^hybrid/index=hybrid_index_plus/threads=1/.*read$", 0.6},
      {"I2", 0, "^hybrid/index=hybrid_index_plus/threads=1/phase=update$", 1.4},
      {"I2", 0, "^hybrid/index=hybrid_index_plus/threads=1/phase=update$", 0.7},
      {"I2", 1, "^hybrid/index=hybrid_index_plus/threads=most/phase=update$", 1.4},
      {"I2", 2, "^hybrid/index=hybrid_index_plus/threads=1/phase=insert$", 0.7},
      {"I2", 3, "^hybrid/index=hybrid_index_plus/threads=most/phase=insert$", 0.7},
      {"I3", 0, "^hybrid/index=hybrid_index_plus/threads=most/phase=read$", 0.8},
      {"I4", 0, "index=hybrid_index_plus/.*reopen$", 500, "restart/find_ns"},
      {"I4", 1, "index=hybrid_index_plus/.*reopen$", 500, "restart/scan_ns"},
      {"I4", 2, "index=hybrid_index/.*reopen$", 500, "restart/find_ns"},
      {"I5", 0, "^cache/distribution=zipfian:0.99/index=cache.fast_fair./.*read$", 1.5, mean},
      {"I5", 1, "^cache/distribution=zipfian:0.99/index=cache.fp_tree./.*read$", 1.5, mean},
      {"I5", 2, "^cache/distribution=zipfian:0.99/index=cache.skip_list./.*read$", 1.5, mean},
      {"I5", 3, "^cache/distribution=zipfian:0.99/index=cache.*read$", 1.2, mean},
      {"I6", 0, "^cache/distribution=uniform/index=cache.fast_fair./.*read$", 0.5, mean},
      {"I6", 1, "^cache/distribution=uniform/index=cache.fp_tree./.*read$", 0.5, mean},
      {"I6", 2, "^cache/distribution=uniform/index=cache.skip_list./.*read$", 0.5, mean},
      {"I7", 0, "^cache/distribution=zipfian:0.99/index=cache.fp_tree./.*read$", 0.7, mean},
      {"I7", 0, "^cache/distribution=zipfian:0.99/index=cache.fast_fair./.*read$", 1.3, mean},
      {"I8", 0, "^cache/distribution=zipfian:0.99/index=cache.fast_fair./.*insert$", 1.2, mean},
      {"I8", 1, "^cache/distribution=zipfian:0.99/index=cache.fp_tree./.*insert$", 1.2, mean},
      {"I8", 2, "^cache/distribution=zipfian:0.99/index=cache.skip_list./.*insert$", 1.2, mean},
      {"I9", 0, "^cache/distribution=zipfian:0.99/index=cache.fast_fair./.*update$", 0.8, mean},
      {"I9", 0, "^cache/distribution=zipfian:0.99/index=cache.fast_fair./.*update$", 1.3, mean},
      {"I9", 1, "^cache/distribution=zipfian:0.99/index=cache.fp_tree./.*update$", 0.8, mean},
      {"I9", 2, "^cache/distribution=zipfian:0.99/index=cache.skip_list./.*update$", 1.3, mean},
      {"I10", 0, "^cache_parallel/distribution=uniform/.*parallel./.*read$", 1.1, mean},
      {"I10", 1, "^cache_parallel/distribution=uniform/.*parallel./.*update$", 1.1, mean},
      {"I10", 2, "^cache_parallel/distribution=uniform/index=cache.fast_fair./.*read$", 0.8, mean},
      {"I10", 3, "^cache_parallel/distribution=zipfian:0.99/.*parallel./.*read$", 0.5, mean},
      {"I11", 0, "^adaptive_hybrid/.*adaptive./.*update$", 0.7},
      {"I11", 1, "^adaptive_hybrid/.*adaptive./.*read$", 0.7},
      {"I11", 2, "^adaptive_hybrid/.*adaptive./.*ycsb-a$", 0.7},
      {"I11", 3, "^adaptive_cache/distribution=zipfian:0.99/.*adaptive./.*read$", 0.7},
      {"I11", 4, "^adaptive_cache/distribution=uniform/.*adaptive./.*read$", 0.7},
  };
  return all;
}

TEST(IndexJudges, EveryConditionFailsWhereItsFiguresAreOtherwise) {
  expect_that_each_change_fails<indexes_world>(index_claims(), changes());
}

TEST(IndexJudges, NoConditionIsLeftUntried) { expect_that_no_condition_is_left_untried(index_claims(), changes()); }

TEST(IndexJudges, MissingCasesAreSaid) { expect_that_missing_cases_are_said<indexes_world>(index_claims()); }

}  // namespace
}  // namespace pmlab::claims
