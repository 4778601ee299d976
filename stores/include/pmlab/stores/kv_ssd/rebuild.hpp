// Rebuilding the memory of a key-value device from its flash alone: reads all of the flash, and lets an empty index
// lead to the newest record of each key.
//
// The flash has no word about deletion. A record is left out if the newest page of its bucket that is there was written
// after it and does not list its key; other deleted keys are there again. A key whose newest record had not reached the
// flash has the value before it, or is gone.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/buckets.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>
#include <pmlab/stores/kv_ssd/options.hpp>
#include <pmlab/stores/kv_ssd/pairs.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

// Not thread-safe. Memory: all keys.
template <media::medium Medium, blocks::device Device, class Hash>
class rebuilding {
  using parts = core<Medium, Device, Hash>;
  using all_buckets = buckets<Medium, Device, Hash>;

 public:
  rebuilding(parts& of, all_buckets& lists) : core_(of), pairs_(of), buckets_(lists) {}

  // REQUIRES: the index and the directory are empty; nothing is counted. Counts valid and used units. Throws
  // pmlab::error: the flash failed; no space in the medium.
  [[nodiscard]] kv_rebuilt run() {
    read_flash();
    keep_pages();
    keep_pairs();
    core_.last_sequence.store(newest_, std::memory_order_release);
    return done_;
  }

  // A key that no page lists: an iterator does not find it until it is put again.
  struct unlisted {
    std::uint8_t space = 0;
    std::string key;
  };
  [[nodiscard]] const std::vector<unlisted>& without_page() const noexcept { return unlisted_; }
  // The superblocks with blocks that could not be read: they may have records that a later rebuilding finds.
  [[nodiscard]] const std::vector<std::uint32_t>& unreadable() const noexcept { return unreadable_; }

 private:
  struct record {
    std::uint64_t sequence = 0;
    place_word place{};
    std::uint32_t page = 0;
  };
  struct page {
    record at;
    std::unordered_set<std::string> keys;
    bool is_used = false;
  };

  void read_flash() {
    port<Device> through(core_.device);
    for (std::uint32_t s = 0; s < core_.sizes.superblocks; ++s) {
      const std::uint64_t first = std::uint64_t{s} * core_.sizes.units();
      bool has_all = true;
      const std::span<const std::byte> content =
          through.read_readable(core_.sizes.byte_of(first), core_.sizes.superblock_bytes, has_all);
      if (!has_all) unreadable_.push_back(s);
      for (std::uint32_t unit = 0; unit < core_.sizes.units();) {
        const std::span<const std::byte> rest = content.subspan(std::size_t{unit} * core_.sizes.unit_bytes);
        unit += read_record(rest, first + unit);
      }
    }
    done_.unreadable = unreadable_.size();
    if (unreadable_.size() == core_.sizes.superblocks)
      throw error("nothing of device " + core_.device.name() + " can be read as a whole", "check the drive");
  }

  // Returns the units of the record, or 1.
  [[nodiscard]] std::uint32_t read_record(std::span<const std::byte> bytes, std::uint64_t unit) {
    if (bytes.size() < sizeof(record_head)) return 1;
    const record_view found(bytes);
    if (!found.has_whole_head(core_.seed)) return 1;
    if (bytes_of(found.head()) > bytes.size() || !found.has_whole_value(core_.seed)) {
      ++done_.damaged;
      return 1;
    }
    const std::uint32_t units = core_.sizes.units_for(bytes_of(found.head()));
    const std::uint64_t sequence = found.head().sequence;
    const record here{sequence, core_.on_flash(unit, units, sequence), found.head().page};
    newest_ = std::max(newest_, here.sequence);
    std::string name(1, static_cast<char>(found.head().space));
    name += found.key();
    if (found.head().space == bucket_space) {
      page& known = pages_[name];
      if (known.at.sequence >= here.sequence) return units;
      known.at = here;
      known.keys.clear();
      all_buckets::for_each_key(std::string(reinterpret_cast<const char*>(found.value().data()), found.value().size()),
                                [&](std::string_view key) { known.keys.emplace(key); });
    } else {
      record& known = pairs_found_[name];
      if (known.sequence != 0 && known.sequence != here.sequence) ++done_.older;
      if (known.sequence < here.sequence) known = here;
    }
    return units;
  }

  [[nodiscard]] page* page_of(std::uint8_t space, std::string_view key, std::uint32_t number) {
    const auto name = buckets_.name_of_page(bucket_of(space, key), number);
    const auto at = pages_.find(static_cast<char>(bucket_space) + std::string(name.data(), name.size()));
    return at == pages_.end() ? nullptr : &at->second;
  }

  // Deleted pairs go. Pages with a key that is there are kept.
  void keep_pages() {
    std::erase_if(pairs_found_, [&](const auto& pair) {
      const auto space = static_cast<std::uint8_t>(pair.first[0]);
      const std::string key = pair.first.substr(1);
      page* const p = page_of(space, key, pair.second.page);
      const bool is_listed = p != nullptr && p->keys.contains(key);
      if (is_listed) p->is_used = true;
      const bool is_deleted = p != nullptr && !is_listed && p->at.sequence > pair.second.sequence;
      done_.deleted += is_deleted ? 1 : 0;
      if (!is_listed && !is_deleted) unlisted_.push_back({space, key});
      return is_deleted;
    });
    for (const auto& [name, p] : pages_) {
      if (!p.is_used) continue;
      ++done_.pages;
      lead_to(bucket_space, std::string_view(name).substr(1), p.at);
      buckets_.list_page(std::string_view(name).substr(1));
    }
    // A page that is newer than a record which names it, and does not list its key, says that the key was deleted. So
    // the pages of these keys are not written again before the keys have others.
    for (const unlisted& u : unlisted_) {
      const record& newest = pairs_found_.at(static_cast<char>(u.space) + u.key);
      buckets_.end_page(bucket_of(u.space, u.key), newest.page);
    }
  }
  void keep_pairs() {
    for (const auto& [name, r] : pairs_found_)
      lead_to(static_cast<std::uint8_t>(name[0]), std::string_view(name).substr(1), r);
    done_.keys = pairs_found_.size();
  }

  void lead_to(std::uint8_t space, std::string_view key, const record& r) {
    const std::uint64_t base = parts::base_of(space, key);
    port<Device>& through = port_;
    const auto before = pairs_.find(space, key, base, through, false);
    if (before.is_damaged) core_.damaged(before.at.place, space, key);  // since it was read
    if (!before.at.has_room || !core_.index.put(before.at, r.place))
      throw error("no space in " + core_.medium.name() + " for the index of the device", "make the pool larger");
    core_.flash.add(r.place.address(), r.place.units());
    core_.used_units.fetch_add(r.place.units(), std::memory_order_acq_rel);
  }

  parts& core_;
  pairs<Medium, Device, Hash> pairs_;
  all_buckets& buckets_;
  port<Device> port_{core_.device};
  std::unordered_map<std::string, record> pairs_found_;  // by key space and key
  std::unordered_map<std::string, page> pages_;          // the same
  std::vector<unlisted> unlisted_;
  std::vector<std::uint32_t> unreadable_;
  std::uint64_t newest_ = 0;
  kv_rebuilt done_;
};

}  // namespace pmlab::stores::detail::kv_ssd
