// Recovery of a skip list: the nodes that its list reaches, in order, found by many walks at once.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/skip_list/node.hpp>
#include <pmlab/indexes/skip_list/slabs.hpp>
#include <pmlab/media/huge_pages.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace pmlab::indexes::detail::skip_list {

// The slabs of an index, in the order of their list. Throws if that is corrupt.
template <class Slab, class Medium>
[[nodiscard]] std::vector<Slab*> slabs_from(const Medium& medium, std::uint64_t first) {
  // Brent: a circular list returns to a slab that was noted at a power of two.
  std::vector<Slab*> found;
  std::uint64_t noted = 0;
  for (media::pointer<Slab> at(first); at;
       at = media::pointer<Slab>(found.back()->next.load(std::memory_order_acquire))) {
    if (at.word() == noted || at.word() % media::cache_line_bytes != 0 || !media::can_name(medium, at))
      throw corrupt("its list of slabs");
    if (std::has_single_bit(found.size() + 1)) noted = at.word();
    found.push_back(medium.resolve(at));
  }
  return found;
}

// DRAM for `count` objects that are written before they are read; much of it on huge pages. Throws std::bad_alloc.
template <class T>
class scratch {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  explicit scratch(std::size_t count) : count_(count) {
    const std::size_t bytes = count * sizeof(T);
    const bool huge = bytes >= media::huge_page_bytes;
    const std::align_val_t alignment{huge ? media::huge_page_bytes : media::cache_line_bytes};
    void* const start = ::operator new(bytes, alignment);
    if (huge) madvise(start, bytes, MADV_HUGEPAGE);
    first_ = {static_cast<T*>(start), {alignment}};
  }
  [[nodiscard]] std::span<T> all() const noexcept { return {first_.get(), count_}; }

 private:
  struct free_memory {
    std::align_val_t alignment{media::cache_line_bytes};
    void operator()(T* start) const noexcept { ::operator delete(start, alignment); }
  };
  std::size_t count_;
  std::unique_ptr<T, free_memory> first_;
};

// Divides the list into pieces. Two threads cannot walk one list, nor faster than its memory responds; so walks begin
// at a node of each slab, in the order of their keys, many at a time, and each ends where it arrives at the beginning
// of another one. A node that is not in the list may have been used as a beginning: then no walk arrives there, the
// previous walk continues, and the nodes found from there do not count. Nothing is changed before `take_out_deleted`.
//
// With any content of the medium: no link is followed that does not lead to a node of a slab, and no walk continues if
// keys do not ascend, or behind a node that is no entry. Throws pmlab::error if that happens in the list.
template <class Medium, class Slab>
class chain_walks {
 public:
  // `writers`: that have a number (origin).
  chain_walks(Medium& medium, node& head, const node_table<Slab>& table, std::uint64_t writers, unsigned threads)
      : medium_(medium), table_(table), writers_(writers), threads_(threads) {
    choose_beginnings(head);
    const std::size_t groups = (parts_.size() + walks_at_once - 1) / walks_at_once;
    sync::run_in_parallel(threads_, groups, 1, [this](std::size_t group) {
      try {
        walk_group(group * walks_at_once);
      } catch (const std::bad_alloc&) {
        no_memory_.store(true, std::memory_order_relaxed);
      }
    });
    if (no_memory_.load(std::memory_order_relaxed)) throw std::bad_alloc();
    join();
  }

  // Nodes in the list.
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // Key and address of every node in the list, ascending; and in_list[n] := 1 for each number n of them.
  void collect(std::span<search_entry> entries, std::span<std::uint8_t> in_list) const {
    std::vector<std::size_t> begins;
    std::size_t total = 0;
    for (const part* p : list_) {
      begins.push_back(total);
      total += p->count;
    }
    constexpr std::size_t grain = 16;
    sync::run_in_parallel(threads_, list_.size(), grain, [&](std::size_t i) {
      const part& p = *list_[i];
      for (std::size_t n = 0; n < p.count; ++n) {
        const found_node& f = p.chunks[n / chunk_nodes][n % chunk_nodes];
        entries[begins[i] + n] = {f.key, reinterpret_cast<std::uint64_t>(&table_.at(f.number))};
        in_list[f.number] = 1;
      }
    });
  }

  // Removes the marked nodes from the list, durably.
  void take_out_deleted() {
    bool any = false;
    for (const part* p : list_)
      for (const change& c : p->repairs) {
        c.n->next.store(c.link, std::memory_order_release);  // (R1)
        media::flush(medium_, c.n->next);                    // (R2)
        any = true;
      }
    if (any) medium_.fence();  // (R3)
    // (R1) < (R3) < reuse of the removed nodes (R2). In any order, because each removes only deleted nodes.
  }

 private:
  static constexpr std::size_t walks_at_once = 16;

  struct change {
    node* n;
    link_word link;
  };

  struct found_node {
    key_type key;
    std::size_t number;
  };
  static constexpr std::size_t chunk_nodes = 256;

  // Memory for chunks: one block for many of them, so that the kernel clears huge pages if there are many.
  class chunk_store {
   public:
    found_node* take() {
      const std::scoped_lock lock(mutex_);
      if (left_ == 0) {
        blocks_.emplace_back(next_ * chunk_nodes);
        left_ = next_;
        next_ = std::min(2 * next_, most_at_once);
      }
      return &blocks_.back().all()[--left_ * chunk_nodes];
    }

