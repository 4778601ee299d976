// A map that several hosts share in one memory, coherent or not: of a fixed number of buckets, each a ring of images.
//
//   lock     a line for each bucket, in coherent memory where there is some: writers exclude each other by it
//   head     a line: the number of the newest image
//   image    two lines: all entries of the bucket. Image n lies at place n % 4 of the ring
//   line     number | which of the entries there are | 3 keys | 3 values
//
// A change never stores to what readers use: it writes the next image and then lets the head lead to it. A reader takes
// no lock. It refreshes the head, then the image, and finds the head's number in each of its lines; it finds another
// one if writers have used the place again.
//
// (S1) < (S2a), (S2b), (S2c) < (S3): one line, so a version of it that has a number has all of its entries.
// (S4) < (S5): no host sees a head whose image it cannot see.
// (S6) comes before the unlock: rule (L2) of the lock.
// (S7) comes before the answer: it is durable, although another host may have changed the head.
//
// A host that died under the lock has left an image that no head leads to, in part, or a head whose image is whole: S4
// is before S5. So `read` under an inherited lock finds the content, and makes its head durable (S7); the next change
// writes the image that was begun as a whole.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/pod/version_lock.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::pod {

// A point index for up to 192 entries, fewer if many fall into one bucket: an example of code for several hosts.
//
// Thread safety: every operation from any number of threads of any number of hosts, which may die. Progress: changes
// wait for the holder of their bucket's lock while it lives; searches do not. Durable on return. REQUIRES: the first
// host has opened it before others do; a single host opens it once, as behind a crash of all: that frees the locks.
template <media::medium Medium>
class shared_ring {
 public:
  static constexpr std::string_view layout_name = "shared_ring";  // name in pools
  static constexpr std::uint64_t layout_version = 1;              // version of its bytes in the medium
  // Several hosts may open it.
  static constexpr bool shared_by_hosts = true;
  // A single host opens what a power failure of all has left.
  static constexpr bool survives_power_failure = true;
  // It may answer `full` while the medium has space.
  static constexpr bool is_bounded = true;

  // Makes it, or joins those that have it open. Throws pmlab::error: the medium is full, or the name is another's.
  [[nodiscard]] static shared_ring open(Medium& medium, std::string_view name = layout_name) {
    return shared_ring(medium, name);
  }

  // Adds (key, value). inserted; exists: nothing changed; full: the key's bucket is, and nothing changed.
  indexes::outcome insert(std::uint64_t key, std::uint64_t value) {
    return change(key, [&](content& c, indexes::entry* there) {
      if (there != nullptr) return indexes::outcome::exists;
      return c.add({key, value}) ? indexes::outcome::inserted : indexes::outcome::full;
    });
  }
  // Replaces the value of a key that is there. updated; absent: nothing changed.
  indexes::outcome update(std::uint64_t key, std::uint64_t value) {
    return change(key, [&](content& /*c*/, indexes::entry* there) {
      if (there == nullptr) return indexes::outcome::absent;
      there->value = value;
      return indexes::outcome::updated;
    });
  }
  // Adds or replaces. inserted; updated; full: as for insert.
  indexes::outcome upsert(std::uint64_t key, std::uint64_t value) {
    return change(key, [&](content& c, indexes::entry* there) {
      if (there == nullptr) return c.add({key, value}) ? indexes::outcome::inserted : indexes::outcome::full;
      there->value = value;
      return indexes::outcome::updated;
    });
  }
  // Removes the key. erased; absent: nothing changed.
  indexes::outcome erase(std::uint64_t key) {
    return change(key, [](content& c, indexes::entry* there) {
      if (there == nullptr) return indexes::outcome::absent;
      *there = c.entries[--c.count];
      return indexes::outcome::erased;
    });
  }

