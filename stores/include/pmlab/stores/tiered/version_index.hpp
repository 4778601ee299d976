// The newest changes in persistent memory: an ordered index of all versions, each durable when its change returns.
//
//   key of the index    | table | key, escaped | 0 1 | ~sequence, big-endian | kind, and whether it ends a batch |
//   value               the value
//
// Zeros of a key are followed by 255, so that the order of the index is that of versions: table, key, the newest first.
//
// (M1) < (M2): the last change of a batch, which ends it, is inserted when the others are durable. Batches are made one
// after the other, so a crash leaves whole batches and at most the beginning of one behind them, which opening removes.
// A sequence without its version is damage: opening refuses it.
//
// Versions leave when a set has them: by ranges of sequences, since a set is made of one (memory_table.hpp).
//
// Layout (medium): named root `tiered` -> memory_state, `tiered.epoch` -> memory_epoch; the string index
// `tiered.versions`.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/tiered/findings.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/memtable.hpp>
#include <pmlab/stores/tiered/versions.hpp>
#include <pmlab/strings/string_index.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <list>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// ---- names of versions as keys of an index ----

inline constexpr char ends_batch = 0x10;

// `mark`: kind and ends_batch; 0: a place before all versions of this sequence.
[[nodiscard]] inline std::string index_key(const version_name& name, char mark = 0) {
  std::string text;
  text.reserve(name.key.size() + 16);
  text.push_back(static_cast<char>(name.table));
  for (const char c : name.key) {
    text.push_back(c);
    if (c == 0) text.push_back('\xff');
  }
  text.push_back(0);
  text.push_back(1);
  for (int shift = 56; shift >= 0; shift -= 8) text.push_back(static_cast<char>(~name.sequence >> shift));
  text.push_back(mark);
  return text;
}

// The mark in a key of the index.
[[nodiscard]] inline char mark_in(std::string_view text) noexcept { return text.back(); }
[[nodiscard]] inline change_kind kind_in(std::string_view text) noexcept {
  return static_cast<change_kind>(text.back() & 0x0f);
}
[[nodiscard]] inline std::uint64_t sequence_in(std::string_view text) noexcept {
  std::uint64_t inverted = 0;
  for (const char c : text.substr(text.size() - 9, 8)) inverted = inverted << 8 | static_cast<std::uint8_t>(c);
  return ~inverted;
}
[[nodiscard]] inline std::string user_key_in(std::string_view text) {
  std::string key;
  const std::string_view escaped = text.substr(1, text.size() - 12);
  key.reserve(escaped.size());
  for (std::size_t i = 0; i < escaped.size(); ++i) {
    key.push_back(escaped[i]);
    if (escaped[i] == 0) ++i;
  }
  return key;
}

// ---- whose memory it is ----

enum class memory_phase : std::uint64_t { none = 0, forming = 1, ready = 2 };

struct memory_state {
  std::atomic<std::uint64_t> store[2]{};  // its identity
  std::atomic<std::uint64_t> phase{0};
};

// What the memory knows of the manifests: epoch.hpp. A root of its own: memory of older stores has none, and gets one.
struct memory_epoch {
  std::atomic<std::uint64_t> session{0};
  std::atomic<std::uint64_t> promised{0};
  std::atomic<std::uint64_t> confirmed{0};
};

// Sequences in (low, high].
struct sequence_range {
  std::uint64_t low = 0;
  std::uint64_t high = std::numeric_limits<std::uint64_t>::max();
  [[nodiscard]] bool has(std::uint64_t s) const noexcept { return s > low && s <= high; }
};

// Thread safety: readers from any thread; `insert` by one thread at a time, and `collect` by any.
template <media::medium Medium, class Index>
class version_index {
  using strings_type = strings::string_index<Medium, Index, strings::blob_values>;
  using publication = typename Medium::publication;

 public:
  explicit version_index(Medium& medium)
      : medium_(medium),
        state_(open_root<memory_state>(medium, "tiered", "tiered_memory")),
        epoch_(open_root<memory_epoch>(medium, "tiered.epoch", "tiered_epoch")),
        versions_(strings_type::open(medium, "tiered.versions")) {}
  version_index(const version_index&) = delete;
  version_index& operator=(const version_index&) = delete;
  ~version_index() = default;

  [[nodiscard]] Medium& medium() noexcept { return medium_; }

  // ---- identity