   private:
    static constexpr std::size_t most_at_once = media::huge_page_bytes / (chunk_nodes * sizeof(found_node));
    std::mutex mutex_;
    std::vector<scratch<found_node>> blocks_;
    std::size_t left_ = 0;
    std::size_t next_ = 1;
  };

  struct part {
    key_type first_key = 0;
    node* start = nullptr;
    std::vector<found_node*> chunks;
    std::size_t count = 0;  // nodes in the chunks
    std::vector<change> repairs;
    std::size_t followed_by = 0;  // 0: none
    const char* broken = nullptr;
  };

  struct walk {
    part* p;
    std::size_t next_part;
    node* at;  // the node to be read next
    std::size_t number;
    node* last;
    link_word last_link;
    key_type last_key;
    std::size_t marked = 0;
  };

  void choose_beginnings(node& head) {
    std::vector<part> chosen;
    std::uint64_t mix = 1;
    for (const auto& s : table_.slabs()) {
      mix = mix * golden_ratio + 1;
      node& n = s->nodes[(mix >> 32) % Slab::capacity];
      if (is_marked(n.next.load(std::memory_order_relaxed))) continue;
      chosen.emplace_back();
      chosen.back().first_key = n.key.load(std::memory_order_relaxed);
      chosen.back().start = &n;
    }
    std::sort(chosen.begin(), chosen.end(), [](const part& a, const part& b) { return a.first_key < b.first_key; });
    parts_.emplace_back();
    parts_.back().start = &head;
    for (std::size_t i = 0; i < chosen.size(); ++i)
      if ((i == 0 || chosen[i - 1].first_key != chosen[i].first_key) &&
          (i + 1 == chosen.size() || chosen[i + 1].first_key != chosen[i].first_key))
        parts_.push_back(std::move(chosen[i]));
  }

  void walk_group(std::size_t first) {
    std::array<walk, walks_at_once> walks;
    std::size_t count = 0;
    for (std::size_t i = first; i < std::min(parts_.size(), first + walks_at_once); ++i) {
      walk& w = walks[count++];
      node* const start = parts_[i].start;
      w = {&parts_[i], i + 1, nullptr, 0, start, start->next.load(std::memory_order_acquire), 0};
      if (i == 0) {
        go_on(w, w.last_link);
      } else {
        w.at = start;
        w.number = table_.number_of(start);
        __builtin_prefetch(w.at);
      }
    }
    while (count > 0)
      for (std::size_t i = 0; i < count;) {
        if (step(walks[i]))
          ++i;
        else
          walks[i] = walks[--count];
      }
  }

  // Follows a link, as far as it leads to a node.
  void go_on(walk& w, link_word link) const noexcept {
    w.at = nullptr;
    if (target_of(link) == 0) return;
    node* const n = medium_.resolve(media::pointer<node>(target_of(link)));
    w.number = table_.number_of(n);
    if (w.number == node_table<Slab>::none) {
      w.p->broken = "a link leads to no node";
      return;
    }
    __builtin_prefetch(n);
    w.at = n;
  }

  // False: the walk has ended.
  bool step(walk& w) {
    part& p = *w.p;
    if (p.broken != nullptr) return false;
    if (w.at == nullptr) {
      lead_on(w, 0);
      return false;
    }
    node& n = *w.at;
    media::annotate_read(medium_, n);
    const key_type key = n.key.load(std::memory_order_acquire);
    const link_word link = n.next.load(std::memory_order_acquire);
    if (is_marked(link)) {
      if (++w.marked > table_.slabs().size() * Slab::capacity) {
        p.broken = "a circle of deleted nodes";
        return false;
      }
      go_on(w, link);
      return true;
    }
    w.marked = 0;
    if (p.count != 0 && key <= w.last_key) {
      p.broken = "its keys do not ascend";
      return false;
    }
    const origin from = origin::of(n.level.load(std::memory_order_acquire), medium_.locate(&n).word());
    if (from.level != level_of_entries || from.writer > writers_) {
      p.broken = "a link leads to no entry";
      return false;
    }
    while (w.next_part < parts_.size() && parts_[w.next_part].first_key < key) ++w.next_part;
    const bool joins = w.next_part < parts_.size() && parts_[w.next_part].start == &n;
    if (&n != p.start) lead_on(w, medium_.locate(&n).word());
    if (joins) {
      p.followed_by = w.next_part;
      return false;
    }
    if (p.count % chunk_nodes == 0) p.chunks.push_back(chunks_.take());
    p.chunks.back()[p.count++ % chunk_nodes] = {key, w.number};
    w.last = &n;
    w.last_link = link;
    w.last_key = key;
    go_on(w, link);
    return true;
  }

  // The successor of `last` in the list is `word`: if marked nodes were in between, its link must be updated.
  void lead_on(walk& w, link_word word) {
    if (target_of(w.last_link) != word) w.p->repairs.push_back({w.last, word});
  }

  void join() {
    for (std::size_t i = 0;; i = parts_[i].followed_by) {
      if (parts_[i].broken != nullptr) throw corrupt(parts_[i].broken);
      list_.push_back(&parts_[i]);
      size_ += parts_[i].count;
      if (parts_[i].followed_by == 0) return;
    }
  }

  Medium& medium_;
  const node_table<Slab>& table_;
  std::uint64_t writers_;
  unsigned threads_;
  chunk_store chunks_;
  std::vector<part> parts_;
  std::vector<part*> list_;
  std::size_t size_ = 0;
  std::atomic<bool> no_memory_{false};
};

}  // namespace pmlab::indexes::detail::skip_list
