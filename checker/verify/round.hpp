// One run of an index on the simulated machine.
#pragma once

#include "checker/verify/history_model.hpp"
#include "checker/verify/index_judge.hpp"
#include "checker/verify/library_subject.hpp"
#include "checker/verify/round_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pmlab::verify {

class complete_explorer;

struct index_round {
  using step = planned_step;
  using target = verify::target;
  using model = history_model;
  using judge = index_judge;
  using content = std::vector<indexes::entry>;
  using buffer = std::vector<indexes::entry>;  // the entries of scans
  static const subject& opener(const subject& kind) noexcept { return kind; }
  static std::size_t memory_bytes(const subject& kind) { return memory_bytes_of(kind); }
  static constexpr std::uint64_t accesses_of_opening = simulator::machine::patience;
  static constexpr std::uint64_t accesses_of_a_step = 0;  // each step allows its own
};

class index_runner : public round_runner<index_round> {
 public:
  index_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated);
  ~index_runner() override;

 protected:
  std::string plan() override;
  bool know_content() override;
  void make_explorer() override;
  [[nodiscard]] std::unique_ptr<history_model> make_history() const override;
  simulator::persistence_observer& begin_explorer(const crash_options& how) override;
  void begin_phase() override;
  [[nodiscard]] buffer make_buffer() const override { return buffer(history_->keys().size() + 4); }
  std::string perform(unsigned thread, const planned_step& s, buffer& scanned) override;
  void promised() override;
  void end_exploring() override;
  void check_live() override;
  void check_closed() override;
  // Half of these operations move to keys of `hot`, and to their neighbours: at most `reach` keys away.
  void work_at(std::span<const std::uint64_t> hot, std::size_t reach, std::span<planned_step> steps);
  // They are others than the round began with.
  void tell_history() const;
  // The index as `thread` has it open.
  [[nodiscard]] virtual target& target_of(unsigned /*thread*/) noexcept { return *target_; }

 private:
  [[nodiscard]] growth try_growth(const std::vector<std::uint64_t>& keys);
  void prepare();
  void work_where_it_crashed();
  [[nodiscard]] answer perform_or_refuse(target& index, const step& s);
  [[nodiscard]] std::string has_no_right_to_be_full(std::uint64_t refusals_before) const;
  [[nodiscard]] std::uint64_t refusals() const;

  round_plan plan_;                              // its phases are in `phases_`
  contents prepared_;                            // the entries that its preparation leaves: it had no room for others
  std::uint64_t dram_before_ = 0;                // the blocks of DRAM that were live before the round
  std::unique_ptr<complete_explorer> complete_;  // in place of the other explorer
};

}  // namespace pmlab::verify
