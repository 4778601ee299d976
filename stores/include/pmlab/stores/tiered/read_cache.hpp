// Pages of keys, and values, that were read: in DRAM, up to a number of bytes.
//
// The policy is S3-FIFO [S3FIFO] by bytes: what is new enters a small queue, a tenth of the whole; what is read again
// there moves to the main queue; the names of others are remembered for a while, and enter the main queue if they are
// read again. So a cursor over everything does not push out the pages that searches need.
//
// A name is never used for two things: a value is named by its sequence, a page by its number and its set's, which
// no other set ever has. So nothing in the cache becomes wrong when a segment is freed and used again.
#pragma once

#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::tiered {

// `set` 0: the value of sequence `number`.
struct cached_name {
  std::uint64_t set = 0;
  std::uint64_t number = 0;
  friend bool operator==(const cached_name&, const cached_name&) = default;
};

struct cache_figures {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
};

// Thread safety: all of it, from any thread.
class read_cache {
 public:
  // 0 bytes: there is none.
  explicit read_cache(std::size_t bytes)
      : most_(bytes),
        shards_(bytes == 0           ? 0
                : bytes < many_bytes ? 1
                                     : usual_shards) {
    for (shard& s : shards_) s.most = bytes / shards_.size();
  }
  read_cache(const read_cache&) = delete;
  read_cache& operator=(const read_cache&) = delete;

  // Null: it is not there. REQUIRES: T is the type with which it was added.
  template <class T>
  [[nodiscard]] std::shared_ptr<const T> find(const cached_name& name) {
    if (shards_.empty()) return nullptr;
    shard& s = shard_of(name);
    std::shared_ptr<const void> found;
    {
      const std::scoped_lock lock(s.mutex);
      if (const auto at = s.where.find(name); at != s.where.end()) {
        at->second->hits = std::min(at->second->hits + 1, most_hits);
        found = at->second->what;
      }
    }
    counts& c = name.set == 0 ? values_ : pages_;
    (found != nullptr ? c.hits : c.misses).fetch_add(1, std::memory_order_relaxed);
    return std::static_pointer_cast<const T>(std::move(found));
  }

  // Keeps it, if its `bytes` of memory are not too many. What must leave for it, leaves. Throws std::bad_alloc: it is
  // not kept.
  void add(const cached_name& name, std::shared_ptr<const void> what, std::size_t bytes) {
    if (shards_.empty()) return;
    bytes += overhead;
    shard& s = shard_of(name);
    if (bytes > s.most / 4) return;
    std::list<entry> gone;  // ends without the lock
    // (N1) < (N2): all memory is there before a queue, or a count, changes.
    std::list<entry> fresh;
    fresh.push_front({name, std::move(what), bytes, 0});
    const std::scoped_lock lock(s.mutex);
    if (s.where.count(name) > 0) return;
    while (s.bytes + bytes > s.most) evict(s, gone);
    s.where.emplace(name, fresh.begin());  // (N1)
    const bool was_here = s.forget(name);  // (N2)
    std::list<entry>& queue = was_here ? s.main : s.small;
    queue.splice(queue.begin(), fresh);
    s.bytes += bytes;
    if (!was_here) s.small_bytes += bytes;
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }

  // It is not nearly full: little or nothing leaves for so many bytes.
  [[nodiscard]] bool has_room_for(std::size_t bytes) const noexcept {
    return bytes_.load(std::memory_order_relaxed) + most_ / 16 + bytes + overhead <= most_;
  }

  // The bytes that it may have, and those that it has.
  [[nodiscard]] std::size_t most_bytes() const noexcept { return most_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  // Counts since it was made.
  [[nodiscard]] cache_figures of_pages() const noexcept { return pages_.now(); }
  [[nodiscard]] cache_figures of_values() const noexcept { return values_.now(); }

 private:
  static constexpr std::size_t usual_shards = 16;
  static constexpr std::size_t many_bytes = std::size_t{4} << 20;
  static constexpr std::size_t overhead =
      272;  // bytes of an entry: its places in a list, in the table, and among the names
  static constexpr int most_hits = 3;

  struct hash {
    std::size_t operator()(const cached_name& n) const noexcept {
      return mix_bits(n.set * golden_ratio ^ mix_bits(n.number));
    }
  };
  struct entry {
    cached_name name;
    std::shared_ptr<const void> what;
    std::size_t bytes;
    int hits;
  };
  struct shard {
    std::mutex mutex;
    std::size_t most = 0;
    std::size_t bytes = 0;
    std::size_t small_bytes = 0;
    std::list<entry> small, main;  // the newest first
    std::unordered_map<cached_name, std::list<entry>::iterator, hash> where;
    std::list<cached_name> gone;  // the newest first
    std::unordered_map<cached_name, std::list<cached_name>::iterator, hash> gone_where;

    // True: it left not long ago.
    bool forget(const cached_name& name) {
      const auto at = gone_where.find(name);
      if (at == gone_where.end()) return false;
      gone.erase(at->second);
      gone_where.erase(at);
      return true;
    }
    // A name that there is no memory for is not remembered.
    void remember(const cached_name& name) noexcept try {
      std::list<cached_name> fresh{name};
      gone_where.emplace(name, fresh.begin());
      gone.splice(gone.begin(), fresh);
      // As many names as entries: their memory is part of the entries'.
      while (gone.size() > where.size() + 1) {
        gone_where.erase(gone.back());
        gone.pop_back();
      }
    } catch (const std::bad_alloc&) {
    }
  };
  struct counts {
    std::atomic<std::uint64_t> hits{0};
    std::atomic<std::uint64_t> misses{0};
    [[nodiscard]] cache_figures now() const noexcept {
      return {hits.load(std::memory_order_relaxed), misses.load(std::memory_order_relaxed)};
    }
  };

  [[nodiscard]] shard& shard_of(const cached_name& name) noexcept {
    return shards_[hash()(name) >> 32 & (shards_.size() - 1)];
  }

  // One entry leaves to `gone`, or moves to the main queue.
  void evict(shard& s, std::list<entry>& gone) noexcept {
    const bool from_small = !s.small.empty() && (s.small_bytes > s.most / 10 || s.main.empty());
    std::list<entry>& queue = from_small ? s.small : s.main;
    const auto last = std::prev(queue.end());
    if (last->hits > 0) {
      if (from_small) {
        s.small_bytes -= last->bytes;
        last->hits = 0;
      } else {
        --last->hits;
      }
      s.main.splice(s.main.begin(), queue, last);
      return;
    }
    s.bytes -= last->bytes;
    bytes_.fetch_sub(last->bytes, std::memory_order_relaxed);
    s.where.erase(last->name);
    if (from_small) {
      s.small_bytes -= last->bytes;
      s.remember(last->name);
    }
    gone.splice(gone.begin(), queue, last);
  }

  const std::size_t most_;
  std::vector<shard> shards_;
  std::atomic<std::size_t> bytes_{0};
  counts pages_;
  counts values_;
};

}  // namespace pmlab::stores::detail::tiered
