// The plan of a round: its keys, the initial entries, and the operations of each thread.
#pragma once

#include "checker/simulator/machine/space_limit.hpp"
#include "checker/verify/crash_explorer.hpp"
#include "checker/verify/operations.hpp"
#include "checker/verify/target.hpp"
#include <pmlab/indexes/index.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace pmlab::verify {

class flush_profile;

enum class search : std::uint8_t { random, bounded };

struct round_options {
  std::uint64_t seed = 1;           // of keys and operations
  std::uint64_t schedule_seed = 1;  // of the schedule
  search how = search::random;
  unsigned threads = 1;
  bool store_buffers = false;    // of more than one thread: x86-TSO, and not sequential consistency
  std::size_t operations = 120;  // of each thread, between two crashes
  std::size_t keys = 120;
  // Begin with as many keys as are needed to be a few operations before a node splits, and observe from there on.
  bool grown = false;
  // Begin with many nodes of few entries each, which empty and are used again.
  bool thin = false;
  // Begin with a load of many entries.
  bool loaded = false;
  // The media have no room for a while, or from some moment on.
  bool full = false;
  // A store on drives that are soon full: small ones, and large values.
  bool nearly_full = false;
  // So many times the index crashes, is opened, and the threads go on with it.
  unsigned reopenings = 0;
  std::vector<std::size_t>
      steps{};  // not empty: only these of all operations, counted crash by crash, thread by thread
  bool crashes = true;
  crash_options crash{};
  flush_profile* profile = nullptr;  // counts flushes and fences; without crashes, with one thread

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

struct round_plan {
  using thread_steps = std::vector<planned_step>;
  using phase = std::vector<thread_steps>;  // of each thread

  std::vector<std::uint64_t> keys;  // all that it uses, ascending
  std::vector<step> prepare;        // done before anything is watched
  contents before;                  // the initial entries
  std::vector<phase> phases;        // a crash between each two

  // Limits of the medium, from the end of `prepare` on; most_bytes are beside those that are allocated then.
  simulator::space_limit::plan space;
  simulator::space_limit::plan space_of_copies;
};

[[nodiscard]] std::string to_string(const planned_step& s);
// A line for each operation.
[[nodiscard]] std::string to_string(const round_plan& plan);

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
