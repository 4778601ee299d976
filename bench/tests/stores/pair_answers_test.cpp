// The benchmark of key-value stores finds wrong answers: subjects that lie, each in one way, and the ledger that judges
// them.
#include <pmlab/base/error.hpp>
#include "bench/stores/cached_pair_subject.hpp"
#include "bench/stores/pair_engine.hpp"
#include "bench/stores/waiting_pair_queue.hpp"
#include "support/temporary_folder.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::store_bench {
namespace {

enum class pair_lie : std::uint8_t {
  none,
  lost_put,
  stale_value,
  torn_value,
  short_value,
  other_key,
  leaves_out,
  out_of_order,
  twice_in_scan,
  fails
};

// An honest map, whose every fiftieth call of the right kind is a lie. Any thread.
class lying_map final : public pair_subject {
 public:
  explicit lying_map(pair_lie how, bool on_drives = true) : how_(how), on_drives_(on_drives) {}

  [[nodiscard]] pair_promises promises() const override { return {.is_ordered = true}; }
  [[nodiscard]] std::unique_ptr<pair_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<waiting_pair_queue<session>>(session(*this), depth);
  }
  [[nodiscard]] bool can_reopen() const override { return true; }
  [[nodiscard]] bool writes_to_drives() const override { return on_drives_; }

 private:
  class session {
   public:
    using found_value = std::string;
    explicit session(lying_map& of) : of_(&of) {}
    [[nodiscard]] std::errc put(std::string_view key, std::string_view value) { return of_->put(key, value); }
    [[nodiscard]] std::errc erase(std::string_view key) { return of_->erase(key); }
    void get(std::string_view key, found_value& found, pair_answer& answer) {
      answer.found = of_->get(key, found);
      answer.value = std::as_bytes(std::span(found));
    }
    [[nodiscard]] std::errc scan(std::string_view from, unsigned most, pair_list& pairs) {
      of_->scan(from, most, pairs);
      return {};
    }

   private:
    lying_map* of_;
  };

  [[nodiscard]] bool lies(pair_lie how) { return how_ == how && ++calls_ % 50 == 0; }

  std::errc put(std::string_view key, std::string_view value) {
    const std::scoped_lock lock(mutex_);
    if (lies(pair_lie::lost_put)) return {};
    if (lies(pair_lie::fails)) return std::errc::no_space_on_device;
    std::string& now = now_[std::string(key)];
    before_[std::string(key)] = std::exchange(now, std::string(value));
    return {};
  }
  std::errc erase(std::string_view key) {
    const std::scoped_lock lock(mutex_);
    const auto at = now_.find(std::string(key));
    if (at == now_.end()) return {};
    now_.erase(at);
    return {};
  }
  bool get(std::string_view key, std::string& found) {
    const std::scoped_lock lock(mutex_);
    const auto at = now_.find(std::string(key));
    if (at == now_.end()) return false;
    found = at->second;
    const std::string& before = before_[at->first];
    if (!before.empty() && lies(pair_lie::stale_value)) found = before;
    if (before.size() == found.size() && lies(pair_lie::torn_value))
      found.replace(found.size() / 2, std::string::npos, before.substr(found.size() / 2));
    if (lies(pair_lie::short_value)) found.pop_back();
    if (lies(pair_lie::other_key)) found = now_.begin()->second;
    return true;
  }
  void scan(std::string_view from, unsigned most, pair_list& pairs) {
    const std::scoped_lock lock(mutex_);
    std::vector<std::pair<std::string, std::string>> found;
    for (auto at = now_.lower_bound(std::string(from)); at != now_.end() && found.size() < most; ++at)
      found.emplace_back(*at);
    if (found.size() > 3) {
      if (lies(pair_lie::leaves_out)) found.erase(found.begin() + 1);
      if (lies(pair_lie::out_of_order)) std::swap(found[1], found[2]);
      if (lies(pair_lie::twice_in_scan)) found[2] = found[1];
    }
    for (const auto& [key, value] : found) pairs.add(key, value);
  }

