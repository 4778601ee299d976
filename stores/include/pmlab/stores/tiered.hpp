// A tiered store: ordered tables of keys and values over a staging and a capacity drive, after HSE [HSE]. A crash takes
// no more than the last milliseconds: as many as its user allows.
//
//   auto db = stores::tiered<blocks::file>::open({.staging = fast, .capacity = slow}, {.loss = {.at_most = 100ms}});
//   auto orders = db->table("orders");
//   orders.put(key, value);  orders.get(key);  orders.erase(key);     // acknowledged; durable within 100 ms
//   orders.put_synced(key, value);  db->sync();                       // durable on return
//   db->write(batch);                                                 // several changes, whole or not at all
//   auto then = db->snapshot();  auto c = orders.cursor({.at = &then, .from = "a", .to = "b"});  while (c.next()) ...
//
// Keys have 0 to 1344 bytes, values up to 1 MiB; keys are ordered by their bytes. Use it where many small writes must
// be durable soon, not at once, and where memory must have a limit.
//
// Every change has a sequence. It goes into a memtable in DRAM and into the log. The log is the value store: a frozen
// memtable becomes a set of sorted keys, and its values stay in the log's segments. A value is so written once.
//
// With persistent memory (tiered/memory.hpp) the memtable is itself durable: there is no log, and a crash takes
// nothing.
//
//   using store = stores::tiered<blocks::file, blocks::emulated_clock, stores::memtable_on<media::pmem>>;
//   auto db = store::open({.staging = fast, .capacity = slow, .memory = &pool}, {});
//
// Pages and values that were read stay in DRAM, up to tiered_options::cache_bytes (tiered/read_cache.hpp).
//
// The tree behind the memtables (tiered/tree.hpp): a root of sets, and leaves, each with the keys of a range. Sets of
// the root spill into the leaves, and their values are copied to where leaf values are; so data ages from the staging
// to the capacity drive, without versions replaced meanwhile. The sets of a leaf are merged, keys only, except for
// values in segments that are mostly garbage. The policy of placement (tiered/placement.hpp) assigns each part to a
// drive.
//
// Thread safety: any operation from any number of threads (`check`: no other operation); a batch, a cursor, a snapshot
// belong to one thread each. Progress: changes are made one after the other; readers of memtables wait for nothing.
//
// Durability: what survives a crash is one prefix of the changes in the order of their sequences, no shorter than the
// last completed sync, and than the loss bound allows (tiered/options.hpp). A reader may see changes that are not
// durable.
//
// Invariants: T1 what survives is one prefix. T2 it is as long as promised. T3 batches are whole. T4 snapshots do not
// change. T5 the newest version wins; no erased key returns. T6 a segment that is referred to is not free, any other
// is. T7 the ranges of leaves are disjoint, and leave nothing
// out. T8 a page or value with a wrong checksum is an error, never an answer. T9 an ingest, a spill or a compaction may
// be cut off anywhere.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/clock.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/stores/tiered/background.hpp>
#include <pmlab/stores/tiered/cursor.hpp>
#include <pmlab/stores/tiered/flusher_turn.hpp>
#include <pmlab/stores/tiered/forward_clock.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/log.hpp>
#include <pmlab/stores/tiered/memtable.hpp>
#include <pmlab/stores/tiered/moments.hpp>
#include <pmlab/stores/tiered/no_memory.hpp>
#include <pmlab/stores/tiered/opening.hpp>
#include <pmlab/stores/tiered/options.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>
#include <pmlab/stores/tiered/tree.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace pmlab::stores {

// A drive, or none.
template <blocks::device Device>
class optional_drive {
 public:
  optional_drive() = default;
  // This one, which outlives the store.
  optional_drive(Device& device) : device_(&device) {}  // NOLINT(google-explicit-constructor)
  // nullptr: none.
  [[nodiscard]] Device* get() const noexcept { return device_; }

 private:
  Device* device_ = nullptr;
};

// The drives of a store. They outlive it. Drives of different types: blocks::any_device.
// `Memory`: no_memory, or memtable_on<...>.
template <blocks::device Device, class Memory = no_memory>
struct tiered_drives {
  optional_drive<Device> staging{};           // fast; none: policy capacity_only
  optional_drive<Device> capacity{};          // large; another drive
  typename Memory::medium* memory = nullptr;  // persistent memory; not null for memtable_on
};

