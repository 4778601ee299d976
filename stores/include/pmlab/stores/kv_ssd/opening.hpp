// Makes a key-value device, finds the one that is there, and refuses a medium and a flash that do not belong together.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/name.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>
#include <pmlab/stores/kv_ssd/moments.hpp>
#include <pmlab/stores/kv_ssd/options.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::stores::detail::kv_ssd {

// Fewer superblocks beyond the capacity are too few: three that are filled, one that is kept free, one to gain space.
inline constexpr std::uint32_t least_spare_superblocks = 5;

template <media::medium Medium, blocks::device Device>
class opening {
  using publication = typename Medium::publication;

 public:
  opening(Medium& medium, Device& device) : medium_(medium), device_(device), geometry_(device.shape()) {}

  // The root object of the device `name`, which is made if the medium has none. Nothing is changed in one that was
  // there: `moments::enter` begins its opening, when all else is known to be well.
  [[nodiscard]] state& root(std::string_view name, std::string_view layout, std::uint64_t version,
                            const kv_options& options, bool rebuilds = false) {
    constexpr std::size_t longest_name = media::root_name_limit - 2;
    check_name(name, longest_name, "a key-value device");
    word& at = *medium_.named_root(name, layout, version).word;
    if (rebuilds && at.load(std::memory_order_acquire) != 0)
      throw error(medium_.name() + " has the memory of a key-value device '" + std::string(name) + "'",
                  "open it; rebuild a device only in a pool without it");
    if (at.load(std::memory_order_acquire) == 0) make(at, options, rebuilds ? being_rebuilt : forming);
    state& made = *medium_.resolve(media::pointer<state>(at.load(std::memory_order_acquire)));
    check_geometry_of(made);
    check_shape_of(made);
    if (made.step.load(std::memory_order_acquire) == forming) {
      claim(made, options.format);
      made.step.store(guarded, std::memory_order_release);
      media::persist(medium_, made.step);  // (F2): (F1) < (F2), a device that is ready has its header
    }
    first_block_ = read_block();
    check_header(made, header_in(first_block_.bytes()));
    if (rebuilds) return made;
    if (made.step.load(std::memory_order_acquire) == being_rebuilt)
      throw error("the memory of the key-value device in " + medium_.name() + " was being rebuilt, and is not complete",
                  "remove the pool, and rebuild the device in a new one");
    moments(medium_, device_, made).check(first_block_.bytes());
    return made;
  }
  // The index may have checked words: releases before refuse the flash.
  [[nodiscard]] bool has_checked_words() const noexcept {
    return header_in(first_block_.bytes()).version >= flash_header::first_version_with_checked_words;
  }
  // The same of their names.
  [[nodiscard]] bool has_checked_names() const noexcept {
    return header_in(first_block_.bytes()).version >= flash_header::first_version_with_checked_names;
  }
  // The one of the flash, as `root` has read it.
  [[nodiscard]] blocks::buffer& first_block() noexcept { return first_block_; }
  // Whether the medium's memory and the flash are of one moment. std::nullopt: the memory is not complete, or belongs
  // to another device. Throws pmlab::error: the flash failed.
  [[nodiscard]] std::optional<bool> are_of_one_moment(std::string_view name, std::string_view layout,
                                                      std::uint64_t version) {
    if (!is_complete(medium_, name, layout, version)) return std::nullopt;
    const word& at = *medium_.named_root(name, layout, version).word;
    state& there = *medium_.resolve(media::pointer<state>(at.load(std::memory_order_acquire)));
    const blocks::buffer block = read_block();
    const flash_header h = header_in(block.bytes());
    if (!is_whole(h) || h.version > flash_header::current_version || !is_of(there, h)) return std::nullopt;
    return moments(medium_, device_, there).judge(block.bytes()) == moment_verdict::same;
  }
  // The flash was made, and its device was never opened. False: or it is no flash of a device. Throws pmlab::error: it
  // failed.
  [[nodiscard]] static bool was_made_only(Device& device) {
    const blocks::buffer block = blocks::read_block(device, 0, blocks::stream::manifest);
    const flash_header h = header_in(block.bytes());
    flash_moment m;
    std::memcpy(&m, block.data() + flash_moment::offset, sizeof m);
    return is_whole(h) && h.version != flash_header::first_version && h.version <= flash_header::current_version &&
           moment(m.word).number() == 0;
  }
  // The medium has the memory of the device `name`, and it is complete. False: it has none, or its making or rebuilding
  // was interrupted: nothing was acknowledged there.
  [[nodiscard]] static bool is_complete(Medium& medium, std::string_view name, std::string_view layout,
                                        std::uint64_t version) {
    const word& at = *medium.named_root(name, layout, version).word;
    if (at.load(std::memory_order_acquire) == 0) return false;
    const state& there = *medium.resolve(media::pointer<state>(at.load(std::memory_order_acquire)));
    const std::uint64_t step = there.step.load(std::memory_order_acquire);
    return step == ready || step == guarded;
  }
  // The index of a rebuilt device is complete, durably.
  void end_rebuilding(state& s) {
    s.step.store(guarded, std::memory_order_release);
    media::persist(medium_, s.step);  // (F3) after the index leads to all records
  }

