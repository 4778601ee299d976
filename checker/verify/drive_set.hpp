// The drives that a run on the simulated machine observes.
#pragma once

#include "checker/simulator/machine/persistent_drive.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace pmlab::verify {

class drive_set {
 public:
  explicit drive_set(std::span<const blocks::geometry> shapes) {
    for (const blocks::geometry& g : shapes) {
      drives_.push_back(std::make_unique<simulator::persistent_drive>(g));
      pointers_.push_back(drives_.back().get());
    }
  }

  [[nodiscard]] std::span<simulator::persistent_drive* const> all() const noexcept { return pointers_; }

  void observe(simulator::persistence_observer* observer) const noexcept {
    for (const auto& d : drives_) d->observe(observer);
  }
  // Decides orders and discarded contents from now on.
  void begin(std::uint64_t seed) const noexcept {
    for (std::size_t i = 0; i < drives_.size(); ++i) drives_[i]->begin(seed + i);
  }
  // Nothing in flight, all durable. Empty: zeros.
  void restore(std::span<const std::vector<std::byte>> bytes) const {
    for (std::size_t i = 0; i < drives_.size(); ++i) drives_[i]->restore(bytes.empty() ? nullptr : bytes[i].data());
  }

 private:
  std::vector<std::unique_ptr<simulator::persistent_drive>> drives_;
  std::vector<simulator::persistent_drive*> pointers_;
};

}  // namespace pmlab::verify