// See the file's prologue. `Memory`: where the newest changes are, see tiered/memory.hpp. `Clock`: it times the loss
// bound, which may be set back (tiered/forward_clock.hpp); a store on another clock than the real one has no threads of
// its own (tiered_options::background).
template <blocks::device Device, blocks::drive_clock Clock = blocks::emulated_clock, class Memory = no_memory>
class tiered {
  using memtable = detail::tiered::memtable;
  using change = detail::tiered::change;
  using change_kind = detail::tiered::change_kind;
  using found_version = detail::tiered::found_version;
  using view = detail::tiered::tree_view<Device, Memory>;
  using body = detail::tiered::cursor_body<Device, Memory>;
  using tiered_log = detail::tiered::log<Device>;

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

  // The keys of a cursor: [from, to). No `to`: to the table's end. No `at`: the moment at which the cursor is made.
  // With `most` it reads the values of all pairs at once, up to 128 of them with up to 512 KB of blocks; without, more
  // and more at a time.
  struct range {
    const snapshot_handle* at = nullptr;                // the moment
    std::string_view from = {};                         // the least key
    std::optional<std::string_view> to = std::nullopt;  // above the greatest key
    direction way = direction::forward;                 // backward: from the greatest key
    std::size_t most = ~std::size_t{0};                 // it ends behind so many pairs
  };

  // Walks a range: next() before each key; false: the end. The store outlives it. It holds memory and segments of its
  // moment, up to 8 pages of each set of the root and of one leaf, up to 128 KB behind the last value, and up to 128
  // pairs ahead: the blocks around their values have up to 512 KB, and those around one value more. Throws
  // pmlab::error: the drive fails, a page or value is damaged; std::bad_alloc. The next call goes on: behind the key
  // whose value it was, which key() names then, or where it was.
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

  // A table of an open store. Copied freely; the store outlives it. Changes throw, and then nothing has changed:
  // pmlab::error: key or value too long, the drive failed; tiered_full: no room; std::bad_alloc. A drive that fails
  // behind a change is an error of the next change, and of `sync`.
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

  // Opens the store on these drives, or makes an empty one if both are blank. Replays the log: memory for as much of it
  // as the last opening's memory limit allowed. Throws pmlab::error: drives of another store, exchanged, cut off,
  // damaged; impossible options; drives or memory of different moments; durable changes of the log are lost. Pages of
  // keys that are damaged are listed by `damage`; reads that need one fail. `clock`: see the class.
  static std::unique_ptr<tiered> open(const tiered_drives<Device, Memory>& drives, const tiered_options& options = {},
                                      Clock clock = default_clock()) {
    if (drives.capacity.get() == nullptr)
      throw error("there is no capacity drive", "give one; a store on one drive has it as `capacity`");
    if (drives.staging.get() == drives.capacity.get())
      throw error("staging and capacity are the same drive",
                  "give two drives, or leave out `staging` and choose policy capacity_only");
    return std::unique_ptr<tiered>(new tiered(drives, options, clock));
  }
  // Calls function(table's name, key, value) for the newest readable version of each key, in order, of a damaged store;
  // also for changes behind a gap of the log. Writes nothing to the drives; has all keys in DRAM. Throws pmlab::error
  // at the end if some entries may be missing, old or erased, with what is damaged; at once: the drives have no store,
  // or no valid manifest. `options`: the memory limit.
  template <class Function>
  static void salvage(const tiered_drives<Device, Memory>& drives, Function&& function, tiered_options options = {},
                      Clock clock = default_clock()) {
    options.read_only = true;
    options.background = false;
    if (drives.capacity.get() == nullptr) throw error("there is no capacity drive", "give one");
    std::vector<detail::tiered::loose_change> behind;
    const std::unique_ptr<tiered> db(new tiered(drives, options, clock, &behind));
    detail::tiered::salvager<Device> all(db->damage());
    const std::shared_ptr<const view> v = db->tree_->pinned();
    const detail::tiered::version_name start{0, {}, detail::tiered::newest};
    if constexpr (Memory::is_there) {
      for (auto one = v->active->at_least(start); one;
           one = v->active->at_least({one->table, one->key, one->sequence - 1}))
        all.add(*one);
    } else {
      for (const auto* n = v->active->at_least(start); n != nullptr; n = n->next())
        all.add(detail::tiered::memtable_source::of(n));
    }
    for (const auto& one : v->sets) all.add(*one);
    for (const auto& l : v->leaves)
      for (const auto& one : l->sets) all.add(*one);
    for (const detail::tiered::loose_change& c : behind) all.add(c);
    all.visit(db->tree_->context(), db->tree_->tables(), function);
  }
  // What was found to be wrong when the store was opened; empty: nothing. Without `read_only` only pages of keys that
  // cannot be read, any other damage is an error of `open`. With it the store has the moment before the first gap of
  // its log (stats().sequence), and the list names the durable changes behind it.
  [[nodiscard]] const std::vector<std::string>& damage() const noexcept { return tree_->damage(); }

