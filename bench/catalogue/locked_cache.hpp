// The cache of [ASYNCCACHE] as far as the paper describes it: a chained hash table in DRAM under one LRU list. It is
// for comparison with cache/async_cache.hpp, whose updates cost less than the paper's.
//
// Where the paper leaves something open it is plain: one lock for table and list. A find that misses asks the index
// without it, and its result is installed in the background. An update holds it until both copies have changed.
//
// Thread safety: as of async_cache. Progress: each operation but an insert waits for the lock's holder, which may be in
// a call of the index.
//
// Invariant: while the lock is free, an entry equals the index's durable one. Updates and erases of the index are made
// under the lock. A fill carries the bucket's count of writes from before its search; if that has changed, the fill is
// refused.
#pragma once

#include <pmlab/cache/detail/fill.hpp>
#include <pmlab/cache/detail/fillers.hpp>
#include <pmlab/cache/detail/set_store.hpp>
#include <pmlab/cache/options.hpp>
#include <pmlab/cache/statistics.hpp>
#include <pmlab/indexes/detail/bijective_hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::bench {

// The table and its list. REQUIRES: callers hold the lock, except those of `lock`, `fill`, `capacity` and `bytes`.
class lru_table {
  using key_type = indexes::key_type;
  using value_type = indexes::value_type;

 public:
  // `entries`: so many fit in. Throws std::bad_alloc.
  explicit lru_table(std::uint64_t entries)
      : nodes_(std::max<std::uint64_t>(entries, 1)), buckets_(std::bit_ceil(nodes_.size())) {}

  // Its words are loads and stores that a simulated machine sees, which those of a mutex are not.
  [[nodiscard]] sync::version_lock& lock() const noexcept { return lock_; }

  // The value of `key`, which becomes the most recently used.
  [[nodiscard]] const value_type* find(key_type key) noexcept {
    node* const n = *link_to(key);
    if (n == nullptr) return nullptr;
    make_newest(*n);
    return &n->value;
  }

  // What a fill of `key` carries.
  [[nodiscard]] std::uint64_t writes_of(key_type key) const noexcept { return buckets_[bucket_of(key)].writes; }

  // The index is about to change `key`: fills from before are refused.
  void begin_write(key_type key) noexcept { ++buckets_[bucket_of(key)].writes; }

  // Changes the entry of `key`, if there is one, and makes it the most recently used.
  void update(key_type key, value_type value) noexcept {
    node* const n = *link_to(key);
    if (n == nullptr) return;
    n->value = value;
    make_newest(*n);
  }

  // Removes the entry of `key`, if there is one.
  void remove(key_type key) noexcept {
    node** const link = link_to(key);
    if (*link == nullptr) return;
    node& n = **link;
    *link = n.next;
    leave_list(n);
    n.next = std::exchange(free_, &n);
    --used_;
  }

  // Installs an entry that was read when its bucket had `writes`. Takes the lock.
  cache::detail::fill_result fill(key_type key, value_type value, std::uint64_t writes) noexcept {
    using cache::detail::fill_result;
    const std::scoped_lock held(lock_);
    if (writes_of(key) != writes) return fill_result::stale;
    if (*link_to(key) != nullptr) return fill_result::was_there;
    const bool full = used_ == nodes_.size();
    if (full) remove(oldest_->key);
    node* const n = free_ != nullptr ? std::exchange(free_, free_->next) : &nodes_[fresh_++];
    node*& first = buckets_[bucket_of(key)].first;
    *n = {.key = key, .value = value, .next = std::exchange(first, n)};
    enter_list(*n);
    ++used_;
    return full ? fill_result::evicted_another : fill_result::installed;
  }

  [[nodiscard]] std::uint64_t capacity() const noexcept { return nodes_.size(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return nodes_.size() * sizeof(node) + buckets_.size() * sizeof(bucket);
  }

  // Calls function(key, value) with every entry, the most recently used first. Returns whether table and list agree.
  template <class Function>
  [[nodiscard]] bool check(Function&& function) const {
    std::uint64_t listed = 0;
    const node* newer = nullptr;
    for (const node* n = newest_; n != nullptr; newer = n, n = n->older, ++listed) {
      if (listed == used_ || n->newer != newer) return false;
      const node* in_table = buckets_[bucket_of(n->key)].first;
      while (in_table != nullptr && in_table != n) in_table = in_table->next;
      if (in_table == nullptr) return false;
      function(n->key, n->value);
    }
    return listed == used_ && oldest_ == newer;
  }

 private:
  struct node {
    key_type key = 0;
    value_type value = 0;
    node* next = nullptr;  // in its bucket, or of those that are free
    node* newer = nullptr;
    node* older = nullptr;
  };
  struct bucket {
    node* first = nullptr;
    std::uint64_t writes = 0;  // since the cache was opened
  };

  [[nodiscard]] std::size_t bucket_of(key_type key) const noexcept {
    return indexes::detail::hash_of_key(key) & (buckets_.size() - 1);
  }
  // The pointer that leads to the node of `key`, or the null pointer at the end of its chain.
  [[nodiscard]] node** link_to(key_type key) noexcept {
    node** link = &buckets_[bucket_of(key)].first;
    while (*link != nullptr && (*link)->key != key) link = &(*link)->next;
    return link;
  }

  void make_newest(node& n) noexcept {
    if (newest_ == &n) return;
    leave_list(n);
    enter_list(n);
  }
  void leave_list(node& n) noexcept {
    (n.newer != nullptr ? n.newer->older : newest_) = n.older;
    (n.older != nullptr ? n.older->newer : oldest_) = n.newer;
  }
  void enter_list(node& n) noexcept {
    n.newer = nullptr;
    n.older = std::exchange(newest_, &n);
    (n.older != nullptr ? n.older->newer : oldest_) = &n;
  }

  mutable sync::version_lock lock_;
  std::vector<node> nodes_;
  std::vector<bucket> buckets_;  // a power of two
  node* newest_ = nullptr;
  node* oldest_ = nullptr;
  node* free_ = nullptr;     // nodes that were removed
  std::uint64_t fresh_ = 0;  // nodes that were ever used
  std::uint64_t used_ = 0;
};

// The cache and the index behind it, as one index.
template <indexes::point_index Index>
class locked_cache {
  using key_type = indexes::key_type;
  using value_type = indexes::value_type;
  using outcome = indexes::outcome;

