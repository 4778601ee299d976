// The leaves of an NV-Tree in the medium, free and in use: they are allocated in groups.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/detail/corruption.hpp>
#include <pmlab/indexes/detail/leaf_group.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace pmlab::indexes::detail::nv_tree {

using leaf_group = detail::leaf_group<leaf>;
using group_link = detail::group_link<leaf>;
using group_place = media::pointer<leaf_group>;

// The oldest group begins with the leaf that only leads to the first one. It is small, for trees that stay small.
inline constexpr std::size_t leaves_of_oldest_group = 8;

// How many leaves a group has, and how large it is; a page of 64 KB, or a few lines.
template <class Medium>
[[nodiscard]] constexpr std::size_t leaves_in(bool oldest) noexcept {
  return oldest ? leaves_of_oldest_group : media::sizes_on<Medium>.small_slabs ? 3 : 63;
}
template <class Medium>
[[nodiscard]] constexpr std::size_t group_bytes(bool oldest) noexcept {
  return sizeof(leaf_group) + leaves_in<Medium>(oldest) * leaf_bytes<Medium>;
}
[[nodiscard]] inline leaf_place first_leaf_of(group_place p) noexcept {
  return leaf_place(p.word() + sizeof(leaf_group));
}

// The set of free leaves is not stored: it is all leaves that the list does not reach. So neither allocating a leaf nor
// freeing it writes to the medium, and no crash leaks one. A group all of whose leaves are free is returned to the
// medium. The groups themselves are a list that begins at the root (detail/leaf_group.hpp).
//
// Thread safety: `take`, `take_outside_group_of`, `has_left`, `give_back`, `to_move` and `steps_to_shrink` from any
// number of threads, under a mutex; everything else: no concurrent call.
template <media::medium Medium>
class leaf_store {
 public:
  // Finds the groups below `root`, or makes the first one, with an empty leaf for each region. Every leaf is free then,
  // until it is claimed. Throws pmlab::error, corruption, std::bad_alloc.
  leaf_store(Medium& medium, std::atomic<std::uint64_t>& root) : medium_(medium), root_(root) {
    if (root_.load(std::memory_order_acquire) == 0) create();
    find_groups();
  }
  leaf_store(const leaf_store&) = delete;
  leaf_store& operator=(const leaf_store&) = delete;
  ~leaf_store() = default;

  // Has no entries, and leads to the first leaf. Never replaced.
  [[nodiscard]] leaf& head() const noexcept { return *medium_.resolve(head_); }

  // While the tree is opened: takes the leaf that a link leads to out of the free ones. nullptr: there is none, or it
  // was taken already.
  [[nodiscard]] leaf* claim(leaf_place p) noexcept {
    const std::optional<position> at = position_of(p);
    if (!at || (free_[at->group] & bit(at->leaf)) == 0) return nullptr;
    take_at(*at);
    return medium_.resolve(p);
  }

  // An unreachable leaf: the free one with the lowest address. nullptr: no space. `is_last`: it replaces others, so it
  // may be the last free one: after erasing, a full medium has space again.
  [[nodiscard]] leaf* take(bool is_last) noexcept {
    const std::scoped_lock guard(mutex_);
    const std::size_t stay = is_last ? 0 : 1;
    if (free_count_ <= stay && !add_group()) return nullptr;
    while (free_[lowest_] == 0) ++lowest_;
    return take_of(lowest_);
  }
  // The same for a leaf that replaces `old`: one of another group, and of none that would have to be made. nullptr:
  // there is none.
  [[nodiscard]] leaf* take_outside_group_of(const leaf& old) noexcept {
    const std::scoped_lock guard(mutex_);
    const std::optional<position> at = position_of(medium_.locate(&old));
    for (std::size_t g = lowest_; at && g < groups_.size(); ++g)
      if (free_[g] != 0 && g != at->group) return take_of(g);
    return nullptr;
  }

  // The medium durably does not lead to the leaf any more, but readers may hold it: `give_back` follows, if ever.
  void has_left(const leaf& old) noexcept {
    const std::scoped_lock guard(mutex_);
    if (const std::optional<position> at = position_of(medium_.locate(&old))) groups_[at->group].left |= bit(at->leaf);
  }

