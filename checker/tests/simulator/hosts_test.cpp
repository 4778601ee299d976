// Litmus tests of several hosts on one memory: an outcome that the model allows is reached by some seed, and one that
// it forbids by none. This program is simulated itself.
#include "checker/simulator/machine/hosts.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/simulator/simulated.hpp"
#include "checker/verify/schedules.hpp"
#include <pmlab/media/hosts.hpp>
#include <pmlab/pod/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::simulator {
namespace {

constexpr std::uint64_t seeds = 400;

enum class order : std::uint8_t { sc, tso };
constexpr order orders[] = {order::sc, order::tso};

// Two lines of shared memory, and what the threads have seen.
struct words {
  std::uint64_t* x;  // the data
  std::uint64_t* y;  // the flag, in another line
  std::uint64_t a = 9, b = 9, c = 9, d = 9;
};
using code = void (*)(words&);
using outcome_set = std::set<std::string>;

constexpr std::size_t x_at = 8192;
constexpr std::size_t y_at = 8192 + 256;

void store(std::uint64_t* word, std::uint64_t value = 1) { __atomic_store_n(word, value, __ATOMIC_RELAXED); }
std::uint64_t load(const std::uint64_t* word) { return __atomic_load_n(word, __ATOMIC_RELAXED); }
void clwb(const void* line) { asm volatile("clwb %0" : : "m"(*static_cast<const char*>(line)) : "memory"); }
void clflushopt(const void* line) { asm volatile("clflushopt %0" : : "m"(*static_cast<const char*>(line)) : "memory"); }
void sfence() { asm volatile("sfence" ::: "memory"); }
void mfence() { asm volatile("mfence" ::: "memory"); }
void store_around(std::uint64_t* word, std::uint64_t value) {
  asm volatile("movnti %1, %0" : "=m"(*word) : "r"(value) : "memory");
}
void publish(std::uint64_t* word) {
  store(word);
  clwb(word);
  sfence();
}
void refresh(const void* line) {
  clflushopt(line);
  mfence();
}
hosts& all_hosts() { return *const_cast<hosts*>(the_machine().hosts_in_use()); }
bool exchange(std::uint64_t* word, std::uint64_t expected, std::uint64_t desired) {
  return __atomic_compare_exchange_n(word, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
std::atomic<std::uint64_t>& atomic(std::uint64_t* word) { return *reinterpret_cast<std::atomic<std::uint64_t>*>(word); }
// In the line of x.
std::uint64_t* second_word(words& w) { return w.x + 1; }

struct seen {
  outcome_set results;  // loaded by the threads: a, b, c, d
  outcome_set device;   // the first two words of x's line at the end
  host_counts counts;   // those of the last seed
  std::string story;    // its, too
  // What power failures of all hosts leave: the first two words of x's line, and that of y.
  outcome_set failures;
  outcome_set clobbers;  // those that put old words over newer ones, with the first words of the report
};

// At every event of a run: all that a power failure may leave.
class power_failures final : public persistence_observer {
 public:
  power_failures(persistent_memory& memory, const hosts& all, seen& found)
      : memory_(memory), all_(all), found_(found) {}
  void after_store(const unpersisted_line& /*line*/) override { collect(); }
  void after_fence() override { collect(); }
  void after_cached_store(std::uint32_t line, unsigned host) override {
    collect();
    EXPECT_TRUE(std::any_of(places_.begin(), places_.end(),
                            [&](const cached_stores& p) { return p.line == line && p.host == host; }));
  }

 private:
  void collect() {
    all_.find_cached(places_);
    std::vector<std::uint32_t> most;
    for (const std::uint32_t id : memory_.unpersisted())
      most.push_back(static_cast<std::uint32_t>(memory_.log(id).stores.size()));
    const std::size_t logged = most.size();
    for (const cached_stores& p : places_) most.push_back(p.count);
    std::vector<std::uint32_t> kept(most.size());
    for (bool more = true; more;) {
      look_at(std::span<const std::uint32_t>(kept).first(logged), std::span<const std::uint32_t>(kept).subspan(logged));
      std::size_t digit = 0;
      for (; digit < kept.size() && kept[digit] == most[digit]; ++digit) kept[digit] = 0;
      more = digit < kept.size();
      if (more) ++kept[digit];
    }
  }
  void look_at(std::span<const std::uint32_t> logged, std::span<const std::uint32_t> cached) {
    std::vector<std::byte> image(memory_.used_bytes());
    memory_.write_image(image.data(), logged);
    std::uint64_t hash = memory_.durable_hash();
    all_.for_each_kept_line(places_, cached, [&](std::uint32_t line, const line_words& words) {
      std::memcpy(image.data() + std::size_t{line} * media::cache_line_bytes, words.data(), sizeof words);
      hash = memory_.hash_with(hash, line, words);
    });
    std::uint64_t x[2], y;
    std::memcpy(x, image.data() + x_at, sizeof x);
    std::memcpy(&y, image.data() + y_at, sizeof y);
    const std::string content = std::to_string(x[0]) + std::to_string(x[1]) + std::to_string(y);
    found_.failures.insert(content);
    if (const std::string text = all_.clobbers(places_, cached); !text.empty())
      found_.clobbers.insert(content + text.substr(0, text.find("'s")));
    if (logged.empty()) {
      EXPECT_EQ(hashes_.emplace(content, hash).first->second, hash) << content;
    }
  }

  persistent_memory& memory_;
  const hosts& all_;
  seen& found_;
  std::vector<cached_stores> places_;
  std::map<std::string, std::uint64_t> hashes_;  // by content: equal ones have equal hashes
};

// Thread t runs on host t.
seen run_one(std::uint64_t seed, order how, host_options options, const std::vector<code>& threads,
             bool power_fails = false) {
  seen found;
  persistent_memory memory(1 << 16);
  memory.cover_all();
  memory.use_up_to(y_at + media::cache_line_bytes);
  options.hosts = static_cast<unsigned>(threads.size());
  options.seed = seed;
  hosts all(memory, options);
  power_failures failures(memory, all, found);
  if (power_fails) memory.observe(&failures);
  verify::random_schedule who(seed);
  machine_options run;
  run.who = &who;
  run.access_limit = 1'000'000;
  run.store_buffers = how == order::tso ? seed * 2 + 1 : 0;
  run.hosts = &all;
  machine& m = the_machine();
  m.begin(run);
  m.use(&memory);
  m.watch(true);
  {
    words w{reinterpret_cast<std::uint64_t*>(memory.start() + x_at),
            reinterpret_cast<std::uint64_t*>(memory.start() + y_at)};
    // Not in a block of the heap, which would be of one host.
    std::array<std::thread, most_hosts> running;
    for (unsigned t = 0; t < threads.size(); ++t) {
      m.move_to_host(t);
      running[t] = std::thread([&w, &threads, t] { threads[t](w); });
    }
    for (unsigned t = 0; t < threads.size(); ++t) running[t].join();
    std::string result;
    for (const std::uint64_t value : {w.a, w.b, w.c, w.d})
      if (value != 9) result += std::to_string(value);
    found.results.insert(result);
  }
  m.watch(false);
  m.end();
  memory.observe(nullptr);
  std::uint64_t line[2];
  std::memcpy(line, memory.durable() + x_at, sizeof line);
  found.device.insert(std::to_string(line[0]) + std::to_string(line[1]));
  found.counts = all.counts();
  found.story = all.story();
  return found;
}

seen run(const host_options& options, order how, const std::vector<code>& threads, bool power_fails = false) {
  seen all;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    seen one = run_one(seed, how, options, threads, power_fails);
    all.results.merge(one.results);
    all.device.merge(one.device);
    all.failures.merge(one.failures);
    all.clobbers.merge(one.clobbers);
    all.counts = one.counts;
  }
  return all;
}

seen run_with_failures(coherence mode, order how, const std::vector<code>& threads) {
  return run({.coherence = mode}, how, threads, true);
}

host_options with(coherence mode) { return {.coherence = mode}; }

// ---- message passing: data, then flag ----

void write_without_flush(words& w) {
  store(w.x);
  store(w.y);
}
void write_published(words& w) {
  publish(w.x);
  publish(w.y);
}
void read_without_refresh(words& w) {
  w.a = load(w.y);
  w.b = load(w.x);
}
void read_refreshed(words& w) {
  refresh(w.y);
  w.a = load(w.y);
  refresh(w.x);
  w.b = load(w.x);
}
// The data are in the reader's cache from before.
void read_again_refreshed_by_sfence(words& w) {
  load(w.x);
  refresh(w.y);
  w.a = load(w.y);
  clflushopt(w.x);
  sfence();
  w.b = load(w.x);
}
void read_again_refreshed_by_clwb(words& w) {
  load(w.x);
  refresh(w.y);
  w.a = load(w.y);
  clwb(w.x);
  mfence();
  w.b = load(w.x);
}
void read_refreshed_in_the_wrong_order(words& w) {
  refresh(w.x);
  refresh(w.y);
  w.a = load(w.y);
  w.b = load(w.x);
}

struct message {
  const char* name;
  code writer;
  code reader;
  bool stale_under_none;  // flag new, data old
};
constexpr message messages[] = {
    {"no flush", write_without_flush, read_without_refresh, true},
    {"the writer's flush alone", write_published, read_without_refresh, true},
    {"the reader's refresh alone", write_without_flush, read_refreshed, true},
    {"both", write_published, read_refreshed, false},
    {"clflushopt and sfence", write_published, read_again_refreshed_by_sfence, true},
    {"clwb and mfence", write_published, read_again_refreshed_by_clwb, true},
    {"data before the flag", write_published, read_refreshed_in_the_wrong_order, true},
};

TEST(hosts, mp_is_forbidden_by_full_coherence) {
  for (const order how : orders)
    for (const message& m : messages)
      EXPECT_EQ(run(with(coherence::full), how, {m.writer, m.reader}).results, (outcome_set{"00", "01", "11"}))
          << m.name;
}

TEST(hosts, mp_without_coherence_needs_flush_and_refresh_in_order) {
  for (const order how : orders)
    for (const message& m : messages) {
      const outcome_set found = run(with(coherence::none), how, {m.writer, m.reader}).results;
      EXPECT_EQ(found.count("10"), m.stale_under_none ? 1U : 0U) << m.name;
      EXPECT_EQ(found.count("11"), 1U) << m.name;
      EXPECT_EQ(found.count("00"), 1U) << m.name;
    }
}

TEST(hosts, an_sfence_orders_invalidations_if_the_run_says_so) {
  host_options options = with(coherence::none);
  options.sfence_invalidates = true;
  for (const order how : orders)
    EXPECT_EQ(run(options, how, {write_published, read_again_refreshed_by_sfence}).results.count("10"), 0U);
}

TEST(hosts, a_line_that_was_never_loaded_is_stale_by_a_prefetch_alone) {
  host_options options = with(coherence::none);
  options.stale = stale_lines::loaded;
  const code reads_again = [](words& w) {
    load(w.x);
    read_without_refresh(w);
  };
  for (const order how : orders) {
    EXPECT_EQ(run(options, how, {write_published, read_without_refresh}).results.count("10"), 0U);
    EXPECT_EQ(run(options, how, {write_published, reads_again}).results.count("10"), 1U);
  }
}

// Nothing orders a load and the clflushopt before it: the load may bring the line back, which stays then. The mfence of
// the flag's refresh is the first one behind both.
TEST(hosts, a_load_behind_a_clflushopt_may_keep_its_line_over_the_mfence) {
  host_options options = with(coherence::none);
  options.stale = stale_lines::loaded;
  const code loads_behind = [](words& w) {
    clflushopt(w.x);
    w.a = load(w.x);
    refresh(w.y);
    w.b = load(w.y);
    w.c = load(w.x);
  };
  const code loads_before = [](words& w) {
    w.a = load(w.x);
    clflushopt(w.x);
    refresh(w.y);
    w.b = load(w.y);
    w.c = load(w.x);
  };
  const code loads_once = [](words& w) {
    clflushopt(w.x);
    refresh(w.y);
    w.b = load(w.y);
    w.c = load(w.x);
  };
  const code loads_behind_the_mfence = [](words& w) {
    clflushopt(w.x);
    w.a = load(w.x);
    mfence();
    refresh(w.x);
    refresh(w.y);
    w.b = load(w.y);
    w.c = load(w.x);
  };
  for (const order how : orders) {
    const outcome_set behind = run(options, how, {write_published, loads_behind}).results;
    EXPECT_EQ(behind.count("010"), 1U);
    EXPECT_EQ(behind.count("011"), 1U);
    EXPECT_EQ(behind.count("110"), 0U);  // never backwards
    EXPECT_EQ(run(options, how, {write_published, loads_before}).results.count("010"), 0U);
    EXPECT_EQ(run(options, how, {write_published, loads_once}).results.count("10"), 0U);
    EXPECT_EQ(run(options, how, {write_published, loads_behind_the_mfence}).results.count("010"), 0U);
  }
}

// The flush of one thread does not undo what another one of its host has loaded since an earlier flush.
TEST(hosts, a_load_counts_from_the_clflushopt_whose_mfence_comes) {
  host_options options = with(coherence::none);
  options.stale = stale_lines::loaded;
  const code reads = [](words& w) {
    clflushopt(w.x);
    w.a = load(w.x);
    std::thread([&w] { clflushopt(w.x); }).join();
    refresh(w.y);
    w.b = load(w.y);
    w.c = load(w.x);
  };
  EXPECT_EQ(run(options, order::sc, {write_published, reads}).results.count("010"), 1U);
}

// A non-temporal store drops the line.
TEST(hosts, a_line_that_was_stored_around_is_not_loaded) {
  host_options options = with(coherence::none);
  options.stale = stale_lines::loaded;
  const code reads = [](words& w) {
    w.a = load(w.x);
    store_around(second_word(w), 1);
    sfence();
    refresh(w.y);
    w.b = load(w.y);
    w.c = load(w.x);
  };
  for (const order how : orders) EXPECT_EQ(run(options, how, {write_published, reads}).results.count("010"), 0U);
}

TEST(hosts, partial_coherence_is_that_of_the_first_bytes) {
  host_options options = with(coherence::partial);
  for (const order how : orders) {
    options.coherent_bytes = y_at + 64;
    EXPECT_EQ(run(options, how, {write_without_flush, read_without_refresh}).results, (outcome_set{"00", "01", "11"}));
    options.coherent_bytes = x_at;
    EXPECT_EQ(run(options, how, {write_published, read_without_refresh}).results.count("10"), 1U);
  }
}

// A prefetch may load the line again behind its invalidation, as long as no mfence has followed.
void invalidate_then_see_the_flag_then_fence(words& w) {
  clflushopt(w.x);
  for (int i = 0; i < 9 && w.a != 1; ++i) {
    the_machine().yield();
    w.a = load(w.y);
  }
  mfence();
  w.b = load(w.x);
}

TEST(hosts, an_invalidation_is_of_its_own_moment_and_not_of_its_fence) {
  host_options options = with(coherence::partial);
  options.coherent_bytes = 64;
  const code writes = [](words& w) {
    publish(w.x);
    publish(w.y);
  };
  for (const order how : orders)
    EXPECT_EQ(run(options, how, {writes, invalidate_then_see_the_flag_then_fence}).results.count("10"), 1U);
}

// ---- a store that is announced, and not done yet ----

TEST(hosts, a_plain_store_directly_before_a_publication_is_its_hosts_own) {
  const code publishes = [](words& w) {
    simulated medium;
    for (std::uint64_t i = 1; i <= 9; ++i) {
      simulated::publication change(medium);
      change.store(atomic(w.y + 32), i);
      *w.x = i;
      change.commit();
      w.a = load(w.x) == i ? 1 : 0;
      if (w.a == 0) return;
    }
  };
  const code works = [](words& w) {
    for (std::uint64_t i = 0; i < 60; ++i) store(w.y, i);
  };
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders)
      EXPECT_EQ(run(with(mode), how, {publishes, works, works}).results, (outcome_set{"1"}));
}

// ---- one line ----

TEST(hosts, a_line_never_goes_back) {
  const code reads = [](words& w) {
    w.a = load(w.x);
    w.b = load(w.x);
    w.c = load(w.x);
  };
  const code writes = [](words& w) {
    store(w.x, 1);
    clwb(w.x);
    sfence();
    store(w.x, 2);
    clwb(w.x);
    sfence();
  };
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders) {
      const outcome_set found = run(with(mode), how, {writes, reads}).results;
      for (const std::string& r : found) EXPECT_TRUE(r[0] <= r[1] && r[1] <= r[2]) << r;
      EXPECT_EQ(found.count("012") + found.count("011") + found.count("001") > 0, true);
    }
}

