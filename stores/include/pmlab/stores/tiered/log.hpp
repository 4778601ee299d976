// The log, which is the value store: changes become durable in groups, in the order of their sequences.
//
// A change gets its place in a segment when it is acknowledged, so the log never acknowledges a change for which it has
// no room. A flush writes the groups that are forming, then makes the drive durable. What survives is one prefix:
//
// (L1) < (L2): a change is durable, and older ones with it, when the flush behind its group has completed.
// A group names the checksum of the group before. A crash may keep any of several groups of one flush; replay ends at
// the first that is not there, and later ones stay lost, since the next opening writes other groups behind the same
// chain. A group also has the last change that was durable when it was written, and the manifest that was. A gap before
// a change that an intact group behind it calls durable is no torn end but damage: see replay.hpp.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/memtable.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>
#include <pmlab/stores/tiered/segments.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// A group that is in the log: its sequences and its place.
struct logged_group {
  std::uint64_t first = 0;
  std::uint64_t last = 0;
  std::uint32_t segment = no_segment;
  std::uint32_t offset = 0;
  std::uint64_t previous = 0;  // checksum of the group before
};

// Seals a group: fills in the header of `bytes` bytes of records behind it. Returns its checksum.
inline std::uint64_t seal(std::byte* group, group_header h) noexcept {
  std::memcpy(group, &h, sizeof h);
  h.checksum = checksum(group + sizeof h.checksum, sizeof h - sizeof h.checksum + h.bytes, 1);
  std::memcpy(group, &h, sizeof h);
  return h.checksum;
}

[[nodiscard]] inline std::size_t record_bytes(const change& c) noexcept {
  return sizeof(record_header) + c.key.size() + c.value.size();
}

// Changes that are acknowledged, and not durable yet.
struct unflushed {
  std::uint64_t bytes = 0;   // bytes of their records
  std::uint64_t oldest = 0;  // when the oldest one was acknowledged, on the clock; log::never: there is none
  std::uint64_t newest = 0;  // when the newest change was, durable or not
};

template <blocks::device Device>
class log {
 public:
  // `preferred`: where its segments are.
  log(const drive_pair<Device>& on, const identity& store, segment_map& segments, media_class preferred)
      : drive_(on), where_(on.where), store_(store), segments_(segments), preferred_(preferred) {}

  // Goes on behind `end`, in a fresh segment; `groups` are those that replay found.
  void begin(std::uint64_t generation, const log_anchor& end, std::vector<logged_group> groups) {
    manifest_is(generation);
    chain_ = end.chain;
    durable_ = unflushed_ = end.next - 1;
    for (const logged_group& g : groups) {
      written_.push_back(g);
      if (held_.empty() || held_.back().segment != g.segment) {
        held_.push_back({g.segment, 0});
        segments_.refer(g.segment);
      }
      held_.back().last = g.last;
    }
  }

  // `tell(oldest)` is called behind each flush that has made changes durable, whichever thread asked: `oldest` is when
  // the first of them was acknowledged. It may not throw. REQUIRES: no flush is under way.
  void when_durable(std::function<void(std::uint64_t)> tell) { tell_ = std::move(tell); }

  // The manifest of this version is durable: groups that are written from now on have its number. From any thread.
  void manifest_is(std::uint64_t version) noexcept { generation_.store(version, std::memory_order_relaxed); }

  // The most that one batch may have.
  [[nodiscard]] std::size_t most_batch_bytes() const noexcept { return where_.segment_bytes - sizeof(group_header); }

  // Adds changes of `bytes` bytes in all to one group; one thread at a time. They get the sequences behind `last`, and
  // nodes in `table`, where readers find them. `now`: of the clock. False: no more than `keep` segments are free;
  // nothing was inserted. Throws std::bad_alloc: likewise.
  //
  // (A1) < (A2): all memory is there before the first node is linked, and nothing behind that throws. So no batch is in
  // the table, or in a group, in part.
  [[nodiscard]] bool append(std::span<const change> changes, std::uint64_t last, std::size_t bytes,
                            const kept_segments& keep, std::uint64_t now, const std::shared_ptr<memtable>& table) {
    const std::scoped_lock lock(mutex_);  // held for all of them, so that no flush cuts a batch in two
    if (!reserve(bytes, keep)) return false;
    group& g = groups_.back();
    const std::size_t before = g.changes.size();
    try {
      if (g.tables.empty() || g.tables.back() != table) g.tables.push_back(table);
      for (const change& c : changes) {
        g.changes.push_back(nullptr);
        g.changes.back() = table->prepare(c);  // (A1)
      }
    } catch (...) {
      g.changes.resize(before);
      throw;
    }
    for (std::size_t i = 0; i < changes.size(); ++i) {
      const std::size_t value =
          g.offset + sizeof(group_header) + g.bytes + sizeof(record_header) + changes[i].key.size();
      table->link(*g.changes[before + i], ++last, {g.segment, static_cast<std::uint32_t>(value)});  // (A2)
      g.bytes += record_bytes(changes[i]);
    }
    held_.back().last = last;
    dirty_ += bytes;
    if (oldest_ == never) oldest_ = now;
    newest_ = now;
    return true;
  }

