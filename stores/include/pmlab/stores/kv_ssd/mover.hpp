// Moves records to flash: from the write buffer, and from superblocks that are collected.
//
// Orders:
//   (G1) the record is on flash, durably  (G2) the index leads to it there, durably  (G3) its old place is used again
//   (G1) < (G2) < (G3): the index leads to a whole record at any time, and an old place that is used again has no word
//   that leads to it.
// Records of superblocks that are collected gather until they fill a superblock: nothing is padded, unless there is no
// other way to a free one. Until then the superblocks that they come from stay as they are.
//
// A word that leads elsewhere meanwhile stays as it is: the key has a newer record, or is deleted. A reader holds the
// lock of the manager, which changes the word, so no reader is in a place that is used again.
#pragma once

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/buckets.hpp>
#include <pmlab/stores/kv_ssd/copies.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
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
    emptied_.reserve(of.flash.count());
    unread_.reserve(of.flash.count());
  }

  // Moves the oldest records of the write buffer to flash. False: there was nothing to move, or there is no room on
  // flash (`is_full` is set then). Throws pmlab::error if the device fails: the records stay in the buffer.
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

  // A key that a page lists, and that is probably deleted: a crash or a full device kept it there.
  struct suspect {
    std::uint8_t space = 0;
    std::string key{};
    std::uint32_t page = 0;
  };
  // A suspect that garbage collection has met, or std::nullopt. From any thread.
  [[nodiscard]] std::optional<suspect> next_suspect() {
    if (!has_suspects_.load(std::memory_order_acquire)) return std::nullopt;
    const std::scoped_lock lock(suspects_mutex_);
    if (suspects_.empty()) return std::nullopt;
    suspect s = std::move(suspects_.back());
    suspects_.pop_back();
    has_suspects_.store(!suspects_.empty(), std::memory_order_release);
    return s;
  }

  // Empties a superblock, if none is free, as nothing could be collected then: see copies.hpp. Calls put_again(bytes)
  // for each live record of it that has no copy elsewhere, which puts it into the write buffer; `lines`: that may be
  // used for these. True: a superblock is free. False: no superblock is empty enough; this is not tried again until
  // there are fewer live records, as it reads all of the flash.
  template <class PutAgain>
  [[nodiscard]] bool empty_one(std::uint64_t lines, PutAgain&& put_again) {
    const std::scoped_lock lock(mutex_);
    if (core_.flash.free_count() != 0) return true;
    if (keeps_all_) return false;
    const std::uint64_t used = core_.used_units.load(std::memory_order_acquire);
    const std::uint64_t fewer = core_.sizes.units() / 8;
    if (not_empty_at_ != ~std::uint64_t{0} && used + fewer > not_empty_at_) return false;
    copies<parts> found(core_);
    found.read(port_);
    const auto none = [&] {
      not_empty_at_ = used;
      return false;
    };
    const std::optional<std::uint32_t> number = found.easiest();
    if (!number) return none();
    for (const item& i : found.of(*number)) rename(i);
    const std::uint64_t first = std::uint64_t{*number} * core_.sizes.units();
    std::uint64_t needed = 0;
    bool has_all = true;
    const std::span<const std::byte> content =
        port_.read_readable(core_.sizes.byte_of(first), core_.sizes.superblock_bytes, has_all);
    const auto for_each_live = [&](auto&& visit) {
      return core_.for_each_record(content, first, [&](place_word at, std::span<const std::byte> bytes) {
        return !is_live(item_of(at, bytes)) || visit(bytes);
      });
    };
    static_cast<void>(for_each_live([&](std::span<const std::byte> bytes) {
      needed += lines_for(bytes.size());
      return true;
    }));
    const std::uint64_t lost_at_the_end = lines_for(record_bytes(most_key_bytes, core_.sizes.largest_value));
    if (needed != 0 && needed + lost_at_the_end > lines) return none();
    if (!for_each_live(put_again) || core_.flash.valid(*number) != 0) return none();
    core_.flash.free(*number);  // (G3)
    no_room_at_ = not_empty_at_ = ~std::uint64_t{0};
    return true;
  }

  // From now on, or no more: no superblock that has records is emptied. What is written goes to those that are free.
  void keep_all(bool keeps) {
    const std::scoped_lock lock(mutex_);
    keeps_all_ = keeps;
    no_room_at_ = not_empty_at_ = ~std::uint64_t{0};
  }

  // A record in it cannot be read: it is not used again before the device is opened the next time. REQUIRES: no other
  // operation, or the lock.
  void retire(std::uint32_t number) { static_cast<void>(lose(number)); }

  // There is no room: superblocks whose blocks could not be read count again, if they can be read now. True: one can.
  // They are seldom tried, as a drive may take long to fail.
  [[nodiscard]] bool take_back_readable() {
    const std::scoped_lock lock(mutex_);
    if (unread_.empty()) return false;
    ++asked_;
    if (asked_ < 64 ? !std::has_single_bit(asked_) : asked_ % 64 != 0) return false;
    const std::size_t before = unread_.size();
    std::erase_if(unread_, [&](const given_up& g) {
      const std::uint64_t first = std::uint64_t{g.number} * core_.sizes.units();
      if (!port_.read(core_.sizes.byte_of(first), core_.sizes.superblock_bytes, 0)) return false;
      core_.flash.close(g.number);
      core_.lost_units.fetch_sub(g.lost, std::memory_order_relaxed);
      return true;
    });
    if (unread_.size() == before) return false;
    asked_ = 0;
    no_room_at_ = not_empty_at_ = ~std::uint64_t{0};
    return true;
  }

 private:
  using item = moved_record;
  // The records of a stream that are not on flash yet: they go to the end of its open superblock.
  struct batch {
    std::optional<std::uint32_t> open{};
    std::uint32_t cursor = 0;  // units of the open superblock that are taken, those of the batch too
    std::uint32_t start = 0;   // units before the batch
    blocks::buffer bytes{};
    std::vector<item> items{};
  };

  struct emptied {
    std::uint32_t number = 0;
    bool is_whole = true;  // all of its blocks could be read
  };
  // A superblock that is retired, as it could not be read, and the units that are lost with it.
  struct given_up {
    std::uint32_t number = 0;
    std::uint32_t lost = 0;
  };

  std::uint32_t lose(std::uint32_t number) {
    core_.flash.retire(number);
    const std::uint32_t lost = core_.sizes.units() - core_.flash.valid(number);
    core_.lost_units.fetch_add(lost, std::memory_order_relaxed);
    return lost;
  }

  [[nodiscard]] std::size_t batch_bytes() const noexcept {
    constexpr std::size_t usual = std::size_t{1} << 20;
    const std::size_t largest =
        (record_bytes(most_key_bytes, core_.sizes.largest_value) / core_.sizes.page_bytes() + 2) *
        core_.sizes.page_bytes();
    return std::min<std::size_t>(core_.sizes.superblock_bytes, std::max(usual, largest));
  }
  [[nodiscard]] batch& batch_of(flash_stream s) noexcept { return batches_[static_cast<std::size_t>(s)]; }

  // A record that was damaged in the buffer is moved as it is, and noticed where it is read. Its own bytes decide
  // nothing.
  [[nodiscard]] bool place_line(std::uint32_t line) {
    const auto known = core_.buffer.at_line(line);
    const std::span<const std::byte> lines{core_.buffer.at(line), std::size_t{known.length} * media::cache_line_bytes};
    const record_view record(lines);
    const bool is_of_bucket = (known.base & bucket_bit) != 0;
    const item i{is_of_bucket ? bucket_space : record.head().space,
                 known.base,
                 place_word::in_ring(line, core_.sizes.units_for(lines.size())),
                 record.head().sequence,
                 {}};
    const std::size_t bytes = record.has_whole_head(core_.seed) ? bytes_of(record.head()) : lines.size();
    return place(is_of_bucket ? flash_stream::buckets : flash_stream::user, lines.first(std::min(bytes, lines.size())),
                 i);
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
    i.to = core_.on_flash(unit, units, i.sequence);
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
    moved_.reserve(moved_.size() + b.items.size());  // behind (G2) nothing may fail
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
    if (!at.found) {
      // Also if the word that led to it is damaged: the record would stay for ever.
      if (i.from.is_in_ring()) core_.buffer.release_copied(static_cast<std::uint32_t>(i.from.address()));
      return;
    }
    // A record that is not the one that the word leads to is not that one on flash either.
    const place_word to =
        at.place.fits(i.sequence) ? i.to : core_.on_flash(i.to.address(), i.to.units(), i.sequence + 1);
    static_cast<void>(core_.index.put(at, to));  // (G2)
    core_.flash.add(i.to.address(), i.to.units());
    if (i.from.is_in_ring())
      moved_.push_back(static_cast<std::uint32_t>(i.from.address()));
    else
      core_.flash.drop(i.from.address(), i.from.units());
  }

  // Ends the copies. Records that were not moved stay in the write buffer.
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

  // A superblock for the stream. One free superblock is kept for records that are moved, so that a collection can
  // always begin. False: there is no room.
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
    unreadable_ = 0;  // an earlier one is not why this one finds no room
    for (std::uint32_t passes = 0; core_.flash.free_count() < 2; ++passes) {
      if (passes <= 2 * core_.flash.count() && collect()) continue;
      // Superblocks may wait for the moved records to fill one, though no more of them will come.
      const std::uint32_t free = core_.flash.free_count();
      write(flash_stream::moved);
      if (core_.flash.free_count() > free) continue;
      // Superblocks that cannot be read are the cause, if there are any.
      if (unreadable_ != 0)
        throw error("device " + core_.device.name() + " has no room, and cannot read blocks of " +
                        std::to_string(unreadable_) + " superblocks, whose records cannot be moved",
                    "check the drive; erase keys, or open the device again when it is well");
      no_room_at_ = used;  // until keys are deleted
      return false;
    }
    return true;
  }

  // Moves the records of the superblock with the least valid units. False: nothing can be gained.
  [[nodiscard]] bool collect() {
    if (keeps_all_) return false;
    const std::optional<std::uint32_t> victim = core_.flash.victim();
    if (!victim) return false;
    const std::uint64_t first = std::uint64_t{*victim} * core_.sizes.units();
    bool is_whole = true;
    if (core_.flash.valid(*victim) != 0) {
      // The port's buffer is used again by nothing until the end: writes have their own.
      bool has_all = true;
      const auto content = port_.read_readable(core_.sizes.byte_of(first), core_.sizes.superblock_bytes, has_all);
      if (!has_all) ++unreadable_;
      is_whole = has_all;
      if (!move_records_of(content, first, has_all)) return false;
    }
    core_.flash.set_aside(*victim);
    emptied_.push_back({*victim, is_whole});
    if (batch_of(flash_stream::moved).items.empty()) free_emptied();
    return true;
  }

  // Moves the live records of a superblock that begins at unit `first`. Without `has_all`, those that may have bytes
  // which cannot be read stay: a later opening may read them. False: there is no room.
  [[nodiscard]] bool move_records_of(std::span<const std::byte> content, std::uint64_t first, bool has_all) {
    return core_.for_each_record(content, first, [&](place_word at, std::span<const std::byte> bytes) {
      const item i = item_of(at, bytes);
      if (!is_live(i) || (!has_all && !record_view(bytes).has_whole_value(core_.seed))) return true;
      if (!place(flash_stream::moved, bytes, i)) return false;
      if (i.space == bucket_space) suspect_keys_of(record_view(bytes));
      return true;
    });
  }
  // Describes a record on flash.
  [[nodiscard]] static item item_of(place_word at, std::span<const std::byte> bytes) {
    const record_view record(bytes);
    const std::uint8_t space = record.head().space;
    return {space, parts::base_of(space, record.key()), at, record.head().sequence, {}};
  }
  // Notes the suspect keys of a page that is moved. Costs a search for each listed key, and no flash.
  void suspect_keys_of(const record_view& page) {
    if (!page.has_whole_value(core_.seed)) return;
    const auto [bucket, page_number] = buckets<Medium, Device, Hash>::page_of_name(page.key());
    const auto space = static_cast<std::uint8_t>(bucket >> 32);
    const auto number = page_number;  // a lambda of C++20 cannot capture a structured binding in clang 14
    const std::string content(reinterpret_cast<const char*>(page.value().data()), page.value().size());
    buckets<Medium, Device, Hash>::for_each_key(content, [&](std::string_view key) {
      if (!core_.index.is_empty(parts::base_of(space, key))) return;
      const std::scoped_lock lock(suspects_mutex_);
      if (suspects_.size() >= most_suspects) return;  // the page is moved again some time
      suspects_.push_back({space, std::string(key), number});
      has_suspects_.store(true, std::memory_order_release);
    });
  }

  // Their records that could be read are on flash elsewhere.
  void free_emptied() {
    for (const auto& [number, is_whole] : emptied_) {
      if (core_.flash.valid(number) == 0) {
        core_.flash.free(number);  // (G3)
        core_.counts.collected.fetch_add(1, std::memory_order_relaxed);
        continue;
      }
      const std::uint32_t lost = lose(number);
      if (!is_whole) unread_.push_back({number, lost});
    }
    emptied_.clear();
  }
  // The records that were moved out of them are not on flash elsewhere.
  void keep_emptied() {
    for (const emptied& e : emptied_) core_.flash.close(e.number);
    emptied_.clear();
  }

  [[nodiscard]] bool is_live(const item& i) {
    const std::shared_lock lock(core_.lock_of(i.space, i.base));
    return core_.index.find_place(i.base, i.from).found;
  }

  static constexpr std::size_t most_suspects = 256;

  parts& core_;
  std::mutex suspects_mutex_;
  std::vector<suspect> suspects_;
  std::atomic<bool> has_suspects_{false};
  std::mutex mutex_;
  port<Device> port_;
  std::array<batch, flash_streams> batches_;
  std::vector<emptied> emptied_;  // superblocks whose live records are in the batch of moved ones, or on flash
  std::vector<given_up> unread_;
  std::uint64_t asked_ = 0;  // calls of take_back_readable since one found something
  bool keeps_all_ = false;
  std::uint32_t unreadable_ = 0;                    // superblocks that make_room could not read as a whole
  std::uint64_t no_room_at_ = ~std::uint64_t{0};    // used units when no room could be made
  std::uint64_t not_empty_at_ = ~std::uint64_t{0};  // used units when no superblock could be emptied
  std::vector<std::uint32_t> moved_;                // lines of records that the index leads to on flash now
};

}  // namespace pmlab::stores::detail::kv_ssd
