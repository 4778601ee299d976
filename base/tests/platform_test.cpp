// Headers of the library take the facts of the machine from the header that a build names (other_machine.hpp).
#include <pmlab/base/platform.hpp>
#include <pmlab/base/simd.hpp>
#include <pmlab/media/clock.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/sync/run_in_parallel.hpp>
#include <pmlab/sync/transactions.hpp>

#include <type_traits>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

TEST(platform, of_another_machine_is_what_headers_ask) {
  EXPECT_EQ(media::fast_clock::instance().now(), 42U);
  EXPECT_FALSE(media::fast_clock::instance().uses_tsc());
  EXPECT_EQ(sync::recovery_threads(), 3U);
  EXPECT_FALSE(sync::hardware_transactions::available());
  EXPECT_EQ(simd_of_this_cpu(), simd::none);
  EXPECT_TRUE((std::is_same_v<media::dram, media::basic_dram<media::standard_blocks>>));
}

}  // namespace
}  // namespace pmlab::tests
