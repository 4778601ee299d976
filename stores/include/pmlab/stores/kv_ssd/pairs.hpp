// One key at a time: search, put and erase, for callers that hold the lock of the key's manager.
//
// Orders:
//   (S1) the record is in the ring, durably  (S2) the index leads to it, durably  (S3) acknowledged; the place of the
//   key's earlier record is used again
//   (S1) < (S2) < (S3): a pair is there wholly or not at all, and what was acknowledged is there.
// With local tables, an overwrite is committed by (S1) itself, as replay finds the record; (S2) is then a word in DRAM.
#pragma once

#include <pmlab/blocks/device.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

template <media::medium Medium, blocks::device Device, class Hash>
class pairs {
  using parts = core<Medium, Device, Hash>;

 public:
  explicit pairs(parts& of) : core_(of) {}

  // The key's record, if it has one.
  struct stored {
    typename parts::index_chains::position at;
    record_head head{};
    std::span<const std::byte> value{};  // if it was asked for; valid while the port has no other use
    bool is_damaged = false;  // its head is damaged: only the place is known. It may be that of a key of the same hash

    [[nodiscard]] bool is_there() const noexcept { return at.found; }
  };

  // A key that has no whole record has the damaged one of its hash, if there is one, and if it is not known to be of
  // another key. `whole`: throws kv_damaged, if the record or its value is damaged.
  [[nodiscard]] stored find(std::uint8_t space, std::string_view key, std::uint64_t base, port<Device>& through,
                            bool whole) {
    stored result;
    std::optional<place_word> damaged;
    result.at = core_.index.find(base, [&](place_word place) {
      const auto [record, is_whole] = core_.look(place, base, through, whole);
      const bool is_of_key = record.may_have_key() && record.head().space == space && record.key() == key;
      if (!is_whole) {
        if (!damaged && (is_of_key || !has_readable_key(record, base))) damaged = place;
        return false;
      }
      if (!is_of_key) return false;
      if (whole && !record.has_whole_value(core_.seed)) {
        core_.counts.damaged.fetch_add(1, std::memory_order_relaxed);
        core_.damaged(place, space, key);
      }
      result.head = record.head();
      if (whole) result.value = record.value();
      return true;
    });
    if (!result.at.found && damaged) {
      if (whole) core_.damaged(*damaged, space, key);
      result.at = core_.index.find_place(base, *damaged);
      result.is_damaged = true;
    }
    if (whole && result.is_there() && result.at.place.is_in_ring())
      core_.medium.annotate_read(result.value.data(), result.value.size());
    return result;
  }

  // A record to be.
  struct draft {
    std::uint8_t space = 0;
    std::string_view key{};
    std::span<const std::byte> value{};
    std::uint64_t birth = 0;  // 0: this version is the first one
    std::uint32_t page = 0;
    bool is_on_new_page = false;  // a key that is there was added to the page for this version
  };

  enum class charged : std::uint8_t { yes, no_units, no_slot };

  // Takes what a `put` of the record needs: units beside the earlier one from the capacity, and a slot for a new key,
  // if the medium was full before. Unless the answer is yes, nothing has changed. `refund` undoes it, with the same
  // lock.
  [[nodiscard]] charged charge(stored& before, std::uint32_t units) {
    if (!charge_units(before, units)) return charged::no_units;
    if (core_.index.can_add(before.at)) return charged::yes;
    refund(before, units);
    return charged::no_slot;
  }
  void refund(const stored& before, std::uint32_t units) {
    core_.index.release(before.at);
    const std::uint32_t old = before.is_there() ? core_.units_of(before.at.place) : 0;
    if (units > old) core_.used_units.fetch_sub(units - old, std::memory_order_acq_rel);
  }