  tiered(const tiered&) = delete;
  tiered& operator=(const tiered&) = delete;
  // Makes all changes durable if the drives work.
  ~tiered() {
    threads_.stop();
    if (options_.read_only) return;
    try {
      flush();
      tree_->close();
    } catch (const std::exception&) {
      // The loss bound holds no longer; opening replays what is durable.
    }
  }

  // Opens the table `name` (1 to 40 characters), or makes it, durably. Throws pmlab::error: 257 tables.
  [[nodiscard]] table_handle table(std::string_view name) { return {*this, tree_->open_table(name)}; }

  // Makes the changes of the batch at once: readers, and crashes, see all of them or none. Returns the sequence of the
  // last one. Throws as table_handle::put; pmlab::error: larger than a segment.
  std::uint64_t write(const batch& b) {
    std::vector<change> changes;
    changes.reserve(b.changes_.size());
    for (const auto& c : b.changes_) changes.push_back({c.kind, c.table, c.key, c.value});
    return changes.empty() ? moments_.now() : apply(changes);
  }

  // All changes that returned before are durable on return. Throws pmlab::error if the drive fails.
  void sync() { flush(); }

  // The present moment.
  [[nodiscard]] snapshot_handle snapshot() { return {*this, moments_.hold()}; }

  // The flusher's step, for a store without threads: flushes if it is time. Returns when the next is due, on the clock;
  // the greatest number: when something was written. A clock that may be set back is read more often: the bound is
  // exceeded by the time between the last reading before and the first one behind each jump.
  std::uint64_t step() {
    if (const detail::tiered::unflushed now = log().not_durable();
        now.oldest != tiered_log::never &&
        (clock_.now() >= now.oldest + half_bound() || now.bytes >= options_.loss.or_bytes))
      flush();
    const std::uint64_t next = log().not_durable().oldest;
    return next == tiered_log::never ? next : clock_.shown_at(next + half_bound());
  }

  // Brings all changes into the leaves, without the versions that no reader may ask for, and frees the segments that
  // nothing refers to; segments with more than a little garbage are given up. Throws tiered_full: no room for all of
  // it; the part that had room is done.
  void compact() {
    refuse_if_read_only();
    freeze();
    exhausted_at_.store(never_exhausted, std::memory_order_relaxed);
    const auto drain = [&] {
      ingest_all(true);
      while (spill_most(true)) continue;
    };
    const auto reclaim = [&] {
      while (tree_->reclaim()) continue;
    };
    std::string why;
    const bool is_done = has_room_for(drain, why) && has_room_for([&] { tree_->compact_all(); }, why);
    if (!is_done || tree_->has_garbage()) has_room_for(reclaim, why);
    if (!is_done) {
      drain();
      tree_->compact_all();
    }
    if (tree_->has_garbage())
      throw tiered_full("there is no room to move values out of segments with garbage",
                        "end old snapshots and cursors, or erase keys, then compact()");
  }

  // Now.
  [[nodiscard]] tiered_stats stats() const {
    tiered_stats s;
    tree_->count(s);
    s.sequence = moments_.now();
    s.durable = Memory::is_there ? s.sequence : log().durable_now();
    s.dirty_bytes = log().not_durable().bytes;
    s.late_flushes = late_flushes_.load(std::memory_order_relaxed);
    s.longest_loss = std::chrono::nanoseconds(longest_loss_.load(std::memory_order_relaxed) / 1000);
    s.log_segments = log().segments_in_use().size();
    s.snapshots = moments_.held();
    s.background_failure = threads_.failure();
    return s;
  }

