// Where the nodes of a skip list come from, and where they go.
#pragma once

#include <pmlab/indexes/detail/skip_list_node.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/thread_blocks.hpp>
#include <pmlab/sync/epoch.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::skip_list {

// Free nodes that follow each other in a slab.
struct node_run {
  node* first;
  std::size_t count;
};

// Hands out nodes one by one, and takes slabs from the medium. Which nodes are free is known in DRAM only: an open
// finds out again, from what the lists lead to.
//
// Thread safety: any operation from any number of threads, `adopt` and the walks over slabs excepted. Each thread has
// free nodes of its own; what it has too many of, others can have.
template <class Medium>
class slabs {
 public:
  using slab_type = slab<slab_bytes<Medium>()>;
  using publication = typename Medium::publication;

  // `first`: where the list of slabs begins, in the medium. `zeroed`: nodes that were never used have level 0.
  slabs(Medium& medium, bool zeroed) : medium_(medium), zeroed_(zeroed) {}

  // Allocates the first slab as a part of `change`. nullptr: no space.
  [[nodiscard]] slab_type* make(publication& change, std::uint64_t next) const {
    auto* const made = static_cast<slab_type*>(change.allocate(sizeof(slab_type), alignof(slab_type)));
    if (made == nullptr) return nullptr;
    made->next.store(next, std::memory_order_relaxed);
    if (zeroed_) {
      for (node& n : made->nodes) {
        n.key.store(0, std::memory_order_relaxed);
        n.value.store(0, std::memory_order_relaxed);
        n.next.store(0, std::memory_order_relaxed);
        n.level.store(0, std::memory_order_relaxed);
      }
      media::persist(medium_, *made);  // (A1)
    } else {
      media::persist(medium_, made->next);  // (A2)
    }
    // (A1) < (A3), (A2) < (A3): the list never leads to a slab whose own link is not durable, nor one whose unused
    // nodes would be taken for used ones.
    return made;
  }

  void begin_at(std::atomic<std::uint64_t>& first) noexcept { first_ = &first; }

  // A node that nobody else has. nullptr: no space. `judge(slab, found)` adds to `found` the free nodes of a slab that
  // an earlier run left (see leave_unjudged).
  template <class Judge>
  [[nodiscard]] node* allocate(Judge&& judge) {
    thread_state& mine = this_thread();
    for (bool judged_one = false, is_full = false;;) {
      if (!mine.free.empty()) {
        node* const n = mine.free.back();
        mine.free.pop_back();
        return n;
      }
      if (mine.rest.count > 0) {
        --mine.rest.count;
        return mine.rest.first++;
      }
      if (mine.snipped.size() >= batch) {
        release_snipped(mine);
        continue;
      }
      if (take_shared(mine)) continue;
      // One for each slab that is taken: an open of a full index costs the first insert no walk over all of it.
      if (!judged_one || is_full) {
        if (slab_type* const left = next_unjudged(); left != nullptr) {
          judged_one = true;
          judge(*left, mine.free);
          continue;
        }
      }
      if (take_slab(mine)) continue;
      if (!is_full) {
        is_full = true;
        continue;
      }
      if (mine.snipped.empty()) return nullptr;
      release_snipped(mine);
    }
  }

  // Takes back a node that was never part of a list.
  void give_back(node& n) {
    thread_state& mine = this_thread();
    keep(mine.free, &n);
    share_some(mine);
  }

  // Takes back a node that no thread can read any more, and that was snipped off behind `before`.
  void give_back_snipped(node& n, node& before) {
    thread_state& mine = this_thread();
    keep(mine.snipped, {&n, &before});
    if (mine.snipped.size() >= 2 * batch) {
      release_snipped(mine);
      share_some(mine);
    }
  }

  // Free nodes that an open has found.
  void adopt(std::vector<node_run> runs) { runs_ = std::move(runs); }
  // Slabs whose free nodes nobody knows yet. They are looked at one by one, when nodes are needed.
  void leave_unjudged(std::vector<slab_type*> found) { unjudged_ = std::move(found); }

  // DRAM for what is known of free nodes, roughly.
  [[nodiscard]] std::uint64_t dram_bytes() const {
    std::uint64_t bytes = bytes_of(runs_) + bytes_of(shared_) + bytes_of(unjudged_);
    threads_.for_each([&](const thread_state& t) { bytes += sizeof t + bytes_of(t.free) + bytes_of(t.snipped); });
    return bytes;
  }

 private:
  static constexpr std::size_t batch = sync::reclaim_batch<Medium>();
  static constexpr std::size_t most_free = 8 * batch;  // of a thread, before it shares half of them

  struct snipped_node {
    node* n;
    node* before;
  };

  struct alignas(media::cache_line_bytes) thread_state {
    std::vector<node*> free;
    node_run rest{nullptr, 0};
    std::vector<snipped_node> snipped;
  };

