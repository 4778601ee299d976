// Reads a damaged skip list: its list, as far as the links lead, with any keys; and the nodes of the slabs that are not
// in the list.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/skip_list/node.hpp>
#include <pmlab/indexes/skip_list/outside.hpp>
#include <pmlab/indexes/skip_list/recovery.hpp>
#include <pmlab/indexes/skip_list/slabs.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace pmlab::indexes::detail::skip_list {

// Reads the list below the root, a root_object, at `root_word`; changes nothing.
template <class Root, class Slab, class Medium>
class salvage_reader {
 public:
  salvage_reader(const Medium& medium, std::uint64_t root_word)
      : medium_(medium), root_(root_at(medium, root_word)), table_(slabs()), reached_(table_.size()) {}

  // Calls function(key, value) for each entry that the links lead to, then for those outside that are not deleted and
  // whose key is not in the list: lost ones, or never answered. Throws pmlab::error at the end if that may not be all,
  // or more than all.
  template <class Function>
  void read(Function&& function) {
    follow_links([&](const node& n) {
      keys_.push_back(n.key.load(std::memory_order_acquire));
      function(keys_.back(), n.value.load(std::memory_order_acquire));
    });
    std::sort(keys_.begin(), keys_.end());
    // The writers in the list, if the root does not have them any more.
    const std::uint64_t writers = std::max(writers_of(root_.writers), greatest_writer_);
    const outside_search<Medium, Slab> outside(medium_, table_, writers, 1,
                                               [&](std::size_t number) { return reached_[number]; });
    std::size_t lost = add(outside.found().lost, function);
    lost += add(falsely_deleted(outside.found().lost), function);
    lost += add(led_to_by(outside.found().lost), function);
    // Where no link is lost a crash explains them.
    const bool has_gap = !outside.found().lost.empty() || !problem_.empty();
    const std::size_t unanswered = has_gap ? add(outside.found().unanswered, function) : 0;
    if (has_gap) throw corrupt(text_of(lost, unanswered));
  }

 private:
  static const Root& root_at(const Medium& medium, std::uint64_t word) {
    const media::pointer<Root> at(word);
    if (!media::can_name(medium, at)) throw corrupt("its root");
    return *medium.resolve(at);
  }

  // The slabs, as far as their list leads.
  std::vector<Slab*> slabs() {
    std::vector<Slab*> found;
    std::unordered_set<std::uint64_t> known;
    for (media::pointer<Slab> at(root_.slabs.load(std::memory_order_acquire)); at;
         at = media::pointer<Slab>(found.back()->next.load(std::memory_order_acquire))) {
      if (at.word() % media::cache_line_bytes != 0 || !media::can_name(medium_, at) ||
          !known.insert(at.word()).second) {
        problem_ = "its list of slabs";
        break;
      }
      found.push_back(medium_.resolve(at));
    }
    return found;
  }

  template <class Function>
  void follow_links(Function&& function) {
    link_word link = root_.heads[0].next.load(std::memory_order_acquire);
    for (std::uint64_t room = medium_.used().capacity_bytes / sizeof(node); target_of(link) != 0; --room) {
      const media::pointer<node> at(target_of(link));
      if (!media::can_name(medium_, at)) return note("a link leads to no entry");
      const node& n = *medium_.resolve(at);
      const std::size_t number = table_.number_of(&n);
      const origin from = origin::of(n.level.load(std::memory_order_acquire), at.word());
      const bool is_entry = from.level == level_of_entries;
      if (number == node_table<Slab>::none) {
        // The node may belong to a slab that is lost itself.
        if (!is_entry) return note("a link leads to no entry");
        note("a link leads to a node of no slab");
        if (room == 0 || !strays_.insert(at.word()).second) return note("its list has no end");
      } else {
        if (reached_[number]) return note("its list has no end");
        if (!is_entry) note("a link leads to no entry");
        if (is_tower_node(from) || (!is_entry && is_blank(n))) return;
        reached_[number] = true;
      }
      if (is_entry) greatest_writer_ = std::max(greatest_writer_, from.writer);
      link = n.next.load(std::memory_order_acquire);
      // The mark of an invalid link is not trusted either.
      if (!is_marked(link) || !leads_on(link))
        function(n);
      else
        deleted_.push_back(const_cast<node*>(&n));
    }
  }

