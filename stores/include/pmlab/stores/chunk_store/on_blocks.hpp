// The container of a chunk store without persistent memory: its records and volumes lie in a region of the drive.
//
//   block 0   header: what the region is
//   then      index blocks, two places each: first for volumes, then for records
//   then      the chunks' data
//
// An index block changes as a whole: the key, bits and ring of a record, and all entries of a group, in one write. So a
// record without a key is all zeros, and opening corrects nothing but volumes that were being removed.
//
// Order:
//   (F1) all index blocks are empty, durable   (F2) the header says that they are there
//   (F1) < (F2): a store that is opened has all of its index blocks.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/chunk_table.hpp>
#include <pmlab/stores/chunk_store/drive_header.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/index_region.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/session.hpp>
#include <pmlab/stores/moment.hpp>

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// In block 0 of a drive with records, behind the drive_header, whose version is 2.
struct region_header {
  static constexpr std::uint64_t version_of_drive = 2;

  std::uint32_t state = 0;  // forming or ready
  std::uint32_t ring = 0;
  std::uint32_t volume_blocks = 0;  // index blocks
  std::uint32_t record_blocks = 0;  // index blocks
  std::uint64_t checksum = 0;       // checksum of all before

  [[nodiscard]] std::uint64_t right_checksum() const noexcept {
    return pmlab::checksum(this, offsetof(region_header, checksum));
  }
};
static_assert(sizeof(region_header) == 24 && std::is_trivially_copyable_v<region_header>);

// Thread safety: as the records of a store on memory; volumes: the caller has the lock of volumes.
template <blocks::device Device>
class records_in_region {
 public:
  // The medium of the words that a record consists of.
  using medium_type = media::dram;
  // A change is durable when it is settled, not when it is made.
  static constexpr bool settles_at_once = false;
  // A write that failed may be on the drive nevertheless, until another one of its block succeeds.
  static constexpr bool may_be_unsure = true;
  // A record changes as a whole.
  static constexpr bool changes_as_a_whole = true;
  // There is no room for maps: a full ring is merged by copy.
  static constexpr bool has_maps = false;
  // Opening reads the region as a whole.
  static constexpr bool answers_at_once = false;
  static constexpr bool recovers_in_parallel = false;

  // Opens the records on `device`, or makes empty ones. `shape` is what a new store is to have, and then what it has.
  records_in_region(Device& device, free_map& free, chunk_shape& shape, const store_identity& identity, bool format)
      : device_(device),
        geometry_(device.shape()),
        header_(open_header(shape, identity, format)),
        shape_(shape),
        region_(device, layout(), free),
        session_(device) {
    if (header_.region.state == forming) {
      region_.format();  // (F1)
      header_.region.state = ready;
      write_header(header_);  // (F2)
    }
    session_.read();
    region_.load(geometry_.unit_bytes() >= geometry_.block_bytes, session_.closed_at());
    find_records();
    session_.begin();
  }
  records_in_region(const records_in_region&) = delete;
  records_in_region& operator=(const records_in_region&) = delete;
  // A closing leaves no content of a write that failed. Where the drive refuses that, there is none: the store looks as
  // after a crash.
  ~records_in_region() {
    try {
      if (region_.make_all_sure()) session_.end(region_.writes());
    } catch (const std::exception&) {
      // No closing, without DRAM.
    }
  }

  [[nodiscard]] medium_type& medium() noexcept { return words_; }
  [[nodiscard]] std::string name() const { return "device " + device_.name(); }
  // The first block of the drive that is no part of the region.
  [[nodiscard]] std::uint64_t first_data_block() const noexcept { return region_.layout().end(); }
  // The bytes of DRAM.
  [[nodiscard]] std::uint64_t bytes() const { return region_.dram_bytes() + table_.bytes(); }

  // ---- level 1

  // The record that has this chunk, or is to have it.
  [[nodiscard]] record* find(std::uint64_t key) {
    const std::optional<std::uint32_t> number = table_.find(key);
    return number ? &at(*number) : nullptr;
  }
  [[nodiscard]] bool enter(std::uint64_t key, const record& r) {
    table_.set(key, number_of(r));
    return true;
  }
  void leave(std::uint64_t key, const record& r) noexcept { table_.erase(key, number_of(r)); }
  // Calls visit(key, record).
  template <class Visit>
  void for_each_entry(Visit&& visit) {
    table_.for_each([&](std::uint64_t key, std::uint32_t number) { visit(key, at(number)); });
  }