  // Frees a leaf that the medium durably does not lead to, and that no reader holds. A group that is free then, and
  // that is not kept in reserve, is returned to the medium.
  void give_back(leaf& old) noexcept {
    // Not flushed: only a salvage looks at leaves that are free, and it recognises most of them.
    old.link.store(0, std::memory_order_relaxed);
    const std::scoped_lock guard(mutex_);
    const std::optional<position> at = position_of(medium_.locate(&old));
    if (!at) return;
    free_[at->group] |= bit(at->leaf);
    groups_[at->group].left &= ~bit(at->leaf);
    ++free_count_;
    lowest_ = std::min(lowest_, at->group);
    release_if_free(at->group);
  }

  // While a fifth of the leaves and a group more are free: a leaf that should move, so that its group can be released,
  // with its low. It may not be part of the tree any more. Groups that are free are released.
  struct candidate {
    const leaf* at;
    key_type low;
  };
  [[nodiscard]] std::optional<candidate> to_move() noexcept {
    const std::scoped_lock guard(mutex_);
    if (free_count_ < (leaves() - free_count_) / 4 + in_group + spare_leaves) return std::nullopt;
    if (emptiest_ == no_group || in_tree(emptiest_) == 0) find_emptiest();
    if (emptiest_ == no_group) return std::nullopt;
    const std::uint64_t movable = in_tree(emptiest_);
    // One after the other.
    const std::uint64_t further = movable & ~((std::uint64_t{2} << cursor_) - 1);
    cursor_ = static_cast<std::size_t>(std::countr_zero(further != 0 ? further : movable));
    const leaf& found = *medium_.resolve(place_of({emptiest_, cursor_}));
    return candidate{&found, found.low.load(std::memory_order_acquire)};
  }

  // Calls of `to_move` for a leaf that was freed: two; more after many leaves have waited for a reader, and half of all
  // are free.
  [[nodiscard]] int steps_to_shrink() const noexcept {
    const std::scoped_lock guard(mutex_);
    return free_count_ > leaf_count_ / 2 ? 8 : 2;
  }

  [[nodiscard]] std::size_t leaves() const noexcept { return leaf_count_; }
  [[nodiscard]] std::size_t free_leaves() const noexcept { return free_count_; }
  // Leaves that have left the tree: readers may hold them, or there was no memory to give them back later.
  [[nodiscard]] std::size_t waiting_leaves() const noexcept {
    std::size_t waiting = 0;
    for (const group& g : groups_) waiting += count_of(g.left);
    return waiting;
  }
  [[nodiscard]] std::uint64_t medium_bytes() const noexcept {
    return (groups_.size() - 1) * group_bytes<Medium>(false) + group_bytes<Medium>(true);
  }
  [[nodiscard]] std::uint64_t dram_bytes() const noexcept {
    return groups_.capacity() * sizeof(group) + free_.capacity() * sizeof(std::uint64_t);
  }

  // Gives a leaf that is not reachable all it has, and begins to write it back. `entries` ascend. The caller fences.
  void fill(leaf& l, key_type low, leaf_place next, std::span<const entry> entries) noexcept {
    l.low.store(low, std::memory_order_relaxed);
    l.low_again.store(low, std::memory_order_relaxed);
    l.link.store(link_to(next, medium_.locate(&l), low), std::memory_order_relaxed);
    for (std::size_t i = 0; i < slots_of_leaf<Medium>; ++i) {
      const bool is_entry = i < entries.size();
      l[i].value.store(is_entry ? entries[i].value : 0, std::memory_order_relaxed);
      l[i].word.store(is_entry ? slot_word::of(entries[i].key, states::live) : slot_word{}, std::memory_order_relaxed);
    }
    medium_.flush(&l, leaf_bytes<Medium>);  // (F1) before the caller's fence, and that before a link to the leaf
  }

 private:
  static constexpr std::size_t in_group = leaves_in<Medium>(false);
  static constexpr std::size_t spare_leaves = media::sizes_on<Medium>.keeps_reserve ? in_group : 0;

  struct group {
    leaf_place first;
    group_place place;
    group_place newer;  // null: the root leads here
    bool oldest;
    std::uint64_t left = 0;  // leaves that are not in the tree any more, and wait for readers
  };
  struct position {
    std::size_t group;
    std::size_t leaf;
  };

  static constexpr std::size_t no_group = std::numeric_limits<std::size_t>::max();

  [[nodiscard]] static constexpr std::uint64_t bit(std::size_t i) noexcept { return std::uint64_t{1} << i; }
  // The bits of all leaves of a group that a search may take: not the head.
  [[nodiscard]] std::uint64_t all_of(std::size_t g) const noexcept {
    return groups_[g].oldest ? bit(leaves_of_oldest_group) - 2 : bit(in_group) - 1;
  }
  [[nodiscard]] leaf_place place_of(position at) const noexcept {
    return leaf_place(groups_[at.group].first.word() + at.leaf * leaf_bytes<Medium>);
  }

