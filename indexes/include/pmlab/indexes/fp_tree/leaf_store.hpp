// The leaves of an FP-tree, free and in use: groups of them in the medium, and a descriptor of each in DRAM.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/corruption.hpp>
#include <pmlab/indexes/detail/object_pool.hpp>
#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/free_leaves.hpp>
#include <pmlab/indexes/fp_tree/group_table.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::fp_tree {

// The set of free leaves is not stored: it is all leaves that the list does not reach. So neither allocating a leaf nor
// freeing it writes to the medium, and no crash leaks one. A group all of whose leaves are free is returned to the
// medium.
//
// Thread safety: operations that allocate or free leaves and groups, and `shrink`, from any number of threads, under a
// mutex; `home_of` from any number of threads, wait-free; everything else: no concurrent call.
template <media::medium Medium>
class leaf_store {
  using group_pointer = media::pointer<leaf_group>;

 public:
  // Finds the groups below `root`, or makes the first one, with an empty leaf. No leaf is free or linked then. Throws
  // pmlab::error, corruption, std::bad_alloc.
  leaf_store(Medium& medium, std::atomic<std::uint64_t>& root) : medium_(medium), root_(root) {
    if (root_.load(std::memory_order_acquire) == 0 && !add_group(true))
      throw error("no space for an empty FP-tree", "use a larger pool");
    find_groups();
  }
  leaf_store(const leaf_store&) = delete;
  leaf_store& operator=(const leaf_store&) = delete;
  ~leaf_store() = default;

  // The leaf that is always the first one (G1).
  [[nodiscard]] descriptor& leftmost() const noexcept { return *leftmost_; }

  // The address of the named leaf, from DRAM that is usually cached. nullptr: only its descriptor knows.
  [[nodiscard]] leaf* home_of(leaf_name name) const noexcept {
    leaf* const first = table_.leaves_of(name.group());
    return first == nullptr ? nullptr : first + name.place_in_group();
  }

  // An unreachable leaf, neither linked nor locked (though late writers may lock it for a moment, and see that it was
  // reused). nullptr: no space.
  [[nodiscard]] descriptor* take() noexcept {
    const std::scoped_lock guard(mutex_);
    if (free_.count() == 0) {
      if (waiting_ != nullptr)
        keep(*waiting_);
      else if (!add_group(false))
        return nullptr;
    }
    return free_.take();
  }

  // The same, but from another group than the group of `d`; makes no group. nullptr: there is none.
  [[nodiscard]] descriptor* take_outside_group_of(const descriptor& d) noexcept {
    const std::scoped_lock guard(mutex_);
    return free_.take_outside(descriptor_page::of(d));
  }

  // Frees a leaf that is not linked, and durably unreachable in the medium.
  void give_back(descriptor& d) noexcept {
    const std::scoped_lock guard(mutex_);
    free_.add(d);
  }

  // The next step to release groups: one of the first two, or nothing.
  struct shrink_step {
    descriptor* moves = nullptr;         // a linked leaf that should move to another group
    descriptor_page* is_free = nullptr;  // a group to be released, with this ticket, once no reader is left
    std::uint64_t ticket = 0;
    bool waiting = false;  // there are groups to be released
  };

  // A step while more than a fifth of the leaves are free, plus one group: as many as can be released without being
  // needed again soon. The group with the most free leaves is next. Where leaves are kept in reserve, the last group
  // beside the oldest one stays: in a pool that others have filled meanwhile, there may be no room for another.
  [[nodiscard]] shrink_step shrink() noexcept {
    const std::scoped_lock guard(mutex_);
    shrink_step step{.waiting = waiting_ != nullptr};
    if (free_.count() < (leaves() - free_.count()) / 4 + spare_leaves) return step;
    if (spare_leaves != 0 && groups_ == 2) return step;
    descriptor_page* const page = free_.emptiest();
    if (page == nullptr || page->older == nullptr) return step;
    if (page->free_count == leaves_per_group) {
      wait(*page);
      step.is_free = page;
      step.ticket = page->ticket;
      return step;
    }
    for (std::size_t seen = 0; seen < leaves_per_group && step.moves == nullptr; ++seen) {
      descriptor& d = page->descriptors[page->cursor++ % leaves_per_group];
      if (d.is_linked()) step.moves = &d;
    }
    return step;
  }

