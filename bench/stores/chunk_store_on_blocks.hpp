// chunk_store with its records on the drive, as a subject.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include "bench/stores/chunk_queue_subject.hpp"
#include "bench/stores/chunk_stores.hpp"

namespace pmlab::store_bench {

struct opened_on_blocks {
  using store_type = stores::chunk_store<stores::records_on_blocks, blocks::any_device>;

  opened_on_blocks(const store_setup& setup, blocks::any_device& device, bool format)
      : store(store_type::open(device, options_of(setup, format))),
        volume(store.volume("bench", {.bytes = setup.volume_bytes})) {}
  store_type store;
  store_type::volume_handle volume;
};

class chunk_store_on_blocks final : public chunk_volume_subject<opened_on_blocks> {
 public:
  chunk_store_on_blocks(const store_setup& setup, blocks::any_device& device) : chunk_volume_subject(setup, device) {
    chunk_store_on_blocks::open_with(true);
  }

 private:
  void open_with(bool format) override { open_.emplace(setup_, device_, format); }
};

}  // namespace pmlab::store_bench
