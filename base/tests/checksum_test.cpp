// The checksum finds each changed bit and byte, and tells lengths and seeds apart.
#include <pmlab/base/checksum.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

namespace pmlab::tests {
namespace {

TEST(Checksum, finds_each_changed_bit) {
  for (const std::size_t bytes : {1U, 7U, 8U, 31U, 32U, 33U, 100U}) {
    std::vector<unsigned char> data(bytes, 0x5a);
    const std::uint64_t right = checksum(data.data(), bytes);
    for (std::size_t bit = 0; bit < bytes * 8; ++bit) {
      data[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
      EXPECT_NE(checksum(data.data(), bytes), right) << bytes << " bytes, bit " << bit;
      data[bit / 8] ^= static_cast<unsigned char>(1U << (bit % 8));
    }
    EXPECT_EQ(checksum(data.data(), bytes), right);
  }
}

TEST(Checksum, tells_lengths_seeds_and_orders_apart) {
  const std::vector<unsigned char> zeros(200, 0);
  std::set<std::uint64_t> seen;
  for (std::size_t bytes = 0; bytes <= zeros.size(); ++bytes)
    for (std::uint64_t seed = 0; seed < 5; ++seed) seen.insert(checksum(zeros.data(), bytes, seed));
  EXPECT_EQ(seen.size(), 201U * 5);

  const std::uint64_t forward[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const std::uint64_t swapped_lanes[] = {2, 1, 3, 4, 5, 6, 7, 8};
  const std::uint64_t swapped_steps[] = {5, 6, 7, 8, 1, 2, 3, 4};
  EXPECT_NE(checksum(forward, 64), checksum(swapped_lanes, 64));
  EXPECT_NE(checksum(forward, 64), checksum(swapped_steps, 64));
}

// Written into files: it may not change. The values are xxhsum's.
TEST(Checksum, is_the_same_on_every_machine) {
  EXPECT_EQ(checksum("", 0), 0x2d06800538d394c2);
  EXPECT_EQ(checksum("persistent memory, blocks and checksums", 39), 0x61f1989c6759db61);
}
// As releases before 0.2 wrote it, and as keys are placed.
TEST(Checksum, of_earlier_releases_is_known) {
  EXPECT_EQ(hash_of_bytes("", 0), 0x5e116bbbcd952a31);
  const char* const text = "persistent memory, blocks and checksums";
  EXPECT_EQ(hash_of_bytes(text, 39), 0x3b95a9bba462be72);
  EXPECT_TRUE(is_checksum(0x3b95a9bba462be72, text, 39));
  EXPECT_TRUE(is_checksum(checksum(text, 39), text, 39));
  EXPECT_FALSE(is_checksum(checksum(text, 39) ^ 1, text, 39));
  EXPECT_FALSE(is_checksum(hash_of_bytes(text, 39), text, 39, 1));
}

}  // namespace
}  // namespace pmlab::tests
