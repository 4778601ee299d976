// One run of a store whose crashes may take the newest changes, on the simulated machine.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/crash_explorer.hpp"
#include "checker/verify/drive_set.hpp"
#include "checker/verify/prefix_judge.hpp"
#include "checker/verify/prefix_model.hpp"
#include "checker/verify/round.hpp"
#include "checker/verify/runner.hpp"
#include "checker/verify/target.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pmlab::verify {

class prefix_runner final : public runner {
 public:
  // `kind` has a prefix_kind. `violated` is called at the first violation; it must not return.
  prefix_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated);
  ~prefix_runner() override;

  void run(const round_options& options) override;

 private:
  using thread_steps = std::vector<prefix_step>;
  using phase = std::vector<thread_steps>;  // of each thread

  [[nodiscard]] std::vector<phase> make_plan(const round_options& options) const;
  void run_until_crash(const round_options& options, const phase& todo, bool last);
  void drive(unsigned thread, const thread_steps& steps, bool alone);
  [[nodiscard]] std::string perform(unsigned thread, const prefix_step& s, bool alone);
  [[nodiscard]] std::string compare(const prefix_state& found, const prefix_state& right) const;
  bool crash();
  [[nodiscard]] drive_set& drives() noexcept { return drives_[used_]; }
  [[nodiscard]] crash_explorer& explorer() noexcept { return *explorers_[used_]; }
  void observe(simulator::persistence_observer* observer);

  const subject& kind_;
  round_counts& counts_;
  std::function<void(const std::string&)> violated_;
  simulator::persistent_memory memory_;
  std::array<drive_set, 2> drives_;  // the usual ones, and the small ones
  std::size_t used_ = 0;             // which of them
  prefix_judge judge_;
  std::array<std::unique_ptr<crash_explorer>, 2> explorers_;  // as drives_
  std::unique_ptr<prefix_model> history_;
  prefix_target* store_ = nullptr;
  bool exploring_ = false;
  flush_profile* profile_ = nullptr;
  prefix_state held_;
  prefix_state known_;  // in the store when it is opened
  std::uint64_t known_sequence_ = 0;
  std::uint64_t accesses_before_ = 0;  // of the last round of this seed without a pre-emption
};

}  // namespace pmlab::verify