  // `options` with the sizes and the identity that the flash was made with. Throws pmlab::error: it is no flash of a
  // key-value device.
  [[nodiscard]] kv_options options_of_flash(kv_options options) {
    const flash_header h = header_in(read_block().bytes());
    if (h.magic != flash_header::right_magic)
      throw error("device " + device_.name() + " is no flash of a key-value device: it has no header",
                  "name the flash that the device was made on");
    if (!has_right_checksum(h))
      throw error("block 0 of device " + device_.name() + " is damaged", "restore the flash from a copy");
    check_version(h);
    if (h.block_bytes != geometry_.block_bytes || h.blocks != geometry_.blocks)
      throw error("device " + device_.name() + " has another size than the flash it has the header of",
                  "restore the flash from a copy");
    options.identity = h.identity;
    options.unit_bytes = h.unit_bytes;
    options.superblock_bytes = h.superblock_bytes;
    return options;
  }

  // The shape that an existing device was made with.
  [[nodiscard]] static shape shape_of(const state& s) {
    const auto value = [](const word& w) { return static_cast<std::uint32_t>(w.load(std::memory_order_acquire)); };
    shape of;
    of.block_bytes = value(s.block_bytes);
    of.unit_bytes = value(s.unit_bytes);
    of.superblock_bytes = value(s.superblock_bytes);
    of.spare_superblocks = value(s.spare_superblocks);
    of.ring_lines = value(s.ring_lines);
    of.largest_value = value(s.largest_value);
    of.bucket_bytes = value(s.bucket_bytes);
    of.short_keys = (value(s.notes) & has_short_keys) != 0;
    const std::uint64_t bytes = s.blocks.load(std::memory_order_acquire) * of.block_bytes;
    of.superblocks = static_cast<std::uint32_t>((bytes - of.page_bytes()) / of.superblock_bytes);
    return of;
  }

