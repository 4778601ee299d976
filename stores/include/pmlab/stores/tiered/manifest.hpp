// The durable state of the tree: tables, sets, and where replay of the log begins. Two areas, written in turn.
//
// (F1) < (F2): an area is overwritten only when the other one is valid and durable; so one valid state is always there.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/tiered/layout.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

namespace pmlab::stores::detail::tiered {

// Bytes of values in a segment that a set refers to.
struct segment_share {
  std::uint32_t segment = no_segment;
  std::uint32_t bytes = 0;
  friend bool operator==(const segment_share&, const segment_share&) = default;
};

// A key/value set: keys in pages, values in segments that other sets may refer to, too.
struct set_description {
  std::uint64_t id = 0;     // no other set of the store ever had it
  std::uint64_t first = 0;  // sequences of its versions
  std::uint64_t last = 0;
  std::uint64_t pages = 0;
  std::uint64_t entries = 0;
  std::uint64_t covers = 0;      // about the bytes of values of older sets that its versions replace
  std::uint64_t loose = 0;       // entries that a merge may drop when snapshots end: erasures, and old versions
  std::uint64_t start_page = 0;  // its first page, in its first segment
  std::vector<std::uint32_t> key_segments{};
  std::vector<segment_share> value_segments{};

  template <class Function>
  void for_each_segment(Function&& function) const {
    for (const std::uint32_t s : key_segments) function(s);
    for (const segment_share& v : value_segments) function(v.segment);
  }
};

// The keys from a bound to the next leaf's bound.
struct leaf_description {
  std::uint64_t table = 0;
  std::string bound{};
  std::vector<set_description> sets{};  // oldest first
};

// What a manifest knows of the other parts of the store: see epoch.hpp.
struct manifest_epoch {
  std::uint64_t session = 0;  // the word of a moment: each opening begins one
  std::uint64_t follows = 0;  // the session before; 0: none, or not known, if `session` has no mark
  std::uint64_t opened = 0;   // the version of the manifest that this session began with
  std::uint64_t needs = 0;    // the other drive has promised at least this version, in this session
  std::uint64_t durable = 0;  // changes up to this sequence were durable
  bool is_there = false;      // false: of a layout without epochs
};

struct manifest_state {
  std::vector<std::string> tables{};
  std::vector<set_description> sets{};     // sets of the root, oldest first
  std::vector<leaf_description> leaves{};  // in order; the first one begins before all keys
  std::uint64_t ingested = 0;              // versions up to this one are in sets
  log_anchor replay{};
  manifest_epoch epoch{};
};

// ---- the state as bytes ----

class bytes_writer {
 public:
  void number(std::uint64_t n) { text(&n, sizeof n); }
  void text(const void* start, std::size_t bytes) {
    const auto* const from = static_cast<const std::byte*>(start);
    bytes_.insert(bytes_.end(), from, from + bytes);
  }
  [[nodiscard]] const std::vector<std::byte>& bytes() const noexcept { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// Every read beyond the end gives zeros, and is remembered.
class bytes_reader {
 public:
  bytes_reader(const std::byte* start, std::size_t bytes) : at_(start), left_(bytes) {}
  [[nodiscard]] std::uint64_t number() {
    std::uint64_t n = 0;
    if (take(sizeof n)) std::memcpy(&n, at_ - sizeof n, sizeof n);
    return n;
  }
  [[nodiscard]] std::string text(std::size_t bytes) {
    return take(bytes) ? std::string(reinterpret_cast<const char*>(at_ - bytes), bytes) : std::string();
  }
  template <class T>
  void copy(T& to) {
    if (take(sizeof to)) std::memcpy(&to, at_ - sizeof to, sizeof to);
  }
  // A count of things that need at least `each` bytes each.
  [[nodiscard]] std::size_t count(std::size_t each) {
    const std::uint64_t n = number();
    if (n <= left_ / each) return n;
    failed_ = true;
    return 0;
  }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] std::size_t left() const noexcept { return left_; }

 private:
  bool take(std::size_t bytes) {
    if (bytes > left_) failed_ = true;
    if (failed_) return false;
    at_ += bytes;
    left_ -= bytes;
    return true;
  }
  const std::byte* at_;
  std::size_t left_;
  bool failed_ = false;
};

[[nodiscard]] inline std::vector<std::byte> bytes_of(const manifest_state& s) {
  bytes_writer out;
  const auto text = [&out](const std::string& t) {
    out.number(t.size());
    out.text(t.data(), t.size());
  };
  const auto sets = [&out](const std::vector<set_description>& all) {
    out.number(all.size());
    for (const set_description& d : all) {
      for (const std::uint64_t n : {d.id, d.first, d.last, d.pages, d.entries, d.covers, d.loose, d.start_page})
        out.number(n);
      out.number(d.key_segments.size());
      for (const std::uint32_t n : d.key_segments) out.text(&n, sizeof n);
      out.number(d.value_segments.size());
      for (const segment_share& v : d.value_segments) out.text(&v, sizeof v);
    }
  };
  out.number(s.ingested);
  out.number(s.replay.segment);
  out.number(s.replay.offset);
  out.number(s.replay.chain);
  out.number(s.replay.next);
  out.number(s.tables.size());
  for (const std::string& t : s.tables) text(t);
  sets(s.sets);
  out.number(s.leaves.size());
  for (const leaf_description& l : s.leaves) {
    out.number(l.table);
    text(l.bound);
    sets(l.sets);
  }
  for (const std::uint64_t n : {s.epoch.session, s.epoch.opened, s.epoch.needs, s.epoch.durable, s.epoch.follows})
    out.number(n);
  return out.bytes();
}

// The state in these bytes, or std::nullopt if they are no state of a store that is divided so.
[[nodiscard]] inline std::optional<manifest_state> state_of(const std::byte* start, std::size_t bytes,
                                                            const store_areas& where) {
  bytes_reader in(start, bytes);
  manifest_state s;
  bool possible = true;
  const auto read_sets = [&](std::vector<set_description>& all) {
    all.resize(in.count(10 * sizeof(std::uint64_t)));
    for (set_description& d : all) {
      for (std::uint64_t* n : {&d.id, &d.first, &d.last, &d.pages, &d.entries, &d.covers, &d.loose, &d.start_page})
        *n = in.number();
      d.key_segments.resize(in.count(sizeof(std::uint32_t)));
      for (std::uint32_t& n : d.key_segments) {
        in.copy(n);
        possible = possible && where.has(n);
      }
      d.value_segments.resize(in.count(sizeof(segment_share)));
      for (segment_share& v : d.value_segments) {
        in.copy(v);
        possible = possible && where.has(v.segment);
      }
    }
  };
  s.ingested = in.number();
  s.replay.segment = static_cast<std::uint32_t>(in.number());
  s.replay.offset = static_cast<std::uint32_t>(in.number());
  s.replay.chain = in.number();
  s.replay.next = in.number();
  possible = s.replay.segment == no_segment || s.replay.segment == in_memory || where.has(s.replay.segment);
  s.tables.resize(in.count(sizeof(std::uint64_t)));
  for (std::string& t : s.tables) t = in.text(in.number());
  read_sets(s.sets);
  s.leaves.resize(in.count(3 * sizeof(std::uint64_t)));
  for (leaf_description& l : s.leaves) {
    l.table = in.number();
    l.bound = in.text(in.number());
    read_sets(l.sets);
  }
  s.epoch.durable = s.ingested;
  if (in.left() > 0) {
    for (std::uint64_t* n : {&s.epoch.session, &s.epoch.opened, &s.epoch.needs, &s.epoch.durable}) *n = in.number();
    s.epoch.is_there = true;
    if (in.left() > 0) s.epoch.follows = in.number();
  }
  if (in.failed() || in.left() > 0 || !possible) return std::nullopt;
  return s;
}

// ---- the two areas ----

// What the checksum of an area covers, whose state has `bytes` bytes.
[[nodiscard]] inline std::span<const std::byte> summed_part_of(const std::byte* area, std::uint64_t bytes) noexcept {
  constexpr std::size_t own = sizeof manifest_header::checksum;
  return {area + own, sizeof(manifest_header) - own + bytes};
}
[[nodiscard]] inline bool has_right_checksum(const std::byte* area, const manifest_header& h) noexcept {
  const std::span<const std::byte> summed = summed_part_of(area, h.bytes);
  return is_checksum(h.checksum, summed.data(), summed.size(), 3);
}

// True: the first area of a drive has a whole manifest. A store has one there since its first session began, and it
// begins at the second block, whatever the sizes of the store.
template <blocks::device Device>
[[nodiscard]] bool has_manifest(Device& device) {
  const blocks::geometry shape = device.shape();
  const areas any{shape.block_bytes, 0, 0, shape.blocks};
  if (shape.blocks <= any.manifest_block(0)) return false;
  blocks::synchronous<Device> drive(device);
  blocks::buffer area(shape.block_bytes);
  drive.read(any.manifest_block(0), area.bytes(), blocks::stream::manifest);
  manifest_header h;
  std::memcpy(&h, area.data(), sizeof h);
  constexpr std::uint64_t most_bytes = std::uint64_t{1} << 31;
  const std::uint64_t there = (shape.blocks - any.manifest_block(0)) * shape.block_bytes - sizeof h;
  if (h.version == 0 || h.version % 2 != 0 || h.bytes > std::min(most_bytes, there)) return false;
  area = blocks::buffer(round_up(sizeof h + h.bytes, shape.block_bytes));
  drive.read(any.manifest_block(0), area.bytes(), blocks::stream::manifest);
  return has_right_checksum(area.data(), h);
}

template <blocks::device Device>
class manifest {
 public:
  // `own`: the drive that has it; `all`: where the sets that it names are.
  manifest(const areas& own, const store_areas& all, const identity& store) : where_(own), all_(all), store_(store) {}

