// Hash tables whose blocks were overwritten: `check` reports it, `open` refuses links that it cannot follow, and
// `salvage` returns the remaining entries and reports how many slots it could not read.
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/dash.hpp>
#include <pmlab/indexes/level_hashing.hpp>
#include <pmlab/media/dram.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "support/operations.hpp"

namespace pmlab::tests {
namespace {

struct block {
  char* start;
  std::size_t bytes;
};

// DRAM that knows its live blocks.
class known_blocks : public media::dram {
 public:
  class publication : public media::dram::publication {
   public:
    explicit publication(known_blocks& medium) : media::dram::publication(medium), medium_(medium) {}
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      void* const made = media::dram::publication::allocate(bytes, alignment);
      medium_.blocks.push_back({static_cast<char*>(made), bytes});
      return made;
    }
    void release(void* start, std::size_t bytes) {
      std::erase_if(medium_.blocks, [&](const block& b) { return b.start == start; });
      media::dram::publication::release(start, bytes);
    }

   private:
    known_blocks& medium_;
  };

  // Few, so that their tables have several buckets.
  [[nodiscard]] static std::size_t shards(std::size_t /*usual*/) noexcept { return 64; }

  std::vector<block> blocks;
};

using level_hashing = indexes::level_hashing<known_blocks>;

constexpr std::uint64_t entries = 10'000;
constexpr std::uint64_t key_of(std::uint64_t i) { return (i + 1) * 0x9e3779b97f4a7c15U; }

template <class Index>
void fill(known_blocks& medium) {
  auto index = Index::open(medium);
  for (std::uint64_t i = 0; i < entries; ++i) ASSERT_EQ(index.insert(key_of(i), i), indexes::outcome::inserted);
  ASSERT_TRUE(index.check().ok()) << index.check().violations.front();
}

// The segments of extendible hash tables; the levels of Level hashing.
std::vector<block> blocks_of_entries(const known_blocks& medium, std::size_t least, std::size_t most) {
  std::vector<block> chosen;
  for (const block& b : medium.blocks)
    if (b.bytes >= least && b.bytes <= most) chosen.push_back(b);
  return chosen;
}
void overwrite(const block& b, random& source) {
  for (std::size_t at = 0; at + 8 <= b.bytes; at += 8) {
    const std::uint64_t word = source.next();
    std::memcpy(b.start + at, &word, sizeof word);
  }
}

std::uint64_t word_at(const char* at) {
  std::uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}
void put_word(char* at, std::uint64_t word) { std::memcpy(at, &word, sizeof word); }

struct salvaged {
  std::uint64_t right = 0;
  std::uint64_t wrong = 0;
  std::string problem;
};
template <class Index>
salvaged salvage(known_blocks& medium) {
  salvaged result;
  std::map<std::uint64_t, std::uint64_t> wanted;
  for (std::uint64_t i = 0; i < entries; ++i) wanted[key_of(i)] = i;
  try {
    Index::salvage(medium, Index::layout_name, [&](std::uint64_t key, std::uint64_t value) {
      const auto at = wanted.find(key);
      const bool is_right = at != wanted.end() && at->second == value;
      (is_right ? result.right : result.wrong) += 1;
    });
  } catch (const error& e) {
    result.problem = e.what();
  }
  return result;
}

std::uint64_t number_in(const std::string& text, const std::string& after) {
  const std::size_t at = text.find(after);
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + after.size()));
}

// Tables that share detail/extendible/: bytes and slots of their segments.
using cceh = indexes::cceh<known_blocks>;
using dash = indexes::dash<known_blocks>;
template <class Index>
constexpr std::size_t segment_bytes = std::is_same_v<Index, cceh> ? sizeof(indexes::detail::cceh::segment)
                                                                  : sizeof(indexes::detail::dash::segment);
template <class Index>
constexpr std::size_t slots_per_segment =
    std::is_same_v<Index, cceh> ? indexes::detail::cceh::slots_per_segment : indexes::detail::dash::slots_per_segment;

template <class Index>
std::vector<block> segments_of(const known_blocks& medium) {
  return blocks_of_entries(medium, segment_bytes<Index>, segment_bytes<Index>);
}

using extendible_tables = testing::Types<cceh, dash>;
template <class Index>
class extendible_damage : public testing::Test {};
struct index_name {
  template <class Index>
  static std::string GetName(int /*position*/) {
    return std::string(Index::layout_name);
  }
};
TYPED_TEST_SUITE(extendible_damage, extendible_tables, index_name);

TYPED_TEST(extendible_damage, check_counts_the_slots_that_were_overwritten_and_repair_leaves_them_out) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    known_blocks medium;
    fill<TypeParam>(medium);
    random source(seed);
    const std::vector<block> segments = segments_of<TypeParam>(medium);
    std::size_t overwritten = 0;
    for (std::size_t i = 0; i < segments.size(); i += 3, ++overwritten) overwrite(segments[i], source);
    const std::uint64_t slots = overwritten * slots_per_segment<TypeParam>;

    auto index = TypeParam::open(medium);
    const indexes::check_report report = index.check();
    ASSERT_FALSE(report.ok()) << "seed " << seed;
    std::uint64_t counted = 0;
    for (const std::string& violation : report.violations) counted += number_in(violation, "I3: ");
    EXPECT_GT(counted, slots * 3 / 4) << "seed " << seed;
    EXPECT_LE(counted, slots) << "seed " << seed;

    const salvaged found = salvage<TypeParam>(medium);
    EXPECT_EQ(number_in(found.problem, "corrupt: "), counted) << found.problem;
    EXPECT_GT(found.right, entries / 2) << "seed " << seed;
    EXPECT_LT(found.wrong, slots / 4) << "seed " << seed;
  }
}

