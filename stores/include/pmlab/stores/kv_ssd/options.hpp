// The options, results and figures of a key-value device.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::stores {

// Chosen when a device is made; one that is opened again has those it was made with.
struct kv_options {
  std::size_t unit_bytes = 1024;  // bytes of an allocation unit: records are padded to it. A power of two, 64 to 4096
  std::size_t superblock_bytes = std::size_t{4} << 20;  // a power of two; filled and collected as a whole
  double over_provisioning = 0.07;                      // flash beyond the capacity, as a share of it
  std::size_t buffer_bytes = std::size_t{16} << 20;     // the write buffer in the medium
  std::size_t largest_value = std::size_t{2} << 20;     // at most 2 MiB
  std::size_t bucket_bytes = 1024;                      // bytes of a page of an iterator bucket: 320 to 65536
  bool short_keys = false;                              // keys of 1 to 16 bytes as in NVMe, instead of 4 to 255
  // These two apply to this opening: overwrites change the index when they are moved to flash, not before; filters lie
  // over the tables that stand in for it. For measuring them, each can be switched off.
  bool local_table = true;
  bool bloom = true;  // see local_table
  // Makes an empty device on a flash that another one had. All of its data is lost.
  bool format = false;
  // The identity of the new device; zeros: chosen at random.
  std::array<std::uint64_t, 2> identity{};
};

// What a put is to do.
enum class kv_mode : std::uint8_t {
  post,          // adds the pair, or replaces the value
  update_only,   // replaces the value of a key that is there
  no_overwrite,  // adds a pair whose key is absent
  append,        // adds the bytes behind the value; the pair, if the key is absent
};

// The result of a put.
enum class kv_outcome : std::uint8_t {
  added,     // the key was absent
  replaced,  // the key was there, and has the new value
  exists,    // no_overwrite: the key is there; nothing was changed
  absent,    // update_only: the key is absent; nothing was changed
  full,      // no room, on flash or in the medium; nothing was changed
};

// The enumerator's name.
[[nodiscard]] constexpr std::string_view name_of(kv_outcome o) noexcept {
  constexpr std::array<std::string_view, 5> names{"added", "replaced", "exists", "absent", "full"};
  return names[static_cast<std::size_t>(o)];
}

// The keys of an iterator: those whose first four bytes, as a big-endian number, equal `pattern` in the bits of `mask`.
struct kv_prefix {
  std::uint32_t mask = 0;     // 0: all keys of the space
  std::uint32_t pattern = 0;  // no bit outside the mask

  // The first four bytes of a key as a big-endian number, with zeros where it has fewer.
  [[nodiscard]] static constexpr std::uint32_t first_of(std::string_view key) noexcept {
    std::uint32_t first = 0;
    for (std::size_t i = 0; i < 4; ++i) first = first << 8 | (i < key.size() ? static_cast<std::uint8_t>(key[i]) : 0U);
    return first;
  }
  // The key is one of these.
  [[nodiscard]] constexpr bool has(std::string_view key) const noexcept { return (first_of(key) & mask) == pattern; }
};

// What a walk over the keys of a prefix could not return, as it is damaged on flash.
struct kv_skipped {
  std::vector<std::string> keys{};  // listed keys whose records are damaged; a deleted one may be among them
  std::uint64_t pages = 0;          // pages of keys: those that they list were not met. `repair` lists them again

  // It passed over something.
  [[nodiscard]] bool any() const noexcept { return pages != 0 || !keys.empty(); }
};

// What a walk over all keys of a prefix has met of damage.
struct kv_damage {
  std::uint64_t keys = 0;        // keys that it visited, and whose records are damaged
  std::uint64_t pages = 0;       // damaged pages of keys
  std::uint64_t records = 0;     // damaged records that do not name their key, and that only these pages listed
  std::uint64_t most_bytes = 0;  // keys and values of these at most
};

// The bytes of a pair, key and value. Only the units of a damaged record are known; of one that is lost, nothing is
// there but the key.
struct kv_size {
  std::uint64_t least = 0;  // it has no fewer
  std::uint64_t most = 0;   // and no more: the same, if the record can be read
};

// The result of repairing a device.
struct kv_repaired {
  std::uint64_t damaged = 0;   // records that are damaged, and stay so until their keys are put again or erased
  std::uint64_t pages = 0;     // damaged pages of keys that were written again
  std::uint64_t relisted = 0;  // keys that these list
  std::uint64_t buckets = 0;   // damaged words of the directory, which lead to pages; they were written again
  std::uint64_t left = 0;      // damaged pages for which there was no room, or which changed meanwhile; and one if the
                               // directory lacks pages still: walks report that they miss some
};

// The result of rebuilding a device from its flash.
struct kv_rebuilt {
  std::uint64_t keys = 0;     // that are there now; deleted ones may be among them
  std::uint64_t pages = 0;    // pages of buckets
  std::uint64_t older = 0;    // records of which there was a newer one
  std::uint64_t deleted = 0;  // keys that are known to be deleted
  std::uint64_t damaged =
      0;  // records with a whole head and a damaged value: their keys have an older value, or are gone
  // Superblocks with blocks that cannot be read; records there are missed. They are not used before the next opening:
  // a rebuilding when the drive is well again finds more.
  std::uint64_t unreadable = 0;
  std::uint64_t relisted = 0;  // keys that were put again, as no page listed them
  // Such keys for which there was no room: iterators do not return them, and another rebuilding may take them for
  // deleted keys. To list one, erase others, then erase it and put it again.
  std::uint64_t unlisted = 0;
};

// Figures of a device.
struct kv_stats {
  std::uint64_t capacity_bytes = 0;  // for records with their padding
  std::uint64_t used_bytes = 0;      // bytes of these in live records: those of pairs and of bucket pages
  std::uint64_t lost_bytes =
      0;  // bytes of superblocks with a damaged record, which are not used again until the next opening
  std::uint64_t medium_bytes = 0;  // the device's memory: buffer, index, directory
  // Since the device was opened.
  std::uint64_t user_bytes = 0;       // keys and values of acknowledged puts: all that a host sends
  std::uint64_t record_bytes = 0;     // bytes of their records, with heads and padding
  std::uint64_t written_user = 0;     // bytes written to flash: of user records
  std::uint64_t written_moved = 0;    // by garbage collection
  std::uint64_t written_buckets = 0;  // bytes written for bucket pages
  std::uint64_t collected = 0;        // superblocks
  std::uint64_t unlisted = 0;       // keys that pages listed though they were deleted, and that were removed from there
  std::uint64_t damaged = 0;        // searches that met a damaged record, and what opening found; `check` names each
  std::uint64_t index_reads = 0;    // searches in the global index
  std::uint64_t index_changes = 0;  // changes of its words
  std::uint64_t deferred = 0;       // overwrites that changed a local table instead
  std::uint64_t local_hits = 0;     // searches that a local table answered
  std::uint64_t local_misses = 0;   // searches in a local table for a slot that it did not have
  std::uint64_t bloom_spared = 0;   // such searches that a filter spared

  // Share of the capacity.
  [[nodiscard]] double utilisation() const noexcept {
    return static_cast<double>(used_bytes) / static_cast<double>(capacity_bytes);
  }
  // Bytes on flash for each byte of a user's record that was written there; 0 before the first.
  [[nodiscard]] double internal_amplification() const noexcept {
    if (written_user == 0) return 0;
    return static_cast<double>(written_user + written_moved + written_buckets) / static_cast<double>(written_user);
  }
};

}  // namespace pmlab::stores
