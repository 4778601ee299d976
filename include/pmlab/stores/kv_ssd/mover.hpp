// Moves records to flash: from the write buffer, and from superblocks that are collected.
//
// Orders:
//   (G1) the record is on flash, durably  (G2) the index leads to it there, durably  (G3) its old place is used again
//   (G1) < (G2) < (G3): the index leads to a whole record at any time, and an old place that is used again has no word
//   that leads to it.
// Records of superblocks that are collected gather until they fill a superblock: nothing is padded. Until then the
// superblocks that they come from stay as they are.
//
// A word that leads elsewhere meanwhile stays as it is: the key has a newer record, or is deleted. A reader holds the lock
// of the manager, which changes the word, so no reader is in a place that is used again.
#pragma once

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

// Thread safety: `drain` and `wait` from any thread that holds no lock of a manager; one of them works at a time.
template <media::medium Medium, blocks::device Device, class Hash>
class mover {
  using parts = core<Medium, Device, Hash>;

 public:
  explicit mover(parts& of) : core_(of), port_(of.device) {
    for (batch& b : batches_) b.bytes = blocks::buffer(batch_bytes());
    batch_of(flash_stream::moved).bytes = blocks::buffer(of.sizes.superblock_bytes);
  }

  // Moves the oldest records of the write buffer to flash. False: there was nothing to move, or there is no room on flash
  // (`is_full` is set then). Throws pmlab::error if the device fails: the records stay in the buffer.
  [[nodiscard]] bool drain(bool& is_full) {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t half = core_.buffer.lines() / 2;
    const std::vector<std::uint32_t> lines =
        core_.buffer.begin_copy(std::min<std::uint64_t>(half, batch_bytes() / media::cache_line_bytes));
    if (lines.empty()) return false;
    try {
      for (const std::uint32_t line : lines)
        if (!place_line(line)) is_full = true;
      for (const flash_stream s : {flash_stream::user, flash_stream::buckets}) write(s);
    } catch (...) {
      end_copies(lines);
      throw;
    }
    end_copies(lines);
    return !is_full;
  }

  // For checks while no operation runs.
  [[nodiscard]] std::uint32_t free_superblocks() {
    const std::scoped_lock lock(mutex_);
    return core_.flash.free_count();
  }

 private:
  // A record on its way.
  struct item {
    std::uint8_t space;
    std::uint64_t base;
    place_word from;
    place_word to;
  };
  // The records of a stream that are not on flash yet: they go to the end of its open superblock.
  struct batch {
    std::optional<std::uint32_t> open{};
    std::uint32_t cursor = 0;  // units of the open superblock that are taken, those of the batch too
    std::uint32_t start = 0;   // units before the batch
    blocks::buffer bytes{};
    std::vector<item> items{};
  };

  [[nodiscard]] std::size_t batch_bytes() const noexcept {
    constexpr std::size_t usual = std::size_t{1} << 20;
    const std::size_t largest =
        (record_bytes(most_key_bytes, core_.sizes.largest_value) / core_.sizes.page_bytes() + 2) *
        core_.sizes.page_bytes();
    return std::min<std::size_t>(core_.sizes.superblock_bytes, std::max(usual, largest));
  }
  [[nodiscard]] batch& batch_of(flash_stream s) noexcept { return batches_[static_cast<std::size_t>(s)]; }

  [[nodiscard]] bool place_line(std::uint32_t line) {
    const std::byte* const at = core_.buffer.at(line);
    const record_view record({at, sizeof(record_head) + most_key_bytes});
    const std::size_t bytes = bytes_of(record.head());
    const std::uint8_t space = record.head().space;
    const item i{
        space, parts::base_of(space, record.key()), place_word::in_ring(line, core_.sizes.units_for(bytes)), {}};
    return place(space == bucket_space ? flash_stream::buckets : flash_stream::user, {at, bytes}, i);
  }

