// Opens the drives of a store, or makes a store on them.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/moment.hpp>
#include <pmlab/stores/tiered/drives.hpp>
#include <pmlab/stores/tiered/manifest.hpp>
#include <pmlab/stores/tiered/options.hpp>
#include <pmlab/stores/tiered/placement.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace pmlab::stores::detail::tiered {

// The fewest segments of the drive with the log, and of a drive with leaves only.
inline constexpr std::uint32_t least_segments = 8;
inline constexpr std::uint32_t least_leaf_segments = 4;
// The fewest segments of both drives: up to half of so few are kept for erasures and ageing; the others have data.
inline constexpr std::uint32_t least_segments_in_all = 18;
// Manifest bytes per segment, beside the first 512: it names each one of a full store, some twice while sets merge.
inline constexpr std::uint64_t manifest_bytes_of_a_segment = 16;

template <blocks::device Device>
[[nodiscard]] std::uint32_t block_bytes_of(const std::array<Device*, classes>& devices) {
  std::uint32_t largest = 0;
  for (Device* d : devices)
    if (d != nullptr) largest = std::max(largest, d->shape().block_bytes);
  return largest;
}

template <blocks::device Device>
[[nodiscard]] store_areas areas_of(const drive_header& h, const std::array<Device*, classes>& devices) {
  const placement_table table = table_of(static_cast<placement>(h.place), h.has_staging != 0);
  store_areas all{block_bytes_of(devices), static_cast<std::uint32_t>(h.segment_bytes), {}};
  for (std::size_t c = 0; c < classes; ++c) {
    if (devices[c] == nullptr) continue;
    const blocks::geometry g = devices[c]->shape();
    // The capacity drive is used by every store but one that is on the staging drive; the staging drive is used by a
    // policy that names it.
    const bool is_used = c == index_of(media_class::staging) ? table.log == media_class::staging
                                                             : table.leaf_values == media_class::capacity;
    all.drives[c] = {g.block_bytes, all.segment_bytes, c == index_of(table.log) ? h.manifest_bytes : 0,
                     is_used ? g.blocks : 0};
  }
  return all;
}

// The persistent memory of a store, as its opening asks for it: there is none.
struct no_memory_to_open {
  static constexpr bool is_there = false;
  void check_free(bool /*format*/) const noexcept {}
  void begin(const identity& /*store*/) const noexcept {}
  void check(const identity& /*store*/) const noexcept {}
  void end(const identity& /*store*/) const noexcept {}
};

template <blocks::device Device, class Memory>
[[nodiscard]] drive_header make_store(const tiered_options& options, const std::array<Device*, classes>& devices,
                                      std::optional<drive_opener<Device>>& staging, drive_opener<Device>& capacity,
                                      Memory&& memory) {
  memory.check_free(options.format);
  const placement_table table = table_of(options.place, staging.has_value());
  drive_header h;
  h.store = identity_or_drawn(options.identity);
  h.segment_bytes = options.segment_bytes;
  h.manifest_bytes = options.manifest_bytes;
  h.page_bytes = options.page_bytes;
  h.place = static_cast<std::uint32_t>(options.place);
  h.has_staging = staging ? 1 : 0;
  const store_areas where = areas_of(h, devices);
  const auto check_room = [&](media_class c, std::uint32_t least) {
    const std::uint32_t there = where.drives[index_of(c)].segments();
    if (there >= least) return;
    const std::string role(name_of(c == media_class::staging ? drive_role::staging : drive_role::capacity));
    throw error("a " + role + " drive of " + std::to_string(devices[index_of(c)]->shape().bytes()) +
                    " bytes has room for " + std::to_string(there) + " segments",
                "give it at least " + std::to_string(least) + ", or make segments smaller");
  };
  check_room(table.log, least_segments);
  check_room(table.leaf_values, least_leaf_segments);
  if (const std::uint32_t there = where.drives[0].segments() + where.drives[1].segments();
      there < least_segments_in_all)
    throw error("the drives have room for " + std::to_string(there) + " segments of " +
                    std::to_string(options.segment_bytes) + " bytes, of which a full store needs most for erasures",
                "give them at least " + std::to_string(least_segments_in_all) + " (" +
                    std::to_string(least_segments_in_all * options.segment_bytes) +
                    " bytes beside headers and manifests), or make segments smaller");
  const std::uint64_t all = std::uint64_t{where.drives[0].segments()} + where.drives[1].segments();
  if (const std::uint64_t least = round_up(512 + manifest_bytes_of_a_segment * all, where.block_bytes);
      h.manifest_bytes < least)
    throw error("manifests of " + std::to_string(h.manifest_bytes) + " bytes are too small for the " +
                    std::to_string(all) + " segments of the drives",
                "choose manifest_bytes of at least " + std::to_string(least) + ", or make segments larger");
  if (staging && staging->is_ready()) staging->write(h, drive_state::forming);  // a store that is replaced
  capacity.write(h, drive_state::forming);                                      // (H1)
  memory.begin(h.store);
  Device& with_manifest = *devices[index_of(table.log)];
  manifest<Device> first(where.drives[index_of(table.log)], where, h.store);
  blocks::synchronous<Device> drive(with_manifest);
  manifest_state empty;
  empty.leaves.emplace_back();
  if (memory.is_there) empty.replay.segment = in_memory;
  empty.replay.chain = mix_bits(h.store[0] ^ golden_ratio * h.store[1]);
  const std::optional<blocks::buffer> area = first.sealed(empty);
  if (!area) throw error("manifests are too small", "choose at least 512 bytes");
  first.clear(drive);                                  // behind (H1): the store that was here is given up
  first.write(drive, *area);                           // (H2)
  if (staging) staging->write(h, drive_state::ready);  // (H3)
  capacity.write(h, drive_state::ready);               // (H4)
  memory.end(h.store);
  return capacity.header();
}

