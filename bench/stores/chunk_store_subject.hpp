// chunk_store as a subject, on a medium.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include "bench/stores/chunk_queue_subject.hpp"
#include "bench/stores/level1_index.hpp"
#include "bench/stores/subjects.hpp"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

template <class Medium>
struct opened_on_medium {
  using store_type = stores::chunk_store<Medium, blocks::any_device, level1_index<Medium>>;

  opened_on_medium(const store_setup& setup, Medium& medium, blocks::any_device& device, bool format)
      : store(store_type::open(medium, device, options_of(setup, format))),
        volume(store.volume("bench", {.bytes = setup.volume_bytes})) {}
  store_type store;
  typename store_type::volume_handle volume;
};

template <class Medium>
struct medium_of_records {
  std::shared_ptr<Medium> medium;  // outlives the store
};

template <class Medium>
class chunk_store_subject final : private medium_of_records<Medium>,
                                  public chunk_volume_subject<opened_on_medium<Medium>, Medium> {
  using base = chunk_volume_subject<opened_on_medium<Medium>, Medium>;
  using medium_of_records<Medium>::medium;

 public:
  // `records` holds no store yet.
  chunk_store_subject(const store_setup& setup, std::shared_ptr<Medium> records, blocks::any_device& device)
      : medium_of_records<Medium>{std::move(records)}, base(setup, device, medium.get()) {
    chunk_store_subject::open_with(true);
  }

  [[nodiscard]] std::optional<media::counts> counts() override { return counts_of(*medium); }
  void reset_counts() override { reset_counts_of(*medium); }
  [[nodiscard]] std::vector<std::string> remarks() override { return remarks_of(*medium); }

 private:
  void open_with(bool format) override {
    const level1_choice index(this->setup_.index);
    this->open_.emplace(this->setup_, *medium, this->device_, format);
  }
};

}  // namespace pmlab::store_bench