void store_first_word(words& w) {
  store(w.x);
  clwb(w.x);
  sfence();
}
void store_second_word(words& w) {
  store(second_word(w));
  clwb(second_word(w));
  sfence();
}

TEST(hosts, a_write_back_takes_all_of_the_line_with_it) {
  for (const order how : orders) {
    EXPECT_EQ(run(with(coherence::full), how, {store_first_word, store_second_word}).device, (outcome_set{"11"}));
    EXPECT_EQ(run(with(coherence::none), how, {store_first_word, store_second_word}).device,
              (outcome_set{"01", "10", "11"}));
  }
}

TEST(hosts, a_failed_locked_exchange_makes_the_copy_dirty) {
  const code fails = [](words& w) {
    exchange(second_word(w), 5, 6);
    clwb(second_word(w));
    sfence();
  };
  for (const order how : orders) {
    EXPECT_EQ(run(with(coherence::full), how, {store_first_word, fails}).device, (outcome_set{"10"}));
    EXPECT_EQ(run(with(coherence::none), how, {store_first_word, fails}).device, (outcome_set{"00", "10"}));
  }
}

TEST(hosts, a_non_temporal_store_changes_its_own_bytes_alone) {
  const code first = [](words& w) {
    store_around(w.x, 1);
    sfence();
  };
  const code second = [](words& w) {
    store_around(second_word(w), 1);
    sfence();
  };
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders) EXPECT_EQ(run(with(mode), how, {first, second}).device, (outcome_set{"11"}));
}

