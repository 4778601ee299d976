// Reads an NV-Tree that does not open: all its leaves, with or without a link that leads to them.
#pragma once

#include <pmlab/indexes/detail/leaf_group.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>
#include <pmlab/indexes/nv_tree/leaf_store.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_set>
#include <vector>

namespace pmlab::indexes::detail::nv_tree {

// Reads the leaves that the list leads to, as far as its links are intact; then those outside of it that look like
// leaves, in the order of their lows. A leaf that was replaced long ago may be among them. Only leaves of groups are
// read, so that a wrong link brings up nothing that never was one.
template <class Medium, class Function>
class salvager {
 public:
  salvager(Medium& medium, Function& function) : medium_(medium), function_(function) {}

  void run(std::uint64_t root_word) {
    const leaf_place head = find_groups(root_word);
    if (head) follow_the_list(head);
    // An intact list has all entries: what is outside of it are free leaves.
    if (!problems_.empty()) read_what_is_outside();
    if (damaged_slots_ != 0) add(std::to_string(damaged_slots_) + " slots are overwritten");
    if (!problems_.empty()) throw corruption{problems_};
  }

 private:
  void add(const std::string& problem) { problems_ += (problems_.empty() ? "" : ", ") + problem; }

  // Null: the list of groups does not lead to the oldest one.
  leaf_place find_groups(std::uint64_t root_word) {
    for (group_place p(root_word); p;) {
      if (!media::can_name(medium_, p, group_bytes<Medium>(true))) {
        add("its list of leaf groups leads nowhere");
        return {};
      }
      const group_link link(*medium_.resolve(p), p);
      if (!link.is_whole) add("the header of leaf group " + std::to_string(p.word()) + " is overwritten");
      const bool oldest = link.has_check() && !link.next;
      if (!media::can_name(medium_, p, group_bytes<Medium>(oldest))) {
        add("a leaf group does not end in the pool");
        return {};
      }
      if (!groups_.emplace(first_leaf_of(p).word(), leaves_in<Medium>(oldest)).second) {
        add("its list of leaf groups has no end");
        return {};
      }
      if (oldest) return first_leaf_of(p);
      if (!link.has_check()) return {};
      p = link.next;
    }
    return {};
  }

  [[nodiscard]] bool is_leaf(leaf_place p) const {
    const auto after = groups_.upper_bound(p.word());
    if (after == groups_.begin()) return false;
    const auto& [first, count] = *std::prev(after);
    return (p.word() - first) % leaf_bytes<Medium> == 0 && (p.word() - first) / leaf_bytes<Medium> < count;
  }

  void follow_the_list(leaf_place head) {
    std::optional<key_type> above;
    seen_.insert(head.word());
    for (leaf_place p = head;;) {
      const read_header header(*medium_.resolve(p), p);
      if (p != head) {
        if (header.is_whole && above && header.low <= *above)
          add("leaf " + std::to_string(p.word()) + " is not in the order of keys");
        above = header.low;
        give(p);
      }
      if (!header.is_whole) add("the header of leaf " + std::to_string(p.word()) + " is overwritten");
      if (!header.leads_on || !header.next) return;
      if (!is_leaf(header.next) || !seen_.insert(header.next.word()).second)
        return add("its list of leaves leads nowhere");
      p = header.next;
    }
  }

  // Gives the live entries of a leaf, as far as they can be its.
  void give(leaf_place p) {
    const leaf& l = *medium_.resolve(p);
    const key_type low = read_header(l, p).low;
    for (std::size_t i = 0; i < slots_of_leaf<Medium>; ++i) {
      const slot_word word = l[i].word.load(std::memory_order_acquire);
      if (word.is(states::dead) || word.word == 0) continue;
      if (word.is(states::live) && word.key(low) >= low)
        function_(word.key(low), l[i].value.load(std::memory_order_acquire));
      else
        ++damaged_slots_;
    }
  }

  void read_what_is_outside() {
    std::vector<leaf_place> outside;
    for (const auto& [first, count] : groups_)
      for (std::uint64_t i = 0; i < count; ++i) {
        const leaf_place p(first + i * leaf_bytes<Medium>);
        const leaf& l = *medium_.resolve(p);
        // A free leaf has no link; that of a last one has this word in one case of 65536.
        if (l.link.load(std::memory_order_acquire) == 0 || seen_.contains(p.word())) continue;
        if (read_header(l, p).leads_on) outside.push_back(p);
      }
    const auto low_of = [&](leaf_place p) { return read_header(*medium_.resolve(p), p).low; };
    std::sort(outside.begin(), outside.end(), [&](leaf_place a, leaf_place b) { return low_of(a) < low_of(b); });
    for (const leaf_place p : outside) give(p);
    if (!outside.empty())
      add(std::to_string(outside.size()) +
          " leaves outside its list were read, too: entries that were erased may be among them");
  }

  Medium& medium_;
  Function& function_;
  std::map<std::uint64_t, std::uint64_t> groups_;  // where their leaves begin, and how many there are
  std::unordered_set<std::uint64_t> seen_;         // leaves, by their places
  std::size_t damaged_slots_ = 0;
  std::string problems_;
};

// Calls function(key, value) for each readable entry of the tree whose groups begin at `root_word`, those of its list
// first. Changes nothing. Throws corruption afterwards if there was any damage.
template <class Medium, class Function>
void salvage(Medium& medium, std::uint64_t root_word, Function&& function) {
  salvager<Medium, std::remove_reference_t<Function>>(medium, function).run(root_word);
}

}  // namespace pmlab::indexes::detail::nv_tree
