// Sequences that results, pools and replayed seeds depend on: they stay as they are.
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>

#include <array>
#include <cstdint>

#include <gtest/gtest.h>

namespace pmlab::tests {
namespace {

template <class Source>
std::array<std::uint64_t, 3> first_of(Source source) {
  return {source.next(), source.next(), source.next()};
}

TEST(random, sequences_stay_as_they_are) {
  using words = std::array<std::uint64_t, 3>;
  EXPECT_EQ(first_of(splitmix64(1)), (words{0x910a2dec89025cc1, 0xbeeb8da1658eec67, 0xf893a2eefb32555e}));
  EXPECT_EQ(first_of(random_source(1, 3)), (words{0xde86e5b95bf2b470, 0x2ad660fad332fca2, 0x06335e96ac3567af}));
  EXPECT_EQ(first_of(xorshift64()), (words{0x40822041, 0x100041060c011441, 0x9b1e842f6e862629}));
}

TEST(random, the_finaliser_can_be_undone) {
  splitmix64 source(7);
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t word = source.next();
    ASSERT_EQ(unmix_bits(mix_bits(word)), word);
    ASSERT_EQ((word | 1) * inverse_of(word | 1), 1U);
  }
}

}  // namespace
}  // namespace pmlab::tests
