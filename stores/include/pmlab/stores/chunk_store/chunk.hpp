// One chunk's words on persistent memory: where its blocks are, and the stores that change that.
//
// Orders (docs/architecture: tags):
//   (K1) data on the drive, durable
//   (K2) the word that names it: a bit of `written`, or ring entries, or a new map
//   (K1) < (K2): no crash leaves a name of blocks whose data is not there.
//   (M1) the map has the blocks of all ring entries, durable
//   (M2) `head` goes past these entries
//   (M1) < (M2): until then the entries are there, and say the same.
//   (W1) the base extent has the data of all blocks, durable on the drive
//   (W2) the bits of these blocks
//   (W3) `head` goes past the entries, and the map is none
//   (W1) < (W2) and (W2) < (W3): until then the entries are there, and lead to the same data. (W2) and (W3) are in one
//   line.
#pragma once

#include <pmlab/media/medium.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

struct chunk_shape {
  std::uint32_t blocks = most_blocks_of_chunk;  // blocks of a chunk
  std::uint32_t ring = 16;                      // entries
  merge_policy merge = merge_policy::remap;

  // A merge by copy begins when a ring has so many entries: later writes go on in the rest of it.
  [[nodiscard]] std::uint32_t full_enough() const noexcept { return std::max(1U, ring - std::max(1U, ring / 4)); }
};

// Where each block of a chunk is: a block of the drive, `hole`, or 0 for a block that was never written.
using places = std::array<std::uint32_t, most_blocks_of_chunk>;
// A bit for each block of a chunk.
using block_bits = std::array<std::uint64_t, most_blocks_of_chunk / 64>;

// Blocks [first, first + count) of a chunk.
struct range {
  std::uint32_t first = 0;
  std::uint32_t count = 0;

  [[nodiscard]] std::uint32_t end() const noexcept { return first + count; }
};

// A range of a chunk, and the block of the drive where it begins (or `hole`).
struct placed {
  range blocks;
  std::uint32_t target = 0;

  [[nodiscard]] std::uint32_t target_of(std::uint32_t block) const noexcept {
    return target == hole ? hole : block_behind(target, block - blocks.first);
  }
};

// The ranges of `blocks` whose places follow each other on the drive. Throws std::bad_alloc.
[[nodiscard]] inline std::vector<placed> joined(range blocks, const places& at) {
  std::vector<placed> parts;
  for (std::uint32_t b = blocks.first; b < blocks.end(); ++b) {
    const std::uint32_t target = at[b] == 0 ? hole : at[b];
    if (!parts.empty()) {
      placed& last = parts.back();
      if (target == hole ? last.target == hole : last.target != hole && last.target + last.blocks.count == target) {
        ++last.blocks.count;
        continue;
      }
    }
    parts.push_back({{b, 1}, target});
  }
  return parts;
}

// The record of a chunk. Not thread-safe: behind the lock of its chunk. REQUIRES: `r` lives in `medium`.
template <media::medium Medium>
class chunk {
 public:
  chunk(Medium& medium, const chunk_shape& shape, record& r) : medium_(medium), shape_(shape), record_(r) {
    media::annotate_read(medium, r);
    head_ = parts_of<head_word>(r.head.load(std::memory_order_acquire));
    read_ring();
  }

  [[nodiscard]] std::uint32_t base() const noexcept { return head_.base; }
  [[nodiscard]] std::uint32_t ring_entries() const noexcept { return entries_; }
  // True: a block of the base extent.
  [[nodiscard]] bool in_base(std::uint32_t target) const noexcept {
    return head_.base != no_block && target >= head_.base && target - head_.base < shape_.blocks;
  }
  // Its data can go back to the base extent.
  [[nodiscard]] bool merges_by_copy() const noexcept {
    return shape_.merge == merge_policy::copy && head_.base != no_block;
  }
  // A merge by copy is to begin.
  [[nodiscard]] bool is_full_enough() const noexcept { return merges_by_copy() && entries_ >= shape_.full_enough(); }
  // No block is anywhere but in the base extent.
  [[nodiscard]] bool is_merged() const noexcept { return entries_ == 0 && block_map() == nullptr; }

