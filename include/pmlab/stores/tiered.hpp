// A tiered store: ordered tables of keys and values over a staging and a capacity drive, after HSE [HSE]. A crash takes no
// more than the last milliseconds: as many as its user allows.
//
//   auto db = stores::tiered<blocks::file>::open({.staging = fast, .capacity = slow}, {.loss = {.at_most = 100ms}});
//   auto orders = db->table("orders");
//   orders.put(key, value);  orders.get(key);  orders.erase(key);     // acknowledged; durable within 100 ms
//   orders.put_synced(key, value);  db->sync();                       // durable on return
//   db->write(batch);                                                 // several changes, whole or not at all
//   auto then = db->snapshot();  auto c = orders.cursor({.at = &then, .from = "a", .to = "b"});  while (c.next()) ...
//
// Keys have 0 to 1344 bytes, values up to 1 MiB; order is that of bytes. Use it where many small writes must be durable
// soon, not at once, and where memory must have a limit.
//
// Every change has a sequence. It goes into a memtable in DRAM and into the log. The log is the value store: a frozen
// memtable becomes a set of sorted keys, and its values stay in the log's segments. A value is so written once.
//
// This is the first part of the design: log, memtables, and a root of sets. The capacity drive holds nothing but its
// header yet, or (placement::capacity_only) everything. There are no leaves, no spilling to the capacity drive, no
// collection of garbage within a segment: a segment is free again when no set refers to it.
//
// Thread safety: any operation from any number of threads (`check`: no other operation); a batch, a cursor, a snapshot
// belong to one thread each. Progress: changes are made one after the other; readers of memtables wait for nothing.
//
// Durability: what survives a crash is one prefix of the changes in the order of their sequences, no shorter than the
// last completed sync, and than the loss bound allows (tiered/options.hpp). A reader may see changes that are not durable.
//
// Invariants: T1 what survives is one prefix. T2 it is as long as promised. T3 batches are whole. T4 snapshots do not
// change. T5 the newest version wins; no erased key returns. T6 a segment that is referred to is not free, any other is.
// T8 a page or value with a wrong checksum is an error, never an answer. T9 an ingest or merge may be cut off anywhere.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/clock.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/stores/tiered/cursor.hpp>
#include <pmlab/stores/tiered/drives.hpp>
#include <pmlab/stores/tiered/key_set.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/log.hpp>
#include <pmlab/stores/tiered/manifest.hpp>
#include <pmlab/stores/tiered/memtable.hpp>
#include <pmlab/stores/tiered/options.hpp>
#include <pmlab/stores/tiered/replay.hpp>
#include <pmlab/stores/tiered/segments.hpp>
#include <pmlab/stores/tiered/survivors.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::stores {

// The drives of a store. They outlive it. Drives of different types: blocks::any_device.
template <blocks::device Device>
struct tiered_drives {
  Device& staging;   // fast
  Device& capacity;  // large; another drive
};

// See the file's prologue. `Clock`: that of the loss bound; one on another clock than the real one has no threads of its
// own (tiered_options::background).
template <blocks::device Device, blocks::drive_clock Clock = blocks::emulated_clock>
class tiered {
  using memtable = detail::tiered::memtable;
  using change = detail::tiered::change;
  using change_kind = detail::tiered::change_kind;
  using drive_role = detail::tiered::drive_role;
  using drive_state = detail::tiered::drive_state;
  using found_version = detail::tiered::found_version;
  using key_set = detail::tiered::key_set<Device>;
  using view = detail::tiered::tree_view<Device>;
  using body = detail::tiered::cursor_body<Device>;

 public:
  // A moment of the store: its reads do not change while it exists. Movable. It ends before its store.
  class snapshot_handle {
   public:
    // The other one is empty then.
    snapshot_handle(snapshot_handle&& other) noexcept
        : store_(std::exchange(other.store_, nullptr)), sequence_(other.sequence_) {}
    snapshot_handle& operator=(snapshot_handle&&) = delete;
    ~snapshot_handle() {
      if (store_ != nullptr) store_->release(sequence_);
    }
    // The newest change that it has.
    [[nodiscard]] std::uint64_t sequence() const noexcept { return sequence_; }

   private:
    friend class tiered;
    snapshot_handle(tiered& store, std::uint64_t sequence) : store_(&store), sequence_(sequence) {}
    tiered* store_;
    std::uint64_t sequence_;
  };

  // Of a cursor. Keys in [from, to); no `to`: to the end of the table. No `at`: the moment at which the cursor is made.
  struct range {
    const snapshot_handle* at = nullptr;                // the moment
    std::string_view from = {};                         // the least key
    std::optional<std::string_view> to = std::nullopt;  // above the greatest key
    direction way = direction::forward;                 // backward: from the greatest key
  };