  // Reads the newer valid area. Throws pmlab::error: neither is valid, or the drive fails.
  manifest_state read(blocks::synchronous<Device>& drive) {
    blocks::buffer area(where_.manifest_bytes);
    std::optional<manifest_state> found;
    for (std::uint64_t parity = 0; parity < 2; ++parity) {
      drive.read(where_.manifest_block(parity), area.bytes(), blocks::stream::manifest);
      manifest_header h;
      std::memcpy(&h, area.data(), sizeof h);
      if (h.version % 2 != parity || h.version <= version_ || h.store != store_) continue;
      if (h.bytes > area.size() - sizeof h || !has_right_checksum(area.data(), h)) continue;
      std::optional<manifest_state> s = state_of(area.data() + sizeof h, h.bytes, all_);
      if (!s) continue;
      version_ = h.version;
      found = std::move(s);
    }
    if (!found)
      throw error("neither manifest of the tiered store is valid", "the drive was damaged: restore it from a copy");
    return std::move(*found);
  }

  // Makes the other area of a new store empty: its first state leaves it, and a former store may have left one there.
  // Durable on return.
  void clear(blocks::synchronous<Device>& drive) {
    blocks::buffer block(where_.block_bytes);
    drive.write_durable(where_.manifest_block(0), block.bytes(), blocks::stream::manifest);
  }

