// A drive profile: the parameters of the model of an SSD (blocks/flash/page_ftl.hpp).
//
// Plain data. docs/drive-profiles.md describes the parameters and how they were found. The profiles that come with
// pmlab are the files of bench/devices/drives/, which programs carry in themselves.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/device.hpp>

#include <bit>
#include <cstdint>
#include <string>

namespace pmlab::blocks {

// Times in nanoseconds on an idle drive, bandwidths in 10^6 bytes per second.
struct drive_profile {
  std::string name;         // name of the file, without .toml
  std::string description;  // one line

  // The side of the host. A link is a drive's connection and its controller; several links are several drives behind
  // one striped volume.
  std::uint64_t links = 1;
  std::uint64_t stripe_bytes = 65536;  // consecutive bytes of one link, if there are several
  double host_read_mb_per_s = 0;       // bandwidth of one link
  double host_write_mb_per_s = 0;      // the same
  bool half_duplex = false;            // reads and writes share the link, as on SATA
  double read_command_ns =
      0;  // the controller's time for a command: one after the other, so it bounds commands per second
  double write_command_ns = 0;   // also of a flush and a discard
  double read_overhead_ns = 0;   // more of a command's latency, which overlaps with other commands
  double write_overhead_ns = 0;  // the same

  // Flash. A die programs one unit at a time: the same page of all its planes.
  std::uint64_t channels = 0;
  std::uint64_t dies_per_channel = 0;  // dies of one channel
  std::uint64_t planes = 0;            // planes of one die
  std::uint64_t page_bytes = 0;        // bytes of a page of one plane; a power of two
  std::uint64_t pages_per_block = 0;   // pages of a block of one plane; fewer in a model of smaller capacity
  double read_ns = 0;                  // tR: a page from the cells to the die's register
  double program_ns = 0;               // tPROG of a unit
  double erase_ns = 0;                 // tERASE of a block of all planes
  double suspend_ns = 0;               // to suspend a program for a read; 0: the read waits until the program has ended
  double channel_mb_per_s = 0;         // bandwidth of one channel

  // The translation layer.
  std::uint64_t capacity_bytes = 0;      // capacity of the drive that the profile describes
  double over_provisioning = 0;          // flash beyond the capacity, as a share of the capacity
  std::uint64_t mapping_unit_bytes = 0;  // smallest piece that moves by itself; smaller writes read the rest of it
  std::uint64_t buffer_bytes = 0;        // writes that are not programmed yet
  bool capacitor = true;                 // the buffer survives a power failure: a flush has nothing to do
  double flush_overhead_ns = 0;          // without a capacitor: writing the map, after the buffer
  std::uint64_t streams = 1;             // superblocks that are filled at the same time by writes of the host
  std::uint64_t atomic_bytes = 0;        // blocks::geometry

  // The command processor of a key-value SSD (blocks/flash/pair_processor.hpp); zeros: a drive of blocks.
  double pair_command_ns = 0;     // time of a command: one after the other, with the search of the index
  double pair_replace_ns = 0;     // more of a put that replaces a record
  double pair_write_byte_ns = 0;  // time of each byte of a value from the host
  double pair_read_byte_ns = 0;   // time of each byte of a value to the host

  // It has commands of keys and values.
  [[nodiscard]] bool is_key_value() const noexcept { return pair_command_ns > 0; }

  // The bytes that one program command of a die writes.
  [[nodiscard]] std::uint64_t unit_bytes() const noexcept { return page_bytes * planes; }
  // The number of dies of all channels.
  [[nodiscard]] std::uint64_t dies() const noexcept { return channels * dies_per_channel; }
};

// The geometry of a drive of this profile with `bytes` bytes, for the device that holds its bytes.
[[nodiscard]] inline geometry shape_of(const drive_profile& profile, std::uint64_t bytes,
                                       std::uint32_t block_bytes = 4096) {
  return {.blocks = bytes / block_bytes,
          .block_bytes = block_bytes,
          .atomic_bytes = static_cast<std::uint32_t>(profile.atomic_bytes),
          .volatile_cache = !profile.capacitor};
}

namespace detail {

[[noreturn]] inline void impossible(const drive_profile& profile, const std::string& what, const std::string& remedy) {
  throw error("drive profile '" + profile.name + "': " + what, remedy);
}

}  // namespace detail

// Throws pmlab::error if a drive of this profile is impossible: a size that is no power of two, a mapping unit that
// does not fit, no flash beyond the capacity, a buffer that holds too little to fill a unit, a bandwidth of 0.
inline void check_drive(const drive_profile& profile) {
  using detail::impossible;
  const auto text = [](std::uint64_t value) { return std::to_string(value); };
  if (profile.links == 0 || profile.channels == 0 || profile.dies_per_channel == 0 || profile.planes == 0 ||
      profile.pages_per_block == 0 || profile.streams == 0)
    impossible(profile, "has none of: links, channels, dies_per_channel, planes, pages_per_block or streams",
               "give at least 1 of each");
  if (!std::has_single_bit(profile.page_bytes) || profile.page_bytes < least_block_bytes)
    impossible(profile, "page_bytes is " + text(profile.page_bytes), "give a power of two from 512, for example 16384");
  if (!std::has_single_bit(profile.mapping_unit_bytes) || profile.mapping_unit_bytes < least_block_bytes ||
      profile.mapping_unit_bytes > 32768)
    impossible(profile, "mapping_unit_bytes is " + text(profile.mapping_unit_bytes),
               "give a power of two from 512 to 32768");
  if (profile.unit_bytes() % profile.mapping_unit_bytes != 0)
    impossible(profile,
               "mapping_unit_bytes (" + text(profile.mapping_unit_bytes) + ") does not divide page_bytes * planes (" +
                   text(profile.unit_bytes()) + ")",
               "a die programs whole mapping units: make pages larger or mapping units smaller");
  if (!(profile.over_provisioning >= 0.01 && profile.over_provisioning <= 10))
    impossible(profile, "over_provisioning is " + std::to_string(profile.over_provisioning),
               "give the flash beyond the capacity as a share of it, from 0.01 to 10: without any, nothing can be "
               "overwritten");
  if (profile.buffer_bytes < (profile.streams + 1) * profile.unit_bytes())
    impossible(profile,
               "buffer_bytes is " + text(profile.buffer_bytes) + ", too little for " + text(profile.streams) +
                   " streams with units of " + text(profile.unit_bytes()) + " bytes",
               "give at least " + text((profile.streams + 1) * profile.unit_bytes()));
  if (profile.links > 1 &&
      (profile.stripe_bytes < profile.mapping_unit_bytes || profile.stripe_bytes % profile.mapping_unit_bytes != 0))
    impossible(profile, "stripe_bytes is " + text(profile.stripe_bytes),
               "give a multiple of mapping_unit_bytes (" + text(profile.mapping_unit_bytes) + ")");
  if (!(profile.host_read_mb_per_s > 0 && profile.host_write_mb_per_s > 0 && profile.channel_mb_per_s > 0))
    impossible(profile, "a bandwidth is 0", "give host_read_mb_per_s, host_write_mb_per_s and channel_mb_per_s");
  if (!(profile.program_ns > 0 && profile.read_ns > 0))
    impossible(profile, "read_ns or program_ns is 0", "give the times of the flash");
  if (profile.capacity_bytes < profile.mapping_unit_bytes)
    impossible(profile, "capacity_bytes is " + text(profile.capacity_bytes), "give the capacity of the drive");
}

}  // namespace pmlab::blocks