TEST(hosts, a_non_temporal_store_is_there_after_the_fence) {
  const code writes = [](words& w) {
    store_around(w.x, 1);
    sfence();
    store_around(w.y, 1);
  };
  const code writes_without_fence = [](words& w) {
    store_around(w.x, 1);
    store_around(w.y, 1);
  };
  EXPECT_EQ(run(with(coherence::none), order::sc, {writes, read_refreshed}).results.count("10"), 0U);
  EXPECT_EQ(run(with(coherence::none), order::sc, {writes_without_fence, read_refreshed}).results.count("10"), 1U);
}

// ---- atomic operations ----

TEST(hosts, a_locked_exchange_is_atomic_within_coherence) {
  const std::vector<code> threads = {[](words& w) { w.a = exchange(w.x, 0, 1); },
                                     [](words& w) { w.b = exchange(w.x, 0, 2); }};
  for (const order how : orders) {
    EXPECT_EQ(run(with(coherence::full), how, threads).results, (outcome_set{"01", "10"}));
    EXPECT_EQ(run(with(coherence::none), how, threads).results.count("11"), 1U);
  }
}

TEST(hosts, an_exchange_by_the_device_is_atomic_for_all) {
  const std::vector<code> threads = {[](words& w) {
                                       std::uint64_t expected = 0;
                                       w.a = the_machine().device_compare_exchange(w.x, expected, 1, nullptr);
                                     },
                                     [](words& w) {
                                       std::uint64_t expected = 0;
                                       w.b = the_machine().device_compare_exchange(w.x, expected, 2, nullptr);
                                     }};
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders) {
      const seen found = run(with(mode), how, threads);
      EXPECT_EQ(found.results, (outcome_set{"01", "10"}));
      EXPECT_EQ(found.device, (outcome_set{"10", "20"}));
    }
}

