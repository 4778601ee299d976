// Groups of leaves: the blocks in which a tree allocates its leaves in the medium, a list that begins at the root.
#pragma once

#include <pmlab/base/hash.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/pointer.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace pmlab::indexes::detail {

// 64 bits that differ if any of the words does, mostly.
[[nodiscard]] constexpr std::uint64_t check_of(std::uint64_t a, std::uint64_t b, std::uint64_t c) noexcept {
  constexpr std::uint64_t odd_a = golden_ratio;
  constexpr std::uint64_t odd_b = 0xc2b2ae3d27d4eb4fU;
  constexpr std::uint64_t odd_c = 0x165667b19e3779f9U;
  std::uint64_t mixed = a * odd_a + b * odd_b + c * odd_c;
  mixed = (mixed ^ mixed >> 32) * odd_b;
  return (mixed ^ mixed >> 29) * odd_a;
}

//   0      8       16         128          136           144        256
//   | next | check | reserved | next again | check again | reserved | leaf 0, leaf 1, ... |
//
//   G1  Every leaf of the tree lies in a group of the list that begins at the root. The last group of that list is the
//       oldest and smallest.
//   G2  The link is stored in two lines, each time with a checksum of the group's place and of it: if one line is
//       overwritten that is detected, and the other one is used.
template <class Leaf>
struct alignas(media::xpline_bytes) leaf_group {
  std::atomic<media::pointer<leaf_group>> next;
  std::atomic<std::uint64_t> check;
  std::array<std::byte, 2 * media::cache_line_bytes - 2 * sizeof(std::uint64_t)> reserved;
  std::atomic<media::pointer<leaf_group>> next_again;
  std::atomic<std::uint64_t> check_again;
  std::array<std::byte, 2 * media::cache_line_bytes - 2 * sizeof(std::uint64_t)> reserved_again;

  [[nodiscard]] Leaf* leaves() noexcept {
    static_assert(sizeof(leaf_group) == media::xpline_bytes);
    return reinterpret_cast<Leaf*>(this + 1);
  }
};

template <class Leaf>
[[nodiscard]] constexpr std::uint64_t check_of_link(media::pointer<leaf_group<Leaf>> place,
                                                    media::pointer<leaf_group<Leaf>> next) noexcept {
  constexpr std::uint64_t groups = 0x70756f7267666165U;  // a check of nothing else
  return check_of(place.word(), next.word(), groups);
}

// A group's link, as far as its checksums are valid.
template <class Leaf>
struct group_link {
  using place = media::pointer<leaf_group<Leaf>>;

  group_link(const leaf_group<Leaf>& g, place at) noexcept : next(g.next.load(std::memory_order_acquire)) {
    const place again = g.next_again.load(std::memory_order_acquire);
    first_holds = g.check.load(std::memory_order_acquire) == check_of_link(at, next);
    second_holds = g.check_again.load(std::memory_order_acquire) == check_of_link(at, again);
    is_whole = first_holds && second_holds && next == again;
    if (!first_holds && second_holds) next = again;
  }
  [[nodiscard]] bool has_check() const noexcept { return first_holds || second_holds; }

  place next;
  bool first_holds;
  bool second_holds;
  bool is_whole;
};

// The groups of a tree, as far as they can be followed.
template <class Leaf>
struct group_list {
  std::vector<media::pointer<leaf_group<Leaf>>> places;  // the newest one first
  bool is_sealed = true;                                 // the links have checksums
  bool is_complete = false;                              // the last one is the oldest
};

// Follows the list from the root's word. bytes_of(is_oldest) is the size of a group. `older_releases`: the tree may be
// of one that stored no checksums. problem(text) is called for damage, and may throw; links that are damaged, or lead
// nowhere, are not followed.
template <class Leaf, media::medium Medium, class BytesOf, class Problem>
[[nodiscard]] group_list<Leaf> follow_groups(const Medium& medium, std::uint64_t root_word, bool older_releases,
                                             BytesOf&& bytes_of, Problem&& problem) {
  group_list<Leaf> found;
  for (media::pointer<leaf_group<Leaf>> p(root_word); p;) {
    if (!media::can_name(medium, p, bytes_of(true))) {
      problem("its list of leaf groups leads nowhere");
      return found;
    }
    const group_link<Leaf> link(*medium.resolve(p), p);
    if (found.places.empty()) found.is_sealed = !older_releases || link.has_check();
    if (found.is_sealed ? !link.is_whole : link.has_check())
      problem("the header of leaf group " + std::to_string(p.word()) + " is overwritten");
    const bool leads_on = !found.is_sealed || link.has_check();
    const bool oldest = leads_on && !link.next;
    if (!media::can_name(medium, p, bytes_of(oldest))) {
      problem("a leaf group does not end in the pool");
      return found;
    }
    found.places.push_back(p);
    found.is_complete = oldest;
    if (!leads_on) return found;
    p = link.next;
    // One pointer moves twice as fast as the other: in a cycle they meet.
    if (p == found.places[found.places.size() / 2]) {
      problem("its list of leaf groups has no end");
      return found;
    }
  }
  return found;
}

// Has a group lead to another one, in both of its lines (G2), as part of `change`.
template <class Leaf, media::medium Medium, media::publication Publication>
void publish_link(const Medium& medium, Publication& change, leaf_group<Leaf>& group,
                  media::pointer<leaf_group<Leaf>> next) {
  const std::uint64_t check = check_of_link(medium.locate(&group), next);
  media::publish_store(change, group.next, next);          // (L1)
  media::publish_store(change, group.check, check);        // (L2)
  media::publish_store(change, group.next_again, next);    // (L3)
  media::publish_store(change, group.check_again, check);  // (L4)
  // (L1), (L2), (L3), (L4) < return: the caller commits them with what they are part of, so that the checksums are
  // those of the link.
}

// The leaves of a tree that is salvaged: its list leads to their groups.
template <class Leaf, media::medium Medium>
class salvaged_leaves {
 public:
  using place = media::pointer<Leaf>;

  // `list`: from follow_groups; leaves_in(is_oldest) is the number of leaves of a group, each of so many bytes.
  template <class LeavesIn>
  salvaged_leaves(const Medium& medium, const group_list<Leaf>& list, std::uint64_t leaf_bytes, LeavesIn&& leaves_in)
      : leaf_bytes_(leaf_bytes) {
    for (const auto group : list.places) {
      const bool oldest = list.is_complete && group == list.places.back();
      const place first = medium.locate(medium.resolve(group)->leaves());
      groups_.emplace(first.word(), leaves_in(oldest));
      if (oldest) first_of_oldest_ = first;
    }
  }

  // Null: the list does not lead to the oldest group.
  [[nodiscard]] place first_of_oldest() const noexcept { return first_of_oldest_; }

  [[nodiscard]] bool contain(place p) const {
    const auto after = groups_.upper_bound(p.word());
    if (after == groups_.begin()) return false;
    const auto& [first, count] = *std::prev(after);
    return (p.word() - first) % leaf_bytes_ == 0 && (p.word() - first) / leaf_bytes_ < count;
  }

  // Calls function(place) for every leaf of every group, until it answers true.
  template <class Function>
  bool any_of(Function&& function) const {
    for (const auto& [first, count] : groups_)
      for (std::uint64_t i = 0; i < count; ++i)
        if (function(place(first + i * leaf_bytes_))) return true;
    return false;
  }

 private:
  std::uint64_t leaf_bytes_;
  std::map<std::uint64_t, std::uint64_t> groups_;  // where their leaves begin, and how many there are
  place first_of_oldest_;
};

}  // namespace pmlab::indexes::detail
