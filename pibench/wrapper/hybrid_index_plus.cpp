// HybridIndex+ as a library for PiBench: the tree in the pool, the hash in DRAM.
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>
#include <pmlab/pibench/wrapper/create.hpp>
#include <pmlab/pibench/wrapper/hybrid.hpp>

extern "C" __attribute__((visibility("default"))) tree_api* create_tree(const tree_options_t& options) {
  namespace indexes = pmlab::indexes;
  using recipe = pmlab::pibench::of_halves<pmlab::hybrid::truth::tree, indexes::cceh, indexes::fast_fair>;
  return pmlab::pibench::create<recipe>("hybrid_index_plus", options);
}