  // None: it is not a leaf.
  [[nodiscard]] std::optional<position> position_of(leaf_place p) const noexcept {
    const auto after = std::upper_bound(groups_.begin(), groups_.end(), p.word(),
                                        [](std::uint64_t word, const group& g) { return word < g.first.word(); });
    if (after == groups_.begin()) return std::nullopt;
    const auto g = static_cast<std::size_t>(after - groups_.begin()) - 1;
    const std::uint64_t offset = p.word() - groups_[g].first.word();
    const position at{g, static_cast<std::size_t>(offset / leaf_bytes<Medium>)};
    if (offset % leaf_bytes<Medium> != 0 || at.leaf >= leaves_in<Medium>(groups_[g].oldest)) return std::nullopt;
    return at;
  }

  void take_at(position at) noexcept {
    free_[at.group] &= ~bit(at.leaf);
    --free_count_;
  }

  // REQUIRES: the group has a free leaf.
  [[nodiscard]] leaf* take_of(std::size_t g) noexcept {
    const position at{g, static_cast<std::size_t>(std::countr_zero(free_[g]))};
    take_at(at);
    return medium_.resolve(place_of(at));
  }

  [[nodiscard]] std::uint64_t used_in(std::size_t g) const noexcept { return all_of(g) & ~free_[g]; }
  // Leaves that can move. Those that wait for readers go by themselves: a group that has no others is left alone, or
  // the search for a leaf to move would find them again and again.
  [[nodiscard]] std::uint64_t in_tree(std::size_t g) const noexcept { return used_in(g) & ~groups_[g].left; }

  // False: it is in use, is in reserve, or stays because there is no memory.
  bool release_if_free(std::size_t g) noexcept {
    return used_in(g) == 0 && !groups_[g].oldest && free_count_ >= in_group + spare_leaves && release(g);
  }

  // The group, but for the oldest one, that has the fewest leaves of the tree, and one at least.
  void find_emptiest() noexcept {
    emptiest_ = no_group;
    std::size_t least = in_group + 1;
    for (std::size_t g = groups_.size(); g-- > 0;) {
      if (groups_[g].oldest || release_if_free(g)) continue;
      const std::size_t movable = count_of(in_tree(g));
      if (movable != 0 && movable < least) {
        least = movable;
        emptiest_ = g;
      }
    }
  }

  // ---- groups ----

  void create() {
    typename Medium::publication change(medium_);
    void* const block = change.allocate(group_bytes<Medium>(true), media::xpline_bytes);
    if (block == nullptr) throw error("no space for an empty NV-Tree", "use a larger pool");
    write_header(*static_cast<leaf_group*>(block), {});
    const auto leaf_at = [&](std::size_t i) -> leaf& {
      return *reinterpret_cast<leaf*>(static_cast<std::byte*>(block) + sizeof(leaf_group) + i * leaf_bytes<Medium>);
    };
    for (std::size_t i = 0; i < leaves_of_oldest_group; ++i) {
      const key_type low = i == 0 || i > regions ? 0 : low_of_region(i - 1);
      fill(leaf_at(i), low, i < regions ? medium_.locate(&leaf_at(i + 1)) : leaf_place(), {});
    }
    medium_.fence();                                                              // (C1)
    change.store(root_, medium_.locate(static_cast<leaf_group*>(block)).word());  // (C2)
    change.commit();
    // (F1), (H1), (H2) < (C1) < (C2): the root leads to whole leaves.
  }

  // Writes a header, and begins to write it back.
  void write_header(leaf_group& g, group_place next) noexcept {
    const std::uint64_t check = detail::check_of_link(medium_.locate(&g), next);
    g.next.store(next, std::memory_order_relaxed);
    g.check.store(check, std::memory_order_relaxed);
    g.next_again.store(next, std::memory_order_relaxed);
    g.check_again.store(check, std::memory_order_relaxed);
    media::flush(medium_, g.next);        // (H1)
    media::flush(medium_, g.next_again);  // (H2)
    // (H1), (H2) < the caller's fence < a link to the group: the header is whole. Two of its four lines are used.
  }