 private:
  // The sizes of a new device. Throws pmlab::error for impossible ones.
  [[nodiscard]] shape choose(const kv_options& o) const {
    const auto text = [](std::uint64_t n) { return std::to_string(n); };
    if (!std::has_single_bit(o.unit_bytes) || o.unit_bytes < least_unit_bytes || o.unit_bytes > most_unit_bytes)
      throw error("an allocation unit of " + text(o.unit_bytes) + " bytes", "choose a power of two from 64 to 4096");
    if (o.largest_value > most_value_bytes)
      throw error("values of " + text(o.largest_value) + " bytes", "choose at most " + text(most_value_bytes));
    const std::size_t largest = record_bytes(most_key_bytes, o.largest_value);
    const std::size_t page = std::max<std::size_t>(geometry_.block_bytes, o.unit_bytes);
    if (!std::has_single_bit(o.superblock_bytes) || o.superblock_bytes < page || o.superblock_bytes < largest ||
        o.superblock_bytes > std::uint64_t{1} << 31)
      throw error("superblocks of " + text(o.superblock_bytes) + " bytes",
                  "choose a power of two of blocks that holds a record of " + text(largest) + " bytes, up to 2^31");
    if (o.bucket_bytes < least_bucket_bytes || o.bucket_bytes > o.superblock_bytes ||
        o.bucket_bytes > most_bucket_bytes)
      throw error("bucket pages of " + text(o.bucket_bytes) + " bytes",
                  "choose " + text(least_bucket_bytes) + " to 65536 bytes, at most a superblock");
    const std::size_t least_buffer = least_lines(largest, o.bucket_bytes) * media::cache_line_bytes;
    if (o.buffer_bytes < least_buffer || o.buffer_bytes > most_buffer_bytes)
      throw error("a write buffer of " + text(o.buffer_bytes) + " bytes",
                  "choose at least " + text(least_buffer) + " bytes, which is twice the largest record, up to 2^31");
    if (!(o.over_provisioning >= 0 && o.over_provisioning <= 10))
      throw error("over-provisioning of " + std::to_string(o.over_provisioning),
                  "give the flash beyond the capacity as a share of it, from 0 to 10");
    const std::uint64_t count = geometry_.bytes() < page ? 0 : (geometry_.bytes() - page) / o.superblock_bytes;
    const auto spare = std::max<std::uint64_t>(
        least_spare_superblocks, static_cast<std::uint64_t>(std::ceil(static_cast<double>(count) * o.over_provisioning /
                                                                      (1 + o.over_provisioning))));
    if (count < spare + 2 || count > std::uint64_t{1} << 31)
      throw error("device " + device_.name() + " has room for " + text(count) + " superblocks of " +
                      text(o.superblock_bytes) + " bytes",
                  "give at least " + text(spare + 2) + ", by a larger device or smaller superblocks");
    shape of;
    of.block_bytes = geometry_.block_bytes;
    of.unit_bytes = static_cast<std::uint32_t>(o.unit_bytes);
    of.superblock_bytes = static_cast<std::uint32_t>(o.superblock_bytes);
    of.superblocks = static_cast<std::uint32_t>(count);
    of.spare_superblocks = static_cast<std::uint32_t>(spare);
    of.ring_lines = static_cast<std::uint32_t>(o.buffer_bytes / media::cache_line_bytes);
    of.largest_value = static_cast<std::uint32_t>(o.largest_value);
    of.bucket_bytes = static_cast<std::uint32_t>(o.bucket_bytes);
    of.short_keys = o.short_keys;
    return of;
  }

  // `step`: forming, or being_rebuilt; a memory that is rebuilt is never one of an empty device, also after a crash.
  void make(word& at, const kv_options& options, std::uint64_t step) {
    const shape of = choose(options);
    publication change(medium_);
    auto* const made = media::create<state>(change);
    auto* const ring = static_cast<std::byte*>(
        change.allocate(std::size_t{of.ring_lines} * media::cache_line_bytes, media::cache_line_bytes));
    if (made == nullptr || ring == nullptr)
      throw error("no space in " + medium_.name() + " for the memory of a key-value device",
                  "make the pool larger, or the write buffer smaller");
    const store_identity identity = identity_or_drawn(options.identity);
    const auto put = [](word& w, std::uint64_t value) { w.store(value, std::memory_order_relaxed); };
    for (std::size_t i = 0; i < identity.size(); ++i) put(made->identity[i], identity[i]);
    put(made->ring, medium_.locate(ring).word());
    put(made->ring_lines, of.ring_lines);
    put(made->block_bytes, of.block_bytes);
    put(made->blocks, geometry_.blocks);
    put(made->unit_bytes, of.unit_bytes);
    put(made->superblock_bytes, of.superblock_bytes);
    put(made->spare_superblocks, of.spare_superblocks);
    put(made->largest_value, of.largest_value);
    put(made->bucket_bytes, of.bucket_bytes);
    put(made->notes, of.short_keys ? std::uint64_t{has_short_keys} : 0);
    made->notes.fetch_or(check_of_shape(*made), std::memory_order_relaxed);
    put(made->step, step);
    media::persist(medium_, *made);  // (M1): (M1) < (M2), the root leads to a whole object
    media::publish_store(change, at, medium_.locate(made).word());  // (M2)
    change.commit();
  }