  // Walks a range: next() before each key; false: the end. The store outlives it. It holds memory and segments of its
  // moment. Throws pmlab::error: the drive fails, a page or value is damaged.
  class cursor_handle {
   public:
    // To the next key; false: there is none.
    [[nodiscard]] bool next() { return body_.next(); }
    // Where it is. REQUIRES: next() was true.
    [[nodiscard]] const std::string& key() const noexcept { return body_.key(); }
    // See `key`.
    [[nodiscard]] const std::string& value() const noexcept { return body_.value(); }

   private:
    friend class tiered;
    explicit cursor_handle(body b) : body_(std::move(b)) {}
    body body_;
  };

  class batch;

  // A table of an open store. Copied freely; the store outlives it. Operations throw pmlab::error: key or value too long,
  // the drive failed; tiered_full: no room (nothing changed).
  class table_handle {
   public:
    // Adds or replaces. Returns its sequence.
    std::uint64_t put(std::string_view key, std::string_view value) {
      const change c{change_kind::put, id_, key, value};
      return store_->apply({&c, 1});
    }
    // Removes the key, if it is there. Returns its sequence.
    std::uint64_t erase(std::string_view key) {
      const change c{change_kind::erase, id_, key, {}};
      return store_->apply({&c, 1});
    }
    // As put, durable on return. If the drive fails in between, the change is made and not durable yet.
    std::uint64_t put_synced(std::string_view key, std::string_view value) {
      const std::uint64_t sequence = put(key, value);
      store_->sync();
      return sequence;
    }
    // The value now, or at the moment of `at`.
    [[nodiscard]] std::optional<std::string> get(std::string_view key, const snapshot_handle* at = nullptr) const {
      return store_->get(id_, key, at);
    }
    // Over keys in order.
    [[nodiscard]] cursor_handle cursor(const range& r = {}) const { return store_->make_cursor(id_, r); }

   private:
    friend class tiered;
    friend class batch;
    table_handle(tiered& store, std::uint8_t id) : store_(&store), id_(id) {}
    tiered* store_;
    std::uint8_t id_;
  };

  // Changes that are made together. It keeps copies of keys and values.
  class batch {
   public:
    // Later changes of a key win.
    void put(const table_handle& table, std::string_view key, std::string_view value) {
      changes_.push_back({change_kind::put, table.id_, std::string(key), std::string(value)});
    }
    // See `put`.
    void erase(const table_handle& table, std::string_view key) {
      changes_.push_back({change_kind::erase, table.id_, std::string(key), {}});
    }
    // Changes so far.
    [[nodiscard]] std::size_t size() const noexcept { return changes_.size(); }

   private:
    friend class tiered;
    struct owned_change {
      change_kind kind;
      std::uint8_t table;
      std::string key, value;
    };
    std::vector<owned_change> changes_;
  };

  // Opens the store on these drives, or makes an empty one if both are blank. Replays the log: memory for as much of it as
  // the last opening's memory limit allowed. Throws pmlab::error: drives of another store, exchanged, cut off, damaged;
  // impossible options. `clock`: see the class.
  static std::unique_ptr<tiered> open(const tiered_drives<Device>& drives, const tiered_options& options = {},
                                      Clock clock = default_clock()) {
    if (&drives.staging == &drives.capacity)
      throw error("staging and capacity are the same drive", "give two drives; `place` may leave one of them unused");
    return std::unique_ptr<tiered>(new tiered(drives, options, clock));
  }
  tiered(const tiered&) = delete;
  tiered& operator=(const tiered&) = delete;
  // Makes all changes durable if the drives work.
  ~tiered() {
    stop();
    try {
      flush_log();
    } catch (const std::exception&) {
      // The loss bound holds no longer; opening replays what is durable.
    }
  }

  // Opens the table `name` (1 to 40 characters), or makes it, durably. Throws pmlab::error: 257 tables.
  [[nodiscard]] table_handle table(std::string_view name) {
    if (name.empty() || name.size() > detail::tiered::most_table_name)
      throw error("'" + std::string(name) + "' cannot name a table",
                  "use 1 to " + std::to_string(detail::tiered::most_table_name) + " characters");
    const std::scoped_lock lock(tree_mutex_);
    const auto at = std::find(state_.tables.begin(), state_.tables.end(), name);
    const auto id = static_cast<std::size_t>(at - state_.tables.begin());
    if (at == state_.tables.end()) {
      if (id == detail::tiered::most_tables)
        throw error("the store has " + std::to_string(id) + " tables, and can have no more",
                    "put a prefix into the keys");
      detail::tiered::manifest_state with = state_;
      with.tables.emplace_back(name);
      commit(std::move(with));
    }
    return {*this, static_cast<std::uint8_t>(id)};
  }

