// The medium of a store that is measured: operations that it hears of, and its figures.
#pragma once

#include <pmlab/media/medium.hpp>
#include "bench/stores/volume_subject.hpp"

#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#if defined(PMLAB_SIMULATED)
#include "checker/simulator/calls.hpp"
#endif

namespace pmlab::store_bench {

// On the simulated machine, accesses of this thread take virtual time while it lives, if it `charges`.
class charged_time {
 public:
#if defined(PMLAB_SIMULATED)
  explicit charged_time(bool charges = true) noexcept : charges_(charges) {
    if (charges_) pmlab_machine_begin_timing();
  }
  ~charged_time() {
    if (charges_) pmlab_machine_end_timing();
  }
#else
  explicit charged_time(bool charges = true) noexcept : charges_(charges) {}
#endif
  charged_time(const charged_time&) = delete;
  charged_time& operator=(const charged_time&) = delete;

 private:
  [[maybe_unused]] bool charges_;
};

// Tells a medium that counts or delays accesses of an operation of this thread while it lives. The simulated machine
// has charged_time. `Medium`: void where the records are in no medium.
template <class Medium>
class announced_operation {
 public:
#if defined(PMLAB_SIMULATED)
  explicit announced_operation(Medium* /*of*/) noexcept : of_(nullptr) {}
#else
  explicit announced_operation(Medium* of) noexcept : of_(of) {
    if constexpr (!std::is_void_v<Medium>) media::begin_operation(*of_);
  }
  ~announced_operation() {
    if constexpr (!std::is_void_v<Medium>) media::end_operation(*of_);
  }
#endif
  announced_operation(const announced_operation&) = delete;
  announced_operation& operator=(const announced_operation&) = delete;

 private:
  [[maybe_unused]] Medium* of_;
};

// Nothing, unless the medium counts.
template <class Medium>
[[nodiscard]] std::optional<media::counts> counts_of(Medium& medium) {
  if constexpr (requires { medium.accesses(); }) return medium.accesses();
  return std::nullopt;
}
template <class Medium>
void reset_counts_of(Medium& medium) {
  if constexpr (requires { medium.reset_accesses(); }) medium.reset_accesses();
}
// About the figures on this medium.
template <class Medium>
[[nodiscard]] std::vector<std::string> remarks_of(Medium& medium) {
  if constexpr (requires { medium.emulation(); })
    if (const auto sums = medium.emulation(); sums && sums->late_ns * 10 > sums->waited_ns)
      return {medium.name() + " was late by more than a tenth of its waiting: the figures are too slow"};
  return {};
}

}  // namespace pmlab::store_bench
