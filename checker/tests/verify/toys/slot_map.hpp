// The map that the toys are: a fixed number of slots, found by linear probing. A slot, once taken, stays its key's.
//
// It is correct. A toy derives its rules from `plain_rules` and replaces the function with its defect.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

// 0: the toy is correct. Read from PMLAB_MUTATION (mutations/selected.cpp).
extern "C" const int pmlab_mutation;

namespace pmlab::toys {

using indexes::entry;
using indexes::outcome;
using word = std::atomic<std::uint64_t>;

[[nodiscard]] inline bool has_defect() noexcept { return pmlab_mutation != 0; }

inline constexpr std::size_t slots = 4096;

// Does not straddle a line.
struct alignas(32) slot {
  word taken{0};  // 1: it has a key
  word key{0};
  word live{0};  // 1: the key is in the map
  word value{0};
};

struct alignas(media::cache_line_bytes) table {
  std::array<slot, slots> all{};
  // Words for rules that have a use for them.
  std::array<word, 8> header{};
  std::array<word, slots / 64> bits{};
  std::array<word, slots> cells{};
};

// Operations on a slot. Each function but `lock`, `unlock` and `find` is called with the slot locked.
template <media::medium Medium>
class plain_rules {
 public:
  plain_rules(Medium& medium, table& t) : medium_(medium), table_(t) {}

  void lock(slot& /*s*/) { mutex_.lock(); }
  void unlock(slot& /*s*/) { mutex_.unlock(); }

  [[nodiscard]] bool is_live(slot& s) { return s.live.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] std::uint64_t value(slot& s) { return s.value.load(std::memory_order_acquire); }
  // Bytes beyond the table that a live slot holds.
  [[nodiscard]] std::uint64_t held(slot& /*s*/) { return 0; }

  bool put(slot& s, std::uint64_t value) {
    s.value.store(value, std::memory_order_release);
    s.live.store(1, std::memory_order_release);
    media::persist(medium_, s);
    return true;
  }
  bool set(slot& s, std::uint64_t value) {
    s.value.store(value, std::memory_order_release);
    media::persist(medium_, s);
    return true;
  }
  void take(slot& s) {
    s.live.store(0, std::memory_order_release);
    media::persist(medium_, s);
  }

 protected:
  [[nodiscard]] std::size_t number_of(const slot& s) const noexcept {
    return static_cast<std::size_t>(&s - table_.all.data());
  }

  Medium& medium_;
  table& table_;

 private:
  std::mutex mutex_;
};

// `Rules` has a name, too.
template <media::medium Medium, class Rules>
class slot_map {
 public:
  static constexpr std::string_view layout_name = Rules::name;
  static constexpr std::uint64_t layout_version = 1;

  static slot_map open(Medium& medium, std::string_view name = layout_name) { return slot_map(medium, name); }
  slot_map(const slot_map&) = delete;
  slot_map& operator=(const slot_map&) = delete;
  ~slot_map() = default;

  outcome insert(std::uint64_t key, std::uint64_t value) { return put(key, value, false); }
  outcome upsert(std::uint64_t key, std::uint64_t value) { return put(key, value, true); }

  outcome update(std::uint64_t key, std::uint64_t value) {
    slot* const s = find_slot(key);
    if (s == nullptr) return outcome::absent;
    const locked guard(rules_, *s);
    if (!rules_.is_live(*s)) return outcome::absent;
    return rules_.set(*s, value) ? outcome::updated : outcome::full;
  }

  outcome erase(std::uint64_t key) {
    slot* const s = find_slot(key);
    if (s == nullptr) return outcome::absent;
    const locked guard(rules_, *s);
    if (!rules_.is_live(*s)) return outcome::absent;
    rules_.take(*s);
    return outcome::erased;
  }

