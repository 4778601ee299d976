// chunk_store as a subject, on a medium.
#pragma once

#include "tools/stores/chunk_queue_subject.hpp"
#include "tools/stores/level1_index.hpp"
#include "tools/stores/subjects.hpp"
#include <pmlab/blocks/any_device.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/chunk_store/queue.hpp>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

template <class Medium>
class chunk_store_subject final : public volume_subject {
  using store = stores::chunk_store<Medium, blocks::any_device, level1_index<Medium>>;

 public:
  // `medium` holds no store yet.
  chunk_store_subject(const store_setup& setup, std::unique_ptr<Medium> medium, blocks::any_device& device)
      : setup_(setup), medium_(std::move(medium)), device_(device) {
    // A file that is overwritten may have another store.
    open_with(true);
  }

  [[nodiscard]] std::uint64_t bytes() const override { return open_->volume.bytes(); }
  [[nodiscard]] std::uint32_t block_bytes() const override { return open_->store.block_bytes(); }
  [[nodiscard]] volume_promises promises() const override { return {open_->store.promises().atomic_bytes, true}; }
  [[nodiscard]] std::unique_ptr<volume_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<chunk_queue_subject<store, Medium>>(open_->store, open_->volume, depth, medium_.get());
  }

  [[nodiscard]] bool can_reopen() const override { return true; }
  void close() override { open_.reset(); }
  void open() override { open_with(false); }

  void wait_until_complete() override { open_->store.wait_until_complete(); }

  [[nodiscard]] volume_space space() override { return space_of(open_->store.stats(), device_); }
  [[nodiscard]] std::vector<store_statistic> statistics() override { return statistics_of(open_->store.stats()); }

  [[nodiscard]] std::optional<medium_counts> counts() override { return counts_of(*medium_); }
  void reset_counts() override { reset_counts_of(*medium_); }
  [[nodiscard]] std::vector<std::string> remarks() override { return remarks_of(*medium_); }

 private:
  struct opened {
    opened(const store_setup& setup, Medium& medium, blocks::any_device& device, bool format)
        : store(store_type::open(medium, device, options_of(setup, format))),
          volume(store.volume("bench", {.bytes = setup.volume_bytes})) {}
    using store_type = chunk_store_subject::store;
    store_type store;
    typename store_type::volume_handle volume;
  };

  void open_with(bool format) {
    const level1_choice index(setup_.index);
    open_.emplace(setup_, *medium_, device_, format);
  }

  store_setup setup_;
  std::unique_ptr<Medium> medium_;
  blocks::any_device& device_;
  std::optional<opened> open_;
};

}  // namespace pmlab::store_bench
