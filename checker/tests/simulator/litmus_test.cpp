// Litmus tests of the machine's memory order: an outcome that x86 allows is reached by some schedule, and one that it
// forbids by none. This program is simulated itself.
//
//   SB     store buffering: the one outcome in which x86 is weaker than sequential consistency
//   MP     message passing; LB  load buffering; IRIW  two readers of two writers
//   n6     a thread sees its own store before others do; all from Sewell et al., x86-TSO, 2010
//   and what a crash leaves of stores, write-backs and fences that wait in a store buffer
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/verify/schedules.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace pmlab::simulator {
namespace {

constexpr std::uint64_t seeds = 400;

enum class order : std::uint8_t { sc, tso };

// Shared words, a line each. They lie in the machine's heap: stores of a thread to its own stack do not wait.
struct words {
  alignas(64) std::atomic<std::uint64_t> x{0};
  alignas(64) std::atomic<std::uint64_t> y{0};
  alignas(64) std::atomic<std::uint64_t> a{9}, b{9}, c{9}, d{9};  // results
};

machine_options options_of(std::uint64_t seed, order how, verify::random_schedule& who) {
  machine_options options;
  options.who = &who;
  options.access_limit = 1'000'000;
  options.store_buffers = how == order::tso ? seed * 2 + 1 : 0;
  return options;
}

template <class Body>
void run(std::uint64_t seed, order how, Body&& body) {
  verify::random_schedule who(seed);
  the_machine().begin(options_of(seed, how, who));
  the_machine().watch(true);
  body();
  the_machine().watch(false);
  the_machine().end();
}

using code = void (*)(words&);

// The outcomes of these threads over all seeds, results in a row.
std::set<std::string> outcomes(order how, const std::vector<code>& threads) {
  std::set<std::string> found;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    std::string result;
    run(seed, how, [&] {
      auto* const w = new words;
      std::vector<std::thread> running;
      for (const code c : threads) running.emplace_back([w, c] { c(*w); });
      for (std::thread& t : running) t.join();
      for (const auto* const word : {&w->a, &w->b, &w->c, &w->d}) {
        const std::uint64_t value = word->load(std::memory_order_relaxed);
        if (value != 9) result += static_cast<char>('0' + value);
      }
      delete w;
    });
    found.insert(result);
  }
  return found;
}

constexpr auto relaxed = std::memory_order_relaxed;
constexpr auto release = std::memory_order_release;
constexpr auto acquire = std::memory_order_acquire;

TEST(litmus, sb_is_allowed_by_tso_and_not_by_sc) {
  const std::vector<code> threads = {[](words& w) {
                                       w.x.store(1, release);
                                       w.a.store(w.y.load(acquire), relaxed);
                                     },
                                     [](words& w) {
                                       w.y.store(1, release);
                                       w.b.store(w.x.load(acquire), relaxed);
                                     }};
  EXPECT_EQ(outcomes(order::tso, threads), (std::set<std::string>{"00", "01", "10", "11"}));
  EXPECT_EQ(outcomes(order::sc, threads), (std::set<std::string>{"01", "10", "11"}));
}

template <class Fence>
void expect_no_sb() {
  const std::vector<code> threads = {[](words& w) {
                                       w.x.store(1, relaxed);
                                       Fence()(w);
                                       w.a.store(w.y.load(relaxed), relaxed);
                                     },
                                     [](words& w) {
                                       w.y.store(1, relaxed);
                                       Fence()(w);
                                       w.b.store(w.x.load(relaxed), relaxed);
                                     }};
  EXPECT_EQ(outcomes(order::tso, threads), (std::set<std::string>{"01", "10", "11"}));
}

// g++ notes that ThreadSanitizer's own runtime knows no fences; the machine does.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
struct a_fence {
  [[gnu::noinline]] void operator()(words&) const { std::atomic_thread_fence(std::memory_order_seq_cst); }
};
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
struct an_mfence {
  void operator()(words&) const { asm volatile("mfence" ::: "memory"); }
};
struct a_locked_instruction {
  void operator()(words& w) const { w.c.fetch_add(0, relaxed); }
};
struct a_locked_instruction_in_asm {
  void operator()(words& w) const {
    std::uint64_t added = 0;
    asm volatile("lock xaddq %0, %1" : "+r"(added), "+m"(w.c) : : "memory");
  }
};

TEST(litmus, sb_is_forbidden_by_mfence_and_locked_instructions) {
  expect_no_sb<a_fence>();
  expect_no_sb<an_mfence>();
  expect_no_sb<a_locked_instruction>();
  expect_no_sb<a_locked_instruction_in_asm>();
}

TEST(litmus, sb_is_forbidden_by_seq_cst_stores) {
  const std::vector<code> threads = {[](words& w) {
                                       w.x.store(1);
                                       w.a.store(w.y.load(), relaxed);
                                     },
                                     [](words& w) {
                                       w.y.store(1);
                                       w.b.store(w.x.load(), relaxed);
                                     }};
  EXPECT_EQ(outcomes(order::tso, threads), (std::set<std::string>{"01", "10", "11"}));
}

// Stores leave in order, before any load.
TEST(litmus, sfence_does_not_forbid_sb) {
  const std::vector<code> threads = {[](words& w) {
                                       w.x.store(1, relaxed);
                                       asm volatile("sfence" ::: "memory");
                                       w.a.store(w.y.load(relaxed), relaxed);
                                     },
                                     [](words& w) {
                                       w.y.store(1, relaxed);
                                       asm volatile("sfence" ::: "memory");
                                       w.b.store(w.x.load(relaxed), relaxed);
                                     }};
  EXPECT_EQ(outcomes(order::tso, threads), (std::set<std::string>{"00", "01", "10", "11"}));
}

// mfence before the store, and a plain store behind it, is no locked instruction.
TEST(litmus, an_mfence_before_the_store_does_not_forbid_sb) {
  const std::vector<code> threads = {[](words& w) {
                                       asm volatile("mfence" ::: "memory");
                                       w.x.store(1, relaxed);
                                       w.a.store(w.y.load(relaxed), relaxed);
                                     },
                                     [](words& w) {
                                       asm volatile("mfence" ::: "memory");
                                       w.y.store(1, relaxed);
                                       w.b.store(w.x.load(relaxed), relaxed);
                                     }};
  EXPECT_EQ(outcomes(order::tso, threads).count("00"), 1U);
}

TEST(litmus, mp_is_forbidden) {
  for (const order how : {order::sc, order::tso}) {
    const std::set<std::string> found = outcomes(how, {[](words& w) {
                                                         w.x.store(1, relaxed);
                                                         w.y.store(1, relaxed);
                                                       },
                                                       [](words& w) {
                                                         w.a.store(w.y.load(relaxed), relaxed);
                                                         w.b.store(w.x.load(relaxed), relaxed);
                                                       }});
    EXPECT_EQ(found, (std::set<std::string>{"00", "01", "11"}));
  }
}

TEST(litmus, lb_is_forbidden) {
  for (const order how : {order::sc, order::tso}) {
    const std::set<std::string> found = outcomes(how, {[](words& w) {
                                                         w.a.store(w.x.load(relaxed), relaxed);
                                                         w.y.store(1, relaxed);
                                                       },
                                                       [](words& w) {
                                                         w.b.store(w.y.load(relaxed), relaxed);
                                                         w.x.store(1, relaxed);
                                                       }});
    EXPECT_EQ(found, (std::set<std::string>{"00", "01", "10"}));
  }
}

TEST(litmus, iriw_is_forbidden) {
  for (const order how : {order::sc, order::tso}) {
    const std::set<std::string> found =
        outcomes(how, {[](words& w) { w.x.store(1, relaxed); }, [](words& w) { w.y.store(1, relaxed); },
                       [](words& w) {
                         w.a.store(w.x.load(relaxed), relaxed);
                         w.b.store(w.y.load(relaxed), relaxed);
                       },
                       [](words& w) {
                         w.c.store(w.y.load(relaxed), relaxed);
                         w.d.store(w.x.load(relaxed), relaxed);
                       }});
    EXPECT_EQ(found.count("1010"), 0U);
    EXPECT_EQ(found.count("1000"), 1U);
    EXPECT_EQ(found.count("0010"), 1U);
    EXPECT_EQ(found.count("1111"), 1U);
  }
}

// The first thread reads its own store of x while the other's is in memory below it, and y from before.
TEST(litmus, n6_is_allowed_by_tso_and_not_by_sc) {
  const std::vector<code> threads = {[](words& w) {
                                       w.x.store(1, relaxed);
                                       w.a.store(w.x.load(relaxed), relaxed);
                                       w.b.store(w.y.load(relaxed), relaxed);
                                     },
                                     [](words& w) {
                                       w.y.store(2, relaxed);
                                       w.x.store(2, relaxed);
                                     }};
  const auto with_end = [&](order how) {
    std::set<std::string> found;
    for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
      std::string result;
      run(seed, how, [&] {
        auto* const w = new words;
        std::thread one([&] { threads[0](*w); });
        std::thread other([&] { threads[1](*w); });
        one.join();
        other.join();
        for (const auto* const word : {&w->a, &w->b, &w->x}) result += static_cast<char>('0' + word->load(relaxed));
        delete w;
      });
      found.insert(result);
    }
    return found;
  };
  EXPECT_EQ(with_end(order::tso).count("101"), 1U);
  EXPECT_EQ(with_end(order::sc).count("101"), 0U);
}