// It goes to the device behind the thread's earlier stores, and completes no write-back and no invalidation.
TEST(hosts, an_exchange_by_the_device_is_no_fence) {
  const code flushes_alone = [](words& w) {
    store(w.x);
    clwb(w.x);
    std::uint64_t expected = 0;
    the_machine().device_compare_exchange(w.y, expected, 1, nullptr);
  };
  const code publishes = [](words& w) {
    publish(w.x);
    std::uint64_t expected = 0;
    the_machine().device_compare_exchange(w.y, expected, 1, nullptr);
  };
  const code looks_by_the_device = [](words& w) {
    load(w.x);
    clflushopt(w.x);
    w.a = 1;  // expected
    the_machine().device_compare_exchange(w.y, w.a, 1, nullptr);
    w.b = load(w.x);
  };
  const code looks_and_fences = [](words& w) {
    load(w.x);
    w.a = 1;
    the_machine().device_compare_exchange(w.y, w.a, 1, nullptr);
    refresh(w.x);
    w.b = load(w.x);
  };
  for (const order how : orders) {
    EXPECT_EQ(run(with(coherence::none), how, {flushes_alone, read_refreshed}).results.count("10"), 1U);
    EXPECT_EQ(run(with(coherence::none), how, {publishes, read_refreshed}).results.count("10"), 0U);
    EXPECT_EQ(run(with(coherence::none), how, {publishes, looks_by_the_device}).results.count("10"), 1U);
    EXPECT_EQ(run(with(coherence::none), how, {publishes, looks_and_fences}).results.count("10"), 0U);
    EXPECT_EQ(run(with(coherence::full), how, {flushes_alone, looks_by_the_device}).results.count("10"), 0U);
  }
}

TEST(hosts, an_exchange_by_the_device_is_of_aligned_words) {
  const code exchanges = [](words& w) {
    std::uint64_t expected = 0;
    auto* const word = reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(w.x) + 4);
    the_machine().quietly(
        [&] { w.a = all_hosts().device_compare_exchange(word, expected, 1, nullptr).empty() ? 1 : 0; });
  };
  for (const coherence mode : {coherence::full, coherence::none})
    EXPECT_EQ(run(with(mode), order::sc, {exchanges, [](words&) {}}).results, (outcome_set{"0"}));
}

