// Missing features of the CPU are reported by name.
#include "microbench/memory/cpu_features.hpp"

#include <gtest/gtest.h>

namespace pmlab::microbench {
namespace {

TEST(Cpu, SkipsWhatItLacks) {
  bench_case c;
  c.operation = operation_kind::load;
  c.load = load_kind::avx512;
  EXPECT_EQ(lack_for(c, {}), "this CPU has no AVX-512");
  EXPECT_EQ(lack_for(c, {.avx512 = true}), "");
  c.load = load_kind::avx2;
  EXPECT_EQ(lack_for(c, {}), "this CPU has no AVX2");
  c.load = load_kind::scalar;
  c.store = store_kind::movdir64b;
  EXPECT_EQ(lack_for(c, {}), "") << "a load needs no store";
  c.operation = operation_kind::store;
  EXPECT_EQ(lack_for(c, {}), "this CPU has no movdir64b");
  c.store = store_kind::clwb;
  EXPECT_EQ(lack_for(c, {}), "this CPU has no clwb");
  c.store = store_kind::clflushopt;
  EXPECT_EQ(lack_for(c, {}), "this CPU has no clflushopt");
  c.store = store_kind::clflush;
  EXPECT_EQ(lack_for(c, {}), "") << "every x86-64 has it";
}

TEST(Cpu, WidestIsTheWidestThatItHas) {
  EXPECT_EQ(resolved(load_kind::widest, {}), load_kind::scalar);
  EXPECT_EQ(resolved(load_kind::widest, {.avx2 = true}), load_kind::avx2);
  EXPECT_EQ(resolved(load_kind::widest, {.avx2 = true, .avx512 = true}), load_kind::avx512);
  EXPECT_EQ(resolved(load_kind::scalar, {.avx2 = true}), load_kind::scalar);
}

}  // namespace
}  // namespace pmlab::microbench
