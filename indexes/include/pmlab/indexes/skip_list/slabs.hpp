// The allocator of a skip list's nodes.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/base/thread_blocks.hpp>
#include <pmlab/indexes/skip_list/node.hpp>
#include <pmlab/indexes/skip_list/slab_directory.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/version_lock.hpp>

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

// Allocates nodes one by one, allocates slabs from the medium, and releases empty slabs. The set of free nodes is in
// DRAM only: an open computes it again, from the lists.
//
// Thread safety: any operation from any number of threads, except `adopt` and the walks over slabs; one thread at a
// time may empty slabs. Each thread has free nodes of its own; its surplus is available to others; when the medium is
// full, half of its nodes are, too.
//
// Invariants:
//   B1  A node is in use (in a list, about to be linked, or retired), or free in one thread's lists, or free in the
//       record of its slab. So no thread and no reader uses a slab all of whose nodes are free in its record: a node
//       that was in a list is free only when no guard is left that may reach it (K3), and when no link that a crash may
//       restore leads to it (Q1 < Q2).
//   B2  A slab leaves the list of slabs and is released to the medium by one publication: a crash finds it in the list
//       or free, never both, and never neither.
//   B3  The nodes of a closed slab are not allocated while others are available. When there is no space, it is opened.
template <class Medium>
class slabs {
 public:
  using slab_type = slab<slab_bytes<Medium>()>;
  using publication = typename Medium::publication;
  using record = slab_record<slab_type>;
  static constexpr std::size_t batch = media::reclaim_batch_on<Medium>(sync::epochs::usual_batch);

  // `first`: where the list of slabs begins, in the medium. `zeroed`: nodes that were never used have level 0.
  slabs(Medium& medium, bool zeroed) : medium_(medium), zeroed_(zeroed) {}

  // Allocates the first slab as a part of `change`. nullptr: no space.
  [[nodiscard]] slab_type* make(publication& change, std::uint64_t next) const {
    auto* const made = static_cast<slab_type*>(change.allocate(sizeof(slab_type), alignof(slab_type)));
    if (made == nullptr) return nullptr;
    made->next.store(next, std::memory_order_relaxed);
    made->kind.store(slab_type::kind_at(medium_.locate(made).word()), std::memory_order_relaxed);
    if (zeroed_) {
      for (node& n : made->nodes) {
        n.key.store(0, std::memory_order_relaxed);
        n.value.store(0, std::memory_order_relaxed);
        n.next.store(0, std::memory_order_relaxed);
        n.level.store(0, std::memory_order_relaxed);
      }
      media::persist(medium_, *made);  // (A1)
    } else {
      // The memory may be that of a pool that was on the device before, or of a former list: a node with an old
      // signature would be taken for one that a lost link cut off.
      bool was_used = false;
      for (node& n : made->nodes) {
        if (n.level.load(std::memory_order_relaxed) == 0) continue;
        n.level.store(0, std::memory_order_relaxed);
        was_used = true;
      }
      if (was_used) media::flush(medium_, *made);  // (A4)
      media::persist(medium_, made->next);         // (A2) with `kind`. Redundant when (A4) has flushed it.
    }
    // (A1) < (A3), (A4) < (A2) < (A3): the list never leads to a slab whose own link is not durable, nor one whose
    // unused nodes would be taken for used ones.
    return made;
  }

  // Words of the medium: where the list of slabs begins, and how many writers have a number.
  // `heads`: where lists begin.
  void begin_at(std::atomic<std::uint64_t>& first, std::atomic<std::uint64_t>& writers,
                std::span<const node> heads) noexcept {
    first_ = &first;
    writers_ = &writers;
    heads_ = heads;
  }