  pair_lie how_;
  bool on_drives_;
  std::uint64_t calls_ = 0;
  std::mutex mutex_;
  std::map<std::string, std::string> now_, before_;
};

pair_run_options pair_options_for(const std::string& phases, unsigned threads = 1) {
  pair_run_options o;
  o.cases = cases_of(parse_pair_phases(phases), {pair_order::random}, {200}, {4});
  o.records = 2000;
  o.operations = 3000;
  o.threads = threads;
  return o;
}

pair_contestant contestant_of(const pair_run_options& o, std::function<std::unique_ptr<pair_subject>()> make) {
  pair_contestant::makers makers;
  makers.device = [](unsigned /*number*/) { return open_store_device({}, {.bytes = 1 << 20}); };
  makers.subject = [make = std::move(make)](const pair_drives& /*drives*/) { return make(); };
  return {{.store = "subject"}, std::move(makers), plan_of(o), ranks_of(o), o.key_bytes, 7};
}

pair_report run_pairs(const pair_run_options& o, const std::function<std::unique_ptr<pair_subject>()>& make) {
  std::vector<pair_contestant> stores;
  stores.push_back(contestant_of(o, make));
  prepare_pair_stores(o, stores);
  const real_run_clock clock;
  bench::progress shown(bench::progress::style::quiet);
  return run_pair_cases(o, stores, clock, shown);
}

pair_report run_lying(pair_lie how, const std::string& phases, unsigned threads = 1) {
  return run_pairs(pair_options_for(phases, threads), [how] { return std::make_unique<lying_map>(how); });
}

std::string first_of(const pair_report& r) { return r.first_wrong.empty() ? "" : r.first_wrong.front(); }

constexpr const char* all_phases = "load,ycsb-a,ycsb-b,ycsb-c,ycsb-d,ycsb-e,ycsb-f,insert,update,read,erase,open";

TEST(PairAnswers, AnHonestSubjectHasNoWrongAnswer) {
  for (const unsigned threads : {1U, 3U}) {
    const pair_report r = run_lying(pair_lie::none, all_phases, threads);
    EXPECT_EQ(r.wrong_answers(), 0U) << first_of(r);
    EXPECT_FALSE(r.failure) << *r.failure;
    ASSERT_EQ(r.results.size(), 12U);
    for (const pair_result& one : r.results) {
      const std::string& phase = one.what.what.name;
      const std::uint64_t expected = phase == "load" || phase == "erase" ? 2000 : phase == "open" ? 1 : 3000;
      EXPECT_EQ(one.operations, expected) << phase;
      EXPECT_EQ(one.after.has_value(), one.what.what.changes()) << phase;
      EXPECT_EQ(one.scan_latency.has_value(), phase == "ycsb-e");
      EXPECT_EQ(one.user_bytes != 0, phase != "erase" && one.what.what.changes()) << phase;
    }
    ASSERT_EQ(r.at_end.size(), 1U);
    // The records, and the keys of insert.
    EXPECT_GE(r.at_end.front().verified, 5000U);
  }
}

// A store that writes to a file of its own has no amplification, unless it knows its bytes.
TEST(PairAnswers, StoresOnEachMediumAnswerRightly) {
  const tests::temporary_folder folder;
  const std::string pool = "pmem:" + folder.file("pool");
  for (const std::string& medium : {std::string("dram"), std::string("counted:dram"), pool, "counted:" + pool})
    for (const std::string store : {"kv_ssd", "tiered"}) {
      pair_setup setup{.store = store, .medium = bench::parse_medium(medium)};
      if (store == "tiered" && !setup.medium.plain_dram()) setup.memtable = "pmem";
      setup.medium_bytes = std::uint64_t{128} << 20;
      const pair_run_options o = pair_options_for("load,ycsb-a,update,read,erase,open", 2);
      setup.records = o.records;
      setup.value_bytes = 200;
      pair_contestant::makers makers;
      makers.device = [](unsigned /*number*/) { return open_store_device({}, {.bytes = 64 << 20}); };
      makers.subject = [&](const pair_drives& drives) { return make_pair_subject(setup, drives); };
      std::vector<pair_contestant> stores;
      stores.emplace_back(pair_labels{.store = store}, std::move(makers), plan_of(o), ranks_of(o), o.key_bytes, 7);
      prepare_pair_stores(o, stores);
      const real_run_clock clock;
      bench::progress shown(bench::progress::style::quiet);
      const pair_report r = run_pair_cases(o, stores, clock, shown);
      EXPECT_FALSE(r.failure) << store << " on " << medium << ": " << *r.failure;
      EXPECT_EQ(r.wrong_answers(), 0U) << store << " on " << medium << ": " << first_of(r);
      ASSERT_EQ(r.results.size(), 6U);
      EXPECT_EQ(r.results.front().medium.has_value(), setup.medium.counted) << store << " on " << medium;
    }
}

