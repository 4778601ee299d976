// One run of a store whose crashes may take the newest changes, on the simulated machine.
#pragma once

#include "checker/verify/prefix_judge.hpp"
#include "checker/verify/prefix_model.hpp"
#include "checker/verify/round_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>

namespace pmlab::verify {

struct prefix_round {
  using step = prefix_step;
  using target = prefix_target;
  using model = prefix_model;
  using judge = prefix_judge;
  using content = prefix_content;
  using buffer = std::monostate;
  static const prefix_kind& opener(const subject& kind) noexcept { return *kind.prefix; }
  static std::size_t memory_bytes(const subject& /*kind*/) noexcept { return std::size_t{1} << 20; }
  static constexpr std::uint64_t accesses_of_opening = 20'000'000;
  static constexpr std::uint64_t accesses_of_a_step = 2'000'000;
};

class prefix_runner final : public round_runner<prefix_round> {
 public:
  // `kind` has a prefix_kind.
  prefix_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated);

 private:
  std::string plan() override;
  [[nodiscard]] std::unique_ptr<prefix_model> make_history() const override;
  void begin_phase() override;
  std::string perform(unsigned thread, const prefix_step& s, buffer& none) override;
  void check_live() override;

  prefix_state held_;
};

}  // namespace pmlab::verify