  // A node for exclusive use. nullptr: no space. `recover(slab, found)` adds to `found` the free nodes of a slab that
  // an earlier run left (see leave_unrecovered).
  template <class Recover>
  [[nodiscard]] node* allocate(Recover&& recover) {
    thread_state& mine = this_thread();
    for (bool recovered_one = false, is_full = false;;) {
      if (node* const n = take_own(mine); n != nullptr) return n;
      if (take_shared(mine)) continue;
      // One for each slab that is taken: an open of a full index costs the first insert no walk over all of it.
      if (!recovered_one || is_full) {
        if (record* const left = next_unrecovered(); left != nullptr) {
          recovered_one = true;
          learn(*left, recover);
          continue;
        }
      }
      if (take_slab(mine)) continue;
      if (!is_full) {
        is_full = true;
        continue;
      }
      if (!open_closed() && !take_snipped(mine) && !take_from_others(mine)) return nullptr;
    }
  }

  // A node that is free already, in a slab that is not being emptied. nullptr: there is none.
  [[nodiscard]] node* allocate_known() {
    thread_state& mine = this_thread();
    do {
      if (node* const n = take_own(mine); n != nullptr) return n;
    } while (take_shared(mine));
    return nullptr;
  }

  // Writes into `n`, which no thread else has, whose node it is from now on, and of which level.
  void sign(node& n, std::uint64_t level) {
    thread_state& mine = this_thread();
    if (mine.signature.writer == 0 || mine.signature.turn == origin::most_turns)
      mine.signature = {0, next_writer(), 0};
    else
      ++mine.signature.turn;
    mine.signature.level = level;
    n.level.store(mine.signature.word(medium_.locate(&n).word()), std::memory_order_relaxed);
  }

  // Frees a node that was never part of a list.
  void give_back(node& n) {
    // A node that looks like an entry and is in no list would count as lost (K5).
    if (!is_marked(n.next.load(std::memory_order_relaxed)) && n.level.load(std::memory_order_relaxed) != 0) {
      n.level.store(0, std::memory_order_relaxed);  // (G1)
      media::persist(medium_, n.level);             // (G2)
      // (G1) < (G2) < the next node that this thread signs.
    }
    thread_state& mine = this_thread();
    const std::scoped_lock own(mine.own);
    keep_free(mine, n);
    share_some(mine);
  }

  // Frees a node that no thread can read any more, and that was snipped off behind `before`. Without memory for that it
  // is lost until the next open: the erase has happened.
  void give_back_snipped(node& n, node& before) noexcept {
    thread_state* const known = this_thread_if_memory();
    if (known == nullptr) return lose_one();
    thread_state& mine = *known;
    const std::scoped_lock own(mine.own);
    keep(mine.snipped, {&n, &before});
    if (mine.snipped.size() >= 2 * batch) {
      release_snipped(mine);
      share_some(mine);
      may_be_sparse_.store(true, std::memory_order_relaxed);
    }
  }

  // Slabs that an open has found, the newest one first, and which of their nodes are used, slab by slab.
  void adopt(const std::vector<slab_type*>& found, const std::vector<std::uint8_t>& is_used) {
    for (std::size_t i = found.size(); i-- > 0;) {
      record& r = directory_.add(*found[i]);
      for (std::size_t n = 0; n < slab_type::capacity; ++n)
        if (is_used[i * slab_type::capacity + n] == 0) directory_.put(r, found[i]->nodes[n]);
    }
  }
  // Slabs whose free nodes are unknown, the newest one first. They are recovered one by one, when nodes are needed.
  void leave_unrecovered(const std::vector<slab_type*>& found) {
    for (std::size_t i = found.size(); i-- > 0;) {
      record& r = directory_.add(*found[i]);
      r.recovered = false;
      unrecovered_.push_back(&r);
    }
  }

  // ---- emptying slabs ----

  // Recovers a slab that an earlier run left, if there is one: its free nodes count, too.
  template <class Recover>
  void learn_of_one(Recover&& recover) {
    if (record* const left = next_unrecovered(); left != nullptr) learn(*left, recover);
  }

