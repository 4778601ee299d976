// Parsing of hybrid(...).
#include <pmlab/hybrid/specification.hpp>

#include <gtest/gtest.h>

#include <string>

namespace {

using namespace pmlab;
using hybrid::primary;
using hybrid::update;

hybrid::description described(const std::string& text) {
  return hybrid::parse_description(parse_spec(hybrid::specification_of(text)));
}

TEST(specification, the_names_are_those_of_the_paper) {
  const hybrid::description first = described("hybrid_index");
  EXPECT_EQ(first.which, primary::hash);
  EXPECT_FALSE(first.hash.in_dram);
  EXPECT_TRUE(first.tree.in_dram);
  EXPECT_EQ(first.how.how, update::asynchronous);
  const hybrid::description second = described("hybrid_index_plus");
  EXPECT_EQ(second.which, primary::tree);
  EXPECT_TRUE(second.hash.in_dram);
  EXPECT_FALSE(second.tree.in_dram);
  EXPECT_EQ(second.how.how, update::synchronous);
}

TEST(specification, the_half_in_pmem_is_the_primary) {
  EXPECT_EQ(described("hybrid(hash=cceh@dram)").which, primary::tree);
  EXPECT_EQ(described("hybrid(hash=level_hashing)").which, primary::hash);
  EXPECT_EQ(described("hybrid(hash=cceh@pmem,tree=fp_tree@pmem,primary=tree)").which, primary::tree);
  EXPECT_EQ(described("hybrid(hash=cceh@pmem,tree=fp_tree@pmem,truth=tree)").which, primary::tree) << "the older name";
  EXPECT_EQ(described("hybrid(hash=cceh@dram,tree=fp_tree@dram)").which, primary::hash);
}

TEST(specification, options_are_read) {
  const hybrid::description d =
      described("hybrid(hash=cceh@pmem,tree=skip_list@dram,update=adaptive,queue=2k,scan=stale_ok,stale_bound=7)");
  EXPECT_EQ(d.tree.index, "skip_list");
  EXPECT_EQ(d.how.how, update::adaptive);
  EXPECT_EQ(d.how.queue, 2000U);
  EXPECT_EQ(d.how.scan, hybrid::scans::stale_ok);
  EXPECT_EQ(d.how.stale_bound, 7U);
}

TEST(specification, what_cannot_be_is_refused) {
  for (const char* const text :
       {"hybrid(cceh)", "hybrid(hash=cceh@disk)", "hybrid(hash=@dram)", "hybrid(update=often)", "hybrid(colour=red)",
        "hybrid(hash=cceh@dram,tree=fast_fair@pmem,primary=hash)", "hybrid(queue=0)", "hybrid(updaters=1000)"})
    EXPECT_THROW(described(text), error) << text;
}

}  // namespace
