// A device of a store whose requests are counted: the base of all that runs have, and the base of modelled drives.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/blocks/timed.hpp>
#include "bench/stores/store_device.hpp"

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

namespace pmlab::store_bench::detail {

inline constexpr std::uint32_t block_bytes = 4096;

inline void check_bytes(const store_device_options& options) {
  if (options.bytes < 1U << 20 || options.bytes % block_bytes != 0)
    throw error("a device of " + std::to_string(options.bytes) + " bytes",
                "give " + std::string(options.size_option) + " a multiple of 4096, at least 1M");
}

template <blocks::device D>
class counted_device : public store_device {
 public:
  template <class... Arguments>
  explicit counted_device(Arguments&&... arguments)
      : device_(std::in_place_type<blocks::counted<D>>, std::forward<Arguments>(arguments)...) {}

  [[nodiscard]] blocks::any_device& device() noexcept override { return device_; }
  [[nodiscard]] device_counts counts() const override {
    device_counts all;
    for (std::size_t s = 0; s < blocks::streams; ++s) all[s] = counter().of(static_cast<blocks::stream>(s));
    return all;
  }
  void reset_counts() override { counter().reset(); }

 protected:
  [[nodiscard]] blocks::counted<D>& counter() const { return *device_.template get<blocks::counted<D>>(); }

 private:
  mutable blocks::any_device device_;
};

// No case is about the kernel's first touch of a page.
inline void touch(blocks::memory& m) { std::memset(m.content().data(), 0, m.content().size()); }

// Memory with the times of a modelled drive. `D`: blocks::timed over memory.
template <blocks::device D>
class modelled_device : public counted_device<D> {
 public:
  template <class Clock>
  modelled_device(const store_device_options& options, const blocks::drive_profile& profile, const Clock& clock)
      : counted_device<D>(profile, clock, blocks::shape_of(profile, options.bytes, block_bytes)),
        layout_(options.layout) {
    touch(drive().inner());
    modelled_device::precondition();
  }
  void precondition() override {
    drive().model().precondition(layout_);
    drive().model().reset_counts();
  }
  void come_to_rest() override { drive().model().come_to_rest(); }
  [[nodiscard]] std::uint64_t buffer_bytes() const noexcept override { return drive().model().buffer_bytes(); }
  void reset_counts() override {
    counted_device<D>::reset_counts();
    drive().model().reset_counts();
  }
  [[nodiscard]] std::optional<double> amplification() const override {
    const double found = drive().model().counts().amplification();
    return found > 0 ? std::optional(found) : std::nullopt;
  }
  [[nodiscard]] std::string scale() const override { return drive().model().scale().text(); }

 protected:
  [[nodiscard]] D& drive() const { return this->counter().inner(); }

 private:
  std::uint64_t layout_;
};

}  // namespace pmlab::store_bench::detail