  // Makes the changes of the batch at once: readers, and crashes, see all of them or none. Returns the sequence of the
  // last one. Throws as table_handle::put; pmlab::error: larger than a segment.
  std::uint64_t write(const batch& b) {
    std::vector<change> changes;
    changes.reserve(b.changes_.size());
    for (const auto& c : b.changes_) changes.push_back({c.kind, c.table, c.key, c.value});
    return changes.empty() ? visible_.load(std::memory_order_acquire) : apply(changes);
  }

  // All changes that returned before are durable on return. Throws pmlab::error if the drive fails.
  void sync() { flush_log(); }

  // The present moment.
  [[nodiscard]] snapshot_handle snapshot() {
    const std::scoped_lock lock(snapshots_mutex_);
    const std::uint64_t now = visible_.load(std::memory_order_acquire);
    snapshots_.insert(now);
    return {*this, now};
  }

  // The flusher's step, for a store without threads: flushes if it is time. Returns when the next is due, on the clock;
  // the greatest number: when something was written.
  std::uint64_t step() {
    const std::uint64_t oldest = log_->oldest();
    if (oldest != log_->never && (clock_.now() >= oldest + half_bound() || log_->dirty() >= options_.loss.or_bytes))
      flush_log();
    const std::uint64_t next = log_->oldest();
    return next == log_->never ? next : next + half_bound();
  }

  // Brings all changes into one set, without the versions that no reader may ask for, and frees the segments that nothing
  // refers to. Throws tiered_full: no room for the set (nothing changed).
  void compact() {
    freeze();
    while (ingest_one()) continue;
    merge();
    exhausted_at_.store(never_exhausted, std::memory_order_relaxed);
  }

  // Now.
  [[nodiscard]] tiered_stats stats() const {
    tiered_stats s;
    const std::shared_ptr<const view> v = pinned();
    s.sequence = visible_.load(std::memory_order_acquire);
    s.durable = log_->durable_now();
    s.dirty_bytes = log_->dirty();
    s.memory_bytes = memory_of(*v);
    s.sets = v->sets.size();
    for (const auto& one : v->sets) s.entries += one->described().entries;
    s.segments = segments_->count();
    s.free_segments = segments_->free();
    s.log_segments = log_->segments_in_use().size();
    s.ingests = ingests_.load(std::memory_order_relaxed);
    s.merges = merges_.load(std::memory_order_relaxed);
    const std::scoped_lock lock(failure_mutex_);
    s.background_failure = background_failure_;
    return s;
  }

