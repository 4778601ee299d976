// Reads the log back: the groups that continue the chain, up to the first that is not there.
//
// A crash may leave any groups of the last flush, so a gap is no damage by itself. It is damage if an intact group
// behind it was written when changes in the gap were durable, or by a session or behind a manifest that opening has not
// found. Looked at are the rest of the segment with the gap, and all segments that begin with a group behind it, also
// where that first group is itself damaged. Where nothing is left of its header, the segment is one of the next free
// ones, and these are read, too.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/stores/tiered/findings.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/log.hpp>
#include <pmlab/stores/tiered/memtable.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>
#include <pmlab/stores/tiered/segments.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <vector>

namespace pmlab::stores::detail::tiered {

// Intact groups behind the end of replay.
struct groups_behind {
  struct place {
    std::uint64_t first;
    std::uint32_t segment;
    std::uint32_t offset;
  };
  std::vector<place> groups{};  // in order
  std::uint64_t last = 0;       // their last change
  std::uint64_t durable = 0;    // what one of them calls durable
  std::uint64_t manifest = 0;   // the newest that one of them calls durable
};

struct replayed {
  log_anchor end{};  // where the log goes on
  std::vector<logged_group> groups{};
  std::uint64_t manifest = 0;  // the newest that one of them calls durable
};

// Thread safety: none.
template <blocks::device Device>
class log_reader {
 public:
  // `found`: a drive that fails is noted there, if it tolerates that.
  log_reader(segment_io<Device>& drives, const store_areas& where, const identity& store, findings& found)
      : drives_(drives), where_(where), store_(store), found_(found), segment_(where.segment_bytes) {}

  // Calls apply(change, sequence, place) for each record from `begin` on. Throws pmlab::error if the drive fails.
  template <class Apply>
  replayed run(const log_anchor& begin, Apply&& apply) {
    find_heads();
    replayed result;
    log_anchor at = begin;
    for (;;) {
      if (at.segment == no_segment || !is_next(at)) {
        const auto [first, last] = heads_.equal_range(at.chain);
        const auto head = std::find_if(first, last, [&](const auto& h) {
          return is_next({h.second, 0, at.chain, at.next});
        });
        if (head == last) break;
        at.segment = head->second;
        at.offset = 0;
      }
      const std::uint64_t end = at.next + header_.records;
      result.groups.push_back({at.next, end - 1, at.segment, at.offset, at.chain});
      apply_records(at, apply);
      generation_ = header_.generation;
      at.chain = header_.checksum;
      at.next = end;
      at.offset += static_cast<std::uint32_t>(round_up(sizeof header_ + header_.bytes, where_.block_bytes));
    }
    result.end = at;
    result.manifest = generation_;
    return result;
  }