  void check_geometry_of(const state& s) const {
    const std::uint64_t blocks = s.blocks.load(std::memory_order_acquire);
    const std::uint64_t bytes = s.block_bytes.load(std::memory_order_acquire);
    if (blocks == geometry_.blocks && bytes == geometry_.block_bytes) return;
    throw error("the key-value device in " + medium_.name() + " was made for a flash of " + std::to_string(blocks) +
                    " blocks of " + std::to_string(bytes) + " bytes, and device " + device_.name() + " has " +
                    std::to_string(geometry_.blocks) + " of " + std::to_string(geometry_.block_bytes),
                "open it with its own flash; a file that was truncated is lost");
  }

  // A page of keys has one key of any length at least.
  static constexpr std::size_t least_bucket_bytes = record_bytes(16, 1 + most_key_bytes);
  static constexpr std::size_t most_bucket_bytes = std::size_t{1} << 16;

  // Sizes and the place of the write buffer have a check. Devices of releases before have none: there those that lead
  // out of the pool, or to work without end, are noticed.
  void check_shape_of(const state& s) const {
    const auto value = [](const word& w) { return w.load(std::memory_order_acquire); };
    const std::uint64_t lines = value(s.ring_lines), superblock = value(s.superblock_bytes), unit = value(s.unit_bytes);
    const std::uint64_t largest_value = value(s.largest_value), bucket = value(s.bucket_bytes);
    bool is_possible = std::has_single_bit(unit) && unit >= least_unit_bytes && unit <= most_unit_bytes &&
                       std::has_single_bit(superblock) && superblock >= unit && superblock >= geometry_.block_bytes &&
                       superblock <= std::uint64_t{1} << 31 && largest_value <= most_value_bytes &&
                       bucket >= least_bucket_bytes && bucket <= superblock && bucket <= most_bucket_bytes &&
                       lines <= most_buffer_bytes / media::cache_line_bytes;
    if (is_possible) {
      const std::size_t largest = record_bytes(most_key_bytes, largest_value);
      const std::uint64_t superblocks = geometry_.bytes() / superblock;
      const media::pointer<std::byte> ring(value(s.ring));
      is_possible = largest <= superblock && lines >= least_lines(largest, bucket) &&
                    value(s.spare_superblocks) + 2 <= superblocks && are_possible_notes(s) && ring.word() != 0 &&
                    media::can_name(medium_, ring, lines * media::cache_line_bytes);
    }
    if (is_possible && value(s.step) == guarded) is_possible = checked_tail(value(s.ring_tail)).is_whole();
    if (is_possible) return;
    throw error("the memory of the key-value device in " + medium_.name() +
                    " is damaged: its sizes, or the place or the tail of its write buffer, cannot be",
                "restore the pool and the flash from a copy, or rebuild the memory from the flash");
  }

  [[nodiscard]] static bool are_possible_notes(const state& s) noexcept {
    const std::uint64_t notes = s.notes.load(std::memory_order_acquire);
    const std::uint64_t outlying = notes & has_outlying_slots, check = notes & ~std::uint64_t{all_notes};
    return (outlying == 0 || outlying == has_outlying_slots) && (check == 0 || check == check_of_shape(s));
  }

  // Lines of a write buffer that takes each operation.
  [[nodiscard]] static std::uint64_t least_lines(std::size_t largest_record, std::size_t bucket_bytes) noexcept {
    return 2 * (std::uint64_t{lines_for(largest_record)} + lines_for(bucket_bytes));
  }
  static constexpr std::uint64_t most_buffer_bytes = std::uint64_t{1} << 31;