  // Checks T5 (order), T6 and T8 by reading all pages and values. The store's own threads wait meanwhile. REQUIRES: no
  // other operation, no cursor.
  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report;
    tree_->check(report);
    return report;
  }

 private:
  static constexpr std::uint64_t never_exhausted = ~std::uint64_t{0};
  static constexpr std::size_t bytes_of_a_fence = 128;

  static Clock default_clock() requires std::default_initializable<Clock> { return Clock(); }

  tiered(const tiered_drives<Device, Memory>& drives, const tiered_options& options, Clock clock,
         std::vector<detail::tiered::loose_change>* behind = nullptr)
      : options_(options), clock_(clock, half_bound() / 4) {
    if (options_.background && !std::same_as<Clock, blocks::emulated_clock>)
      throw error("a store on a clock of its own cannot have threads", "open it with background = false");
    const std::array<Device*, detail::tiered::classes> devices{drives.staging.get(), drives.capacity.get()};
    const detail::tiered::drive_header header = open_parts(drives, devices);
    tree_.emplace(detail::tiered::drive_pair<Device>{devices, detail::tiered::areas_of(header, devices)}, header,
                  options_, moments_, memory_.get());
    log().when_durable([this](std::uint64_t oldest) { count_age(oldest); });
    moments_.publish(tree_->recover(header.store, behind));
    if (options_.background && !options_.read_only) start();
  }

  [[nodiscard]] detail::tiered::drive_header open_parts(const tiered_drives<Device, Memory>& drives,
                                                        const std::array<Device*, detail::tiered::classes>& devices) {
    if constexpr (Memory::is_there) {
      if (drives.memory == nullptr)
        throw error("a store with its memtable in persistent memory, and no memory", "give the pool as `memory`");
      memory_ = std::make_unique<typename Memory::index>(*drives.memory);
      return detail::tiered::open_drives(options_, devices, typename Memory::opener(*memory_));
    } else {
      return detail::tiered::open_drives(options_, devices);
    }
  }

  // ---- changes

  void refuse_if_read_only() const {
    if (options_.read_only)
      throw error("the store is opened to be read only", "open it without `read_only` to change it");
  }

  std::uint64_t apply(std::span<const change> changes) {
    refuse_if_read_only();
    std::size_t bytes = 0;
    std::size_t memory = 0;
    bool frees = true;
    for (const change& c : changes) {
      check_size(c);
      bytes += detail::tiered::record_bytes(c);
      memory += Memory::is_there ? 2 * c.key.size() + bytes_of_a_fence : memtable::bytes_for(c);
      frees = frees && c.kind == change_kind::erase;
    }
    if (bytes > log().most_batch_bytes())
      throw error("changes of " + std::to_string(bytes) + " bytes at once, and a segment has room for " +
                      std::to_string(log().most_batch_bytes()),
                  "write smaller batches or values, or make the store with larger segments");
    if constexpr (Memory::is_there) check_memory_for(changes);
    if (log().has_failed()) flush();
    // Other threads may take the room that this one has made, so it goes on while something is made at all.
    for (std::uint32_t more = 0;; more = frees ? 0 : tree_->worth_while()) {
      const std::uint64_t before = tree_->work();
      if (const std::optional<std::uint64_t> last = try_apply(changes, bytes, memory, frees, more)) {
        threads_.try_to([this] { after_change(); });
        return *last;
      }
      if (!frees && exhausted_at_.load(std::memory_order_relaxed) == moments_.now()) full();
      std::string why;
      if (make_room(frees, why) || tree_->work() != before) continue;
      // A thread of the store may have had the segments, and given them back before this one looked for some to free.
      if (const std::optional<std::uint64_t> last = try_apply(changes, bytes, memory, frees, more)) return *last;
      full(why);
    }
  }

  void check_size(const change& c) const {
    const std::size_t most_key = detail::tiered::most_key_bytes_in(tree_->context().page_bytes);
    if (c.key.size() > most_key)
      throw error("a key of " + std::to_string(c.key.size()) + " bytes", "use at most " + std::to_string(most_key));
    if (c.value.size() > detail::tiered::most_value_bytes)
      throw error("a value of " + std::to_string(c.value.size()) + " bytes",
                  "use at most " + std::to_string(detail::tiered::most_value_bytes));
  }

  void check_memory_for(std::span<const change> changes) const requires(Memory::is_there) {
    const std::uint64_t all = memory_->medium().used().capacity_bytes;
    std::uint64_t bytes = 0;
    for (const change& c : changes) bytes += memory_->medium_bytes_for(c);
    if (all != 0 && bytes > all / 2)
      throw error("changes of " + std::to_string(bytes) + " bytes at once, and a memory of " + std::to_string(all),
                  "write smaller batches, or use a larger pool");
  }

  // Applies the changes, or returns std::nullopt without space now. `more`: segments that are free besides.
  std::optional<std::uint64_t> try_apply(std::span<const change> changes, std::size_t bytes, std::size_t memory,
                                         bool frees, std::uint32_t more) {
    const std::scoped_lock lock(commit_mutex_);
    const std::shared_ptr<const view> v = tree_->pinned();
    const std::uint64_t kept = frees ? 0 : tree_->kept_memory();
    if (tree_->memory_of(*v) + memory + tree_->chunk_bytes() + kept > tree_->most_bytes()) return std::nullopt;
    if constexpr (Memory::is_there)
      return apply_in_memory(*v, changes, bytes, frees, more);
    else
      return apply_in_log(*v, changes, bytes, frees, more);
  }
  std::optional<std::uint64_t> apply_in_log(const view& v, std::span<const change> changes, std::size_t bytes,
                                            bool frees, std::uint32_t more) requires(!Memory::is_there) {
    const std::uint64_t before = moments_.now();
    // The last ones are for changes that make room. The keys of memtables may need more while a segment is filled.
    detail::tiered::kept_segments keep = frees ? tree_->kept_by_erasures(v) : tree_->kept_by(v, false);
    keep.all += more;
    if (!tree_->has_room_for(keep)) return std::nullopt;
    if (!log().append(changes, before, bytes, keep, clock_.now(), v.active)) return std::nullopt;
    return made(v, before + changes.size());
  }
  // Changes up to `last` are made: readers see all of a batch at once. Nothing from here on fails them.
  std::uint64_t made(const view& v, std::uint64_t last) noexcept {
    moments_.publish(last);
    threads_.try_to([&] {
      if (tree_->is_due(*v.active) && tree_->freeze()) threads_.wake();
    });
    return last;
  }

  // (M2) < publish: a reader sees a change only when it is durable.
  std::optional<std::uint64_t> apply_in_memory(const view& v, std::span<const change> changes, std::size_t bytes,
                                               bool frees, std::uint32_t more) requires(Memory::is_there) {
    detail::tiered::kept_segments keep = frees ? tree_->kept_by_erasures(v, bytes) : tree_->kept_by(v, false, bytes);
    keep.all += more;
    if (!tree_->has_room_for(keep)) return std::nullopt;
    const std::uint64_t first = moments_.now() + 1;
    if (!memory_->insert(changes, first)) return std::nullopt;
    const std::uint64_t last = first + changes.size() - 1;
    v.active->inserted(changes, last);
    return made(v, last);
  }

  // Work that is due behind a change, which is made already. With threads of its own the store only waits if these fall
  // behind.
  //
  // A flusher that gets no processor would leave changes older than the bound: a writer that finds the oldest one five
  // eighths as old flushes itself, and waits for that.
  void after_change() {
    const detail::tiered::unflushed now = log().not_durable();
    if (!options_.background) {
      if (now.bytes >= options_.loss.or_bytes) flush();
      work_if_room();
    } else if (now.bytes >= 2 * options_.loss.or_bytes ||
               (now.oldest != tiered_log::never && clock_.now() >= turn_.writers_turn(now))) {
      flush();
    } else if (now.bytes >= options_.loss.or_bytes) {
      threads_.wake();
    }
    if (options_.background) slow_down();
  }
  // Makes all changes durable. Throws pmlab::error if the drive fails.
  void flush() { log().flush(); }
  // Changes became durable, the oldest of which was acknowledged then: by a flush of a thread, a writer or an ingest.
  void count_age(std::uint64_t oldest) noexcept {
    const std::uint64_t now = clock_.now();
    const std::uint64_t age = now > oldest ? now - oldest : 0;
    if (age > 2 * half_bound()) late_flushes_.fetch_add(1, std::memory_order_relaxed);
    for (std::uint64_t longest = longest_loss_.load(std::memory_order_relaxed); longest < age;)
      if (longest_loss_.compare_exchange_weak(longest, age, std::memory_order_relaxed)) break;
  }
  // A root that grows faster than it is spilled slows writers down, the longer the more; none waits for the spill.
  void slow_down() const {
    const std::size_t sets = tree_->pinned()->sets.size();
    if (sets <= tree_->long_root()) return;
    const std::uint64_t over = sets - tree_->long_root();
    std::this_thread::sleep_for(std::chrono::microseconds(std::min<std::uint64_t>(20 * over * over, 2000)));
  }

  void work_if_room() {
    std::string ignored;
    const auto ingest = [&] {
      while (tree_->ingest_one()) continue;
    };
    const auto age = [&] {
      while (tree_->age()) continue;
    };
    has_room_for(ingest, ignored);
    has_room_for(age, ignored);
  }
  // False: `work` found no room; `why`: where.
  template <class Work>
  static bool has_room_for(Work&& work, std::string& why) {
    try {
      work();
      return true;
    } catch (const tiered_full& e) {
      why = e.what();
      return false;
    }
  }

  // Spills the root; where there is no room for all of it, its oldest set. False: it is empty. Throws tiered_full.
  bool spill_most(bool urgent) {
    try {
      return tree_->spill(~std::size_t{0});
    } catch (const tiered_full&) {
      return tree_->spill(1, urgent);
    }
  }
  // `urgent`: with the last segments, if there are no others.
  bool ingest_most(bool urgent) {
    try {
      return tree_->ingest_one();
    } catch (const tiered_full&) {
      if (!urgent) throw;
      return tree_->ingest_one(true);
    }
  }
  // Ingests all frozen memtables. Where one has no room, a spill may make it: versions that were replaced go. Throws
  // tiered_full.
  void ingest_all(bool urgent) {
    for (;;) try {
        while (ingest_most(urgent)) continue;
        return;
      } catch (const tiered_full&) {
        if (!spill_most(urgent)) throw;
      }
  }

  // False: there was nothing that makes room. `frees`: for a change that frees room. `why`: the
  // reason that was found.
  bool make_room(bool frees, std::string& why) {
    const std::uint64_t before = tree_->work();
    const std::uint64_t free = tree_->free_segments();
    freeze();
    // An ingest without room has tried to spill.
    if (has_room_for([&] { ingest_all(frees); }, why) && tree_->work() == before)
      has_room_for([&] { spill_most(frees); }, why);
    if (tree_->work() != before) return true;
    bool any = false;
    has_room_for([&] { any = tree_->reclaim(); }, why);
    return any || tree_->free_segments() > free;
  }
  [[noreturn]] void full(const std::string& why = {}) {
    const tiered_stats s = stats();
    exhausted_at_.store(moments_.now(), std::memory_order_relaxed);
    throw tiered_full("the tiered store is full: " + std::to_string(s.free_segments) + " of " +
                          std::to_string(s.segments) + " segments are free, and " + std::to_string(s.memory_bytes) +
                          " of " + std::to_string(options_.memory_limit) + " bytes of memory are in use" +
                          (why.empty() ? why : " (" + why + ")"),
                      "erase keys, then compact(); end old snapshots and cursors; or use a larger drive");
  }

  // ---- reading

  [[nodiscard]] std::optional<std::string> get(std::uint8_t table, std::string_view key,
                                               const snapshot_handle* at) const {
    // The view before the moment: a set that is made later may lack versions of this moment.
    const std::shared_ptr<const view> v = tree_->pinned();
    const detail::tiered::version_name name{table, key, at != nullptr ? at->sequence_ : moments_.now()};
    bool is_known = false;
    std::optional<std::string> value = in_memtables(*v, name, is_known);
    if (is_known) return value;
    const std::uint64_t hash = detail::tiered::hash_of(table, key);
    const auto in_sets = [&](const auto& newest_first) -> std::optional<found_version> {
      for (const auto& one : newest_first) {
        if (!one->may_have(hash)) continue;
        detail::tiered::set_source<Device> source(one);
        if (!source.seek(name) || !source.here().same_key(name)) continue;
        std::optional<found_version> found(std::in_place);
        source.take(*found);
        return found;
      }
      return std::nullopt;
    };
    std::optional<found_version> found = in_sets(v->sets);
    if (!found) found = in_sets(v->leaves[detail::tiered::leaf_of(v->leaves, name)]->sets);
    if (!found || found->kind == change_kind::erase) return std::nullopt;
    return detail::tiered::read_value(tree_->context(), *found);
  }

  // The value that memtables have; `is_known`: one of them has the key, or its erasure.
  [[nodiscard]] std::optional<std::string> in_memtables(const view& v, const detail::tiered::version_name& name,
                                                        bool& is_known) const {
    const auto in = [&](const auto& m) {
      auto found = m.at_least(name);
      if constexpr (!Memory::is_there) {
        return found != nullptr && found->name().same_key(name) ? found : nullptr;
      } else {
        if (found && !found->name().same_key(name)) found.reset();
        return found;
      }
    };
    auto found = in(*v.active);
    for (auto m = v.frozen.begin(); !found && m != v.frozen.end(); ++m) found = in(**m);
    if (!found) return std::nullopt;
    is_known = true;
    if constexpr (Memory::is_there) {
      return found->kind == change_kind::put ? std::move(found->value) : std::nullopt;
    } else {
      return found->kind() == change_kind::put ? std::optional<std::string>(found->value()) : std::nullopt;
    }
  }

  [[nodiscard]] cursor_handle make_cursor(std::uint8_t table, const range& r) const {
    const std::shared_ptr<const view> v = tree_->pinned();
    const std::uint64_t now = r.at != nullptr ? r.at->sequence_ : moments_.now();
    return cursor_handle(body(tree_->context(), v, now, {table, r.from, r.to, r.way, r.most}));
  }

  void release(std::uint64_t sequence) {
    moments_.release(sequence);
    exhausted_at_.store(never_exhausted, std::memory_order_relaxed);
  }

  // ---- memtables and threads

  [[nodiscard]] tiered_log& log() noexcept { return tree_->log(); }
  [[nodiscard]] const tiered_log& log() const noexcept { return tree_->log(); }

  void freeze() {
    const std::scoped_lock lock(commit_mutex_);
    if (tree_->freeze()) threads_.wake();
  }

  [[nodiscard]] std::uint64_t half_bound() const noexcept {
    return static_cast<std::uint64_t>(options_.loss.at_most.count()) * 1000 / 2;  // ns to ps
  }

  void start() {
    constexpr std::chrono::nanoseconds least_pause = std::chrono::milliseconds(1);
    const std::chrono::nanoseconds after_failure = std::max(least_pause, options_.loss.at_most / 4);
    if constexpr (!Memory::is_there) threads_.start([this] { return flusher_pause(); }, options_.loss.at_most / 4);
    static constexpr std::chrono::seconds long_pause(1);
    threads_.start(
        [this] {
          while (tree_->ingest_one()) threads_.wake();
          return std::chrono::nanoseconds(long_pause);
        },
        after_failure);
    threads_.start(
        [this] {
          if (tree_->age()) return std::chrono::nanoseconds(0);
          return std::chrono::nanoseconds(long_pause);
        },
        after_failure);
  }

  // Flushes if it is time; returns how long to pause. A change that comes meanwhile is not half as old as the bound
  // when the pause ends.
  [[nodiscard]] std::chrono::nanoseconds flusher_pause() {
    const std::uint64_t pause = flusher_pause(log().not_durable());
    turn_.sleeps_until(clock_.now() + pause);
    return std::chrono::nanoseconds(pause / 1000);
  }
  [[nodiscard]] std::uint64_t flusher_pause(const detail::tiered::unflushed& waiting) {
    const std::uint64_t woken = clock_.now();
    turn_.is_awake(woken);
    if (waiting.oldest != tiered_log::never && turn_.leaves_to_writers(waiting, woken)) return turn_.pause();
    const std::uint64_t due = step();
    const std::uint64_t now = clock_.shown_at(clock_.now());
    const std::uint64_t longest = half_bound() / 2;
    return due == tiered_log::never ? longest : std::min(longest, due > now ? due - now : 0);
  }

  tiered_options options_;
  detail::tiered::forward_clock<Clock> clock_;
  detail::tiered::moments moments_;
  std::unique_ptr<typename Memory::index> memory_;  // null without
  std::optional<detail::tiered::tree<Device, Memory>> tree_;

  std::mutex commit_mutex_;  // one change at a time
  std::atomic<std::uint64_t> exhausted_at_{never_exhausted};
  detail::tiered::flusher_turn turn_{half_bound()};
  std::atomic<std::uint64_t> late_flushes_{0};
  std::atomic<std::uint64_t> longest_loss_{0};  // picoseconds

  detail::tiered::background threads_;
};

}  // namespace pmlab::stores
