// HybridIndex+ as a library for PiBench: the tree in the pool, the hash in DRAM.
#include "tools/pibench/wrapper/create.hpp"
#include "tools/pibench/wrapper/hybrid.hpp"
#include "tools/pibench/wrapper/words_of_recipe.hpp"
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/fast_fair.hpp>

extern "C" __attribute__((visibility("default"))) tree_api* create_tree(const tree_options_t& options) {
  namespace indexes = pmlab::indexes;
  using recipe = pmlab::pibench::of_halves<pmlab::hybrid::primary::tree, indexes::cceh, indexes::fast_fair>;
  return pmlab::pibench::create("hybrid_index_plus", options, pmlab::pibench::make_words_of<recipe>);
}
