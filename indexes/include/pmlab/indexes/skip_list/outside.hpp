// Nodes of a skip list's slabs that look like entries and are in no list: lost, or of an insert that never returned.
#pragma once

#include <pmlab/indexes/skip_list/node.hpp>
#include <pmlab/indexes/skip_list/slabs.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::skip_list {

// A writer signs its next node when its last one is in the list, durably, or was taken back, durably (K5). So of all
// the entries that a writer signed and that are neither deleted nor in the list a crash explains the last one only: it
// was written, and its insert was cut off before its link. Any other was in the list, and a link that led there is
// lost.
struct outside_nodes {
  std::vector<node*> lost;
  std::vector<node*> unanswered;
};

// The kind of a node, by itself: `entry`: of an entry, not deleted, with a valid link; `old`: the same, without an
// origin.
enum class looks : std::uint8_t { free, entry, old };

template <class Medium, class Slab>
[[nodiscard]] looks looks_of(const Medium& medium, const node_table<Slab>& table, const Slab& s, const node& n,
                             std::uint64_t writers) noexcept {
  const std::uint64_t word = n.level.load(std::memory_order_acquire);
  if (word == 0) return looks::free;
  const origin from = origin::of(word, medium.locate(&n).word());
  if (from.level != level_of_entries) return looks::free;
  const bool is_old = from.writer == 0;
  if (is_old ? s.kind.load(std::memory_order_acquire) == Slab::kind_at(medium.locate(&s).word())
             : from.writer > writers)
    return looks::free;
  const link_word next = n.next.load(std::memory_order_acquire);
  if (is_marked(next)) return looks::free;
  // A signed node behind a lost link counts wherever its link leads: the slab there may have gone since.
  if (is_old && target_of(next) != 0 &&
      table.number_of(medium.resolve(media::pointer<node>(target_of(next)))) == node_table<Slab>::none)
    return looks::free;
  return is_old ? looks::old : looks::entry;
}

inline constexpr std::uint64_t most_levels_of_a_tower = 16;

// Finds them among the nodes of which is_in(number) is false: the list's own, and for these is_in is true. No writer
// may run. `writers`: that have a number. Throws std::bad_alloc.
template <class Medium, class Slab>
class outside_search {
 public:
  template <class IsIn>
  outside_search(const Medium& medium, const node_table<Slab>& table, std::uint64_t writers, unsigned threads,
                 IsIn&& is_in)
      : medium_(medium), table_(table), writers_(writers) {
    over_slabs(threads, [&](const Slab& s, std::size_t number, std::vector<node*>& entries, std::vector<node*>& old) {
      for (const node& n : s.nodes) {
        if (is_in(number++)) continue;
        const looks look = looks_of(medium_, table_, s, n, writers_);
        if (look == looks::free) continue;
        (look == looks::old ? old : entries).push_back(const_cast<node*>(&n));
      }
    });
    if (!entries_.empty()) recover_by_turn(threads);
    if (!old_.empty()) recover_by_links(is_in);
  }

  [[nodiscard]] const outside_nodes& found() const noexcept { return found_; }

 private:
  // Nodes that are not signed, outside, and lead to each other: so many may be left by inserts that raced.
  static constexpr std::size_t most_old_by_chance = 2;

  template <class Look>
  void over_slabs(unsigned threads, Look&& look) {
    std::mutex mutex;
    std::atomic<bool> no_memory{false};
    constexpr std::size_t grain = 16;
    sync::run_in_parallel(threads, table_.slabs().size(), grain, [&](std::size_t i) {
      std::vector<node*> entries;
      std::vector<node*> old;
      try {
        look(*table_.slabs()[i], i * Slab::capacity, entries, old);
        if (entries.empty() && old.empty()) return;
        const std::scoped_lock lock(mutex);
        entries_.insert(entries_.end(), entries.begin(), entries.end());
        old_.insert(old_.end(), old.begin(), old.end());
      } catch (const std::bad_alloc&) {
        no_memory.store(true, std::memory_order_relaxed);
      }
    });
    if (no_memory.load(std::memory_order_relaxed)) throw std::bad_alloc();
  }