// ---- the medium's parts ----

pod::version_lock& lock_of(words& w) { return *reinterpret_cast<pod::version_lock*>(w.x + 128); }

void add_to_both(words& w) {
  simulated medium;
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(lock_of(w).lock(medium));
    for (std::uint64_t* const word : {w.x, w.y}) {
      media::refresh(medium, atomic(word));
      atomic(word).store(atomic(word).load() + 1, std::memory_order_release);
      media::publish(medium, atomic(word));
    }
    lock_of(w).unlock(medium);
  }
}
void read_both(words& w) {
  simulated medium;
  for (;;) {
    const std::uint64_t version = lock_of(w).read_begin(medium).value();
    media::refresh(medium, atomic(w.x));
    media::refresh(medium, atomic(w.y));
    const bool equal = atomic(w.x).load() == atomic(w.y).load();
    if (!lock_of(w).read_validate(medium, version)) continue;
    w.c = equal ? 1 : 0;
    return;
  }
}

TEST(hosts, a_lock_by_the_device_excludes_on_any_memory) {
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders) {
      const seen found = run(with(mode), how, {add_to_both, add_to_both, read_both});
      EXPECT_EQ(found.results, (outcome_set{"1"}));
      EXPECT_EQ(found.device, (outcome_set{"60"}));
    }
}

// ---- deaths ----

// The caller's host dies before its `number`-th event from here on.
void die_before(std::uint64_t number, death_moment when = death_moment::before_event) {
  all_hosts().doom(the_machine().host(), when, number);
}
void wait_for_death_of_host_0() {
  while (simulated().host_is_alive(0)) the_machine().yield();
}
void wait_for_death(words& /*w*/) { wait_for_death_of_host_0(); }
void store_twice_and_die(words& w) {
  die_before(3);
  store(w.x);
  store(second_word(w));
  store(w.y);
}
void read_twice_behind_the_death(words& w) {
  wait_for_death_of_host_0();
  for (std::uint64_t* const seen : {&w.a, &w.b}) {
    refresh(w.x);
    *seen = load(w.x) + load(second_word(w));
  }
}

TEST(hosts, of_a_line_of_the_dead_the_device_has_the_first_stores_and_survivors_see_the_same) {
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders) {
      const seen found = run(with(mode), how, {store_twice_and_die, read_twice_behind_the_death});
      EXPECT_EQ(found.results, (outcome_set{"00", "11", "22"}));
      EXPECT_EQ(found.device, (outcome_set{"00", "10", "11"}));
    }
}

TEST(hosts, what_was_published_outlives_its_host_and_what_was_not_may_be_lost) {
  const code publishes = [](words& w) {
    publish(w.x);
    die_before(2);
    store(second_word(w));
    clwb(w.x);
  };
  const code around = [](words& w) {
    die_before(4);
    store_around(w.x, 1);
    store(w.y);
    sfence();
    store(w.y);
  };
  // With store buffers, an sfence waits behind the stores, and is gone with them.
  for (const coherence mode : {coherence::full, coherence::none}) {
    EXPECT_EQ(run(with(mode), order::sc, {publishes, wait_for_death}).device, (outcome_set{"10", "11"}));
    EXPECT_EQ(run(with(mode), order::sc, {around, wait_for_death}).device, (outcome_set{"10"}));
  }
}

// ---- power failures of all ----

TEST(hosts, a_power_failure_keeps_the_first_stores_of_each_dirty_line) {
  const code stores = [](words& w) {
    store(w.x);
    store(second_word(w));
    store(w.y);
  };
  // The second host does nothing.
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders)
      EXPECT_EQ(run_with_failures(mode, how, {stores, [](words&) {}}).failures,
                (outcome_set{"000", "001", "100", "101", "110", "111"}));
}

TEST(hosts, what_was_published_outlives_a_power_failure) {
  const code data_then_flag = [](words& w) {
    publish(w.x);
    store(w.y);
  };
  // A clwb alone promises nothing.
  const code not_fenced = [](words& w) {
    store(w.x);
    clwb(w.x);
    store(w.y);
  };
  const code by_the_device = [](words& w) {
    std::uint64_t expected = 0;
    simulated().device_compare_exchange(atomic(w.x), expected, 1);
    store(w.y);
  };
  const code idle = [](words&) {};
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders) {
      EXPECT_EQ(run_with_failures(mode, how, {data_then_flag, idle}).failures, (outcome_set{"000", "100", "101"}));
      EXPECT_EQ(run_with_failures(mode, how, {not_fenced, idle}).failures, (outcome_set{"000", "001", "100", "101"}));
      outcome_set exchanged = run_with_failures(mode, how, {by_the_device, idle}).failures;
      exchanged.erase("000");  // some earlier moments are reported, too
      EXPECT_EQ(exchanged, (outcome_set{"100", "101"}));
    }
}

// Two hosts have the line in their caches: the later write-back is whole. Where it is coherent, the second store
// takes the first one along.
TEST(hosts, a_power_failure_keeps_the_copy_of_one_host) {
  const code first = [](words& w) { store(w.x); };
  const code second = [](words& w) { store(second_word(w), 2); };
  for (const order how : orders) {
    const seen apart = run_with_failures(coherence::none, how, {first, second});
    // "120": one was written back before the other one loaded the line.
    EXPECT_EQ(apart.failures, (outcome_set{"000", "020", "100", "120"}));
    EXPECT_EQ(apart.clobbers, (outcome_set{"020\n  clobber: host 1", "100\n  clobber: host 0"}));
    const seen shared = run_with_failures(coherence::full, how, {first, second});
    EXPECT_EQ(shared.failures, (outcome_set{"000", "020", "100", "120"}));
    EXPECT_EQ(shared.clobbers, outcome_set{});
  }
}

