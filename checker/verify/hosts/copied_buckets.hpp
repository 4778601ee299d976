// A map for several hosts, for tests of media that they share. Each change is one publication: it allocates a new image
// of a bucket, lets the bucket's word lead to it, and releases the old one.
//
// A holder of a bucket's lock refreshes the word, then the image; so does a reader, who validates then: an image that
// was released may be another bucket's by the time it is read.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/pod/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::verify {

// Thread safety: every operation from any number of threads of any number of hosts, which may die (`check`, `stats`,
// `size`, `for_each`: no concurrent writer). Durable on return. REQUIRES: nothing else allocates on the medium.
template <media::medium Medium>
class copied_buckets {
 public:
  using outcome = indexes::outcome;

  explicit copied_buckets(Medium& medium, std::string_view name = "copied_buckets")
      : medium_(medium), table_(table_of(medium, name)), locks_(*medium.resolve(table_.locks)) {
    if (media::hosts_of(medium_) > 1) return;
    for (pod::version_lock& l : locks_.all) l.reset(medium_);
  }

  outcome insert(std::uint64_t key, std::uint64_t value) {
    return change(key, [&](content& c, indexes::entry* there) {
      return there != nullptr ? outcome::exists : c.add({key, value});
    });
  }
  outcome update(std::uint64_t key, std::uint64_t value) {
    return change(key, [&](content& /*c*/, indexes::entry* there) {
      if (there == nullptr) return outcome::absent;
      there->value = value;
      return outcome::updated;
    });
  }
  outcome upsert(std::uint64_t key, std::uint64_t value) {
    return change(key, [&](content& c, indexes::entry* there) {
      if (there == nullptr) return c.add({key, value});
      there->value = value;
      return outcome::updated;
    });
  }
  outcome erase(std::uint64_t key) {
    return change(key, [](content& c, indexes::entry* there) {
      if (there == nullptr) return outcome::absent;
      *there = c.entries[--c.count];
      return outcome::erased;
    });
  }
  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t key) {
    content c = read(bucket_of(key));
    const indexes::entry* const there = c.find(key);
    return there == nullptr ? std::nullopt : std::optional(there->value);
  }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find(keys[i]);
  }

  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t count = 0;
    for_each([&](std::uint64_t, std::uint64_t) { ++count; });
    return count;
  }
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats result;
    result.entries = size();
    result.nodes = bucket_count;
    result.medium_bytes = held_bytes();
    return result;
  }
  // Whether each key lies in its bucket, once, and all that is allocated in the medium is in use.
  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report;
    for (std::size_t b = 0; b < bucket_count; ++b) {
      content c = read(b);
      report.entries += c.count;
      for (std::size_t i = 0; i < c.count; ++i) {
        const std::uint64_t key = c.entries[i].key;
        if (bucket_of(key) != b) report.add("key " + std::to_string(key) + " lies in bucket " + std::to_string(b));
        if (c.find(key) != &c.entries[i]) report.add("key " + std::to_string(key) + " is there twice");
      }
    }
    const std::uint64_t allocated = medium_.used().allocated_bytes;
    if (const std::uint64_t held = held_bytes(); allocated != held)
      report.add(std::to_string(allocated) + " bytes are allocated, and " + std::to_string(held) + " are in use");
    return report;
  }
  template <class Function>
  void for_each(Function&& function) const {
    for (std::size_t b = 0; b < bucket_count; ++b) {
      const content c = read(b);
      for (std::size_t i = 0; i < c.count; ++i) function(c.entries[i].key, c.entries[i].value);
    }
  }

 private:
  using word = std::atomic<std::uint64_t>;

  static constexpr std::size_t bucket_count = 8;  // a power of two
  static constexpr std::size_t most_entries = 11;
  struct alignas(media::cache_line_bytes) image {
    word count{0};  // so many of the entries are there
    std::array<std::array<word, 2>, most_entries> entries{};
  };
  struct lock_table {
    std::array<pod::version_lock, bucket_count> all{};
  };
  // The words share lines: publications store them, and nothing else.
  struct alignas(media::cache_line_bytes) table {
    std::array<word, bucket_count> images{};
    media::pointer<lock_table> locks{};
  };

  struct content {
    std::size_t count = 0;
    std::array<indexes::entry, most_entries> entries{};

    [[nodiscard]] indexes::entry* find(std::uint64_t key) noexcept {
      for (std::size_t i = 0; i < count; ++i)
        if (entries[i].key == key) return &entries[i];
      return nullptr;
    }
    outcome add(const indexes::entry& e) noexcept {
      if (count == most_entries) return outcome::full;
      entries[count++] = e;
      return outcome::inserted;
    }
  };

  [[nodiscard]] static std::size_t bucket_of(std::uint64_t key) noexcept { return mix_bits(key) % bucket_count; }

  static table& table_of(Medium& medium, std::string_view name) {
    word& root = *medium.named_root(name, "copied_buckets", 1).word;
    media::refresh(medium, root);
    if (root.load(std::memory_order_acquire) == 0) {
      typename Medium::publication made(medium);
      auto* const locks = media::create_coherent<lock_table>(made);
      auto* const t = media::create<table>(made);
      if (locks == nullptr || t == nullptr) throw error("no space for copied_buckets", "give the medium more");
      t->locks = medium.locate(locks);
      media::publish(medium, *locks);
      media::publish(medium, *t);
      made.store(root, medium.locate(t).word());
      made.commit();
    }
    table& t = *medium.resolve(media::pointer<table>(root.load(std::memory_order_acquire)));
    media::refresh(medium, t);
    return t;
  }

  [[nodiscard]] std::uint64_t held_bytes() const {
    std::uint64_t bytes = sizeof(table) + sizeof(lock_table);
    for (std::size_t b = 0; b < bucket_count; ++b)
      if (const content c = read(b); c.count != 0) bytes += sizeof(image);
    return bytes;
  }

  // The content of the bucket's image of now, if no writer changes it meanwhile.
  [[nodiscard]] content copy(std::size_t bucket) const {
    const word& leads = table_.images[bucket];
    media::refresh(medium_, leads);
    const media::pointer<image> at(leads.load(std::memory_order_acquire));
    content c;
    if (!media::can_name(medium_, at)) return c;
    image& newest = *medium_.resolve(at);
    media::refresh(medium_, newest);
    // Where the image was released since, there is anything; the version has changed then.
    c.count = std::min<std::uint64_t>(newest.count.load(std::memory_order_acquire), most_entries);
    for (std::size_t i = 0; i < c.count; ++i)
      c.entries[i] = {newest.entries[i][0].load(std::memory_order_acquire),
                      newest.entries[i][1].load(std::memory_order_acquire)};
    return c;
  }
  [[nodiscard]] content read(std::size_t bucket) const {
    pod::version_lock& lock = locks_.all[bucket];
    for (;;) {
      const std::optional<std::uint64_t> version = lock.read_begin(medium_);
      if (!version) {
        // Its holder has died, and the medium has completed what it had published.
        static_cast<void>(lock.lock(medium_));
        lock.unlock(medium_);
        continue;
      }
      const content c = copy(bucket);
      if (lock.read_validate(medium_, *version)) return c;
    }
  }

  template <class Edit>
  outcome change(std::uint64_t key, Edit&& edit) {
    const std::size_t bucket = bucket_of(key);
    pod::version_lock& lock = locks_.all[bucket];
    static_cast<void>(lock.lock(medium_));
    content c = copy(bucket);
    const std::size_t before = c.count;
    outcome result = edit(c, c.find(key));
    const bool has_changed = result == outcome::inserted || result == outcome::updated || result == outcome::erased;
    if (has_changed && !publish(bucket, before, c) && !publish_in_place(bucket, before, c)) result = outcome::full;
    lock.unlock(medium_);
    return result;
  }
  // False: no space, and nothing has changed.
  bool publish(std::size_t bucket, std::size_t before, const content& c) {
    word& leads = table_.images[bucket];
    typename Medium::publication change(medium_);
    std::uint64_t next = 0;
    if (c.count != 0) {
      auto* const made = static_cast<image*>(change.allocate(sizeof(image), alignof(image)));
      if (made == nullptr) return false;
      write(*made, c);
      next = medium_.locate(made).word();
    }
    const media::pointer<image> last(leads.load(std::memory_order_acquire));
    change.store(leads, next);
    if (before != 0) change.release(medium_.resolve(last), sizeof(image));
    change.commit();
    return true;
  }

  // Line by line: a death may lose the stores of one line, in as many ways as it has stores.
  void write(image& to, const content& c) {
    constexpr std::size_t words_of_line = media::cache_line_bytes / sizeof(word);
    auto* const words = reinterpret_cast<word*>(&to);
    words[0].store(c.count, std::memory_order_relaxed);
    for (std::size_t w = 1; w < sizeof(image) / sizeof(word); ++w) {
      const std::size_t i = (w - 1) / 2;
      const indexes::entry e = i < c.count ? c.entries[i] : indexes::entry{};
      words[w].store(w % 2 == 1 ? e.key : e.value, std::memory_order_relaxed);
      if ((w + 1) % words_of_line == 0) media::publish(medium_, words[w]);
    }
  }
  // Without space an entry is erased where it is, by words of the image. False: no entry was erased.
  bool publish_in_place(std::size_t bucket, std::size_t before, const content& c) {
    if (c.count + 1 != before) return false;
    word& leads = table_.images[bucket];
    image& there = *medium_.resolve(media::pointer<image>(leads.load(std::memory_order_acquire)));
    typename Medium::publication change(medium_);
    change.store(there.count, c.count);
    for (std::size_t i = 0; i < c.count; ++i) {
      if (there.entries[i][0].load(std::memory_order_acquire) == c.entries[i].key) continue;
      change.store(there.entries[i][0], c.entries[i].key);
      change.store(there.entries[i][1], c.entries[i].value);
    }
    if (c.count == 0) {
      change.store(leads, 0);
      change.release(&there, sizeof(image));
    }
    change.commit();
    return true;
  }

  Medium& medium_;
  table& table_;
  lock_table& locks_;
};

}  // namespace pmlab::verify
