#include "bench/stores/rocksdb_meta_subject.hpp"
#include "bench/stores/peers/device_region.hpp"
#include "bench/stores/peers/medium_device.hpp"
#include "bench/stores/peers/rocksdb_meta.hpp"
#include "bench/stores/setup_medium.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace pmlab::store_bench {
namespace {

using stores::rocksdb_meta;

class meta_queue final : public volume_queue {
 public:
  meta_queue(rocksdb_meta& store, unsigned depth) : queue_(store, depth) {}

  void write(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag) override {
    check(queue_.write(offset, data, tag));
  }
  void read(std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag) override {
    check(queue_.read(offset, data, tag));
  }
  void discard(std::uint64_t offset, std::uint64_t length, std::uint64_t tag) override {
    check(queue_.discard(offset, length, tag));
  }
  [[nodiscard]] std::size_t reap(std::span<answer> answers, std::size_t at_least) override {
    std::array<blocks::completion, 64> done;
    const std::size_t most = std::min(answers.size(), done.size());
    const std::size_t count = queue_.reap(std::span(done).first(most), std::min(at_least, most));
    for (std::size_t i = 0; i < count; ++i) answers[i] = {done[i].tag, done[i].error};
    return count;
  }

 private:
  static void check(bool started) {
    if (!started) throw error("a queue of rocksdb_meta took no operation", "report this as a defect of the benchmark");
  }
  rocksdb_meta::queue queue_;
};

class meta_subject final : public volume_subject {
 public:
  // `medium` has the memory of RocksDB's files; null: these are on the drive.
  meta_subject(const store_setup& setup, std::shared_ptr<bench::chosen_medium> medium,
               std::unique_ptr<blocks::any_device> data, std::unique_ptr<blocks::any_device> meta)
      : setup_(setup), medium_(std::move(medium)), data_(std::move(data)), meta_(std::move(meta)) {
    open_as(true);
  }

  [[nodiscard]] std::uint64_t bytes() const override { return setup_.volume_bytes; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return store_->block_bytes(); }
  // A write is one batch of rows, and a read sees places of one moment; but a deferred write is made in its place.
  [[nodiscard]] volume_promises promises() const override {
    return {deferred_bytes() != 0 ? block_bytes() : std::uint64_t{1} << 20, true};
  }
  [[nodiscard]] std::unique_ptr<volume_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<meta_queue>(*store_, depth);
  }

  [[nodiscard]] bool can_reopen() const override { return true; }
  void close() override { store_.reset(); }
  void open() override { open_as(false); }

  [[nodiscard]] volume_space space() override {
    const stores::rocksdb_meta_stats s = store_->stats();
    return {data_->shape().bytes() - s.free_bytes, s.meta_bytes, s.free_bytes, s.longest_free_extent};
  }
  [[nodiscard]] std::vector<store_statistic> statistics() override {
    const stores::rocksdb_meta_stats s = store_->stats();
    return {{"redirected", s.redirected}, {"deferred", s.deferred}, {"commits", s.commits}};
  }
  [[nodiscard]] std::vector<std::string> remarks() override {
    return {setup_.store + " is BlueStore's algorithm, not BlueStore: RocksDB's files are on " + meta_->name() +
            ", all places of blocks are cached in DRAM, data has " + (is_nearest() ? "" : "no ") + "checksums"};
  }

 private:
  [[nodiscard]] bool is_nearest() const { return setup_.store == deferring_rocksdb_meta; }
  [[nodiscard]] std::uint64_t deferred_bytes() const { return is_nearest() ? 4096 : 0; }

  void open_as(bool format) {
    store_.emplace(*data_, *meta_,
                   stores::rocksdb_meta_options{.volume_bytes = setup_.volume_bytes,
                                                .deferred_bytes = deferred_bytes(),
                                                .checksums = is_nearest(),
                                                .format = format});
  }

  store_setup setup_;
  std::shared_ptr<bench::chosen_medium> medium_;
  std::unique_ptr<blocks::any_device> data_;
  std::unique_ptr<blocks::any_device> meta_;
  std::optional<rocksdb_meta> store_;
};

std::unique_ptr<blocks::any_device> region_of(blocks::any_device& device, std::uint64_t first, std::uint64_t count) {
  return std::make_unique<blocks::any_device>(std::in_place_type<stores::device_region>, device, first, count);
}

}  // namespace

std::uint64_t rocksdb_meta_bytes(const store_setup& setup) {
  constexpr std::uint64_t mebibyte = 1 << 20;
  return std::clamp(setup.volume_bytes / 4, 128 * mebibyte, 4096 * mebibyte) / mebibyte * mebibyte;
}

std::unique_ptr<volume_subject> make_rocksdb_meta(const store_setup& setup, blocks::any_device& device) {
  const std::uint64_t meta_bytes = rocksdb_meta_bytes(setup);
  const std::uint64_t device_blocks = device.shape().blocks;
  if (setup.container == "blocks") {
    const std::uint64_t of_meta = meta_bytes / device.shape().block_bytes;
    return std::make_unique<meta_subject>(setup, nullptr, region_of(device, 0, device_blocks - of_meta),
                                          region_of(device, device_blocks - of_meta, of_meta));
  }
  store_setup own = setup;
  // Another store of the run may have the file itself.
  if (setup.medium.in_pool()) own.medium.path += "." + setup.store;
  own.medium_bytes += meta_bytes;
  auto medium = make_medium(own);
  auto meta = std::make_unique<blocks::any_device>(std::in_place_type<stores::medium_device<bench::chosen_medium>>,
                                                   *medium, meta_bytes);
  return std::make_unique<meta_subject>(own, std::move(medium), region_of(device, 0, device_blocks), std::move(meta));
}

}  // namespace pmlab::store_bench