TEST(PairAnswers, BytesThatAreNotKnownAreNoZero) {
  for (const bool on_drives : {true, false}) {
    const pair_report r = run_pairs(pair_options_for("load,update"),
                                    [on_drives] { return std::make_unique<lying_map>(pair_lie::none, on_drives); });
    ASSERT_EQ(r.results.size(), 2U);
    for (const pair_result& one : r.results) {
      EXPECT_EQ(one.host_amplification(), on_drives ? std::optional(0.0) : std::nullopt);
      EXPECT_EQ(one.device_amplification(), std::nullopt);
    }
    pair_result known;
    known.user_bytes = 10;
    known.host_bytes = 30;
    known.writes_to_drives = on_drives;
    EXPECT_EQ(known.host_amplification(), 3.0);
    EXPECT_EQ(known.device_amplification(), on_drives ? std::optional(0.0) : std::nullopt);
  }
}

// Phase `open` is that of a host that starts again: its cache is empty.
TEST(PairAnswers, AnOpenedStoreHasAColdCache) {
  const auto subject = with_host_cache(std::make_unique<lying_map>(pair_lie::none), 1 << 20);
  const auto hits_of_a_read = [&] {
    const auto queue = subject->make_queue(1, 0);
    std::array<pair_answer, 1> answer;
    queue->get("key", 1);
    EXPECT_EQ(queue->reap(answer, 1), 1U);
    EXPECT_TRUE(answer[0].found);
    const auto all = subject->statistics();
    return std::ranges::find(all, "cache_hits", &store_statistic::first)->second;
  };
  {
    const auto queue = subject->make_queue(1, 0);
    std::array<pair_answer, 1> answer;
    queue->put("key", std::as_bytes(std::span("value", 5)), 1);
    EXPECT_EQ(queue->reap(answer, 1), 1U);
  }
  EXPECT_EQ(hits_of_a_read(), 0U);
  EXPECT_EQ(hits_of_a_read(), 1U);
  subject->close();
  subject->open();
  EXPECT_EQ(hits_of_a_read(), 0U);
}

TEST(PairAnswers, EachLieIsFound) {
  struct expectation {
    pair_lie how;
    const char* phases;
    const char* words;
  };
  const std::array<expectation, 9> all{{{pair_lie::lost_put, "load,ycsb-a", "acknowledged before the read"},
                                        {pair_lie::stale_value, "load,ycsb-a", "acknowledged before the read"},
                                        {pair_lie::torn_value, "load,update,read", "torn value"},
                                        {pair_lie::short_value, "load,read", "bytes of a value of"},
                                        {pair_lie::other_key, "load,read", "has the value of key"},
                                        {pair_lie::leaves_out, "load,ycsb-e", "left it out"},
                                        {pair_lie::out_of_order, "load,ycsb-e", "left it out"},
                                        {pair_lie::twice_in_scan, "load,ycsb-e", "out of order, or twice"},
                                        {pair_lie::fails, "load", ""}}};
  for (const expectation& e : all) {
    const pair_report r = run_lying(e.how, e.phases);
    if (e.how == pair_lie::fails) {
      ASSERT_TRUE(r.failure);
      EXPECT_NE(r.failure->find("--device-bytes"), std::string::npos) << *r.failure;
      continue;
    }
    EXPECT_GT(r.wrong_answers(), 0U) << "lie " << static_cast<int>(e.how);
    EXPECT_NE(first_of(r).find(e.words), std::string::npos) << "lie " << static_cast<int>(e.how) << ": " << first_of(r);
  }
}