  // ---- from any thread

  // Makes all that was appended before durable. Throws pmlab::error if the drive fails: nothing is lost then, and the
  // next flush tries again, unless the drive has failed for good.
  void flush() {
    const std::scoped_lock one_flusher(flush_mutex_);
    take();
    if (taken_.empty() && unflushed_ == durable_now()) return;
    try {
      while (!taken_.empty()) {
        write(taken_.front());
        taken_.pop_front();
      }
      drive_.flush(blocks::stream::log);  // (L1)
    } catch (...) {
      failed_.store(true, std::memory_order_relaxed);
      throw;
    }
    std::uint64_t oldest = never;
    {
      const std::scoped_lock lock(mutex_);
      durable_ = unflushed_;  // (L2)
      dirty_ -= std::exchange(dirty_taken_, 0);
      oldest = std::exchange(taken_oldest_, never);
    }
    failed_.store(false, std::memory_order_relaxed);
    if (oldest != never && tell_) tell_(oldest);
  }
  // The last flush failed.
  [[nodiscard]] bool has_failed() const noexcept { return failed_.load(std::memory_order_relaxed); }

  // All changes up to this sequence are durable.
  [[nodiscard]] std::uint64_t durable_now() const {
    const std::scoped_lock lock(mutex_);
    return durable_;
  }
  [[nodiscard]] unflushed not_durable() const {
    const std::scoped_lock lock(mutex_);
    return {dirty_, std::min(oldest_, taken_oldest_), newest_};
  }
  static constexpr std::uint64_t never = std::numeric_limits<std::uint64_t>::max();

  // Where replay would begin if versions up to `ingested` were elsewhere. REQUIRES: these are durable here.
  [[nodiscard]] log_anchor anchor_behind(std::uint64_t ingested) const {
    const std::scoped_lock lock(mutex_);
    for (const logged_group& g : written_)
      if (g.last > ingested) return {g.segment, g.offset, g.previous, g.first};
    return {after_.segment, after_.offset, chain_, unflushed_ + 1};
  }
  // Gives up the segments that replay does not need behind `ingested`. REQUIRES: the manifest that begins replay
  // behind it is durable.
  void forget(std::uint64_t ingested) {
    const std::scoped_lock lock(mutex_);
    while (!written_.empty() && written_.front().last <= ingested) written_.pop_front();
    while (!held_.empty() && held_.front().segment != current_ && held_.front().last <= ingested) {
      segments_.drop(held_.front().segment);
      held_.pop_front();
    }
  }
  // The segments that it refers to.
  [[nodiscard]] std::vector<std::uint32_t> segments_in_use() const {
    const std::scoped_lock lock(mutex_);
    std::vector<std::uint32_t> all;
    for (const held_segment& h : held_) all.push_back(h.segment);
    return all;
  }

 private:
  struct held_segment {
    std::uint32_t segment;
    std::uint64_t last;  // sequence of the last change in it
  };
  struct group {
    std::uint32_t segment;
    std::uint32_t offset;
    std::size_t bytes;  // bytes of the records
    std::vector<memtable::node*> changes;
    std::vector<std::shared_ptr<memtable>> tables{};  // that have them
  };

