// The memory under test on virtual time, in the program that has the simulated machine.
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/simulated.hpp"
#include "checker/simulator/time/device_timing.hpp"
#include <pmlab/base/error.hpp>
#include "bench/devices/profile_file.hpp"
#include "microbench/memory/announced_kernels.hpp"
#include "microbench/memory/region.hpp"
#include "microbench/memory/target.hpp"

namespace pmlab::microbench {
namespace {

class simulated_target final : public target {
 public:
  simulated_target(const std::string& profile, std::uint64_t bytes)
      : granule_bytes_(media::load_profile(profile).granule_bytes),
        medium_(profile, room_for(bytes)),
        region_(medium_, bytes) {}

  [[nodiscard]] std::byte* start() const noexcept override { return region_.start(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return region_.bytes(); }
  [[nodiscard]] std::unique_ptr<kernels> make_kernels(const kernel_choice& choice) override {
    return make_announced_kernels(choice);
  }

  [[nodiscard]] std::optional<moved_bytes> moved() const override {
    const auto* const costs = dynamic_cast<const simulator::device_timing*>(simulator::the_machine().cost());
    if (costs == nullptr) return std::nullopt;
    const auto work = costs->memory().device_work();
    return moved_bytes{work.granules_read * granule_bytes_, work.granules_written * granule_bytes_};
  }

  [[nodiscard]] std::string refusal(const bench_case& c) const override {
    if (c.memory_node > 0 || c.thread_node > 0) return "the simulated machine has one NUMA node";
    return {};
  }
  [[nodiscard]] std::string huge_pages() const override { return "not applicable"; }

 private:
  [[nodiscard]] static std::size_t room_for(std::uint64_t bytes) {
    constexpr std::uint64_t page = 4096;
    constexpr std::uint64_t beside = std::uint64_t{8} << 20;  // alignment, the table of roots
    return (bytes + beside + page - 1) / page * page;
  }

  std::uint64_t granule_bytes_;
  simulator::simulated medium_;
  region<simulator::simulated> region_;
};

}  // namespace

std::unique_ptr<target> open_target(const target_options& options) {
  return std::make_unique<simulated_target>(options.medium.profile, options.bytes);
}

}  // namespace pmlab::microbench