// The ledger by itself, where a run cannot bring the moment about.
class PairLedger : public ::testing::Test {
 protected:
  std::vector<std::byte> put(std::uint64_t rank, std::size_t bytes = 100) {
    std::vector<std::byte> value(bytes);
    ledger.end(rank, ledger.begin_put(rank, value));
    return value;
  }
  std::string key(std::uint64_t rank) const {
    std::string text;
    ledger.keys().write(rank, text);
    return text;
  }
  pair_ledger ledger{5000, pair_keys(16), 1};
};

TEST_F(PairLedger, KeysHaveTheOrderOfTheirRanks) {
  for (const std::size_t bytes : {8U, 16U, 255U}) {
    const pair_keys keys(bytes);
    std::string last;
    std::string text;
    for (const std::uint64_t rank :
         {0UL, 1UL, 999UL, 1000UL, 35'999UL, 36'000UL, 46'655'999UL, pair_keys::most_ranks - 1}) {
      keys.write(rank, text);
      EXPECT_EQ(text.size(), bytes);
      EXPECT_LT(last, text);
      EXPECT_EQ(keys.rank_of(text), rank);
      last = text;
    }
    EXPECT_FALSE(keys.rank_of(text + "0"));
    text.back() = 'x';
    EXPECT_FALSE(keys.rank_of(text));
  }
}

TEST_F(PairLedger, AnErasedKeyMayNotComeBack) {
  const std::vector<std::byte> old = put(5);
  ledger.end(5, ledger.begin_erase(5));
  const std::uint64_t least = ledger.begin_read(5);
  EXPECT_FALSE(ledger.check(5, false, {}, least));
  const auto wrong = ledger.check(5, true, old, least);
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->find("its erase was acknowledged"), std::string::npos) << *wrong;
  // Nor in a scan.
  const std::string k = key(5);
  std::vector<std::uint64_t> known(10);
  EXPECT_EQ(ledger.begin_scan(0, known), 10U);
  const pair p{k, old};
  EXPECT_TRUE(ledger.check_scan(0, 10, {&p, 1}, known));
}

TEST_F(PairLedger, AReadBesideAChangeMaySeeEither) {
  const std::vector<std::byte> old = put(1);
  const std::uint64_t least = ledger.begin_read(1);
  std::vector<std::byte> now(100);
  const std::uint64_t version = ledger.begin_put(1, now);
  EXPECT_TRUE(ledger.is_busy(1));
  EXPECT_FALSE(ledger.check(1, true, old, least));
  EXPECT_FALSE(ledger.check(1, true, now, least));
  EXPECT_TRUE(ledger.check(1, false, {}, least));
  ledger.end(1, version);
  EXPECT_TRUE(ledger.check(1, true, old, ledger.begin_read(1)));
  // A version that was never written.
  pair_ledger other(10, pair_keys(16), 1);
  for (int i = 0; i < 3; ++i) other.end(1, other.begin_put(1, now));
  const auto future = ledger.check(1, true, now, ledger.begin_read(1));
  ASSERT_TRUE(future);
  EXPECT_NE(future->find("but only 2 were written"), std::string::npos) << *future;
  // An erase and a put beside the read: absent is right then.
  const std::uint64_t before = ledger.begin_read(1);
  ledger.end(1, ledger.begin_erase(1));
  put(1);
  EXPECT_FALSE(ledger.check(1, false, {}, before));
  EXPECT_TRUE(ledger.check(1, false, {}, ledger.begin_read(1)));
}

