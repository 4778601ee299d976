// joined_states: the search opens one state for each different course of a reader, and no other.
#include "checker/verify/joined_states.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/base/random.hpp>

#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace {

using namespace pmlab::verify;

constexpr std::size_t all_lines = 3;
using memory = std::array<line_content, all_lines>;
// Some contents of each line, at one point.
using point = std::array<std::vector<line_content>, all_lines>;

// A program that reads, and stores, where the values read so far send it.
template <class Read, class Write>
std::uint64_t run_reader(std::uint64_t program, Read&& read, Write&& write) {
  std::uint64_t seen = program;
  for (unsigned i = 0; i < 6; ++i) {
    const std::uint64_t next = pmlab::mix_bits(seen + i);
    const std::size_t line = next % all_lines;
    const std::size_t bytes = std::size_t{1} << (next >> 8) % 4;
    const std::size_t at = (next >> 16) % (64 / bytes) % 4 * bytes;
    if (next >> 60 == 0)
      write(line, bytes_of_line(at, bytes));
    else
      seen = pmlab::mix_bits(seen ^ read(line, bytes_of_line(at, bytes)) ^ (line * 64 + at) << 8 ^ bytes);
  }
  return seen;
}

std::uint64_t hash_of(const line_content& content, byte_mask bytes) {
  std::uint64_t hash = 7;
  for (const std::uint64_t word : only(content, bytes)) hash = pmlab::mix_bits(hash * 31 + word);
  return hash;
}

class Reader {
 public:
  explicit Reader(std::uint64_t seed) : random_(seed) {}

  // Points whose lines have a few contents, most of them those of the point before.
  std::vector<point> make_points() {
    std::vector<point> points(1 + random_.below(4));
    for (std::size_t p = 0; p < points.size(); ++p)
      for (std::size_t l = 0; l < all_lines; ++l) {
        if (p > 0 && random_.one_in(2)) {
          points[p][l] = points[p - 1][l];
          continue;
        }
        line_content content = p > 0 ? points[p - 1][l].back() : line_content{};
        points[p][l].push_back(content);
        for (std::uint64_t stores = random_.below(4); stores > 0; --stores) {
          // Some values are stored twice.
          content[random_.below(4)] = random_.below(3) << 8 * random_.below(8);
          points[p][l].push_back(content);
        }
      }
    return points;
  }

  std::uint64_t next() { return random_.next(); }

 private:
  pmlab::splitmix64 random_;
};

std::set<std::uint64_t> all_results(const std::vector<point>& points, std::uint64_t program) {
  std::set<std::uint64_t> results;
  for (const point& p : points)
    for (const line_content& a : p[0])
      for (const line_content& b : p[1])
        for (const line_content& c : p[2]) {
          memory m{a, b, c};
          results.insert(run_reader(
              program, [&](std::size_t line, byte_mask bytes) { return hash_of(m[line], bytes); },
              [&](std::size_t line, byte_mask bytes) {
                line_content filler;
                filler.fill(0x7777777777777777U);
                put(reinterpret_cast<std::byte*>(m[line].data()), filler, bytes);
              }));
        }
  return results;
}

joined_states joined(const std::vector<point>& points) {
  joined_states states;
  for (std::size_t p = 0; p < points.size(); ++p) {
    states.add_point();
    for (std::size_t l = 0; l < all_lines; ++l)
      if (p == 0 || points[p][l] != points[p - 1][l])
        states.set(static_cast<std::uint32_t>(l), line_content{}, points[p][l]);
    states.end_point();
  }
  return states;
}

TEST(JoinedStates, EveryCourseIsOpenedOnce) {
  for (std::uint64_t seed = 1; seed <= 3000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Reader reader(seed);
    const std::vector<point> points = reader.make_points();
    const std::uint64_t program = reader.next();
    const joined_states states = joined(points);
    point_set everywhere;
    everywhere.add_below(points.size());
    course_search search(states, everywhere);
    std::map<std::uint64_t, unsigned> opened;
    while (search.next()) {
      memory m;
      for (std::size_t l = 0; l < all_lines; ++l) {
        // Bytes that are not decided hold noise.
        m[l] = points[0][l].front();
        line_content noise;
        noise.fill(pmlab::mix_bits(seed + l));
        put(reinterpret_cast<std::byte*>(m[l].data()), noise, search.uncertain(l));
      }
      ++opened[run_reader(
          program,
          [&](std::size_t line, byte_mask bytes) {
            put(reinterpret_cast<std::byte*>(m[line].data()), search.content(line), search.read(line, bytes));
            return hash_of(m[line], bytes);
          },
          [&](std::size_t line, byte_mask bytes) {
            search.overwrite(line, bytes);
            line_content filler;
            filler.fill(0x7777777777777777U);
            put(reinterpret_cast<std::byte*>(m[line].data()), filler, bytes);
          })];
      ASSERT_TRUE(search.is_deterministic());
      ASSERT_FALSE(search.has_diverged());
    }
    std::set<std::uint64_t> results;
    for (const auto& [result, times] : opened) {
      results.insert(result);
      EXPECT_EQ(times, 1U);
    }
    ASSERT_EQ(results, all_results(points, program));
  }
}

TEST(JoinedStates, AReaderThatChangesItsMindIsNoticed) {
  line_content one{1};
  joined_states states;
  states.add_point();
  for (const std::uint32_t line : {0U, 1U}) states.set(line, {}, std::vector<line_content>{line_content{}, one});
  states.end_point();
  point_set everywhere;
  everywhere.add(0);
  course_search search(states, everywhere);
  ASSERT_TRUE(search.next());
  search.read(0, 1);
  ASSERT_TRUE(search.next());
  EXPECT_TRUE(search.has_diverged()) << "it has not read yet what it is about";
  search.read(1, 1);
  EXPECT_FALSE(search.is_deterministic());
  EXPECT_TRUE(search.has_diverged());
}

}  // namespace
