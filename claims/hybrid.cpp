// I1 to I4: a hash and a tree over the same data, and which of them belongs into persistent memory. I11: choosing at run
// time. From experiments hybrid, hybrid_restart and adaptive_*.
#include "claims/indexes.hpp"

#include <string>
#include <utility>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using namespace detail;

constexpr std::string_view plain = "hybrid_index";
constexpr std::string_view plus = "hybrid_index_plus";
constexpr double as_good_as = 10;  // percent

quantity throughput(std::string_view index, std::string_view threads, std::string_view phase) {
  return of_index("hybrid", index, threads, phase, "value");
}

quantity gap(std::string_view threads) {
  return ratio(throughput(plus, threads, "read"), throughput(plain, threads, "read"));
}

condition slower_writes(std::string_view threads, std::string_view phase) {
  return {fmt::format("{}s, {}: HybridIndex+ below HybridIndex", phase, threads == "1" ? "1 thread" : "most threads"),
          unit::percent, percent_below(throughput(plus, threads, phase), throughput(plain, threads, phase)),
          between(22.5, 40)};
}

quantity restart(std::string_view index, std::string_view figure) {
  return of_index("hybrid_restart", index, "1", "reopen", figure);
}

// By how much what chooses is slower than the best of those that it can choose from.
condition near_the_best(const std::string& what, std::string_view experiment, const std::string& adaptive,
                        const std::vector<std::string>& fixed, std::string_view phase) {
  std::vector<quantity> all;
  all.reserve(fixed.size());
  for (const std::string& index : fixed) all.push_back(of_index(experiment, index, "most", phase, "value"));
  return {what, unit::percent,
          percent_below(of_index(experiment, adaptive, "most", phase, "value"), highest(std::move(all))),
          at_most(as_good_as)};
}

condition hybrid_choice(std::string_view phase) {
  const auto name = [](std::string_view how) {
    return fmt::format("hybrid(hash=cceh@dram,tree=fast_fair@pmem,update={})", how);
  };
  return near_the_best(fmt::format("HybridIndex+, {}: adaptive below the better of sync and async", phase),
                       "adaptive_hybrid", name("adaptive"), {name("sync"), name("async")}, phase);
}

condition cache_choice(std::string_view distribution) {
  const auto name = [](std::string_view mode) { return fmt::format("cache(fast_fair,mode={})", mode); };
  return near_the_best(fmt::format("cache, {} reads: adaptive below the better of serial and parallel", distribution),
                       fmt::format("adaptive_cache/distribution={}", distribution), name("adaptive"),
                       {name("serial"), name("parallel")}, "read");
}

}  // namespace

std::vector<claim> hybrid_claims() {
  return {
      {"I1",
       "HybridIndex+ (hash in DRAM, tree in PM) reads up to 1.8 times as fast as HybridIndex (hash in PM, tree in "
       "DRAM).",
       {{"reads: HybridIndex+ over HybridIndex, highest of 1 thread and most threads", unit::times,
         highest({gap("1"), gap("most")}), at_least(1.5)},
        {"reads: the lowest of them", unit::times, lowest({gap("1"), gap("most")}), at_least(1)}}},
      {"I2",
       "Its writes, which change both halves before they answer, are 30 % slower than HybridIndex's asynchronous ones.",
       {slower_writes("1", "update"), slower_writes("most", "update"), slower_writes("1", "insert"),
        slower_writes("most", "insert")}},
      {"I3",
       "The gap between their reads grows with the number of threads.",
       {{"reads: HybridIndex+ over HybridIndex, most threads over 1 thread", unit::times, ratio(gap("most"), gap("1")),
         at_least(1.1)}}},
      {"I4",
       "After a restart HybridIndex+ answers finds and scans as soon as its tree is open; HybridIndex has to make its "
       "tree anew first.",
       {{"HybridIndex+: first find after a restart, over HybridIndex's first scan", unit::times,
         ratio(restart(plus, "restart/find_ns"), restart(plain, "restart/scan_ns")), at_most(0.1)},
        {"HybridIndex+: first scan, over HybridIndex's", unit::times,
         ratio(restart(plus, "restart/scan_ns"), restart(plain, "restart/scan_ns")), at_most(0.1)},
        {"HybridIndex: first scan, over its first find", unit::times,
         ratio(restart(plain, "restart/scan_ns"), restart(plain, "restart/find_ns")), at_least(10)}}},
  };
}

claim adaptive_claim() {
  return {
      "I11",
      "Synchronous or asynchronous updates, serial or parallel lookups can be chosen from the load seen at run time.",
      {hybrid_choice("update"), hybrid_choice("read"), hybrid_choice("ycsb-a"), cache_choice("zipfian:0.99"),
       cache_choice("uniform")}};
}

}  // namespace pmlab::claims
