// A map that several hosts share, whose changes are not whole by themselves: who inherits a lock must repair. In its
// mutations the lock is wrong.
//
//   lock      a line for each bucket
//   undo      a line: the entries before the change that is on, and that one is
//   home, copy   a line each: the entries, twice
//
// A change publishes the undo line, changes home, then the copy, and clears the undo line. Readers take the lock, too.
// A host that died under the lock has left two lines that differ; with the undo line they become what they were.
#include "checker/verify/register_subject.hpp"
#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/hosts.hpp>
#include <pmlab/pod/version_lock.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace pmlab::toys {
namespace {

using indexes::outcome;

template <media::medium Medium>
class undone_lines {
 public:
  static constexpr std::string_view layout_name = "undone_lines";
  static constexpr std::uint64_t layout_version = 1;
  static constexpr bool shared_by_hosts = true;
  static constexpr bool survives_power_failure = true;
  static constexpr bool is_bounded = true;

  static undone_lines open(Medium& medium, std::string_view name = layout_name) { return undone_lines(medium, name); }

  outcome insert(std::uint64_t key, std::uint64_t value) { return put(key, value, true, false); }
  outcome update(std::uint64_t key, std::uint64_t value) { return put(key, value, false, true); }
  outcome upsert(std::uint64_t key, std::uint64_t value) { return put(key, value, true, true); }
  outcome erase(std::uint64_t key) {
    return locked(key, [&](bucket& b) {
      const std::size_t at = place_of(b, key);
      if (at == entries) return outcome::absent;
      change(b, [&](line& l) { store(l.present, load(l.present) & ~(std::uint64_t{1} << at)); });
      return outcome::erased;
    });
  }
  std::optional<std::uint64_t> find(std::uint64_t key) {
    return locked(key, [&](bucket& b) -> std::optional<std::uint64_t> {
      const std::size_t at = place_of(b, key);
      if (at == entries) return std::nullopt;
      return load(b.home.values[at]);
    });
  }
  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find(keys[i]);
  }
  template <class Function>
  void for_each(Function&& function) const {
    for (bucket& b : table_.buckets)
      under_lock(b, [&] {
        for (std::size_t i = 0; i < entries; ++i)
          if ((load(b.home.present) >> i & 1) != 0) function(load(b.home.keys[i]), load(b.home.values[i]));
        return 0;
      });
  }
  [[nodiscard]] std::uint64_t size() const { return stats().entries; }
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats result;
    for_each([&](std::uint64_t, std::uint64_t) { ++result.entries; });
    result.medium_bytes = sizeof(table) + sizeof(lock_table);
    return result;
  }
  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report;
    for (bucket& b : table_.buckets)
      under_lock(b, [&] {
        bool same = load(b.home.present) == load(b.copy.present);
        for (std::size_t i = 0; i < entries && same; ++i)
          same = (load(b.home.present) >> i & 1) == 0 ||
                 (load(b.home.keys[i]) == load(b.copy.keys[i]) && load(b.home.values[i]) == load(b.copy.values[i]));
        if (!same) report.add("the lines of bucket " + std::to_string(number_of(b)) + " differ");
        return 0;
      });
    return report;
  }

 private:
  using word = std::atomic<std::uint64_t>;

  static constexpr std::size_t bucket_count = 32;
  static constexpr std::size_t entries = 3;

  struct alignas(media::cache_line_bytes) line {
    word is_on{0};  // in the undo line: a change is on
    word present{0};
    std::array<word, entries> keys{};
    std::array<word, entries> values{};
  };
  struct bucket {
    line undo, home, copy;
  };
  struct lock_table {
    std::array<pod::version_lock, bucket_count> locks{};
  };
  struct table {
    media::pointer<lock_table> locks{};
    alignas(media::cache_line_bytes) std::array<bucket, bucket_count> buckets{};
  };

  undone_lines(Medium& medium, std::string_view name)
      : medium_(medium), table_(table_of(medium, name)), locks_(medium.resolve(table_.locks)->locks) {
    if (media::hosts_of(medium_) > 1) return;
    for (pod::version_lock& l : locks_) l.reset(medium_);
    for (bucket& b : table_.buckets) repair(b);
  }

  static table& table_of(Medium& medium, std::string_view name) {
    word& root = *medium.named_root(name, layout_name, layout_version).word;
    media::refresh(medium, root);
    if (load(root) == 0) {
      typename Medium::publication made(medium);
      auto* const locks = media::create_coherent<lock_table>(made);
      auto* const t = media::create<table>(made);
      t->locks = medium.locate(locks);
      media::publish(medium, *locks);
      media::publish(medium, *t);
      made.store(root, medium.locate(t).word());
      made.commit();
    }
    table& t = *medium.resolve(media::pointer<table>(load(root)));
    media::refresh(medium, t.locks);
    return t;
  }

  static std::uint64_t load(const word& w) noexcept { return w.load(std::memory_order_acquire); }
  static void store(word& w, std::uint64_t value) noexcept { w.store(value, std::memory_order_release); }
  static void copy(const line& from, line& to) noexcept {
    for (std::size_t i = 0; i < entries; ++i) {
      store(to.keys[i], load(from.keys[i]));
      store(to.values[i], load(from.values[i]));
    }
    store(to.present, load(from.present));
  }

  [[nodiscard]] std::size_t number_of(const bucket& b) const noexcept {
    return static_cast<std::size_t>(&b - table_.buckets.data());
  }
  [[nodiscard]] static std::size_t place_of(const bucket& b, std::uint64_t key) noexcept {
    for (std::size_t i = 0; i < entries; ++i)
      if ((load(b.home.present) >> i & 1) != 0 && load(b.home.keys[i]) == key) return i;
    return entries;
  }

  template <class Work>
  auto under_lock(bucket& b, Work&& work) const {
    pod::version_lock& lock = locks_[number_of(b)];
    const bool inherits = lock.lock(medium_) == pod::acquired::inherited;
    media::refresh(medium_, b);
    if (inherits) repair(b);
    auto result = work();
    lock.unlock(medium_);
    return result;
  }
  template <class Work>
  auto locked(std::uint64_t key, Work&& work) const {
    bucket& b = table_.buckets[mix_bits(key) % bucket_count];
    return under_lock(b, [&] { return work(b); });
  }

  void repair(bucket& b) const {
    if (load(b.undo.is_on) == 0) return;
    copy(b.undo, b.home);
    media::publish(medium_, b.home);
    copy(b.undo, b.copy);
    media::publish(medium_, b.copy);
    store(b.undo.is_on, 0);
    media::publish(medium_, b.undo);
  }

  template <class Edit>
  void change(bucket& b, Edit&& edit) {
    copy(b.home, b.undo);
    store(b.undo.is_on, 1);
    media::publish(medium_, b.undo);
    edit(b.home);
    media::publish(medium_, b.home);
    edit(b.copy);
    media::publish(medium_, b.copy);
    store(b.undo.is_on, 0);
    media::publish(medium_, b.undo);
  }

  outcome put(std::uint64_t key, std::uint64_t value, bool inserts, bool updates) {
    return locked(key, [&](bucket& b) {
      std::size_t at = place_of(b, key);
      if (at != entries) {
        if (!updates) return outcome::exists;
        change(b, [&](line& l) { store(l.values[at], value); });
        return outcome::updated;
      }
      if (!inserts) return outcome::absent;
      for (at = 0; at < entries && (load(b.home.present) >> at & 1) != 0;) ++at;
      if (at == entries) return outcome::full;
      change(b, [&](line& l) {
        store(l.keys[at], key);
        store(l.values[at], value);
        store(l.present, load(l.present) | std::uint64_t{1} << at);
      });
      return outcome::inserted;
    });
  }

  Medium& medium_;
  table& table_;
  std::array<pod::version_lock, bucket_count>& locks_;
};

const bool registered = verify::register_subject<undone_lines>();

}  // namespace
}  // namespace pmlab::toys
