// locked_cache(INDEX,...) in the benchmark.
#include <pmlab/base/error.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/cache/options.hpp>
#include <pmlab/erased/any_index.hpp>
#include "bench/catalogue/cached_subject.hpp"
#include "bench/catalogue/locked_cache.hpp"
#include "bench/catalogue/registry.hpp"

#include <array>
#include <string_view>

namespace pmlab::bench {
namespace {

index_description describe(const spec& given) {
  given.allow(std::array<std::string_view, 1>{"capacity"});
  if (given.arguments.size() != 1)
    throw error("locked_cache() is in front of one index, and " + std::to_string(given.arguments.size()) + " are named",
                "write locked_cache(INDEX,capacity=...)");
  cache::options o;
  o.size = cache::parse_capacity(given.option("capacity").value_or("10%"));
  return describe_cached<locked_cache<erased::attached_index>>(given, o, "a cache with one lock");
}

const registration registered(combination{
    "locked_cache", "locked_cache(INDEX,capacity=10%)",
    "for comparison with cache: a chained table under one LRU list and one lock, as [ASYNCCACHE] has it", describe});

}  // namespace
}  // namespace pmlab::bench
