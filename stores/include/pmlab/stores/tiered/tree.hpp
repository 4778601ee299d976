// The tree of a store: memtables, a root of key/value sets, and leaves; and how the one become the other.
//
//   ingest    the oldest memtable becomes a set of the root. Its values stay in the log.
//   spill     the oldest sets of the root become at most one set more in each leaf. Values are copied.
//   compact   the sets of a leaf become one; values are copied out of segments that are mostly garbage. A leaf that is
//             too large is split.
//
// Each is one transaction: new sets are durable before the manifest names them, and the manifest that no longer names
// the old ones is durable before these are free. Readers use a view of the tree, which they pin. An ingest and
// the ageing of the tree (spill, compact) may run at the same time, since an ingest adds the newest set of the root,
// and ageing takes the oldest ones.
#pragma once

#include <pmlab/base/name.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/stores/tiered/cursor.hpp>
#include <pmlab/stores/tiered/epoch.hpp>
#include <pmlab/stores/tiered/findings.hpp>
#include <pmlab/stores/tiered/key_set.hpp>
#include <pmlab/stores/tiered/leaf.hpp>
#include <pmlab/stores/tiered/log.hpp>
#include <pmlab/stores/tiered/manifest.hpp>
#include <pmlab/stores/tiered/memtable.hpp>
#include <pmlab/stores/tiered/moments.hpp>
#include <pmlab/stores/tiered/no_memory.hpp>
#include <pmlab/stores/tiered/options.hpp>
#include <pmlab/stores/tiered/placement.hpp>
#include <pmlab/stores/tiered/read_cache.hpp>
#include <pmlab/stores/tiered/replay.hpp>
#include <pmlab/stores/tiered/rewrite.hpp>
#include <pmlab/stores/tiered/salvage.hpp>
#include <pmlab/stores/tiered/segment_io.hpp>
#include <pmlab/stores/tiered/segments.hpp>
#include <pmlab/stores/tiered/survivors.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// Thread safety: ingest_one, age, spill, reclaim, compact_all, open_table, count and pinned from any thread; the others
// as they say.
template <blocks::device Device, class Memory = no_memory>
class tree {
  using table = typename Memory::table;

 public:
  using set_pointer = std::shared_ptr<const key_set<Device>>;
  using view = tree_view<Device, Memory>;

  // `on`: the drives, divided as in the header of the store. `memory`: not null, if there is persistent memory.
  tree(const drive_pair<Device>& on, const drive_header& header, const tiered_options& options, const moments& seen,
       typename Memory::index* memory = nullptr)
      : options_(options),
        on_(on),
        place_(table_of(static_cast<placement>(header.place), header.has_staging != 0)),
        memory_(memory),
        moments_(seen),
        manifest_drive_(*on.devices[index_of(place_.log)]),
        io_(on),
        segments_(on.where),
        readers_(on),
        value_readers_(on),
        cache_(options.cache_bytes),
        context_{on.where, header.page_bytes, segments_, readers_, value_readers_, cache_},
        log_(on, header.store, segments_, place_.log),
        manifest_(on.where.drives[index_of(place_.log)], on.where, header.store),
        epochs_(on, place_.log),
        found_(options.read_only) {
    if (options_.leaf_bytes == 0) options_.leaf_bytes = 16 * std::uint64_t{on.where.segment_bytes};
  }
  tree(const tree&) = delete;
  tree& operator=(const tree&) = delete;

  // Reads sets and log. Returns the sequence of the newest change. `behind`: gets the changes of intact groups behind a
  // gap of the log; null: they are not read. REQUIRES: no other operation yet.
  std::uint64_t recover(const identity& store, std::vector<loose_change>* behind = nullptr) {
    const manifest_state found = manifest_.read(manifest_drive_);
    epoch_ = found.epoch;
    epochs_.check(epoch_, manifest_.version(), found_);
    if constexpr (Memory::is_there) {
      if (found.replay.segment == in_memory)
        check_moment("the memory", "the drives", memory_->epoch(), epoch_, manifest_.version(), manifest_.version(),
                     found_);
    }
    tables_ = found.tables;
    ingested_ = found.ingested;
    replay_ = found.replay;
    auto v = std::make_shared<view>();
    v->sets = load(found.sets);
    for (const leaf_description& l : found.leaves) {
      leaf<Device> one{static_cast<std::uint16_t>(l.table), l.bound, load(l.sets), {}};
      const bool follows =
          v->leaves.empty() ? one.table == 0 && one.bound.empty() : v->leaves.back()->begin() < one.begin();
      if (!follows) throw error("the leaves of the tiered store are not in order", "restore it from a copy");
      v->leaves.push_back(std::make_shared<leaf<Device>>(std::move(one)));
    }
    if (v->leaves.empty()) throw error("the manifest of the tiered store has no leaf", "restore it from a copy");
    measure(*v);
    if constexpr (Memory::is_there)
      return recover_memory(std::move(v));
    else
      return replay(store, std::move(v), behind);
  }
  // What was wrong when it was opened.
  [[nodiscard]] const std::vector<std::string>& damage() const noexcept { return found_.list(); }
  // The store is closed: the manifest has its last change. REQUIRES: all of them are durable; no other operation.
  void close() {
    const std::scoped_lock lock(mutex_);
    if (durable_now() != epoch_.durable) commit(described(*pinned()), true);
  }
  // By number. REQUIRES: as for recover.
  [[nodiscard]] const std::vector<std::string>& tables() const noexcept { return tables_; }

  // ---- memtables

  // The active memtable is frozen when it has so many bytes.
  [[nodiscard]] std::uint64_t freeze_bytes() const noexcept { return most_bytes() / 8; }
  [[nodiscard]] std::size_t chunk_bytes() const noexcept {
    return std::clamp<std::size_t>(freeze_bytes() / 16, 256, std::size_t{1} << 18);
  }
  // The most DRAM for everything but the cache.
  [[nodiscard]] std::uint64_t most_bytes() const noexcept { return options_.memory_limit - options_.cache_bytes; }
  // Whether the active memtable is large enough to become a set.
  [[nodiscard]] bool is_due(const table& active) const noexcept {
    if constexpr (Memory::is_there) {
      if (options_.memtable_bytes != 0) return active.medium_bytes() >= options_.memtable_bytes;
      const std::uint64_t all = memory_->medium().used().capacity_bytes;
      return active.medium_bytes() >= (all == 0 ? freeze_bytes() : all / 5);
    } else {
      return active.bytes() >= freeze_bytes();
    }
  }
  // DRAM that counts against the limit.
  [[nodiscard]] std::uint64_t memory_of(const view& v) const {
    std::uint64_t all = v.set_memory;
    if constexpr (Memory::is_there) {
      all += memory_->dram_bytes();
    } else {
      all += v.active->bytes();
      for (const auto& m : v.frozen) all += m->bytes();
    }
    return all;
  }
  // The active memtable takes no more changes. False: it is empty. REQUIRES: no change is being made.
  bool freeze() {
    const std::scoped_lock lock(view_mutex_);
    if (view_->active->empty()) return false;
    auto next = std::make_shared<view>(*view_);
    next->frozen.insert(next->frozen.begin(), next->active);
    next->active = make_memtable(view_->active->last());
    view_ = std::move(next);
    return true;
  }

