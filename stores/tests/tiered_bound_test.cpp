// The loss bound of a store whose flusher gets no processor: on the real clock, with kills.
#include <pmlab/base/child_process.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/file.hpp>
#include <pmlab/stores/tiered.hpp>

#include "support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace pmlab::tests::tiered_bound_test {
namespace {

using namespace std::chrono_literals;
using store = stores::tiered<blocks::file>;
using nanoseconds = std::chrono::nanoseconds;

constexpr nanoseconds bound = 100ms;
constexpr std::uint64_t most_changes = 1 << 17;

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// In memory that a killed writer leaves: when each change was acknowledged, by its sequence.
struct acknowledgements {
  std::atomic<std::uint64_t> newest;
  std::atomic<std::uint64_t> at[most_changes];
};

std::set<pid_t> threads_of_this_process() {
  std::set<pid_t> ids;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task"))
    ids.insert(static_cast<pid_t>(std::stol(thread.path().filename())));
  return ids;
}

// All threads but these run only while no other one needs the processor.
void starve_all_but(const std::set<pid_t>& others) {
  const sched_param none{};
  for (const pid_t id : threads_of_this_process())
    if (!others.contains(id)) EXPECT_EQ(::sched_setscheduler(id, SCHED_IDLE, &none), 0);
}

class TieredBound : public testing::Test {
 protected:
  // On a memory file system, where a write is as quick as it can be: what is late is late by the processor.
  struct drives {
    explicit drives(const temporary_folder& folder)
        : fast(folder.file("fast"), how), large(folder.file("large"), how) {}
    static constexpr blocks::file_options how{.page_cache = true};
    blocks::file fast, large;
  };
  [[nodiscard]] static std::unique_ptr<store> open(drives& on) {
    return store::open({.staging = on.fast, .capacity = on.large}, {.loss = {.at_most = bound}});
  }
  void SetUp() override {
    for (const char* name : {"fast", "large"}) blocks::create_file(folder_.file(name), 64 << 20);
  }

  // Puts 20,000 changes a second until it is killed.
  void write(acknowledgements& acknowledged) {
    drives on(folder_);
    const std::set<pid_t> before = threads_of_this_process();
    const std::unique_ptr<store> db = open(on);
    auto table = db->table("t");
    starve_all_but(before);
    const std::string value(100, 'v');
    for (std::uint64_t i = 0;; ++i) {
      const std::uint64_t sequence = table.put(std::to_string(i % 5000), value);
      acknowledged.at[sequence % most_changes].store(now_ns());
      acknowledged.newest.store(sequence);
      for (const std::uint64_t start = now_ns(); now_ns() - start < 45'000;) continue;
    }
  }

  temporary_folder folder_;
};

TEST_F(TieredBound, HoldsWhereTheFlusherGetsNoProcessor) {
  const char* const asked = std::getenv("PMLAB_KILLS");
  const int kills = asked == nullptr ? 8 : std::atoi(asked);
  auto& acknowledged = *static_cast<acknowledgements*>(
      ::mmap(nullptr, sizeof(acknowledgements), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  std::vector<child_process> others;
  for (int i = 0; i < 8; ++i)
    others.push_back(child_process::forked([] {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile std::uint64_t spins = 0;;) spins = spins + 1;
    }));
  splitmix64 random(7);
  std::uint64_t lost = 0, worst = 0;
  for (int i = 0; i < kills; ++i) {
    acknowledged.newest.store(0);
    for (auto& time : acknowledged.at) time.store(0);
    child_process writer = child_process::forked([&] {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      write(acknowledged);
    });
    while (acknowledged.newest.load() == 0 && !writer.ended()) std::this_thread::sleep_for(1ms);
    std::this_thread::sleep_for(200ms + std::chrono::milliseconds(random.below(200)));
    const std::uint64_t killed = now_ns();
    writer.kill();
    static_cast<void>(writer.wait());
    const std::uint64_t newest = acknowledged.newest.load();
    ASSERT_NE(newest, 0U);
    drives on(folder_);
    const std::uint64_t durable = open(on)->stats().sequence;
    if (durable >= newest) continue;
    ++lost;
    const std::uint64_t oldest = acknowledged.at[(durable + 1) % most_changes].load();
    worst = std::max(worst, killed > oldest ? killed - oldest : 0);
    EXPECT_LE(nanoseconds(killed - oldest), bound) << "kill " << i << ": " << newest - durable << " changes are lost";
  }
  EXPECT_GT(lost, 0U) << "no kill took a change: the test shows nothing";
  RecordProperty("oldest_lost_us", std::to_string(worst / 1000));
  std::cout << "oldest change lost by " << kills << " kills: " << worst / 1'000'000 << " ms\n";
}

}  // namespace
}  // namespace pmlab::tests::tiered_bound_test
