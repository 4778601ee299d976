// Copies of live records: what a device without a free superblock has gained.
//
// A record that was moved is on flash twice until its old superblock is filled again. The index leads to one of the
// two. A crash while it is led from the old places to the new ones leaves both superblocks with live records, and a
// rebuilding finds both copies of each record. So there may be no free superblock, and without one nothing can be
// collected. It is enough to let the index lead to the other copies.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <unordered_map>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

// A record on its way to another place.
struct moved_record {
  std::uint8_t space;
  std::uint64_t base;
  place_word from;
  std::uint64_t sequence;
  place_word to;
};

// REQUIRES: no record is moved meanwhile. Memory: a few words for each live record that has a copy.
template <class Core>
class copies {
 public:
  explicit copies(Core& of) : core_(of) {}

  // Reads all of the flash that can be read. Throws pmlab::error: it failed as a whole.
  template <class Port>
  void read(Port& through) {
    for (std::uint32_t s = 0; s < core_.flash.count(); ++s) {
      if (!core_.flash.is_closed(s)) continue;
      const std::uint64_t first = std::uint64_t{s} * core_.sizes.units();
      bool has_all = true;
      const auto content = through.read_readable(core_.sizes.byte_of(first), core_.sizes.superblock_bytes, has_all);
      core_.for_each_record(content, first, [&](place_word at, std::span<const std::byte> bytes) {
        if (record_view(bytes).has_whole_value(core_.seed)) add(at, record_view(bytes));
        return true;
      });
    }
  }

  // The superblock with the least live units without a copy elsewhere, or std::nullopt if none would gain anything.
  [[nodiscard]] std::optional<std::uint32_t> easiest() const {
    std::vector<std::uint32_t> with_copy(core_.flash.count());
    for (const auto& [unit, r] : by_unit_) with_copy[core_.flash.number_of(unit)] += r.from.units();
    std::optional<std::uint32_t> best;
    const auto needs = [&](std::uint32_t s) { return core_.flash.valid(s) - with_copy[s]; };
    for (std::uint32_t s = 0; s < core_.flash.count(); ++s)
      if (core_.flash.is_closed(s) && needs(s) < core_.flash.units() && (!best || needs(s) < needs(*best))) best = s;
    return best;
  }
  // Its live records that have a copy.
  [[nodiscard]] std::vector<moved_record> of(std::uint32_t number) const {
    std::vector<moved_record> all;
    for (const auto& [unit, r] : by_unit_)
      if (core_.flash.number_of(unit) == number) all.push_back(r);
    return all;
  }

 private:
  // `record` lies at `here`. If it is the copy of a live one in another superblock, that one is remembered.
  void add(place_word here, const record_view& record) {
    const std::uint8_t space = record.head().space;
    const std::uint64_t base = Core::base_of(space, record.key());
    typename ports_of::lease other(core_.all_ports);
    const std::shared_lock lock(core_.lock_of(space, base));
    const auto live = core_.index.find(base, [&](place_word place) {
      // Most records are refused here, without a look at the flash.
      if (place.is_in_ring() || place.units() != here.units() || !place.fits(record.head().sequence)) return false;
      if (core_.flash.number_of(place.address()) == core_.flash.number_of(here.address())) return false;
      try {
        const record_view there = core_.load(place, base, *other, false);
        return there.head().sequence == record.head().sequence && there.head().space == space &&
               there.key() == record.key();
      } catch (const kv_damaged&) {
        return false;
      }
    });
    if (live.found)
      by_unit_.emplace(live.place.address(), moved_record{space, base, live.place, record.head().sequence, here});
  }

  using ports_of = decltype(Core::all_ports);

  Core& core_;
  std::unordered_map<std::uint64_t, moved_record> by_unit_;  // by the unit where the live one lies
};

}  // namespace pmlab::stores::detail::kv_ssd