  // True once after nodes were freed: then a slab may be sparse.
  [[nodiscard]] bool may_be_sparse() noexcept {
    return may_be_sparse_.load(std::memory_order_relaxed) && may_be_sparse_.exchange(false, std::memory_order_relaxed);
  }

  // The best slab to empty, if too many nodes are free: more than a third of them, and half a slab. Its nodes are not
  // allocated from now on. If it is not recovered yet, recover(slab, found) does that. nullptr: there is none.
  template <class Recover>
  [[nodiscard]] record* close_emptiest(Recover&& recover) {
    std::size_t threads = 0;
    for (thread_state* t = states_.load(std::memory_order_acquire); t != nullptr; t = t->next) ++threads;
    // Nearly always this is decided without reading the threads' lists.
    if (!is_sparse(threads * (slab_type::capacity + most_free + 2 * batch))) return nullptr;
    std::size_t free_elsewhere = 0;
    for (thread_state* t = states_.load(std::memory_order_acquire); t != nullptr; t = t->next) {
      const std::scoped_lock own(t->own);
      free_elsewhere += t->free.size() + t->rest.count + t->snipped.size();
    }
    if (!is_sparse(free_elsewhere)) return nullptr;
    record* found = nullptr;
    bool is_recovered = true;
    {
      const std::scoped_lock guard(mutex_);
      found = directory_.emptiest();
      if (found == nullptr) return nullptr;
      is_recovered = found->recovered;
      if (is_recovered) {
        directory_.close(*found);
        closed_.fetch_add(1, std::memory_order_acq_rel);
      } else {
        // Another thread is at it already.
        const auto left = std::find(unrecovered_.begin(), unrecovered_.end(), found);
        if (left == unrecovered_.end()) return nullptr;
        unrecovered_.erase(left);
      }
    }
    if (!is_recovered) {
      learn(*found, recover);
      return nullptr;
    }
    collect(*found);
    return found;
  }

  // Removes the free nodes of a closed slab from the threads' lists.
  void collect(record& r) {
    for (thread_state* t = states_.load(std::memory_order_acquire); t != nullptr; t = t->next) {
      const std::scoped_lock own(t->own);
      const std::scoped_lock guard(mutex_);
      if (!r.closed) return;
      std::erase_if(t->free, [&](const node* n) {
        if (!r.has(*n)) return false;
        directory_.put(r, *n);
        return true;
      });
      if (t->rest.count == 0 || !r.has(*t->rest.first)) continue;
      for (; t->rest.count > 0; --t->rest.count) directory_.put(r, *t->rest.first++);
    }
  }

  // Makes the snipped nodes of all threads free, and so returns the nodes of closed slabs that wait there.
  void release_all_snipped() {
    for (thread_state* t = states_.load(std::memory_order_acquire); t != nullptr; t = t->next) {
      const std::scoped_lock own(t->own);
      if (!t->snipped.empty()) release_snipped(*t);
    }
  }

  // Nodes in use, except in closed slabs; free nodes that threads have are included.
  [[nodiscard]] std::size_t used() {
    const std::scoped_lock guard(mutex_);
    return directory_.open_nodes() - directory_.open_free();
  }

  // The nodes `first` to `first` + 63 of a slab that are in use, as bits.
  [[nodiscard]] std::uint64_t used_among(const record& r, std::size_t first) {
    const std::scoped_lock guard(mutex_);
    const std::size_t left = slab_type::capacity - first;
    const std::uint64_t all = left < record::word_bits ? (std::uint64_t{1} << left) - 1 : ~std::uint64_t{0};
    return all & ~r.free_nodes[first / record::word_bits];
  }

  // Gives a closed slab back to the medium. False: some of its nodes are in use, or it was opened again.
  bool release_if_empty(record& r) {
    const std::scoped_lock guard(mutex_);
    if (!r.closed || !r.is_empty()) return false;
    publication change(medium_);
    change.store(r.newer == nullptr ? *first_ : r.newer->slab->next,
                 r.slab->next.load(std::memory_order_relaxed));  // (F1)
    change.release(r.slab, sizeof(slab_type));                   // (F2)
    change.commit();
    // (Q2) < (F1), (F2), which are one change: no link of a crash image leads there.
    closed_.fetch_sub(1, std::memory_order_relaxed);
    any_released_ = true;
    directory_.remove(r);
    return true;
  }

