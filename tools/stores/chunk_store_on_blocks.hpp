// chunk_store with its records on the drive, as a subject.
#pragma once

#include "tools/stores/chunk_queue_subject.hpp"
#include "tools/stores/subjects.hpp"
#include <pmlab/blocks/any_device.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/chunk_store/queue.hpp>

#include <memory>
#include <optional>
#include <vector>

namespace pmlab::store_bench {

class chunk_store_on_blocks final : public volume_subject {
  using store = stores::chunk_store<stores::records_on_blocks, blocks::any_device>;

 public:
  // A file that is overwritten may have another store.
  chunk_store_on_blocks(const store_setup& setup, blocks::any_device& device) : setup_(setup), device_(device) {
    open_with(true);
  }

  [[nodiscard]] std::uint64_t bytes() const override { return open_->volume.bytes(); }
  [[nodiscard]] std::uint32_t block_bytes() const override { return open_->store.block_bytes(); }
  [[nodiscard]] volume_promises promises() const override { return {open_->store.promises().atomic_bytes, true}; }
  [[nodiscard]] std::unique_ptr<volume_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<chunk_queue_subject<store>>(open_->store, open_->volume, depth);
  }

  [[nodiscard]] bool can_reopen() const override { return true; }
  void close() override { open_.reset(); }
  void open() override { open_with(false); }
  void wait_until_complete() override { open_->store.wait_until_complete(); }

  [[nodiscard]] volume_space space() override { return space_of(open_->store.stats(), device_); }
  [[nodiscard]] std::vector<store_statistic> statistics() override { return statistics_of(open_->store.stats()); }

 private:
  struct opened {
    opened(const store_setup& setup, blocks::any_device& device, bool format)
        : store(store_type::open(device, options_of(setup, format))),
          volume(store.volume("bench", {.bytes = setup.volume_bytes})) {}
    using store_type = chunk_store_on_blocks::store;
    store_type store;
    store_type::volume_handle volume;
  };

  void open_with(bool format) { open_.emplace(setup_, device_, format); }

  store_setup setup_;
  blocks::any_device& device_;
  std::optional<opened> open_;
};

// Defined in a source of its own, which is long to compile.
[[nodiscard]] std::unique_ptr<volume_subject> make_chunk_store_on_blocks(const store_setup& setup,
                                                                         blocks::any_device& device);

}  // namespace pmlab::store_bench
