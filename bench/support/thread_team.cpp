// Threads that are pinned, start together, and stay the same for a whole run.
#include "bench/support/thread_team.hpp"
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <tuple>
#include <utility>

#include <numa.h>
#include <pthread.h>
#include <sched.h>

namespace pmlab::bench {
namespace {

// 0 for the first hardware thread of a core, 1 for the others.
int sibling_rank(int cpu) {
  std::ifstream list("/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/thread_siblings_list");
  int first = cpu;
  list >> first;
  return first == cpu ? 0 : 1;
}

}  // namespace

std::vector<int> usable_cpus() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &allowed)) cpus.push_back(cpu);
  const bool nodes_known = numa_available() >= 0;
  std::vector<std::tuple<int, int, int>> order;
  order.reserve(cpus.size());
  for (const int cpu : cpus) order.emplace_back(nodes_known ? numa_node_of_cpu(cpu) : 0, sibling_rank(cpu), cpu);
  std::sort(order.begin(), order.end());
  std::transform(order.begin(), order.end(), cpus.begin(), [](const auto& place) { return std::get<2>(place); });
  return cpus;
}

thread_team::thread_team(unsigned threads) {
#if defined(PMLAB_SIMULATED)
  // Simulated cores have no real CPUs, and reading the affinity would change the memory allocated next, and so the
  // figures.
  const std::vector<int> cpus = {0};
#else
  const std::vector<int> cpus = usable_cpus();
#endif
  members_.reserve(threads);
  for (unsigned i = 0; i < threads; ++i)
    members_.emplace_back([this, i, cpu = cpus[i % cpus.size()]] { serve(i, cpu); });
}

thread_team::~thread_team() {
  {
    const std::scoped_lock lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& t : members_) t.join();
}

void thread_team::run(const std::function<void(unsigned)>& body) {
  std::unique_lock lock(mutex_);
  body_ = &body;
  failure_ = nullptr;
  busy_ = size();
  ready_.store(0, std::memory_order_relaxed);
  ++job_;
  changed_.notify_all();
  changed_.wait(lock, [this] { return busy_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void thread_team::serve(unsigned member, [[maybe_unused]] int cpu) {
#if !defined(PMLAB_SIMULATED)
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(cpu, &mine);
  // Refused only if the CPU went offline: the thread then runs on any CPU.
  pthread_setaffinity_np(pthread_self(), sizeof mine, &mine);
#endif
  std::uint64_t last_job = 0;
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closing_ || job_ != last_job; });
    if (closing_) return;
    last_job = job_;
    const std::function<void(unsigned)>& body = *body_;
    lock.unlock();
    // All are awake before any begins: waking costs tens of microseconds that must not be part of a figure.
    ready_.fetch_add(1, std::memory_order_acq_rel);
    for (sync::backoff wait; ready_.load(std::memory_order_acquire) < size();) wait.pause();
    std::exception_ptr failure;
    try {
      body(member);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) failure_ = failure;
    if (--busy_ == 0) changed_.notify_all();
  }
}

}  // namespace pmlab::bench
