// One run of an index on the simulated machine, from creation to the last look.
#pragma once

#include <pmlab/simulator/machine/machine.hpp>
#include <pmlab/verify/crash_explorer.hpp>
#include <pmlab/verify/operations.hpp>
#include <pmlab/verify/promises.hpp>
#include <pmlab/verify/schedules.hpp>
#include <pmlab/verify/target.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pmlab::verify {

enum class search : std::uint8_t { random, bounded };

struct round_options {
  std::uint64_t seed = 1;           // of keys and operations
  std::uint64_t schedule_seed = 1;  // of the schedule
  search how = search::random;
  unsigned threads = 1;
  std::size_t operations = 120;  // of each thread
  std::size_t keys = 120;
  // Begin with as many keys as it takes to be a few operations before a node splits, and watch from there on.
  bool grown = false;
  std::vector<std::size_t> steps{};  // not empty: only these of all threads' operations, counted thread by thread
  bool crashes = true;
  crash_options crash{};
};

struct round_counts {
  crash_counts crash;
  std::uint64_t rounds = 0;
  std::uint64_t accesses = 0;
  std::uint64_t schedules = 0;  // rounds of more than one thread
};

// What a thread does: an operation, or a scan.
struct planned_step {
  step what;
  std::size_t scan_length = 0;  // > 0: a scan from what.key
};

// What a round does.
struct round_plan {
  std::vector<std::uint64_t> keys;                 // all that it uses, ascending
  std::vector<indexes::entry> preload;             // put in before anybody watches
  std::vector<std::vector<planned_step>> threads;  // the operations
};

[[nodiscard]] std::string to_string(const planned_step& s);

// Keeps what is expensive between the rounds of a process.
class round_runner {
 public:
  // Told of every round before it begins.
  std::function<void(const round_plan&)> on_plan;

  // `violated` is told of the first violation; must not return.
  round_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated);
  ~round_runner();

  void run(const round_options& options);

 private:
  [[nodiscard]] round_plan plan(const round_options& options) const;
  [[nodiscard]] std::size_t entries_before_a_split(const std::vector<std::uint64_t>& keys, random& source) const;
  void preload(const std::vector<indexes::entry>& entries);
  void drive(unsigned thread, const std::vector<planned_step>& steps);
  void check_live(target& index);
  std::unique_ptr<simulator::schedule> make_schedule(const round_options& options) const;

  const subject& kind_;
  round_counts& counts_;
  std::function<void(const std::string&)> violated_;
  simulator::persistent_memory memory_;
  std::unique_ptr<crash_explorer> explorer_;
  std::unique_ptr<promises> promises_;
  target* index_ = nullptr;
  bool exploring_ = false;
  std::uint64_t accesses_before_ = 0;  // of the last round of this seed without a pre-emption
};

}  // namespace pmlab::verify