  // What readers use now.
  [[nodiscard]] std::shared_ptr<const view> pinned() const {
    const std::scoped_lock lock(view_mutex_);
    return view_;
  }

  // ---- ingest

  // The oldest frozen memtable becomes a set. False: there is none. Throws tiered_full.
  //
  // (I1) < (I2) < (I3): the values are durable in the log, then the keys, then the manifest names the set and moves the
  // start of replay behind it. Only then is the log's part forgotten. A crash before (I3) replays the log as before.
  //
  // From persistent memory, values are written to segments of their own, durable with the keys. The versions leave the
  // memory behind (I3), when no reader has the memtable.
  //
  // `urgent`: it, and a spill, may use the segments that are kept for the next steps.
  bool ingest_one(bool urgent = false) {
    const bool any = ingest_oldest(urgent);
    if constexpr (Memory::is_there) memory_->collect();
    return any;
  }

  // ---- ageing

  // One piece of the ageing that is due. False: none is. Throws tiered_full: nothing changed.
  bool age() {
    const std::scoped_lock lock(ageing_mutex_);
    const std::shared_ptr<const view> v = pinned();
    if (segments_.free() == stuck_at_) return false;
    try {
      // A leaf with too many sets goes before the next spill, which would add one more: their garbage takes space. The
      // root grows meanwhile, and slows writers down.
      const bool spills = spill_is_due(*v);
      for (std::size_t i = 0; i < v->leaves.size(); ++i)
        if (has_too_many_sets(*v->leaves[i])) return compact_or_spill(i, spills, *v);
      if (spills) return spill_locked(v->sets.size(), false);
      const bool splits = may_split(*v);
      for (std::size_t i = 0; i < v->leaves.size(); ++i)
        if (is_due(*v->leaves[i], splits)) return compact(i);
    } catch (const tiered_full&) {
      stuck_at_ = segments_.free();  // it is tried again when there is more room, or less
      throw;
    }
    return false;
  }
  // The oldest sets of the root, at most so many, go into the leaves. False: there are none. `urgent`: with the
  // segments that are kept for it; values stay where they are, and leaves have one set each afterwards. Throws
  // tiered_full.
  bool spill(std::size_t most, bool urgent = false) {
    const std::scoped_lock lock(ageing_mutex_);
    const bool any = spill_locked(most, urgent);
    if (any && urgent) merge_leaves();
    return any;
  }
  // Frees segments by what is kept for it: the sets of each leaf become one, then values leave segments that have
  // garbage. False: there is nothing that a rewriting frees. Throws tiered_full; what was done before stays.
  bool reclaim() {
    const std::scoped_lock lock(ageing_mutex_);
    const bool merged = merge_leaves();
    return collect() || merged;
  }
  // A rewriting of everything would free segments, and so many that they count.
  [[nodiscard]] bool has_garbage() const {
    const std::scoped_lock lock(ageing_mutex_);
    return plan_of(*pinned(), ~std::uint32_t{0} / 2).gain >= least_gain();
  }
  // Compacts all leaves; a value without room stays where it is. Throws tiered_full.
  void compact_all() {
    const std::scoped_lock lock(ageing_mutex_);
    leaf_rewriter<Device> rewriter =
        make_rewriter(*pinned(), {}, kept_by(*pinned(), false), thorough_percent, thorough_percent);
    for (std::size_t i = 0; i < pinned()->leaves.size();)
      i += is_compact(*pinned()->leaves[i]) ? 1 : rewrite_leaf(rewriter, i);
    stuck_at_ = never_stuck;
  }
  // Ageing does not keep up with a root that is longer.
  [[nodiscard]] std::size_t long_root() const noexcept { return 2 * std::size_t{options_.most_sets}; }

  // Segments that a change leaves free: for the next steps of ageing and, if it does not only erase, for erasures and
  // the reclaiming of garbage. `more`: for values of memtables on persistent memory.
  //
  // All of it is kept: an ingest uses the part of the memtables, a spill and a merge of a leaf their own parts, and
  // each frees what it took before the next one begins. So a store that is full for puts is never full for erasures.
  [[nodiscard]] kept_segments kept_by(const view& v, bool frees, std::uint64_t more = 0) const {
    kept_segments all;
    all.each = v.spare;
    const auto add = [&](const table& m) {
      all.each[index_of(place_.root_keys)] += static_cast<std::uint32_t>(2 * segments_for(2 * m.key_bytes()));
      all.each[index_of(place_.leaf_keys)] += static_cast<std::uint32_t>(segments_for(2 * m.key_bytes()));
    };
    add(*v.active);
    for (const auto& m : v.frozen) add(*m);
    // Memtables in persistent memory may be as large as a drive: their values have room before they are made.
    if constexpr (Memory::is_there) {
      const auto add_values = [&](const table& m) {
        all.each[index_of(place_.log)] += static_cast<std::uint32_t>(segments_for(2 * m.value_bytes()));
      };
      add_values(*v.active);
      for (const auto& m : v.frozen) add_values(*m);
      all.each[index_of(place_.log)] += static_cast<std::uint32_t>(segments_for(2 * more));
    }
    all.all = v.kept_to_merge + v.kept_to_spill;
    for (std::size_t c = 0; c < classes; ++c) all.all += all.each[c] - v.spare[c];
    if (frees) {
      all.each = {};
      return all;
    }
    for (std::uint32_t& r : all.each) r += 2;
    all.all += kept_for_erasures + kept_to_collect();
    return all;
  }
  // Likewise, for a change that only erases. A spill has a page for each leaf that it changes, no more of them than a
  // set or a memtable has changes. So few erasures need little, however many leaves there are.
  [[nodiscard]] kept_segments kept_by_erasures(const view& v, std::uint64_t more = 0) const {
    kept_segments all = kept_by(v, true, more);
    if constexpr (Memory::is_there) return all;  // an opened memtable does not count its changes
    std::uint64_t changes = v.root_entries;
    const auto add = [&](const table& m) {
      changes = std::max<std::uint64_t>(changes, m.key_bytes() / sizeof(page_entry));
    };
    add(*v.active);
    for (const auto& m : v.frozen) add(*m);
    all.all -= v.kept_to_spill - kept_to_spill(v, changes + 1);
    return all;
  }
  // Segments that an attempt to make room must have won for a put: to rewrite all keys for less is not worth it.
  [[nodiscard]] std::uint32_t worth_while() const noexcept { return all_segments() / collecting_fraction; }
  // Segments for the keys of a spill of one set of the root that has so many changes.
  [[nodiscard]] std::uint32_t kept_to_spill(const view& v, std::uint64_t changes) const noexcept {
    return static_cast<std::uint32_t>(
        segments_for(v.root_keys + std::min<std::uint64_t>(changes, v.leaves.size()) * context_.page_bytes));
  }
  // Whether so many are free.
  [[nodiscard]] bool has_room_for(const kept_segments& keep) const { return free_segments() >= keep.all; }
  // DRAM that only erasures use.
  [[nodiscard]] std::uint64_t kept_memory() const noexcept {
    return std::max(most_bytes() / 16, std::min<std::uint64_t>(most_bytes() / 5, 3072));
  }

