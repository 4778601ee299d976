// I5 to I10: an asynchronous cache in front of an index. From experiments cache and cache_parallel.
#include "claims/indexes.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using namespace detail;

struct named_index {
  std::string_view name, title;
};
constexpr std::array<named_index, 3> indexes = {
    {{"fast_fair", "FAST-FAIR"}, {"fp_tree", "FP-tree"}, {"skip_list", "skip list"}}};

std::string with_cache(std::string_view index) { return fmt::format("cache({})", index); }

// Of experiment cache, one thread: nanoseconds of an operation.
quantity mean(std::string_view distribution, std::string_view index, std::string_view phase) {
  return of_index(fmt::format("cache/distribution={}", distribution), index, "1", phase, "latency_ns/mean");
}
quantity gain(std::string_view distribution, std::string_view index, std::string_view phase) {
  return percent_below(mean(distribution, with_cache(index), phase), mean(distribution, index, phase));
}
quantity loss(std::string_view index, std::string_view phase) {
  quantity q = gain(zipfian, index, phase);
  return times(-1, std::move(q));
}

std::vector<quantity> of_each(const std::function<quantity(std::string_view)>& make) {
  std::vector<quantity> all;
  all.reserve(indexes.size());
  for (const named_index& i : indexes) all.push_back(make(i.name));
  return all;
}

// From each index to the next slower one, by how many percentage points the gain rises: the least of these.
quantity least_step_of_gain() {
  const std::vector<quantity> bare = of_each([](std::string_view i) { return mean(zipfian, i, "read"); });
  const std::vector<quantity> gains = of_each([](std::string_view i) { return gain(zipfian, i, "read"); });
  std::vector<std::string> cases;
  for (const quantity& q : gains) cases.insert(cases.end(), q.cases.begin(), q.cases.end());
  return {std::move(cases), [bare, gains](const evidence& e, const lookup& figure) {
            std::vector<std::pair<double, double>> all;
            for (std::size_t i = 0; i < bare.size(); ++i)
              all.emplace_back(bare[i].of(e, figure), gains[i].of(e, figure));
            std::sort(all.begin(), all.end());
            double least = std::numeric_limits<double>::infinity();
            for (std::size_t i = 1; i < all.size(); ++i) least = std::min(least, all[i].second - all[i - 1].second);
            return least;
          }};
}

std::vector<condition> for_each_index(std::string_view what, const std::function<quantity(std::string_view)>& make,
                                      range must_be) {
  std::vector<condition> all;
  all.reserve(indexes.size());
  for (const named_index& i : indexes)
    all.push_back({fmt::format("{}: {}", i.title, what), unit::percent, make(i.name), must_be});
  return all;
}

claim reads_gain() {
  std::vector<condition> all = for_each_index(
      "zipfian reads faster with the cache by", [](std::string_view i) { return gain(zipfian, i, "read"); },
      at_least(20));
  all.push_back({"the largest of them", unit::percent,
                 highest(of_each([](std::string_view i) { return gain(zipfian, i, "read"); })), at_least(32)});
  return {"I5", "With a cache of 10 % of the data, zipfian reads take 20 to 50 % less time, up to 40 %.",
          std::move(all)};
}

// Of experiment cache_parallel.
quantity lookup_time(std::string_view distribution, const std::string& index, std::string_view phase) {
  return of_index(fmt::format("cache_parallel/distribution={}", distribution), index, "1", phase, "latency_ns/mean");
}

claim parallel_lookup() {
  const std::string bare = "fast_fair";
  const std::string serial = "cache(fast_fair)";
  const std::string parallel = "cache(fast_fair,mode=parallel)";
  const auto over = [](std::string_view distribution, const std::string& above, const std::string& below,
                       std::string_view phase) {
    return ratio(lookup_time(distribution, above, phase), lookup_time(distribution, below, phase));
  };
  return {
      "I10",
      "Searching cache and index at once takes the price of a miss away from reads and updates, and costs processor "
      "time: it pays where few lookups hit.",
      {{"uniform reads: parallel over the bare index", unit::times, over("uniform", parallel, bare, "read"),
        at_most(1.1)},
       {"uniform updates: parallel over the bare index", unit::times, over("uniform", parallel, bare, "update"),
        at_most(1.1)},
       {"uniform reads: parallel over serial", unit::times, over("uniform", parallel, serial, "read"), at_most(1)},
       {"zipfian reads: parallel over serial", unit::times, over(zipfian, parallel, serial, "read"), at_least(1)}}};
}

}  // namespace

std::vector<claim> cache_claims() {
  return {
      reads_gain(),
      {"I6", "With uniform keys the serial cache gains nothing, or makes reads slower.",
       for_each_index(
           "uniform reads faster with the cache by", [](std::string_view i) { return gain("uniform", i, "read"); },
           at_most(10))},
      {"I7",
       "The slower the index, the larger the gain.",
       {{"zipfian reads: from an index to the next slower one the gain rises by, at least", unit::percent,
         least_step_of_gain(), at_least(0)}}},
      {"I8", "Inserts are not affected by the cache.",
       for_each_index(
           "inserts slower with the cache by", [](std::string_view i) { return loss(i, "insert"); }, at_most(10))},
      {"I9", "Updates are 20 to 30 % slower with the cache, because both copies change before they answer.",
       for_each_index(
           "zipfian updates slower with the cache by", [](std::string_view i) { return loss(i, "update"); },
           between(15, 40))},
      parallel_lookup(),
  };
}

}  // namespace pmlab::claims
