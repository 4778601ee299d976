// A chunk store as a subject, its queue and its figures: the same for each container of the store.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/chunk_store/queue.hpp>
#include "bench/stores/subject_medium.hpp"
#include "bench/stores/subjects.hpp"
#include "bench/stores/volume_subject.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pmlab::store_bench {

template <class Store, class Medium = void>
class chunk_queue_subject final : public volume_queue {
 public:
  // `medium`: of the records.
  chunk_queue_subject(Store& store, const typename Store::volume_handle& volume, unsigned depth,
                      Medium* medium = nullptr)
      : volume_(volume), queue_(store, depth), medium_(medium) {}

  void write(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag) override {
    const charged_time charged;
    const announced_operation<Medium> announced(medium_);
    check(queue_.write(volume_, offset, data, tag));
  }
  void read(std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag) override {
    const charged_time charged;
    const announced_operation<Medium> announced(medium_);
    check(queue_.read(volume_, offset, data, tag));
  }
  void discard(std::uint64_t offset, std::uint64_t length, std::uint64_t tag) override {
    const charged_time charged;
    const announced_operation<Medium> announced(medium_);
    check(queue_.discard(volume_, offset, length, tag));
  }
  [[nodiscard]] std::size_t reap(std::span<answer> answers, std::size_t at_least) override {
    const charged_time charged;
    const announced_operation<Medium> announced(medium_);
    std::array<stores::chunk_completion, 64> done;
    const std::size_t most = std::min(answers.size(), done.size());
    const std::size_t count = queue_.reap(std::span(done).first(most), std::min(at_least, most));
    for (std::size_t i = 0; i < count; ++i) answers[i] = {done[i].tag, done[i].error};
    return count;
  }

 private:
  static void check(bool started) {
    if (!started) throw error("a queue of chunk_store took no operation", "report this as a defect of the benchmark");
  }

  typename Store::volume_handle volume_;
  stores::chunk_queue<Store> queue_;
  Medium* medium_;
};

[[nodiscard]] inline stores::chunk_store_options options_of(const store_setup& setup, bool format) {
  return {.chunk_bytes = setup.chunk_bytes,
          .ring = setup.ring,
          .merge = setup.merge == "copy" ? stores::merge_policy::copy : stores::merge_policy::remap,
          .format = format};
}

[[nodiscard]] inline volume_space space_of(const stores::chunk_store_stats& s, const blocks::any_device& device) {
  return {device.shape().bytes() - s.free_bytes, s.medium_bytes, s.free_bytes, s.longest_free_extent};
}

[[nodiscard]] inline std::vector<store_statistic> statistics_of(const stores::chunk_store_stats& s) {
  return {
      {"in_place", s.in_place},         {"first", s.first},   {"redirected", s.redirected},      {"merges", s.merges},
      {"copied_bytes", s.copied_bytes}, {"remaps", s.remaps}, {"replaced_maps", s.replaced_maps}};
}

// `Opened`: an open store, as its member `store`, and as `volume` the volume that is measured. What it is on outlives
// this base.
template <class Opened, class Medium = void>
class chunk_volume_subject : public volume_subject {
 public:
  [[nodiscard]] std::uint64_t bytes() const override { return open_->volume.bytes(); }
  [[nodiscard]] std::uint32_t block_bytes() const override { return open_->store.block_bytes(); }
  [[nodiscard]] volume_promises promises() const override { return {open_->store.promises().atomic_bytes, true}; }
  [[nodiscard]] std::unique_ptr<volume_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    using queue = chunk_queue_subject<decltype(open_->store), Medium>;
    return std::make_unique<queue>(open_->store, open_->volume, depth, medium_);
  }

  [[nodiscard]] bool can_reopen() const override { return true; }
  void close() override { open_.reset(); }
  void open() override { open_with(false); }
  [[nodiscard]] bool wait_until_complete() override {
    open_->store.wait_until_complete();
    return true;
  }

  [[nodiscard]] volume_space space() override { return space_of(open_->store.stats(), device_); }
  [[nodiscard]] std::vector<store_statistic> statistics() override { return statistics_of(open_->store.stats()); }

 protected:
  // Opens nothing yet. `medium`: of the records.
  explicit chunk_volume_subject(const store_setup& setup, blocks::any_device& device, Medium* medium = nullptr)
      : setup_(setup), device_(device), medium_(medium) {}

  // `format`: an empty store, for a file that is overwritten may have another one.
  virtual void open_with(bool format) = 0;

  store_setup setup_;
  blocks::any_device& device_;
  std::optional<Opened> open_;

 private:
  Medium* medium_;
};

}  // namespace pmlab::store_bench