TEST(hosts, non_temporal_stores_without_a_fence_are_kept_or_not) {
  const code around = [](words& w) {
    store_around(w.x, 1);
    store_around(second_word(w), 1);
    store(w.y);
  };
  const code fenced = [](words& w) {
    store_around(w.x, 1);
    sfence();
    store(w.y);
  };
  const code idle = [](words&) {};
  EXPECT_EQ(run_with_failures(coherence::none, order::sc, {around, idle}).failures,
            (outcome_set{"000", "001", "010", "011", "100", "101", "110", "111"}));
  EXPECT_EQ(run_with_failures(coherence::none, order::sc, {fenced, idle}).failures, (outcome_set{"000", "100", "101"}));
}

// What a host has loaded of another one's copy is on the device where the line is coherent.
TEST(hosts, what_another_host_has_seen_of_a_coherent_line_outlives_a_power_failure) {
  const code writes = [](words& w) { store(w.x); };
  const code copies = [](words& w) {
    if (load(w.x) != 0) publish(w.y);
  };
  for (const order how : orders)
    EXPECT_EQ(run_with_failures(coherence::full, how, {writes, copies}).failures, (outcome_set{"000", "100", "101"}));
}

TEST(hosts, no_host_is_held_for_dead_that_lives) {
  const code looks = [](words& w) {
    w.a = 1;
    for (int i = 0; i < 50; ++i)
      if (!simulated().host_is_alive(0)) w.a = 0;
  };
  const code only_stores = [](words& w) { store(w.x); };
  const seen found = run(with(coherence::none), order::sc, {only_stores, looks});
  EXPECT_EQ(found.results, (outcome_set{"1"}));
  EXPECT_EQ(found.counts.deaths, 0U);
}

TEST(hosts, a_host_dies_behind_a_lock_word_or_before_it_publishes) {
  const code exchanges = [](words& w) {
    die_before(1, death_moment::behind_lock_word);
    std::uint64_t expected = 0;
    simulated().device_compare_exchange(*reinterpret_cast<std::atomic<std::uint64_t>*>(w.x), expected, 1);
    for (int i = 0; i < 9; ++i) store(w.y);
    w.c = 1;
  };
  const code publishes = [](words& w) {
    die_before(1, death_moment::before_publication);
    for (int i = 0; i < 9; ++i) store(w.y);
    w.c = 0;
    clwb(w.y);
    w.c = 1;
  };
  for (const coherence mode : {coherence::full, coherence::none}) {
    const seen locked = run(with(mode), order::sc, {exchanges, wait_for_death});
    EXPECT_EQ(locked.results, (outcome_set{""}));
    EXPECT_EQ(locked.device, (outcome_set{"10"}));
    EXPECT_EQ(run(with(mode), order::sc, {publishes, wait_for_death}).results, (outcome_set{"0"}));
  }
}

void die_with_the_lock(words& w) {
  simulated medium;
  static_cast<void>(lock_of(w).lock(medium));
  die_before(1);
  store(w.x);
}

TEST(hosts, a_lock_of_the_dead_is_inherited_once_and_readers_are_told) {
  const code inherits = [](words& w) {
    simulated medium;
    wait_for_death_of_host_0();
    if (lock_of(w).read_begin(medium).has_value()) return;
    w.a = lock_of(w).lock(medium) == pod::acquired::inherited ? 1 : 0;
    lock_of(w).unlock(medium);
    w.b = lock_of(w).lock(medium) == pod::acquired::inherited ? 1 : 0;
    lock_of(w).unlock(medium);
    w.c = lock_of(w).read_begin(medium).has_value() ? 1 : 0;
  };
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders)
      EXPECT_EQ(run(with(mode), how, {die_with_the_lock, inherits}).results, (outcome_set{"101"}));
}

TEST(hosts, lines_of_the_dead_are_lost_independently_of_each_other) {
  const code dies = [](words& w) {
    die_before(3);
    store(w.x);
    store(w.y);
    load(w.x);
  };
  const code reads = [](words& w) {
    wait_for_death_of_host_0();
    refresh(w.x);
    w.a = load(w.x);
    refresh(w.y);
    w.b = load(w.y);
  };
  for (const coherence mode : {coherence::full, coherence::none})
    EXPECT_EQ(run(with(mode), order::sc, {dies, reads}).results, (outcome_set{"00", "01", "10", "11"}));
}

// Three states of the line of x, and two of that of y.
TEST(hosts, each_choice_of_a_death_leaves_another_memory) {
  const code dies = [](words& w) {
    die_before(4);
    store(w.x);
    store(second_word(w));
    store(w.y);
    load(w.x);
  };
  const code reads = [](words& w) {
    wait_for_death_of_host_0();
    for (std::uint64_t* const word : {w.x, w.y}) refresh(word);
    w.a = load(w.x);
    w.b = load(second_word(w));
    w.c = load(w.y);
  };
  const outcome_set all = {"000", "001", "100", "101", "110", "111"};
  for (const coherence mode : {coherence::full, coherence::none})
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      outcome_set found;
      host_options options = with(mode);
      for (std::uint64_t choice = 0; choice < all.size(); ++choice) {
        options.death = one_death{.choice = choice};
        found.merge(run_one(seed, order::sc, options, {dies, reads}).results);
      }
      EXPECT_EQ(found, all) << "seed " << seed;
    }
}