  std::optional<std::uint64_t> find(std::uint64_t key) {
    slot* const s = find_slot(key);
    if (s == nullptr) return std::nullopt;
    if constexpr (requires { rules_.find(*s); }) {
      if (has_defect()) return rules_.find(*s);
    }
    const locked guard(rules_, *s);
    return rules_.is_live(*s) ? std::optional(rules_.value(*s)) : std::nullopt;
  }

  void find_batch(std::span<const std::uint64_t> keys, std::span<std::optional<std::uint64_t>> values) {
    for (std::size_t i = 0; i < keys.size(); ++i) values[i] = find(keys[i]);
  }

  template <class Function>
  void for_each(Function&& function) const {
    for (slot& s : table_.all)
      if (s.taken.load(std::memory_order_acquire) != 0 && rules_.is_live(s)) function(s.key.load(), rules_.value(s));
  }
  [[nodiscard]] std::uint64_t size() const { return stats().entries; }
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats result;
    result.medium_bytes = sizeof(table);
    if constexpr (requires { rules_.kept_bytes(); }) result.medium_bytes += rules_.kept_bytes();
    for (slot& s : table_.all) {
      if (s.taken.load(std::memory_order_acquire) == 0 || !rules_.is_live(s)) continue;
      ++result.entries;
      result.medium_bytes += rules_.held(s);
    }
    return result;
  }
  [[nodiscard]] indexes::check_report check() const { return {}; }

 private:
  class locked {
   public:
    locked(Rules& rules, slot& s) : rules_(rules), slot_(s) { rules.lock(s); }
    locked(const locked&) = delete;
    locked& operator=(const locked&) = delete;
    ~locked() { rules_.unlock(slot_); }

   private:
    Rules& rules_;
    slot& slot_;
  };

  slot_map(Medium& medium, std::string_view name)
      : medium_(medium), table_(table_of(medium, name)), rules_(medium, table_) {}

  static table& table_of(Medium& medium, std::string_view name) {
    word& root = *medium.named_root(name, layout_name, layout_version).word;
    if (root.load(std::memory_order_acquire) == 0) {
      typename Medium::publication change(medium);
      auto* const made = media::create<table>(change);
      media::persist(medium, *made);
      change.store(root, medium.locate(made).word());
      change.commit();
    }
    return *medium.resolve(media::pointer<table>(root.load(std::memory_order_acquire)));
  }

  outcome put(std::uint64_t key, std::uint64_t value, bool replaces) {
    slot* const s = find_or_take_slot(key);
    if (s == nullptr) return outcome::full;
    const locked guard(rules_, *s);
    if (!rules_.is_live(*s)) return rules_.put(*s, value) ? outcome::inserted : outcome::full;
    if (!replaces) return outcome::exists;
    return rules_.set(*s, value) ? outcome::updated : outcome::full;
  }

  // The slot of the key, or else the free slot where it belongs.
  slot* probe(std::uint64_t key) {
    const std::size_t home = (key * 0x9e3779b97f4a7c15U) >> 52;
    for (std::size_t i = 0; i < slots; ++i) {
      slot& s = table_.all[(home + i) % slots];
      if (s.taken.load(std::memory_order_acquire) == 0 || s.key.load(std::memory_order_acquire) == key) return &s;
    }
    return nullptr;
  }
  slot* find_slot(std::uint64_t key) {
    slot* const s = probe(key);
    // A slot that was free may have been taken for another key since.
    const bool is_of_key =
        s != nullptr && s->taken.load(std::memory_order_acquire) != 0 && s->key.load(std::memory_order_acquire) == key;
    return is_of_key ? s : nullptr;
  }
  slot* find_or_take_slot(std::uint64_t key) {
    const std::scoped_lock guard(taking_);
    slot* const s = probe(key);
    if (s != nullptr && s->taken.load(std::memory_order_acquire) == 0) {
      s->key.store(key, std::memory_order_release);
      s->taken.store(1, std::memory_order_release);
      media::persist(medium_, *s);
    }
    return s;
  }

  Medium& medium_;
  table& table_;
  mutable Rules rules_;
  std::mutex taking_;
};

}  // namespace pmlab::toys