  // Returns a group of free leaves, which `shrink` returned, to the medium, unless it was used since. REQUIRES: no
  // reader may still hold a leaf or a descriptor of it.
  //
  // It runs as a retired function, which must not throw: if the publication fails, the group stays.
  void release_group(descriptor_page& page, std::uint64_t ticket) {
    const std::scoped_lock guard(mutex_);
    if (page.ticket != ticket) return;
    try {
      unlink_group(page);
    } catch (const std::exception&) {
      keep(page);
      return;
    }
    wait_no_longer(page);
    (page.newer == nullptr ? newest_ : page.newer->older) = page.older;
    page.older->newer = page.newer;
    table_.remove(page.group);
    pages_.give_up(&page);
  }

  // The group that `shrink` returned stays.
  void keep_group(descriptor_page& page, std::uint64_t ticket) noexcept {
    const std::scoped_lock guard(mutex_);
    if (page.ticket == ticket) keep(page);
  }

  // The word of `home`'s bitmap with these slots, and with the link that it has (L4).
  [[nodiscard]] std::uint64_t bitmap_of(const leaf& home, slot_set used) const noexcept {
    return is_sealed_ ? sealed(medium_.locate(&home), used, home.next.load(std::memory_order_relaxed)) : used;
  }

  // ---- for recovery and statistics ----

  [[nodiscard]] bool is_sealed() const noexcept { return is_sealed_; }

  // A leaf while the tree is opened: its group's position in the order of places, times leaves_per_group, and its own
  // position in the group. All positions are below leaf_positions().
  using leaf_position = std::uint32_t;
  static constexpr leaf_position no_leaf = ~leaf_position{0};

  [[nodiscard]] std::size_t groups() const noexcept { return places_.size(); }
  [[nodiscard]] std::size_t leaf_positions() const noexcept { return places_.size() * leaves_per_group; }
  [[nodiscard]] std::size_t leaves_of(std::size_t group) const noexcept { return leaves_in(places_[group].oldest); }
  [[nodiscard]] leaf_position position_of_leftmost() const noexcept { return leftmost_position_; }
  [[nodiscard]] descriptor& at(leaf_position i) const noexcept {
    return places_[i / leaves_per_group].page->descriptors[i % leaves_per_group];
  }
  [[nodiscard]] media::pointer<leaf> place_of(leaf_position i) const noexcept {
    return media::pointer<leaf>(places_[i / leaves_per_group].first_leaf + i % leaves_per_group * sizeof(leaf));
  }

  // The position of a leaf; no_leaf if `p` names none.
  [[nodiscard]] leaf_position position_of(media::pointer<leaf> p) const noexcept {
    const auto after = std::upper_bound(places_.begin(), places_.end(), p.word(),
                                        [](std::uint64_t word, const place& g) { return word < g.first_leaf; });
    if (after == places_.begin()) return no_leaf;
    const place& g = *(after - 1);
    const std::uint64_t distance = p.word() - g.first_leaf;
    if (distance % sizeof(leaf) != 0 || distance / sizeof(leaf) >= leaves_in(g.oldest)) return no_leaf;
    return static_cast<leaf_position>(static_cast<std::size_t>(after - 1 - places_.begin()) * leaves_per_group +
                                      distance / sizeof(leaf));
  }

  // Stores in the descriptors of a group the places of their leaves; `leftmost` has it already.
  void settle_group(std::size_t group) noexcept {
    leaf* const homes = medium_.resolve(media::pointer<leaf>(places_[group].first_leaf));
    for (std::size_t i = 0; i < leaves_of(group); ++i) places_[group].page->descriptors[i].home = homes + i;
  }

  // Makes every leaf that is not linked free. The ones at low addresses are taken first.
  void free_what_is_not_linked() noexcept {
    for (auto g = places_.rbegin(); g != places_.rend(); ++g)
      for (std::size_t i = leaves_in(g->oldest); i > 0; --i)
        if (descriptor& d = g->page->descriptors[i - 1]; !d.is_linked()) free_.add(d);
    places_ = {};
  }

  [[nodiscard]] std::uint64_t leaves() const noexcept {
    return leaves_of_oldest_group + (groups_ - 1) * leaves_per_group;
  }
  [[nodiscard]] std::uint64_t free_leaves() const noexcept { return free_.count(); }
  // The bytes of the medium, with the groups that wait for their readers.
  [[nodiscard]] std::uint64_t medium_bytes() const noexcept {
    return group_bytes(true) + (groups_ + groups_that_wait_ - 1) * group_bytes(false);
  }
  [[nodiscard]] std::uint64_t dram_bytes() const { return pages_.bytes() + table_.bytes(); }

