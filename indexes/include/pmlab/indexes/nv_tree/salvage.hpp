// Reads an NV-Tree that does not open: all its leaves, with or without a link that leads to them.
#pragma once

#include <pmlab/indexes/detail/corruption.hpp>
#include <pmlab/indexes/detail/leaf_group.hpp>
#include <pmlab/indexes/detail/problem_list.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>
#include <pmlab/indexes/nv_tree/leaf_store.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
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
  salvager(Medium& medium, std::uint64_t root_word, Function& function)
      : medium_(medium),
        function_(function),
        leaves_(medium,
                detail::follow_groups<leaf>(medium, root_word, false, group_bytes<Medium>,
                                            [this](const std::string& text) { add(text); }),
                leaf_bytes<Medium>, leaves_in<Medium>) {}

  void run() {
    if (const leaf_place head = leaves_.first_of_oldest()) follow_the_list(head);
    // An intact list has all entries: what is outside of it are free leaves.
    if (!problems_.is_empty()) read_what_is_outside();
    if (damaged_slots_ != 0) add(std::to_string(damaged_slots_) + " slots are overwritten");
    if (!problems_.is_empty()) throw corruption{problems_.text()};
  }

 private:
  void add(const std::string& problem) { problems_.add(problem); }

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
      if (!leaves_.contain(header.next) || !seen_.insert(header.next.word()).second)
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
    leaves_.any_of([&](leaf_place p) {
      const leaf& l = *medium_.resolve(p);
      // A free leaf has no link; a last leaf has this word as its link in one case of 65536.
      const bool is_free = l.link.load(std::memory_order_acquire) == 0;
      if (!is_free && !seen_.contains(p.word()) && read_header(l, p).leads_on) outside.push_back(p);
      return false;
    });
    const auto low_of = [&](leaf_place p) { return read_header(*medium_.resolve(p), p).low; };
    std::sort(outside.begin(), outside.end(), [&](leaf_place a, leaf_place b) { return low_of(a) < low_of(b); });
    for (const leaf_place p : outside) give(p);
    if (!outside.empty())
      add(std::to_string(outside.size()) +
          " leaves outside its list were read, too: entries that were erased may be among them");
  }

  Medium& medium_;
  Function& function_;
  problem_list problems_;  // problems of the members below, too
  salvaged_leaves<leaf, Medium> leaves_;
  std::unordered_set<std::uint64_t> seen_;  // leaves, by their places
  std::size_t damaged_slots_ = 0;
};

// Calls function(key, value) for each readable entry of the tree whose groups begin at `root_word`, first for its list.
// Changes nothing. Throws corruption afterwards if there was any damage.
template <class Medium, class Function>
void salvage(Medium& medium, std::uint64_t root_word, Function&& function) {
  salvager<Medium, std::remove_reference_t<Function>>(medium, root_word, function).run();
}

}  // namespace pmlab::indexes::detail::nv_tree
