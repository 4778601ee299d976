// Blocks that are about to enter or leave a string index, and that a crash must not leak.
//
// A publication makes several stores in the medium atomic, but a change of the words' index is a step of its own. So
// the ledger lists each block that waits for such a step, or for readers to leave it. Open checks the items that a
// crash left: blocks that the index points to stay, all others are freed.
//
//   G1  The ledger lists every block that is neither free nor reachable from the index.
//   G2  An item names no block that others can release: it is cleared before the lock of its word is, or together with
//       the release, in one publication.
//   G3  Each thread keeps a first page, and one more that is empty; other empty pages are freed, in one publication
//       with the store that removes them from the list. Items of all but first pages are taken and freed under the
//       mutex.
#pragma once

#include <pmlab/base/thread_blocks.hpp>
#include <pmlab/media/medium.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace pmlab::strings::detail {

enum class waits_for : std::uint64_t {
  nothing,  // the item is free
  words,    // `record`: there if the words' index leads to it
  layer,    // `record` and `prefix`: valid if `word` leads to layer `number`, whose words are erased otherwise
  readers,  // `prefix`: a value that was replaced
  removal,  // `record`: erased; layer `number` with `prefix`: to go, but if `word` leads to it
  skipped,  // `prefix`: bytes that a layer skips, there if `word` leads to them
  erased,   // `record`: unlinked
  node,     // `prefix`: the link to a node of a tree of strings, unlinked
};

// One cache line: stored in this order, `what` last, or by a publication.
struct alignas(media::cache_line_bytes) item {
  std::atomic<std::uint64_t> record{0};
  std::atomic<std::uint64_t> prefix{0};
  std::atomic<std::uint64_t> word{0};
  std::atomic<std::uint64_t> number{0};
  std::atomic<waits_for> what{waits_for::nothing};
};
static_assert(sizeof(item) == media::cache_line_bytes);

// Items of one thread.
template <std::size_t Items>
struct alignas(media::cache_line_bytes) page {
  std::atomic<std::uint64_t> next{0};
  std::array<item, Items> items{};
};

// Thread safety: `take`, `enter_record` and `clear` from any thread; the rest: one thread only.
template <media::medium Medium>
class ledger {
  static constexpr std::size_t items_per_page = media::sizes_on<Medium>.small_slabs ? 7 : 63;
  using page_type = page<items_per_page>;

  struct thread_state;
  struct page_state {
    page_state(page_type* p, std::uint64_t free_items) noexcept : where(p), free(free_items) {}
    page_type* where;
    std::atomic<std::uint64_t> free;  // bit i: item i
    thread_state* owner = nullptr;    // nullptr: it is of an earlier run, and no thread has it yet
    bool is_first = false;            // first one of its owner's; does not change while items are taken
    // Its neighbours in the list in the medium.
    page_state* before = nullptr;
    page_state* after = nullptr;
    std::size_t in_pages = 0;  // its place in `pages_`
    std::size_t in_more = 0;   // and in its owner's `more`
    [[nodiscard]] bool is_empty() const noexcept { return free.load(std::memory_order_relaxed) == all_items; }
  };
  static constexpr std::uint64_t all_items = ~std::uint64_t{0} >> (64 - items_per_page);

 public:
  // A taken item; none if there is no space for more of them. Plain bytes: it may wait among retired functions.
  struct place {
    item* where = nullptr;
    page_state* page = nullptr;
    explicit operator bool() const noexcept { return where != nullptr; }
    item* operator->() const noexcept { return where; }
  };

  // `first`: where the list of pages begins, in the medium.
  ledger(Medium& medium, std::atomic<std::uint64_t>& first) : medium_(medium), first_(first) {
    page_state* last = nullptr;
    for (std::uint64_t at = first_.load(std::memory_order_acquire); at != 0;) {
      page_type* const p = medium_.resolve(media::pointer<page_type>(at));
      media::annotate_read(medium_, *p);
      std::uint64_t free = 0;
      for (std::size_t i = 0; i < items_per_page; ++i)
        if (p->items[i].what.load(std::memory_order_acquire) == waits_for::nothing) free |= std::uint64_t{1} << i;
      pages_.push_back(std::make_unique<page_state>(p, free));
      page_state* const here = pages_.back().get();
      here->in_pages = pages_.size() - 1;
      here->before = last;
      (last == nullptr ? newest_ : last->after) = here;
      last = here;
      at = p->next.load(std::memory_order_acquire);
    }
    without_owner_ = pages_.size();
  }
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;