  // Adds a record to the stream's batch. False: no room on flash.
  [[nodiscard]] bool place(flash_stream s, std::span<const std::byte> record, item i) {
    batch& b = batch_of(s);
    const std::uint32_t units = i.from.units();
    if (std::size_t{b.cursor - b.start + units} * core_.sizes.unit_bytes > b.bytes.size()) write(s);
    if (b.open && b.cursor + units > core_.sizes.units()) {
      write(s);
      core_.flash.close(*b.open);
      b.open.reset();
    }
    if (!b.open && !open(s)) return false;
    const std::uint64_t unit = std::uint64_t{*b.open} * core_.sizes.units() + b.cursor;
    std::byte* const target = b.bytes.data() + std::size_t{b.cursor - b.start} * core_.sizes.unit_bytes;
    std::memcpy(target, record.data(), record.size());
    std::memset(target + record.size(), 0, std::size_t{units} * core_.sizes.unit_bytes - record.size());
    i.to = place_word::on_flash(unit, units);
    b.items.push_back(i);
    b.cursor += units;
    return true;
  }

  // Writes the stream's batch, and lets the index lead to its records.
  void write(flash_stream s) {
    batch& b = batch_of(s);
    if (b.items.empty()) return;
    const std::uint32_t in_page = core_.sizes.page_bytes() / core_.sizes.unit_bytes;
    const std::uint32_t end = (b.cursor + in_page - 1) / in_page * in_page;
    const std::size_t used = std::size_t{b.cursor - b.start} * core_.sizes.unit_bytes;
    const std::size_t whole = std::size_t{end - b.start} * core_.sizes.unit_bytes;
    std::memset(b.bytes.data() + used, 0, whole - used);
    const std::uint64_t first = core_.sizes.byte_of(std::uint64_t{*b.open} * core_.sizes.units() + b.start);
    std::vector<item> items;
    items.swap(b.items);
    // A failed write takes its place, too: nothing is written twice there.
    const std::uint32_t units = end - b.start;
    b.start = b.cursor = end;
    try {
      port_.write(first, b.bytes.bytes().first(whole), stream_on_device(s));  // (G1)
    } catch (...) {
      if (s == flash_stream::moved) keep_emptied();
      throw;
    }
    core_.counts.programmed[static_cast<std::size_t>(s)].fetch_add(units, std::memory_order_relaxed);
    for (const item& i : items) rename(i);
    if (s == flash_stream::moved) free_emptied();
  }

  [[nodiscard]] static blocks::stream stream_on_device(flash_stream s) noexcept {
    switch (s) {
      case flash_stream::user: return blocks::stream::values;
      case flash_stream::moved: return blocks::stream::merge;
      case flash_stream::buckets: return blocks::stream::keys;
    }
    return blocks::stream::other;
  }

  // The key leads to the new place, if it leads to the old one.
  void rename(const item& i) {
    const std::scoped_lock lock(core_.lock_of(i.space, i.base));
    const auto at = core_.index.find_place(i.base, i.from);
    if (!at.found) return;
    static_cast<void>(core_.index.put(at, i.to));  // (G2)
    core_.flash.add(i.to.address(), i.to.units());
    if (i.from.is_in_ring())
      moved_.push_back(static_cast<std::uint32_t>(i.from.address()));
    else
      core_.flash.drop(i.from.address(), i.from.units());
  }

  // Those that were not moved stay in the write buffer.
  void end_copies(const std::vector<std::uint32_t>& lines) {
    for (const flash_stream s : {flash_stream::user, flash_stream::buckets}) {
      batch_of(s).items.clear();
      batch_of(s).cursor = batch_of(s).start;
    }
    std::sort(moved_.begin(), moved_.end());
    for (const std::uint32_t line : lines)
      core_.buffer.end_copy(line, std::binary_search(moved_.begin(), moved_.end(), line));
    moved_.clear();
  }

  // ---- superblocks