// Throws pmlab::error: the drive has no header and a manifest. A crash while a store is made leaves none of these.
template <blocks::device Device>
void refuse_lost_header(Device& device, drive_role role) {
  if (has_manifest(device))
    throw error(
        "the " + std::string(name_of(role)) + " drive (" + device.name() +
            ") has the manifest of a tiered store, and its header is lost",
        "restore its first block from a copy; option `format` makes an empty store, and loses all that is there");
}

// The header of the store on these drives, which is made if there is none. No staging drive: nullptr.
template <blocks::device Device, class Memory = no_memory_to_open>
[[nodiscard]] drive_header open_drives(const tiered_options& options, const std::array<Device*, classes>& devices,
                                       Memory&& memory = Memory()) {
  check_options(options, block_bytes_of(devices), memory.is_there);
  std::optional<drive_opener<Device>> staging;
  if (devices[0] != nullptr) staging.emplace(*devices[0], drive_role::staging);
  drive_opener<Device> capacity(*devices[1], drive_role::capacity);
  const bool staging_is_blank = !staging || staging->is_blank();
  const bool is_unmade =
      capacity.is_blank() || (capacity.is_forming() && (staging || capacity.header().has_staging == 0));
  if (staging_is_blank && is_unmade && !options.format) {
    if (staging) refuse_lost_header(*devices[0], drive_role::staging);
    if (capacity.is_blank()) refuse_lost_header(*devices[1], drive_role::capacity);
  }
  if (options.read_only && staging_is_blank && is_unmade)
    throw error("there is no tiered store on these drives, and `read_only` makes none", "give the drives of the store");
  if (options.format || (staging_is_blank && is_unmade)) return make_store(options, devices, staging, capacity, memory);
  if (staging) staging->check();
  capacity.check();
  memory.check(capacity.header().store);
  if (!staging && capacity.header().has_staging != 0)
    throw error("the store has a staging drive, and it is missing", "give both drives of the store");
  if (staging) {
    if (staging->header().store != capacity.header().store)
      throw error("the staging and the capacity drive belong to different stores", "give both drives of one store");
    if (!staging->is_ready())
      throw error("the staging drive is being made", "give another drive, or use option `format`");
    if (!capacity.is_ready() && !options.read_only)
      capacity.write(staging->header(), drive_state::ready);  // (H4), a crash came before
  }
  if (!options.read_only) memory.end(capacity.header().store);
  return capacity.header();
}

}  // namespace pmlab::stores::detail::tiered