  // ---- records. The address of a record is where its durable words are.

  [[nodiscard]] record* take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) {
      if (unused_ == records()) return nullptr;
      // Giving a record back must not fail.
      if (free_.capacity() <= unused_) free_.reserve(2 * std::size_t{unused_} + 1);
      return &at(unused_++);
    }
    const std::uint32_t number = free_.back();
    free_.pop_back();
    return &at(number);
  }
  // REQUIRES: its newest words are zeros.
  void give(record& r) noexcept {
    const std::scoped_lock lock(mutex_);
    free_.push_back(number_of(r));
  }
  // Calls visit(record&) for every record that may have been used.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (std::uint32_t i = 0; i < unused(); ++i) visit(at(i));
  }
  // Calls visit(walk); walk(f) calls f(record&) for every record that may have been used: they are one part.
  template <class Visit>
  void for_each_part(unsigned /*threads*/, Visit&& visit) {
    visit([&](auto&& each) { for_each(each); });
  }

  // While it is held: the words of this record stay as they are, but for the owner's changes.
  [[nodiscard]] auto guard(const record& r) const { return region_.guard(block_of(r)); }
  // REQUIRE the guard of the record:
  [[nodiscard]] record& newest(record& r) noexcept { return in(region_.newest(block_of(r)), r); }
  // `most_held`: extents that the owner of the change holds if it fails. Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] record& edit(record& r, std::uint32_t most_held) { return in(region_.edit(block_of(r), most_held), r); }
  void add(record& r, index_change& change, std::uint32_t most_held) noexcept {
    region_.add(block_of(r), change, most_held);
  }
  [[nodiscard]] bool is_sure(const record& r) const noexcept { return region_.is_sure(block_of(r)); }
  void hold(const record& r, extent e, std::uint64_t era) noexcept { region_.hold(block_of(r), e, era); }
  template <class Visit>
  void for_each_held(Visit&& visit) const {
    region_.for_each_held(visit);
  }

  // Makes all newest words of the record zeros.
  void clear_newest(record& r) { std::memset(static_cast<void*>(&edit(r, 0)), 0, record_bytes(shape_.ring)); }

  // ---- REQUIRE that no guard is held:

  void drive_all() { region_.drive_all(); }
  void wait_for(const index_change& change) { region_.wait_for(change); }
  void settle(const index_change& change) { region_.settle(change); }

  // The drive has no other content of the record's block than the newest durable one; of any block. False: it refuses
  // the write that would make that so.
  [[nodiscard]] bool make_sure(const record& r) { return region_.make_sure(block_of(r)); }
  [[nodiscard]] bool make_all_sure() { return region_.make_all_sure(); }
  // The number of the index block that has the record.
  [[nodiscard]] std::uint32_t index_block_of(const record& r) const noexcept { return block_of(r); }

  // ---- volumes

  [[nodiscard]] std::uint32_t volumes() const noexcept {
    return std::min(most_volumes, header_.region.volume_blocks * slots_of_block());
  }
  [[nodiscard]] const volume_slot& volume(std::uint32_t i) const noexcept {
    return const_cast<records_in_region*>(this)->slot(region_.current(i / slots_of_block()), i);
  }
  [[nodiscard]] volume_state state_of_volume(std::uint32_t i) const {
    const auto guard = region_.guard(i / slots_of_block());
    return static_cast<volume_state>(volume(i).state.load(std::memory_order_acquire));
  }
  // change(volume_slot&), durable on return. Throws pmlab::error if the drive fails: the volume is unchanged, but
  // unsure.
  template <class Change>
  void change_volume(std::uint32_t i, Change&& change) {
    index_change c;
    {
      const std::uint32_t block = i / slots_of_block();
      const auto guard = region_.guard(block);
      change(slot(region_.edit(block), i));
      region_.add(block, c);
    }
    region_.settle(c);
    unsure_volumes_[i] = !c.succeeded();
    if (!c.succeeded())
      throw error(name() + " failed: a volume cannot be changed",
                  device_.failure().empty() ? "check the drive" : device_.failure());
  }
  // Makes sure that the drive has the volume as it is, where a change of it had failed. False: the drive refuses that.
  [[nodiscard]] bool make_volume_sure(std::uint32_t i) noexcept {
    try {
      if (unsure_volumes_[i]) unsure_volumes_[i] = !region_.make_sure(i / slots_of_block());
    } catch (const std::exception&) {
      // It stays unsure, without DRAM.
    }
    return !unsure_volumes_[i];
  }

 private:
  struct headers {
    drive_header drive;
    region_header region;
  };

  // Fewer on a drive that is too small for so many.
  static constexpr std::uint64_t least_blocks_for_all_volumes = 4096;

  [[nodiscard]] std::uint32_t payload_bytes() const noexcept {
    return geometry_.block_bytes - static_cast<std::uint32_t>(sizeof(index_block_head));
  }
  [[nodiscard]] std::uint32_t slots_of_block() const noexcept {
    return payload_bytes() / static_cast<std::uint32_t>(sizeof(volume_slot));
  }
  [[nodiscard]] std::uint32_t records_of_block(std::uint32_t ring) const noexcept {
    return payload_bytes() / static_cast<std::uint32_t>(record_bytes(ring));
  }
  [[nodiscard]] std::uint32_t records() const noexcept {
    return header_.region.record_blocks * records_of_block(header_.region.ring);
  }
  [[nodiscard]] std::uint32_t unused() const {
    const std::scoped_lock lock(mutex_);
    return unused_;
  }
  [[nodiscard]] index_layout layout() const noexcept {
    return {geometry_.block_bytes, 1, header_.region.volume_blocks + header_.region.record_blocks,
            header_.drive.identity};
  }

  // ---- places

  [[nodiscard]] record& at(std::uint32_t number) noexcept {
    const std::uint32_t each = records_of_block(shape_.ring);
    std::byte* const block = region_.current(header_.region.volume_blocks + number / each);
    return *reinterpret_cast<record*>(block + number % each * record_bytes(shape_.ring));
  }
  [[nodiscard]] std::uint32_t block_of(const record& r) const noexcept {
    return static_cast<std::uint32_t>(
        static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&r) - region_.current(0)) / payload_bytes());
  }
  [[nodiscard]] std::uint32_t number_of(const record& r) const noexcept {
    const std::uint32_t block = block_of(r);
    const auto within = static_cast<std::size_t>(reinterpret_cast<const std::byte*>(&r) - region_.current(block));
    return (block - header_.region.volume_blocks) * records_of_block(shape_.ring) +
           static_cast<std::uint32_t>(within / record_bytes(shape_.ring));
  }
  // The record of another content of its block.
  [[nodiscard]] record& in(std::byte* content, record& r) noexcept {
    return *reinterpret_cast<record*>(content + (reinterpret_cast<std::byte*>(&r) - region_.current(block_of(r))));
  }
  [[nodiscard]] volume_slot& slot(std::byte* content, std::uint32_t i) noexcept {
    return reinterpret_cast<volume_slot*>(content)[i % slots_of_block()];
  }
  [[nodiscard]] volume_slot& slot(const std::byte* content, std::uint32_t i) noexcept {
    return slot(const_cast<std::byte*>(content), i);
  }

  // ---- opening

  [[nodiscard]] headers open_header(chunk_shape& shape, const store_identity& identity, bool format) {
    check_room(device_, shape);
    headers h = read_header();
    const bool is_store = h.drive.magic == drive_header::right_magic;
    if (is_store && !format) {
      check(h);
      if (h.region.state == ready) {
        shape.blocks = static_cast<std::uint32_t>(h.drive.chunk_blocks);
        shape.ring = h.region.ring;
        return h;
      }
    }
    h = headers{};
    h.drive.version = region_header::version_of_drive;
    h.drive.identity = identity_or_drawn(identity);
    h.drive.block_bytes = geometry_.block_bytes;
    h.drive.chunk_blocks = shape.blocks;
    h.drive.blocks = geometry_.blocks;
    h.region.state = forming;
    h.region.ring = shape.ring;
    choose_sizes(h, shape);
    write_header(h);
    return h;
  }

  void choose_sizes(headers& h, const chunk_shape& shape) const {
    const auto blocks_for = [](std::uint64_t count, std::uint64_t each) { return (count + each - 1) / each; };
    // A chunk has a base extent, so there are no more of them.
    const std::uint64_t chunks = geometry_.blocks / shape.blocks;
    const std::uint64_t volumes =
        geometry_.blocks < least_blocks_for_all_volumes ? 1 : blocks_for(most_volumes, slots_of_block());
    const std::uint64_t of_records =
        records_of_block(shape.ring) == 0 ? geometry_.blocks : blocks_for(chunks, records_of_block(shape.ring));
    const std::uint64_t region = 1 + index_layout::places * (volumes + of_records);
    if (region + shape.blocks > geometry_.blocks)
      throw error(
          name() + " has " + std::to_string(geometry_.blocks) + " blocks",
          "a chunk store that has its records there needs " + std::to_string(region + shape.blocks) + " for one chunk");
    h.region.volume_blocks = static_cast<std::uint32_t>(volumes);
    h.region.record_blocks = static_cast<std::uint32_t>(of_records);
  }

  void check(const headers& h) const {
    check_checksum(name(), h.drive);
    if (h.drive.version == drive_header::current_version)
      throw error(name() + " belongs to a chunk store that has its records in a pool",
                  "open that store with its pool, or give the option format to lose its data");
    if (h.drive.version == drive_header::version_with_pairs)
      throw error(name() + " belongs to a chunk store that has its records on a key-value device",
                  "open that store with this device, or give the option format to lose its data");
    check_version(name(), h.drive, region_header::version_of_drive);
    if (!is_checksum(h.region.checksum, &h.region, offsetof(region_header, checksum)))
      throw error("block 0 of " + name() + " is damaged", "restore the drive from a copy");
    check_size("the chunk store on " + name(), h.drive.blocks, h.drive.block_bytes, "it", geometry_);
  }

  [[nodiscard]] headers read_header() {
    // Block 1 is an index block, if this is a store whose header was lost. With the header the size of its blocks is
    // lost, and a file may have chosen another one: each is possible.
    const std::uint64_t enough = blocks::most_block_bytes + sizeof(index_block_head);
    const std::uint64_t some = std::min(geometry_.blocks, (enough + geometry_.block_bytes - 1) / geometry_.block_bytes);
    blocks::buffer first(some * geometry_.block_bytes);
    blocks::synchronous(device_).read(0, first.bytes(), blocks::stream::manifest);
    headers h;
    std::memcpy(static_cast<void*>(&h.drive), first.data(), sizeof h.drive);
    std::memcpy(static_cast<void*>(&h.region), first.data() + sizeof h.drive, sizeof h.region);
    bool has_index = false;
    for (std::size_t at = blocks::least_block_bytes;
         at <= blocks::most_block_bytes && at + sizeof(index_block_head) <= first.size(); at *= 2)
      has_index |= head_of(first.bytes().subspan(at)).magic == index_block_head::right_magic;
    if (h.drive.magic != drive_header::right_magic && has_index)
      throw error("block 0 of " + name() + " is damaged: a chunk store's index follows it",
                  "restore the drive from a copy, or overwrite its first 128 KiB to lose the store");
    return h;
  }

  void write_header(headers& h) {
    h.drive.checksum = checksum_of(h.drive);
    h.region.checksum = h.region.right_checksum();
    blocks::buffer block(geometry_.block_bytes);
    std::memcpy(block.data(), &h.drive, sizeof h.drive);
    std::memcpy(block.data() + sizeof h.drive, &h.region, sizeof h.region);
    blocks::synchronous(device_).write_durable(0, block.bytes(), blocks::stream::manifest);
  }

  // Names the records that have a chunk, and lists the others below them.
  void find_records() {
    for (std::uint32_t i = 0; i < records(); ++i)
      if (at(i).key.load(std::memory_order_acquire) != 0) unused_ = i + 1;
    free_.reserve(unused_);
    for (std::uint32_t i = unused_; i > 0; --i) {
      const std::uint64_t key = at(i - 1).key.load(std::memory_order_acquire);
      if (key == 0) {
        free_.push_back(i - 1);
        continue;
      }
      if (table_.find(key))
        throw error("the index on " + name() + " is damaged: two records of one chunk",
                    "restore the drive from a copy");
      table_.set(key, i - 1);
    }
  }

  Device& device_;
  blocks::geometry geometry_;
  headers header_;
  chunk_shape shape_;
  index_region<Device> region_;
  session<Device> session_;
  chunk_table table_;
  media::dram words_;
  mutable std::mutex mutex_;         // guards these
  std::vector<std::uint32_t> free_;  // numbers below `unused_`
  std::uint32_t unused_ = 0;         // records from here on were never used
  std::bitset<most_volumes> unsure_volumes_;
};

}  // namespace pmlab::stores::detail::chunk_store
