// The states that a crash may leave on a drive of the simulated machine: the rules of blocks/device.hpp, one by one.
#include "checker/simulator/machine/persistent_drive.hpp"

#include <pmlab/blocks/buffer.hpp>

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace pmlab::simulator {
namespace {

using blocks::operation;

class a_drive {
 public:
  explicit a_drive(const blocks::geometry& shape, std::uint64_t seed = 1) : drive(shape), queue(drive) {
    drive.begin(seed);
  }

  // Every sector holds `letter`.
  void submit_write(std::uint64_t first, std::uint32_t count, char letter, std::uint64_t tag,
                    operation what = operation::write) {
    buffers_.push_back(std::make_unique<blocks::buffer>(count * drive.shape().block_bytes));
    std::memset(buffers_.back()->data(), letter, buffers_.back()->size());
    submit({what, blocks::stream::data, count, first, buffers_.back()->data(), tag});
  }
  void submit(const blocks::request& r) { drive.submit(queue, r, nullptr); }
  void write(std::uint64_t first, std::uint32_t count, char letter, operation what = operation::write) {
    submit_write(first, count, letter, 77, what);
    drive.complete(queue, 77);
  }
  void flush() {
    submit({operation::flush, blocks::stream::data, 0, 0, nullptr, 78});
    drive.complete(queue, 78);
  }

  // The first letters of all sectors after each crash that is possible now; '.' is zero.
  [[nodiscard]] std::set<std::string> states() const {
    std::set<std::string> all;
    std::vector<std::uint32_t> choice(drive.uncertain().size());
    for (bool more = true; more;) {
      std::vector<std::byte> image(drive.sectors() * sector_bytes);
      drive.write_image(image.data(), choice);
      std::string letters;
      for (std::size_t s = 0; s < drive.sectors(); ++s) {
        const char c = static_cast<char>(image[s * sector_bytes]);
        letters += c == 0 ? '.' : c;
      }
      all.insert(letters);
      more = false;
      for (std::size_t i = 0; i < choice.size() && !more; ++i) {
        more = choice[i] < drive.unit(drive.uncertain()[i]).versions.size();
        choice[i] = more ? choice[i] + 1 : 0;
      }
    }
    return all;
  }

  persistent_drive drive;
  persistent_drive::queue queue;

 private:
  std::vector<std::unique_ptr<blocks::buffer>> buffers_;
};

using states = std::set<std::string>;
constexpr blocks::geometry small{.blocks = 3, .block_bytes = 512, .atomic_bytes = 512};

TEST(persistent_drive, a_write_is_uncertain_from_its_submission_unit_by_unit) {
  a_drive d(small);
  d.submit_write(0, 2, 'a', 1);
  EXPECT_EQ(d.states(), (states{"...", "a..", ".a.", "aa."}));
  d.drive.complete(d.queue, 1);
  EXPECT_EQ(d.states(), (states{"...", "a..", ".a.", "aa."}));
}

TEST(persistent_drive, a_crash_keeps_any_version_since_the_last_durable_one) {
  a_drive d(small);
  d.write(0, 1, 'a');
  d.flush();
  d.write(0, 1, 'b');
  d.write(0, 1, 'c');
  EXPECT_EQ(d.states(), (states{"a..", "b..", "c.."}));
  d.flush();
  EXPECT_EQ(d.states(), (states{"c.."}));
}

TEST(persistent_drive, a_flush_covers_what_had_completed_before_it_was_submitted) {
  a_drive d(small);
  d.write(0, 1, 'a');
  d.submit_write(1, 1, 'b', 1);
  d.submit({operation::flush, blocks::stream::data, 0, 0, nullptr, 2});
  d.write(2, 1, 'c');
  d.drive.complete(d.queue, 1);
  d.drive.complete(d.queue, 2);
  EXPECT_EQ(d.states(), (states{"a..", "ab.", "a.c", "abc"}));
}

TEST(persistent_drive, a_durable_write_is_durable_when_it_completes_and_alone) {
  a_drive d(small);
  d.write(0, 1, 'a');
  d.write(1, 1, 'b', operation::write_durable);
  EXPECT_EQ(d.states(), (states{".b.", "ab."}));
}

TEST(persistent_drive, without_a_volatile_cache_completion_is_enough) {
  blocks::geometry shape = small;
  shape.volatile_cache = false;
  a_drive d(shape);
  d.submit_write(0, 1, 'a', 1);
  EXPECT_EQ(d.states(), (states{"...", "a.."}));
  d.drive.complete(d.queue, 1);
  EXPECT_EQ(d.states(), (states{"a.."}));
}

TEST(persistent_drive, a_block_is_torn_where_the_unit_is_smaller_and_whole_where_it_is_as_large) {
  const auto all_of = [](std::uint32_t atomic) {
    a_drive d({.blocks = 1, .block_bytes = 1024, .atomic_bytes = atomic});
    d.submit_write(0, 1, 'a', 1);
    return d.states();
  };
  EXPECT_EQ(all_of(0), (states{"..", "a.", ".a", "aa"}));
  EXPECT_EQ(all_of(1024), (states{"..", "aa"}));
}

TEST(persistent_drive, small_writes_to_one_large_unit_do_not_lose_each_other) {
  a_drive d({.blocks = 2, .block_bytes = 512, .atomic_bytes = 1024, .volatile_cache = false});
  d.submit_write(0, 1, 'a', 1);
  d.submit_write(1, 1, 'b', 2);
  d.drive.complete(d.queue, 2);
  EXPECT_EQ(d.states(), (states{".b", "ab"}));
  d.drive.complete(d.queue, 1);
  EXPECT_EQ(d.states(), (states{"ab"}));
}

TEST(persistent_drive, overlapping_writes_in_flight_end_in_any_order) {
  states seen;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    a_drive d(small, seed);
    d.submit_write(0, 1, 'a', 1);
    d.submit_write(0, 1, 'b', 2);
    while (!d.queue.in_flight.empty()) d.drive.complete_one(d.queue);
    d.flush();
    const states one = d.states();
    EXPECT_EQ(one.size(), 1u) << "seed " << seed;
    seen.insert(one.begin(), one.end());
  }
  EXPECT_EQ(seen, (states{"a..", "b.."}));
}

TEST(persistent_drive, overlapping_writes_end_durably_in_the_order_that_reads_see) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    blocks::geometry shape = small;
    shape.volatile_cache = false;
    a_drive d(shape, seed);
    d.submit_write(0, 1, 'a', 1);
    d.submit_write(0, 1, 'b', 2);
    d.submit_write(0, 1, 'c', 3);
    for (int i = 0; i < 4; ++i) d.drive.progress();
    while (!d.queue.in_flight.empty()) d.drive.complete_one(d.queue);
    blocks::buffer data(512);
    d.submit({operation::read, blocks::stream::data, 1, 0, data.data(), 4});
    d.drive.complete(d.queue, 4);
    EXPECT_EQ(d.states(), (states{std::string{static_cast<char>(data.data()[0]), '.', '.'}})) << "seed " << seed;
  }
}