 private:
  // Where the leaves of a group are, while the index is opened.
  struct place {
    std::uint64_t first_leaf;  // its pointer's word
    std::size_t in_list;       // its place in the medium's list of groups
    descriptor_page* page;
    bool oldest;
  };

  // Leaves that always stay free. Without them groups are allocated and freed in small trees.
  static constexpr std::size_t spare_leaves = media::sizes_on<Medium>.keeps_reserve ? leaves_per_group : 0;

  [[nodiscard]] static leaf_group& group_of(const descriptor_page& page) noexcept {
    return *(reinterpret_cast<leaf_group*>(page.descriptors[0].home) - 1);
  }

  // Adds a group of free leaves; the oldest one's leaf 0 becomes the empty tree. False: no space, nothing has changed.
  bool add_group(bool oldest) noexcept {
    descriptor_page* const page = oldest ? nullptr : pages_.take();
    if (!oldest && page == nullptr) return false;
    typename Medium::publication change(medium_);
    auto* const group = static_cast<leaf_group*>(change.allocate(group_bytes(oldest), alignof(leaf_group)));
    if (group == nullptr) {
      if (page != nullptr) pages_.give_back(page);
      return false;
    }
    if (oldest) is_sealed_ = true;
    group->next.store(group_pointer(root_.load(std::memory_order_relaxed)), std::memory_order_relaxed);
    if (is_sealed_)
      add_checks(*group);
    else
      remove_checks(*group);
    media::flush(medium_, group->next);  // (G1)
    clear_leaves(*group, oldest);
    if (oldest) {
      leaf& first = group->leaves()[0];
      first.next.store({}, std::memory_order_relaxed);
      first.bitmap.store(bitmap_of(first, 0), std::memory_order_relaxed);
      medium_.flush(&first, offsetof(leaf, slots));  // (G2)
    }
    medium_.fence();                                    // (G3)
    change.store(root_, medium_.locate(group).word());  // (G4)
    change.commit();
    // (G1), (G2), (G5), (G6), (G7) < (G3) < (G4): the root never names memory that is not durable (A6); the group is
    // allocated with the very store that makes it reachable (A4).
    if (oldest) return true;
    ++groups_;
    for (std::size_t i = 0; i < leaves_per_group; ++i) page->descriptors[i].home = group->leaves() + i;
    page->group = table_.add(group->leaves());
    page->older = newest_;
    newest_->newer = page;
    newest_ = page;
    for (std::size_t i = leaves_per_group; i > 0; --i) free_.add(page->descriptors[i - 1]);
    return true;
  }

  // A block may hold old bytes: of a group that another tree took and a crash cancelled, or of a pool that was on the
  // device before. A leaf with an old seal would be taken for one that a lost link cut off. Flushes nothing where
  // all is zero, as in a new pool file, and all elsewhere: a process that was killed here may have left some bitmaps
  // zero and not durable.
  void clear_leaves(leaf_group& group, bool oldest) noexcept {
    bool was_used = false;
    for (std::size_t i = 0; i < leaves_in(oldest); ++i) {
      std::atomic<std::uint64_t>& bitmap = group.leaves()[i].bitmap;
      if (bitmap.load(std::memory_order_relaxed) == 0) continue;
      bitmap.store(0, std::memory_order_relaxed);
      was_used = true;
    }
    if (was_used) medium_.flush(group.leaves(), leaves_in(oldest) * sizeof(leaf));  // (G6) Redundant when no bitmap.
    // Most lines of a group are of its slots.
  }

  // Removes the checks of a tree without seals: old checks would give it one.
  void remove_checks(leaf_group& group) noexcept {
    if (group.check_again.load(std::memory_order_relaxed) == 0) return;
    group.check.store(0, std::memory_order_relaxed);
    group.next_again.store({}, std::memory_order_relaxed);
    group.check_again.store(0, std::memory_order_relaxed);
    media::flush(medium_, group.next_again);  // (G7)
  }

  // Makes the link of a group known to both of its lines (G2), and begins to write the second one back.
  void add_checks(leaf_group& group) noexcept {
    const group_pointer next = group.next.load(std::memory_order_relaxed);
    const std::uint64_t check = check_of_link(medium_.locate(&group), next);
    group.check.store(check, std::memory_order_relaxed);
    group.next_again.store(next, std::memory_order_relaxed);
    group.check_again.store(check, std::memory_order_relaxed);
    media::flush(medium_, group.next_again);  // (G5)
  }

