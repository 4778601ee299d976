// One run of a volume on the simulated machine.
#pragma once

#include "checker/verify/round_runner.hpp"
#include "checker/verify/volume_judge.hpp"
#include "checker/verify/volume_model.hpp"
#include <pmlab/blocks/buffer.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pmlab::verify {

struct volume_round {
  using step = volume_step;
  using target = volume_target;
  using model = volume_model;
  using judge = volume_judge;
  using content = std::vector<std::uint32_t>;
  using buffer = blocks::buffer;
  static const volume_kind& opener(const subject& kind) noexcept { return *kind.volume; }
  static std::size_t memory_bytes(const subject& /*kind*/) noexcept { return std::size_t{64} << 20; }
  static constexpr std::uint64_t accesses_of_opening = 2'000'000;
  static constexpr std::uint64_t accesses_of_a_step = 50'000;
};

class volume_runner final : public round_runner<volume_round> {
 public:
  // `kind` is a volume.
  volume_runner(const subject& kind, round_counts& counts, std::function<void(const std::string&)> violated);

 private:
  std::string plan() override;
  [[nodiscard]] std::unique_ptr<volume_model> make_history() const override;
  void begin_phase() override;
  [[nodiscard]] buffer make_buffer() const override { return buffer(std::size_t{shape_.blocks} * shape_.block_bytes); }
  std::string perform(unsigned thread, const volume_step& s, buffer& whole) override;
  void check_live() override;

  [[nodiscard]] std::string read_numbers(const volume_step& s, std::span<const std::byte> data,
                                         std::vector<std::uint32_t>& numbers) const;
  void fill(const volume_step& s, std::span<std::byte> data) const;

  const volume_shape& shape_;
};

}  // namespace pmlab::verify
