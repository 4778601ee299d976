// Real death: a process that works on a pool is killed with SIGKILL at random moments, and the results that it returned
// must be in the pool. Caches survive a kill, so this does not test flushes; it tests locks, half-done structure
// changes, libpmemobj's own logs, and two threads that are interrupted at the same time.
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/pmem.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "support/campaign.hpp"
#include "support/comparison.hpp"
#include "support/differential.hpp"
#include "support/few_shards.hpp"
#include "support/operations.hpp"
#include "support/settings.hpp"
#include "support/temporary_folder.hpp"
#include "support/watchdog.hpp"

namespace pmlab::tests {
namespace {

constexpr unsigned threads = 2;
constexpr std::size_t records_per_thread = 1 << 18;
constexpr std::uint64_t keys_per_thread = 4000;
constexpr std::uint64_t pool_bytes = std::uint64_t{64} << 20;

// Messages of the child to its parent, in memory that both map and that outlives the child.
struct report {
  struct one_thread {
    std::atomic<std::uint64_t> started;       // steps that are written down
    std::atomic<std::uint64_t> acknowledged;  // steps that were answered; the next one may be under way
    std::array<step, records_per_thread> steps;
    std::array<answer, records_per_thread> answers;
  };
  std::atomic<bool> opened;    // the pool and the index in it are open
  std::atomic<bool> finished;  // the child ran out of records
  std::array<one_thread, threads> of;
};

report* map_report(int file) {
  void* const area = ::mmap(nullptr, sizeof(report), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return area == MAP_FAILED ? nullptr : static_cast<report*>(area);
}

// Each thread has keys of its own, so that its record alone defines their values. They are neighbours of the other
// thread's, so that the threads meet in every node.
std::uint64_t key_of(std::uint64_t n, unsigned thread) { return n * threads + thread; }

// A pool in which an index of shards has few of them, so that they grow while the process is killed.
using pool_of_few_shards = of_shards<media::pmem, 2>;

template <class Index>
void work(report& said, const std::string& pool, std::uint64_t seed) {
  pool_of_few_shards medium(pool, {.create_bytes = pool_bytes, .huge_pages = false});
  auto index = Index::open(medium);
  said.opened = true;
  std::vector<std::thread> running;
  for (unsigned t = 0; t < threads; ++t)
    running.emplace_back([&, t] {
      random source(seed * threads + t);
      report::one_thread& mine = said.of[t];
      for (std::size_t i = 0; i < records_per_thread; ++i) {
        const step s{random_action(source, {.insert = 40, .update = 10, .upsert = 20, .erase = 25}),
                     key_of(source.below(keys_per_thread), t), source.next()};
        mine.steps[i] = s;
        mine.started.store(i + 1, std::memory_order_release);
        std::atomic_signal_fence(std::memory_order_seq_cst);
        mine.answers[i] = perform(s, index);
        mine.acknowledged.store(i + 1, std::memory_order_release);
      }
    });
  for (std::thread& t : running) t.join();
  said.finished = true;
}

// The hidden command line of the child: --die-at-work KIND POOL SEED REPORT-FD.
constexpr const char* child_argument = "--die-at-work";

int run_child(char** arguments) {
  report* const said = map_report(std::atoi(arguments[3]));
  if (said == nullptr) return 3;
  const std::string_view kind = arguments[0];
  const std::uint64_t seed = std::strtoull(arguments[2], nullptr, 0);
  const auto work_if_meant = [&]<class Kind>(std::type_identity<Kind>) {
    if (kind == Kind::name) work<typename Kind::template index<pool_of_few_shards>>(*said, arguments[1], seed);
  };
  [&]<class... Kinds>(testing::Types<Kinds...>) { (work_if_meant(std::type_identity<Kinds>()), ...); }(all_kinds());
  return 0;
}

template <class Kind>
class killed : public testing::Test {
 protected:
  using index_type = typename Kind::template index<pool_of_few_shards>;

  killed() {
    file_ = ::memfd_create("pmlab-report", 0);
    if (file_ < 0 || ::ftruncate(file_, sizeof(report)) != 0) throw std::runtime_error("cannot make shared memory");
    said_ = map_report(file_);
    if (said_ == nullptr) throw std::runtime_error("cannot map shared memory");
  }
  killed(const killed&) = delete;
  killed& operator=(const killed&) = delete;
  ~killed() override {
    ::munmap(said_, sizeof(report));
    ::close(file_);
  }

  // Starts a child and kills it: `microseconds` after it opened the index, or after its start if `from_start`; and not
  // before it has done so many steps: on a busy machine it may get no processor for so long.
  void run_and_kill(std::uint64_t seed, std::uint64_t microseconds, bool from_start, std::uint64_t least_steps = 0) {
    said_->opened = false;
    said_->finished = false;
    for (auto& t : said_->of) t.started = t.acknowledged = 0;
    const std::string pool = folder_.file("pool");
    child_process child = child_process::of_program(
        "/proc/self/exe", {"test", child_argument, Kind::name, pool, std::to_string(seed), std::to_string(file_)});
    while (!from_start && !said_->opened) {
      ASSERT_FALSE(child.ended()) << "the child ended by itself, with " << child.wait().text();
      ::usleep(100);
    }
    while (steps_done() < least_steps && !said_->finished && !child.ended()) ::usleep(100);
    ::usleep(static_cast<useconds_t>(microseconds));
    child.kill();
    const exit_reason reason = child.wait();
    ASSERT_TRUE(reason.signal == SIGKILL || said_->finished) << "the child ended by itself, with " << reason.text();
  }

  [[nodiscard]] std::uint64_t steps_done() const {
    std::uint64_t sum = 0;
    for (const auto& t : said_->of) sum += t.acknowledged;
    return sum;
  }

  // Applies the child's results to `model_`. Returns, by thread, the step that may be under way.
  std::vector<step> follow_report() {
    std::vector<step> under_way;
    for (auto& t : said_->of) {
      const std::uint64_t count = t.acknowledged;
      for (std::uint64_t i = 0; i < count; ++i)
        EXPECT_EQ(expect(t.steps[i], model_), t.answers[i]) << to_string(t.steps[i]);
      if (t.started > count) under_way.push_back(t.steps[count]);
    }
    return under_way;
  }

  void examine_pool(const std::vector<step>& under_way, std::uint64_t seed) {
    pool_of_few_shards medium(folder_.file("pool"), {.create_bytes = pool_bytes, .huge_pages = false});
    auto index = index_type::open(medium);
    for (const step& s : under_way) {
      const key_state found = index.find(s.key);
      EXPECT_TRUE(wholly_or_not_at_all(s, state_in(model_, s.key), found)) << "under way: " << to_string(s);
      put_state(model_, s.key, found);
    }
    ASSERT_EQ(compare_all(index, model_), "");
    // Works on: the same keys, more of the same.
    for (std::uint64_t i = 0; i < 500; ++i) {
      random source(seed * 500 + i);
      const step s{random_action(source, {}), key_of(source.below(keys_per_thread), 0), i};
      ASSERT_EQ(expect(s, model_), perform(s, index)) << to_string(s);
    }
    ASSERT_EQ(compare_all(index, model_), "");
  }

  temporary_folder folder_;
  contents model_;
  int file_ = -1;
  report* said_ = nullptr;
};

TYPED_TEST_SUITE(killed, all_kinds, setting_name);

// A3, C5, C16, F14: two threads are killed with locks held, in the middle of splits, again and again in one pool; each
// time the pool opens, holds the results that were returned, and remains usable.
TYPED_TEST(killed, A3_C5_C16_F14_at_work_loses_nothing_that_was_answered) {
  const watchdog hang(std::chrono::seconds(300), replay_command(1));
  for (const std::uint64_t seed : seeds(2)) {
    random source(seed);
    std::uint64_t steps = 0;
    for (int round = 0; round < 12; ++round) {
      ASSERT_NO_FATAL_FAILURE(this->run_and_kill(seed * 100 + static_cast<std::uint64_t>(round), source.below(20'000),
                                                 /*from_start=*/false, source.below(400)));
      steps += this->steps_done();
      const std::vector<step> under_way = this->follow_report();
      ASSERT_NO_FATAL_FAILURE(this->examine_pool(under_way, seed)) << "round " << round;
      if (this->HasFailure()) FAIL() << "replay: " << replay_command(seed) << ", round " << round;
    }
    EXPECT_GT(steps, 1000U) << "the children were killed before they worked";
    // A new pool for the next seed.
    std::filesystem::remove(this->folder_.file("pool"));
    this->model_.clear();
  }
}

// L11: killed while it grows from nothing, of two threads' inserts.
TYPED_TEST(killed, L11_while_it_grows_loses_nothing_that_was_answered) {
  const watchdog hang(std::chrono::seconds(300), replay_command(1));
  for (const std::uint64_t seed : seeds(1)) {
    random source(seed);
    for (int round = 0; round < 15; ++round) {
      std::filesystem::remove(this->folder_.file("pool"));
      this->model_.clear();
      ASSERT_NO_FATAL_FAILURE(this->run_and_kill(seed * 100 + static_cast<std::uint64_t>(round), source.below(6'000),
                                                 /*from_start=*/false));
      const std::vector<step> under_way = this->follow_report();
      ASSERT_NO_FATAL_FAILURE(this->examine_pool(under_way, seed)) << "round " << round;
      if (this->HasFailure()) FAIL() << "replay: " << replay_command(seed) << ", round " << round;
    }
  }
}

// A1: killed while the pool is made, or the index in it, or either is opened: the next one opens it.
TYPED_TEST(killed, A1_A2_while_pool_and_index_are_made_or_opened) {
  const watchdog hang(std::chrono::seconds(300), replay_command(1));
  for (const std::uint64_t seed : seeds(1)) {
    random source(seed);
    for (int round = 0; round < 25; ++round) {
      if (source.one_in(2)) {
        std::filesystem::remove(this->folder_.file("pool"));
        this->model_.clear();
      }
      ASSERT_NO_FATAL_FAILURE(this->run_and_kill(seed * 100 + static_cast<std::uint64_t>(round),
                                                 1000 + source.below(30'000), /*from_start=*/true));
      const std::vector<step> under_way = this->follow_report();
      ASSERT_NO_FATAL_FAILURE(this->examine_pool(under_way, seed)) << "round " << round;
      if (this->HasFailure()) FAIL() << "replay: " << replay_command(seed) << ", round " << round;
    }
  }
}

}  // namespace
}  // namespace pmlab::tests

int main(int count, char** arguments) {
  if (count == 6 && std::strcmp(arguments[1], pmlab::tests::child_argument) == 0)
    return pmlab::tests::run_child(arguments + 2);
  testing::InitGoogleTest(&count, arguments);
  return RUN_ALL_TESTS();
}
