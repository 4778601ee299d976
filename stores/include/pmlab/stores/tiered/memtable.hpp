// The newest changes, in order, in DRAM: a skip list of all versions.
//
// Order: table, key, then the newest version first. One writer at a time (the store's commit lock); readers take no
// lock and wait for nothing, since nodes are never moved or freed before the whole table is.
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/stores/tiered/layout.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

namespace pmlab::stores::detail::tiered {

// One version of a key, or a place in the order of versions.
struct version_name {
  std::uint16_t table = 0;  // one more than the last: behind all tables
  std::string_view key{};
  std::uint64_t sequence = 0;  // 0: behind all versions of the key

  [[nodiscard]] bool same_key(const version_name& other) const noexcept {
    return table == other.table && key == other.key;
  }
  friend bool operator<(const version_name& a, const version_name& b) noexcept {
    if (a.table != b.table) return a.table < b.table;
    if (const int order = a.key.compare(b.key); order != 0) return order < 0;
    return a.sequence > b.sequence;
  }
};

// Before all versions of its key.
inline constexpr std::uint64_t newest = ~std::uint64_t{0};

struct change {
  change_kind kind = change_kind::put;
  std::uint8_t table = 0;
  std::string_view key{};
  std::string_view value{};
};

class memtable {
  static constexpr unsigned most_height = 12;

 public:
  // Followed by its links, its key and its value.
  class node {
   public:
    [[nodiscard]] version_name name() const noexcept { return {table_, {key_, key_bytes_}, sequence_}; }
    [[nodiscard]] change_kind kind() const noexcept { return kind_; }
    [[nodiscard]] std::string_view value() const noexcept { return {key_ + key_bytes_, value_bytes_}; }
    // The place of its value in the log.
    [[nodiscard]] value_place place() const noexcept { return place_; }
    [[nodiscard]] const node* next() const noexcept { return link(0).load(std::memory_order_acquire); }

   private:
    friend class memtable;
    using link_type = std::atomic<node*>;
    [[nodiscard]] const link_type& link(unsigned level) const noexcept {
      return reinterpret_cast<const link_type*>(this + 1)[level];
    }
    [[nodiscard]] link_type& link(unsigned level) noexcept { return reinterpret_cast<link_type*>(this + 1)[level]; }
    // The number of its links: the key stands behind them.
    [[nodiscard]] unsigned height() const noexcept {
      return static_cast<unsigned>(reinterpret_cast<const link_type*>(key_) - &link(0));
    }

    std::uint64_t sequence_ = 0;
    char* key_ = nullptr;
    value_place place_{};
    std::uint32_t value_bytes_ = 0;
    std::uint16_t key_bytes_ = 0;
    std::uint8_t table_ = 0;
    change_kind kind_ = change_kind::put;
  };

  // `chunk_bytes`: memory is taken in pieces of about so many bytes.
  explicit memtable(std::size_t chunk_bytes) : chunk_bytes_(chunk_bytes) { head_ = make_node(most_height, {}); }

  // A node for this change, which `link` puts into the table; until then, and if that never happens, no reader sees it.
  // Throws std::bad_alloc. REQUIRES: one thread at a time.
  [[nodiscard]] node* prepare(const change& c) {
    unsigned height = 1;
    while (height < most_height && heights_.one_in(4)) ++height;
    return make_node(height, c);
  }
  // Readers see it from now on. REQUIRES: one thread at a time; the name is new; `prepared` was not linked before.
  void link(node& prepared, std::uint64_t sequence, value_place place) noexcept {
    prepared.sequence_ = sequence;
    prepared.place_ = place;
    const version_name name = prepared.name();
    std::array<gap, most_height> gaps;
    find(name, gaps.data());
    for (unsigned level = 0; level < prepared.height(); ++level) {
      prepared.link(level).store(gaps[level].successor, std::memory_order_relaxed);
      gaps[level].before->link(level).store(&prepared, std::memory_order_release);
    }
    last_ = sequence;
    key_bytes_.fetch_add(name.key.size() + 32, std::memory_order_relaxed);
  }
  // Both at once. Throws std::bad_alloc: nothing was inserted.
  const node* insert(const change& c, std::uint64_t sequence, value_place place) {
    node* const made = prepare(c);
    link(*made, sequence, place);
    return made;
  }