// A load that takes some bytes from waiting stores of several sizes, and some from memory.
TEST(litmus, loads_are_forwarded_byte_by_byte) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed)
    run(seed, order::tso, [] {
      auto* const bytes = static_cast<unsigned char*>(::operator new(64));
      std::memset(bytes, 0, 64);
      std::thread busy([bytes] {
        for (int i = 0; i < 20; ++i) __atomic_store_n(bytes + 32, 1, __ATOMIC_RELAXED);
      });
      std::thread t([bytes] {
        __atomic_store_n(reinterpret_cast<std::uint64_t*>(bytes), 0x1111111111111111, __ATOMIC_RELAXED);
        __atomic_store_n(reinterpret_cast<std::uint16_t*>(bytes + 2), 0x2222, __ATOMIC_RELAXED);
        __atomic_store_n(bytes + 7, 0x33, __ATOMIC_RELAXED);
        EXPECT_EQ(__atomic_load_n(reinterpret_cast<std::uint64_t*>(bytes), __ATOMIC_RELAXED), 0x3311111122221111U);
        EXPECT_EQ(__atomic_load_n(reinterpret_cast<std::uint32_t*>(bytes), __ATOMIC_RELAXED), 0x22221111U);
      });
      t.join();
      busy.join();
      EXPECT_EQ(bytes[7], 0x33);
      ::operator delete(bytes);
    });
}

