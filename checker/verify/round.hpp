// One run of an index on the simulated machine, from creation to the last check.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/complete_counts.hpp"
#include "checker/verify/crash_explorer.hpp"
#include "checker/verify/drive_set.hpp"
#include "checker/verify/history_model.hpp"
#include "checker/verify/index_judge.hpp"
#include "checker/verify/operations.hpp"
#include "checker/verify/round_plan.hpp"
#include "checker/verify/runner.hpp"
#include "checker/verify/target.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pmlab::verify {

class complete_explorer;

struct round_counts {
  crash_counts crash;
  std::uint64_t rounds = 0;
  std::uint64_t accesses = 0;
  std::uint64_t schedules = 0;  // rounds of more than one thread
  complete_counts complete{};
};

class round_runner final : public runner {
 public:
  // `violated` is called at the first violation; it must not return.
  round_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated);
  ~round_runner() override;

  void run(const round_options& options) override;

 private:
  void run_until_crash(const round_options& options, const round_plan& plan, std::size_t phase);
  [[nodiscard]] growth try_growth(const std::vector<std::uint64_t>& keys);
  void prepare(const round_plan& plan);
  [[nodiscard]] simulator::persistence_observer* explorer() const noexcept;
  void observe(simulator::persistence_observer* observer);
  void begin_explorer(const round_options& options, const round_plan::phase& todo, bool last);
  void drive(unsigned thread, const round_plan::thread_steps& steps);
  std::string perform(unsigned thread, const planned_step& s, std::vector<indexes::entry>& scanned);
  [[nodiscard]] std::string has_no_right_to_be_full(std::uint64_t refusals_before) const;
  [[nodiscard]] std::uint64_t refusals() const;
  bool crash();
  void check_live(target& index);

  const subject& kind_;
  round_counts& counts_;
  std::function<void(const std::string&)> violated_;
  simulator::persistent_memory memory_;
  drive_set drives_;
  index_judge judge_;
  std::unique_ptr<crash_explorer> explorer_;
  std::unique_ptr<complete_explorer> complete_;  // in its place
  std::unique_ptr<history_model> history_;
  target* index_ = nullptr;
  bool exploring_ = false;
  flush_profile* profile_ = nullptr;
  bool alone_ = true;                  // one thread, and none of the index's own
  std::vector<indexes::entry> known_;  // in the index when it is opened
  std::uint64_t accesses_before_ = 0;  // of the last round of this seed without a pre-emption
};

}  // namespace pmlab::verify
