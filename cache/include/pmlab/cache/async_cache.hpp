// The asynchronous cache: a small hash table in DRAM in front of a persistent index [ASYNCCACHE].
//
//   using cached = cache::async_cache<indexes::fast_fair<media::pmem>>;
//   auto index = cached::open(pool, "orders", {.size = cache::capacity::share(0.1)});
//
// Use it if reads of some keys are much more frequent than others, and a search in the index costs much more than an
// access to DRAM. Do not use it in front of an index that is in DRAM, nor for evenly spread reads (or use mode
// adaptive).
//
// It is an index itself, ordered if the inner one is: the inner index's guarantees of durability and order hold through
// the cache, which returns from DRAM only results that the index would return.
//
// Reads that miss are answered by the index, and the result is queued; background threads put it into the cache. A full
// queue drops it, and no reader ever waits for a filler. (Or, as an option, each reader inserts its own result, if no
// other fill holds the set.) Updates and deletes change both, the index first: only values that it has made durable are
// served. Inserts do not touch the cache. Scans and walks use the index.
//
// Thread safety: any operation from any number of threads (`check`, `stats`: no concurrent writer; `close`: no other
// call of close). Progress: the cache's part of a find is wait-free (a caller waits for its helper, but only when it
// would search itself; lock-free if callers fill); update, upsert and erase also wait for a fill that is being
// installed in the key's set, a few stores long. No lock is held while the index is called.
//
// Difference from the paper: sets of seven entries in two cache lines instead of a chained table under one LRU list, so
// that readers take no lock and an entry costs 18 bytes; a fill is validated against writes since its read, so that it
// cannot restore an old value or a deleted key; modes interleaved and adaptive; S3-FIFO by default, since it hits more
// of zipfian reads than LRU and its hits write less.
//
// Invariants:
//   K1  An entry that a reader can hit equals the entry that the index holds durably. (V1 of detail/set_store.hpp;
//       V2-V6 there maintain it, S1-S2 of detail/set.hpp define which reads are valid.)
//   K2  A reader reads the set's gate before the index is searched for the value that it queues.
//   K3  An update, upsert or erase hides the entry before the index is called, and shows a value only after the index
//       has returned that it holds it: no value is served that a crash can undo.
//   K4  No value is queued for a key that the index did not hold.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/thread_blocks.hpp>
#include <pmlab/cache/detail/fillers.hpp>
#include <pmlab/cache/detail/set_store.hpp>
#include <pmlab/cache/eviction/eviction.hpp>
#include <pmlab/cache/eviction/s3_fifo.hpp>
#include <pmlab/cache/lookup/adaptive.hpp>
#include <pmlab/cache/lookup/parallel.hpp>
#include <pmlab/cache/options.hpp>
#include <pmlab/cache/statistics.hpp>
#include <pmlab/indexes/detail/batches.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::cache {

using indexes::key_type;
using indexes::outcome;
using indexes::value_type;

// Half of an ordered index is enough to scan.
template <class Index>
concept scans = requires(Index& index, key_type key, std::span<indexes::entry> out) {
  index.scan(key, out);
};

// The cache and the index behind it, as one index. `Eviction`: lru, clock, s3_fifo, or chosen_eviction for a choice at
// run time. A find that hits takes O(1); everything else costs as much as the index.
template <indexes::point_index Index, eviction_policy Eviction = s3_fifo>
class async_cache {
 public:
  // The medium holds the index only, which can be opened without a cache.
  static constexpr std::string_view layout_name = Index::layout_name;
  static constexpr std::uint64_t layout_version = Index::layout_version;

  // Opens the index `name` in `medium`, or creates it, and puts an empty cache in front. Throws the exceptions of
  // Index::open; pmlab::error if the threads that the options request cannot be started. `medium` must outlive the
  // cache.
  template <class Medium>
  static async_cache open(Medium& medium, std::string_view name = layout_name, const options& o = {}) {
    return async_cache(medium, name, o);
  }

  async_cache(const async_cache&) = delete;
  async_cache& operator=(const async_cache&) = delete;
  ~async_cache() = default;

  // ---- operations: outcomes and durability are the index's ----

  outcome insert(key_type key, value_type value) { return index_.insert(key, value); }

  outcome update(key_type key, value_type value) {
    prefetch_to_write(key);
    write w(store_, key);  // K3
    const outcome result = index_.update(key, value);
    if (result == outcome::updated) w.end(value);  // K3
    return result;
  }