// Other threads see both parts of a locked instruction in inline asm as one.
TEST(litmus, locked_instructions_in_asm_exclude_each_other) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed)
    run(seed, order::tso, [] {
      auto* const sum = new std::uint64_t{0};
      std::vector<std::thread> threads;
      for (int t = 0; t < 3; ++t)
        threads.emplace_back([sum] {
          for (int i = 0; i < 10; ++i) asm volatile("lock incq %0" : "+m"(*sum) : : "memory");
        });
      for (std::thread& t : threads) t.join();
      EXPECT_EQ(*sum, 30U);
      delete sum;
    });
}

TEST(litmus, a_seed_replays) {
  const auto trace = [](std::uint64_t seed) {
    std::string seen;
    run(seed, order::tso, [&] {
      auto* const w = new words;
      std::thread one([w] {
        for (std::uint64_t i = 1; i <= 20; ++i) {
          w->x.store(i, relaxed);
          w->a.store(w->y.load(relaxed), relaxed);
        }
      });
      std::thread two([w] {
        for (std::uint64_t i = 1; i <= 20; ++i) {
          w->y.store(i, relaxed);
          w->b.store(w->x.load(relaxed), relaxed);
        }
      });
      std::thread three([&] {
        for (int i = 0; i < 30; ++i)
          seen += std::to_string(w->x.load(relaxed) * 100 + w->y.load(relaxed)) + " " +
                  std::to_string(w->a.load(relaxed) * 100 + w->b.load(relaxed)) + " ";
      });
      one.join();
      two.join();
      three.join();
      delete w;
    });
    return seen;
  };
  for (std::uint64_t seed = 1; seed <= 20; ++seed) ASSERT_EQ(trace(seed), trace(seed)) << "seed " << seed;
}

// ---- crashes ----

std::string name_of(std::uint64_t x, std::uint64_t y) { return std::to_string(x) + std::to_string(y); }