  // The first version at or after `name`; nullptr: none.
  [[nodiscard]] const node* at_least(const version_name& name) const noexcept { return find(name).successor; }
  // The last version before `name`; nullptr: none.
  [[nodiscard]] const node* less(const version_name& name) const noexcept {
    const node* const at = find(name).before;
    return at == head_ ? nullptr : at;
  }

  // Bytes that it has taken.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }
  // The bytes, about, that its keys need in the pages of a set, without space that pages waste.
  [[nodiscard]] std::size_t key_bytes() const noexcept { return key_bytes_.load(std::memory_order_relaxed); }
  // The most bytes that one more change would need.
  [[nodiscard]] static std::size_t bytes_for(const change& c) noexcept {
    return sizeof(node) + most_height * sizeof(void*) + c.key.size() + c.value.size() + alignof(node);
  }
  // The greatest sequence; 0: it is empty.
  [[nodiscard]] std::uint64_t last() const noexcept { return last_; }
  [[nodiscard]] bool empty() const noexcept { return last_ == 0; }

 private:
  [[nodiscard]] static node* follow(const node* from, unsigned level) noexcept {
    return from->link(level).load(std::memory_order_acquire);
  }
  // A place in the order, on one level: two nodes that followed one another when the search compared both with its
  // name. A node may be inserted in between at any time, on either side of the name: a search does not load the link
  // again.
  struct gap {
    node* before = nullptr;     // the last node before the name, or the head
    node* successor = nullptr;  // the first node at or after the name; nullptr: none
  };
  // The gap of the lowest level. `all` (may be null) gets the gaps of all levels.
  gap find(const version_name& name, gap* all = nullptr) const noexcept {
    gap g{head_, nullptr};
    for (unsigned level = most_height; level-- > 0;) {
      for (;;) {
        g.successor = follow(g.before, level);
        if (g.successor == nullptr || !(g.successor->name() < name)) break;
        g.before = g.successor;
      }
      if (all != nullptr) all[level] = g;
    }
    return g;
  }

  [[nodiscard]] node* make_node(unsigned height, const change& c) {
    std::byte* const start = take(sizeof(node) + height * sizeof(node::link_type) + c.key.size() + c.value.size());
    node* const n = ::new (start) node;
    for (unsigned level = 0; level < height; ++level) ::new (&n->link(level)) node::link_type(nullptr);
    n->key_ = reinterpret_cast<char*>(&n->link(height));
    if (!c.key.empty()) std::memcpy(n->key_, c.key.data(), c.key.size());
    if (!c.value.empty()) std::memcpy(n->key_ + c.key.size(), c.value.data(), c.value.size());
    n->key_bytes_ = static_cast<std::uint16_t>(c.key.size());
    n->value_bytes_ = static_cast<std::uint32_t>(c.value.size());
    n->table_ = c.table;
    n->kind_ = c.kind;
    return n;
  }

  [[nodiscard]] std::byte* take(std::size_t bytes) {
    bytes = round_up(bytes, alignof(node));
    if (bytes > left_) {
      const std::size_t fresh = bytes > chunk_bytes_ ? bytes : chunk_bytes_;
      chunks_.push_back(std::make_unique<std::byte[]>(fresh));
      bytes_.fetch_add(fresh, std::memory_order_relaxed);
      free_ = chunks_.back().get();
      left_ = fresh;
    }
    std::byte* const start = free_;
    free_ += bytes;
    left_ -= bytes;
    return start;
  }

  std::size_t chunk_bytes_;
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* free_ = nullptr;
  std::size_t left_ = 0;
  std::atomic<std::size_t> bytes_{0};
  std::atomic<std::size_t> key_bytes_{0};
  splitmix64 heights_{1};
  node* head_ = nullptr;
  std::uint64_t last_ = 0;
};

}  // namespace pmlab::stores::detail::tiered