// 64 of 101 * 101 choices are tried: with each of the extremes of one line there is each of the other.
TEST(hosts, of_many_choices_none_all_and_both_of_each_line_are_tried) {
  constexpr std::uint64_t stores = 100;
  const code dies = [](words& w) {
    die_before(2 * stores + 1);
    for (std::uint64_t* const word : {w.x, w.y})
      for (std::uint64_t value = 1; value <= stores; ++value) store(word, value);
    load(w.x);
  };
  const code reads = [](words& w) {
    wait_for_death_of_host_0();
    for (std::uint64_t* const word : {w.x, w.y}) refresh(word);
    w.a = load(w.x);
    w.b = load(w.y);
  };
  for (const coherence mode : {coherence::full, coherence::none}) {
    std::vector<std::string> found;
    host_options options = with(mode);
    for (std::uint64_t choice = 0; choice < one_death::most_choices; ++choice) {
      options.death = one_death{.choice = choice};
      found.push_back(*run_one(1, order::sc, options, {dies, reads}).results.begin());
    }
    EXPECT_EQ(found.front(), "00");
    EXPECT_EQ(found.back(), "100100");
    for (const char* const extremes : {"0100", "1000"})
      EXPECT_NE(std::find(found.begin(), found.end(), extremes), found.end());
  }
}

// Two words of a line: any of them may be there.
TEST(hosts, non_temporal_stores_of_the_dead_without_a_fence_are_there_or_not) {
  const code dies = [](words& w) {
    die_before(3);
    store_around(w.x, 1);
    store_around(second_word(w), 1);
    load(w.y);
  };
  EXPECT_EQ(run(with(coherence::full), order::sc, {dies, wait_for_death}).device, (outcome_set{"00", "10", "11"}));
  EXPECT_EQ(run(with(coherence::none), order::sc, {dies, wait_for_death}).device,
            (outcome_set{"00", "01", "10", "11"}));
}

TEST(hosts, what_a_host_has_seen_of_a_coherent_line_outlives_its_writer_and_itself) {
  const code writes = [](words& w) {
    store(w.x);
    while (load(w.y) == 0) the_machine().yield();
    die_before(1);
    load(w.y);
  };
  const code sees = [](words& w) {
    while (load(w.x) == 0) the_machine().yield();
    publish(w.y);
    die_before(1);
    load(w.x);
  };
  const code reads_last = [](words& w) {
    while (simulated().host_is_alive(0) || simulated().host_is_alive(1)) the_machine().yield();
    w.a = load(w.x);
  };
  const seen found = run(with(coherence::full), order::sc, {writes, sees, reads_last});
  EXPECT_EQ(found.results, (outcome_set{"1"}));
  EXPECT_EQ(found.counts.deaths, 2U);
}

// Views of who is alive differ: a host may hear of a death from another one first.
TEST(hosts, each_survivor_learns_of_a_death_at_its_own_time) {
  const code dies = [](words& w) {
    die_before(1);
    load(w.x);
  };
  const code tells = [](words& w) {
    wait_for_death_of_host_0();
    publish(w.y);
  };
  const code hears = [](words& w) {
    while (refresh(w.y), load(w.y) == 0) the_machine().yield();
    w.a = simulated().host_is_alive(0) ? 1 : 0;
    wait_for_death_of_host_0();
  };
  for (const coherence mode : {coherence::full, coherence::none})
    EXPECT_EQ(run(with(mode), order::sc, {dies, tells, hears}).results, (outcome_set{"0", "1"}));
}

TEST(hosts, all_threads_of_a_host_die_together_and_none_stores_later) {
  const code dies = [](words& w) {
    std::thread other([&w] {
      for (;;) {
        store(w.y, load(w.y) + 1);
        the_machine().yield();
      }
    });
    for (int i = 0; i < 20; ++i) store(w.x, load(w.x) + 1);
    die_before(1);
    load(w.x);
    other.join();
  };
  const code reads = [](words& w) {
    wait_for_death_of_host_0();
    refresh(w.y);
    const std::uint64_t before = load(w.y);
    for (int i = 0; i < 200; ++i) the_machine().yield();
    refresh(w.y);
    w.a = load(w.y) == before ? 1 : 0;
  };
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders) EXPECT_EQ(run(with(mode), how, {dies, reads}).results, (outcome_set{"1"}));
}

struct stores_at_its_end {
  std::uint64_t* word = nullptr;
  ~stores_at_its_end() {
    if (word != nullptr) *word = 7;
  }
};

TEST(hosts, objects_of_dead_threads_are_not_destroyed) {
  const code dies = [](words& w) {
    std::thread inner([&w] {
      thread_local stores_at_its_end last;
      last.word = w.y;
      die_before(1);
      load(w.x);
    });
    inner.join();
  };
  const code reads = [](words& w) {
    wait_for_death_of_host_0();
    for (int i = 0; i < 50; ++i) the_machine().yield();
    w.a = load(w.y);
  };
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders) EXPECT_EQ(run(with(mode), how, {dies, reads}).results, (outcome_set{"0"}));
}

// Dies at any event of the unlock: held, or free, and never both.
TEST(hosts, a_lock_whose_holder_dies_in_unlock_is_inherited_or_free) {
  const code dies = [](words& w) {
    simulated medium;
    static_cast<void>(lock_of(w).lock(medium));
    die_before(1 + the_machine().accesses() % 6);
    lock_of(w).unlock(medium);
    for (int i = 0; i < 9; ++i) store(w.y);
  };
  const code takes = [](words& w) {
    simulated medium;
    wait_for_death_of_host_0();
    w.a = lock_of(w).lock(medium) == pod::acquired::inherited ? 1 : 0;
    lock_of(w).unlock(medium);
    w.b = lock_of(w).lock(medium) == pod::acquired::inherited ? 1 : 0;
  };
  for (const coherence mode : {coherence::full, coherence::none})
    for (const order how : orders) EXPECT_EQ(run(with(mode), how, {dies, takes}).results, (outcome_set{"00", "10"}));
}

