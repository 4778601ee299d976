// Tests of the tests: the checkers accept correct histories, and detect errors.
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/medium.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "support/child_process.hpp"
#include "support/comparison.hpp"
#include "support/differential.hpp"
#include "support/history.hpp"
#include "support/linearizability.hpp"
#include "support/operations.hpp"
#include "support/reference_index.hpp"
#include "support/restartable_medium.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;

// ---- linearizability ----

event changed(action what, std::uint64_t value, outcome got, std::uint64_t called, std::uint64_t returned) {
  return {{what, 1, value}, {got, {}}, called, returned, 0};
}
event found(key_state got, std::uint64_t called, std::uint64_t returned) {
  return {{action::find, 1, 0}, {{}, got}, called, returned, 0};
}

TEST(linearizability, right_histories_are_accepted) {
  EXPECT_EQ(why_not_linearizable({}, {}), "");
  EXPECT_EQ(why_not_linearizable({changed(action::insert, 5, outcome::inserted, 1, 2), found(5, 3, 4)}, {}), "");
  // Concurrent: the find may be ordered before the insert.
  EXPECT_EQ(why_not_linearizable({changed(action::insert, 5, outcome::inserted, 1, 9), found({}, 3, 4)}, {}), "");
  // The one of two concurrent inserts that was called later may win.
  EXPECT_EQ(why_not_linearizable({changed(action::insert, 5, outcome::exists, 1, 9),
                                  changed(action::insert, 6, outcome::inserted, 3, 4), found(6, 10, 11)},
                                 {}),
            "");
  // Three overlapping changes that have exactly one order.
  EXPECT_EQ(why_not_linearizable({changed(action::erase, 0, outcome::erased, 1, 10),
                                  changed(action::insert, 7, outcome::inserted, 1, 10),
                                  changed(action::update, 8, outcome::updated, 1, 10), found({}, 11, 12)},
                                 {}),
            "");
  EXPECT_EQ(why_not_linearizable({changed(action::upsert, 7, outcome::full, 1, 2), found({}, 3, 4)}, {}), "");
  EXPECT_EQ(why_not_linearizable({found(3, 1, 2)}, 3), "");
}

TEST(linearizability, wrong_histories_are_noticed) {
  // A lost insert.
  EXPECT_NE(why_not_linearizable({changed(action::insert, 5, outcome::inserted, 1, 2), found({}, 3, 4)}, {}), "");
  // Both inserts succeed.
  EXPECT_NE(why_not_linearizable({changed(action::insert, 5, outcome::inserted, 1, 9),
                                  changed(action::insert, 6, outcome::inserted, 2, 8)},
                                 {}),
            "");
  // A value from nowhere.
  EXPECT_NE(why_not_linearizable({changed(action::insert, 5, outcome::inserted, 1, 9), found(6, 3, 4)}, {}), "");
  // A deleted key reappears.
  EXPECT_NE(
      why_not_linearizable({changed(action::erase, 0, outcome::erased, 1, 2), found({}, 3, 4), found(5, 5, 6)}, 5), "");
  // A stale read after a newer one.
  EXPECT_NE(
      why_not_linearizable({changed(action::update, 6, outcome::updated, 1, 10), found(6, 2, 3), found(5, 4, 5)}, 5),
      "");
  // An update of a key that was erased before it was called.
  EXPECT_NE(
      why_not_linearizable(
          {changed(action::erase, 0, outcome::erased, 1, 2), changed(action::update, 6, outcome::updated, 3, 4)}, 5),
      "");
  // `full` that left something.
  EXPECT_NE(why_not_linearizable({changed(action::upsert, 7, outcome::full, 1, 2), found(7, 3, 4)}, {}), "");
}

// A long history, all of it concurrent in pairs, in which only the last answer is wrong, is judged in no time.
TEST(linearizability, long_histories_do_not_explode) {
  std::vector<event> history;
  for (std::uint64_t i = 0; i < 5000; ++i) {
    history.push_back(
        changed(action::upsert, 2 * i, i == 0 ? outcome::inserted : outcome::updated, 10 * i, 10 * i + 8));
    history.push_back(changed(action::upsert, 2 * i + 1, outcome::updated, 10 * i + 1, 10 * i + 9));
  }
  EXPECT_EQ(why_not_linearizable(history, {}), "");
  history.push_back(found(3, 60'000, 60'001));
  EXPECT_NE(why_not_linearizable(history, {}), "");
}