  // Replaces the record of the key, or adds it, in promised lines; the units are charged. False, or an exception: no
  // space in the medium or the process; nothing has changed. Durable on return.
  [[nodiscard]] bool put(const stored& before, const draft& d, promised_lines& room) {
    const std::size_t bytes = record_bytes(d.key.size(), d.value.size());
    const std::uint32_t units = core_.sizes.units_for(bytes);
    if (!before.at.has_room) return false;
    // What may fail comes before the lines are taken, and before (S1).
    std::vector<std::byte> record(std::size_t{lines_for(bytes)} * media::cache_line_bytes);
    core_.index.prepare(before.at);
    const std::uint64_t position = room.take(core_.buffer, lines_for(bytes));
    const std::uint32_t line = core_.buffer.line_of(position);
    const std::uint64_t sequence = core_.last_sequence.fetch_add(1, std::memory_order_acq_rel) + 1;
    const auto write_for = [&](std::uint64_t slot) {
      write(d, sequence, slot, core_.index.defers(before.at), position, record);
    };
    bool is_done = false;
    try {
      is_done = core_.index.put(before.at, core_.in_ring(line, units, sequence), position, write_for);  // (S2)
    } catch (...) {
      core_.buffer.release(line);
      throw;
    }
    if (!is_done) {
      core_.buffer.release(line);
      return false;
    }
    core_.buffer.commit(line, base_of_slot(before.at.slot));
    if (before.is_there()) {
      give_up(before.at.place);
      if (const std::uint32_t old = core_.units_of(before.at.place); old > units)
        core_.used_units.fetch_sub(old - units, std::memory_order_acq_rel);
    }
    return true;
  }

  // The key of `before` is absent. Durable on return.
  void erase(const stored& before) {
    core_.index.erase(before.at);
    give_up(before.at.place);
    core_.used_units.fetch_sub(core_.units_of(before.at.place), std::memory_order_acq_rel);
  }

  // A record whose head is damaged: a key of the right hash has no flipped bit, and is the record's.
  [[nodiscard]] static bool has_readable_key(const record_view& record, std::uint64_t base) noexcept {
    return record.may_have_key() && parts::base_of(record.head().space, record.key()) == base;
  }

 private:
  [[nodiscard]] bool charge_units(const stored& before, std::uint32_t units) {
    const std::uint32_t old = before.is_there() ? core_.units_of(before.at.place) : 0;
    if (units <= old) return true;  // the rest is free when the record is there
    const std::uint64_t more = units - old;
    const std::uint64_t lost = core_.lost_units.load(std::memory_order_relaxed);
    if (core_.used_units.fetch_add(more, std::memory_order_acq_rel) + more + lost <= core_.sizes.capacity_units())
      return true;
    core_.used_units.fetch_sub(more, std::memory_order_acq_rel);
    return false;
  }

  // `record`: zeros, as many as its lines have, or what a call before has left there.
  void write(const draft& d, std::uint64_t sequence, std::uint64_t slot, bool is_commit, std::uint64_t position,
             std::vector<std::byte>& record) {
    record_head head;
    head.sequence = sequence;
    head.birth = d.birth == 0 ? sequence : d.birth;
    head.value_bytes = static_cast<std::uint32_t>(d.value.size());
    head.page = d.page;
    head.key_bytes = static_cast<std::uint8_t>(d.key.size());
    head.space = d.space;
    head.slot = static_cast<std::uint8_t>(slot % slots);
    head.notes = has_lap;
    if (is_commit) head.notes |= is_deferred;
    if (d.is_on_new_page) head.notes |= stores::detail::kv_ssd::is_on_new_page;
    head.lap = static_cast<std::uint32_t>(position / core_.buffer.lines());
    head.value_sum = checksum(d.value.data(), d.value.size(), core_.seed);
    std::memcpy(record.data() + sizeof head, d.key.data(), d.key.size());
    if (!d.value.empty()) std::memcpy(record.data() + sizeof head + d.key.size(), d.value.data(), d.value.size());
    std::memcpy(record.data(), &head, sizeof head);
    head.head_sum = record_view::head_sum(record.data(), d.key.size(), core_.seed);
    std::memcpy(record.data(), &head, sizeof head);
    core_.medium.copy(core_.buffer.at(core_.buffer.line_of(position)), record.data(), record.size());  // (S1)
    core_.medium.fence();  // (S1b) before (S2)
  }

  // No word leads there any more, durably. (S3)
  void give_up(place_word place) {
    if (!core_.can_be(place)) return;
    if (place.is_in_ring())
      core_.buffer.release(static_cast<std::uint32_t>(place.address()));
    else
      core_.flash.drop(place.address(), place.units());
  }

  parts& core_;
};

}  // namespace pmlab::stores::detail::kv_ssd
