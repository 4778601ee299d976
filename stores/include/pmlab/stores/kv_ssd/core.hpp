// The parts of a key-value device that its operations and its garbage collection share, and how records are read.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/chains.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>
#include <pmlab/stores/kv_ssd/options.hpp>
#include <pmlab/stores/kv_ssd/port.hpp>
#include <pmlab/stores/kv_ssd/superblocks.hpp>
#include <pmlab/stores/kv_ssd/write_buffer.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::stores {

// A record that the device must have is damaged: nothing of it was returned. Other keys are not affected. Until it is
// put again or erased, the key counts as one that is there.
class kv_damaged : public error {
 public:
  using error::error;
};

// A value is larger than the device's largest one; also one that an append would make.
class kv_too_large : public error {
 public:
  using error::error;
};

namespace detail::kv_ssd {

// The sizes of a device.
struct shape {
  std::uint32_t block_bytes = 0;
  std::uint32_t unit_bytes = 0;
  std::uint32_t superblock_bytes = 0;
  std::uint32_t superblocks = 0;
  std::uint32_t spare_superblocks = 0;
  std::uint32_t ring_lines = 0;
  std::uint32_t largest_value = 0;
  std::uint32_t bucket_bytes = 0;  // bytes of a whole record of a bucket page
  bool short_keys = false;

  [[nodiscard]] std::uint32_t units() const noexcept { return superblock_bytes / unit_bytes; }
  // Writes begin and end at multiples of this.
  [[nodiscard]] std::uint32_t page_bytes() const noexcept { return std::max(block_bytes, unit_bytes); }
  [[nodiscard]] std::uint32_t units_for(std::size_t bytes) const noexcept {
    return static_cast<std::uint32_t>(pieces_for(bytes, unit_bytes));
  }
  // The byte of the device at which a unit begins: after the header.
  [[nodiscard]] std::uint64_t byte_of(std::uint64_t unit) const noexcept { return page_bytes() + unit * unit_bytes; }
  [[nodiscard]] std::uint64_t capacity_units() const noexcept {
    return std::uint64_t{superblocks - spare_superblocks} * units();
  }
};

struct default_hash {
  std::uint64_t operator()(std::uint8_t space, std::string_view key) const noexcept {
    return hash_of_bytes(key.data(), key.size(), std::uint64_t{space} + 1);
  }
};

// One of the index managers: keys are spread over them by their hash. Its lock is of the chains, and of the records
// that they lead to: a reader holds it while it reads the record, so a record that no word leads to any more has no
// reader.
struct manager {
  std::shared_mutex mutex;
};

struct counters {
  std::atomic<std::uint64_t> user_bytes{0};                            // keys and values of acknowledged puts
  std::atomic<std::uint64_t> user_units{0};                            // units of their records
  std::array<std::atomic<std::uint64_t>, flash_streams> programmed{};  // units, with padding
  std::atomic<std::uint64_t> collected{0};                             // superblocks
  std::atomic<std::uint64_t> unlisted{0};                              // deleted keys that a page listed
  std::atomic<std::uint64_t> damaged{0};                               // searches that met a damaged record
};

// The table that has the words of the index: that of the hash, if it brings one.
template <media::medium Medium, class Hash>
struct index_of {
  using type = indexes::cceh<Medium>;
};
template <media::medium Medium, class Hash>
requires requires { typename Hash::template index<Medium>; }
struct index_of<Medium, Hash> {
  using type = typename Hash::template index<Medium>;
};

// For a message: the key, with bytes that are no printable characters in hexadecimal.
[[nodiscard]] inline std::string name_of_record(std::uint8_t space, std::string_view key) {
  constexpr std::string_view digits = "0123456789abcdef";
  if (space == bucket_space) return "a page of keys";
  std::string text = "key '";
  for (const char c : key) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text += "\\x";
      text += digits[byte / 16];
      text += digits[byte % 16];
    }
  }
  return text + "' of key space " + std::to_string(space);
}

template <media::medium Medium, blocks::device Device, class Hash>
struct core {
  using index_chains = chains<Medium, typename index_of<Medium, Hash>::type>;

  core(Medium& m, Device& d, state& root, const shape& of, std::string_view index_name, const kv_options& options)
      : medium(m),
        device(d),
        sizes(of),
        seed(root.identity[0].load(std::memory_order_relaxed)),
        buffer(m.template resolve<std::byte>(media::pointer<std::byte>(root.ring.load(std::memory_order_relaxed))),
               of.ring_lines),
        flash(of.superblocks, of.units()),
        index(m, index_name, root.notes, options.local_table, options.bloom),
        all_ports(d) {}

  [[nodiscard]] static std::uint64_t base_of(std::uint8_t space, std::string_view key) noexcept {
    return base_of_hash(Hash{}(space, key), space == bucket_space);
  }
  [[nodiscard]] std::shared_mutex& lock_of(std::uint8_t /*space*/, std::uint64_t base) noexcept {
    return managers[manager_of(base)].mutex;
  }

  // Words of the index. `sequence`: of the record that is there.
  [[nodiscard]] place_word on_flash(std::uint64_t unit, std::uint64_t units, std::uint64_t sequence) const noexcept {
    return place_word::on_flash(unit, units, sequence, checks_words);
  }
  [[nodiscard]] place_word in_ring(std::uint64_t line, std::uint64_t units, std::uint64_t sequence) const noexcept {
    return place_word::in_ring(line, units, sequence, checks_words);
  }
  // Opening: the slot's key has lost its record.
  void lose(std::uint64_t slot) { index.lose(slot, place_word::lost(checks_words)); }