  // The next area with this state, or std::nullopt if the state is too large for one. Throws std::bad_alloc.
  [[nodiscard]] std::optional<blocks::buffer> sealed(const manifest_state& s) const {
    const std::vector<std::byte> state = bytes_of(s);
    manifest_header h;
    if (state.size() > where_.manifest_bytes - sizeof h) return std::nullopt;
    blocks::buffer area(round_up(sizeof h + state.size(), where_.block_bytes));
    h.version = version_ + 1;
    h.store = store_;
    h.bytes = state.size();
    std::memcpy(area.data() + sizeof h, state.data(), state.size());
    std::memcpy(area.data(), &h, sizeof h);
    const std::span<const std::byte> summed = summed_part_of(area.data(), h.bytes);
    h.checksum = checksum(summed.data(), summed.size(), 3);
    std::memcpy(area.data(), &h, sizeof h);
    return area;
  }
  // Durable on return. `area`: of the last call of `sealed`. Throws pmlab::error if the drive fails: the new state, or
  // the one before, is there then. The next write is newer than both.
  void write(blocks::synchronous<Device>& drive, const blocks::buffer& area) {
    drive.write_durable(where_.manifest_block(version_ + 1), area.bytes(), blocks::stream::manifest);  // (F1)
    ++version_;  // (F2) from now on the other area may be overwritten
    last_bytes_ = area.size();
  }

  // From any thread. The last state could be three times as large. Between compactions, sets become more.
  [[nodiscard]] bool has_room_for_leaves() const noexcept {
    return 3 * last_bytes_.load(std::memory_order_relaxed) < where_.manifest_bytes;
  }

  // The version of the newest state: greater than the version of any state before.
  [[nodiscard]] std::uint64_t version() const noexcept { return version_; }

 private:
  areas where_;
  store_areas all_;
  identity store_;
  std::uint64_t version_ = 0;
  std::atomic<std::size_t> last_bytes_{0};
};

}  // namespace pmlab::stores::detail::tiered
