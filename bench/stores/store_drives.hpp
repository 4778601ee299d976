// The drives of a store in a run, and their counts together.
#pragma once

#include "bench/stores/store_device.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

struct bytes_written {
  std::uint64_t main = 0;
  std::uint64_t staging = 0;
  [[nodiscard]] bool operator==(const bytes_written&) const = default;
};

class store_drives {
 public:
  using device_maker = std::function<std::unique_ptr<store_device>(unsigned)>;  // takes its number, from 0
  using staging_maker = std::function<std::unique_ptr<store_device>()>;         // none: no staging

  store_drives(unsigned count, device_maker device, staging_maker staging)
      : count_(count), make_device_(std::move(device)), make_staging_(std::move(staging)) {}

  // Drives as new, in place of those before.
  void make() {
    main_.clear();
    staging_.reset();
    for (unsigned i = 0; i < count_; ++i) main_.push_back(make_device_(i));
    if (make_staging_) staging_ = make_staging_();
  }

  [[nodiscard]] const std::vector<std::unique_ptr<store_device>>& main() const noexcept { return main_; }
  [[nodiscard]] store_device* staging() const noexcept { return staging_.get(); }
  // All drives of the store.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& d : main_) visit(*d);
    if (staging_ != nullptr) visit(*staging_);
  }

  // Sums over the main drives.
  [[nodiscard]] device_counts main_counts() const {
    device_counts sum{};
    for (const auto& d : main_) {
      const device_counts one = d->counts();
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
    }
    return sum;
  }
  // Nothing: there is none.
  [[nodiscard]] std::optional<device_counts> staging_counts() const {
    return staging_ == nullptr ? std::nullopt : std::optional(staging_->counts());
  }
  [[nodiscard]] bytes_written written() const {
    return {written_bytes(main_counts()), staging_ == nullptr ? 0 : written_bytes(staging_->counts())};
  }
  void reset_counts() const {
    for_each([](store_device& d) { d.reset_counts(); });
  }

  // Bytes that flash programmed for each byte written, over all drives together; nothing, unless each of them is
  // modelled and was written to.
  [[nodiscard]] std::optional<double> flash_per_written() const {
    double programmed = 0;
    double written = 0;
    bool known = true;
    for_each([&](const store_device& d) {
      const auto bytes = static_cast<double>(written_bytes(d.counts()));
      const std::optional<double> amplification = d.amplification();
      if (bytes == 0) return;
      known = known && amplification.has_value();
      programmed += bytes * amplification.value_or(0);
      written += bytes;
    });
    return known && written > 0 ? std::optional(programmed / written) : std::nullopt;
  }
  // CPU time of waiting for modelled drives.
  [[nodiscard]] std::uint64_t waiting_cpu_ns() const {
    std::uint64_t sum = 0;
    for_each([&](const store_device& d) { sum += d.waiting_cpu_ns(); });
    return sum;
  }

 private:
  unsigned count_;
  device_maker make_device_;
  staging_maker make_staging_;
  std::vector<std::unique_ptr<store_device>> main_;
  std::unique_ptr<store_device> staging_;
};

}  // namespace pmlab::store_bench