TEST_F(PairLedger, AScanMayLeaveOutWhatWasNotThereThroughout) {
  const std::vector<std::byte> first = put(10);
  put(11);
  const std::vector<std::byte> last = put(13);
  std::vector<std::uint64_t> known(20);
  static_cast<void>(ledger.begin_scan(10, known));
  const std::string k10 = key(10);
  const std::string k13 = key(13);
  const std::array<pair, 2> two{{{k10, first}, {k13, last}}};
  const auto wrong = ledger.check_scan(10, 2, two, known);
  ASSERT_TRUE(wrong);
  EXPECT_NE(wrong->find("left it out"), std::string::npos);
  // The key is erased while the scan is under way, and added while it is: both are right.
  ledger.end(11, ledger.begin_erase(11));
  put(12);
  EXPECT_FALSE(ledger.check_scan(10, 2, two, known));
  // Fewer than it asked for: it must be the end.
  EXPECT_FALSE(ledger.check_scan(10, 5, two, known));
  put(20);
  static_cast<void>(ledger.begin_scan(13, known));
  const auto cut = ledger.check_scan(13, 5, std::span(two).last<1>(), known);
  ASSERT_TRUE(cut);
  EXPECT_NE(cut->find("left it out"), std::string::npos) << *cut;
  EXPECT_FALSE(ledger.check_scan(13, 1, std::span(two).last<1>(), known));
}

TEST(KeyPlan, RecordsAndInsertsShareTheRanks) {
  for (const auto& [records, inserts] : {std::pair{10UL, 3UL}, {7UL, 0UL}, {5UL, 12UL}, {1UL, 1UL}, {100UL, 99UL}}) {
    const key_plan plan(records, inserts);
    std::set<std::uint64_t> ranks;
    for (std::uint64_t i = 0; i < records; ++i) ranks.insert(plan.rank_of_record(i));
    for (std::uint64_t j = 0; j < inserts; ++j) ranks.insert(plan.rank_of_insert(j));
    EXPECT_EQ(ranks.size(), plan.ranks());
    EXPECT_EQ(*ranks.rbegin(), plan.ranks() - 1);
  }
}

// The loads of the notes on key-value SSDs: 10 to 20 % of uniform puts, and about 80 % of zipfian ones, meet a key
// again.
TEST(PairAnswers, LoadsWithRepeatedKeys) {
  for (const auto& [pattern, least, most] : {std::tuple{pair_order::uniform, 0.10, 0.20},
                                             {pair_order::zipfian, 0.70, 0.85},
                                             {pair_order::random, 0.0, 0.0}}) {
    pair_run_options o = pair_options_for("load");
    o.records = 20'000;
    o.cases = cases_of(parse_pair_phases("load"), {pattern}, {50}, {1});
    const pair_report r = run_pairs(o, [] { return std::make_unique<lying_map>(pair_lie::none); });
    ASSERT_EQ(r.results.size(), 1U);
    EXPECT_EQ(r.results.front().operations, o.records);
    // The check at the end reads each key that was put.
    const double repeated = 1 - static_cast<double>(r.at_end.front().verified) / static_cast<double>(o.records);
    EXPECT_GE(repeated, least) << to_string(pattern);
    EXPECT_LE(repeated, most) << to_string(pattern);
  }
}

TEST(PairAnswers, WhatAStoreCannotDoIsRefusedBefore) {
  class unordered final : public pair_subject {
   public:
    [[nodiscard]] pair_promises promises() const override { return {.least_key = 9, .most_key = 20}; }
    [[nodiscard]] std::unique_ptr<pair_queue> make_queue(unsigned /*depth*/, unsigned /*thread*/) override {
      return nullptr;
    }
  };
  const auto refused = [](const pair_run_options& o) -> std::string {
    try {
      static_cast<void>(run_pairs(o, [] { return std::make_unique<unordered>(); }));
    } catch (const error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refused(pair_options_for("ycsb-e")).find("no order of keys, and phase ycsb-e scans"), std::string::npos);
  pair_run_options o = pair_options_for("load");
  o.key_bytes = 8;
  EXPECT_NE(refused(o).find("keys of 9 to 20 bytes"), std::string::npos);
}

}  // namespace
}  // namespace pmlab::store_bench
