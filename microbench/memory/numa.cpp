// NUMA nodes, as far as cases name them.
#include "microbench/memory/numa.hpp"
#include "bench/support/thread_team.hpp"

#include <vector>

#include <fmt/format.h>
#include <numa.h>
#include <pthread.h>
#include <sched.h>

namespace pmlab::microbench {
namespace {

std::vector<int> cpus_of(int node) {
  std::vector<int> cpus;
  for (const int cpu : bench::usable_cpus())
    if (numa_available() < 0 ? node == 0 : numa_node_of_cpu(cpu) == node) cpus.push_back(cpu);
  return cpus;
}

bool has_memory(int node) {
  return numa_available() < 0 ? node == 0 : numa_bitmask_isbitset(numa_all_nodes_ptr, static_cast<unsigned>(node)) != 0;
}

}  // namespace

std::string lack_of_nodes(const bench_case& c) {
  if (c.memory_node >= 0 && !has_memory(c.memory_node))
    return fmt::format("this machine has no NUMA node {}", c.memory_node);
  if (c.thread_node >= 0 && cpus_of(c.thread_node).size() < c.threads)
    return fmt::format("NUMA node {} has fewer than {} CPUs for this process", c.thread_node, c.threads);
  return {};
}

void run_on_node([[maybe_unused]] int node, [[maybe_unused]] unsigned number) {
#if !defined(PMLAB_SIMULATED)
  if (node < 0) return;
  const std::vector<int> cpus = cpus_of(node);
  cpu_set_t mine;
  CPU_ZERO(&mine);
  CPU_SET(cpus[number % cpus.size()], &mine);
  // Refused only if the CPU went offline: the thread then runs on any CPU.
  pthread_setaffinity_np(pthread_self(), sizeof mine, &mine);
#endif
}

}  // namespace pmlab::microbench
