// chunk_store with its records as values of a key-value device, as a subject: the device has a part of the same drive as its
// flash, and `Medium` as its memory. A stand-in for a device beside the drive: a command is a call in this process.
#pragma once

#include "tools/stores/chunk_queue_subject.hpp"
#include "tools/stores/peers/device_region.hpp"
#include "tools/stores/subjects.hpp"
#include <pmlab/blocks/any_device.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

// Bytes at the end of the drive that are the device's flash: for twice the records that chunks of the volume can have.
[[nodiscard]] inline std::uint64_t flash_of_records(const store_setup& setup) {
  constexpr std::uint64_t least = std::uint64_t{8} << 20;
  constexpr std::uint64_t of_record = 1024;
  constexpr std::uint64_t superblock = std::uint64_t{256} << 10;
  const std::uint64_t needed = std::max(least, setup.volume_bytes / setup.chunk_bytes * 2 * of_record);
  return (needed + superblock - 1) / superblock * superblock + superblock;
}

template <class Medium>
class chunk_store_on_kv final : public volume_subject {
  using pairs_type = stores::kv_device<Medium, stores::device_region>;
  using store = stores::chunk_store<stores::records_on_kv<pairs_type>, stores::device_region>;

 public:
  // `medium` holds no device yet.
  chunk_store_on_kv(const store_setup& setup, std::unique_ptr<Medium> medium, blocks::any_device& device)
      : setup_(setup), medium_(std::move(medium)), device_(device) {
    const std::uint64_t flash = flash_of_records(setup) / device.shape().block_bytes;
    const std::uint64_t data = device.shape().blocks - flash;
    data_ = std::make_unique<stores::device_region>(device, 0, data);
    flash_ = std::make_unique<stores::device_region>(device, data, flash);
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

  // The part of the device counts as used.
  [[nodiscard]] volume_space space() override { return space_of(open_->store.stats(), device_); }
  [[nodiscard]] std::vector<store_statistic> statistics() override {
    const stores::chunk_store_stats s = open_->store.stats();
    std::vector<store_statistic> all = statistics_of(s);
    all.push_back({"record_hits", s.record_hits});
    all.push_back({"record_misses", s.record_misses});
    return all;
  }

 private:
  struct opened {
    opened(const store_setup& setup, Medium& medium, stores::device_region& data, stores::device_region& flash,
           bool format)
        : pairs(pairs_type::open(medium, flash,
                                 {.unit_bytes = 256,
                                  .superblock_bytes = std::size_t{256} << 10,
                                  .buffer_bytes = std::size_t{256} << 10,
                                  .largest_value = 4096,
                                  .format = format})),
          store(store_type::open(pairs, data, options_of(setup, format), {.cache_bytes = setup.cache_bytes})),
          volume(store.volume("bench", {.bytes = setup.volume_bytes})) {}
    using store_type = chunk_store_on_kv::store;
    pairs_type pairs;
    store_type store;
    typename store_type::volume_handle volume;
  };

  void open_with(bool format) { open_.emplace(setup_, *medium_, *data_, *flash_, format); }

  store_setup setup_;
  std::unique_ptr<Medium> medium_;
  blocks::any_device& device_;
  std::unique_ptr<stores::device_region> data_, flash_;
  std::optional<opened> open_;
};

// Defined in a source of its own, which is long to compile. `pool_bytes`: of a pool.
[[nodiscard]] std::unique_ptr<volume_subject> make_chunk_store_on_kv(const store_setup& setup, std::uint64_t pool_bytes,
                                                                     blocks::any_device& device);

}  // namespace pmlab::store_bench