  [[nodiscard]] blocks::buffer read_block() { return blocks::read_block(device_, 0, blocks::stream::manifest); }
  [[nodiscard]] static flash_header header_in(std::span<const std::byte> block) noexcept {
    flash_header header;
    std::memcpy(static_cast<void*>(&header), block.data(), sizeof header);
    return header;
  }
  [[nodiscard]] static bool has_right_checksum(const flash_header& h) noexcept {
    return is_checksum(h.checksum, &h, offsetof(flash_header, checksum));
  }
  [[nodiscard]] static bool is_of(const state& s, const flash_header& h) noexcept {
    return h.identity[0] == s.identity[0].load(std::memory_order_relaxed) &&
           h.identity[1] == s.identity[1].load(std::memory_order_relaxed);
  }

  [[nodiscard]] static bool is_whole(const flash_header& h) noexcept {
    return h.magic == flash_header::right_magic && has_right_checksum(h);
  }

  // Writes the header of a new device.
  void claim(state& s, bool format) {
    moments first(medium_, device_, s);
    const blocks::buffer old = read_block();
    const flash_header there = header_in(old.bytes());
    if (there.magic == flash_header::right_magic && !format) {
      if (!is_of(s, there))
        throw error("device " + device_.name() + " belongs to another key-value device",
                    "open that one with its own pool, or give the option format to lose its data");
      if (is_whole(there) && !first.is_of_making(old.bytes()))
        throw error("the memory of the key-value device in " + medium_.name() +
                        " is of the making of the device, an older moment than the flash " + device_.name(),
                    "restore both from one copy, or rebuild the memory from the flash in another pool");
    }
    flash_header header;
    for (std::size_t i = 0; i < header.identity.size(); ++i)
      header.identity[i] = s.identity[i].load(std::memory_order_relaxed);
    header.block_bytes = geometry_.block_bytes;
    header.blocks = geometry_.blocks;
    header.unit_bytes = s.unit_bytes.load(std::memory_order_relaxed);
    header.superblock_bytes = s.superblock_bytes.load(std::memory_order_relaxed);
    header.checksum = checksum(&header, offsetof(flash_header, checksum));
    blocks::buffer block(geometry_.block_bytes);
    std::memcpy(block.data(), &header, sizeof header);
    first.begin_making();
    first.put(block.bytes());
    blocks::synchronous(device_).write_durable(0, block.bytes(), blocks::stream::manifest);  // (F1)
  }

  void check_version(const flash_header& h) const {
    if (h.version < flash_header::first_version || h.version > flash_header::current_version)
      throw error("device " + device_.name() + " has version " + std::to_string(h.version) +
                      " of the layout, and this program reads versions " + std::to_string(flash_header::first_version) +
                      " to " + std::to_string(flash_header::current_version),
                  "open it with the release of pmlab that wrote it");
  }

  void check_header(const state& s, const flash_header& h) const {
    if (h.magic != flash_header::right_magic)
      throw error("device " + device_.name() + " is not the flash of the key-value device in " + medium_.name() +
                      ": it has no header",
                  "give the flash that this device was made on");
    if (!has_right_checksum(h))
      throw error("block 0 of device " + device_.name() + " is damaged", "restore the flash from a copy");
    check_version(h);
    if (is_of(s, h) && (s.unit_bytes.load(std::memory_order_acquire) != h.unit_bytes ||
                        s.superblock_bytes.load(std::memory_order_acquire) != h.superblock_bytes))
      throw error("the memory of the key-value device in " + medium_.name() +
                      " is damaged: its units and superblocks are not those that device " + device_.name() + " has",
                  "restore the pool and the flash from a copy, or rebuild the memory from the flash");
    if (!is_of(s, h))
      throw error(
          "device " + device_.name() + " is the flash of another key-value device than the one in " + medium_.name(),
          "give the flash that this device was made on");
  }

  Medium& medium_;
  Device& device_;
  blocks::geometry geometry_;
  blocks::buffer first_block_{};
};

}  // namespace pmlab::stores::detail::kv_ssd