  [[nodiscard]] bool leads_on(link_word link) const noexcept {
    const media::pointer<node> at(target_of(link));
    if (!at) return true;
    if (!media::can_name(medium_, at)) return false;
    const node& n = *medium_.resolve(at);
    return table_.number_of(&n) != node_table<Slab>::none ||
           origin::of(n.level.load(std::memory_order_acquire), at.word()).level == level_of_entries;
  }

  // An undecodable origin is more likely the word of an entry.
  [[nodiscard]] bool is_tower_node(const origin& from) const noexcept {
    return from.level > level_of_entries && from.level <= most_levels_of_a_tower &&
           from.writer <= writers_of(root_.writers);
  }

  // Includes lost ones, though they do not look like entries any more: a link of an entry leads there.
  [[nodiscard]] std::vector<node*> led_to_by(const std::vector<node*>& lost) const {
    std::vector<node*> found;
    for (const node* const n : lost) {
      const media::pointer<node> at(target_of(n->next.load(std::memory_order_acquire)));
      if (!at) continue;
      node* const next = medium_.resolve(at);
      if (table_.number_of(next) == table_.none) continue;
      const origin from = origin::of(next->level.load(std::memory_order_acquire), at.word());
      if (reached_[table_.number_of(next)] || from.level == level_of_entries || is_tower_node(from) || is_blank(*next))
        continue;
      found.push_back(next);
    }
    return found;
  }

  // The links of deleted nodes lead to their neighbours. Where one leads back, or a lost entry belongs in between, the
  // link with its mark is another node's.
  [[nodiscard]] std::vector<node*> falsely_deleted(const std::vector<node*>& lost) const {
    std::vector<key_type> keys;
    for (const node* const n : lost) keys.push_back(n->key.load(std::memory_order_acquire));
    std::sort(keys.begin(), keys.end());
    std::vector<node*> found;
    for (node* const n : deleted_) {
      const key_type key = n->key.load(std::memory_order_acquire);
      const link_word link = target_of(n->next.load(std::memory_order_acquire));
      const key_type target =
          link == 0 ? ~key_type{0} : medium_.resolve(media::pointer<node>(link))->key.load(std::memory_order_acquire);
      const auto lost_one = std::upper_bound(keys.begin(), keys.end(), key);
      if (target < key || (lost_one != keys.end() && *lost_one < target)) found.push_back(n);
    }
    return found;
  }

  [[nodiscard]] static bool is_blank(const node& n) noexcept {
    return n.key.load(std::memory_order_acquire) == 0 && n.value.load(std::memory_order_acquire) == 0 &&
           n.level.load(std::memory_order_acquire) == 0;
  }

  // Adds nodes whose keys were not added yet: an entry that was being moved is present twice. Returns how many these
  // are.
  template <class Function>
  std::size_t add(const std::vector<node*>& nodes, Function&& function) {
    std::vector<key_type> added;
    for (const node* const n : nodes) {
      const key_type key = n->key.load(std::memory_order_acquire);
      if (std::binary_search(keys_.begin(), keys_.end(), key)) continue;
      added.push_back(key);
      function(key, n->value.load(std::memory_order_acquire));
    }
    keys_.insert(keys_.end(), added.begin(), added.end());
    std::sort(keys_.begin(), keys_.end());
    return added.size();
  }

  void note(const char* problem) {
    if (problem_.empty()) problem_ = problem;
  }

  [[nodiscard]] std::string text_of(std::size_t lost, std::size_t unanswered) const {
    std::string text = problem_.empty() ? std::string("a link is lost") : problem_;
    if (lost + unanswered != 0)
      text += "; " + std::to_string(lost + unanswered) + " entries came from outside its list";
    if (unanswered != 0)
      text += ", " + std::to_string(unanswered) + " of them perhaps of inserts that never were answered";
    return text;
  }

  const Medium& medium_;
  const Root& root_;
  std::string problem_;
  node_table<Slab> table_;
  std::vector<bool> reached_;   // by number
  std::vector<node*> deleted_;  // that the links lead to
  std::uint64_t greatest_writer_ = 0;
  std::unordered_set<std::uint64_t> strays_;
  std::vector<key_type> keys_;
};

}  // namespace pmlab::indexes::detail::skip_list