  // May throw std::bad_alloc: nothing was taken.
  [[nodiscard]] place take() {
    thread_state& mine = threads_.local([](std::size_t) { return std::make_unique<thread_state>(); });
    if (mine.first != nullptr)
      if (const place taken = take_from(*mine.first)) return taken;
    const std::scoped_lock lock(mutex_);
    for (auto p = mine.more.rbegin(); p != mine.more.rend(); ++p)
      if (const place taken = take_from(**p)) {
        if (mine.spare == *p) mine.spare = nullptr;
        return taken;
      }
    if (page_state* const another = another_page(mine)) return take_from(*another);
    // A full medium can be erased from by a thread that has no page yet.
    for (const auto& p : pages_)
      if (const place taken = take_from(*p)) {
        if (p->owner != nullptr && p->owner->spare == p.get()) p->owner->spare = nullptr;
        return taken;
      }
    return {};
  }

  // A step of its own: this record is in the index, and will be removed from it.
  void enter_record(const place& on, std::uint64_t record) noexcept {
    on->record.store(record, std::memory_order_release);          // (G1)
    on->what.store(waits_for::words, std::memory_order_release);  // (G2)
    media::persist(medium_, *on.where);                           // (G3) before the words' index is changed
    // (G1) < (G2): one line.
  }

  // A step of its own, for an item that waits for words: its record is freed, and a layer is removed with it.
  void enter_removal(const place& on, std::uint64_t word, std::uint64_t number, std::uint64_t prefix) noexcept {
    on->prefix.store(prefix, std::memory_order_release);            // (G8)
    on->word.store(word, std::memory_order_release);                // (G9)
    on->number.store(number, std::memory_order_release);            // (G10)
    on->what.store(waits_for::removal, std::memory_order_release);  // (G11)
    media::persist(medium_, *on.where);                             // (G12) before the words' index is changed
    // (G8), (G9), (G10) < (G11): one line.
  }
  // A step of its own: the layer stays, or is removed with its bytes; the record waits as before.
  void leave_removal(const place& on) noexcept {
    on->what.store(waits_for::words, std::memory_order_release);  // (G13)
    media::persist(medium_, on->what);                            // (G14) before the layer's number is given again
    // (G13) < (G14): then the item names no layer.
  }

  // A step of its own: these skipped bytes are in the index, and will be removed from it.
  void enter_skipped(const place& on, std::uint64_t word, std::uint64_t prefix) noexcept {
    on->prefix.store(prefix, std::memory_order_release);            // (G15)
    on->word.store(word, std::memory_order_release);                // (G16)
    on->what.store(waits_for::skipped, std::memory_order_release);  // (G17)
    media::persist(medium_, *on.where);                             // (G18) before the words' index is changed
    // (G15), (G16) < (G17): one line.
  }

  // A step of its own: the item is done.
  void clear(const place& done) noexcept {
    done->what.store(waits_for::nothing, std::memory_order_release);  // (G4)
    media::persist(medium_, done->what);                              // (G5) before the word's lock is released
    // (G4) < (G5): the item may be used again when that is durable.
    make_free(done);
  }

  // Makes an item free that is free in the medium already.
  void make_free(const place& done) noexcept {
    page_state& p = *done.page;
    const std::uint64_t bit = std::uint64_t{1} << static_cast<std::size_t>(done.where - p.where->items.data());
    if (p.is_first) {
      p.free.fetch_or(bit, std::memory_order_release);
      return;
    }
    const std::scoped_lock lock(mutex_);
    p.free.fetch_or(bit, std::memory_order_release);
    if (!p.is_empty() || p.owner == nullptr) return;
    if (p.owner->spare == nullptr)
      p.owner->spare = &p;
    else
      give_back(p);
  }

  // After recovery, while there is one thread: pages of an earlier run go back, but for a few.
  void trim() noexcept {
    constexpr std::size_t kept = 2;
    std::size_t empty = 0;
    for (page_state* p = newest_; p != nullptr;) {
      page_state* const next = p->after;
      if (p->owner == nullptr && p->is_empty() && ++empty > kept) give_back(*p);
      p = next;
    }
  }

  // Calls function(place) with every item that waits.
  template <class Function>
  void for_each_waiting(Function&& function) const {
    for (const auto& p : pages_)
      for (item& i : p->where->items)
        if (i.what.load(std::memory_order_acquire) != waits_for::nothing) function(place{&i, p.get()});
  }

  [[nodiscard]] std::uint64_t medium_bytes() const noexcept { return pages_.size() * sizeof(page_type); }
  // The bytes of DRAM, about.
  [[nodiscard]] std::uint64_t dram_bytes() const noexcept { return pages_.size() * (sizeof(page_state) + 16); }

