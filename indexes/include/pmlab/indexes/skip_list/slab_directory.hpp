// DRAM state of the slabs of a skip list: their order in the medium, and their free nodes.
#pragma once

#include <pmlab/indexes/skip_list/node.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace pmlab::indexes::detail::skip_list {

// The record of one slab. `older` and `newer` are its neighbours in the list of slabs.
template <class Slab>
struct slab_record {
  static constexpr std::size_t word_bits = 64;

  Slab* slab = nullptr;
  slab_record* older = nullptr;
  slab_record* newer = nullptr;
  slab_record* next = nullptr;  // next one of the same class, see slab_directory
  slab_record* previous = nullptr;
  std::size_t free = 0;   // bits of `free_nodes` that are set
  bool recovered = true;  // false: an earlier run left it, and its free nodes are not all known
  bool closed = false;    // its free nodes are not handed out: it is being emptied
  bool stays = false;     // some nodes of it are lost: it is not worth emptying
  std::array<std::uint64_t, (Slab::capacity + word_bits - 1) / word_bits> free_nodes{};

  [[nodiscard]] bool is_empty() const noexcept { return free == Slab::capacity; }
  [[nodiscard]] bool has(const node& n) const noexcept {
    return &n >= slab->nodes.data() && &n < slab->nodes.data() + Slab::capacity;
  }
};

// Records of slabs, and free nodes. Open slabs with free nodes are kept in classes, by the number of free nodes: nodes
// are allocated from the fullest slabs, so that the emptiest ones run empty. Thread safety: none.
template <class Slab>
class slab_directory {
 public:
  using record = slab_record<Slab>;

  slab_directory() = default;
  slab_directory(const slab_directory&) = delete;
  slab_directory& operator=(const slab_directory&) = delete;
  ~slab_directory() = default;

  // A record without free nodes, as the newest one. Throws std::bad_alloc; nothing has changed then.
  record& add(Slab& s) {
    auto made = std::make_unique<record>();
    record& r = *made;
    r.slab = &s;
    records_.emplace(page_of(&s), std::move(made));
    r.older = newest_;
    if (newest_ != nullptr) newest_->newer = &r;
    newest_ = &r;
    open_nodes_ += Slab::capacity;
    return r;
  }
  void remove(record& r) noexcept {
    leave_class(r);
    if (!r.closed) forget_nodes(r);
    if (r.older != nullptr) r.older->newer = r.newer;
    (r.newer != nullptr ? r.newer->older : newest_) = r.older;
    records_.erase(page_of(r.slab));
  }

  // nullptr: of no slab that is known.
  [[nodiscard]] record* of(const node& n) const noexcept {
    const std::uintptr_t page = page_of(&n);
    for (const std::uintptr_t p : {page, page - 1})
      if (const auto found = records_.find(p); found != records_.end() && found->second->has(n))
        return found->second.get();
    return nullptr;
  }

  // Notes that `n` is free, and that no other list has it.
  void put(record& r, const node& n) noexcept {
    const std::size_t number = static_cast<std::size_t>(&n - r.slab->nodes.data());
    r.free_nodes[number / record::word_bits] |= std::uint64_t{1} << number % record::word_bits;
    count(r, 1);
  }

  // Calls take(node) for free nodes, up to `most` of them, of the fullest slabs; in each in ascending order of their
  // addresses. They are in no list then. False: there are none.
  template <class Take>
  bool hand_out(std::size_t most, Take&& take) {
    const std::size_t wanted = most;
    while (most > 0) {
      const auto filled = std::find_if(classes_.begin(), classes_.end(), [](const record* r) { return r != nullptr; });
      if (filled == classes_.end()) break;
      record& r = **filled;
      for (std::size_t w = 0; w < r.free_nodes.size(); ++w)
        for (; r.free_nodes[w] != 0 && most > 0; --most) {
          take(r.slab->nodes[w * record::word_bits + static_cast<std::size_t>(std::countr_zero(r.free_nodes[w]))]);
          r.free_nodes[w] &= r.free_nodes[w] - 1;
          count(r, -1);
        }
    }
    return most != wanted;
  }

  // The open slab with the most free nodes, more than a quarter of it, or nullptr.
  [[nodiscard]] record* emptiest() const noexcept {
    for (std::size_t c = classes_.size(); c-- > classes_.size() / 4;)
      for (record* r = classes_[c]; r != nullptr; r = r->next)
        if (!r->stays || r->is_empty()) return r;
    return nullptr;
  }

  void close(record& r) noexcept {
    leave_class(r);
    forget_nodes(r);
    r.closed = true;
  }
  void reopen(record& r) noexcept {
    r.closed = false;
    open_nodes_ += Slab::capacity;
    open_free_ += r.free;
    enter_class(r);
  }

  // Nodes of the slabs that are not closed, and how many of these are free and in no other list.
  [[nodiscard]] std::size_t open_nodes() const noexcept { return open_nodes_; }
  [[nodiscard]] std::size_t open_free() const noexcept { return open_free_; }

  // The same of all slabs.
  [[nodiscard]] std::size_t all_free() const noexcept {
    std::size_t free = 0;
    for (const record* r = newest_; r != nullptr; r = r->older) free += r->free;
    return free;
  }

  template <class Visit>
  void for_each(Visit&& visit) {
    for (record* r = newest_; r != nullptr; r = r->older) visit(*r);
  }

  // The bytes of DRAM, roughly.
  [[nodiscard]] std::uint64_t bytes() const noexcept {
    return records_.size() * (sizeof(record) + sizeof(*records_.begin()) + 2 * sizeof(void*)) +
           records_.bucket_count() * sizeof(void*);
  }

 private:
  static constexpr std::size_t class_count = 8;
  static constexpr std::size_t no_class = class_count;

  [[nodiscard]] static std::uintptr_t page_of(const void* place) noexcept {
    return reinterpret_cast<std::uintptr_t>(place) / sizeof(Slab);
  }
  [[nodiscard]] static std::size_t class_of(std::size_t free) noexcept {
    return free == 0 ? no_class : std::min(class_count - 1, free * class_count / Slab::capacity);
  }

  void count(record& r, std::ptrdiff_t more) noexcept {
    const std::size_t before = r.free;
    r.free = before + static_cast<std::size_t>(more);
    if (r.closed) return;
    open_free_ += static_cast<std::size_t>(more);
    if (class_of(before) == class_of(r.free)) return;
    leave(r, class_of(before));
    enter_class(r);
  }
  void forget_nodes(const record& r) noexcept {
    open_nodes_ -= Slab::capacity;
    open_free_ -= r.free;
  }

  void enter_class(record& r) noexcept {
    const std::size_t c = class_of(r.free);
    if (c == no_class) return;
    r.previous = nullptr;
    r.next = classes_[c];
    if (r.next != nullptr) r.next->previous = &r;
    classes_[c] = &r;
  }
  void leave_class(record& r) noexcept {
    if (!r.closed) leave(r, class_of(r.free));
  }
  void leave(record& r, std::size_t c) noexcept {
    if (c == no_class) return;
    (r.previous != nullptr ? r.previous->next : classes_[c]) = r.next;
    if (r.next != nullptr) r.next->previous = r.previous;
    r.next = r.previous = nullptr;
  }

  std::unordered_map<std::uintptr_t, std::unique_ptr<record>> records_;  // by the page in which the slab begins
  record* newest_ = nullptr;
  std::array<record*, class_count> classes_{};
  std::size_t open_nodes_ = 0;
  std::size_t open_free_ = 0;
};

}  // namespace pmlab::indexes::detail::skip_list