TYPED_TEST(extendible_damage, check_sees_one_random_line) {
  std::size_t seen = 0;
  constexpr std::size_t rounds = 40;
  for (std::size_t round = 0; round < rounds; ++round) {
    known_blocks medium;
    fill<TypeParam>(medium);
    random source(round);
    const std::vector<block> segments = segments_of<TypeParam>(medium);
    const block& s = segments[source.below(segments.size())];
    overwrite({s.start + 64 * source.below(segment_bytes<TypeParam> / 64), 64}, source);
    auto index = TypeParam::open(medium);
    seen += index.check().ok() ? 0 : 1;
  }
  // Four words, each of which passes with a chance of 1/4 at the most.
  EXPECT_GE(seen, rounds - 2);
}

TYPED_TEST(extendible_damage, does_not_open_with_a_directory_that_does_not_fit_together) {
  known_blocks medium;
  fill<TypeParam>(medium);
  const auto directories = blocks_of_entries(medium, 0, segment_bytes<TypeParam> - 1);
  ASSERT_EQ(directories.size(), 1U);
  char* const depth = directories[0].start;
  char* const first = depth + 8;
  const std::size_t count = (directories[0].bytes - 8) / 8;
  const auto refused = [&] {
    try {
      TypeParam::open(medium);
      return false;
    } catch (const error&) {
      return true;
    }
  };
  ASSERT_FALSE(refused());
  for (std::size_t i = 0; i < count; ++i) {
    char* const at = first + 8 * i;
    const std::uint64_t right = word_at(at);
    const std::uint64_t other = word_at(first + 8 * ((i + count / 2) % count));
    for (const std::uint64_t wrong :
         {std::uint64_t{0}, right ^ 0x40, right ^ 0x80, right ^ 1, right & ~std::uint64_t{63}, right | 63, other}) {
      put_word(at, wrong);
      EXPECT_TRUE(refused()) << "entry " << i << " of " << count << ": " << right << " -> " << wrong;
      // The segment of one entry is lost at the most.
      EXPECT_GT(salvage<TypeParam>(medium).right, entries / 2);
    }
    put_word(at, right);
  }
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{49}, ~std::uint64_t{0}}) {
    const std::uint64_t right = word_at(depth);
    put_word(depth, wrong);
    EXPECT_TRUE(refused());
    EXPECT_NE(salvage<TypeParam>(medium).problem, "");
    put_word(depth, right);
  }
  ASSERT_FALSE(refused());
  EXPECT_EQ(salvage<TypeParam>(medium).right, entries);
  EXPECT_EQ(salvage<TypeParam>(medium).problem, "");
}

// Entries that a split has left behind are no damage.
TYPED_TEST(extendible_damage, salvage_gives_each_entry_once) {
  known_blocks medium;
  fill<TypeParam>(medium);
  const salvaged found = salvage<TypeParam>(medium);
  EXPECT_EQ(found.right, entries);
  EXPECT_EQ(found.wrong, 0U);
  EXPECT_EQ(found.problem, "");
}

TEST(hash_damage, level_hashing_check_sees_buckets_that_were_overwritten_and_repair_leaves_them_out) {
  known_blocks medium;
  fill<level_hashing>(medium);
  random source(1);
  // The levels are the aligned blocks of 128 bytes and more; the root object is the largest one of all that are not.
  std::vector<block> levels = blocks_of_entries(medium, 128, ~std::size_t{0});
  std::erase_if(levels, [](const block& b) { return (b.bytes & (b.bytes - 1)) != 0; });
  std::size_t overwritten = 0;
  for (std::size_t i = 0; i < levels.size(); i += 5, ++overwritten) overwrite(levels[i], source);
  auto index = level_hashing::open(medium);
  const indexes::check_report report = index.check();
  ASSERT_FALSE(report.ok());
  const salvaged found = salvage<level_hashing>(medium);
  EXPECT_GT(found.right, entries / 2);
  EXPECT_LT(found.wrong, entries / 100);
  EXPECT_GT(number_in(found.problem, "corrupt: "), overwritten);
}

TEST(hash_damage, level_hashing_check_sees_an_empty_bucket_that_was_overwritten) {
  known_blocks medium;
  {
    auto index = level_hashing::open(medium);
    ASSERT_EQ(index.insert(1, 1), indexes::outcome::inserted);
  }
  std::size_t seen = 0;
  for (const block& b : blocks_of_entries(medium, 128, 256)) {
    const std::vector<char> before(b.start, b.start + b.bytes);
    put_word(b.start + 8, 0x5555);
    auto index = level_hashing::open(medium);
    seen += index.check().ok() ? 0 : 1;
    std::copy(before.begin(), before.end(), b.start);
  }
  EXPECT_EQ(seen, 2U);
}

}  // namespace
}  // namespace pmlab::tests