  outcome upsert(key_type key, value_type value) {
    prefetch_to_write(key);
    write w(store_, key);  // K3
    const outcome result = index_.upsert(key, value);
    if (result == outcome::updated || result == outcome::inserted) w.end(value);  // K3
    return result;
  }

  outcome erase(key_type key) {
    prefetch_to_write(key);
    const write w(store_, key);  // K3
    return index_.erase(key);
  }

  std::optional<value_type> find(key_type key) {
    const mode how = mode_.load(std::memory_order_relaxed);
    if (how == mode::bypass) return index_.find(key);
    const std::uint64_t number = store_.number_of(key);
    if (how == mode::adaptive) return chooser_.bypasses_all(number) ? index_.find(key) : find_as_chosen(number, key);
    bool hit = false;
    return find_in(how, this_lane(), number, key, hit);
  }

  // values[i] := find(keys[i]). The cache misses of the lookups in the cache overlap, and so do the searches in the
  // index.
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    indexes::detail::in_batches<batch_width>(keys, values,
                                             [this](const auto some, const auto found) { find_some(some, found); });
  }

  // Scans and walks are those of the index; the cache has no part in them.
  std::size_t scan(key_type from, std::span<indexes::entry> out) requires scans<Index> {
    return index_.scan(from, out);
  }
  template <class Function>
  void for_each_in(key_type first, key_type last, Function&& function) requires indexes::ordered_index<Index> {
    index_.for_each_in(first, last, std::forward<Function>(function));
  }
  template <class Function>
  void for_each(Function&& function) const {
    index_.for_each(std::forward<Function>(function));
  }
  [[nodiscard]] std::uint64_t size() const { return index_.size(); }

  // The index's, and the cache's bytes with its bytes of DRAM.
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats shape = index_.stats();
    shape.dram_bytes += bytes();
    return shape;
  }

  // Checks the index's invariants, the cache's, and that every entry equals the index's (K1). Waits for fills first.
  [[nodiscard]] indexes::check_report check() const {
    settle();
    indexes::check_report report = index_.check();
    store_.check(
        [&](key_type key, value_type value) {
          const std::optional<value_type> held = index_.find(key);
          if (held != value)
            report.add("the cache has value " + std::to_string(value) + " for key " + std::to_string(key) +
                       ", and the index " + (held ? std::to_string(*held) : std::string("does not hold it")));
        },
        [&](const std::string& what) { report.add(what); });
    return report;
  }

  // ---- the cache itself ----

  // May be called during lookups: each lookup is made in one mode or the other.
  void set_mode(mode how) noexcept { mode_.store(how, std::memory_order_relaxed); }
  // The mode of lookups of `key` now; in mode adaptive, the chosen one.
  [[nodiscard]] mode mode_of(key_type key) const noexcept {
    const mode how = mode_.load(std::memory_order_relaxed);
    return how == mode::adaptive ? chooser_.current(store_.number_of(key)) : how;
  }

  // Installs up to `most` fills that wait, on the calling thread. Returns how many it took from the queues.
  std::uint64_t run_fills(std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) { return fillers_.run(most); }
  // Waits until every fill that was queued before has been judged.
  void settle() const { fillers_.settle(); }
  // Ends the background threads; queued fills are dropped. The cache remains usable, and nothing new is cached.
  void close() {
    fillers_.close();
    helpers_.close();
  }

  // Counts since `open`. Exact when nothing runs.
  [[nodiscard]] statistics cache_statistics() const {
    statistics s;
    lanes_.for_each([&](const lane& l) {
      s.drops += l.drops.load(std::memory_order_relaxed);
      s.helped += l.helped.load(std::memory_order_relaxed);
      const std::uint64_t misses = l.misses.load(std::memory_order_relaxed);
      s.misses += misses;
      std::uint64_t in_cache = 0;
      for (std::size_t m = 0; m < s.lookups.size(); ++m) {
        const std::uint64_t lookups = l.lookups[m].load(std::memory_order_relaxed);
        s.lookups[m] += lookups;
        if (static_cast<mode>(m) != mode::bypass) in_cache += lookups;
      }
      s.hits += in_cache - std::min(in_cache, misses);
      const auto own = [&](detail::fill_result r) {
        return l.own_fills[static_cast<std::size_t>(r)].load(std::memory_order_relaxed);
      };
      s.fills += own(detail::fill_result::installed) + own(detail::fill_result::evicted_another);
      s.evictions += own(detail::fill_result::evicted_another);
      s.stale += own(detail::fill_result::stale);
    });
    const detail::fill_counts fills = fillers_.counts();
    s.fills += fills.installed;
    s.evictions += fills.evictions;
    s.stale += fills.stale;
    s.drops += fills.dropped_at_close;
    s.switches = chooser_.switches();
    s.capacity = store_.capacity();
    s.bytes = bytes();
    return s;
  }

 protected:
  // A constructor for classes that fix the options.
  template <class Medium>
  async_cache(Medium& medium, std::string_view name, const options& o)
      : index_(Index::open(medium, name)),
        mode_(o.lookup),
        prefetches_(can_prefetch()),
        callers_fill_(o.fill_by == filling::caller),
        store_(entries_for(o), make_eviction(o)),
        chooser_(o, prefetches_, o.helpers != 0),
        fillers_(store_, o, [&medium] { media::begin_operation(medium); }),
        helpers_(o, [this, &medium](key_type key) {
          // The medium may charge the search's reads only when the operation ends.
          media::begin_operation(medium);
          const std::optional<value_type> value = index_.find(key);
          media::end_operation(medium);
          return value;
        }) {}

 private:
  using store = detail::set_store<Eviction>;
  using write = typename store::write;
  using entrance = typename detail::fillers<store>::entrance;

  static constexpr std::size_t batch_width = 64;

  // State of one thread.
  struct alignas(64) lane {
    lane(std::size_t its_number, entrance of_its_fills) : number(its_number), fills(of_its_fills) {}
    std::size_t number;
    entrance fills;
    std::atomic<std::uint64_t> ticks{0};  // lookups that passed through the chooser
    std::atomic<std::uint64_t> misses{0};
    std::atomic<std::uint64_t> drops{0};
    std::atomic<std::uint64_t> helped{0};
    std::array<std::atomic<std::uint64_t>, mode_names.size()> lookups{};       // by mode
    std::array<std::atomic<std::uint64_t>, detail::fill_results> own_fills{};  // by their results
  };

  [[nodiscard]] std::uint64_t entries_for(const options& o) const {
    const bool of_index = o.size.in == capacity::unit::share;
    return o.size.in_entries(of_index ? std::max(o.expected_entries, index_.size()) : 0);
  }
  [[nodiscard]] static Eviction make_eviction([[maybe_unused]] const options& o) {
    if constexpr (std::constructible_from<Eviction, eviction>)
      return Eviction(o.evict);
    else
      return Eviction();
  }

  // An index may offer to prefetch the first line of a search for a key.
  static constexpr bool has_prefetch = requires(Index & index, key_type key) { index.prefetch_find(key); };
  // An index behind virtual calls knows only at run time.
  [[nodiscard]] bool can_prefetch() const noexcept {
    if constexpr (requires { index_.offers_prefetch(); })
      return index_.offers_prefetch();
    else
      return has_prefetch;
  }

  // One thread counts. Returns the new count.
  static std::uint64_t count(std::atomic<std::uint64_t>& counter) noexcept {
    const std::uint64_t counted = counter.load(std::memory_order_relaxed) + 1;
    counter.store(counted, std::memory_order_relaxed);
    return counted;
  }

  lane& this_lane() {
    return lanes_.local(
        [this](std::size_t number) { return std::make_unique<lane>(number, fillers_.entrance_of(number)); });
  }

  // A writer must wait for the line of its set before it may call the index: the index's first lines are prefetched,
  // too.
  void prefetch_to_write(key_type key) {
    store_.prefetch_to_write(key);
    if constexpr (has_prefetch)
      if (prefetches_) index_.prefetch_find(key);
  }

  // Mode adaptive, and not round the cache.
  std::optional<value_type> find_as_chosen(std::uint64_t number, key_type key) {
    lane& mine = this_lane();
    const chooser::plan plan = chooser_.next(number, static_cast<std::uint32_t>(count(mine.ticks)));
    bool hit = false;
    if (!plan.timed) return find_in(plan.how, mine, number, key, hit);
    const std::uint64_t start = chooser_.now();
    const std::optional<value_type> value = find_in(plan.how, mine, number, key, hit);
    const std::uint64_t end = chooser_.now();
    // A user's clock may have jumped back: such a lookup is no sample.
    if (end >= start) chooser_.record(number, plan.how, hit, end - start);
    return value;
  }

  // `how` is not adaptive; `number`: of the key's set.
  std::optional<value_type> find_in(mode how, lane& mine, std::uint64_t number, key_type key, bool& hit) {
    count(mine.lookups[static_cast<std::size_t>(how)]);
    if (how == mode::bypass) return index_.find(key);
    if (how == mode::parallel) return find_in_parallel(mine, number, key, hit);
    if constexpr (has_prefetch)
      if (how == mode::interleaved) index_.prefetch_find(key);
    const detail::look seen = store_.find(number, key);  // K2
    hit = seen.hit;
    if (hit) return seen.value;
    return find_in_index(mine, key, seen);
  }

  // Kept out of line: a hit does not need it, so its path is short.
  [[gnu::noinline]] std::optional<value_type> find_in_index(lane& mine, key_type key, const detail::look& seen) {
    count(mine.misses);
    const std::optional<value_type> value = index_.find(key);
    offer(mine, key, seen, value);
    return value;
  }

  std::optional<value_type> find_in_parallel(lane& mine, std::uint64_t number, key_type key, bool& hit) {
    // K2: the gate is read before the helper is asked; the caller searches the cache while the helper searches the
    // index.
    const std::optional<std::uint64_t> gate = store_.gate(number);
    const helpers::question asked = helpers_.ask(mine.number, key);
    detail::look seen = store_.find(number, key);
    hit = seen.hit;
    if (hit) return seen.value;
    count(mine.misses);
    std::optional<value_type> value;
    if (asked.is_asked() && asked.wait(value)) {
      count(mine.helped);
      seen.gate = gate;
    } else {
      value = index_.find(key);
    }
    offer(mine, key, seen, value);
    return value;
  }

  // Queues the index's result, or installs it at once.
  void offer(lane& mine, key_type key, const detail::look& seen, const std::optional<value_type>& value) noexcept {
    if (!value || !seen.gate) return;  // K4
    if (callers_fill_) {
      if (fillers_.is_closed())
        count(mine.drops);
      else
        count(mine.own_fills[static_cast<std::size_t>(store_.try_fill(key, *value, *seen.gate))]);
      return;
    }
    if (!fillers_.offer(mine.fills, {key, *value, *seen.gate})) count(mine.drops);
  }

  void find_some(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    std::array<std::uint64_t, batch_width> numbers;
    std::array<key_type, batch_width> missing;
    std::array<std::size_t, batch_width> places;
    std::array<detail::look, batch_width> looks;
    std::array<std::optional<value_type>, batch_width> found;
    std::size_t misses = 0;
    lane& mine = this_lane();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      numbers[i] = store_.number_of(keys[i]);
      store_.prefetch(numbers[i]);
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      mode how = mode_.load(std::memory_order_relaxed);
      if (how == mode::adaptive) how = chooser_.current(numbers[i]);
      count(mine.lookups[static_cast<std::size_t>(how)]);
      detail::look seen;
      if (how != mode::bypass) seen = store_.find(numbers[i], keys[i]);  // K2
      if (seen.hit) {
        values[i] = seen.value;
        continue;
      }
      if (how != mode::bypass) count(mine.misses);
      missing[misses] = keys[i];
      places[misses] = i;
      looks[misses++] = seen;
    }
    index_.find_batch(std::span(missing).first(misses), std::span(found).first(misses));
    for (std::size_t m = 0; m < misses; ++m) {
      const std::size_t i = places[m];
      values[i] = found[m];
      offer(mine, keys[i], looks[m], found[m]);
    }
  }

  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t lanes = 0;
    lanes_.for_each([&](const lane&) { lanes += sizeof(lane); });
    return store_.bytes() + fillers_.bytes() + helpers_.bytes() + chooser_.bytes() + lanes;
  }

  // Searching has no visible effect: `check` may call it.
  mutable Index index_;
  std::atomic<mode> mode_;
  bool prefetches_;
  bool callers_fill_;
  store store_;
  chooser chooser_;
  thread_blocks<lane> lanes_;
  // Their threads use all of the above. Waiting for them has no visible effect: `check` may call it.
  mutable detail::fillers<store> fillers_;
  helpers helpers_;
};

}  // namespace pmlab::cache