  template <class T>
  [[nodiscard]] static std::uint64_t bytes_of(const std::vector<T>& list) noexcept {
    return std::span(list.data(), list.capacity()).size_bytes();
  }

  thread_state& this_thread() {
    return threads_.local([](std::size_t /*number*/) { return std::make_unique<thread_state>(); });
  }

  // Without memory the node is lost until the next open.
  template <class T>
  static void keep(std::vector<T>& list, T element) noexcept {
    try {
      list.push_back(element);
    } catch (const std::bad_alloc&) {
    }
  }

  // Makes the snipping durable, so that no crash leads to what the nodes are used for next.
  void release_snipped(thread_state& mine) {
    for (const snipped_node& s : mine.snipped) media::flush(medium_, s.before->next);  // (Q1)
    medium_.fence();                                                                   // (Q2)
    // (Q1) < (Q2) < reuse. If the link has been overwritten since, it or what replaced it was made durable then:
    // links are overwritten by inserts and marks, which flush them, and by snipping, which leaves them to the same end.
    for (const snipped_node& s : mine.snipped) keep(mine.free, s.n);
    mine.snipped.clear();
  }

  void share_some(thread_state& mine) {
    if (mine.free.size() <= most_free) return;
    const std::scoped_lock guard(mutex_);
    while (mine.free.size() > most_free / 2) {
      keep(shared_, mine.free.back());
      mine.free.pop_back();
    }
  }

  bool take_shared(thread_state& mine) {
    const std::scoped_lock guard(mutex_);
    if (!runs_.empty()) {
      mine.rest = runs_.back();
      runs_.pop_back();
      return true;
    }
    for (std::size_t i = 0; i < batch && !shared_.empty(); ++i) {
      keep(mine.free, shared_.back());
      shared_.pop_back();
    }
    return !mine.free.empty();
  }

  slab_type* next_unjudged() {
    const std::scoped_lock guard(mutex_);
    if (unjudged_.empty()) return nullptr;
    slab_type* const found = unjudged_.back();
    unjudged_.pop_back();
    return found;
  }

  bool take_slab(thread_state& mine) {
    const std::scoped_lock guard(mutex_);
    publication change(medium_);
    slab_type* const made = make(change, first_->load(std::memory_order_relaxed));
    if (made == nullptr) return false;
    change.store(*first_, medium_.locate(made).word());  // (A3)
    change.commit();
    mine.rest = {made->nodes.data(), slab_type::capacity};
    return true;
  }

  Medium& medium_;
  bool zeroed_;
  std::atomic<std::uint64_t>* first_ = nullptr;
  std::mutex mutex_;
  std::vector<node_run> runs_;
  std::vector<node*> shared_;
  std::vector<slab_type*> unjudged_;
  media::thread_blocks<thread_state> threads_;
};

// Which addresses are nodes: for code that follows links that may be corrupt.
template <class Slab>
class node_table {
 public:
  // `found`: without duplicates.
  explicit node_table(const std::vector<Slab*>& found) : slabs_(found) {
    std::size_t size = 16;
    while (size < 4 * found.size()) size *= 2;
    places_.assign(size, empty);
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::uintptr_t first = reinterpret_cast<std::uintptr_t>(found[i]);
      add(first / sizeof(Slab), i);
      if ((first + sizeof(Slab) - 1) / sizeof(Slab) != first / sizeof(Slab)) add(first / sizeof(Slab) + 1, i);
    }
  }

  static constexpr std::size_t none = ~std::size_t{0};

  // A number for each node, slab by slab; `none` if `n` is not one.
  [[nodiscard]] std::size_t number_of(const node* n) const noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(n);
    for (std::size_t at = hash(address / sizeof(Slab));; at = (at + 1) & (places_.size() - 1)) {
      if (places_[at] == empty) return none;
      const auto first = reinterpret_cast<std::uintptr_t>(slabs_[places_[at]]->nodes.data());
      const std::uintptr_t offset = address - first;
      if (address >= first && offset < Slab::capacity * sizeof(node))
        return offset % sizeof(node) == 0 ? places_[at] * Slab::capacity + offset / sizeof(node) : none;
    }
  }

  [[nodiscard]] const std::vector<Slab*>& slabs() const noexcept { return slabs_; }

 private:
  static constexpr std::uint32_t empty = ~std::uint32_t{0};

  [[nodiscard]] std::size_t hash(std::uintptr_t page) const noexcept {
    return (page * 0x9e3779b97f4a7c15U >> 20) & (places_.size() - 1);
  }
  void add(std::uintptr_t page, std::size_t i) {
    std::size_t at = hash(page);
    while (places_[at] != empty) at = (at + 1) & (places_.size() - 1);
    places_[at] = static_cast<std::uint32_t>(i);
  }

  std::vector<Slab*> slabs_;
  std::vector<std::uint32_t> places_;  // by the page that a slab touches: number of the slab
};

}  // namespace pmlab::indexes::detail::skip_list
