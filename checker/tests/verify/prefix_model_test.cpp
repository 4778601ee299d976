// The history of a store whose changes have sequences: which reads it explains.
#include "checker/verify/prefix_model.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace {

using pmlab::verify::prefix_change;
using pmlab::verify::prefix_keys;
using pmlab::verify::prefix_model;
using pmlab::verify::prefix_step;
using act = prefix_step::action;

class reads_beside_writers : public testing::Test {
 protected:
  void write(unsigned thread, std::vector<prefix_change> changes, std::uint64_t sequence) {
    const prefix_step s{act::apply, std::move(changes), 0};
    history_.called(thread, s);
    EXPECT_EQ(history_.changed(thread, s, sequence), "");
  }
  void begin_get(unsigned thread, std::uint32_t key) { history_.called(thread, get(key)); }
  void end_get(unsigned thread, std::uint32_t key, std::uint32_t number) {
    history_.saw(thread, {{key, number}});
    history_.returned(thread, get(key));
  }
  void get_now(unsigned thread, std::uint32_t key, std::uint32_t number) {
    begin_get(thread, key);
    end_get(thread, key, number);
  }
  void walk_now(unsigned thread, std::vector<prefix_change> seen) {
    history_.called(thread, {act::walk, {}, 0});
    history_.saw(thread, std::move(seen));
    history_.returned(thread, {act::walk, {}, 0});
  }
  static prefix_step get(std::uint32_t key) { return {act::get, {}, key}; }

  prefix_model history_{10};
};

TEST_F(reads_beside_writers, what_had_returned_is_seen) {
  write(0, {{1, 5}}, 1);
  write(0, {{1, 6}}, 2);
  get_now(1, 1, 6);
  EXPECT_EQ(history_.judge_reads(), "");
  get_now(1, 1, 5);
  EXPECT_NE(history_.judge_reads(), "");
}

TEST_F(reads_beside_writers, a_change_meanwhile_is_seen_or_not) {
  write(0, {{1, 5}}, 1);
  begin_get(1, 1);
  begin_get(2, 1);
  write(0, {{1, 6}}, 2);
  end_get(1, 1, 5);
  end_get(2, 1, 6);
  EXPECT_EQ(history_.judge_reads(), "");
}

TEST_F(reads_beside_writers, a_key_that_was_there_throughout_is_not_absent) {
  write(0, {{1, 5}}, 1);
  begin_get(1, 1);
  write(0, {{0, 6}}, 2);
  end_get(1, 1, 0);
  EXPECT_NE(history_.judge_reads(), "");
}

TEST_F(reads_beside_writers, a_new_change_is_not_seen_before_an_old_one) {
  write(0, {{1, 5}}, 1);
  const prefix_step slow{act::apply, {{1, 6}}, 0};
  history_.called(0, slow);
  get_now(1, 1, 6);
  get_now(1, 1, 5);
  EXPECT_EQ(history_.changed(0, slow, 2), "");
  EXPECT_NE(history_.judge_reads(), "");
}

TEST_F(reads_beside_writers, a_change_is_not_seen_before_it_is_called) {
  get_now(1, 1, 5);
  write(0, {{1, 5}}, 1);
  EXPECT_NE(history_.judge_reads(), "");
}

TEST_F(reads_beside_writers, a_batch_is_seen_whole) {
  history_.called(1, {act::walk, {}, 0});
  history_.called(2, {act::walk, {}, 0});
  write(0, {{1, 5}, {2, 6}}, 2);
  history_.saw(1, {{1, 5}, {2, 6}});
  history_.returned(1, {act::walk, {}, 0});
  EXPECT_EQ(history_.judge_reads(), "");
  history_.saw(2, {{1, 5}, {2, 0}});
  history_.returned(2, {act::walk, {}, 0});
  EXPECT_NE(history_.judge_reads(), "");
}

TEST_F(reads_beside_writers, a_snapshot_has_one_moment) {
  write(0, {{1, 5}}, 1);
  history_.called(1, {act::hold, {}, 0});
  write(0, {{1, 6}}, 2);
  history_.held(1);
  history_.returned(1, {act::hold, {}, 0});
  write(0, {{2, 7}}, 3);
  const std::vector<prefix_change> old{{1, 5}, {2, 0}};
  const std::vector<prefix_change> other{{1, 6}, {2, 0}};
  history_.saw_in_snapshot(1, old);
  history_.saw_in_snapshot(1, old);
  EXPECT_EQ(history_.judge_reads(), "");
  history_.saw_in_snapshot(1, other);
  EXPECT_NE(history_.judge_reads(), "");
}

TEST_F(reads_beside_writers, what_was_there_at_the_opening_is_seen) {
  std::vector<std::uint32_t> before(prefix_keys);
  before[3] = 9;
  history_.there_before(before, 40);
  get_now(0, 3, 9);
  write(0, {{3, 10}}, 41);
  walk_now(0, {{3, 10}});
  EXPECT_EQ(history_.judge_reads(), "");
  get_now(0, 3, 9);
  EXPECT_NE(history_.judge_reads(), "");
}

}  // namespace