  // The value of the key; nothing: it is absent. What it returns is durable.
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t key) {
    content c = read(table_.buckets[bucket_of(key)]);
    const indexes::entry* const there = c.find(key);
    return there == nullptr ? std::nullopt : std::optional(there->value);
  }
  // As find of each key. REQUIRES: as many values as keys.
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find(keys[i]);
  }

  // The entries of all buckets, each bucket as of a moment of the call.
  [[nodiscard]] std::uint64_t size() const { return stats().entries; }
  // See `size`.
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats result;
    for (const bucket& b : table_.buckets) result.entries += read(b).count;
    result.nodes = bucket_count;
    result.depth = 1;
    result.load_factor = static_cast<double>(result.entries) / static_cast<double>(bucket_count * most_entries);
    result.medium_bytes = sizeof(table) + sizeof(lock_table);
    return result;
  }
  // Whether each key lies in its bucket, once.
  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report;
    for (std::size_t number = 0; number < bucket_count; ++number) {
      content c = read(table_.buckets[number]);
      report.entries += c.count;
      for (std::size_t i = 0; i < c.count; ++i) {
        const std::uint64_t key = c.entries[i].key;
        if (bucket_of(key) != number)
          report.add("key " + std::to_string(key) + " lies in bucket " + std::to_string(number));
        if (c.find(key) != &c.entries[i]) report.add("key " + std::to_string(key) + " is there twice");
      }
    }
    return report;
  }
  // Calls function(key, value) for each entry, in no order; see `size`.
  template <class Function>
  void for_each(Function&& function) const {
    for (const bucket& b : table_.buckets) {
      const content c = read(b);
      for (std::size_t i = 0; i < c.count; ++i) function(c.entries[i].key, c.entries[i].value);
    }
  }

 private:
  using word = std::atomic<std::uint64_t>;

  static constexpr std::size_t bucket_count = 32;  // a power of two
  static constexpr std::size_t places = 4;
  static constexpr std::size_t entries_per_line = 3;
  static constexpr std::size_t lines_per_image = 2;
  static constexpr std::size_t most_entries = entries_per_line * lines_per_image;
  static constexpr std::uint64_t first_number = places;

  struct alignas(media::cache_line_bytes) line {
    word number{0};   // number of its image; 0: it is being written
    word present{0};  // bit i: entry i is there
    std::array<word, entries_per_line> keys{};
    std::array<word, entries_per_line> values{};
  };
  static_assert(sizeof(line) == media::cache_line_bytes);
  struct image {
    std::array<line, lines_per_image> lines{};
  };
  struct bucket {
    alignas(media::cache_line_bytes) word head{first_number};
    std::array<image, places> images{};
    bucket() {
      for (line& l : images[first_number % places].lines) l.number.store(first_number, std::memory_order_relaxed);
    }
  };
  struct lock_table {
    std::array<version_lock, bucket_count> locks{};
  };
  struct table {
    media::pointer<lock_table> locks{};
    std::array<bucket, bucket_count> buckets{};
  };

  // The entries of a bucket, in DRAM.
  struct content {
    std::uint64_t number = 0;
    std::size_t count = 0;
    std::array<indexes::entry, most_entries> entries{};

    [[nodiscard]] indexes::entry* find(std::uint64_t key) noexcept {
      for (std::size_t i = 0; i < count; ++i)
        if (entries[i].key == key) return &entries[i];
      return nullptr;
    }
    bool add(const indexes::entry& e) noexcept {
      if (count == most_entries) return false;
      entries[count++] = e;
      return true;
    }
  };

  shared_ring(Medium& medium, std::string_view name)
      : medium_(medium), table_(table_of(medium, name)), locks_(medium.resolve(table_.locks)->locks) {
    if (media::hosts_of(medium_) > 1) return;
    // A crash of all hosts has left them as they were.
    for (version_lock& l : locks_) l.reset(medium_);
  }

  static table& table_of(Medium& medium, std::string_view name) {
    word& root = *medium.named_root(name, layout_name, layout_version).word;
    media::refresh(medium, root);
    if (root.load(std::memory_order_acquire) == 0) make(medium, root);
    table& t = *medium.resolve(media::pointer<table>(root.load(std::memory_order_acquire)));
    media::refresh(medium, t.locks);
    return t;
  }
  static void make(Medium& medium, word& root) {
    typename Medium::publication made(medium);
    auto* const locks = media::create_coherent<lock_table>(made);
    auto* const t = media::create<table>(made);
    if (locks == nullptr || t == nullptr) throw error("no space for a shared_ring", "give the medium 32 KiB");
    t->locks = medium.locate(locks);
    media::publish(medium, *locks);
    media::publish(medium, *t);
    made.store(root, medium.locate(t).word());
    made.commit();
  }

  [[nodiscard]] static std::size_t bucket_of(std::uint64_t key) noexcept { return mix_bits(key) % bucket_count; }

  [[nodiscard]] content read(const bucket& b) const {
    for (sync::backoff wait;; wait.pause()) {
      content c;
      media::refresh(medium_, b.head);
      c.number = b.head.load(std::memory_order_acquire);
      const image& newest = b.images[c.number % places];
      media::refresh(medium_, newest);
      if (!copy(newest, c)) continue;
      media::publish(medium_, b.head);  // (S7)
      return c;
    }
  }
  // False: it is another image by now.
  [[nodiscard]] static bool copy(const image& from, content& c) noexcept {
    for (const line& l : from.lines) {
      if (!is_of(l, c.number)) return false;
      const std::uint64_t present = l.present.load(std::memory_order_acquire);
      for (std::size_t i = 0; i < entries_per_line; ++i)
        if ((present >> i & 1) != 0)
          c.add({l.keys[i].load(std::memory_order_acquire), l.values[i].load(std::memory_order_acquire)});
      if (!is_of(l, c.number)) return false;
    }
    return true;
  }
  [[nodiscard]] static bool is_of(const line& l, std::uint64_t number) noexcept {
    return l.number.load(std::memory_order_acquire) == number;
  }

  // `decide(content, entry of the key or nullptr)` returns the outcome, and has changed the content if the outcome is a
  // change.
  template <class Decide>
  indexes::outcome change(std::uint64_t key, Decide&& decide) {
    const std::size_t number = bucket_of(key);
    bucket& b = table_.buckets[number];
    static_cast<void>(locks_[number].lock(medium_));  // inherited: `read` repairs the bucket
    content c = read(b);
    const indexes::outcome done = decide(c, c.find(key));
    const bool changed =
        done == indexes::outcome::inserted || done == indexes::outcome::updated || done == indexes::outcome::erased;
    if (changed) write(b, c);
    locks_[number].unlock(medium_);
    return done;
  }

  void write(bucket& b, const content& c) {
    const std::uint64_t number = c.number + 1;
    image& next = b.images[number % places];
    // A write-back takes the words of a line that were not stored to with it.
    media::refresh(medium_, next);
    std::size_t from = 0;
    for (line& l : next.lines) {
      const std::size_t count = std::min(c.count - from, entries_per_line);
      l.number.store(0, std::memory_order_release);  // (S1)
      for (std::size_t i = 0; i < count; ++i) {
        l.keys[i].store(c.entries[from + i].key, std::memory_order_release);      // (S2a)
        l.values[i].store(c.entries[from + i].value, std::memory_order_release);  // (S2b)
      }
      l.present.store((std::uint64_t{1} << count) - 1, std::memory_order_release);  // (S2c)
      l.number.store(number, std::memory_order_release);                            // (S3)
      from += count;
    }
    media::publish(medium_, next);                    // (S4)
    b.head.store(number, std::memory_order_release);  // (S5)
    media::publish(medium_, b.head);                  // (S6)
  }

  Medium& medium_;
  table& table_;
  std::array<version_lock, bucket_count>& locks_;
};

}  // namespace pmlab::pod
