// The history model: histories with known verdicts.
#include "checker/verify/history_model.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::verify {
namespace {

using indexes::entry;
using indexes::outcome;

constexpr answer inserted{outcome::inserted, {}};
constexpr answer exists{outcome::exists, {}};
constexpr answer updated{outcome::updated, {}};
constexpr answer erased{outcome::erased, {}};
constexpr answer not_found{};
answer found(std::uint64_t value) { return {{}, value}; }

const step insert_1{action::insert, 7, 1};
const step insert_2{action::insert, 7, 2};
const step update_3{action::update, 7, 3};
const step erase_it{action::erase, 7, 0};
const step find_it{action::find, 7, 0};

bool allowed(history_model& p, const std::vector<entry>& entries) { return p.judge(entries).empty(); }

TEST(history_model, one_thread_is_held_to_the_order_of_its_operations) {
  history_model p({7, 9});
  p.called(0, insert_1);
  EXPECT_TRUE(allowed(p, {}));
  EXPECT_TRUE(allowed(p, {{7, 1}})) << "under way: wholly or not at all";
  EXPECT_FALSE(allowed(p, {{7, 2}}));
  EXPECT_EQ(p.returned(0, insert_1, inserted), "");
  EXPECT_FALSE(allowed(p, {}));
  EXPECT_TRUE(allowed(p, {{7, 1}}));
  EXPECT_FALSE(allowed(p, {{7, 1}, {7, 1}})) << "twice";
  EXPECT_FALSE(allowed(p, {{7, 1}, {8, 1}})) << "a key without operations";
  p.called(0, insert_2);
  EXPECT_NE(p.returned(0, insert_2, inserted), "") << "it was there";
}

TEST(history_model, overlapping_operations_may_have_any_order) {
  history_model p({7});
  p.called(0, insert_1);
  p.called(1, insert_2);
  EXPECT_EQ(p.returned(1, insert_2, exists), "") << "the other one was first";
  EXPECT_TRUE(allowed(p, {{7, 1}}));
  EXPECT_FALSE(allowed(p, {})) << "its answer depended on the other one, which must be durable by then";
  EXPECT_EQ(p.returned(0, insert_1, inserted), "");
  EXPECT_FALSE(allowed(p, {{7, 2}}));
}

TEST(history_model, two_inserts_of_one_key_do_not_both_succeed) {
  history_model p({7});
  p.called(0, insert_1);
  p.called(1, insert_2);
  EXPECT_EQ(p.returned(1, insert_2, inserted), "");
  const std::string wrong = p.returned(0, insert_1, inserted);
  EXPECT_NE(wrong.find("no order"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("insert(7, 2)"), std::string::npos) << wrong;
}

TEST(history_model, a_read_that_was_answered_stays_true_after_a_crash) {
  history_model p({7});
  p.called(0, insert_1);
  p.called(1, find_it);
  EXPECT_TRUE(allowed(p, {}));
  EXPECT_EQ(p.returned(1, find_it, found(1)), "");
  EXPECT_FALSE(allowed(p, {})) << "strict durable linearizability";
  EXPECT_TRUE(allowed(p, {{7, 1}}));
}

TEST(history_model, a_read_is_not_older_than_its_call) {
  history_model p({7});
  p.called(0, insert_1);
  EXPECT_EQ(p.returned(0, insert_1, inserted), "");
  p.called(0, update_3);
  p.called(1, find_it);
  EXPECT_EQ(p.returned(0, update_3, updated), "");
  p.called(2, find_it);
  EXPECT_EQ(p.returned(2, find_it, found(3)), "");
  p.called(2, find_it);
  EXPECT_NE(p.returned(2, find_it, found(1)), "") << "it was called after the update had returned";
}

TEST(history_model, reads_do_not_go_back_in_time) {
  history_model p({7});
  p.called(0, insert_1);
  p.called(1, find_it);
  EXPECT_EQ(p.returned(1, find_it, found(1)), "");
  p.called(1, find_it);
  EXPECT_NE(p.returned(1, find_it, not_found), "");
}

TEST(history_model, an_erase_under_way_may_leave_either) {
  history_model p({7});
  p.there_before({7, 5});
  p.called(0, erase_it);
  p.called(1, update_3);
  EXPECT_TRUE(allowed(p, {{7, 5}}));
  EXPECT_TRUE(allowed(p, {{7, 3}}));
  EXPECT_TRUE(allowed(p, {}));
  EXPECT_EQ(p.returned(1, update_3, updated), "");
  EXPECT_FALSE(allowed(p, {{7, 5}}));
  EXPECT_EQ(p.returned(0, erase_it, erased), "");
  EXPECT_TRUE(allowed(p, {}));
  EXPECT_FALSE(allowed(p, {{7, 3}})) << "the update was first, or it would have answered absent";
}

TEST(history_model, a_scan_reads_every_key_of_its_range) {
  history_model p({3, 7, 9});
  p.there_before({3, 30});
  p.there_before({9, 90});
  p.scan_called(1, 3);
  p.called(0, insert_1);
  EXPECT_EQ(p.returned(0, insert_1, inserted), "");
  history_model other = p;
  EXPECT_EQ(p.scan_returned(1, 3, 10, std::vector<entry>{{3, 30}, {9, 90}}), "") << "before the insert";
  EXPECT_EQ(other.scan_returned(1, 3, 10, std::vector<entry>{{3, 30}, {7, 1}, {9, 90}}), "") << "or after it";
  p.scan_called(1, 3);
  EXPECT_NE(p.scan_returned(1, 3, 10, std::vector<entry>{{3, 30}, {9, 90}}), "") << "it has been there all the time";
  other.scan_called(1, 0);
  EXPECT_NE(other.scan_returned(1, 0, 10, std::vector<entry>{{7, 1}, {3, 30}, {9, 90}}), "") << "not ascending";
  other.scan_called(1, 0);
  EXPECT_EQ(other.scan_returned(1, 0, 2, std::vector<entry>{{3, 30}, {7, 1}}), "") << "full before the last key";
  other.scan_called(1, 0);
  EXPECT_NE(other.scan_returned(1, 0, 2, std::vector<entry>{{3, 30}, {9, 90}}), "") << "7 is left out";
}

using values = std::vector<std::optional<std::uint64_t>>;

TEST(history_model, an_iterator_meets_what_is_there_throughout_and_nothing_else) {
  struct verdict {
    std::vector<std::uint64_t> met;
    const char* wrong;  // "": nothing is
  };
  const step erase_5{action::erase, 5, 0};
  // Key 3 is there throughout; 5 goes and 7 comes while the iterator runs; 9 was never there.
  for (const auto& [met, wrong] :
       {verdict{{7, 3, 5}, ""}, verdict{{3}, ""}, verdict{{3, 7}, ""}, verdict{{5, 7}, "does not return key 3"},
        verdict{{3, 9}, "returns key 9"}, verdict{{3, 5, 3}, "returns key 3 twice"},
        verdict{{3, 8}, "key 8, which no thread inserted"}, verdict{{}, "does not return key 3"}}) {
    history_model p({3, 5, 7, 9});
    p.there_before({3, 1});
    p.there_before({5, 1});
    p.iterate_called(0);
    p.called(1, erase_5);
    EXPECT_EQ(p.returned(1, erase_5, erased), "");
    p.called(1, insert_1);
    EXPECT_EQ(p.returned(1, insert_1, inserted), "");
    const std::string found_wrong = p.iterate_returned(0, met);
    if (*wrong == '\0')
      EXPECT_EQ(found_wrong, "");
    else
      EXPECT_NE(found_wrong.find(wrong), std::string::npos) << found_wrong;
  }
}

TEST(history_model, what_an_iterator_met_stays_true) {
  history_model p({7});
  p.called(1, insert_1);
  p.iterate_called(0);
  EXPECT_EQ(p.iterate_returned(0, std::vector<std::uint64_t>{7}), "");
  EXPECT_FALSE(allowed(p, {})) << "strict durable linearizability";
  p.called(0, find_it);
  EXPECT_NE(p.returned(0, find_it, not_found), "");
}

TEST(history_model, each_key_of_a_batch_is_found_for_itself) {
  history_model p({3, 7, 9});
  p.there_before({3, 30});
  const std::vector<std::uint64_t> keys = {9, 7, 3, 7};
  p.batch_called(1, keys);
  p.called(0, insert_1);
  EXPECT_EQ(p.returned(0, insert_1, inserted), "");
  history_model other = p;
  EXPECT_EQ(p.batch_returned(1, keys, values{{}, {}, 30, 1}), "") << "before the insert, and after it";
  const std::string wrong = other.batch_returned(1, keys, values{{}, 2, 30, {}});
  EXPECT_NE(wrong.find("key 2 of 4"), std::string::npos) << wrong;
  p.batch_called(1, keys);
  EXPECT_NE(p.batch_returned(1, keys, values{{}, {}, 30, 1}), "") << "it has been there all the time";
}

const std::vector<entry> loaded = {{3, 31}, {7, 71}, {9, 91}};

TEST(history_model, a_load_adds_what_is_not_there) {
  history_model p({3, 7, 9});
  p.there_before({7, 70});
  p.load_called(0, loaded);
  EXPECT_EQ(p.load_returned(0, 3), "");
  EXPECT_TRUE(allowed(p, {{3, 31}, {7, 70}, {9, 91}}));
  EXPECT_FALSE(allowed(p, {{3, 31}, {7, 71}, {9, 91}})) << "it had a value";
}

TEST(history_model, a_load_that_found_no_space_has_added_a_first_part) {
  history_model p({3, 7, 9});
  p.load_called(0, loaded);
  EXPECT_EQ(p.load_returned(0, 2), "");
  EXPECT_TRUE(allowed(p, {{3, 31}, {7, 71}}));
  EXPECT_FALSE(allowed(p, {{3, 31}, {7, 71}, {9, 91}}));
  EXPECT_FALSE(allowed(p, {{3, 31}}));
}

TEST(history_model, a_load_that_is_cut_off_leaves_a_first_part) {
  history_model p({3, 7, 9});
  p.load_called(0, loaded);
  EXPECT_TRUE(allowed(p, {}));
  EXPECT_TRUE(allowed(p, {{3, 31}, {7, 71}}));
  const std::string wrong = p.judge(std::vector<entry>{{3, 31}, {9, 91}});
  EXPECT_NE(wrong.find("key 9"), std::string::npos) << wrong;
  EXPECT_NE(wrong.find("key 7"), std::string::npos) << wrong;
  p.called(1, erase_it);
  EXPECT_TRUE(allowed(p, {{3, 31}, {9, 91}})) << "7 may be erased already";
}

TEST(history_model, a_kill_leaves_what_is_seen_until_a_change_is_acknowledged) {
  history_model p({7, 9});
  p.called(0, insert_1);
  history_model absent = p;
  p.go_on_after_kill(std::vector<entry>{{7, 1}});
  p.called(0, find_it);
  EXPECT_EQ(p.returned(0, find_it, found(1)), "");
  EXPECT_TRUE(allowed(p, {{7, 1}}));
  EXPECT_TRUE(allowed(p, {})) << "no answer was returned";
  EXPECT_NE(p.judge({}, false), "") << "without a crash it is there";
  p.called(0, update_3);
  EXPECT_TRUE(allowed(p, {})) << "under way";
  EXPECT_EQ(p.returned(0, update_3, updated), "");
  EXPECT_FALSE(allowed(p, {})) << "acknowledged";
  EXPECT_FALSE(allowed(p, {{7, 1}}));
  EXPECT_TRUE(allowed(p, {{7, 3}}));

  absent.go_on_after_kill({});
  absent.called(0, insert_2);
  EXPECT_EQ(absent.returned(0, insert_2, inserted), "") << "the killed one never takes effect";
  EXPECT_FALSE(allowed(absent, {{7, 1}}));
}

TEST(history_model, a_kill_takes_nothing_that_was_answered) {
  history_model p({7});
  p.called(0, insert_1);
  EXPECT_EQ(p.returned(0, insert_1, inserted), "");
  p.called(0, find_it);
  p.go_on_after_kill(std::vector<entry>{{7, 1}});
  EXPECT_FALSE(allowed(p, {}));
  EXPECT_TRUE(p.under_way().empty());
}

TEST(history_model, a_change_of_a_host_that_died_has_happened_or_has_not) {
  history_model p({7});
  p.called(0, insert_1);
  p.died(0);
  EXPECT_TRUE(allowed(p, {}));
  EXPECT_TRUE(allowed(p, {{7, 1}}));
  EXPECT_FALSE(allowed(p, {{7, 2}}));
  p.called(1, find_it);
  EXPECT_EQ(p.returned(1, find_it, not_found), "") << "a survivor may repair it later";
  EXPECT_TRUE(allowed(p, {{7, 1}}));
  p.called(1, find_it);
  EXPECT_EQ(p.returned(1, find_it, found(1)), "");
  EXPECT_FALSE(allowed(p, {})) << "it was answered";
}

TEST(history_model, a_change_behind_a_death_decides_what_the_dead_did) {
  history_model p({7});
  p.called(1, insert_2);
  p.called(0, update_3);
  p.died(0);
  EXPECT_EQ(p.returned(1, insert_2, inserted), "");
  EXPECT_TRUE(allowed(p, {{7, 3}})) << "that change began before the death";
  p.called(1, erase_it);
  EXPECT_EQ(p.returned(1, erase_it, erased), "");
  p.called(1, insert_1);
  EXPECT_EQ(p.returned(1, insert_1, inserted), "");
  EXPECT_TRUE(allowed(p, {{7, 1}}));
  EXPECT_FALSE(allowed(p, {{7, 3}})) << "the update never happens now";
}

TEST(history_model, what_one_survivor_finds_settles_it_for_all) {
  history_model p({7, 9});
  p.called(0, insert_1);
  p.died(0);
  p.settled(std::vector<entry>{{7, 1}});
  EXPECT_TRUE(allowed(p, {{7, 1}}));
  EXPECT_FALSE(allowed(p, {}));
}

TEST(history_model, a_read_of_a_host_that_died_decides_nothing) {
  history_model p({7});
  p.scan_called(0, 0);
  p.called(1, find_it);
  p.died(0);
  p.died(1);
  p.called(2, insert_1);
  EXPECT_EQ(p.returned(2, insert_1, inserted), "");
  EXPECT_TRUE(allowed(p, {{7, 1}}));
}

TEST(history_model, what_is_wrong_is_said_with_key_and_values) {
  history_model p({3, 7});
  p.there_before({3, 30});
  EXPECT_NE(p.judge(std::vector<entry>{{3, 31}}).find("key 3 is found 31, and can only be found 30"),
            std::string::npos);
  EXPECT_NE(p.judge(std::vector<entry>{{3, 30}, {3, 32}}).find("twice, with values 30 and 32"), std::string::npos);
  EXPECT_NE(p.judge(std::vector<entry>{{3, 30}, {5, 50}}).find("key 5 is present, with value 50"), std::string::npos);
}

}  // namespace
}  // namespace pmlab::verify
