// Reads the log back: the groups that continue the chain, up to the first that is not there.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/log.hpp>
#include <pmlab/stores/tiered/memtable.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <vector>

namespace pmlab::stores::detail::tiered {

struct replayed {
  log_anchor end{};  // where the log goes on
  std::vector<logged_group> groups{};
};

// Thread safety: none.
template <blocks::device Device>
class log_reader {
 public:
  log_reader(segment_io<Device>& drives, const store_areas& where, const identity& store)
      : drives_(drives), where_(where), store_(store), segment_(where.segment_bytes) {}

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
    return result;
  }

 private:
  // Of each segment, the chain that its first group continues.
  void find_heads() {
    for (std::uint32_t c = 0; c < classes; ++c)
      for (std::uint32_t n = 0; n < where_.drives[c].segments(); ++n) {
        const std::uint32_t s = c == index_of(media_class::staging) ? n : n | capacity_bit;
        drives_.read(s, 0, segment_.bytes().first(where_.block_bytes), blocks::stream::log);
        group_header h;
        std::memcpy(&h, segment_.data(), sizeof h);
        if (h.store == store_ && h.records > 0) heads_.emplace(h.previous, s);
      }
  }

  // Reads the group there into the buffer. True: it is whole, and continues the chain.
  [[nodiscard]] bool is_next(const log_anchor& at) {
    if (at.offset + where_.block_bytes > where_.segment_bytes) return false;
    drives_.read(at.segment, at.offset, segment_.bytes().first(where_.block_bytes), blocks::stream::log);
    std::memcpy(&header_, segment_.data(), sizeof header_);
    if (header_.store != store_ || header_.previous != at.chain || header_.first != at.next) return false;
    if (header_.records == 0 || header_.generation < generation_) return false;
    if (header_.bytes > where_.segment_bytes - at.offset - sizeof header_) return false;
    const std::uint64_t bytes = round_up(sizeof header_ + header_.bytes, where_.block_bytes);
    if (bytes > where_.block_bytes)
      drives_.read(at.segment, at.offset + where_.block_bytes,
                   segment_.bytes().subspan(where_.block_bytes, bytes - where_.block_bytes), blocks::stream::log);
    const std::size_t own = sizeof header_.checksum;
    return header_.checksum == checksum(segment_.data() + own, sizeof header_ - own + header_.bytes, 1);
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
  blocks::buffer segment_;
  group_header header_{};
  std::uint64_t generation_ = 0;
  std::multimap<std::uint64_t, std::uint32_t> heads_;  // previous -> segment
};

}  // namespace pmlab::stores::detail::tiered