  // A superblock for the stream. One free superblock is kept for records that are moved, so that a collection can always
  // begin. False: there is no room.
  [[nodiscard]] bool open(flash_stream s) {
    if (s != flash_stream::moved && !make_room()) return false;
    batch& b = batch_of(s);
    b.open = core_.flash.take();
    b.cursor = b.start = 0;
    return b.open.has_value();
  }

  // Collects until two superblocks are free. False: records do not fit more closely than they lie.
  [[nodiscard]] bool make_room() {
    const std::uint64_t used = core_.used_units.load(std::memory_order_acquire);
    if (core_.flash.free_count() < 2 && used >= no_room_at_) return false;
    no_room_at_ = ~std::uint64_t{0};
    for (std::uint32_t passes = 0; core_.flash.free_count() < 2; ++passes)
      if (passes > 2 * core_.flash.count() || !collect()) {
        no_room_at_ = used;  // until keys are deleted
        return false;
      }
    return true;
  }

  // Moves the records of the superblock with the least valid units. False: nothing can be gained.
  [[nodiscard]] bool collect() {
    const std::optional<std::uint32_t> victim = core_.flash.victim();
    if (!victim) return false;
    const std::uint64_t first = std::uint64_t{*victim} * core_.sizes.units();
    if (core_.flash.valid(*victim) != 0) {
      const std::size_t bytes = core_.sizes.superblock_bytes;
      // The port's buffer is used again by nothing until the end: writes have their own.
      if (!move_records_of(port_.read(core_.sizes.byte_of(first), bytes), first)) return false;
    }
    core_.flash.set_aside(*victim);
    emptied_.push_back(*victim);
    if (batch_of(flash_stream::moved).items.empty()) free_emptied();
    return true;
  }

  // Moves the live records of a superblock that begins at unit `first`. They are found by their heads, as there is no list
  // of them. False: there is no room.
  [[nodiscard]] bool move_records_of(std::span<const std::byte> content, std::uint64_t first) {
    for (std::uint32_t unit = 0; unit < core_.sizes.units();) {
      const std::span<const std::byte> rest = content.subspan(std::size_t{unit} * core_.sizes.unit_bytes);
      const record_view record(rest);
      const std::size_t bytes = bytes_of(record.head());
      if (!record.has_whole_head(core_.seed) || bytes > rest.size()) {
        ++unit;
        continue;
      }
      const std::uint32_t units = core_.sizes.units_for(bytes);
      const std::uint8_t space = record.head().space;
      const item i{space, parts::base_of(space, record.key()), place_word::on_flash(first + unit, units), {}};
      if (is_live(i) && !place(flash_stream::moved, rest.first(bytes), i)) return false;
      unit += units;
    }
    return true;
  }

  // Their records that could be read are on flash elsewhere.
  void free_emptied() {
    for (const std::uint32_t number : emptied_) {
      if (core_.flash.valid(number) == 0) {
        core_.flash.free(number);  // (G3)
        core_.counts.collected.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      // A live record cannot be read: its superblock is never used again.
      core_.flash.retire(number);
      core_.lost_units.fetch_add(core_.sizes.units() - core_.flash.valid(number), std::memory_order_relaxed);
    }
    emptied_.clear();
  }
  // The records that were moved out of them are not on flash elsewhere.
  void keep_emptied() {
    for (const std::uint32_t number : emptied_) core_.flash.close(number);
    emptied_.clear();
  }

  [[nodiscard]] bool is_live(const item& i) {
    const std::shared_lock lock(core_.lock_of(i.space, i.base));
    return core_.index.find_place(i.base, i.from).found;
  }

  parts& core_;
  std::mutex mutex_;
  port<Device> port_;
  std::array<batch, flash_streams> batches_;
  std::vector<std::uint32_t> emptied_;  // superblocks whose live records are in the batch of moved ones, or on flash
  std::uint64_t no_room_at_ = ~std::uint64_t{0};  // used units when no room could be made
  std::vector<std::uint32_t> moved_;              // lines of records that the index leads to on flash now
};

}  // namespace pmlab::stores::detail::kv_ssd
