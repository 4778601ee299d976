// Reads many values at once.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>
#include <pmlab/stores/tiered/versions.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace pmlab::stores::detail::tiered {

// The whole blocks around a value, in bytes of its segment.
struct block_range {
  std::uint32_t begin;
  std::uint64_t end;
};
[[nodiscard]] inline block_range blocks_around(const found_version& v, std::uint32_t block_bytes) noexcept {
  return {v.place.offset - v.place.offset % block_bytes,
          round_up(std::uint64_t{v.place.offset} + v.value_bytes, block_bytes)};
}
// Values of more than this are not read together: a request that is longer is hardly cheaper than two.
inline constexpr std::uint32_t most_bytes_read_together = std::uint32_t{128} << 10;

// A version whose value may be read together with those of others.
struct wanted_version {
  found_version version{};
  std::shared_ptr<const blocks::buffer> blocks{};  // its value is in these bytes; null: it was not read
  std::size_t begin = 0;                           // where it begins in them

  // Its value. REQUIRES: `blocks` is not null.
  [[nodiscard]] std::span<const std::byte> value() const noexcept {
    return blocks->bytes().subspan(begin, version.value_bytes);
  }
};

// Whole blocks of a segment, and where they go.
struct block_read {
  std::uint32_t segment = 0;
  std::uint32_t offset = 0;
  std::span<std::byte> data{};
};

// Reads many values, or pages, at once: they are all over the drive. Values whose blocks overlap or follow one another
// there are one request. For one thread.
template <blocks::device Device>
class value_reader {
 public:
  static constexpr std::size_t depth = 128;

  explicit value_reader(const drive_pair<Device>& on) : on_(on) {
    for (std::size_t c = 0; c < classes; ++c)
      if (on.devices[c] != nullptr) queues_[c].emplace(*on.devices[c], depth);
  }
  // Gives each of `wanted` the blocks around its value, and puts them in the order of their places. Calls arrived(some)
  // whenever up to `depth` requests have been answered, with the ones whose values these are: what it drops of their
  // blocks is not in memory beside the next ones. Throws pmlab::error: the drive fails; what `arrived` throws.
  template <class Function>
  void read(std::span<wanted_version*> wanted, blocks::stream of, Function&& arrived) {
    std::sort(wanted.begin(), wanted.end(), [](const wanted_version* a, const wanted_version* b) {
      const value_place& x = a->version.place;
      const value_place& y = b->version.place;
      return x.segment != y.segment ? x.segment < y.segment : x.offset < y.offset;
    });
    std::array<block_read, depth> reads;
    for (std::size_t i = 0; i < wanted.size();) {
      const std::size_t first = i;
      std::size_t count = 0;
      for (; i < wanted.size() && count < depth; ++count) {
        const std::size_t behind = end_of_neighbours(wanted, i);
        const std::uint32_t begin = around(*wanted[i]).begin;
        auto data = std::make_shared<blocks::buffer>(around(*wanted[behind - 1]).end - begin);
        reads[count] = {wanted[i]->version.place.segment, begin, data->bytes()};
        for (; i < behind; ++i) {
          wanted[i]->blocks = data;
          wanted[i]->begin = wanted[i]->version.place.offset - begin;
        }
      }
      read(std::span<const block_read>(reads).first(count), of);
      arrived(wanted.subspan(first, i - first));
    }
  }
  // Reads blocks whose places are known, up to `depth` at once.
  void read(std::span<const block_read> wanted, blocks::stream of) {
    // All memory is there before the first request: the drive writes to it until it has answered.
    std::array<std::size_t, classes> submitted{};
    for (const block_read& r : wanted) {
      const std::size_t c = index_of(class_of(r.segment));
      const blocks::request one{blocks::operation::read,
                                of,
                                static_cast<std::uint32_t>(r.data.size() / on_.where.drives[c].block_bytes),
                                on_.where.block_at(r.segment, r.offset),
                                r.data.data(),
                                0};
      submitted[c] += queues_[c]->submit({&one, 1});
    }
    std::errc failed{};
    for (std::size_t c = 0; c < classes; ++c)
      while (submitted[c] > 0) {
        std::array<blocks::completion, depth> done;
        const std::size_t ended = queues_[c]->reap(done, 1);
        for (std::size_t i = 0; i < ended; ++i)
          if (done[i].error != std::errc{}) failed = done[i].error;
        submitted[c] -= ended;
      }
    if (failed != std::errc{})
      throw error("the drive cannot be read (" + blocks::describe(failed) + ")",
                  "check the drives; nothing was changed");
  }

 private:
  [[nodiscard]] block_range around(const wanted_version& w) const noexcept {
    return blocks_around(w.version, on_.where.block_bytes);
  }
  // One past the last value that follows `first` on the drive without a gap.
  [[nodiscard]] std::size_t end_of_neighbours(std::span<wanted_version* const> wanted,
                                              std::size_t first) const noexcept {
    const value_place begin = wanted[first]->version.place;
    std::size_t i = first + 1;
    for (; i < wanted.size(); ++i) {
      if (wanted[i]->version.place.segment != begin.segment) break;
      if (around(*wanted[i]).begin > around(*wanted[i - 1]).end) break;
      if (around(*wanted[i]).end - begin.offset > most_bytes_read_together) break;
    }
    return i;
  }

  drive_pair<Device> on_;
  std::array<std::optional<typename Device::queue>, classes> queues_{};
};

}  // namespace pmlab::stores::detail::tiered