// The contents of x and y that crashes leave, at every event, over all seeds: the durable one, and with the stores that
// may be durable.
class crash_contents final : public persistence_observer {
 public:
  explicit crash_contents(persistent_memory& memory) : memory_(memory) {}
  void after_store(const unpersisted_line&) override { collect(); }
  void after_fence() override { collect(); }
  void collect() {
    std::vector<std::uint32_t> most;
    for (const std::uint32_t id : memory_.unpersisted())
      most.push_back(static_cast<std::uint32_t>(memory_.log(id).stores.size()));
    std::vector<std::byte> image(memory_.used_bytes());
    // All of each line or nothing: both lines have one store.
    ++moments;
    for (std::uint32_t some = 0; some < 1U << most.size(); ++some) {
      std::vector<std::uint32_t> choice(most.size());
      for (std::size_t i = 0; i < most.size(); ++i) choice[i] = (some >> i & 1) != 0 ? most[i] : 0;
      memory_.write_image(image.data(), choice);
      std::uint64_t x = 0, y = 0;
      std::memcpy(&x, image.data() + x_at, 8);
      std::memcpy(&y, image.data() + y_at, 8);
      found.insert(name_of(x, y));
      if (at_each) at_each(image.data());
    }
  }
  std::function<void(const std::byte*)> at_each;
  std::uint64_t moments = 0;
  static constexpr std::size_t x_at = 4096 + 64;
  static constexpr std::size_t y_at = 4096 + 256;
  std::set<std::string> found;

 private:
  persistent_memory& memory_;
};

// `body(x, y)` runs beside a thread that takes turns. Contents that crashes leave; `at_end`: of a crash while the
// stores of `body` that wait are still waiting.
std::set<std::string> crashes(order how, const std::function<void(std::uint64_t*, std::uint64_t*)>& body,
                              persistence_domain domain = persistence_domain::adr) {
  std::set<std::string> found;
  the_machine().lose_power_as(domain);
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    persistent_memory memory(1 << 16);
    crash_contents seen(memory);
    verify::random_schedule who(seed);
    the_machine().begin(options_of(seed, how, who));
    the_machine().use(&memory);
    memory.use_up_to(crash_contents::y_at + 64);
    memory.observe(&seen);
    the_machine().watch(true);
    auto* const x = reinterpret_cast<std::uint64_t*>(memory.start() + crash_contents::x_at);
    auto* const y = reinterpret_cast<std::uint64_t*>(memory.start() + crash_contents::y_at);
    std::thread t([&] { body(x, y); });
    t.join();
    the_machine().watch(false);
    EXPECT_EQ(memory.audit(), "") << "seed " << seed;
    memory.observe(nullptr);
    the_machine().end();
    found.insert(seen.found.begin(), seen.found.end());
  }
  the_machine().lose_power_as(persistence_domain::adr);
  return found;
}

void store(std::uint64_t* word) { __atomic_store_n(word, 1, __ATOMIC_RELAXED); }
void write_back(const void* line) { asm volatile("clwb %0" : : "m"(*static_cast<const char*>(line)) : "memory"); }
void sfence() { asm volatile("sfence" ::: "memory"); }

TEST(litmus, stores_to_two_lines_become_durable_in_any_order) {
  for (const order how : {order::sc, order::tso})
    EXPECT_EQ(crashes(how,
                      [](std::uint64_t* x, std::uint64_t* y) {
                        store(x);
                        store(y);
                      }),
              (std::set<std::string>{"00", "01", "10", "11"}));
}

TEST(litmus, write_back_and_sfence_order_them) {
  for (const order how : {order::sc, order::tso})
    EXPECT_EQ(crashes(how,
                      [](std::uint64_t* x, std::uint64_t* y) {
                        store(x);
                        write_back(x);
                        sfence();
                        store(y);
                      }),
              (std::set<std::string>{"00", "10", "11"}));
}

TEST(litmus, a_write_back_alone_does_not_order_them) {
  for (const order how : {order::sc, order::tso})
    EXPECT_EQ(crashes(how,
                      [](std::uint64_t* x, std::uint64_t* y) {
                        store(x);
                        write_back(x);
                        store(y);
                      }),
              (std::set<std::string>{"00", "01", "10", "11"}));
}

// The write-back follows the store to its own line out of the buffer: it does not miss it.
TEST(litmus, a_locked_instruction_waits_for_write_backs) {
  EXPECT_EQ(crashes(order::tso,
                    [](std::uint64_t* x, std::uint64_t* y) {
                      store(x);
                      write_back(x);
                      static std::atomic<int> word{0};
                      word.fetch_add(1);
                      store(y);
                    }),
            (std::set<std::string>{"00", "10", "11"}));
}

