// cache(INDEX,...) in the benchmark.
#include <pmlab/cache/async_cache.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/cache/options.hpp>
#include <pmlab/erased/any_index.hpp>
#include "bench/catalogue/cached_subject.hpp"
#include "bench/catalogue/registry.hpp"

namespace pmlab::bench {
namespace {

using cached_index = cache::async_cache<erased::attached_index, cache::chosen_eviction>;

index_description describe(const spec& given) {
  return describe_cached<cached_index>(given, cache::parse_options(given), "a cache in DRAM");
}

const registration registered(combination{"cache",
                                          "cache(INDEX,mode=serial|interleaved|parallel|bypass|adaptive,capacity=10%,"
                                          "eviction=s3_fifo|lru|clock,fills=background|caller)",
                                          "the asynchronous cache in DRAM in front of an index (docs/cache.md)",
                                          describe});

}  // namespace
}  // namespace pmlab::bench
