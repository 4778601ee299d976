// One run of a volume on the simulated machine, from creation to the last check.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include "checker/verify/crash_explorer.hpp"
#include "checker/verify/drive_set.hpp"
#include "checker/verify/round.hpp"
#include "checker/verify/runner.hpp"
#include "checker/verify/target.hpp"
#include "checker/verify/volume_judge.hpp"
#include "checker/verify/volume_model.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace pmlab::verify {

class volume_runner final : public runner {
 public:
  // `kind` is a volume. `violated` is called at the first violation; it must not return.
  volume_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated);
  ~volume_runner() override;

  void run(const round_options& options) override;

 private:
  using thread_steps = std::vector<volume_step>;
  using phase = std::vector<thread_steps>;  // of each thread

  [[nodiscard]] std::vector<phase> make_plan(const round_options& options) const;
  void run_until_crash(const round_options& options, const phase& todo, bool last);
  void begin_explorer(const round_options& options, bool last);
  void limit_space(const round_options& options);
  void drive(unsigned thread, const thread_steps& steps);
  [[nodiscard]] std::string perform(unsigned thread, const volume_step& s, std::span<std::byte> data);
  [[nodiscard]] std::string read_numbers(const volume_step& s, std::span<const std::byte> data,
                                         std::vector<std::uint32_t>& numbers) const;
  void fill(const volume_step& s, std::span<std::byte> data) const;
  void check_live(volume_target& volume);
  [[nodiscard]] drive_set& drives() noexcept { return drives_[used_]; }
  [[nodiscard]] crash_explorer& explorer() noexcept { return *explorers_[used_]; }
  bool crash();
  void observe(simulator::persistence_observer* observer);

  const subject& kind_;
  const volume_shape& shape_;
  round_counts& counts_;
  std::function<void(const std::string&)> violated_;
  simulator::persistent_memory memory_;
  std::array<drive_set, 2> drives_;  // the usual ones, and the small ones
  std::size_t used_ = 0;             // which of them
  volume_judge judge_;
  std::array<std::unique_ptr<crash_explorer>, 2> explorers_;  // as drives_
  std::unique_ptr<volume_model> history_;
  volume_target* volume_ = nullptr;
  bool exploring_ = false;
  flush_profile* profile_ = nullptr;
  std::vector<std::uint32_t> known_;   // in the volume when it is opened
  std::uint64_t accesses_before_ = 0;  // of the last round of this seed without a pre-emption
};

}  // namespace pmlab::verify