  // Checks T5 (order), T6 and T8 by reading all pages and values. REQUIRES: no other operation, no cursor.
  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report;
    const std::shared_ptr<const view> v = pinned();
    std::vector<std::uint32_t> references(segments_->count());
    for (const std::uint32_t s : log_->segments_in_use()) ++references[s];
    for (const auto& made : doubtful_) count_references(*made, references);
    for (const auto& one : v->sets) {
      count_references(*one, references);
      check_set(*one, report);
    }
    const std::vector<std::uint32_t> counted = segments_->references();
    for (std::size_t s = 0; s < counted.size(); ++s)
      if (counted[s] != references[s])
        report.add("segment " + std::to_string(s) + " counts " + std::to_string(counted[s]) + " references and has " +
                   std::to_string(references[s]));
    return report;
  }

 private:
  static constexpr std::uint64_t never_exhausted = ~std::uint64_t{0};

  static Clock default_clock() requires std::default_initializable<Clock> { return Clock(); }

  tiered(const tiered_drives<Device>& drives, const tiered_options& options, Clock clock)
      : clock_(clock), options_(options) {
    const detail::tiered::drive_header header = open_drives(drives);
    Device& log_class = header.log_class == drive_role::staging ? drives.staging : drives.capacity;
    where_ = areas_of(header, log_class.shape());
    tree_drive_.emplace(log_class);
    segments_.emplace(where_.segments());
    readers_.emplace(log_class);
    context_.emplace(detail::tiered::set_context<Device>{where_, header.page_bytes, *segments_, *readers_});
    log_.emplace(log_class, where_, header.store, *segments_);
    manifest_.emplace(where_, header.store);
    recover(header.store);
    if (options_.background) start();
  }

  // ---- opening

  [[nodiscard]] static detail::tiered::areas areas_of(const detail::tiered::drive_header& h,
                                                      const blocks::geometry& g) {
    return {g.block_bytes, static_cast<std::uint32_t>(h.segment_bytes), h.manifest_bytes, g.blocks};
  }

  // The header of the store, which is made if there is none.
  [[nodiscard]] detail::tiered::drive_header open_drives(const tiered_drives<Device>& drives) {
    if (options_.background && !std::same_as<Clock, blocks::emulated_clock>)
      throw error("a store on a clock of its own cannot have threads", "open it with background = false");
    Device& log_class = options_.place == placement::staging_only ? drives.staging : drives.capacity;
    detail::tiered::check_options(options_, log_class.shape().block_bytes);
    detail::tiered::drive_opener<Device> staging(drives.staging, drive_role::staging);
    detail::tiered::drive_opener<Device> capacity(drives.capacity, drive_role::capacity);
    const bool is_new = staging.is_blank() && (capacity.is_blank() || capacity.is_forming());
    if (options_.format || is_new) return make_store(log_class, staging, capacity);
    staging.check();
    capacity.check();
    if (staging.header().store != capacity.header().store)
      throw error("the staging and the capacity drive belong to different stores", "give both drives of one store");
    if (!staging.is_ready())
      throw error("the staging drive is being made", "give another drive, or use option `format`");
    if (!capacity.is_ready()) capacity.write(staging.header(), drive_state::ready);  // (H4), a crash came before
    return staging.header();
  }

  [[nodiscard]] detail::tiered::drive_header make_store(Device& log_class,
                                                        detail::tiered::drive_opener<Device>& staging,
                                                        detail::tiered::drive_opener<Device>& capacity) {
    detail::tiered::drive_header h;
    h.store = options_.identity;
    if (h.store == detail::tiered::identity{}) {
      std::random_device source;
      for (std::uint64_t& part : h.store) part = std::uint64_t{source()} << 32 | source();
    }
    h.segment_bytes = options_.segment_bytes;
    h.manifest_bytes = options_.manifest_bytes;
    h.page_bytes = options_.page_bytes;
    h.log_class = options_.place == placement::staging_only ? drive_role::staging : drive_role::capacity;
    const detail::tiered::areas where = areas_of(h, log_class.shape());
    if (where.segments() < least_segments)
      throw error("a log class of " + std::to_string(log_class.shape().bytes()) + " bytes has room for " +
                      std::to_string(where.segments()) + " segments",
                  "give it at least " + std::to_string(least_segments) + ", or make segments smaller");
    if (staging.is_ready()) staging.write(h, drive_state::forming);  // a store that is replaced
    capacity.write(h, drive_state::forming);                         // (H1)
    detail::tiered::manifest<Device> first(where, h.store);
    blocks::synchronous<Device> drive(log_class);
    detail::tiered::manifest_state empty;
    empty.replay.chain = mix_bits(h.store[0] ^ golden_ratio * h.store[1]);
    if (!first.write(drive, empty)) throw error("manifests are too small", "choose at least 512 bytes");  // (H2)
    staging.write(h, drive_state::ready);                                                                 // (H3)
    capacity.write(h, drive_state::ready);                                                                // (H4)
    return staging.header();
  }

  void recover(const detail::tiered::identity& store) {
    state_ = manifest_->read(*tree_drive_);
    auto v = std::make_shared<view>();
    for (const auto& d : state_.sets) {
      const auto one = std::make_shared<key_set>(*context_, d);
      one->load();
      v->sets.insert(v->sets.begin(), one);
    }
    v->active = make_memtable();
    detail::tiered::log_reader<Device> reader(*tree_drive_, where_, store);
    const detail::tiered::replayed log = reader.run(state_.replay, [&](const change& c, std::uint64_t s, auto place) {
      if (s > state_.ingested) v->active->insert(c, s, place);
    });
    visible_.store(log.end.next - 1, std::memory_order_release);
    view_ = std::move(v);
    // Groups of a process that was killed may be in the drive's cache only.
    // (O1) < (O2): a generation begins when all that replay has found is durable.
    tree_drive_->flush(blocks::stream::log);  // (O1)
    commit(state_);                           // (O2)
    log_->begin(manifest_->version(), log.end, log.groups);
  }

  // ---- changes

  std::uint64_t apply(std::span<const change> changes) {
    std::size_t bytes = 0;
    std::size_t memory = 0;
    bool frees = true;
    for (const change& c : changes) {
      check_size(c);
      bytes += detail::tiered::record_bytes(c);
      memory += memtable::bytes_for(c);
      frees = frees && c.kind == change_kind::erase;
    }
    if (bytes > log_->most_batch_bytes())
      throw error("changes of " + std::to_string(bytes) + " bytes at once, and a segment has room for " +
                      std::to_string(log_->most_batch_bytes()),
                  "write smaller batches or values, or make the store with larger segments");
    if (flush_failed_.load(std::memory_order_relaxed)) flush_log();
    // Other threads may take the room that this one has made, so it goes on while something is made at all.
    for (;;) {
      if (const std::optional<std::uint64_t> last = try_apply(changes, bytes, memory, frees)) {
        after_change();
        return *last;
      }
      if (exhausted_at_.load(std::memory_order_relaxed) == visible_.load(std::memory_order_relaxed)) full();
      if (!make_room()) full();
    }
  }

  void check_size(const change& c) const {
    const std::size_t most_key = detail::tiered::most_key_bytes_in(context_->page_bytes);
    if (c.key.size() > most_key)
      throw error("a key of " + std::to_string(c.key.size()) + " bytes", "use at most " + std::to_string(most_key));
    if (c.value.size() > detail::tiered::most_value_bytes)
      throw error("a value of " + std::to_string(c.value.size()) + " bytes",
                  "use at most " + std::to_string(detail::tiered::most_value_bytes));
  }

  // Nothing: there is no room now.
  std::optional<std::uint64_t> try_apply(std::span<const change> changes, std::size_t bytes, std::size_t memory,
                                         bool frees) {
    const std::scoped_lock lock(commit_mutex_);
    const std::shared_ptr<const view> v = pinned();
    if (memory_of(*v) + memory + chunk_bytes() > options_.memory_limit) return std::nullopt;
    std::uint64_t sequence = visible_.load(std::memory_order_relaxed);
    const auto insert = [&](const change& c, auto place) { return v->active->insert(c, ++sequence, place); };
    // The last one is for changes that make room.
    const std::uint32_t reserve = reserve_for(*v) + (frees ? 0 : 1);
    if (!log_->append(changes, bytes, reserve, clock_.now(), v->active, insert)) return std::nullopt;
    visible_.store(sequence, std::memory_order_release);  // all of a batch at once
    if (v->active->bytes() >= freeze_bytes()) freeze_locked();
    return sequence;
  }

  // Work that is due behind a change. With threads of its own the store only waits if these fall behind.
  void after_change() {
    const std::uint64_t dirty = log_->dirty();
    if (!options_.background) {
      if (dirty >= options_.loss.or_bytes) flush_log();
      ingest_if_room();
    } else if (dirty >= 2 * options_.loss.or_bytes) {
      flush_log();
    } else if (dirty >= options_.loss.or_bytes) {
      wake();
    }
  }

  // The change is made already: no room for a set is no failure of the change.
  void ingest_if_room() {
    try {
      while (ingest_one()) continue;
      if (pinned()->sets.size() > options_.most_sets) merge();
    } catch (const tiered_full&) {
    }
  }

  // False: there was nothing to ingest or to merge.
  bool make_room() {
    const auto work = [this] {
      return ingests_.load(std::memory_order_relaxed) + merges_.load(std::memory_order_relaxed);
    };
    const std::uint64_t before = work();
    try {
      freeze();
      while (ingest_one()) continue;
      if (work() == before || pinned()->sets.size() > options_.most_sets) merge();
    } catch (const tiered_full&) {
      exhausted_at_.store(visible_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    }
    return work() != before;
  }
  [[noreturn]] void full() {
    exhausted_at_.store(visible_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    throw tiered_full("the tiered store is full: " + std::to_string(segments_->free()) + " of " +
                          std::to_string(segments_->count()) + " segments are free, and " +
                          std::to_string(memory_of(*pinned())) + " of " + std::to_string(options_.memory_limit) +
                          " bytes of memory are in use",
                      "erase keys, then compact(); end old snapshots; or use a larger drive");
  }

  void flush_log() {
    try {
      log_->flush();
      flush_failed_.store(false, std::memory_order_relaxed);
    } catch (...) {
      flush_failed_.store(true, std::memory_order_relaxed);
      throw;
    }
  }

  // ---- reading

  [[nodiscard]] std::shared_ptr<const view> pinned() const {
    const std::scoped_lock lock(view_mutex_);
    return view_;
  }

  [[nodiscard]] std::optional<std::string> get(std::uint8_t table, std::string_view key,
                                               const snapshot_handle* at) const {
    // The view before the moment: a set that is made later may lack versions of this moment.
    const std::shared_ptr<const view> v = pinned();
    const detail::tiered::version_name name{table, key,
                                            at != nullptr ? at->sequence_ : visible_.load(std::memory_order_acquire)};
    const auto in_memory = [&](const memtable& m) {
      const auto* const n = m.at_least(name);
      return n != nullptr && n->name().same_key(name) ? n : nullptr;
    };
    const auto* n = in_memory(*v->active);
    for (auto m = v->frozen.begin(); n == nullptr && m != v->frozen.end(); ++m) n = in_memory(**m);
    if (n != nullptr) return n->kind() == change_kind::put ? std::optional<std::string>(n->value()) : std::nullopt;
    const std::uint64_t hash = detail::tiered::hash_of(table, key);
    for (const auto& one : v->sets) {
      if (!one->may_have(hash)) continue;
      detail::tiered::set_source<Device> source(one);
      const std::optional<found_version> found = source.at_least(name);
      if (!found || !found->name().same_key(name)) continue;
      if (found->kind == change_kind::erase) return std::nullopt;
      return detail::tiered::read_value(*context_, *found);
    }
    return std::nullopt;
  }

  [[nodiscard]] cursor_handle make_cursor(std::uint8_t table, const range& r) const {
    const std::shared_ptr<const view> v = pinned();
    const std::uint64_t now = r.at != nullptr ? r.at->sequence_ : visible_.load(std::memory_order_acquire);
    return cursor_handle(body(*context_, v, now, table, r.from, r.to, r.way));
  }

  void release(std::uint64_t sequence) {
    const std::scoped_lock lock(snapshots_mutex_);
    snapshots_.erase(snapshots_.find(sequence));
    exhausted_at_.store(never_exhausted, std::memory_order_relaxed);
  }
  // No present or later snapshot is older.
  [[nodiscard]] std::uint64_t horizon() const {
    const std::scoped_lock lock(snapshots_mutex_);
    return snapshots_.empty() ? visible_.load(std::memory_order_acquire) : *snapshots_.begin();
  }

  // ---- the tree

  [[nodiscard]] std::uint64_t freeze_bytes() const noexcept { return options_.memory_limit / 8; }
  [[nodiscard]] std::size_t chunk_bytes() const noexcept {
    return std::clamp<std::size_t>(freeze_bytes() / 16, 256, std::size_t{1} << 18);
  }
  [[nodiscard]] std::shared_ptr<memtable> make_memtable() const { return std::make_shared<memtable>(chunk_bytes()); }
  [[nodiscard]] static std::uint64_t memory_of(const view& v) {
    std::uint64_t all = v.active->bytes();
    for (const auto& m : v.frozen) all += m->bytes();
    for (const auto& s : v.sets) all += s->memory();
    return all;
  }

  void freeze() {
    const std::scoped_lock lock(commit_mutex_);
    freeze_locked();
  }
  void freeze_locked() {
    const std::scoped_lock lock(view_mutex_);
    if (view_->active->last() == 0) return;
    auto next = std::make_shared<view>(*view_);
    next->frozen.insert(next->frozen.begin(), next->active);
    next->active = make_memtable();
    view_ = std::move(next);
    wake();
  }

  // The oldest frozen memtable becomes a set. False: there is none. Throws tiered_full.
  //
  // (I1) < (I2) < (I3): the values are durable in the log, then the keys, then the manifest names the set and moves the
  // start of replay behind it. Only then is the log's part forgotten. A crash before (I3) replays the log as before.
  bool ingest_one() {
    const std::scoped_lock lock(tree_mutex_);
    std::shared_ptr<memtable> from;
    bool is_lowest = false;
    {
      const std::shared_ptr<const view> v = pinned();
      if (v->frozen.empty()) return false;
      from = v->frozen.back();
      is_lowest = v->sets.empty();
    }
    if (log_->durable_now() < from->last()) flush_log();  // (I1)
    detail::tiered::set_writer<Device> writer(*context_, *tree_drive_, state_.ingested + 1, from->last());
    detail::tiered::survivors rule(horizon(), is_lowest);
    for (const auto* n = from->at_least({0, {}, detail::tiered::newest}); n != nullptr; n = n->next()) {
      found_version v = detail::tiered::memtable_source::of(n);
      v.value_check = detail::tiered::check_of(n->value());
      if (rule.stays(v) && !writer.add(v)) throw tiered_full("no free segment for keys", "erase keys, then compact()");
    }
    install(writer, from->last(), from, 0);
    ingests_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  // All sets become one. Throws tiered_full.
  void merge() {
    const std::scoped_lock lock(tree_mutex_);
    const std::shared_ptr<const view> v = pinned();
    if (v->sets.empty() || (v->sets.size() == 1 && is_compact(*v->sets.front(), horizon()))) return;
    std::vector<detail::tiered::set_source<Device>> sources;
    std::vector<std::optional<found_version>> heads;
    for (const auto& one : v->sets) {
      sources.emplace_back(one);
      heads.push_back(sources.back().at_least({0, {}, detail::tiered::newest}));
    }
    const std::uint64_t keeps = horizon();
    detail::tiered::set_writer<Device> writer(*context_, *tree_drive_, v->sets.back()->described().first,
                                              v->sets.front()->described().last);
    detail::tiered::survivors rule(keeps, true);
    for (;;) {
      std::size_t least = heads.size();
      for (std::size_t i = 0; i < heads.size(); ++i)
        if (heads[i] && (least == heads.size() || heads[i]->name() < heads[least]->name())) least = i;
      if (least == heads.size()) break;
      const found_version one = *heads[least];
      if (rule.stays(one) && !writer.add(one))
        throw tiered_full("no free segment for merged keys", "erase keys, then compact()");
      heads[least] = sources[least].at_least({one.table, one.key, one.sequence - 1});
    }
    install(writer, state_.ingested, nullptr, v->sets.size());
    compact_horizon_ = keeps;
    compacted_last_ = v->sets.front()->described().last;
    merges_.fetch_add(1, std::memory_order_relaxed);
  }
  // A merge of this set alone would change nothing.
  [[nodiscard]] bool is_compact(const key_set& only, std::uint64_t keeps) const {
    const std::uint64_t last = only.described().last;
    return last == compacted_last_ && (compact_horizon_ >= last || compact_horizon_ == keeps);
  }

  // The set of `writer` replaces the newest `replaced` sets, and the memtable `from`.
  void install(detail::tiered::set_writer<Device>& writer, std::uint64_t ingested,
               const std::shared_ptr<memtable>& from, std::size_t replaced) {
    const std::shared_ptr<key_set> made = writer.finish();
    if (made == nullptr) throw tiered_full("no free segment for keys", "erase keys, then compact()");
    const bool is_there = made->described().entries > 0;
    if (is_there) tree_drive_->flush(blocks::stream::keys);  // (I2)
    detail::tiered::manifest_state next = state_;
    next.sets.resize(next.sets.size() - replaced);
    if (is_there) next.sets.push_back(made->described());
    next.ingested = ingested;
    if (from != nullptr) next.replay = log_->anchor_behind(ingested);
    // After a failed write of the manifest, the drive may name this set: its segments stay taken until a later one is
    // durable.
    doubtful_.push_back(made);
    try {
      commit(std::move(next));  // (I3)
    } catch (const tiered_full&) {
      doubtful_.pop_back();  // nothing was written
      throw;
    }
    doubtful_.clear();
    {
      const std::scoped_lock lock(view_mutex_);
      auto changed = std::make_shared<view>(*view_);
      if (from != nullptr) changed->frozen.pop_back();
      changed->sets.erase(changed->sets.begin(), changed->sets.begin() + static_cast<std::ptrdiff_t>(replaced));
      if (is_there) changed->sets.insert(changed->sets.begin(), made);
      view_ = std::move(changed);
    }
    if (from != nullptr) log_->forget(ingested);
  }

  // Makes `next` the durable state. Throws tiered_full: it is too large; pmlab::error: the drive failed.
  void commit(detail::tiered::manifest_state next) {
    if (!manifest_->write(*tree_drive_, next))
      throw tiered_full("the manifest has no room for " + std::to_string(next.sets.size()) + " sets",
                        "make the store with larger manifests (manifest_bytes)");
    state_ = std::move(next);
  }

  // Segments that the log leaves free: for the keys of all memtables, and for those of a merge of all sets.
  [[nodiscard]] std::uint32_t reserve_for(const view& v) const {
    std::size_t segments = 1;
    const auto add = [&](const memtable& m) { segments += 2 * (2 * m.key_bytes() / where_.segment_bytes + 1); };
    add(*v.active);
    for (const auto& m : v.frozen) add(*m);
    for (const auto& s : v.sets) segments += s->described().key_segments.size();
    return static_cast<std::uint32_t>(segments);
  }

  static void count_references(const key_set& one, std::vector<std::uint32_t>& references) {
    for (const auto* list : {&one.described().key_segments, &one.described().value_segments})
      for (const std::uint32_t s : *list) ++references[s];
  }
  void check_set(const key_set& one, indexes::check_report& report) const {
    std::optional<found_version> before;
    std::uint64_t entries = 0;
    for (std::uint32_t p = 0; p < one.described().pages; ++p) {
      try {
        const std::shared_ptr<const detail::tiered::page> keys = one.read(p);
        for (std::size_t i = 0; i < keys->count(); ++i) {
          const found_version v = keys->at(i);
          if (before && !(before->name() < v.name()))
            report.add("a set is not in order at sequence " + std::to_string(v.sequence));
          if (!one.may_have(detail::tiered::hash_of(v.table, v.key))) report.add("a filter lacks a key of its set");
          if (v.sequence > one.described().last) report.add("a set has a version newer than itself");
          if (v.kind == change_kind::put) static_cast<void>(detail::tiered::read_value(*context_, v));
          before = v;
          ++entries;
        }
      } catch (const error& e) {
        report.add(e.what());
      }
    }
    report.entries += entries;
    if (entries != one.described().entries) report.add("a set has another number of entries than the manifest says");
  }

  // ---- threads

  [[nodiscard]] std::uint64_t half_bound() const noexcept {
    return static_cast<std::uint64_t>(options_.loss.at_most.count()) * 1000 / 2;  // ns to ps
  }

  void start() {
    flusher_ = std::thread([this] { run([this] { return flusher_pause(); }); });
    ingester_ = std::thread([this] {
      run([this] {
        while (ingest_one()) continue;
        if (pinned()->sets.size() > options_.most_sets) merge();
        return std::chrono::nanoseconds(std::chrono::seconds(1));
      });
    });
  }
  void stop() {
    {
      const std::scoped_lock lock(wake_mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    for (std::thread* t : {&flusher_, &ingester_})
      if (t->joinable()) t->join();
  }
  void wake() {
    if (!options_.background) return;
    {
      const std::scoped_lock lock(wake_mutex_);
      ++wakes_;
    }
    wake_.notify_all();
  }

  // Flushes if it is time; returns how long to pause. A change that comes meanwhile is not half as old as the bound when
  // the pause ends.
  [[nodiscard]] std::chrono::nanoseconds flusher_pause() {
    const std::uint64_t due = step();
    const std::uint64_t now = clock_.now();
    const std::uint64_t longest = half_bound() / 2;
    const std::uint64_t pause = due == log_->never ? longest : std::min(longest, due > now ? due - now : 0);
    return std::chrono::nanoseconds(pause / 1000);
  }

  template <class Work>
  void run(Work&& work) {
    std::unique_lock lock(wake_mutex_);
    while (!stopping_) {
      const std::uint64_t seen = wakes_;
      lock.unlock();
      std::chrono::nanoseconds pause = options_.loss.at_most / 4;
      std::string failure;
      try {
        pause = work();
      } catch (const std::exception& e) {
        failure = e.what();
      }
      {
        const std::scoped_lock failing(failure_mutex_);
        if (!failure.empty()) background_failure_ = failure;
      }
      lock.lock();
      wake_.wait_for(lock, pause, [&] { return stopping_ || wakes_ != seen; });
    }
  }

  static constexpr std::uint32_t least_segments = 8;

  Clock clock_;
  tiered_options options_;
  detail::tiered::areas where_;
  std::optional<blocks::synchronous<Device>> tree_drive_;  // under tree_mutex_
  std::optional<detail::tiered::segment_map> segments_;
  std::optional<detail::tiered::reader_pool<Device>> readers_;
  std::optional<detail::tiered::set_context<Device>> context_;
  std::optional<detail::tiered::log<Device>> log_;
  std::optional<detail::tiered::manifest<Device>> manifest_;

  std::mutex commit_mutex_;  // one change at a time
  std::mutex tree_mutex_;    // one ingest, merge or new table at a time; before commit_mutex_
  detail::tiered::manifest_state state_;
  std::vector<std::shared_ptr<key_set>> doubtful_;
  std::uint64_t compact_horizon_ = 0;  // of the last merge
  std::uint64_t compacted_last_ = 0;   // the newest version of its set

  mutable std::mutex view_mutex_;  // the last one to take
  std::shared_ptr<const view> view_;
  std::atomic<std::uint64_t> visible_{0};
  std::atomic<std::uint64_t> exhausted_at_{never_exhausted};
  std::atomic<bool> flush_failed_{false};
  std::atomic<std::uint64_t> ingests_{0};
  std::atomic<std::uint64_t> merges_{0};

  mutable std::mutex snapshots_mutex_;
  std::multiset<std::uint64_t> snapshots_;

  mutable std::mutex failure_mutex_;
  std::string background_failure_;

  std::mutex wake_mutex_;
  std::condition_variable wake_;
  std::uint64_t wakes_ = 0;
  bool stopping_ = false;
  std::thread flusher_;
  std::thread ingester_;
};

}  // namespace pmlab::stores