 private:
  struct alignas(media::cache_line_bytes) thread_state {
    page_state* first = nullptr;  // its thread takes from it without the mutex, others where there is no space
    std::vector<page_state*> more;
    page_state* spare = nullptr;  // one of `more`: empty, and kept
  };

  [[nodiscard]] static place take_from(page_state& p) noexcept {
    for (std::uint64_t free = p.free.load(std::memory_order_acquire); free != 0;) {
      const int number = std::countr_zero(free);
      const std::uint64_t bit = std::uint64_t{1} << number;
      free = p.free.fetch_and(~bit, std::memory_order_acquire);
      if ((free & bit) != 0) return {&p.where->items[static_cast<std::size_t>(number)], &p};
    }
    return {};
  }

  // One of an earlier run that no thread has yet, or a new one. With the mutex.
  [[nodiscard]] page_state* another_page(thread_state& mine) {
    mine.more.reserve(mine.more.size() + 1);
    page_state* found = without_owner_ == 0 ? nullptr : newest_;
    while (found != nullptr && (found->owner != nullptr || found->free.load(std::memory_order_relaxed) == 0))
      found = found->after;
    if (found == nullptr)
      found = new_page();
    else
      --without_owner_;
    if (found == nullptr) return nullptr;
    found->owner = &mine;
    if (mine.first == nullptr) {
      mine.first = found;
      found->is_first = true;
    } else {
      found->in_more = mine.more.size();
      mine.more.push_back(found);
    }
    return found;
  }

  [[nodiscard]] page_state* new_page() {
    pages_.reserve(pages_.size() + 1);
    auto state = std::make_unique<page_state>(nullptr, all_items);
    typename Medium::publication change(medium_);
    auto* const made = media::create<page_type>(change);
    if (made == nullptr) return nullptr;
    state->where = made;
    made->next.store(first_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    media::persist(medium_, *made);                                     // (G6)
    media::publish_store(change, first_, medium_.locate(made).word());  // (G7)
    // (G6) < (G7): the list leads to whole pages only.
    change.commit();
    state->where = made;
    state->after = newest_;
    if (newest_ != nullptr) newest_->before = state.get();
    newest_ = state.get();
    newest_->in_pages = pages_.size();
    pages_.push_back(std::move(state));
    return newest_;
  }

  // Takes an empty page out of the list (G3). With the mutex, or while there is one thread.
  void give_back(page_state& p) noexcept {
    typename Medium::publication change(medium_);
    std::atomic<std::uint64_t>& to_it = p.before == nullptr ? first_ : p.before->where->next;
    media::publish_store(change, to_it, p.where->next.load(std::memory_order_relaxed));  // (G19)
    change.release(p.where, sizeof(page_type));
    // (G19) < commit: the list leads to no page that is not the ledger's.
    change.commit();
    (p.before == nullptr ? newest_ : p.before->after) = p.after;
    if (p.after != nullptr) p.after->before = p.before;
    if (p.owner == nullptr) {
      --without_owner_;
    } else {
      std::vector<page_state*>& more = p.owner->more;
      more[p.in_more] = more.back();
      more[p.in_more]->in_more = p.in_more;
      more.pop_back();
    }
    const std::size_t at = p.in_pages;
    pages_.back()->in_pages = at;
    std::swap(pages_[at], pages_.back());
    pages_.pop_back();
  }

  Medium& medium_;
  std::atomic<std::uint64_t>& first_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<page_state>> pages_;
  page_state* newest_ = nullptr;
  std::size_t without_owner_ = 0;
  thread_blocks<thread_state> threads_;
};

// An item, if one is needed, that is free again unless it is kept: also if an exception ends the operation.
template <media::medium Medium>
class spare_item {
  using place = typename ledger<Medium>::place;

 public:
  // Takes it. May throw std::bad_alloc.
  spare_item(ledger<Medium>& of, bool is_needed)
      : of_(of), taken_(is_needed ? of.take() : place{}), is_needed_(is_needed) {}
  spare_item(const spare_item&) = delete;
  spare_item& operator=(const spare_item&) = delete;
  ~spare_item() {
    if (taken_) of_.make_free(taken_);
  }

  // There is no space for it.
  [[nodiscard]] bool is_missing() const noexcept { return is_needed_ && !taken_; }
  // nullptr: none is needed.
  [[nodiscard]] item* where() const noexcept { return taken_.where; }
  // It is used from now on.
  [[nodiscard]] place keep() noexcept { return std::exchange(taken_, {}); }

 private:
  ledger<Medium>& of_;
  place taken_;
  bool is_needed_;
};

}  // namespace pmlab::strings::detail
