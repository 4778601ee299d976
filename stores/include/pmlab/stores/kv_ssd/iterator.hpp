// The walk of an iterator: over the buckets that match, their pages, and the keys of a page.
//
// A key that is there throughout stays in one page, so the walk meets it once. A listed key is returned only if its
// record names this page (it may have been deleted, and added again elsewhere) and was born before the walk began: a
// key that is deleted and added again during the walk is not met twice.
#pragma once

#include <pmlab/blocks/device.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/buckets.hpp>
#include <pmlab/stores/kv_ssd/core.hpp>
#include <pmlab/stores/kv_ssd/options.hpp>
#include <pmlab/stores/kv_ssd/pairs.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

template <media::medium Medium, blocks::device Device, class Hash>
class walk {
  using parts = core<Medium, Device, Hash>;
  using all_buckets = buckets<Medium, Device, Hash>;

 public:
  // `is_part`: the caller looks itself whether the directory lacks pages.
  walk(parts& of, all_buckets& over, std::uint8_t space, kv_prefix prefix, bool is_part = false)
      : core_(of),
        pairs_(of),
        buckets_(over),
        space_(space),
        prefix_(prefix),
        is_part_(is_part),
        began_(of.last_sequence.load(std::memory_order_acquire)),
        from_(std::uint64_t{space} << 32 | (prefix.pattern & leading(prefix.mask))),
        last_(from_ | static_cast<std::uint32_t>(~leading(prefix.mask))) {}

  // The next key, or std::nullopt at the end. If it throws, the next call goes on where this one was; behind a damaged
  // key or page, which cannot be returned. `skipped`: gets these instead of an exception.
  [[nodiscard]] std::optional<std::string> next(port<Device>& through, kv_skipped* skipped = nullptr) {
    for (;;) {
      while (!listed_.empty()) {
        bool is_key = false;
        try {
          is_key = counts(listed_.back(), through);
        } catch (const kv_damaged&) {
          if (skipped != nullptr) skipped->keys.push_back(listed_.back());
          listed_.pop_back();
          if (skipped == nullptr) throw;
          continue;
        }
        std::string key = std::move(listed_.back());
        listed_.pop_back();
        if (is_key) return key;
      }
      try {
        if (!read_page(through)) return std::nullopt;
      } catch (const kv_damaged&) {
        if (skipped == nullptr) throw;
        ++skipped->pages;
      }
    }
  }

  // The pages that `next` has passed over, by bucket and number; the number all_pages: those of the bucket.
  [[nodiscard]] const std::vector<std::pair<std::uint64_t, std::uint32_t>>& skipped_pages() const noexcept {
    return skipped_pages_;
  }

 private:
  // The bits of a mask from the top down to its first zero.
  [[nodiscard]] static std::uint32_t leading(std::uint32_t mask) noexcept {
    const int ones = std::countl_one(mask);
    return ones == 0 ? 0 : ~std::uint32_t{0} << (32 - ones);
  }

  [[nodiscard]] bool counts(const std::string& key, port<Device>& through) {
    const std::uint64_t base = parts::base_of(space_, key);
    const std::shared_lock lock(core_.lock_of(space_, base));
    const auto there = pairs_.find(space_, key, base, through, false);
    if (there.is_damaged) core_.damaged(there.at.place, space_, key);
    return there.is_there() && there.head.page == listed_page_ && there.head.birth <= began_;
  }

  // Fills `listed_` from the next page. False: there is none.
  [[nodiscard]] bool read_page(port<Device>& through) {
    for (;;) {
      if (!bucket_ && !next_bucket()) {
        if (is_part_ || !skipped_pages_.empty() || !buckets_.lacks_pages()) return false;
        const std::uint64_t space = std::uint64_t{space_} << 32;
        skipped_pages_.emplace_back(space, all_buckets::all_pages);
        buckets_.throw_damaged(space);
      }
      std::optional<typename all_buckets::range> pages;
      try {
        pages = buckets_.find(*bucket_);
      } catch (const kv_damaged&) {
        skipped_pages_.emplace_back(*bucket_, all_buckets::all_pages);
        bucket_.reset();
        throw;
      }
      if (pages) page_ = std::max(page_, pages->oldest);
      if (!pages || page_ > pages->newest) {
        bucket_.reset();
        continue;
      }
      std::vector<std::string> keys;
      try {
        const std::string content = buckets_.page(*bucket_, page_, through);
        all_buckets::for_each_key(content, [&](std::string_view key) { keys.emplace_back(key); });
      } catch (const kv_damaged&) {
        skipped_pages_.emplace_back(*bucket_, page_++);
        throw;
      }
      std::reverse(keys.begin(), keys.end());
      listed_.swap(keys);
      listed_page_ = page_++;
      if (!listed_.empty()) return true;
    }
  }

  // A damaged directory may give names in any order: those beyond the wanted ones are passed over, and a walk ends.
  [[nodiscard]] bool next_bucket() {
    std::array<indexes::entry, 16> some;
    while (!is_done_) {
      const std::uint64_t from = from_;
      std::size_t count = 0;
      try {
        count = buckets_.scan(from, some);
      } catch (const kv_damaged&) {
        is_done_ = true;
        skipped_pages_.emplace_back(std::uint64_t{space_} << 32, all_buckets::all_pages);
        throw;
      }
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t bucket = some[i].key;
        if (bucket < from_ || bucket > last_) continue;
        from_ = bucket + 1;
        if ((static_cast<std::uint32_t>(bucket) & prefix_.mask) != prefix_.pattern) continue;
        bucket_ = bucket;
        page_ = 0;
        return true;
      }
      is_done_ = count < some.size() || some[count - 1].key >= last_ || from_ == from;
    }
    return false;
  }

  parts& core_;
  pairs<Medium, Device, Hash> pairs_;
  all_buckets& buckets_;
  std::uint8_t space_;
  kv_prefix prefix_;
  bool is_part_;
  std::uint64_t began_;  // the last sequence then
  std::uint64_t from_;   // buckets from here on were not met
  std::uint64_t last_;   // that can match
  bool is_done_ = false;
  std::optional<std::uint64_t> bucket_;
  std::uint32_t page_ = 0;         // the next one of the bucket
  std::uint32_t listed_page_ = 0;  // page of the keys in listed_
  std::vector<std::string> listed_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> skipped_pages_;
};

}  // namespace pmlab::stores::detail::kv_ssd
