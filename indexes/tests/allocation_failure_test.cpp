// Memory that runs out, at each allocation of each operation: nothing that was answered is lost, nothing that failed
// has changed anything, no lock stays held, and everything works again when there is memory.
//
// An operation is repeated with its first, second, third, ... allocation failing, until it makes fewer.
#include <pmlab/base/error.hpp>
#include <pmlab/cache/async_cache.hpp>
#include <pmlab/hybrid/hybrid_index.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/strings/numbered.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "offered_indexes.hpp"
#include "support/comparison.hpp"
#include "support/failing_allocations.hpp"
#include "support/operations.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests {
namespace {

using indexes::outcome;

// Every block of this medium is an allocation, so that it is full wherever one fails.
using dram = media::basic_dram<media::standard_blocks>;

constexpr std::chrono::seconds time_limit{300};

// An index with the media that it is in.
template <class Index>
struct plain {
  static std::string name() { return std::string(Index::layout_name); }
  dram medium;
  std::unique_ptr<Index> index;
  void open() { index.reset(new Index(Index::open(medium))); }
};

template <class Index>
struct cached {
  using type = cache::async_cache<Index>;
  static std::string name() { return "cached_" + std::string(Index::layout_name); }
  dram medium;
  std::unique_ptr<type> index;
  void open() {
    index.reset(new type(type::open(medium, "index", {.size = cache::capacity::entries(500), .fillers = 1})));
  }
};

template <hybrid::primary Primary, hybrid::update How>
struct two_halves {
  using type = hybrid::hybrid_index<indexes::cceh<dram>, indexes::fast_fair<dram>, Primary>;
  static std::string name() {
    return std::string(type::layout_name) + (How == hybrid::update::asynchronous ? "_asynchronous" : "");
  }
  dram medium;
  std::unique_ptr<dram> of_replica;
  std::unique_ptr<type> index;
  void open() {
    index.reset();
    of_replica = std::make_unique<dram>();
    hybrid::options o;
    o.how = How;
    o.queue = 64;
    o.rebuilders = 2;
    constexpr bool is_hash = Primary == hybrid::primary::hash;
    auto opened =
        std::unique_ptr<type>(new type(type::open(is_hash ? medium : *of_replica, is_hash ? *of_replica : medium, o)));
    opened->wait_until_complete();  // throws pmlab::error if there was no memory for it
    index = std::move(opened);
  }
};

template <class Words, class Values>
using strings_of = strings::numbered<dram, Words, Values>;

// Without memory for the replica, a hybrid serves its primary; it may be rebuilt afterwards.
template <class Index>
void recover(Index& index) {
  if constexpr (requires { index.rebuild(true); }) {
    if (!index.is_complete()) index.rebuild(true);
    index.wait_until_complete();
  }
}

template <class Under>
class allocation_failure : public testing::Test {
 protected:
  using index_type = typename decltype(Under::index)::element_type;

  [[nodiscard]] std::string why() const {
    return "; seed " + std::to_string(seed_) + ": PMLAB_SEED=" + std::to_string(seed_) +
           " test_indexes_allocation_failure --gtest_filter=" +
           testing::UnitTest::GetInstance()->current_test_info()->test_suite_name() + "." +
           testing::UnitTest::GetInstance()->current_test_info()->name();
  }

  static std::uint64_t chosen_seed() {
    const char* const given = std::getenv("PMLAB_SEED");
    return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  }

  // Opens with each of its allocations failing once, then without. Returns how many there were.
  std::int64_t open_with_failures() {
    for (std::int64_t n = 0;; ++n) {
      under_.index.reset();
      const attempt a = with_failure_at(n, [&] { under_.open(); });
      if (!a.failed) return n;
    }
  }

  // Repeats one operation with each of its allocations from `first` on failing once, until it is done: some are done in
  // spite of that, and only another first one brings those behind it to fail. "" or the error.
  std::string perform_with_failures(const step& s, std::int64_t first) {
    index_type& index = *under_.index;
    for (std::int64_t n = first;; ++n) {
      key_state state = state_in(model_, s.key);
      const answer expected = expect(s, state);
      answer got;
      const attempt a = with_failure_at(n, [&] { got = perform(s, index); });
      failures_ += a.failed ? 1 : 0;
      const bool done = !a.threw && got.changed != outcome::full;
      if (done) {
        if (got != expected) return to_string(s) + " answers " + to_string(got) + ", not " + to_string(expected);
        put_state(model_, s.key, state);
        if (!a.failed || s.what != action::find) return "";
        continue;
      }
      if (!a.failed) return to_string(s) + " fails with memory";
      if (index.find(s.key) != state_in(model_, s.key))
        return to_string(s) + ", which failed at allocation " + std::to_string(n) + ", has changed something";
    }
  }

  // Reads of many entries at once.
  std::string read_with_failures() {
    index_type& index = *under_.index;
    std::vector<std::uint64_t> keys;
    for (const auto& [key, value] : model_) {
      keys.push_back(key);
      if (keys.size() == 40) break;
    }
    keys.push_back(0x1234567);
    std::vector<std::optional<std::uint64_t>> values(keys.size());
    for (std::int64_t n = 0;; ++n) {
      const attempt a = with_failure_at(n, [&] { index.find_batch(keys, values); });
      if (!a.threw)
        for (std::size_t i = 0; i < keys.size(); ++i)
          if (values[i] != state_in(model_, keys[i])) return "find_batch is wrong about key " + std::to_string(keys[i]);
      if (!a.failed) break;
    }
    if constexpr (indexes::ordered_index<index_type>) {
      std::vector<indexes::entry> out(50);
      for (std::int64_t n = 0;; ++n) {
        const attempt a = with_failure_at(n, [&] { static_cast<void>(index.scan(keys.front(), out)); });
        if (!a.failed) break;
      }
      if (std::string wrong = compare_scan(index, model_, keys.front(), 50); !wrong.empty()) return wrong;
    }
    return "";
  }