  [[nodiscard]] memory_phase phase() const noexcept {
    return static_cast<memory_phase>(state_.phase.load(std::memory_order_acquire));
  }
  [[nodiscard]] identity store() const noexcept {
    return {state_.store[0].load(std::memory_order_acquire), state_.store[1].load(std::memory_order_acquire)};
  }
  // All three words at once; durable on return.
  void become(const identity& store, memory_phase phase) {
    publication change(medium_);
    media::publish_store(change, state_.store[0], store[0]);
    media::publish_store(change, state_.store[1], store[1]);
    media::publish_store(change, state_.phase, static_cast<std::uint64_t>(phase));
    change.commit();
  }

  // ---- epoch

  [[nodiscard]] drive_epoch epoch() const noexcept {
    drive_epoch e;
    e.session = epoch_.session.load(std::memory_order_acquire);
    e.promised = epoch_.promised.load(std::memory_order_acquire);
    e.confirmed = epoch_.confirmed.load(std::memory_order_acquire);
    return e;
  }
  // All of it at once; durable on return.
  void become(const drive_epoch& e) {
    publication change(medium_);
    media::publish_store(change, epoch_.session, e.session);
    media::publish_store(change, epoch_.promised, e.promised);
    media::publish_store(change, epoch_.confirmed, e.confirmed);
    change.commit();
  }

  // ---- opening

  // Removes everything.
  void clear() {
    become(drive_epoch());
    retire(sequence_range{});
    collect();
  }

  // Removes versions up to `ingested`, which sets have, and the beginning of a batch at the end. Returns the greatest
  // sequence that is there, or `ingested`. Throws pmlab::error: versions are missing.
  std::uint64_t recover(std::uint64_t ingested) {
    std::uint64_t last = ingested;
    versions_.scan_keys({}, [&](std::string_view text) {
      if ((mark_in(text) & ends_batch) != 0) last = std::max(last, sequence_in(text));
      return true;
    });
    retire({0, ingested});
    retire({last, sequence_range{}.high});
    collect();
    std::uint64_t count = 0;
    versions_.scan_keys({}, [&](std::string_view text) {
      if (sequence_range{ingested, last}.has(sequence_in(text))) {
        ++count;
        entered(text);
      }
      return true;
    });
    if (count != last - ingested)
      throw error("the memory has " + std::to_string(count) + " of the " + std::to_string(last - ingested) +
                      " changes behind sequence " + std::to_string(ingested),
                  "give the memory and the drives of one moment: restore all of them from one copy");
    return last;
  }

  // As recover, and removes nothing: those versions are outside the ranges that readers ask for.
  std::uint64_t look(std::uint64_t ingested, findings& found) {
    std::uint64_t last = ingested;
    versions_.scan_keys({}, [&](std::string_view text) {
      if ((mark_in(text) & ends_batch) != 0) last = std::max(last, sequence_in(text));
      return true;
    });
    std::uint64_t count = 0;
    versions_.scan_keys({}, [&](std::string_view text) {
      if (!sequence_range{ingested, last}.has(sequence_in(text))) return true;
      ++count;
      entered(text);
      return true;
    });
    if (count != last - ingested)
      found.refuse("the memory has " + std::to_string(count) + " of the " + std::to_string(last - ingested) +
                       " changes behind sequence " + std::to_string(ingested),
                   "");
    return last;
  }

  // ---- changes

  // Inserts these, with sequences from `first` on: all of them durable on return, or (false: the medium is full) none.
  // Throws std::bad_alloc, or what the medium throws: none, too. What cannot be taken back at once is taken back before
  // the next ones are inserted; until then no reader asks for it.
  [[nodiscard]] bool insert(std::span<const change> changes, std::uint64_t first) {
    if (!undo()) return false;
    made_.reserve(changes.size());
    try {
      for (std::size_t i = 0; i < changes.size(); ++i) {
        const change& c = changes[i];
        const bool ends = i + 1 == changes.size();
        // It is noted first: after an exception it may be there.
        made_.push_back(index_key({c.table, c.key, first + i},
                                  static_cast<char>(static_cast<char>(c.kind) | (ends ? ends_batch : 0))));
        // (M1) the first ones; (M2) the last one: durable when `insert` returns.
        if (versions_.insert(made_.back(), c.value) != strings::outcome::inserted) {
          static_cast<void>(undo());
          return false;
        }
      }
    } catch (...) {
      try_to_undo();
      throw;
    }
    for (const std::string& text : made_) entered(text);
    made_.clear();
    return true;
  }