  [[noreturn]] void damaged(place_word at, std::uint64_t base) const {
    damaged(at, "a key with hash " + std::to_string(base), "restore the key from a copy");
  }
  // The same, of a key that is known.
  [[noreturn]] void damaged(place_word at, std::uint8_t space, std::string_view key) const {
    damaged(at, name_of_record(space, key),
            space == bucket_space ? "repair the device: the keys of the page are listed again"
                                  : "erase the key, or put it again from a copy");
  }
  [[noreturn]] void damaged(place_word at, const std::string& of, const char* remedy) const {
    const std::string place =
        !can_be(at) ? "" : std::string(at.is_in_ring() ? " at line " : " at unit ") + std::to_string(at.address());
    throw kv_damaged("the record" + place + " of device " + device.name() + ", of " + of + ", is damaged", remedy);
  }

  // The ring or the flash has this place. A word that is damaged, or lost, leads to none.
  [[nodiscard]] bool can_be(place_word at) const noexcept {
    if (at.units() == 0 || !at.is_whole()) return false;
    if (at.is_in_ring()) return at.address() < sizes.ring_lines;
    const std::uint64_t last = at.address() + at.units() - 1;
    return last < std::uint64_t{sizes.superblocks} * sizes.units() &&
           flash.number_of(at.address()) == flash.number_of(last);
  }
  // Units that the record of a word is counted with.
  [[nodiscard]] std::uint32_t units_of(place_word at) const noexcept { return can_be(at) ? at.units() : 0; }

  // Bytes that `load` reads of a record on flash.
  [[nodiscard]] std::size_t needed_of(place_word at, bool whole) const noexcept {
    const std::size_t room = std::size_t{at.units()} * sizes.unit_bytes;
    return whole ? room : std::min(room, sizeof(record_head) + most_key_bytes);
  }

  // Calls visit(place, bytes) for each record with a whole head in the `content` of the superblock that begins at unit
  // `first`, while it returns true. There is no list of them: they are found by their heads. A head whose value is not
  // whole may be of a write that failed, and others lie behind it. False: a visit returned it.
  template <class Visit>
  bool for_each_record(std::span<const std::byte> content, std::uint64_t first, Visit&& visit) const {
    for (std::uint32_t unit = 0; unit < sizes.units();) {
      const std::span<const std::byte> rest = content.subspan(std::size_t{unit} * sizes.unit_bytes);
      const record_view record(rest);
      const std::size_t bytes = bytes_of(record.head());
      if (!record.has_whole_head(seed) || bytes > rest.size()) {
        ++unit;
        continue;
      }
      const std::uint32_t units = sizes.units_for(bytes);
      if (!visit(on_flash(first + unit, units, record.head().sequence), rest.first(bytes))) return false;
      unit += record.has_whole_value(seed) ? units : 1;
    }
    return true;
  }

  // A record, and whether its head is that of the record which the word leads to.
  struct seen {
    record_view record;
    bool is_whole = false;
  };

  // The record that a word of the chain of `base` leads to; of one on flash at least the head and the key, and the
  // value if `whole`. The bytes are valid while the port has no other use, and the manager's lock is held. Checks the
  // head.
  [[nodiscard]] record_view load(place_word at, std::uint64_t base, port<Device>& through, bool whole) {
    const seen there = look(at, base, through, whole);
    if (!there.is_whole) damaged(at, base);
    return there.record;
  }
  // The same, of a record that may be damaged: also one that the flash cannot read, or whose place cannot be.
  [[nodiscard]] seen look(place_word at, std::uint64_t base, port<Device>& through, bool whole) {
    const seen there = look(at, through, whole);
    const bool is_whole = there.is_whole && base_of(there.record.head().space, there.record.key()) == base;
    if (!is_whole) counts.damaged.fetch_add(1, std::memory_order_relaxed);
    return {there.record, is_whole};
  }
  // The same of any chain.
  [[nodiscard]] seen look(place_word at, port<Device>& through, bool whole) {
    static constexpr std::array<std::byte, sizeof(record_head)> nothing{};
    std::span<const std::byte> bytes = nothing;
    const std::size_t room = std::size_t{at.units()} * sizes.unit_bytes;
    if (!can_be(at)) {
      // Nothing is read.
    } else if (at.is_in_ring()) {
      bytes = {buffer.at(at.address()),
               std::min<std::size_t>(room, (sizes.ring_lines - at.address()) * media::cache_line_bytes)};
      medium.annotate_read(bytes.data(), std::min(bytes.size(), sizeof(record_head) + most_key_bytes));
    } else {
      bytes = through.read(sizes.byte_of(at.address()), needed_of(at, whole), flash.life_of(at.address()))
                  .value_or(nothing);
    }
    const record_view record(bytes);
    const bool is_whole = record.has_whole_head(seed) && sizes.units_for(bytes_of(record.head())) == at.units() &&
                          at.fits(record.head().sequence);
    return {record, is_whole};
  }

  Medium& medium;
  Device& device;
  shape sizes;
  std::uint64_t seed;  // seed of checksums
  write_buffer buffer;
  superblocks flash;
  index_chains index;
  ports<Device> all_ports;
  std::array<manager, managers_of_users + managers_of_buckets> managers;
  // Units of live records, in the ring and on flash: never more than the capacity.
  std::atomic<std::uint64_t> used_units{0};
  std::atomic<std::uint64_t> lost_units{0};  // units of superblocks that are never reused
  std::atomic<std::uint64_t> last_sequence{0};
  // Words of the index that are written are checked: the header of the flash says that there may be some, durably.
  bool checks_words = false;
  counters counts;
};

}  // namespace detail::kv_ssd
}  // namespace pmlab::stores
