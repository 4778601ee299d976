// Blocks that are on their way into a string index or out of it: what a crash must not leak.
//
// A publication makes several stores in the medium one step, but a change of the words' index is a step of its own. So
// each block that waits for such a step, or for readers to leave it, stands in the ledger; what a crash left there is
// judged at open: what the index leads to stays, all else goes back.
//
//   G1  A block that the index does not lead to and that is not free stands in the ledger.
//   G2  An item names no block that others can release: it is cleared before the lock of its word is, or together with
//       the release, in one publication.
#pragma once

#include <pmlab/media/medium.hpp>
#include <pmlab/media/thread_blocks.hpp>

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
  layer,    // `record` and `prefix`: there if `word` leads to layer `number`, whose words are to go otherwise
  readers,  // `prefix`: a value that was replaced
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

// Thread safety: `take`, `enter_record` and `clear` from any thread; the rest while there is one.
template <media::medium Medium>
class ledger {
  // On a medium that wants collisions, few: more pages are made and used again.
  static constexpr std::size_t items_per_page = [] {
    if constexpr (requires { Medium::lock_stripes; })
      return std::size_t{7};
    else
      return std::size_t{63};
  }();
  using page_type = page<items_per_page>;

  struct page_state {
    page_state(page_type* p, std::uint64_t free_items) noexcept : where(p), free(free_items) {}
    page_type* where;
    std::atomic<std::uint64_t> free;  // bit i: item i
  };

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
    for (std::uint64_t at = first_.load(std::memory_order_acquire); at != 0;) {
      page_type* const p = medium_.resolve(media::pointer<page_type>(at));
      media::visit(medium_, *p);
      std::uint64_t free = 0;
      for (std::size_t i = 0; i < items_per_page; ++i)
        if (p->items[i].what.load(std::memory_order_acquire) == waits_for::nothing) free |= std::uint64_t{1} << i;
      pages_.push_back(std::make_unique<page_state>(p, free));
      at = p->next.load(std::memory_order_acquire);
    }
  }
  ledger(const ledger&) = delete;
  ledger& operator=(const ledger&) = delete;

  [[nodiscard]] place take() {
    thread_state& mine = threads_.local([](std::size_t) { return std::make_unique<thread_state>(); });
    for (page_state* p : mine.pages)
      if (const place taken = take_from(*p)) return taken;
    mine.pages.reserve(mine.pages.size() + 1);  // a page that was made must not get lost
    page_state* const more = another_page();
    if (more == nullptr) return {};
    mine.pages.push_back(more);
    return take_from(*more);
  }

  // A step of its own: this record is in the index, and about to be taken out of it.
  void enter_record(const place& on, std::uint64_t record) noexcept {
    on->record.store(record, std::memory_order_release);          // (G1)
    on->what.store(waits_for::words, std::memory_order_release);  // (G2)
    media::persist(medium_, *on.where);                           // (G3) before the words' index is changed
    // (G1) < (G2): one line.
  }

  // A step of its own: nothing waits any more.
  void clear(const place& done) noexcept {
    done->what.store(waits_for::nothing, std::memory_order_release);  // (G4)
    media::persist(medium_, done->what);                              // (G5) before the word's lock is released
    // (G4) < (G5): the item may be used again when that is durable.
    make_free(done);
  }

  // In the medium, the item is free.
  void make_free(const place& done) noexcept {
    const auto number = static_cast<std::size_t>(done.where - done.page->where->items.data());
    done.page->free.fetch_or(std::uint64_t{1} << number, std::memory_order_release);
  }

  // Calls function(place) with every item that waits.
  template <class Function>
  void for_each_waiting(Function&& function) const {
    for (const auto& p : pages_)
      for (item& i : p->where->items)
        if (i.what.load(std::memory_order_acquire) != waits_for::nothing) function(place{&i, p.get()});
  }

  [[nodiscard]] std::uint64_t medium_bytes() const noexcept { return pages_.size() * sizeof(page_type); }

 private:
  struct alignas(media::cache_line_bytes) thread_state {
    std::vector<page_state*> pages;
  };

  [[nodiscard]] static place take_from(page_state& p) noexcept {
    const std::uint64_t free = p.free.load(std::memory_order_acquire);
    if (free == 0) return {};
    const int number = std::countr_zero(free);
    // Only this page's thread takes; others give back.
    p.free.fetch_and(~(std::uint64_t{1} << number), std::memory_order_acquire);
    return {&p.where->items[static_cast<std::size_t>(number)], &p};
  }

  // One of an earlier run that no thread has yet, or a new one.
  [[nodiscard]] page_state* another_page() {
    const std::scoped_lock lock(mutex_);
    if (given_out_ < pages_.size()) return pages_[given_out_++].get();
    pages_.reserve(pages_.size() + 1);
    auto state = std::make_unique<page_state>(nullptr, ~std::uint64_t{0} >> (64 - items_per_page));
    typename Medium::publication change(medium_);
    auto* const made = media::create<page_type>(change);
    if (made == nullptr) return nullptr;
    state->where = made;
    made->next.store(first_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    media::persist(medium_, *made);                                     // (G6)
    media::publish_store(change, first_, medium_.locate(made).word());  // (G7)
    // (G6) < (G7): the list leads to whole pages only.
    change.commit();
    pages_.push_back(std::move(state));
    return pages_[given_out_++].get();
  }

  Medium& medium_;
  std::atomic<std::uint64_t>& first_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<page_state>> pages_;
  std::size_t given_out_ = 0;
  media::thread_blocks<thread_state> threads_;
};

}  // namespace pmlab::strings::detail