  // ---- reading

  // The first version at or after `name` with a sequence in `range`.
  [[nodiscard]] std::optional<found_version> at_least(const version_name& name, const sequence_range& range) {
    if (name.table >= most_tables) return std::nullopt;
    std::string from = index_key(name);
    for (;;) {
      std::string text;
      versions_.scan_keys(from, [&](std::string_view at) {
        if (!range.has(sequence_in(at))) return true;
        text = at;
        return false;
      });
      if (text.empty()) return std::nullopt;
      if (std::optional<found_version> v = read(text)) return v;
      from = std::move(text);  // text of a batch that was taken back meanwhile
      from.push_back(0);
    }
  }
  // The last version before `name`, likewise. Walks from the fence before it.
  [[nodiscard]] std::optional<found_version> less(const version_name& name, const sequence_range& range) {
    std::optional<std::string> to;
    if (name.table < most_tables) to = index_key(name);
    for (;;) {
      std::string fence = fence_before(to);
      std::string text;
      versions_.scan_keys(fence, [&](std::string_view at) {
        if (to && at >= *to) return false;
        if (range.has(sequence_in(at))) text = at;
        return true;
      });
      if (!text.empty())
        if (std::optional<found_version> v = read(text)) return v;
      if (text.empty() && fence.empty()) return std::nullopt;
      to = text.empty() ? std::move(fence) : std::move(text);
    }
  }

  // ---- leaving

  // No reader needs these versions; the next `collect` removes them.
  void retire(std::list<sequence_range> ranges) noexcept {
    const std::scoped_lock lock(retired_mutex_);
    retired_.splice(retired_.end(), ranges);
  }
  // The same. Throws std::bad_alloc.
  void retire(const sequence_range& range) { retire(std::list<sequence_range>(1, range)); }
  // Removes retired versions. Without space for it, some stay for the next call. Throws std::bad_alloc: likewise.
  void collect() {
    const std::scoped_lock one(collect_mutex_);
    std::list<sequence_range> todo;
    {
      const std::scoped_lock lock(retired_mutex_);
      todo.swap(retired_);
    }
    if (todo.empty()) return;
    bool done = false;
    try {
      done = remove(todo);
    } catch (...) {
      retire(std::move(todo));
      throw;
    }
    if (!done) retire(std::move(todo));
  }

  // ---- figures