  // Takes a waiting group out of the list in the medium, and frees it. Throws if there is no memory for that; nothing
  // has changed then.
  void unlink_group(descriptor_page& page) {
    leaf_group& group = group_of(page);
    typename Medium::publication change(medium_);
    const group_pointer older = medium_.locate(&group_of(*page.older));
    if (page.newer == nullptr)
      change.store(root_, older.word());  // (D1)
    else
      publish_link(change, group_of(*page.newer), older);
    change.release(&group, group_bytes(false));  // (D2)
    change.commit();
    // (D1), (D2) < return: one publication, so that no crash leaves a group in the list that is not allocated, or one
    // allocated that is not in the list. No link of the list of leaves led there when its leaves were freed.
  }

  // A group of free leaves that waits for its readers is in a list of its own, with a fresh ticket. Its leaves can be
  // allocated again at any time: late readers of a leaf see by its version that it was reused.
  void wait(descriptor_page& page) noexcept {
    free_.forget(page);
    --groups_;
    ++groups_that_wait_;
    page.ticket = ++last_ticket_;
    page_list::push(waiting_, page);
  }
  void wait_no_longer(descriptor_page& page) noexcept {
    page.ticket = 0;
    --groups_that_wait_;
    page_list::remove(waiting_, page);
  }
  void keep(descriptor_page& page) noexcept {
    wait_no_longer(page);
    ++groups_;
    for (std::size_t i = leaves_per_group; i > 0; --i) free_.add(page.descriptors[i - 1]);
  }

  // Has `group` lead to another one.
  void publish_link(typename Medium::publication& change, leaf_group& group, group_pointer next) {
    if (is_sealed_)
      detail::publish_link(medium_, change, group, next);
    else
      media::publish_store(change, group.next, next);  // (D3)
    // (D3) < return: one publication with (D2).
  }

  void find_groups() {
    const auto found = detail::follow_groups<leaf>(medium_, root_.load(std::memory_order_acquire), true, group_bytes,
                                                   [](const std::string& text) { throw corruption{text}; });
    is_sealed_ = found.is_sealed;
    groups_ = found.places.size();
    constexpr std::size_t most_groups = (std::size_t{no_leaf} - 1) / leaves_per_group;
    if (groups_ > most_groups) throw corruption{"its list of leaf groups is too long"};
    descriptor_page* const pages = pages_.take_row(groups_);
    if (pages == nullptr) throw std::bad_alloc();
    places_.reserve(groups_);
    for (const group_pointer p : found.places) {
      leaf* const first = medium_.resolve(p)->leaves();
      places_.push_back({medium_.locate(first).word(), places_.size(), nullptr, p == found.places.back()});
    }
    std::sort(places_.begin(), places_.end(),
              [](const place& a, const place& b) { return a.first_leaf < b.first_leaf; });
    for (std::size_t g = 0; g < groups_; ++g) {
      if (g > 0 && places_[g].first_leaf - places_[g - 1].first_leaf < group_bytes(places_[g - 1].oldest))
        throw corruption{"two leaf groups overlap"};
      places_[g].page = pages + g;
      pages[g].group = table_.add(medium_.resolve(media::pointer<leaf>(places_[g].first_leaf)));
      if (!places_[g].oldest) continue;
      leftmost_position_ = static_cast<leaf_position>(g * leaves_per_group);
      leftmost_ = &pages[g].descriptors[0];
      settle_group(g);
    }
    link_pages();
  }

  // Links the pages in the order of the medium's list.
  void link_pages() {
    std::vector<descriptor_page*> in_list(groups_);
    for (const place& g : places_) in_list[g.in_list] = g.page;
    newest_ = in_list.front();
    for (std::size_t i = 1; i < groups_; ++i) {
      in_list[i]->newer = in_list[i - 1];
      in_list[i - 1]->older = in_list[i];
    }
  }

  Medium& medium_;
  std::atomic<std::uint64_t>& root_;
  std::mutex mutex_;  // guards everything below
  object_pool<descriptor_page> pages_;
  group_table table_;          // read without the mutex
  std::vector<place> places_;  // in order of first_leaf; only while the index is opened
  bool is_sealed_ = false;     // its leaves have seals, and its groups checks
  leaf_position leftmost_position_ = 0;
  descriptor* leftmost_ = nullptr;
  descriptor_page* newest_ = nullptr;  // the first one of the list of groups
  fp_tree::free_leaves free_;
  std::size_t groups_ = 0;
  std::size_t groups_that_wait_ = 0;  // for readers, to be released; not among groups_
  descriptor_page* waiting_ = nullptr;
  std::uint64_t last_ticket_ = 0;
};

}  // namespace pmlab::indexes::detail::fp_tree
