// A volume of blocks in a run: a store with one drive. Made again for each first write.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/stores/any_contestant.hpp"
#include "bench/stores/ledger.hpp"
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

class contestant : public any_contestant<store_labels, volume_subject, ledger> {
 public:
  using device_maker = std::function<std::unique_ptr<store_device>()>;
  // The subject keeps all else that it needs (a medium).
  using subject_maker = std::function<std::unique_ptr<volume_subject>(blocks::any_device&)>;

  contestant(store_labels labels, device_maker device, subject_maker subject, std::uint64_t seed)
      : any_contestant(std::move(labels), {1, [make = std::move(device)](unsigned) { return make(); }, {}}, seed),
        make_subject_(std::move(subject)) {}

  // An empty store on a device as new, in place of the one before.
  void make() {
    make_drives();
    subject_ = make_subject_(device().device());
    const volume_promises p = subject_->promises();
    ledger_ =
        std::make_unique<store_bench::ledger>(subject_->bytes() / subject_->block_bytes(), subject_->block_bytes(),
                                              seed_++, p.whole_bytes, p.discarded_are_zeros);
    state = {};
  }
  // REQUIRES: is_made().
  [[nodiscard]] store_device& device() const noexcept { return *drives().main().front(); }

  struct {
    bool is_filled = false;        // each block was written
    std::uint64_t steady_for = 0;  // the size of overwrites for which it is in a steady state; 0: none
  } state;

 private:
  subject_maker make_subject_;
};

}  // namespace pmlab::store_bench