 public:
  static constexpr std::string_view layout_name = Index::layout_name;
  static constexpr std::uint64_t layout_version = Index::layout_version;

  // As async_cache opens it. The options of size and of fillers count.
  template <class Medium>
  static locked_cache open(Medium& medium, std::string_view name, const cache::options& o) {
    return locked_cache(medium, name, o);
  }
  locked_cache(const locked_cache&) = delete;
  locked_cache& operator=(const locked_cache&) = delete;
  ~locked_cache() = default;

  outcome insert(key_type key, value_type value) { return index_.insert(key, value); }
  outcome update(key_type key, value_type value) {
    return write(key, value, [&] { return index_.update(key, value); });
  }
  outcome upsert(key_type key, value_type value) {
    return write(key, value, [&] { return index_.upsert(key, value); });
  }
  outcome erase(key_type key) {
    const std::scoped_lock held(table_.lock());
    table_.begin_write(key);
    table_.remove(key);
    return index_.erase(key);
  }

  std::optional<value_type> find(key_type key) {
    std::uint64_t writes = 0;
    {
      const std::scoped_lock held(table_.lock());
      if (const value_type* const cached = table_.find(key)) {
        ++hits_;
        return *cached;
      }
      ++misses_;
      writes = table_.writes_of(key);
    }
    const std::optional<value_type> value = index_.find(key);
    if (value && !fillers_.offer(fillers_.entrance_of(0), {key, *value, writes}))
      drops_.fetch_add(1, std::memory_order_relaxed);
    return value;
  }
  void find_batch(std::span<const key_type> keys, std::span<std::optional<value_type>> values) {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find(keys[i]);
  }

  // Scans and walks are those of the index.
  std::size_t scan(key_type from, std::span<indexes::entry> out) { return index_.scan(from, out); }
  template <class Function>
  void for_each(Function&& function) const {
    index_.for_each(std::forward<Function>(function));
  }
  [[nodiscard]] std::uint64_t size() const { return index_.size(); }
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats shape = index_.stats();
    shape.dram_bytes += bytes();
    return shape;
  }

  // Checks the index, and that every entry equals the index's. Waits for fills first.
  [[nodiscard]] indexes::check_report check() const {
    settle();
    indexes::check_report report = index_.check();
    const bool agree = table_.check([&](key_type key, value_type value) {
      if (index_.find(key) != value) report.add("the cache has another value for key " + std::to_string(key));
    });
    if (!agree) report.add("the table and the list of the cache differ");
    return report;
  }

  // Installs the fills that wait, on the calling thread.
  void run_fills() { fillers_.run(~std::uint64_t{0}); }
  // Waits until every fill that was queued before has been judged.
  void settle() const { fillers_.settle(); }

  [[nodiscard]] cache::statistics cache_statistics() const {
    cache::statistics s;
    const cache::detail::fill_counts fills = fillers_.counts();
    const std::scoped_lock held(table_.lock());
    s.hits = hits_;
    s.misses = misses_;
    s.lookups[static_cast<std::size_t>(cache::mode::serial)] = hits_ + misses_;
    s.fills = fills.installed;
    s.evictions = fills.evictions;
    s.stale = fills.stale;
    s.drops = fills.dropped_at_close + drops_.load(std::memory_order_relaxed);
    s.capacity = table_.capacity();
    s.bytes = bytes();
    return s;
  }

 private:
  template <class Medium>
  locked_cache(Medium& medium, std::string_view name, const cache::options& o)
      : index_(Index::open(medium, name)),
        table_(o.size.in_entries(std::max(o.expected_entries, index_.size()))),
        fillers_(table_, o, [&medium] { media::begin_operation(medium); }) {}

  // Both copies change before it answers, the index first.
  template <class Change>
  outcome write(key_type key, value_type value, Change&& change) {
    const std::scoped_lock held(table_.lock());
    table_.begin_write(key);
    try {
      const outcome result = change();
      if (result == outcome::updated || result == outcome::inserted) table_.update(key, value);
      return result;
    } catch (...) {
      // The index may hold either value.
      table_.remove(key);
      throw;
    }
  }

  [[nodiscard]] std::uint64_t bytes() const { return table_.bytes() + fillers_.bytes(); }

  // Searching has no visible effect: `check` may call it.
  mutable Index index_;
  lru_table table_;
  std::uint64_t hits_ = 0;  // under the lock
  std::uint64_t misses_ = 0;
  std::atomic<std::uint64_t> drops_{0};
  // Their threads use all of the above. Waiting for them has no visible effect.
  mutable cache::detail::fillers<lru_table> fillers_;
};

}  // namespace pmlab::bench