  // Its nodes are handed out again. `stays`: it is not chosen another time.
  void open_again(record& r, bool stays) {
    const std::scoped_lock guard(mutex_);
    r.stays = r.stays || stays;
    if (!r.closed) return;
    directory_.reopen(r);
    closed_.fetch_sub(1, std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_closed(const record& r) {
    const std::scoped_lock guard(mutex_);
    return r.closed;
  }

  // A node of a list was snipped off, and there was no memory to free it later: it is lost until the next open.
  void lose_one() noexcept { lost_.fetch_add(1, std::memory_order_relaxed); }

  // Nodes that are free or will be, and those that are lost. REQUIRES: no writer, and no slab is unrecovered.
  [[nodiscard]] std::size_t out_of_use() const {
    std::size_t nodes = directory_.all_free() + lost_.load(std::memory_order_relaxed);
    threads_.for_each([&](const thread_state& t) { nodes += t.free.size() + t.rest.count + t.snipped.size(); });
    return nodes;
  }

  // DRAM of the free nodes' state, approximately.
  [[nodiscard]] std::uint64_t dram_bytes() const {
    std::uint64_t bytes = directory_.bytes() + bytes_of(unrecovered_);
    threads_.for_each([&](const thread_state& t) { bytes += sizeof t + bytes_of(t.free) + bytes_of(t.snipped); });
    return bytes;
  }

 private:
  static constexpr std::size_t most_free = 8 * batch;  // free nodes of a thread, before it shares half of them

  struct snipped_node {
    node* n;
    node* before;
  };

  // State of one thread. With `own` held, for a moment, other threads take from the lists.
  struct alignas(media::cache_line_bytes) thread_state {
    sync::version_lock own;
    std::vector<node*> free;
    node_run rest{nullptr, 0};
    std::vector<snipped_node> snipped;
    origin signature;  // signature of the node that this thread signed last
    thread_state* next = nullptr;
  };

  template <class T>
  [[nodiscard]] static std::uint64_t bytes_of(const std::vector<T>& list) noexcept {
    return std::span(list.data(), list.capacity()).size_bytes();
  }

  thread_state& this_thread() {
    return threads_.local([this](std::size_t /*number*/) {
      auto made = std::make_unique<thread_state>();
      // One thread at a time is here. States are never taken away.
      made->next = states_.load(std::memory_order_relaxed);
      states_.store(made.get(), std::memory_order_release);
      return made;
    });
  }

  // nullptr: this is the thread's first call, and there is no memory for its state.
  thread_state* this_thread_if_memory() noexcept {
    try {
      return &this_thread();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }

  // A number that no other thread has, of no other run either.
  std::uint64_t next_writer() {
    for (;;) {
      const std::uint64_t number =
          (writers_->fetch_add(1, std::memory_order_relaxed) + 1) & origin::most_writers;  // (N1)
      media::persist(medium_, *writers_);                                                  // (N2)
      // (N1) < (N2) < use: no run after a crash gives this number again.
      if (number != 0) return number;
    }
  }

  // nullptr: it has none.
  [[nodiscard]] node* take_own(thread_state& mine) {
    const std::scoped_lock own(mine.own);
    if (mine.free.empty() && mine.rest.count == 0 && mine.snipped.size() >= batch) release_snipped(mine);
    if (!mine.free.empty()) {
      node* const n = mine.free.back();
      mine.free.pop_back();
      return n;
    }
    if (mine.rest.count == 0) return nullptr;
    --mine.rest.count;
    return mine.rest.first++;
  }

  // Makes the nodes that this thread has snipped off free. False: there are none.
  bool take_snipped(thread_state& mine) {
    const std::scoped_lock own(mine.own);
    if (mine.snipped.empty()) return false;
    release_snipped(mine);
    return true;
  }

  // Half of the nodes that another thread has, which may be idle. False: no other thread has one.
  bool take_from_others(thread_state& mine) {
    for (thread_state* other = states_.load(std::memory_order_acquire); other != nullptr; other = other->next) {
      if (other == &mine) continue;
      std::vector<node*> free;
      std::vector<snipped_node> snipped;
      node_run rest{nullptr, 0};
      {
        const std::scoped_lock lock(other->own);
        take_half(other->free, free);
        take_half(other->snipped, snipped);
        rest.count = (other->rest.count + 1) / 2;
        other->rest.count -= rest.count;
        rest.first = other->rest.first + other->rest.count;
      }
      if (free.empty() && snipped.empty() && rest.count == 0) continue;
      const std::scoped_lock own(mine.own);
      for (node* const n : free) keep(mine.free, n);
      for (const snipped_node& s : snipped) keep(mine.snipped, s);
      if (rest.count != 0) mine.rest = rest;  // it had none: it has taken all that was its own
      return true;
    }
    return false;
  }

  // With so many free nodes in the threads' lists: more than a third are free, and half a slab; and there are several
  // slabs.
  bool is_sparse(std::size_t free_elsewhere) {
    const std::scoped_lock guard(mutex_);
    const std::size_t all = directory_.open_nodes();
    const std::size_t free = directory_.open_free() + free_elsewhere;
    return 3 * free > all + slab_type::capacity * 3 / 2 && all > slab_type::capacity;
  }

  // Without memory it takes nothing: the caller may be an insert that has linked its entry already.
  template <class T>
  static void take_half(std::vector<T>& from, std::vector<T>& to) noexcept {
    const auto half = from.end() - static_cast<std::ptrdiff_t>((from.size() + 1) / 2);
    try {
      to.assign(half, from.end());
    } catch (const std::bad_alloc&) {
      return;
    }
    from.erase(half, from.end());
  }

  // Keeps an element. Without memory the node is lost until the next open.
  template <class T>
  void keep(std::vector<T>& list, T element) noexcept {
    try {
      list.push_back(element);
    } catch (const std::bad_alloc&) {
      lose_one();
    }
  }

  // Makes the snipping durable, so that no crash leads to a reused node. REQUIRES: `own` is held.
  void release_snipped(thread_state& mine) {
    {
      // A link of a slab that was released since needs no flush: it was marked after the snipping, durably. On a medium
      // of DRAM it may no longer be mapped.
      std::unique_lock guard(mutex_, std::defer_lock);
      if (!media::is_durable(medium_)) guard.lock();
      for (const snipped_node& s : mine.snipped) {
        if (!is_mapped(*s.before)) continue;
        media::flush(medium_, s.before->next);  // (Q1) Redundant when the link was overwritten since, and flushed.
      }
    }
    medium_.fence();  // (Q2) Redundant when each (Q1) was.
    // (Q1) < (Q2) < reuse. If the link has been overwritten since, it or its replacement was made durable then: links
    // are overwritten by inserts and marks, which flush them, and by snipping, which flushes them here.
    for (const snipped_node& s : mine.snipped) keep_free(mine, *s.n);
    mine.snipped.clear();
  }

  // `n` is free from now on: in the lists of this thread, or in the record of its slab if that is being emptied. With
  // `own` held.
  void keep_free(thread_state& mine, node& n) {
    if (closed_.load(std::memory_order_acquire) != 0) {
      const std::scoped_lock guard(mutex_);
      if (record* const r = directory_.of(n); r != nullptr && r->closed) return directory_.put(*r, n);
    }
    keep(mine.free, &n);
  }

  [[nodiscard]] bool is_mapped(const node& n) const noexcept {
    return media::is_durable(medium_) || !any_released_ || directory_.of(n) != nullptr ||
           (&n >= heads_.data() && &n < heads_.data() + heads_.size());
  }

  // Shares some of the free nodes. REQUIRES: `own` is held.
  void share_some(thread_state& mine) {
    if (mine.free.size() <= most_free) return;
    const std::scoped_lock guard(mutex_);
    while (mine.free.size() > most_free / 2) {
      node& n = *mine.free.back();
      directory_.put(*directory_.of(n), n);
      mine.free.pop_back();
    }
  }

  bool take_shared(thread_state& mine) {
    const std::scoped_lock own(mine.own);
    try {
      mine.free.reserve(mine.free.size() + batch);
    } catch (const std::bad_alloc&) {
      return false;
    }
    const auto before = static_cast<std::ptrdiff_t>(mine.free.size());
    {
      const std::scoped_lock guard(mutex_);
      if (!directory_.hand_out(batch, [&](node& n) { mine.free.push_back(&n); })) return false;
    }
    // They are taken from the end: neighbours one after the other.
    std::reverse(mine.free.begin() + before, mine.free.end());
    return true;
  }

  record* next_unrecovered() {
    const std::scoped_lock guard(mutex_);
    if (unrecovered_.empty()) return nullptr;
    record* const found = unrecovered_.back();
    unrecovered_.pop_back();
    return found;
  }

  template <class Recover>
  void learn(record& r, Recover&& recover) {
    std::vector<node*> found;
    recover(*r.slab, found);
    const std::scoped_lock guard(mutex_);
    for (const node* const n : found) directory_.put(r, *n);
    r.recovered = true;
  }

  // False: none is closed.
  bool open_closed() {
    const std::scoped_lock guard(mutex_);
    if (closed_.load(std::memory_order_relaxed) == 0) return false;
    directory_.for_each([&](record& r) {
      if (r.closed) directory_.reopen(r);
    });
    closed_.store(0, std::memory_order_relaxed);
    return true;
  }

  bool take_slab(thread_state& mine) {
    slab_type* made = nullptr;
    {
      const std::scoped_lock guard(mutex_);
      publication change(medium_);
      made = make(change, first_->load(std::memory_order_relaxed));
      if (made == nullptr) return false;
      record* known = nullptr;
      try {
        known = &directory_.add(*made);
        change.store(*first_, medium_.locate(made).word());  // (A3)
        change.commit();
      } catch (const std::bad_alloc&) {
        if (known != nullptr) directory_.remove(*known);
        return false;
      }
    }
    const std::scoped_lock own(mine.own);
    mine.rest = {made->nodes.data(), slab_type::capacity};
    return true;
  }

  Medium& medium_;
  bool zeroed_;
  std::atomic<std::uint64_t>* first_ = nullptr;
  std::atomic<std::uint64_t>* writers_ = nullptr;
  std::span<const node> heads_;
  std::mutex mutex_;
  slab_directory<slab_type> directory_;
  std::vector<record*> unrecovered_;
  bool any_released_ = false;
  std::atomic<std::size_t> closed_{0};  // slabs
  std::atomic<bool> may_be_sparse_{false};
  std::atomic<std::size_t> lost_{0};  // nodes that no list has, for lack of memory
  std::atomic<thread_state*> states_{nullptr};
  thread_blocks<thread_state> threads_;
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

  // The node of a number.
  [[nodiscard]] node& at(std::size_t number) const noexcept {
    return slabs_[number / Slab::capacity]->nodes[number % Slab::capacity];
  }
  // Nodes that have a number.
  [[nodiscard]] std::size_t size() const noexcept { return slabs_.size() * Slab::capacity; }

  [[nodiscard]] const std::vector<Slab*>& slabs() const noexcept { return slabs_; }

 private:
  static constexpr std::uint32_t empty = ~std::uint32_t{0};

  [[nodiscard]] std::size_t hash(std::uintptr_t page) const noexcept {
    return (page * golden_ratio >> 20) & (places_.size() - 1);
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