// libpmemobj logs the words of a publication, and writes their lines back behind that.
TEST(litmus, a_publication_alone_makes_no_other_store_to_its_line_durable) {
  const auto publish = [](persistent_memory& memory, std::uint64_t* word) {
    const pmlab_change c{1, word, 1};
    ASSERT_EQ(memory.publish({&c, 1}), "");
  };
  persistent_memory memory(1 << 16);
  crash_contents seen(memory);
  memory.use_up_to(crash_contents::y_at + 64);
  memory.observe(&seen);
  auto* const x = reinterpret_cast<std::uint64_t*>(memory.start() + crash_contents::x_at);
  auto* const beside = x + 1;
  const auto put = [&](std::uint64_t* word, std::uint64_t value) {
    *word = value;
    memory.stored(reinterpret_cast<std::uintptr_t>(word), sizeof *word, nullptr);
  };
  std::set<std::pair<std::uint64_t, std::uint64_t>> images;
  seen.at_each = [&](const std::byte* image) {
    std::pair<std::uint64_t, std::uint64_t> both;
    std::memcpy(&both.first, image + crash_contents::x_at, 8);
    std::memcpy(&both.second, image + crash_contents::x_at + 8, 8);
    images.insert(both);
  };
  put(x, 7);  // a lock, say, in the word itself: the log overwrites it
  put(beside, 2);
  publish(memory, x);
  // The word is published, and the store beside it is lost. Never behind the commit.
  EXPECT_EQ(images, (std::set<std::pair<std::uint64_t, std::uint64_t>>{{0, 0}, {7, 0}, {7, 2}, {1, 0}, {1, 2}}));
  images.clear();
  seen.collect();
  EXPECT_EQ(images, (std::set<std::pair<std::uint64_t, std::uint64_t>>{{1, 2}}));
  // A word that lies alone has no such moment.
  const std::uint64_t before = seen.moments;
  publish(memory, reinterpret_cast<std::uint64_t*>(memory.start() + crash_contents::y_at));
  EXPECT_EQ(seen.moments, before + 1);
  EXPECT_EQ(memory.audit(), "");
  memory.observe(nullptr);
}

TEST(litmus, where_caches_survive_stores_become_durable_in_order) {
  for (const order how : {order::sc, order::tso})
    EXPECT_EQ(crashes(
                  how,
                  [](std::uint64_t* x, std::uint64_t* y) {
                    store(x);
                    store(y);
                  },
                  persistence_domain::eadr),
              (std::set<std::string>{"00", "10", "11"}));
}

// 2 if the caller sees 1 there, and 1 more if it is durable. Not observed, and read in here: both at one instant.
__attribute__((no_sanitize("thread"), noinline)) std::uint64_t seen_and_durable(const volatile std::uint64_t* word,
                                                                                const volatile std::byte* durable) {
  return 2 * *word + static_cast<std::uint64_t>(*durable);
}

// Another thread has finished something, and the power fails: a store that it cannot see yet is lost, under eADR too.
TEST(litmus, a_crash_loses_what_waits_in_a_store_buffer) {
  for (const order how : {order::sc, order::tso}) {
    const auto found = [&] {
      std::set<std::string> result;
      the_machine().lose_power_as(persistence_domain::eadr);
      for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
        persistent_memory memory(1 << 16);
        run(seed, how, [&] {
          the_machine().use(&memory);
          auto* const x = reinterpret_cast<std::uint64_t*>(memory.start() + crash_contents::x_at);
          auto* const w = new words;
          std::thread one([&] {
            store(x);
            w->a.store(w->y.load(relaxed), relaxed);
          });
          std::thread two([&] {
            w->y.store(1);
            w->b.store(seen_and_durable(x, memory.durable() + crash_contents::x_at), relaxed);
          });
          one.join();
          two.join();
          // Thread one stored x before it read y.
          result.insert(name_of(w->a.load(relaxed), w->b.load(relaxed)));
          delete w;
        });
      }
      the_machine().lose_power_as(persistence_domain::adr);
      return result;
    }();
    // "0" for y, although x is neither seen nor durable when the other thread has written it: only while x waits.
    EXPECT_EQ(found.count("00"), how == order::tso ? 1U : 0U);
    for (const char* const torn : {"01", "02", "11", "12"})
      EXPECT_EQ(found.count(torn), 0U) << "seen, but not durable, or the reverse";
  }
}

}  // namespace
}  // namespace pmlab::simulator
