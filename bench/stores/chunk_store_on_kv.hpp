// chunk_store with its records as values of a key-value device, as a subject: the device has a part of the same drive
// as its flash, and `Medium` as its memory. A stand-in for a device beside the drive: a command is a call in this
// process.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>
#include "bench/stores/chunk_queue_subject.hpp"
#include "bench/stores/chunk_stores.hpp"
#include "bench/stores/peers/device_region.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

template <class Medium>
struct opened_on_kv {
  using pairs_type = stores::kv_device<Medium, stores::device_region>;
  using store_type = stores::chunk_store<stores::records_on_kv<pairs_type>, stores::device_region>;

  opened_on_kv(const store_setup& setup, Medium& medium, stores::device_region& data, stores::device_region& flash,
               bool format)
      : pairs(pairs_type::open(medium, flash,
                               {.unit_bytes = 256,
                                .superblock_bytes = std::size_t{256} << 10,
                                .buffer_bytes = std::size_t{256} << 10,
                                .largest_value = 4096,
                                .format = format})),
        store(store_type::open(pairs, data, options_of(setup, format), {.cache_bytes = setup.cache_bytes})),
        volume(store.volume("bench", {.bytes = setup.volume_bytes})) {}
  pairs_type pairs;
  store_type store;
  typename store_type::volume_handle volume;
};

// The device's memory, and the parts of the drive. They outlive the store.
template <class Medium>
struct parts_of_drive {
  parts_of_drive(const store_setup& setup, std::shared_ptr<Medium> memory, blocks::any_device& device)
      : medium(std::move(memory)) {
    const std::uint64_t of_flash = flash_of_records(setup) / device.shape().block_bytes;
    const std::uint64_t of_data = device.shape().blocks - of_flash;
    data = std::make_unique<stores::device_region>(device, 0, of_data);
    flash = std::make_unique<stores::device_region>(device, of_data, of_flash);
  }
  std::shared_ptr<Medium> medium;
  std::unique_ptr<stores::device_region> data, flash;
};

// The device's part of the space counts as used.
template <class Medium>
class chunk_store_on_kv final : private parts_of_drive<Medium>,
                                public chunk_volume_subject<opened_on_kv<Medium>, Medium> {
  using parts = parts_of_drive<Medium>;
  using base = chunk_volume_subject<opened_on_kv<Medium>, Medium>;

 public:
  // `memory` holds no device yet.
  chunk_store_on_kv(const store_setup& setup, std::shared_ptr<Medium> memory, blocks::any_device& device)
      : parts(setup, std::move(memory), device), base(setup, device, parts::medium.get()) {
    chunk_store_on_kv::open_with(true);
  }

  [[nodiscard]] std::vector<store_statistic> statistics() override {
    const stores::chunk_store_stats s = this->open_->store.stats();
    std::vector<store_statistic> all = statistics_of(s);
    all.push_back({"record_hits", s.record_hits});
    all.push_back({"record_misses", s.record_misses});
    return all;
  }

 private:
  void open_with(bool format) override {
    this->open_.emplace(this->setup_, *parts::medium, *parts::data, *parts::flash, format);
  }
};

}  // namespace pmlab::store_bench
