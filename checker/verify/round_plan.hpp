// The plan of a round: its keys, the initial entries, and the operations of each thread.
#pragma once

#include "checker/simulator/machine/hosts.hpp"
#include "checker/simulator/machine/space_limit.hpp"
#include "checker/verify/image_judge.hpp"
#include "checker/verify/operations.hpp"
#include "checker/verify/target.hpp"
#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace pmlab::verify {

class flush_profile;

enum class search : std::uint8_t { random, bounded };

struct round_options {
  std::uint64_t seed = 1;           // seed of keys and operations
  std::uint64_t schedule_seed = 1;  // seed of the schedule
  search how = search::random;
  unsigned threads = 1;
  bool store_buffers = false;    // threads have them: x86-TSO, and not sequential consistency
  std::size_t operations = 120;  // operations of each thread, between two crashes
  std::size_t keys = 120;
  // Begin with as many keys as are needed to be a few operations before a node splits, and observe from there on. A
  // store on drives begins with a drive whose space is collected.
  bool grown = false;
  // Use what the split may have moved, and go on after a crash.
  bool near_split = false;
  // The keys of an ordered index leave a common prefix at any of their bytes.
  bool branching = false;
  // Begin with many nodes of few entries each, which empty and are used again.
  bool thin = false;
  // Begin with nodes that are about as sparse as they may be. All threads work about the same keys: nodes are joined on
  // one side of these, and filled on the other.
  bool joining = false;
  // Begin with a load of many entries.
  bool loaded = false;
  // Begin with some of the keys, which have come, gone and come again.
  bool filled = false;
  // The media have no room for a while, or from some moment on.
  bool full = false;
  // DRAM has no room: operator new fails, for once, for a while or for good.
  bool short_dram = false;
  // Threads are suspended just before atomic changes and publications.
  bool pauses = false;
  // A store on drives that are soon full: small ones, and large values.
  bool nearly_full = false;
  // So many times the index crashes, is opened, and the threads go on with it.
  unsigned reopenings = 0;
  // The process alone is killed then: what it stored is in the caches, and a later crash may lose it.
  bool kills = false;
  // Not empty: only these of all operations, counted crash by crash, thread by thread.
  std::vector<std::size_t> steps{};
  bool crashes = true;
  crash_options crash{};
  flush_profile* profile = nullptr;  // counts flushes and fences; without crashes, with one thread
  // The threads are on several hosts, in turn; their seed is not used. Nothing: there is one.
  std::optional<simulator::host_options> hosts{};

  // The number of operations in all.
  [[nodiscard]] std::size_t all_operations() const noexcept { return (1 + reopenings) * threads * operations; }
};

// A step of a thread: an operation; or, in its place, one of the others.
struct planned_step {
  step what{};
  std::size_t scan_length = 0;         // > 0: a scan from what.key
  std::vector<std::uint64_t> batch{};  // not empty: find_batch of these
  std::vector<indexes::entry> load{};  // not empty: load of these
  bool iterates = false;               // an iterator over all keys
};

// A place of a hash table has room for all of them.
inline constexpr std::size_t keys_of_one_place = 5;

// The operations of a round: of each phase, of each thread. A crash lies between two phases.
template <class Step>
using phases_of = std::vector<std::vector<std::vector<Step>>>;

struct round_plan {
  std::vector<std::uint64_t> keys;  // all that it uses, ascending
  std::vector<step> prepare;        // done before anything is watched
  phases_of<planned_step> phases;
  bool kills = false;  // as round_options::kills

  // Limits of the medium, from the end of `prepare` on; most_bytes are beside those that are allocated then.
  simulator::space_limit::plan space;
  simulator::space_limit::plan space_of_copies;
  simulator::space_limit::plan space_of_heap;
};

// When operator new fails in a round that is short of DRAM. `has_threads`: the subject has some of its own.
[[nodiscard]] simulator::space_limit::plan drawn_limit_of_heap(const round_options& options, bool has_threads);

[[nodiscard]] std::string to_string(const planned_step& s);
// A line for each operation. `ended_by` is what lies between two phases.
template <class Step>
[[nodiscard]] std::string to_string(const phases_of<Step>& phases, const char* ended_by = "a crash") {
  std::string text;
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (p > 0) text.append("(").append(ended_by).append(")\n");
    for (std::size_t t = 0; t < phases[p].size(); ++t)
      for (const Step& s : phases[p][t]) {
        if (phases[p].size() > 1) text.append("thread ").append(std::to_string(t)).append(": ");
        text.append(to_string(s)).append("\n");
      }
  }
  return text;
}
// The same of the plan's own phases, or of what became of them, and how the round begins.
[[nodiscard]] std::string to_string(const round_plan& plan, const phases_of<planned_step>& phases);

// Leaves out all steps but those that options.steps names, if it names any.
template <class Step>
void leave_out_steps(const round_options& options, phases_of<Step>& phases) {
  if (options.steps.empty()) return;
  std::size_t number = 0;
  for (auto& phase : phases)
    for (auto& thread : phase)
      std::erase_if(thread, [&](const Step& /*s*/) {
        return std::find(options.steps.begin(), options.steps.end(), number++) == options.steps.end();
      });
}

// The phases of a round in which `make(thread)` returns each step.
template <class Make>
[[nodiscard]] auto make_phases(const round_options& options, Make&& make) {
  phases_of<std::invoke_result_t<Make&, std::size_t>> phases(1 + options.reopenings);
  for (auto& phase : phases) {
    phase.resize(options.threads);
    for (std::size_t t = 0; t < phase.size(); ++t)
      for (std::size_t i = 0; i < options.operations; ++i) phase[t].push_back(make(t));
  }
  leave_out_steps(options, phases);
  return phases;
}

// How a structure grows with its keys.
struct growth {
  std::vector<std::size_t> changes;        // the inserts, by number, that took another course than those before
  std::vector<std::size_t> large_changes;  // those that took far more accesses
  std::size_t inserted = 0;                // there was room for so many keys, or no time for more
};
// Measures it by inserting these keys. Null: the plan finds out by itself.
using growth_trial = std::function<growth(const std::vector<std::uint64_t>& keys)>;

// The same options, the same plan.
[[nodiscard]] round_plan make_plan(const subject& kind, const round_options& options, const growth_trial& trial = {});

}  // namespace pmlab::verify