  // Makes a group of free leaves. False: no space.
  bool add_group() noexcept {
    try {
      if (groups_.size() == groups_.capacity()) groups_.reserve(2 * groups_.size());
      if (free_.size() == free_.capacity()) free_.reserve(2 * free_.size());
      typename Medium::publication change(medium_);
      auto* const made = static_cast<leaf_group*>(change.allocate(group_bytes<Medium>(false), media::xpline_bytes));
      if (made == nullptr) return false;
      const group_place place = medium_.locate(made);
      const group_place newest(root_.load(std::memory_order_relaxed));
      write_header(*made, newest);
      // Not flushed: see give_back.
      for (std::size_t i = 0; i < in_group; ++i)
        medium_.resolve(leaf_place(first_leaf_of(place).word() + i * leaf_bytes<Medium>))
            ->link.store(0, std::memory_order_relaxed);
      medium_.fence();                    // (A1)
      change.store(root_, place.word());  // (A2)
      change.commit();
      // (H1), (H2) < (A1) < (A2): the list of groups goes on behind the new one.
      group_at(newest).newer = place;
      insert({first_leaf_of(place), place, {}, false});
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  // Takes a free group out of the list in the medium, and frees it. False: there is no memory for that, and it stays.
  bool release(std::size_t g) noexcept {
    const group gone = groups_[g];
    leaf_group& home = *medium_.resolve(gone.place);
    const group_place older = home.next.load(std::memory_order_relaxed);
    try {
      typename Medium::publication change(medium_);
      if (!gone.newer) {
        change.store(root_, older.word());  // (D1)
      } else {
        detail::publish_link(medium_, change, *medium_.resolve(gone.newer), older);  // (D2)
      }
      change.release(&home, group_bytes<Medium>(false));  // (D3)
      change.commit();
      // (D1), (D2), (D3) < return: one publication, so that no crash leaves a group in the list that is not allocated,
      // or one allocated that is not in the list.
    } catch (const std::exception&) {
      return false;
    }
    group_at(older).newer = gone.newer;
    groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(g));
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(g));
    free_count_ -= in_group;
    leaf_count_ -= in_group;
    lowest_ = 0;
    // The positions of the groups behind it have changed.
    if (emptiest_ >= g) emptiest_ = no_group;
    return true;
  }

  [[nodiscard]] group& group_at(group_place place) noexcept {
    return groups_[position_of(first_leaf_of(place))->group];
  }

  // Adds a group whose leaves are all free. REQUIRES: there is room in the vectors.
  void insert(const group& added) {
    const auto at = std::upper_bound(groups_.begin(), groups_.end(), added,
                                     [](const group& a, const group& b) { return a.first.word() < b.first.word(); });
    const auto g = at - groups_.begin();
    groups_.insert(at, added);
    free_.insert(free_.begin() + g, 0);
    const auto index = static_cast<std::size_t>(g);
    free_[index] = all_of(index);
    free_count_ += count_of(free_[index]);
    leaf_count_ += count_of(free_[index]);
    lowest_ = 0;
    emptiest_ = no_group;
  }

  void find_groups() {
    const auto found =
        detail::follow_groups<leaf>(medium_, root_.load(std::memory_order_acquire), false, group_bytes<Medium>,
                                    [](const std::string& text) { throw corruption{text}; });
    group_place newer;
    for (const group_place p : found.places) {
      groups_.push_back({first_leaf_of(p), p, newer, p == found.places.back()});
      newer = p;
    }
    head_ = first_leaf_of(newer);
    std::sort(groups_.begin(), groups_.end(),
              [](const group& a, const group& b) { return a.first.word() < b.first.word(); });
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      if (g > 0 && groups_[g].place.word() - groups_[g - 1].place.word() < group_bytes<Medium>(groups_[g - 1].oldest))
        throw corruption{"two leaf groups overlap"};
      free_.push_back(all_of(g));
      free_count_ += count_of(free_[g]);
    }
    leaf_count_ = free_count_;
  }

  Medium& medium_;
  std::atomic<std::uint64_t>& root_;
  leaf_place head_;
  mutable std::mutex mutex_;         // guards everything below
  std::vector<group> groups_;        // by address
  std::vector<std::uint64_t> free_;  // free leaves of each group
  std::size_t free_count_ = 0;
  std::size_t leaf_count_ = 0;       // without the head
  std::size_t lowest_ = 0;           // no group before it has a free leaf
  std::size_t emptiest_ = no_group;  // the group whose leaves move
  std::size_t cursor_ = 0;           // the leaf of it that was to move last
};

}  // namespace pmlab::indexes::detail::nv_tree