  // Behind the end of `run`, of the session that began with the manifest `opened` or a later one. `references`: of sets
  // to the segments of each drive; the log goes on in segments without any.
  [[nodiscard]] groups_behind look_behind(const log_anchor& end, std::uint64_t opened,
                                          const segment_references& references) {
    groups_behind behind;
    if (end.segment != no_segment && end.offset < where_.segment_bytes)
      look_at(end.segment, end.offset, end, opened, behind);
    for (const std::uint32_t s : suspects_) {
      if (s == end.segment) continue;
      read(s, 0, segment_.bytes().first(where_.block_bytes));
      group_header h;
      std::memcpy(&h, segment_.data(), sizeof h);
      // A group of an earlier session, or an earlier change, if it is intact. A long one is believed, unless it
      // continues the chain: that is the place of a gap.
      if ((h.generation < opened || h.first < end.next) && h.store == store_)
        if ((h.bytes > most_checked_bytes && h.previous != end.chain) || is_intact_alone(s, h)) continue;
      look_at(s, 0, end, opened, behind);
    }
    for (const std::uint32_t s : next_without_header(end, references)) look_at(s, 0, end, opened, behind);
    std::sort(behind.groups.begin(), behind.groups.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    return behind;
  }
  // Calls apply as `run` does, for a group that `look_behind` has found.
  template <class Apply>
  void run_one(const groups_behind::place& p, Apply&& apply) {
    read(p.segment, p.offset, segment_.bytes().first(where_.segment_bytes - p.offset));
    std::memcpy(&header_, segment_.data(), sizeof header_);
    apply_records({p.segment, p.offset, 0, p.first}, apply);
  }

 private:
  static constexpr std::uint32_t most_checked_bytes = 65536;
  // Free segments in a row that are read without a header, as a whole.
  static constexpr std::uint32_t most_without_header = 4;

  // The segments that the log may have taken next, and that begin with no header of this store: free ones, behind its
  // end and, for a session that had not taken any before, from the start of each drive.
  [[nodiscard]] std::set<std::uint32_t> next_without_header(const log_anchor& end,
                                                            const segment_references& references) const {
    std::set<std::uint32_t> found;
    for (std::uint32_t c = 0; c < classes; ++c) {
      const auto add_from = [&](std::uint32_t first) {
        const auto count = static_cast<std::uint32_t>(references[c].size());
        std::uint32_t left = most_without_header;
        for (std::uint32_t i = 0; i < count && left > 0; ++i) {
          const std::uint32_t n = (first + i) % count;
          const std::uint32_t s = c == index_of(media_class::staging) ? n : n | capacity_bit;
          if (references[c][n] != 0 || s == end.segment || std::binary_search(suspects_.begin(), suspects_.end(), s))
            continue;
          found.insert(s);
          --left;
        }
      };
      add_from(0);
      if (end.segment != no_segment && index_of(class_of(end.segment)) == c)
        add_from((end.segment & ~capacity_bit) + 1);
    }
    return found;
  }

  // Finds, for each segment, the chain that its first group continues.
  void find_heads() {
    for (std::uint32_t c = 0; c < classes; ++c)
      for (std::uint32_t n = 0; n < where_.drives[c].segments(); ++n) {
        const std::uint32_t s = c == index_of(media_class::staging) ? n : n | capacity_bit;
        read(s, 0, segment_.bytes().first(where_.block_bytes));
        group_header h;
        std::memcpy(&h, segment_.data(), sizeof h);
        if (h.store == store_ && h.records > 0) heads_.emplace(h.previous, s);
        if (h.store[0] == store_[0] || h.store[1] == store_[1]) suspects_.push_back(s);
      }
  }

  // Whether it may be the header of a group of this store, `left` bytes before the end of a segment.
  [[nodiscard]] bool is_possible(const group_header& h, std::size_t left) const noexcept {
    return h.store == store_ && h.records > 0 && h.bytes <= left - sizeof h;
  }
  [[nodiscard]] static bool has_right_checksum(const group_header& h, const std::byte* start) noexcept {
    constexpr std::size_t own = sizeof h.checksum;
    return is_checksum(h.checksum, start + own, sizeof h - own + h.bytes, 1);
  }
  // The first group of a segment.
  [[nodiscard]] bool is_intact_alone(std::uint32_t segment, const group_header& h) {
    if (!is_possible(h, where_.segment_bytes)) return false;
    read(segment, 0, segment_.bytes().first(round_up(sizeof h + h.bytes, where_.block_bytes)));
    return has_right_checksum(h, segment_.data());
  }
  void look_at(std::uint32_t segment, std::uint32_t from, const log_anchor& end, std::uint64_t opened,
               groups_behind& behind) {
    const std::size_t bytes = where_.segment_bytes - from;
    read(segment, from, segment_.bytes().first(bytes));
    for (std::size_t at = 0; at < bytes;) {
      group_header h;
      std::memcpy(&h, segment_.data() + at, sizeof h);
      if (!is_possible(h, bytes - at) || h.generation < opened || h.first < end.next ||
          !has_right_checksum(h, segment_.data() + at)) {
        at += where_.block_bytes;
        continue;
      }
      behind.groups.push_back({h.first, segment, from + static_cast<std::uint32_t>(at)});
      behind.last = std::max(behind.last, h.first + h.records - 1);
      behind.durable = std::max(behind.durable, h.durable);
      behind.manifest = std::max(behind.manifest, h.generation);
      at += round_up(sizeof h + h.bytes, where_.block_bytes);
    }
  }
  // A part that the drive does not give is as if it had zeros, if that is tolerated.
  void read(std::uint32_t segment, std::uint32_t offset, std::span<std::byte> data) {
    try {
      drives_.read(segment, offset, data, blocks::stream::log);
    } catch (const error& e) {
      if (!found_.tolerates()) throw;
      found_.note(e.what());
      std::memset(data.data(), 0, data.size());
    }
  }

  // Reads the group there into the buffer. True: it is whole, and continues the chain.
  [[nodiscard]] bool is_next(const log_anchor& at) {
    if (at.offset + where_.block_bytes > where_.segment_bytes) return false;
    read(at.segment, at.offset, segment_.bytes().first(where_.block_bytes));
    std::memcpy(&header_, segment_.data(), sizeof header_);
    if (header_.store != store_ || header_.previous != at.chain || header_.first != at.next) return false;
    if (header_.records == 0 || header_.generation < generation_) return false;
    if (header_.bytes > where_.segment_bytes - at.offset - sizeof header_) return false;
    const std::uint64_t bytes = round_up(sizeof header_ + header_.bytes, where_.block_bytes);
    if (bytes > where_.block_bytes)
      read(at.segment, at.offset + where_.block_bytes,
           segment_.bytes().subspan(where_.block_bytes, bytes - where_.block_bytes));
    return has_right_checksum(header_, segment_.data());
  }

  template <class Apply>
  void apply_records(const log_anchor& at, Apply&& apply) {
    const auto* const start = reinterpret_cast<const char*>(segment_.data());
    std::size_t from = sizeof header_;
    const std::size_t end = from + header_.bytes;
    for (std::uint32_t i = 0; i < header_.records; ++i) {
      record_header r;
      if (end - from < sizeof r) damaged();
      std::memcpy(&r, start + from, sizeof r);
      from += sizeof r;
      if (r.sequence != at.next + i || r.key_bytes > most_key_bytes ||
          end - from < std::size_t{r.key_bytes} + r.value_bytes)
        damaged();
      const std::size_t value = from + r.key_bytes;
      apply(change{r.kind, r.table, {start + from, r.key_bytes}, {start + value, r.value_bytes}}, r.sequence,
            value_place{at.segment, static_cast<std::uint32_t>(at.offset + value)});
      from = value + r.value_bytes;
    }
  }
  [[noreturn]] static void damaged() {
    throw error("a group of the log has a right checksum and impossible records",
                "another version of pmlab wrote it: use that version");
  }

  segment_io<Device>& drives_;
  store_areas where_;
  identity store_;
  findings& found_;
  blocks::buffer segment_;
  group_header header_{};
  std::uint64_t generation_ = 0;
  std::multimap<std::uint64_t, std::uint32_t> heads_;  // previous -> segment
  std::vector<std::uint32_t> suspects_;                // segments that may begin with a group, in order
};

}  // namespace pmlab::stores::detail::tiered
