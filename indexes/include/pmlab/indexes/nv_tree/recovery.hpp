// Opens an NV-Tree: follows its list of leaves, validates them, and makes their descriptors.
#pragma once

#include <pmlab/indexes/detail/corruption.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/descriptor.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>
#include <pmlab/indexes/nv_tree/leaf_store.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <atomic>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::nv_tree {

// Every change of an NV-Tree commits by one store, so there is nothing to complete after a crash: a leaf is in the list
// or free. The list is followed by one thread, a line of each leaf; the rest of the leaves is read by all threads.
template <media::medium Medium>
class recovery {
 public:
  recovery(Medium& medium, leaf_store<Medium>& store, unsigned threads)
      : medium_(medium), store_(store), threads_(media::sizes_on<Medium>.recovers_in_parallel ? threads : 1) {}

  // The descriptors, linked, from left to right. Throws corruption, std::bad_alloc.
  std::vector<std::unique_ptr<descriptor>> run() {
    follow_the_list();
    for (std::size_t i = 0; i < found_.size(); ++i) {
      const bool ends = i + 1 == found_.size();
      found_[i]->last.store(ends ? std::numeric_limits<key_type>::max() : found_[i + 1]->low - 1,
                            std::memory_order_relaxed);
      if (!ends) found_[i]->next.store(found_[i + 1].get(), std::memory_order_relaxed);
    }
    constexpr std::size_t grain = 16;
    std::atomic<const descriptor*> damaged{nullptr};
    sync::run_in_parallel(threads_, found_.size(), grain, [&](std::size_t i) {
      if (!read_slots(*found_[i])) damaged.store(found_[i].get(), std::memory_order_relaxed);
    });
    if (const descriptor* const d = damaged.load(); d != nullptr)
      throw corruption{"slots of leaf " + where(d->entries()) + " are overwritten"};
    return std::move(found_);
  }

 private:
  [[nodiscard]] std::string where(const leaf& l) const { return std::to_string(medium_.locate(&l).word()); }

  void follow_the_list() {
    leaf* at = &store_.head();
    std::size_t regions_begun = 0;
    for (;;) {
      media::annotate_read(medium_, *at);
      const read_header header(*at, medium_.locate(at));
      if (!header.is_whole) throw corruption{"the header of leaf " + where(*at) + " is overwritten"};
      if (at != &store_.head()) {
        const bool begins = regions_begun < regions && header.low == low_of_region(regions_begun);
        const bool follows = !found_.empty() && header.low > found_.back()->low &&
                             region_of(header.low) == region_of(found_.back()->low);
        if (!begins && !follows) throw corruption{"leaf " + where(*at) + " is not in the order of keys"};
        regions_begun += begins ? 1 : 0;
        found_.push_back(std::make_unique<descriptor>(header.low, at));
      }
      if (!header.next) break;
      at = store_.claim(header.next);
      if (at == nullptr) throw corruption{"its list of leaves leads nowhere, or in a circle"};
    }
    if (regions_begun != regions) throw corruption{"its list of leaves ends too soon"};
  }

  // False: there is something that no operation leaves behind.
  bool read_slots(descriptor& d) const noexcept {
    const leaf& l = d.entries();
    medium_.annotate_read(&l, leaf_bytes<Medium>);
    const key_type last = d.last.load(std::memory_order_relaxed);
    std::size_t appended = 0;
    for (std::size_t i = 0; i < slots_of_leaf<Medium>; ++i) {
      const slot_word word = l[i].word.load(std::memory_order_acquire);
      if (word.is(states::free)) {
        if (word.word != 0) return false;
        continue;
      }
      // Keys that were erased may be above a leaf's range: rows of new leaves are linked behind its entries.
      const key_type key = word.key(d.low);
      const bool is_live = word.is(states::live);
      if (appended != i || !(is_live || word.is(states::dead)) || key < d.low || (is_live && key > last)) return false;
      appended = i + 1;
      if (is_live) d.set_mark(i, fingerprint_of(key));
    }
    d.appended.store(appended, std::memory_order_relaxed);
    return true;
  }

  Medium& medium_;
  leaf_store<Medium>& store_;
  unsigned threads_;
  std::vector<std::unique_ptr<descriptor>> found_;
};

}  // namespace pmlab::indexes::detail::nv_tree