  [[nodiscard]] origin origin_at(const node& n) const noexcept {
    return origin::of(n.level.load(std::memory_order_acquire), medium_.locate(&n).word());
  }

  // Reads all nodes once more: the last turn of each writer that has nodes outside.
  void recover_by_turn(unsigned threads) {
    std::vector<std::uint64_t> writers;
    for (const node* const n : entries_)
      if (const std::uint64_t writer = origin_at(*n).writer; writers.empty() || writers.back() != writer)
        writers.push_back(writer);
    std::sort(writers.begin(), writers.end());
    writers.erase(std::unique(writers.begin(), writers.end()), writers.end());
    std::vector<std::atomic<std::uint64_t>> last(writers.size());
    const auto place_of = [&](std::uint64_t writer) {
      return static_cast<std::size_t>(std::lower_bound(writers.begin(), writers.end(), writer) - writers.begin());
    };
    over_slabs(threads, [&](const Slab& s, std::size_t, std::vector<node*>&, std::vector<node*>&) {
      for (const node& n : s.nodes) {
        if (n.level.load(std::memory_order_acquire) == 0) continue;
        const origin from = origin_at(n);
        const std::size_t at = place_of(from.writer);
        if (at == writers.size() || writers[at] != from.writer || from.level > most_levels_of_a_tower) continue;
        std::uint64_t seen = last[at].load(std::memory_order_relaxed);
        while (seen < from.turn && !last[at].compare_exchange_weak(seen, from.turn, std::memory_order_relaxed)) {
        }
      }
    });
    for (node* const n : entries_) {
      const origin from = origin_at(*n);
      const bool is_last = last[place_of(from.writer)].load(std::memory_order_relaxed) == from.turn;
      (is_last ? found_.unanswered : found_.lost).push_back(n);
    }
  }

  // Nodes that are not signed are lost if they lead to another one outside, behind them in the order of keys. A few of
  // that kind are left by the inserts of earlier versions.
  template <class IsIn>
  void recover_by_links(IsIn&& is_in) {
    std::vector<node*> sorted = old_;
    std::sort(sorted.begin(), sorted.end());
    std::vector<node*> leading;
    for (node* const n : old_) {
      const node* next = follow(n->next.load(std::memory_order_acquire));
      for (int steps = 0; next != nullptr && steps < 1000 && is_marked(next->next.load(std::memory_order_acquire));
           ++steps)
        next = follow(next->next.load(std::memory_order_acquire));
      const bool leads = next != nullptr && !is_in(table_.number_of(next)) &&
                         std::binary_search(sorted.begin(), sorted.end(), next) &&
                         next->key.load(std::memory_order_acquire) > n->key.load(std::memory_order_acquire);
      (leads ? leading : found_.unanswered).push_back(n);
    }
    std::vector<node*>& kind = leading.size() > most_old_by_chance ? found_.lost : found_.unanswered;
    kind.insert(kind.end(), leading.begin(), leading.end());
  }

  // nullptr: to no node.
  [[nodiscard]] const node* follow(link_word link) const noexcept {
    if (target_of(link) == 0) return nullptr;
    const node* const n = medium_.resolve(media::pointer<node>(target_of(link)));
    return table_.number_of(n) == node_table<Slab>::none ? nullptr : n;
  }

  const Medium& medium_;
  const node_table<Slab>& table_;
  std::uint64_t writers_;
  std::vector<node*> entries_;
  std::vector<node*> old_;
  outside_nodes found_;
};

// How many writers have a number.
[[nodiscard]] inline std::uint64_t writers_of(const std::atomic<std::uint64_t>& word) noexcept {
  return std::min(word.load(std::memory_order_acquire), origin::most_writers);
}

[[nodiscard]] inline std::string text_of_lost(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " entry is" : " entries are") + " outside its list: a link is lost";
}

}  // namespace pmlab::indexes::detail::skip_list
