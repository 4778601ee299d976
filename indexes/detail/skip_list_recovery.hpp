// Recovery of a skip list: what its list leads to, in order, found by many walks at once.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/search_layer.hpp>
#include <pmlab/indexes/detail/skip_list_node.hpp>
#include <pmlab/indexes/detail/skip_list_slabs.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::skip_list {

[[nodiscard]] inline error corrupt(const std::string& what) {
  return error("this skip list is corrupt: " + what, "restore the pool from a copy");
}

// The slabs of an index, in the order of their list. Throws if that is corrupt.
template <class Slab, class Medium>
[[nodiscard]] std::vector<Slab*> slabs_from(const Medium& medium, std::uint64_t first) {
  // Brent: a list that runs in a circle comes back to a slab that was noted at a power of two.
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

// Takes the list to pieces. A list cannot be walked by two, nor faster than its memory answers; so walks begin at a
// node of each slab, in the order of their keys, many at a time, and each ends where it arrives at the beginning of
// another one. A node that is not in the list may have been taken for a beginning: then no walk arrives there, the one
// before it goes on, and what was found from there does not count. Marked nodes are taken out; nothing else is changed.
//
// Whatever the medium holds: no link is followed that does not lead to a node of a slab, and no walk goes on where keys
// do not ascend. Throws pmlab::error if that is so in the list.
template <class Medium, class Slab>
class chain_walks {
 public:
  chain_walks(Medium& medium, node& head, const node_table<Slab>& table, unsigned threads)
      : medium_(medium), table_(table), threads_(threads) {
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
    repair();
  }

  // Key and word of every node in the list, ascending; and which nodes are in it: a bit for each number of the table.
  void collect(std::vector<search_entry>& entries, std::vector<std::atomic<std::uint64_t>>& in_list) {
    std::vector<std::size_t> begins;
    std::size_t total = 0;
    for (const part* p : list_) {
      begins.push_back(total);
      total += p->found.size();
    }
    entries.resize(total);
    sync::run_in_parallel(threads_, list_.size(), 16, [&](std::size_t i) {
      std::vector<search_entry> found = std::move(list_[i]->found);
      std::copy(found.begin(), found.end(), entries.begin() + static_cast<std::ptrdiff_t>(begins[i]));
      for (const search_entry& e : found) {
        const std::size_t number = table_.number_of(reinterpret_cast<const node*>(e.word));
        in_list[number / 64].fetch_or(std::uint64_t{1} << number % 64, std::memory_order_relaxed);
      }
    });
  }

 private:
  static constexpr std::size_t walks_at_once = 16;

  struct change {
    node* n;
    link_word link;
  };

  struct part {
    key_type first_key = 0;
    node* start = nullptr;
    std::vector<search_entry> found;
    std::vector<change> repairs;
    std::size_t followed_by = 0;  // 0: none
    const char* broken = nullptr;
  };

  struct walk {
    part* p;
    std::size_t next_part;
    node* at;  // the node to be read next
    node* last;
    link_word last_link;
    std::size_t marked = 0;
  };

  void choose_beginnings(node& head) {
    std::vector<part> chosen;
    std::uint64_t mix = 1;
    for (const auto& s : table_.slabs()) {
      mix = mix * 0x9e3779b97f4a7c15U + 1;
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
      w = {&parts_[i], i + 1, nullptr, parts_[i].start, parts_[i].start->next.load(std::memory_order_acquire)};
      if (i == 0) {
        go_on(w, w.last_link);
      } else {
        w.at = parts_[i].start;
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
    if (table_.number_of(n) == node_table<Slab>::none) {
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
    media::visit(medium_, n);
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
    if (!p.found.empty() && key <= p.found.back().key) {
      p.broken = "its keys do not ascend";
      return false;
    }
    while (w.next_part < parts_.size() && parts_[w.next_part].first_key < key) ++w.next_part;
    const bool joins = w.next_part < parts_.size() && parts_[w.next_part].start == &n;
    if (&n != p.start) lead_on(w, medium_.locate(&n).word());
    if (joins) {
      p.followed_by = w.next_part;
      return false;
    }
    p.found.push_back({key, reinterpret_cast<std::uint64_t>(&n)});
    w.last = &n;
    w.last_link = link;
    go_on(w, link);
    return true;
  }

  // What follows `last` in the list is `word`: with marked nodes in between, its link must say so.
  void lead_on(walk& w, link_word word) {
    if (target_of(w.last_link) != word) w.p->repairs.push_back({w.last, word});
  }

  void join() {
    for (std::size_t i = 0;; i = parts_[i].followed_by) {
      if (parts_[i].broken != nullptr) throw corrupt(parts_[i].broken);
      list_.push_back(&parts_[i]);
      if (parts_[i].followed_by == 0) return;
    }
  }

  void repair() {
    bool any = false;
    for (const part* p : list_)
      for (const change& c : p->repairs) {
        c.n->next.store(c.link, std::memory_order_release);  // (R1)
        media::flush(medium_, c.n->next);                    // (R2)
        any = true;
      }
    if (any) medium_.fence();  // (R3)
    // (R1) < (R3) < reuse of what was taken out (R2). In any order, for each by itself takes out nodes that are
    // deleted.
  }

  Medium& medium_;
  const node_table<Slab>& table_;
  unsigned threads_;
  std::vector<part> parts_;
  std::vector<part*> list_;
  std::atomic<bool> no_memory_{false};
};

}  // namespace pmlab::indexes::detail::skip_list