  // A forming group with room for so many bytes of records.
  [[nodiscard]] bool reserve(std::size_t bytes, const kept_segments& keep) {
    if (forming_ && fits(groups_.back(), bytes)) return true;
    if (forming_) close();
    if (current_ == no_segment ||
        round_up(end_ + sizeof(group_header) + bytes, where_.block_bytes) > where_.segment_bytes) {
      held_.push_back({no_segment, 0});  // before a segment is taken: it may throw
      const std::optional<std::uint32_t> taken = segments_.take(preferred_, keep);
      if (!taken) {
        held_.pop_back();
        return false;
      }
      held_.back().segment = current_ = *taken;
      end_ = 0;
    }
    groups_.push_back({current_, end_, 0, {}});
    forming_ = true;
    return true;
  }
  [[nodiscard]] bool fits(const group& g, std::size_t bytes) const noexcept {
    return round_up(g.offset + sizeof(group_header) + g.bytes + bytes, where_.block_bytes) <= where_.segment_bytes;
  }
  // The last group takes no more. One that is empty goes: its place is used again.
  void close() {
    const group& g = groups_.back();
    if (g.bytes == 0)
      groups_.pop_back();
    else
      end_ = static_cast<std::uint32_t>(round_up(g.offset + sizeof(group_header) + g.bytes, where_.block_bytes));
    forming_ = false;
  }
  void take() {
    const std::scoped_lock lock(mutex_);
    if (forming_) close();
    taken_.splice(taken_.end(), groups_);
    dirty_taken_ = dirty_;
    taken_oldest_ = std::min(taken_oldest_, std::exchange(oldest_, never));
  }
  void write(const group& g) {
    const std::size_t bytes = round_up(sizeof(group_header) + g.bytes, where_.block_bytes);
    if (buffer_.size() < bytes) buffer_ = blocks::buffer(bytes);
    std::byte* at = buffer_.data() + sizeof(group_header);
    for (const memtable::node* n : g.changes) {
      const version_name name = n->name();
      const std::string_view value = n->value();
      const record_header h{name.sequence, static_cast<std::uint32_t>(value.size()),
                            static_cast<std::uint16_t>(name.key.size()), static_cast<std::uint8_t>(name.table),
                            n->kind()};
      std::memcpy(at, &h, sizeof h);
      at += sizeof h;
      if (!name.key.empty()) std::memcpy(at, name.key.data(), name.key.size());
      at += name.key.size();
      if (!value.empty()) std::memcpy(at, value.data(), value.size());
      at += value.size();
    }
    std::memset(at, 0, static_cast<std::size_t>(buffer_.data() + bytes - at));
    group_header h;
    h.previous = chain_;
    h.store = store_;
    h.generation = generation_.load(std::memory_order_relaxed);
    h.first = g.changes.front()->name().sequence;
    h.records = static_cast<std::uint32_t>(g.changes.size());
    h.bytes = static_cast<std::uint32_t>(g.bytes);
    h.durable = durable_now();
    const std::uint64_t sealed = seal(buffer_.data(), h);
    drive_.write(g.segment, g.offset, buffer_.bytes().first(bytes), blocks::stream::log);
    const std::scoped_lock lock(mutex_);
    written_.push_back({h.first, g.changes.back()->name().sequence, g.segment, g.offset, chain_});
    unflushed_ = written_.back().last;
    chain_ = sealed;
    after_ = {g.segment, static_cast<std::uint32_t>(g.offset + bytes)};
  }

  segment_io<Device> drive_;  // drive of the flusher
  store_areas where_;
  identity store_;
  segment_map& segments_;
  media_class preferred_;
  std::atomic<std::uint64_t> generation_{0};

  std::function<void(std::uint64_t)> tell_;

  std::mutex flush_mutex_;
  std::atomic<bool> failed_{false};
  std::list<group> taken_;  // not written yet
  blocks::buffer buffer_;

  mutable std::mutex mutex_;
  std::list<group> groups_;  // the last one is forming, if `forming_`
  bool forming_ = false;
  std::uint32_t current_ = no_segment;
  std::uint32_t end_ = 0;          // end of the last closed group of the current segment
  std::deque<held_segment> held_;  // in the order of their use
  std::deque<logged_group> written_;
  std::uint64_t chain_ = 0;  // checksum of the last group written
  value_place after_{};      // where that one ends
  std::uint64_t durable_ = 0;
  std::uint64_t unflushed_ = 0;  // the last change written
  std::uint64_t dirty_ = 0;
  std::uint64_t dirty_taken_ = 0;
  std::uint64_t oldest_ = never;
  std::uint64_t newest_ = 0;
  std::uint64_t taken_oldest_ = never;
};

}  // namespace pmlab::stores::detail::tiered