TEST(persistent_drive, a_discarded_block_is_old_or_zero_or_anything) {
  states durable;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    a_drive d(small, seed);
    d.write(0, 1, 'a');
    d.flush();
    d.submit({operation::discard, blocks::stream::data, 1, 0, nullptr, 1});
    // The garbage may begin as one of the others.
    EXPECT_GE(d.states().size(), 2u) << "seed " << seed;
    d.drive.complete(d.queue, 1);
    d.flush();
    const states one = d.states();
    EXPECT_EQ(one.size(), 1u) << "seed " << seed;
    durable.insert(one.begin(), one.end());
  }
  EXPECT_TRUE(durable.contains("a.."));
  EXPECT_TRUE(durable.contains("..."));
  EXPECT_GT(durable.size(), 2u);
}

TEST(persistent_drive, a_failed_write_is_old_or_new_until_a_later_one_is_durable) {
  a_drive d(small);
  d.submit_write(0, 1, 'a', 1);
  d.drive.fail(d.queue, 1);
  d.flush();
  EXPECT_EQ(d.states(), (states{"...", "a.."}));
  d.write(0, 1, 'b');
  d.flush();
  EXPECT_EQ(d.states(), (states{"b.."}));
}

TEST(persistent_drive, equal_states_have_equal_hashes) {
  a_drive d(small);
  EXPECT_EQ(d.drive.durable_hash(), 0u);
  d.write(0, 2, 'a');
  const std::uint64_t before = d.drive.durable_hash();
  std::uint64_t hash = before;
  for (const std::uint32_t unit : d.drive.uncertain()) hash = d.drive.hash_with(hash, unit, 1);
  EXPECT_NE(hash, before);
  d.flush();
  EXPECT_EQ(d.drive.durable_hash(), hash);
}

TEST(persistent_drive, data_that_change_in_flight_are_a_misuse) {
  a_drive d(small);
  std::string misuse;
  d.drive.on_misuse = [&](const std::string& what) { misuse = what; };
  blocks::buffer data(512);
  d.submit({operation::write, blocks::stream::data, 1, 0, data.data(), 1});
  data.data()[5] = std::byte{1};
  d.drive.complete(d.queue, 1);
  EXPECT_NE(misuse.find("changed before the write completed"), std::string::npos) << misuse;
}

}  // namespace
}  // namespace pmlab::simulator