  // The places of the blocks of `of`, at their index in `result`.
  void find(range of, places& result) const {
    constexpr std::uint32_t unknown = 0xffffffff;
    std::fill_n(result.begin() + of.first, of.count, unknown);
    std::uint32_t left = of.count;
    for (std::uint32_t i = entries_; i > 0 && left > 0; --i) {
      const entry_word& e = ring_[i - 1];
      const std::uint32_t begin = std::max<std::uint32_t>(e.first, of.first);
      const std::uint32_t end = std::min(e.first + e.count(), of.end());
      for (std::uint32_t b = begin; b < end; ++b) {
        if (result[b] != unknown) continue;
        result[b] = e.target == hole ? hole : block_behind(e.target, b - e.first);
        --left;
      }
    }
    if (left == 0) return;
    const map_entry* const map = block_map();
    if (map != nullptr) medium_.annotate_read(map + of.first, of.count * sizeof(map_entry));
    for (std::uint32_t b = of.first; b < of.end(); ++b) {
      if (result[b] != unknown) continue;
      result[b] = map == nullptr ? 0 : map[b].load(std::memory_order_acquire);
      if (result[b] == 0 && is_written(b)) result[b] = block_behind(head_.base, b);
    }
  }

  // Gives a new record its words, and its key last. Not durable before a flush of line 0 and a fence. Orders:
  //   (N1) the words of a new record but its key     (N2) its key, in the same line
  //   (N1) < (N2): a record with a key is whole.
  static void name(record& r, std::uint64_t key, const head_word& head, range written) {
    r.head.store(word_of(head), std::memory_order_relaxed);
    for_each_word(written, [&](std::size_t i, std::uint64_t bits) {
      r.written[i].store(bits, std::memory_order_relaxed);  // (N1)
    });
    r.key.store(key, std::memory_order_release);  // (N2)
  }

  // Stores the bits of `of`. REQUIRES: it lies in one word, or the record changes as a whole.
  void mark_written(range of) {
    for_each_word(of, [&](std::size_t i, std::uint64_t bits) {
      word& w = record_.written[i];
      w.store(w.load(std::memory_order_relaxed) | bits, std::memory_order_release);  // (K2)
    });
    media::persist(medium_, record_.written[of.first / 64]);
  }
  [[nodiscard]] static bool in_one_word(range of) noexcept { return of.first / 64 == (of.end() - 1) / 64; }

  // True if `count` more entries fit.
  [[nodiscard]] bool has_room(std::size_t count) const noexcept { return entries_ + count <= shape_.ring; }