  std::string load_with_failures([[maybe_unused]] random& source) {
    if constexpr (indexes::loadable_index<index_type>) {
      index_type& index = *under_.index;
      std::set<std::uint64_t> keys;
      const std::uint64_t first = source.next() / 2;
      for (int i = 0; i < 300; ++i) keys.insert(first + source.below(std::uint64_t{1} << 40));
      std::vector<indexes::entry> entries;
      for (const std::uint64_t key : keys) entries.push_back({key, key + 1});
      for (std::int64_t n = 0;; ++n) {
        std::size_t loaded = 0;
        const attempt a = with_failure_at(n, [&] { loaded = index.load(entries); });
        if (!a.failed && loaded != entries.size()) return "load() fails with memory";
        if (a.failed)
          for (std::size_t i = 0; i < loaded; ++i)
            if (!index.find(entries[i].key)) return "load() returns more than it has loaded";
        if (!a.failed) break;
      }
      for (const indexes::entry& e : entries) model_.emplace(e.key, e.value);
    }
    return "";
  }

  // Operations of a thread that is new to the index, some of which let it grow.
  std::string work_on_a_new_thread(std::size_t operations, random& source) {
    std::string wrong;
    std::thread([&] {
      is_foreground = true;
      wrong = read_with_failures();
      constexpr std::uint64_t keys = 20'000;
      for (std::size_t i = 0; i < operations && wrong.empty(); ++i) {
        const std::uint64_t key = source.below(keys) * 0x9e3779b97f4a7c15U;
        const std::array<action, 8> actions{action::insert, action::insert, action::insert, action::upsert,
                                            action::upsert, action::update, action::erase,  action::find};
        const auto first = static_cast<std::int64_t>(source.one_in(2) ? 0 : source.below(8));
        wrong = perform_with_failures({actions[source.below(actions.size())], key, source.next()}, first);
      }
      if (wrong.empty()) wrong = load_with_failures(source);
    }).join();
    return wrong;
  }

  std::uint64_t seed_ = chosen_seed();
  std::uint64_t failures_ = 0;
  contents model_;
  Under under_;
};

template <template <class...> class Index>
using plain_of = plain<Index<dram>>;
template <class... Offered>
using with_combinations = testing::Types<Offered..., cached<indexes::cceh<dram>>,
                                         two_halves<hybrid::primary::hash, hybrid::update::synchronous>,
                                         two_halves<hybrid::primary::hash, hybrid::update::asynchronous>,
                                         two_halves<hybrid::primary::tree, hybrid::update::synchronous>,
                                         two_halves<hybrid::primary::tree, hybrid::update::asynchronous>,
                                         plain<strings_of<indexes::cceh<dram>, strings::blob_values>>,
                                         plain<strings_of<indexes::fast_fair<dram>, strings::word_values>>>;
using all_under = each_offered_index<with_combinations, plain_of>;

struct setup_name {
  template <class Under>
  static std::string GetName(int /*position*/) {
    return Under::name();
  }
};

TYPED_TEST_SUITE(allocation_failure, all_under, setup_name);

TYPED_TEST(allocation_failure, loses_nothing_at_any_allocation_of_any_operation) {
  const watchdog limit(time_limit, "an operation after a failed allocation" + this->why());
  is_foreground = true;
  random source(this->seed_);
  EXPECT_GT(this->open_with_failures(), 0) << this->why();
  constexpr int rounds = 6;
  for (int round = 0; round < rounds; ++round) {
    ASSERT_EQ(this->work_on_a_new_thread(3000, source), "") << this->why();
    recover(*this->under_.index);
    ASSERT_EQ(compare_all(*this->under_.index, this->model_), "") << this->why();
    if (round % 3 == 2) {
      this->open_with_failures();
      ASSERT_EQ(compare_all(*this->under_.index, this->model_), "") << this->why();
    }
  }
  EXPECT_GT(this->failures_, 5U) << this->why();
}

// Fillers, updaters and threads that rebuild run out of memory while the foreground has some.
TYPED_TEST(allocation_failure, background_threads_without_memory_end_nothing) {
  const watchdog limit(time_limit, "an operation beside background threads without memory" + this->why());
  is_foreground = true;
  random source(this->seed_);
  this->under_.open();
  for (const std::uint64_t one_in : {1U, 2U, 3U}) {
    one_in_background.store(one_in);
    this->failures_ = 0;
    std::string wrong = this->work_on_a_new_thread(2500, source);
    one_in_background.store(0);
    ASSERT_EQ(wrong, "") << this->why();
    recover(*this->under_.index);
    ASSERT_EQ(compare_all(*this->under_.index, this->model_), "") << this->why();
    this->under_.index.reset();
    one_in_background.store(one_in);
    try {
      this->under_.open();
    } catch (const std::bad_alloc&) {
    } catch (const error&) {
    }
    one_in_background.store(0);
    if (this->under_.index == nullptr) this->under_.open();
    recover(*this->under_.index);
    ASSERT_EQ(compare_all(*this->under_.index, this->model_), "") << this->why();
  }
}

}  // namespace
}  // namespace pmlab::tests