  // Bytes of DRAM, about.
  [[nodiscard]] std::size_t dram_bytes() const noexcept {
    return dram_bytes_.load(std::memory_order_relaxed) + entries_.load(std::memory_order_relaxed) * dram_per_entry;
  }
  // Versions that have left since it was opened.
  [[nodiscard]] std::uint64_t removed() const noexcept { return removed_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t entries() const noexcept { return entries_.load(std::memory_order_relaxed); }
  // The invariants of the index, and that it has the versions behind `ingested` up to `last`, and no others. REQUIRES:
  // no other operation.
  void check(std::uint64_t ingested, std::uint64_t last, indexes::check_report& report) {
    collect();
    const indexes::check_report own = versions_.check();
    for (const std::string& what : own.violations) report.add("memory: " + what);
    std::uint64_t count = 0;
    std::uint64_t others = 0;
    versions_.scan_keys({}, [&](std::string_view text) {
      ++(sequence_range{ingested, last}.has(sequence_in(text)) ? count : others);
      return true;
    });
    if (others != 0) report.add("the memory has " + std::to_string(others) + " versions that a set has, too");
    if (count != last - ingested)
      report.add("the memory has " + std::to_string(count) + " of " + std::to_string(last - ingested) + " changes");
  }
  // The bytes of the medium that one change needs, about.
  [[nodiscard]] static std::size_t medium_bytes_for(const change& c) noexcept {
    return 128 + round_up(c.key.size() + 40, 64) + (c.value.empty() ? 0 : round_up(c.value.size() + 8, 64));
  }

 private:
  static constexpr std::size_t dram_per_entry = 24;  // bytes of towers
  static constexpr unsigned entries_per_fence = 32;

  template <class State>
  static State& open_root(Medium& medium, std::string_view name, std::string_view layout) {
    const media::root root = medium.named_root(name, layout, 1);
    if (const media::pointer<State> stored(root.word->load(std::memory_order_acquire)); stored) {
      if (!media::can_name(medium, stored))
        throw error("the root of '" + std::string(name) + "' is corrupt",
                    "restore the memory and both drives from one copy");
      return *medium.resolve(stored);
    }
    publication change(medium);
    auto* const made = media::create<State>(change);
    if (made == nullptr) throw error("no space for a memtable in the memory", "use a larger pool");
    media::persist(medium, *made);                                         // (M3)
    media::publish_store(change, *root.word, medium.locate(made).word());  // (M4)
    // (M3) < (M4): the root leads to a complete state.
    change.commit();
    return *made;
  }

  // Removes the versions in these ranges. False: there is no space for it now.
  [[nodiscard]] bool remove(const std::list<sequence_range>& ranges) {
    constexpr std::size_t at_once = 128;
    std::string from;
    for (bool more = true; more;) {
      std::vector<std::string> gone;
      versions_.scan_keys(from, [&](std::string_view text) {
        const std::uint64_t s = sequence_in(text);
        if (std::any_of(ranges.begin(), ranges.end(), [&](const sequence_range& r) { return r.has(s); }))
          gone.emplace_back(text);
        return gone.size() < at_once;
      });
      more = gone.size() == at_once;
      for (const std::string& text : gone) {
        if (versions_.erase(text) == strings::outcome::full) return false;
        left(text);
        removed_.fetch_add(1, std::memory_order_relaxed);
      }
      if (more) from = gone.back();
    }
    return true;
  }

  // Erases the inserted versions of a batch, the last one first: the rest is never a whole batch. False: there is no
  // space for it now.
  [[nodiscard]] bool undo() {
    while (!made_.empty()) {
      if (versions_.erase(made_.back()) == strings::outcome::full) return false;
      made_.pop_back();
    }
    return true;
  }
  void try_to_undo() noexcept {
    try {
      static_cast<void>(undo());
    } catch (const std::exception&) {
      // `made_` has the rest.
    }
  }

  // The version with this text, or std::nullopt if it is absent.
  [[nodiscard]] std::optional<found_version> read(const std::string& text) {
    std::optional<std::string> value = versions_.find(text);
    if (!value) return std::nullopt;
    found_version v;
    v.table = static_cast<std::uint8_t>(text.front());
    v.kind = kind_in(text);
    v.key = user_key_in(text);
    v.sequence = sequence_in(text);
    v.value_bytes = static_cast<std::uint32_t>(value->size());
    v.value = std::move(value);
    return v;
  }

  // Without memory there are fewer fences: they only make walks shorter.
  void entered(std::string_view text) noexcept {
    if (entries_.fetch_add(1, std::memory_order_relaxed) % entries_per_fence != 0) return;
    const std::scoped_lock lock(fences_mutex_);
    try {
      if (fences_.emplace(text).second) dram_bytes_.fetch_add(fence_bytes(text), std::memory_order_relaxed);
    } catch (const std::bad_alloc&) {
    }
  }
  void left(const std::string& text) {
    // Opening removes versions that were not counted.
    if (entries_.load(std::memory_order_relaxed) > 0) entries_.fetch_sub(1, std::memory_order_relaxed);
    const std::scoped_lock lock(fences_mutex_);
    if (fences_.erase(text) > 0) dram_bytes_.fetch_sub(fence_bytes(text), std::memory_order_relaxed);
  }
  [[nodiscard]] static std::size_t fence_bytes(std::string_view text) noexcept { return text.size() + 80; }
  // The last version before `to` (std::nullopt: before the end); an empty text if there is none.
  [[nodiscard]] std::string fence_before(const std::optional<std::string>& to) const {
    const std::scoped_lock lock(fences_mutex_);
    const auto behind = to ? fences_.lower_bound(*to) : fences_.end();
    return behind == fences_.begin() ? std::string() : *std::prev(behind);
  }

  Medium& medium_;
  memory_state& state_;
  memory_epoch& epoch_;
  strings_type versions_;
  std::vector<std::string> made_;  // entries of a batch that is not complete
  std::atomic<std::uint64_t> entries_{0};
  std::atomic<std::uint64_t> removed_{0};
  std::atomic<std::size_t> dram_bytes_{0};

  mutable std::mutex fences_mutex_;
  std::set<std::string> fences_;  // some of the keys: where a walk backward begins

  std::mutex collect_mutex_;
  std::mutex retired_mutex_;
  std::list<sequence_range> retired_;
};

}  // namespace pmlab::stores::detail::tiered
