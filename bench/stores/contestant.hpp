// A store in a run: its device, its subject, and the ledger of its volume. Made again for each first write.
#pragma once

#include "bench/stores/ledger.hpp"
#include "bench/stores/store_device.hpp"
#include "bench/stores/volume_subject.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

namespace pmlab::store_bench {

// As results name it; empty: does not apply to this store.
struct store_labels {
  std::string store{}, container{}, medium{}, index{}, merge{};
  std::uint32_t ring = 0;  // 0: does not apply
};

class contestant {
 public:
  using device_maker = std::function<std::unique_ptr<store_device>()>;
  // The subject keeps all else that it needs (a medium).
  using subject_maker = std::function<std::unique_ptr<volume_subject>(blocks::any_device&)>;

  contestant(store_labels labels, device_maker device, subject_maker subject, std::uint64_t seed)
      : labels_(std::move(labels)), make_device_(std::move(device)), make_subject_(std::move(subject)), seed_(seed) {}

  // An empty store on a device as new, in place of the one before.
  void make() {
    subject_.reset();
    ledger_.reset();
    device_.reset();
    device_ = make_device_();
    subject_ = make_subject_(device_->device());
    const volume_promises p = subject_->promises();
    ledger_ = std::make_unique<ledger>(subject_->bytes() / subject_->block_bytes(), subject_->block_bytes(), seed_++,
                                       p.whole_bytes, p.discarded_are_zeros);
    filled_ = false;
    steady_for_ = 0;
  }
  [[nodiscard]] bool is_made() const noexcept { return subject_ != nullptr; }

  [[nodiscard]] const store_labels& labels() const noexcept { return labels_; }
  // REQUIRES for these: is_made().
  [[nodiscard]] store_device& device() noexcept { return *device_; }
  [[nodiscard]] volume_subject& subject() noexcept { return *subject_; }
  [[nodiscard]] ledger& blocks() noexcept { return *ledger_; }

  // Each block was written.
  [[nodiscard]] bool is_filled() const noexcept { return filled_; }
  void set_filled() noexcept { filled_ = true; }
  // The size of overwrites for which the store is in a steady state; 0: none.
  [[nodiscard]] std::uint64_t steady_for() const noexcept { return steady_for_; }
  void set_steady_for(std::uint64_t size) noexcept { steady_for_ = size; }

 private:
  store_labels labels_;
  device_maker make_device_;
  subject_maker make_subject_;
  std::uint64_t seed_;
  std::unique_ptr<store_device> device_;
  std::unique_ptr<volume_subject> subject_;
  std::unique_ptr<ledger> ledger_;
  bool filled_ = false;
  std::uint64_t steady_for_ = 0;
};

}  // namespace pmlab::store_bench
