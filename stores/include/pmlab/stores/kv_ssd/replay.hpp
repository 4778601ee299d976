// Replay of the write buffer when a device is opened: finds the overwrites that the index does not lead to yet.
//
// The records of a slot lie in the ring in the order of their versions, so the last one of a slot decides. It is
// replayed if it is a deferred overwrite. If it is not, its key was added when the slot had no record: the slot's word
// is newer than any deferred one before it.
//
// Order:
//   (L1) the medium has the ring's tail, durably  (L2) lines before it are used again
//   (L1) < (L2): no record that replay uses has a later version that was overwritten in the ring.
//   (L3) the index leads to a newer version of each page of keys that has one before the tail, durably
//   (L3) < (L1): all versions since the one that the index leads to are in the ring. So if the newest one is damaged
//   there, the one before it lacks one key at most; and the ring has the record of that key, if it is there. See
//   for_each_added: behind a crash, a page that does not list such a key is damaged, and not older.
//   (L0) the index leads to all records, durably: closing.  (L0) < (L1), with the tail behind all records
// So a device that was closed has no record for replay: one that is damaged in the ring has a word that leads to it,
// and is noticed. Behind a crash, replay cannot distinguish it from one that the crash tore.
// Lines before the tail may hold whole records, where the end of the ring was skipped: their laps show that they are
// old.
#pragma once

#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/chains.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>

namespace pmlab::stores::detail::kv_ssd {

template <class Core, media::medium Medium>
class replay {
 public:
  replay(Core& of, state& root, Medium& medium) : core_(of), root_(root), medium_(medium) {}

  // Finds the records of the write buffer. Returns the line with which the ring begins now: `keep_tail` follows, before
  // the ring is written, and when the opening has begun. Reads no flash.
  std::uint64_t find() {
    const std::uint64_t lines = core_.buffer.lines();
    const std::uint64_t tail = tail_of(lines);
    for (std::uint64_t line = 0; line < lines;) line += visit(line, tail);
    // Behind all records so far: an opening without local tables kept no tail.
    return (std::max(tail, newest_) / lines + 2) * lines;
  }

  // Lets the index lead to the overwrites that were found, durably; a crash repeats it.
  void run() {
    for (const auto& [slot, last] : last_)
      if (last.is_deferred) core_.index.replay(slot, last.place);
  }
  // Calls visit(slot) for each that has records in the write buffer.
  template <class Visit>
  void for_each_slot(Visit&& visit) const {
    for (const auto& [slot, last] : last_) visit(slot);
  }

  // Behind `run`. Calls visit(record) for the newest record, in the write buffer, of each key that was added there and
  // is in the index.
  template <class Visit>
  void for_each_added(Visit&& visit) const {
    for (const auto& [slot, last] : last_) {
      if (!last.was_added || (slot & bucket_bit) != 0) continue;
      const std::optional<place_word> now = core_.index.place_of(slot);
      if (now && now->units() == last.place.units() && now->fits(last.sequence)) visit(record_at(last));
    }
  }
  // Behind `run`: the newest record of a slot in the write buffer, also if it is elsewhere now.
  [[nodiscard]] std::optional<record_view> newest_of(std::uint64_t slot) const {
    const auto at = last_.find(slot);
    if (at == last_.end()) return std::nullopt;
    return record_at(at->second);
  }
  // Behind `run`: the write buffer has records of the last opening, which did not end by a closing (L0).
  [[nodiscard]] bool has_found_any() const noexcept { return newest_ != 0; }
  // The medium has this tail.
  [[nodiscard]] bool has_tail(std::uint64_t tail) const noexcept {
    return root_.ring_tail.load(std::memory_order_acquire) == checked_tail::of(tail).word();
  }
  void keep_tail(std::uint64_t tail) {
    root_.ring_tail.store(checked_tail::of(tail).word(), std::memory_order_release);
    media::persist(medium_, root_.ring_tail);  // (L1)
  }

 private:
  struct version {
    std::uint64_t position = 0;
    std::uint64_t sequence = 0;
    place_word place{};
    bool is_deferred = false;
    bool was_added = false;  // a page lists the key since this version, or one before it
  };

  [[nodiscard]] record_view record_at(const version& v) const noexcept {
    const std::uint64_t line = v.place.address();
    return record_view(
        {core_.buffer.at(line), static_cast<std::size_t>(core_.buffer.lines() - line) * media::cache_line_bytes});
  }

  // Pools of releases without local tables may have any bits here, and have no deferred records.
  [[nodiscard]] std::uint64_t tail_of(std::uint64_t lines) const noexcept {
    constexpr std::uint64_t most_laps = std::uint64_t{1} << 31;
    const checked_tail tail(root_.ring_tail.load(std::memory_order_acquire));
    return tail.is_whole() && tail.lines() / lines < most_laps ? tail.lines() : 0;
  }

  // Returns the lines of the record, or 1.
  [[nodiscard]] std::uint64_t visit(std::uint64_t line, std::uint64_t tail) {
    const std::size_t room = static_cast<std::size_t>(core_.buffer.lines() - line) * media::cache_line_bytes;
    const std::byte* const at = core_.buffer.at(line);
    medium_.annotate_read(at, media::cache_line_bytes);
    const record_view record({at, room});
    const record_head& head = record.head();
    const std::uint64_t position = std::uint64_t{head.lap} * core_.buffer.lines() + line;
    if ((head.notes & has_lap) == 0 || position < tail || !record.has_whole_head(core_.seed)) return 1;
    newest_ = std::max(newest_, position);
    const std::size_t bytes = bytes_of(head);
    if (bytes > room) return 1;
    medium_.annotate_read(at, bytes);
    if (!record.has_whole_value(core_.seed)) return 1;  // a crash tore it: it was not acknowledged
    const std::uint64_t slot = Core::base_of(head.space, record.key()) | head.slot;
    version& last = last_[slot];
    const bool defers = (head.notes & is_deferred) != 0;
    const bool was_added = last.was_added || !defers || (head.notes & is_on_new_page) != 0;
    if (last.place.word() == 0 || position > last.position)
      last = {position, head.sequence, core_.in_ring(line, core_.sizes.units_for(bytes), head.sequence), defers};
    last.was_added = was_added;
    return lines_for(bytes);
  }

  Core& core_;
  state& root_;
  Medium& medium_;
  std::unordered_map<std::uint64_t, version> last_;
  std::uint64_t newest_ = 0;  // position of the newest record
};

}  // namespace pmlab::stores::detail::kv_ssd