// As of a thread that sleeps while others go on: its find may have answered any of the values.
TEST(linearizability, an_operation_may_overlap_all_others) {
  const watchdog hang(std::chrono::seconds(20), "every state was kept");
  constexpr std::uint64_t count = 20'000;
  std::vector<event> history = {found(count / 2, 0, 10 * count + 10)};
  for (std::uint64_t i = 1; i <= count; ++i)
    history.push_back(changed(action::upsert, i, i == 1 ? outcome::inserted : outcome::updated, 10 * i, 10 * i + 5));
  EXPECT_EQ(why_not_linearizable(history, {}), "");
  history.front().got.found = count + 1;
  EXPECT_NE(why_not_linearizable(history, {}), "");
}

// ---- indexes that are wrong ----

// Hides its errors well: each is rare, or needs two threads.
enum class flaw { none, loses_update, forgets_key, scan_skips, unguarded };

template <media::medium Medium>
class flawed_index : public reference_index<Medium> {
 public:
  static flawed_index open(Medium& medium, std::string_view name = "reference") { return {medium, name}; }

  inline static flaw has = flaw::none;

  outcome insert(std::uint64_t key, std::uint64_t value) {
    if (has == flaw::forgets_key && key % 97 == 13) return outcome::inserted;
    if (has == flaw::unguarded) {
      // The check and the change, each under the lock, but not both.
      if (this->find(key)) return outcome::exists;
      std::this_thread::yield();
      this->upsert(key, value);
      return outcome::inserted;
    }
    return reference_index<Medium>::insert(key, value);
  }
  outcome update(std::uint64_t key, std::uint64_t value) {
    if (has == flaw::loses_update && value % 61 == 7) return this->find(key) ? outcome::updated : outcome::absent;
    return reference_index<Medium>::update(key, value);
  }
  std::size_t scan(std::uint64_t key, std::span<indexes::entry> out) {
    std::size_t count = reference_index<Medium>::scan(key, out);
    if (has == flaw::scan_skips && count > 11) --count;
    return count;
  }

 private:
  flawed_index(Medium& medium, std::string_view name) : reference_index<Medium>(medium, name) {}
};

std::string differential_with(flaw f) {
  flawed_index<media::dram>::has = f;
  media::dram medium;
  auto index = flawed_index<media::dram>::open(medium);
  contents model;
  for (std::uint64_t seed = 1; seed <= 20; ++seed)
    if (std::string wrong = run_differential(index, model, {.seed = seed}); !wrong.empty()) return wrong;
  return "";
}

TEST(differential, notices_what_is_wrong_and_nothing_else) {
  EXPECT_EQ(differential_with(flaw::none), "");
  EXPECT_NE(differential_with(flaw::loses_update), "");
  EXPECT_NE(differential_with(flaw::forgets_key), "");
  EXPECT_NE(differential_with(flaw::scan_skips), "");
}

TEST(history, notices_a_check_and_a_change_without_a_lock_around_both) {
  flawed_index<media::dram>::has = flaw::unguarded;
  std::string wrong;
  for (std::uint64_t seed = 1; seed <= 50 && wrong.empty(); ++seed) {
    media::dram medium;
    auto index = flawed_index<media::dram>::open(medium);
    wrong = check_concurrent_history(
        index, {.seed = seed, .contended = {1, 2}, .filler = {}, .mix = {.insert = 45, .erase = 30}});
  }
  EXPECT_NE(wrong, "");
}

// ---- the durable medium ----

// `first()` and `second()` are in different lines.
struct alignas(media::cache_line_bytes) pair_of_lines {
  std::array<std::atomic<std::uint64_t>, 16> words{};

  std::atomic<std::uint64_t>& first() { return words[0]; }
  std::atomic<std::uint64_t>& second() { return words[8]; }
};

class restartable_medium_test : public testing::Test {
 protected:
  restartable_medium_test() {
    word_ = medium_.named_root("words", "test", 1).word;
    restartable_medium::publication change(medium_);
    object_ = media::create<pair_of_lines>(change);
    change.store(*word_, medium_.locate(object_).word());
    change.commit();
    medium_.watch();
  }

