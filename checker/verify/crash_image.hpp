// Memory and drives of one crash state, for recovery to open.
#pragma once

#include "checker/verify/image_drive.hpp"
#include "checker/verify/image_medium.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace pmlab::verify {

class crash_image {
 public:
  crash_image(std::size_t bytes, std::span<simulator::persistent_drive* const> like) : memory_(bytes) {
    for (const simulator::persistent_drive* d : like) drives_.push_back(std::make_unique<image_drive>(d->shape()));
  }

  [[nodiscard]] image_medium& memory() noexcept { return memory_; }
  [[nodiscard]] std::size_t drives() const noexcept { return drives_.size(); }
  [[nodiscard]] image_drive& drive(std::size_t number) noexcept { return *drives_[number]; }

 private:
  image_medium memory_;
  std::vector<std::unique_ptr<image_drive>> drives_;
};

}  // namespace pmlab::verify