  // ---- tables

  // The number of the table `name`, which is made, durably, if it is not there. Throws pmlab::error: no more tables.
  [[nodiscard]] std::uint8_t open_table(std::string_view name) {
    const std::scoped_lock lock(mutex_);
    const auto at = std::find(tables_.begin(), tables_.end(), name);
    const auto id = static_cast<std::size_t>(at - tables_.begin());
    if (at == tables_.end()) {
      check_name(name, most_table_name, "a table");
      if (options_.read_only)
        throw error("the store has no table '" + std::string(name) + "', and is opened to be read only",
                    "open it without `read_only` to make one");
      if (id == most_tables)
        throw error("the store has " + std::to_string(id) + " tables, and can have no more",
                    "put a prefix into the keys");
      tables_.emplace_back(name);
      try {
        commit(described(*pinned()));
      } catch (...) {
        tables_.pop_back();
        throw;
      }
    }
    return static_cast<std::uint8_t>(id);
  }

  // ---- figures

  void count(tiered_stats& s) const {
    const std::shared_ptr<const view> v = pinned();
    s.memory_bytes = memory_of(*v) + cache_.bytes();
    s.cached_bytes = cache_.bytes();
    s.page_hits = cache_.of_pages().hits;
    s.page_misses = cache_.of_pages().misses;
    s.value_hits = cache_.of_values().hits;
    s.value_misses = cache_.of_values().misses;
    if constexpr (Memory::is_there) s.medium_bytes = memory_->medium().used().allocated_bytes;
    s.sets = v->sets.size();
    s.leaves = v->leaves.size();
    const auto add = [&](const std::vector<set_pointer>& sets) {
      for (const set_pointer& one : sets) {
        s.entries += one->described().entries;
        s.value_bytes += one->value_bytes();
      }
    };
    add(v->sets);
    for (const auto& l : v->leaves) {
      s.leaf_sets += l->sets.size();
      add(l->sets);
    }
    const class_counts all = segments_.counts();
    const class_counts free = segments_.free();
    s.segments = std::uint64_t{all[0]} + all[1];
    s.free_segments = std::uint64_t{free[0]} + free[1];
    s.staging_used_bytes = std::uint64_t{all[0] - free[0]} * on_.where.segment_bytes;
    s.capacity_used_bytes = std::uint64_t{all[1] - free[1]} * on_.where.segment_bytes;
    s.ingests = ingests_.load(std::memory_order_relaxed);
    s.spills = spills_.load(std::memory_order_relaxed);
    s.compactions = compactions_.load(std::memory_order_relaxed);
    s.splits = splits_.load(std::memory_order_relaxed);
    s.spilled_value_bytes = spilled_.load(std::memory_order_relaxed);
    s.compacted_value_bytes = compacted_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t free_segments() const {
    const class_counts free = segments_.free();
    return std::uint64_t{free[0]} + free[1];
  }
  // Ingests and spills so far.
  [[nodiscard]] std::uint64_t work() const noexcept {
    std::uint64_t all = ingests_.load(std::memory_order_relaxed) + spills_.load(std::memory_order_relaxed);
    if constexpr (Memory::is_there) all += memory_->removed();
    return all;
  }

  // Checks ranges, order, references, counts of bytes, and checksums of all pages and values. The threads of the store
  // wait meanwhile. REQUIRES: no other operation, no cursor.
  void check(indexes::check_report& report) const {
    const std::scoped_lock one_ageing(ageing_mutex_);
    const std::scoped_lock one_commit(mutex_);
    if constexpr (Memory::is_there) memory_->check(ingested_, moments_.now(), report);
    const std::shared_ptr<const view> v = pinned();
    std::array<std::vector<std::uint32_t>, classes> references;
    for (std::size_t c = 0; c < classes; ++c) references[c].resize(segments_.counts()[c]);
    const auto count = [&](std::uint32_t s) { ++references[index_of(class_of(s))][s & ~capacity_bit]; };
    for (const std::uint32_t s : log_.segments_in_use()) count(s);
    for (const set_pointer& made : doubtful_) made->described().for_each_segment(count);
    for (const set_pointer& one : v->sets) {
      one->described().for_each_segment(count);
      check_set(*one, v->leaves.front()->begin(), std::nullopt, report);
    }
    for (std::size_t i = 0; i < v->leaves.size(); ++i) {
      const std::optional<version_name> end = end_of(*v, i);
      if (end && !(v->leaves[i]->begin() < *end)) report.add("leaves are not in order");
      for (const set_pointer& one : v->leaves[i]->sets) {
        one->described().for_each_segment(count);
        check_set(*one, v->leaves[i]->begin(), end, report);
      }
    }
    const auto counted = segments_.references();
    for (std::size_t c = 0; c < classes; ++c)
      for (std::size_t s = 0; s < counted[c].size(); ++s)
        if (counted[c][s] != references[c][s])
          report.add("segment " + std::to_string(s) + " counts " + std::to_string(counted[c][s]) +
                     " references and has " + std::to_string(references[c][s]));
  }

  [[nodiscard]] tiered::log<Device>& log() noexcept { return log_; }
  [[nodiscard]] const tiered::log<Device>& log() const noexcept { return log_; }
  [[nodiscard]] const set_context<Device>& context() const noexcept { return context_; }

 private:
  static constexpr class_counts never_stuck{~std::uint32_t{0}, ~std::uint32_t{0}};
  // Compaction that needs space gives up a segment with so much garbage.
  static constexpr std::uint32_t thorough_percent = 10;
  // Segments of the log that erasures have, and the fraction of all, at least 3, for which the collecting of garbage
  // has room: the more at once, the less often the keys are rewritten.
  static constexpr std::uint32_t kept_for_erasures = 2;
  static constexpr std::uint32_t collecting_fraction = 32;
  [[nodiscard]] std::uint32_t all_segments() const noexcept { return segments_.counts()[0] + segments_.counts()[1]; }
  [[nodiscard]] std::uint32_t kept_to_collect() const noexcept {
    return std::max<std::uint32_t>(3, all_segments() / collecting_fraction);
  }
  [[nodiscard]] std::int64_t least_gain() const noexcept { return std::max<std::int64_t>(4, all_segments() / 16); }

  // ---- opening

  std::uint64_t replay(const identity& store, std::shared_ptr<view> v,
                       std::vector<loose_change>* behind) requires(!Memory::is_there) {
    if (replay_.segment == in_memory)
      throw error("the newest changes of this store are in persistent memory, and none is given",
                  "open it with the memory that it was made with");
    v->active = make_memtable(0);
    log_reader<Device> reader(io_, on_.where, store, found_);
    const replayed log = reader.run(replay_, [&](const change& c, std::uint64_t s, auto place) {
      if (s > ingested_) v->active->insert(c, s, place);
    });
    view_ = std::move(v);
    const groups_behind others = reader.look_behind(log.end, epoch_.opened, segments_.references());
    check_end(log, others);
    if (behind != nullptr)
      for (const auto& p : others.groups)
        reader.run_one(p, [&](const change& c, std::uint64_t s, auto) {
          behind->push_back({c.kind, c.table, std::string(c.key), std::string(c.value), s});
        });
    log_.begin(manifest_.version(), log.end, log.groups);
    if (options_.read_only) return log.end.next - 1;
    // Groups of a process that was killed may be in the drive's cache only.
    // (O1) < (O2): a generation begins when all that replay has found is durable.
    io_.flush_all(blocks::stream::log);  // (O1)
    begin_session();                     // (O2)
    return log.end.next - 1;
  }
  // Whether the log ends where it may. Throws pmlab::error, or notes it: durable changes are missing.
  void check_end(const replayed& log, const groups_behind& behind) {
    static const std::string remedy =
        "nothing was overwritten: restore the drive; option `read_only` opens, and `salvage` reads, the intact rest";
    const std::uint64_t next = log.end.next;
    const std::uint64_t durable = std::max({epoch_.durable, behind.durable, epochs_.durable()});
    if (epoch_.durable >= next || behind.durable >= next) {
      const std::uint64_t last = behind.groups.empty() ? durable : behind.groups.front().first - 1;
      std::string what = "the log of the tiered store is damaged";
      if (log.end.segment != no_segment)
        what += " in " + in_words(log.end.segment) + " at byte " + std::to_string(log.end.offset) +
                ", or at the begin of the segment behind it";
      what += ": changes " + std::to_string(next) + " to " + std::to_string(last) + " are lost, and were durable";
      if (!behind.groups.empty())
        what += "; groups behind them, up to change " + std::to_string(behind.last) + ", are intact";
      found_.refuse(what, remedy);
    } else if (durable >= next) {
      found_.refuse(epochs_.with_manifests() +
                        " is of an older moment than the other drive, or its log is damaged: changes " +
                        std::to_string(next) + " to " + std::to_string(durable) + " are lost, and were durable",
                    remedy);
    } else if (std::max(log.manifest, behind.manifest) > manifest_.version()) {
      found_.refuse("the newest manifest of the tiered store is damaged: the log knows version " +
                        std::to_string(std::max(log.manifest, behind.manifest)) + ", and the newest valid one is " +
                        std::to_string(manifest_.version()),
                    remedy);
    }
  }
  // The first manifest of this opening. REQUIRES: all that was found is durable.
  void begin_session() {
    const std::uint64_t last = moment(epoch_.session).number();
    epoch_.follows = epoch_.session;
    epoch_.session = moment::with_number(std::min(last + 1, moment::largest_number)).word();
    epoch_.opened = manifest_.version() + 1;
    epochs_.begin_upgrade();
    commit(described(*view_), true);
    epochs_.upgrade();
    next_id_ = manifest_.version() << 24;
  }
  std::uint64_t recover_memory(std::shared_ptr<view> v) requires(Memory::is_there) {
    if (replay_.segment != in_memory)
      throw error("this store was made without persistent memory: its newest changes are in a log",
                  "open it without memory; to move it, copy its tables to a store that is made with memory");
    const std::uint64_t last = options_.read_only ? memory_->look(ingested_, found_) : memory_->recover(ingested_);
    const std::uint64_t durable = std::max(epoch_.durable, epochs_.durable());
    if (last < durable)
      found_.refuse("the memory is of an older moment than the drives: changes " + std::to_string(last + 1) + " to " +
                        std::to_string(durable) + " are lost, and were durable",
                    "give drives and memory of one moment: restore all of them from one copy");
    v->active = make_memtable(ingested_);
    v->active->found(last);
    view_ = std::move(v);
    if (options_.read_only) return last;
    epoch_.durable = last;
    io_.flush_all(blocks::stream::manifest);  // (O1)
    begin_session();                          // (O2) of ids: none is used again
    return last;
  }

  // `low`: the sequence before its first one.
  [[nodiscard]] std::shared_ptr<table> make_memtable([[maybe_unused]] std::uint64_t low) const {
    if constexpr (Memory::is_there)
      return std::make_shared<table>(*memory_, low);
    else
      return std::make_shared<table>(chunk_bytes());
  }
  [[nodiscard]] std::uint64_t next_id() noexcept { return next_id_.fetch_add(1, std::memory_order_relaxed); }
  [[noreturn]] static void no_room_for_keys() {
    throw tiered_full("no free segment for keys", "erase keys, then compact()");
  }
  // The segments of a stream of so many bytes, which begins in a segment of its own.
  [[nodiscard]] std::uint64_t segments_for(std::uint64_t bytes) const noexcept {
    return bytes / on_.where.segment_bytes + 1;
  }
  // Sets of the manifest, newest first.
  [[nodiscard]] std::vector<set_pointer> load(const std::vector<set_description>& oldest_first) {
    std::vector<set_pointer> all;
    for (const set_description& d : oldest_first) {
      const auto one = std::make_shared<key_set<Device>>(context_, d);
      one->load(found_);
      all.insert(all.begin(), one);
    }
    return all;
  }

  // ---- ingest

  bool ingest_oldest(bool urgent) {
    const std::scoped_lock lock(mutex_);
    const std::shared_ptr<const view> v = pinned();
    if (v->frozen.empty()) return false;
    const std::shared_ptr<table> from = v->frozen.back();
    const bool is_lowest = v->sets.empty() && std::all_of(v->leaves.begin(), v->leaves.end(),
                                                          [](const auto& l) { return l->sets.empty(); });
    if constexpr (!Memory::is_there) {
      if (log_.durable_now() < from->last()) log_.flush();  // (I1)
    }
    kept_segments keep;  // for the spill of this set, and the merge behind that
    if (!urgent) {
      keep.each = v->spare;
      keep.each[index_of(place_.leaf_keys)] += static_cast<std::uint32_t>(segments_for(2 * from->key_bytes()));
      keep.all = v->kept_to_merge + v->kept_to_spill;
    }
    segment_writer<Device> keys(context_, io_, place_.root_keys, keep, blocks::stream::keys);
    set_writer<Device> writer(context_, keys, next_id(), ingested_ + 1, from->last());
    survivors rule(moments_.horizon(), is_lowest);
    segment_writer<Device> values(context_, io_, place_.log, keep, blocks::stream::values);
    if constexpr (Memory::is_there) {
      for (auto one = from->at_least({0, {}, newest}); one;
           one = from->at_least({one->table, one->key, one->sequence - 1})) {
        if (!rule.stays(*one)) continue;
        if (one->has_value()) {
          one->value_check = check_of(*one->value);
          const std::optional<value_place> place = values.append(std::as_bytes(std::span(*one->value)));
          if (!place) throw tiered_full("no free segment for values", "erase keys, then compact()");
          one->place = *place;
        } else {
          one->value_check = check_of({});
        }
        if (!writer.add(*one)) no_room_for_keys();
      }
      values.finish();
    } else {
      for (const auto* n = from->at_least({0, {}, newest}); n != nullptr; n = n->next()) {
        found_version one = memtable_source::of(n);
        one.value_check = check_of(n->value());
        if (rule.stays(one) && !writer.add(one)) no_room_for_keys();
      }
    }
    const set_pointer made = writer.finish();
    if (made == nullptr) no_room_for_keys();
    const bool is_there = made->described().entries > 0;
    keys.finish();
    if (is_there) io_.flush(blocks::stream::keys);  // (I2)
    const auto edit = [&](view& changed) {
      changed.frozen.pop_back();
      if (is_there) changed.sets.insert(changed.sets.begin(), made);
    };
    const std::uint64_t ingested_before = std::exchange(ingested_, from->last());
    const log_anchor replay_before = Memory::is_there ? replay_ : std::exchange(replay_, log_.anchor_behind(ingested_));
    try {
      install({made}, edit);  // (I3)
    } catch (...) {
      ingested_ = ingested_before;
      replay_ = replay_before;
      throw;
    }
    if constexpr (Memory::is_there)
      from->is_elsewhere();
    else
      log_.forget(ingested_);
    ingests_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  // ---- transactions, under mutex_

  [[nodiscard]] manifest_state described(const view& v) const {
    const auto sets = [](const std::vector<set_pointer>& newest_first) {
      std::vector<set_description> all;
      for (auto s = newest_first.rbegin(); s != newest_first.rend(); ++s) all.push_back((*s)->described());
      return all;
    };
    manifest_state s{tables_, sets(v.sets), {}, ingested_, replay_, {}};
    for (const auto& l : v.leaves) s.leaves.push_back({l->table, l->bound, sets(l->sets)});
    return s;
  }
  // Changes up to this one are durable.
  [[nodiscard]] std::uint64_t durable_now() const {
    if constexpr (Memory::is_there)
      return std::max(epoch_.durable, moments_.now());
    else
      return log_.durable_now();
  }
  // A manifest that will be written.
  struct next_manifest {
    manifest_epoch epoch;
    bool enters_other;  // the other drive gets an entry of it
    blocks::buffer area;
  };
  // Throws tiered_full: the state is too large; std::bad_alloc.
  [[nodiscard]] next_manifest sealed(manifest_state next, bool enters_other) const {
    next.epoch = epoch_;
    next.epoch.durable = durable_now();
    if (enters_other) next.epoch.needs = manifest_.version() + 1;
    std::optional<blocks::buffer> area = manifest_.sealed(next);
    if (!area)
      throw tiered_full("the manifest has no room for the sets of " + std::to_string(next.leaves.size()) + " leaves",
                        "make the store with larger manifests (manifest_bytes), or with larger leaves");
    return {next.epoch, enters_other, std::move(*area)};
  }
  // Durable on return. Throws pmlab::error: a drive failed, and the manifest is there or not.
  void commit(const next_manifest& next) {
    const std::uint64_t version = manifest_.version() + 1;
    drive_epoch entry;
    // A session begins with its first manifest, not before.
    entry.session = next.epoch.opened == version ? next.epoch.follows : next.epoch.session;
    entry.promised = version;
    entry.confirmed = manifest_.version();
    entry.durable = next.epoch.durable;
    if (next.enters_other) epochs_.enter(entry);  // (E1)
    if constexpr (Memory::is_there) memory_->become(entry);
    manifest_.write(manifest_drive_, next.area);  // (E2)
    epoch_ = next.epoch;
    log_.manifest_is(version);
    entry.session = epoch_.session;
    entry.confirmed = version;
    try {
      if constexpr (Memory::is_there) memory_->become(entry);  // (E3)
      if (next.enters_other) epochs_.enter(entry);             // (E3)
    } catch (const std::exception&) {
      // The manifest is durable all the same; the other parts get an entry of the next one.
    }
  }
  void commit(manifest_state next, bool enters_other = false) { commit(sealed(std::move(next), enters_other)); }
  // Whether one of these sets has keys or values on the drive without manifests.
  [[nodiscard]] bool are_on_other(const std::vector<set_pointer>& sets) const {
    bool any = false;
    for (const set_pointer& s : sets)
      s->described().for_each_segment([&](std::uint32_t n) { any = any || class_of(n) != place_.log; });
    return any;
  }
  // Makes the edit durable, then visible. `made`: the sets that it adds. Throws: the edit was not made.
  //
  // (V1) < (V2) < (V3): a set that a manifest on the drive may name keeps its segments until a later manifest is
  // durable, or the view has the set. The drive may name it while the view does not: the write failed, or the memory
  // for the view.
  template <class Edit>
  void install(const std::vector<set_pointer>& made, Edit&& edit) {
    view proposed = *pinned();
    edit(proposed);
    const next_manifest next = sealed(described(proposed), are_on_other(made));
    const auto before = static_cast<std::ptrdiff_t>(doubtful_.size());
    doubtful_.insert(doubtful_.end(), made.begin(), made.end());     // (V1)
    commit(next);                                                    // (V2)
    doubtful_.erase(doubtful_.begin(), doubtful_.begin() + before);  // this manifest does not name these
    {
      const std::scoped_lock lock(view_mutex_);
      auto changed = std::make_shared<view>(*view_);
      edit(*changed);
      measure(*changed);
      view_ = std::move(changed);
    }
    doubtful_.clear();  // (V3)
  }
  // Fills in the sums over the sets of a view: DRAM, and segments to keep free. Space is kept for each next step, or a
  // full store could never be made less full: ingests leave space for a spill of one set, and spills for a compaction.
  void measure(view& v) const {
    v.set_memory = 0;
    v.data_bytes = 0;
    v.root_keys = 0;
    v.root_entries = 0;
    std::uint64_t all_root_keys = 0;
    std::uint64_t leaf_keys = 0;
    for (const set_pointer& s : v.sets) {
      v.set_memory += s->memory();
      v.data_bytes += s->value_bytes() + s->described().pages * context_.page_bytes;
      v.root_keys = std::max(v.root_keys, s->described().pages * context_.page_bytes);
      v.root_entries = std::max(v.root_entries, s->described().entries);
      all_root_keys += s->described().pages * context_.page_bytes;
    }
    for (const auto& l : v.leaves) {
      std::uint64_t keys = 0;
      v.data_bytes += l->bytes();
      for (const set_pointer& s : l->sets) {
        v.set_memory += s->memory();
        keys += s->described().pages * context_.page_bytes;
      }
      leaf_keys = std::max(leaf_keys, keys);
    }
    v.spare_to_compact = {};
    v.spare_to_compact[index_of(place_.leaf_keys)] += static_cast<std::uint32_t>(segments_for(leaf_keys));
    v.spare_to_compact[index_of(place_.leaf_values)] += 1;
    // One leaf may get all keys of the root.
    v.kept_to_merge = static_cast<std::uint32_t>(segments_for(leaf_keys + all_root_keys)) + 1;
    v.kept_to_spill = kept_to_spill(v, v.leaves.size());
    v.spare = v.spare_to_compact;
    v.spare[index_of(place_.leaf_keys)] += v.kept_to_spill;
  }

  // ---- ageing, under ageing_mutex_

  [[nodiscard]] static std::optional<version_name> end_of(const view& v, std::size_t leaf_number) {
    if (leaf_number + 1 == v.leaves.size()) return std::nullopt;
    return v.leaves[leaf_number + 1]->begin();
  }
  // Neither a lack of room for the compaction nor a damaged value keeps the root from being spilled. Throws
  // tiered_full; pmlab::error: a damaged page or value, the drive failed.
  bool compact_or_spill(std::size_t leaf, bool spills, const view& v) {
    try {
      return compact(leaf);
    } catch (const error&) {
      if (!spills) throw;
      return spill_locked(v.sets.size(), false);
    }
  }
  [[nodiscard]] bool spill_is_due(const view& v) const {
    if (v.sets.size() > options_.most_sets) return true;
    // The staging drive has little room: its log is better spilled early than continued on the capacity drive.
    const std::size_t c = index_of(media_class::staging);
    return !v.sets.empty() && place_.leaf_values != place_.log && segments_.free()[c] < segments_.counts()[c] / 8;
  }
  // Leaves are no more than the manifest has room for: then they become larger. A spill may need a page for each leaf,
  // so a store that lacks the segments for more leaves keeps those that it has, unless the merge of these needs as
  // many.
  [[nodiscard]] bool may_split(const view& v) const {
    const std::uint64_t pages = v.data_bytes / options_.leaf_bytes;
    return manifest_.has_room_for_leaves() &&
           free_segments() + v.kept_to_merge >= kept_by(v, true).all + segments_for(pages * context_.page_bytes);
  }
  [[nodiscard]] bool has_too_many_sets(const leaf<Device>& l) const { return l.sets.size() > options_.most_leaf_sets; }
  [[nodiscard]] bool is_due(const leaf<Device>& l, bool splits) const {
    if (has_too_many_sets(l)) return true;
    if (l.sets.size() < 2) return false;
    return (splits && l.bytes() >= 2 * options_.leaf_bytes) || 3 * l.covered() >= l.value_bytes();
  }
  // To merge it again would change nothing.
  [[nodiscard]] bool is_compact(const leaf<Device>& l) const {
    return l.sets.empty() || (l.garbage_percent <= thorough_percent && is_merged(l));
  }
  // It has all of its keys once.
  [[nodiscard]] bool is_merged(const leaf<Device>& l) const {
    if (l.sets.empty()) return true;
    if (l.sets.size() > 1) return false;
    const set_description& only = l.sets.front()->described();
    return only.loose == 0 || l.merged_at >= only.last || l.merged_at == moments_.horizon();
  }
  // The bytes that sets refer to in each segment of values of leaves.
  [[nodiscard]] static std::map<std::uint32_t, std::uint64_t> live_bytes(const view& v) {
    std::map<std::uint32_t, std::uint64_t> all;
    for (const auto& l : v.leaves)
      for (const set_pointer& s : l->sets)
        for (const segment_share& share : s->described().value_segments) all[share.segment] += share.bytes;
    return all;
  }
  [[nodiscard]] leaf_rewriter<Device> make_rewriter(const view& v, const kept_segments& keys_keep,
                                                    const kept_segments& values_keep, std::uint32_t garbage_percent,
                                                    std::uint32_t remembered,
                                                    std::optional<std::set<std::uint32_t>> only = std::nullopt) {
    rewrite_rules rules;
    rules.place = place_;
    rules.horizon = moments_.horizon();
    rules.leaf_bytes = may_split(v) ? options_.leaf_bytes : ~std::uint64_t{0} / 2;
    rules.keys_keep = keys_keep;
    rules.values_keep = values_keep;
    rules.only = std::move(only);
    rules.garbage_percent = garbage_percent;
    rules.remembered_percent = remembered;
    rules.live_bytes = live_bytes(v);
    rules.next_id = [this] { return next_id(); };
    return leaf_rewriter<Device>(context_, on_, std::move(rules));
  }

  // ---- what rewriting frees

  // Parts of a segment, in 1024ths.
  static constexpr std::uint64_t whole = 1024;
  // That these values need in other segments, at most, where values like the largest leave a rest at the end of each.
  [[nodiscard]] std::uint64_t parts_for(std::uint64_t bytes, const value_shape& shape) const noexcept {
    if (shape.count == 0) return 0;
    const std::uint64_t segment = on_.where.segment_bytes;
    const std::uint64_t by_count = (shape.count * whole + segment / shape.largest - 1) / (segment / shape.largest);
    const std::uint64_t by_bytes = bytes * whole / (segment - shape.largest + 1) + 1;
    return std::min(by_count, by_bytes);
  }
  // Whether the values of these sets have room where values of leaves are, beside all that is kept.
  [[nodiscard]] bool has_room_for_values(const view& v, std::span<const set_pointer> sets) const {
    std::uint64_t parts = 0;
    std::uint64_t pages = v.leaves.size();
    for (const set_pointer& s : sets) {
      pages += s->described().pages;
      for (const segment_share& share : s->described().value_segments)
        parts += parts_for(share.bytes, s->shapes().at(share.segment));
    }
    const std::uint64_t need = parts / whole + 1;
    const std::size_t c = index_of(place_.leaf_values);
    return need + segments_for(pages * context_.page_bytes) + kept_by(v, false).all <= free_segments() &&
           need + v.spare_to_compact[c] <= segments_.free()[c];
  }

  // What the leaves have in a segment.
  struct segment_use {
    std::uint64_t bytes = 0;
    std::uint64_t key_pages = 0;
    value_shape shape{};
    std::uint32_t references = 0;
    std::vector<std::size_t> leaves{};
  };
  // Values that move, and the leaves whose keys are rewritten.
  struct collecting {
    std::set<std::uint32_t> from{};
    std::vector<bool> leaves{};
    std::int64_t gain = 0;  // segments
  };
  // The segments with the most garbage, whose live values have room in so many others, or in less. A segment that
  // others than the leaves refer to (the log, the root, readers of an older view) would not be free, and stays.
  [[nodiscard]] collecting plan_of(const view& v, std::uint32_t room) const {
    std::map<std::uint32_t, segment_use> uses;
    std::vector<std::uint64_t> pages(v.leaves.size());
    const std::uint64_t per_segment = context_.pages_per_segment();
    for (std::size_t i = 0; i < v.leaves.size(); ++i)
      for (const set_pointer& s : v.leaves[i]->sets) {
        const set_description& d = s->described();
        pages[i] += d.pages;
        const auto use = [&](std::uint32_t segment) -> segment_use& {
          segment_use& u = uses[segment];
          ++u.references;
          if (u.leaves.empty() || u.leaves.back() != i) u.leaves.push_back(i);
          return u;
        };
        for (const std::uint32_t segment : d.key_segments) use(segment).key_pages = 1;
        for (const segment_share& share : d.value_segments) {
          segment_use& u = use(share.segment);
          u.bytes += share.bytes;
          u.shape.add(s->shapes().at(share.segment));
        }
      }
    const auto references = segments_.references();
    std::vector<std::pair<std::uint64_t, std::uint32_t>> poor;  // parts that stay, segment
    for (auto at = uses.begin(); at != uses.end();) {
      const auto& [segment, use] = *at;
      if (references[index_of(class_of(segment))][segment & ~capacity_bit] != use.references) {
        at = uses.erase(at);
        continue;
      }
      const std::uint64_t parts = parts_for(use.bytes, use.shape);
      if (use.key_pages == 0 && parts <= whole - whole / 16) poor.emplace_back(parts, segment);
      ++at;
    }
    std::sort(poor.begin(), poor.end());
    const auto gain_of = [&](const collecting& c, std::uint64_t parts) {
      std::int64_t freed = static_cast<std::int64_t>(c.from.size());
      for (const auto& [segment, use] : uses)
        if (use.key_pages != 0 &&
            std::all_of(use.leaves.begin(), use.leaves.end(), [&](auto i) { return c.leaves[i]; }))
          ++freed;
      std::uint64_t keys = 0;
      for (std::size_t i = 0; i < pages.size(); ++i) keys += c.leaves[i] ? pages[i] : 0;
      return freed - static_cast<std::int64_t>((parts + whole - 1) / whole + (keys + per_segment - 1) / per_segment);
    };
    collecting some;
    some.leaves.resize(v.leaves.size());
    std::uint64_t parts = 0;
    for (const auto& [more, segment] : poor) {
      if (parts + more > std::uint64_t{room} * whole) break;
      parts += more;
      some.from.insert(segment);
      for (const std::size_t i : uses.at(segment).leaves) some.leaves[i] = true;
    }
    some.gain = gain_of(some, parts);
    collecting all = some;
    all.leaves.assign(v.leaves.size(), true);
    all.gain = gain_of(all, parts);
    return all.gain > some.gain ? all : some;
  }
  // Moves the values of the worst segments together. False: it would free nothing.
  bool collect() {
    const class_counts before = segments_.free();
    std::shared_ptr<const view> v = pinned();
    const kept_segments keep = kept_by(*v, true);
    const std::uint64_t free = std::uint64_t{before[0]} + before[1];
    const collecting plan = plan_of(*v, static_cast<std::uint32_t>(free > keep.all ? free - keep.all : 0));
    if (plan.gain <= 0) return false;
    {
      // The plan has room for the values; the keys are in what is kept for a merge.
      const kept_segments values_keep{{}, keep.all - v->kept_to_merge, true};
      leaf_rewriter<Device> rewriter = make_rewriter(*v, {}, values_keep, 100, 100, plan.from);
      v.reset();
      std::size_t at = 0;
      for (const bool is_one : plan.leaves) at += is_one ? rewrite_leaf(rewriter, at) : 1;
    }
    const class_counts after = segments_.free();
    return std::uint64_t{after[0]} + after[1] > free;
  }
  // What the rewriting of leaves, one after the other, does to segments of keys: those that it takes before it frees
  // others, and those that are free in the end.
  struct merging {
    std::int64_t most_taken = 0;
    std::int64_t gain = 0;
  };
  // `are_merged`: which leaves. A segment is free when the last leaf that has keys there is rewritten.
  [[nodiscard]] merging merging_of(const view& v, const std::vector<bool>& are_merged) const {
    std::map<std::uint32_t, std::uint32_t> uses;
    const auto for_each_use = [&](std::size_t leaf_number, auto&& function) {
      for (const set_pointer& s : v.leaves[leaf_number]->sets)
        for (const std::uint32_t segment : s->described().key_segments) function(uses[segment]);
    };
    for (std::size_t i = 0; i < v.leaves.size(); ++i) for_each_use(i, [](std::uint32_t& n) { ++n; });
    merging all;
    std::uint64_t pages = 0;
    std::int64_t freed = 0;
    std::int64_t taken = 0;
    for (std::size_t i = 0; i < v.leaves.size(); ++i) {
      if (!are_merged[i]) continue;
      for (const set_pointer& s : v.leaves[i]->sets) pages += s->described().pages;
      taken = static_cast<std::int64_t>((pages + context_.pages_per_segment() - 1) / context_.pages_per_segment());
      all.most_taken = std::max(all.most_taken, taken - freed);
      for_each_use(i, [&](std::uint32_t& n) { freed += --n == 0 ? 1 : 0; });
    }
    all.gain = freed - taken;
    return all;
  }
  // Leaves with several sets, or with entries that may go, become one set each; values stay. False: there are none.
  //
  // Leaves share segments of keys. Those few that are to be merged may free none of them, and take as many as they
  // need: then all leaves are rewritten.
  bool merge_leaves() {
    std::shared_ptr<const view> v = pinned();
    std::vector<bool> are_merged(v->leaves.size());
    std::transform(v->leaves.begin(), v->leaves.end(), are_merged.begin(),
                   [&](const auto& l) { return !is_merged(*l); });
    if (std::find(are_merged.begin(), are_merged.end(), true) == are_merged.end()) return false;
    const merging some = merging_of(*v, are_merged);
    const std::vector<bool> each(v->leaves.size(), true);
    if (some.gain < 0 || some.most_taken > static_cast<std::int64_t>(free_segments()))
      if (merging_of(*v, each).most_taken <= some.most_taken) are_merged = each;
    leaf_rewriter<Device> rewriter = make_rewriter(*v, {}, {}, 100, 100, std::set<std::uint32_t>());
    v.reset();  // what it refers to is to be free
    std::size_t at = 0;
    for (const bool is_one : are_merged) at += is_one ? rewrite_leaf(rewriter, at) : 1;
    return true;
  }

  // (S1) < (S2): keys and values of the new sets are durable before the manifest names them. The sets that they replace
  // are dropped behind (S2), so the segments of these are free when that manifest is durable.
  //
  // Values are copied as a whole: a part of them would leave the segments of the others half empty.
  bool spill_locked(std::size_t most, bool urgent) {
    const std::shared_ptr<const view> v = pinned();
    const auto oldest_of = [&](std::size_t n) {
      return std::span<const set_pointer>(v->sets.data() + (v->sets.size() - n), n);
    };
    std::size_t count = std::min(most, v->sets.size());
    if (count == 0) return false;
    bool copies = !urgent;
    if (copies) {
      std::size_t fitting = count;
      while (fitting > 0 && !has_room_for_values(*v, oldest_of(fitting))) --fitting;
      copies = fitting > 0;
      if (copies) count = fitting;
    }
    const std::span<const set_pointer> oldest = oldest_of(count);
    kept_segments keys_keep;
    if (!urgent) keys_keep = {v->spare_to_compact, v->kept_to_merge, true};
    kept_segments values_keep{v->spare_to_compact, kept_by(*v, true).all, false};
    leaf_rewriter<Device> rewriter = make_rewriter(*v, keys_keep, values_keep, 100, 100,
                                                   copies ? std::nullopt : std::optional(std::set<std::uint32_t>()));
    leaf_list<Device> leaves;
    merged_sets<Device> versions(oldest, true, v->leaves.front()->begin());
    for (std::size_t i = 0; i < v->leaves.size(); ++i)
      rewriter.spill(*v->leaves[i], end_of(*v, i), oldest, versions, leaves);
    rewriter.make_durable();
    const std::scoped_lock lock(mutex_);
    install(rewriter.made(), [&](view& changed) {  // (S2)
      changed.sets.resize(changed.sets.size() - count);
      changed.leaves = leaves;
    });
    splits_.fetch_add(leaves.size() - v->leaves.size(), std::memory_order_relaxed);
    spilled_.fetch_add(rewriter.copied(), std::memory_order_relaxed);
    spills_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  // A value without room stays. Nothing of what erasures need is taken for keys: leaves share segments of keys, so that
  // the merge of one may free none. Where there is no other room, merge_leaves() merges many. Throws tiered_full.
  bool compact(std::size_t leaf_number) {
    const std::shared_ptr<const view> v = pinned();
    const kept_segments keep{v->spare_to_compact, kept_by(*v, false).all, false};
    const kept_segments keys_keep{{}, kept_by(*v, true).all, true};
    leaf_rewriter<Device> rewriter =
        make_rewriter(*v, keys_keep, keep, options_.garbage_percent, options_.garbage_percent);
    rewrite_leaf(rewriter, leaf_number);
    return true;
  }
  // Merges the sets of a leaf in a transaction of its own. Returns the number of leaves that are in its place.
  std::size_t rewrite_leaf(leaf_rewriter<Device>& rewriter, std::size_t leaf_number) {
    const std::shared_ptr<const view> v = pinned();
    rewriter.go_on(live_bytes(*v));
    leaf_list<Device> pieces;
    rewriter.merge(*v->leaves[leaf_number], end_of(*v, leaf_number), pieces);
    // The range of a leaf without keys goes to the leaf before it.
    if (leaf_number > 0 && pieces.size() == 1 && pieces.front()->sets.empty()) pieces.clear();
    rewriter.make_durable();
    const std::scoped_lock lock(mutex_);
    install(rewriter.made(), [&](view& changed) {  // (S2)
      const auto at = changed.leaves.begin() + static_cast<std::ptrdiff_t>(leaf_number);
      changed.leaves.insert(changed.leaves.erase(at), pieces.begin(), pieces.end());
    });
    if (pieces.size() > 1) splits_.fetch_add(pieces.size() - 1, std::memory_order_relaxed);
    compacted_.fetch_add(rewriter.copied(), std::memory_order_relaxed);
    compactions_.fetch_add(1, std::memory_order_relaxed);
    rewriter.go_on({});  // the sets that it made are those of the view
    return pieces.size();
  }

  void check_set(const key_set<Device>& one, const version_name& begin, const std::optional<version_name>& end,
                 indexes::check_report& report) const {
    std::optional<found_version> before;
    std::uint64_t entries = 0;
    std::map<std::uint32_t, std::uint32_t> shares;
    for (std::uint32_t p = 0; p < one.described().pages; ++p) {
      try {
        const std::shared_ptr<const page> keys = one.read(p).front();
        for (std::size_t i = 0; i < keys->count(); ++i) {
          const found_version v = keys->at(i);
          if (before && !(before->name() < v.name()))
            report.add("a set is not in order at sequence " + std::to_string(v.sequence));
          if (v.name() < begin || (end && !(v.name() < *end))) report.add("a key is outside the range of its leaf");
          if (!one.may_have(hash_of(v.table, v.key))) report.add("a filter lacks a key of its set");
          if (v.sequence > one.described().last) report.add("a set has a version newer than itself");
          if (v.kind == change_kind::put) static_cast<void>(read_value(context_, v));
          if (v.has_value()) shares[v.place.segment] += v.value_bytes;
          before = v;
          ++entries;
        }
      } catch (const error& e) {
        report.add(e.what());
      }
    }
    report.entries += entries;
    if (entries != one.described().entries) report.add("a set has another number of entries than the manifest says");
    std::vector<segment_share> counted;
    for (const auto& [segment, bytes] : shares) counted.push_back({segment, bytes});
    if (counted != one.described().value_segments) report.add("a set has other values than the manifest says");
  }

  tiered_options options_;
  drive_pair<Device> on_;
  placement_table place_;
  typename Memory::index* memory_;
  const moments& moments_;
  blocks::synchronous<Device> manifest_drive_;  // under mutex_, as io_
  segment_io<Device> io_;
  segment_map segments_;
  reader_pool<Device, segment_io<Device>> readers_;
  reader_pool<Device, value_reader<Device>> value_readers_;
  read_cache cache_;
  set_context<Device> context_;
  tiered::log<Device> log_;
  tiered::manifest<Device> manifest_;
  epoch_keeper<Device> epochs_;  // under mutex_
  findings found_;               // findings of opening
  std::atomic<std::uint64_t> next_id_{1};

  mutable std::mutex ageing_mutex_;      // one spill or compaction at a time; before mutex_
  class_counts stuck_at_ = never_stuck;  // free segments when ageing found no room

  mutable std::mutex mutex_;  // one ingest, new table or commit at a time
  std::vector<std::string> tables_;
  std::uint64_t ingested_ = 0;
  log_anchor replay_{};
  manifest_epoch epoch_{};  // epoch of the last manifest
  std::vector<set_pointer> doubtful_;

  std::atomic<std::uint64_t> ingests_{0};
  std::atomic<std::uint64_t> spills_{0};
  std::atomic<std::uint64_t> compactions_{0};
  std::atomic<std::uint64_t> splits_{0};
  std::atomic<std::uint64_t> spilled_{0};
  std::atomic<std::uint64_t> compacted_{0};

  mutable std::mutex view_mutex_;  // the last one to take
  std::shared_ptr<const view> view_;
};

}  // namespace pmlab::stores::detail::tiered