  // (first, second) of the copy that `what` survives.
  using two_words = std::pair<std::uint64_t, std::uint64_t>;
  two_words copied(surviving what) {
    restartable_medium other;
    other.restore(medium_, what);
    auto* const there = other.resolve(media::pointer<pair_of_lines>(other.named_root("words", "test", 1).word->load()));
    EXPECT_NE(there, object_) << "the copy is at another address";
    return {there->first(), there->second()};
  }

  restartable_medium medium_;
  std::atomic<std::uint64_t>* word_ = nullptr;
  pair_of_lines* object_ = nullptr;
};

TEST_F(restartable_medium_test, stores_are_durable_once_they_are_flushed_and_fenced) {
  object_->first() = 1;
  object_->second() = 2;
  EXPECT_EQ(copied(surviving::all), two_words(1, 2));
  EXPECT_EQ(copied(surviving::durable), two_words(0, 0));
  media::flush(medium_, object_->first());
  EXPECT_EQ(copied(surviving::durable), two_words(0, 0)) << "a flush alone promises nothing";
  medium_.fence();
  EXPECT_EQ(copied(surviving::durable), two_words(1, 0));
  EXPECT_FALSE(medium_.is_written_back());
  media::persist(medium_, object_->second());
  EXPECT_EQ(copied(surviving::durable), two_words(1, 2));
  EXPECT_TRUE(medium_.is_written_back());
}

TEST_F(restartable_medium_test, a_fence_promises_what_was_there_at_the_flush) {
  object_->first() = 1;
  media::flush(medium_, object_->first());
  object_->first() = 2;
  medium_.fence();
  EXPECT_EQ(copied(surviving::durable), two_words(1, 0));
}

TEST_F(restartable_medium_test, a_publication_is_durable_whole_and_an_event_at_both_ends) {
  const auto before = medium_.used().allocated_bytes;
  std::vector<std::uint64_t> allocated;
  medium_.watch([&] { allocated.push_back(medium_.used().allocated_bytes - before); });
  restartable_medium::publication change(medium_);
  ASSERT_NE(change.allocate(100, 8), nullptr);
  change.store(object_->first(), 7);
  change.store(object_->second(), 8);
  change.commit();
  EXPECT_EQ(allocated, (std::vector<std::uint64_t>{0, 100}));
  EXPECT_EQ(copied(surviving::durable), two_words(7, 8));
}

TEST_F(restartable_medium_test, what_is_not_committed_is_given_back) {
  const auto before = medium_.used().allocated_bytes;
  void* first = nullptr;
  {
    restartable_medium::publication change(medium_);
    first = change.allocate(64, 64);
  }
  EXPECT_EQ(medium_.used().allocated_bytes, before);
  restartable_medium::publication change(medium_);
  EXPECT_EQ(change.allocate(64, 64), first) << "the space is free again";
  EXPECT_GE(static_cast<std::byte*>(change.allocate(64, 64)) - static_cast<std::byte*>(first), 128)
      << "blocks are 64 bytes apart";
}

TEST_F(restartable_medium_test, a_double_release_is_noticed) {
  for (int i = 0; i < 2; ++i) {
    restartable_medium::publication change(medium_);
    change.release(object_, sizeof *object_);
    change.commit();
  }
  EXPECT_EQ(medium_.misuses().size(), 1U);
}

TEST_F(restartable_medium_test, null_faults) {
  const auto store_to = [&](pair_of_lines* object) {
    return run_in_child([&] { return object->first() = 1, std::string(); }, std::chrono::seconds(10)).end;
  };
  EXPECT_EQ(store_to(object_), child_end::how::returned);
  EXPECT_EQ(store_to(medium_.resolve(media::pointer<pair_of_lines>())), child_end::how::signalled);
}

TEST(child_process, tells_how_it_ended) {
  const auto limit = std::chrono::milliseconds(300);
  EXPECT_EQ(run_in_child([] { return std::string(100'000, 'x'); }, std::chrono::seconds(10)).text.size(), 100'000U);
  EXPECT_EQ(run_in_child(
                []() -> std::string {
                  ::pause();
                  return "";
                },
                limit)
                .end,
            child_end::how::late);
  EXPECT_EQ(run_in_child([]() -> std::string { std::abort(); }, limit).signal, SIGABRT);
  EXPECT_EQ(run_in_child([]() -> std::string { throw 1; }, limit).end, child_end::how::signalled);
}

}  // namespace
}  // namespace pmlab::tests