  // Commits `parts`, all of them or none. REQUIRES: has_room(parts.size()). One fence; each line of the ring once.
  void push(std::span<const placed> parts) {
    word* const ring = record_.ring();
    std::uint32_t position = advance(head_.position, entries_);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const entry_word e{parts[i].target, static_cast<std::uint8_t>(parts[i].blocks.first),
                         static_cast<std::uint8_t>(parts[i].blocks.count - 1), lap_of(position),
                         static_cast<std::uint8_t>(i + 1 < parts.size() ? 1 : 0)};
      word& slot = ring[position % shape_.ring];
      slot.store(word_of(e), std::memory_order_release);  // (K2)
      const bool line_ends =
          (position % shape_.ring + 1) % words_per_line == 0 || position % shape_.ring + 1 == shape_.ring;
      if (i + 1 == parts.size() || line_ends) media::flush(medium_, slot);
      ring_[entries_++] = e;
      position = advance(position, 1);
    }
    medium_.fence();
  }

  // Makes room in the ring: its entries go into the map. False: no space in the medium for a map; nothing changed.
  [[nodiscard]] bool merge() {
    map_entry* map = block_map();
    if (map == nullptr) {
      typename Medium::publication change(medium_);
      auto* const made = static_cast<map_entry*>(change.allocate(map_bytes(shape_.blocks), media::cache_line_bytes));
      if (made == nullptr) return false;
      fill(made, {});
      media::publish_store(change, record_.map, medium_.locate(made).word());  // (M1)
      change.commit();
    } else {
      for (std::uint32_t i = 0; i < entries_; ++i)
        for (std::uint32_t b = ring_[i].first; b < ring_[i].first + ring_[i].count(); ++b)
          map[b].store(placed{{ring_[i].first, ring_[i].count()}, ring_[i].target}.target_of(b),
                       std::memory_order_release);
      for (std::uint32_t i = 0; i < entries_; ++i)
        medium_.flush(map + ring_[i].first, ring_[i].count() * sizeof(map_entry));  // (M1) Redundant when lines meet.
      medium_.fence();
    }
    head_.position = static_cast<std::uint16_t>(advance(head_.position, entries_));
    record_.head.store(word_of(head_), std::memory_order_release);  // (M2)
    media::persist(medium_, record_.head);
    entries_ = 0;
    return true;
  }

  // Ends a merge by copy: the oldest `merged` entries and the map go, and `written` are the bits. REQUIRES: the base
  // extent has the data of these blocks, durable (W1). Without a map it is one line, one flush and one fence.
  void take_base(std::uint32_t merged, const block_bits& written) {
    for (std::size_t i = 0; i < written.size(); ++i)
      record_.written[i].store(written[i], std::memory_order_release);  // (W2)
    head_word head = head_;
    head.position = static_cast<std::uint16_t>(advance(head_.position, merged));
    map_entry* const map = block_map();
    if (map == nullptr) {
      record_.head.store(word_of(head), std::memory_order_release);  // (W3)
      media::persist(medium_, record_);
      return;
    }
    media::persist(medium_, record_.written);
    typename Medium::publication change(medium_);
    change.release(map, map_bytes(shape_.blocks));
    media::publish_store(change, record_.map, std::uint64_t{0});
    media::publish_store(change, record_.head, word_of(head));
    change.commit();
  }

  // Adds to `change` a new map, in which `parts` are at their places, and the end of the ring. The caller commits; then
  // this object is out of date. False: no space.
  [[nodiscard]] bool replace_map(typename Medium::publication& change, std::span<const placed> parts) {
    auto* const made = static_cast<map_entry*>(change.allocate(map_bytes(shape_.blocks), media::cache_line_bytes));
    if (made == nullptr) return false;
    fill(made, parts);
    head_word head = head_;
    head.position = static_cast<std::uint16_t>(advance(head_.position, entries_));
    if (map_entry* const old = block_map()) change.release(old, map_bytes(shape_.blocks));
    media::publish_store(change, record_.map, medium_.locate(made).word());  // (K2)
    media::publish_store(change, record_.head, word_of(head));
    return true;
  }

  // True: no block is anywhere but in the base extent, and no slot of the ring has an entry that is valid or would be:
  // found without a `chunk`, for the walk over all records.
  [[nodiscard]] static bool is_plain(const chunk_shape& shape, const record& r) noexcept {
    const auto head = parts_of<head_word>(r.head.load(std::memory_order_acquire));
    if (head.base == no_block || r.map.load(std::memory_order_acquire) != 0) return false;
    const std::uint32_t slot = head.position % shape.ring;
    const std::uint32_t lap = head.position / shape.ring;
    for (std::uint32_t i = 0; i < shape.ring; ++i) {
      // The slots before the head's have positions of the next lap.
      const std::uint32_t of = i >= slot ? lap : (lap + 1) % laps;
      if (parts_of<entry_word>(r.ring()[i].load(std::memory_order_acquire)).lap == of + 1) return false;
    }
    return true;
  }
  // The base extent of a record. REQUIRES: it is_plain.
  [[nodiscard]] static std::uint32_t base_of(const record& r) noexcept {
    return parts_of<head_word>(r.head.load(std::memory_order_acquire)).base;
  }

  // After a crash: slots past the last complete group may hold entries of a group that was cut off. They would be valid
  // when later entries reach them. Returns true if there were any.
  bool clear_cut_off_entries() {
    bool any = false;
    for (std::uint32_t i = entries_; i < shape_.ring; ++i) {
      const std::uint32_t position = advance(head_.position, i);
      word& slot = record_.ring()[position % shape_.ring];
      if (parts_of<entry_word>(slot.load(std::memory_order_acquire)).lap != lap_of(position)) continue;
      slot.store(0, std::memory_order_release);
      media::flush(medium_, slot);
      any = true;
    }
    if (any) medium_.fence();
    return any;
  }

  // The map; nullptr: there is none, or it cannot be one (has_possible_map).
  [[nodiscard]] map_entry* block_map() const noexcept {
    const media::pointer<map_entry> at(record_.map.load(std::memory_order_acquire));
    return can_be_map(medium_, shape_, at) ? medium_.resolve(at) : nullptr;
  }
  // False: the word for the map of a record leads out of the medium.
  [[nodiscard]] static bool has_possible_map(const Medium& medium, const chunk_shape& shape, const record& r) noexcept {
    const media::pointer<map_entry> at(r.map.load(std::memory_order_acquire));
    return !at || can_be_map(medium, shape, at);
  }

  // Calls visit(word, its bits) for the words of the bits of `of`.
  template <class Visit>
  static void for_each_word(range of, Visit&& visit) {
    while (of.count > 0) {
      const std::uint32_t count = std::min(of.count, 64 - of.first % 64);
      const std::uint64_t ones = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
      visit(of.first / 64, ones << (of.first % 64));
      of = {of.first + count, of.count - count};
    }
  }

 private:
  [[nodiscard]] static bool can_be_map(const Medium& medium, const chunk_shape& shape,
                                       media::pointer<map_entry> at) noexcept {
    return at.word() % media::cache_line_bytes == 0 && media::can_name(medium, at, map_bytes(shape.blocks));
  }
  static constexpr std::uint32_t words_per_line = media::cache_line_bytes / sizeof(word);

  [[nodiscard]] std::uint32_t advance(std::uint32_t position, std::uint32_t by) const noexcept {
    return (position + by) % (shape_.ring * laps);
  }
  [[nodiscard]] std::uint8_t lap_of(std::uint32_t position) const noexcept {
    return static_cast<std::uint8_t>(position / shape_.ring + 1);
  }
  [[nodiscard]] bool is_written(std::uint32_t block) const noexcept {
    return (record_.written[block / 64].load(std::memory_order_acquire) >> (block % 64) & 1) != 0;
  }

  // The valid entries, oldest first; an incomplete group at the end is left out.
  void read_ring() {
    const word* const ring = record_.ring();
    medium_.annotate_read(ring, shape_.ring * sizeof(word));
    std::uint32_t complete = 0;
    for (; entries_ < shape_.ring; ++entries_) {
      const std::uint32_t position = advance(head_.position, entries_);
      const auto e = parts_of<entry_word>(ring[position % shape_.ring].load(std::memory_order_acquire));
      if (e.lap != lap_of(position)) break;
      ring_[entries_] = e;
      if (e.more == 0) complete = entries_ + 1;
    }
    entries_ = complete;
  }

  // Fills a new map with the places of all blocks, and of `parts` instead; written back without a fence.
  void fill(map_entry* map, std::span<const placed> parts) {
    places now{};
    find({0, shape_.blocks}, now);
    for (const placed& p : parts)
      for (std::uint32_t b = p.blocks.first; b < p.blocks.end(); ++b) now[b] = p.target_of(b);
    // Blocks that the base extent has stay out of the map: their bits lead to it, now and later.
    for (std::uint32_t b = 0; b < shape_.blocks; ++b)
      ::new (map + b)
          map_entry(head_.base != no_block && now[b] == block_behind(head_.base, b) && is_written(b) ? 0 : now[b]);
    const std::size_t used = shape_.blocks * sizeof(map_entry);
    std::memset(reinterpret_cast<std::byte*>(map) + used, 0, map_bytes(shape_.blocks) - used);
    medium_.flush(map, map_bytes(shape_.blocks));
    medium_.fence();
  }

  Medium& medium_;
  chunk_shape shape_;
  record& record_;
  head_word head_;
  std::array<entry_word, 32> ring_{};
  std::uint32_t entries_ = 0;
};

}  // namespace pmlab::stores::detail::chunk_store