// The second dies as it repairs what the first has left; the third inherits from it.
TEST(hosts, a_lock_is_inherited_from_one_that_inherited_it) {
  const code dies_in_repair = [](words& w) {
    simulated medium;
    wait_for_death_of_host_0();
    w.a = lock_of(w).lock(medium) == pod::acquired::inherited ? 1 : 0;
    die_before(2);
    publish(w.x);
  };
  const code repairs = [](words& w) {
    simulated medium;
    while (simulated().host_is_alive(0) || simulated().host_is_alive(1)) the_machine().yield();
    w.b = lock_of(w).lock(medium) == pod::acquired::inherited ? 1 : 0;
    lock_of(w).unlock(medium);
    w.c = lock_of(w).read_begin(medium).has_value() ? 1 : 0;
  };
  for (const coherence mode : {coherence::full, coherence::none})
    EXPECT_EQ(run(with(mode), order::sc, {die_with_the_lock, dies_in_repair, repairs}).results, (outcome_set{"111"}));
}

TEST(hosts, the_story_names_the_death_and_what_was_lost) {
  std::string lost;
  for (std::uint64_t seed = 1; seed <= seeds && lost.find("lost: ") == std::string::npos; ++seed)
    lost = run_one(seed, order::sc, with(coherence::none), {store_twice_and_die, wait_for_death}).story;
  EXPECT_NE(lost.find("death: host 0 died before its access at"), std::string::npos) << lost;
  EXPECT_NE(lost.find("store(s) to the line at offset 8192, first the one at"), std::string::npos) << lost;
}

TEST(hosts, the_story_names_the_last_load_that_missed_a_store) {
  const code reads = [](words& w) {
    for (int i = 0; i < 20; ++i) w.a = load(w.x);
  };
  seen found;
  for (std::uint64_t seed = 1; seed <= seeds && found.counts.misses == 0; ++seed)
    found = run_one(seed, order::sc, with(coherence::none), {write_without_flush, reads});
  ASSERT_GT(found.counts.misses, 0U);
  EXPECT_NE(found.story.find("host 1 loads the line at offset 8192"), std::string::npos) << found.story;
  EXPECT_NE(found.story.find("without host 0's store"), std::string::npos) << found.story;
}

TEST(hosts, behind_the_last_miss_that_may_be_every_load_is_coherent) {
  host_options options = with(coherence::none);
  options.most_misses = 0;
  for (const order how : orders)
    for (const message& m : messages)
      EXPECT_EQ(run(options, how, {m.writer, m.reader}).results, (outcome_set{"00", "01", "11"})) << m.name;
}

TEST(hosts, a_host_that_starts_has_empty_caches) {
  const code starts_later = [](words& w) {
    const auto* const all = the_machine().hosts_in_use();
    while (all->counts().write_backs < 2) the_machine().yield();
    the_machine().quietly([&] { const_cast<hosts*>(all)->start_host(1); });
    read_without_refresh(w);
  };
  EXPECT_EQ(run(with(coherence::none), order::sc, {write_published, starts_later}).results, (outcome_set{"11"}));
}

TEST(hosts, coherent_blocks_lie_below_the_others) {
  persistent_memory memory(1 << 20);
  constexpr std::size_t division = 64 << 10;
  memory.divide_blocks_at(division);
  const auto offset_of = [&](void* block) {
    return static_cast<std::size_t>(static_cast<std::byte*>(block) - memory.start());
  };
  EXPECT_GE(offset_of(memory.reserve(100, 64)), division);
  void* const low = memory.reserve(100, 64, true);
  EXPECT_LT(offset_of(low), division - 100);
  memory.cancel(low);
  EXPECT_GE(offset_of(memory.reserve(100, 64)), division);
  EXPECT_EQ(memory.reserve(division, 64, true), nullptr);
}

// ---- the simulation ----

TEST(hosts, a_seed_replays) {
  for (const order how : orders)
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const seen one = run_one(seed, how, with(coherence::none), {write_without_flush, read_without_refresh});
      const seen again = run_one(seed, how, with(coherence::none), {write_without_flush, read_without_refresh});
      ASSERT_EQ(one.results, again.results) << "seed " << seed;
      ASSERT_EQ(one.device, again.device) << "seed " << seed;
      ASSERT_EQ(one.counts.write_backs, again.counts.write_backs) << "seed " << seed;
    }
}

// A host that never loads keeps the first version; the device keeps no more than `line_versions::most`.
TEST(hosts, the_slowest_host_moves_on) {
  const code writes = [](words& w) {
    for (std::uint64_t i = 1; i <= 20; ++i) {
      store(w.x, i);
      clwb(w.x);
      sfence();
    }
  };
  const code reads = [](words& w) {
    std::uint64_t last = 0;
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t now = load(w.x);
      if (now < last) w.a = 0;
      last = now;
    }
  };
  std::uint64_t forced = 0;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const seen one = run_one(seed, order::sc, with(coherence::none), {writes, reads});
    EXPECT_EQ(one.results, (outcome_set{""}));
    forced += one.counts.forced;
  }
  EXPECT_GT(forced, 0U);
}

}  // namespace
}  // namespace pmlab::simulator
