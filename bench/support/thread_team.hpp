// Threads that are pinned, start together, and stay the same for a whole run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace pmlab::bench {

// CPUs that this process may use, in the order in which threads should use them: one node after the other, the first
// hardware thread of every core of a node before the second ones.
[[nodiscard]] std::vector<int> usable_cpus();

class thread_team {
 public:
  // Thread i is pinned to the i-th usable CPU; with more threads than CPUs they wrap around.
  explicit thread_team(unsigned threads);
  thread_team(const thread_team&) = delete;
  thread_team& operator=(const thread_team&) = delete;
  ~thread_team();

  [[nodiscard]] unsigned size() const noexcept { return static_cast<unsigned>(members_.size()); }

  // Calls body(i) on every thread i, all released at one instant, and returns when all are through; then throws the
  // first exception that left one of them.
  void run(const std::function<void(unsigned)>& body);

 private:
  void serve(unsigned member, int cpu);

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void(unsigned)>* body_ = nullptr;
  std::uint64_t job_ = 0;
  unsigned busy_ = 0;
  bool closing_ = false;
  std::exception_ptr failure_;
  std::atomic<unsigned> ready_{0};
  std::vector<std::thread> members_;
};

}  // namespace pmlab::bench
