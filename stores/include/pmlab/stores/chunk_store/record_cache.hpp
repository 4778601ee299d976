// A cache of chunk records in DRAM, bounded in bytes: sets of seven, whose policy is one of the cache's.
//
// A record that is read or written stays where it is while it is pinned; a set whose victim is pinned takes no new one.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/cache/eviction/eviction.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// A record in DRAM, behind its head. `Changes`: of a record that is being changed.
template <class Changes>
struct alignas(media::cache_line_bytes) cached_record {
  std::uint64_t key = 0;
  unsigned pins = 0;
  bool in_set = false;
  std::unique_ptr<Changes> changes;

  [[nodiscard]] record& words() noexcept { return *reinterpret_cast<record*>(this + 1); }
  [[nodiscard]] static cached_record& of(record& r) noexcept { return reinterpret_cast<cached_record*>(&r)[-1]; }
  [[nodiscard]] static const cached_record& of(const record& r) noexcept {
    return reinterpret_cast<const cached_record*>(&r)[-1];
  }
};

// The records of one part of all chunks. Thread safety: behind the caller's lock of this part.
template <class Changes>
class record_cache {
 public:
  using node = cached_record<Changes>;
  struct frees {
    void operator()(node* n) const noexcept {
      std::destroy_at(n);
      ::operator delete (n, std::align_val_t{alignof(node)});
    }
  };
  using owner = std::unique_ptr<node, frees>;

  record_cache(std::size_t sets, cache::eviction policy) : policy_(policy), sets_(sets) {
    for (set& s : sets_) s.state = policy_.initial();
  }

  // Makes a record of zeros. Throws std::bad_alloc.
  [[nodiscard]] static owner make(std::uint64_t key, std::size_t bytes) {
    void* const room = ::operator new (sizeof(node) + bytes, std::align_val_t{alignof(node)});
    std::memset(room, 0, sizeof(node) + bytes);
    owner made(::new (room) node{});
    made->key = key;
    return made;
  }
  [[nodiscard]] static constexpr std::size_t set_bytes(std::size_t bytes_of_record) noexcept {
    return sizeof(set) + cache::ways * (sizeof(node) + bytes_of_record);
  }

  // nullptr: it is not here. Valid until the next insert, or while it is pinned.
  [[nodiscard]] node* find(std::uint64_t key) {
    if (!sets_.empty()) {
      set& s = set_of(key);
      for (unsigned way = 0; way < cache::ways; ++way)
        if (s.ways[way] != nullptr && s.ways[way]->key == key) {
          s.state.word = policy_.hit(s.state.word, way);
          return s.ways[way].get();
        }
    }
    if (const auto at = others_.find(key); at != others_.end()) return at->second.get();
    return last_ != nullptr && last_->key == key ? last_.get() : nullptr;
  }
  // REQUIRES: its key is not here.
  node& insert(owner n) {
    node& inserted = *n;
    if (sets_.empty()) {
      last_ = std::move(n);
      return inserted;
    }
    set& s = set_of(inserted.key);
    unsigned way = 0;
    while (way < cache::ways && s.ways[way] != nullptr) ++way;
    if (way == cache::ways) {
      cache::tags_of_set tags{};
      for (unsigned w = 0; w < cache::ways; ++w) tags[w] = tag_of(s.ways[w]->key);
      way = policy_.victim(s.state, tags);
      if (is_used(*s.ways[way])) {
        last_ = std::move(n);
        return inserted;
      }
    }
    policy_.filled(s.state, way, tag_of(inserted.key));
    inserted.in_set = true;
    s.ways[way] = std::move(n);
    return inserted;
  }
  // As insert and pin. Throws std::bad_alloc; nothing changed then, and the caller has `n`.
  void insert_pinned(owner& n) {
    owner& place = others_[n->key];
    n->pins = 1;
    place = std::move(n);
  }

  // Throws std::bad_alloc; nothing changed then.
  void pin(node& n) {
    if (n.pins == 0 && !n.in_set && last_.get() == &n) {
      owner& place = others_[n.key];
      place = std::move(last_);
    }
    ++n.pins;
  }
  // One that no thread uses any more may be evicted.
  void unpin(node& n) {
    --n.pins;
    release(n);
  }
  // The same, of one that was kept for its changes. It stays valid until the next insert.
  void release(node& n) {
    if (n.in_set || is_used(n)) return;
    const auto at = others_.find(n.key);
    if (at == others_.end()) return;
    owner free = std::move(at->second);
    others_.erase(at);
    insert(std::move(free));
  }
  void erase(node& n) {
    if (n.in_set) {
      for (owner& o : set_of(n.key).ways)
        if (o.get() == &n) return o.reset();
    } else if (last_.get() == &n) {
      last_.reset();
    } else {
      others_.erase(n.key);
    }
  }

  // Calls visit(node&) for each.
  template <class Visit>
  void for_each(Visit&& visit) {
    for (set& s : sets_)
      for (owner& o : s.ways)
        if (o != nullptr) visit(*o);
    for (auto& [key, o] : others_) visit(*o);
    if (last_ != nullptr) visit(*last_);
  }

 private:
  struct set {
    cache::eviction_state state{};
    std::array<owner, cache::ways> ways{};
  };

  [[nodiscard]] static bool is_used(const node& n) noexcept { return n.pins > 0 || n.changes != nullptr; }
  // The part was chosen by the low bits of the hash.
  [[nodiscard]] set& set_of(std::uint64_t key) noexcept { return sets_[(mix_bits(key) >> 24) % sets_.size()]; }
  [[nodiscard]] static cache::tag_type tag_of(std::uint64_t key) noexcept {
    return static_cast<cache::tag_type>(mix_bits(key) >> 12 & ((std::uint64_t{1} << cache::tag_bits) - 1));
  }

  cache::chosen_eviction policy_;
  std::vector<set> sets_;
  std::unordered_map<std::uint64_t, owner> others_;  // pinned or being changed, and in no set
  owner last_;                                       // in no set: until the next one
};

}  // namespace pmlab::stores::detail::chunk_store
