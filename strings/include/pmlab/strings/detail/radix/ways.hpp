// Ways through a radix tree of strings, read without locks: of a key, to a record below, and over all entries.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/blocks.hpp>
#include <pmlab/strings/detail/parts.hpp>
#include <pmlab/strings/detail/radix/node.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::strings::detail::radix {

// The greatest depth: where the longest keys end.
inline constexpr std::size_t deepest = std::size_t{1} << 16;
// No limit of a way.
inline constexpr std::size_t any_depth = std::numeric_limits<std::size_t>::max();
// No limit of a walk.
inline constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();

[[nodiscard]] inline error damaged(const std::string& what) {
  return error("the radix tree of strings is damaged: " + what, "restore the pool from a copy");
}

// A node, as the link to it describes it.
struct position {
  header* n = nullptr;
  unsigned kind = kinds::largest;
  std::size_t depth = 0;
};

// The end of a key's way.
struct way_end {
  position parent;
  slot_word link;  // link of the parent, to `at`; of the root: empty
  position at;
  slot_word word;       // word of the key's digit in `at`; a link: the key leaves the way between it and its node
  bool is_sure = true;  // the key has the path of `at`: all skipped bytes were compared
};

// Calls visit(word) for the children of a node, in the order of its slots.
template <class Visit>
void for_each_child(const position& of, Visit&& visit) {
  kinds::as_kind(std::as_const(*of.n), of.kind, [&](const auto& n) {
    for (const slot& s : n.slots)
      if (const slot_word word = load(s); !word.is_empty()) visit(word);
  });
}

// The number of a node's children, up to `most`.
[[nodiscard]] inline std::size_t children_of(const position& of, std::size_t most = digit_values) noexcept {
  return kinds::as_kind(std::as_const(*of.n), of.kind, [&](const auto& n) {
    std::size_t count = 0;
    for (const slot& s : n.slots) {
      count += static_cast<std::size_t>(!load(s).is_empty());
      if (count >= most) break;
    }
    return count;
  });
}

// Thread safety: any operation from any number of threads, under a guard of the tree. All throw pmlab::error if a link
// leads to no node or record, or not downwards: links and depths are sound after any crash, so the medium was damaged.
// Then an operation neither crashes nor loops for ever.
template <media::medium Medium>
class ways {
 public:
  ways(Medium& medium, const position& root) noexcept : medium_(medium), root_(root) {}

  [[nodiscard]] const position& root() const noexcept { return root_; }

  // The word of the child with this digit; empty: there is none.
  [[nodiscard]] slot_word word_in(const position& at, std::size_t digit) const noexcept {
    return kinds::as_kind(std::as_const(*at.n), at.kind, [&](const auto& n) { return n.of_digit(digit, announced()); });
  }
  // The word of the child with the smallest digit from this one on.
  [[nodiscard]] slot_word word_from(const position& at, std::size_t digit) const noexcept {
    return kinds::as_kind(std::as_const(*at.n), at.kind,
                          [&](const auto& n) { return n.from_digit(digit, announced()); });
  }
  // Prefetches what `word_in` reads at first.
  void prefetch(const position& at, std::size_t digit) const noexcept {
    kinds::as_kind(std::as_const(*at.n), at.kind, [&](const auto& n) {
      n.first_read(digit, [this](const auto& object) { media::prefetch(medium_, object); });
    });
  }

  // REQUIRES: the word leads to a record, or (`child_of`) to a node, whose parent has this depth.
  [[nodiscard]] record& record_in(slot_word word) const {
    const media::pointer<record> at(word.place());
    if (!media::can_name(medium_, at)) [[unlikely]]
      throw damaged("a slot");
    return *medium_.resolve(at);
  }
  [[nodiscard]] position child_of(slot_word link, std::size_t depth) const {
    const media::pointer<header> at(link.place());
    if (!kinds::is_kind(link.kind()) || !media::can_name(medium_, at, kinds::bytes(link.kind()))) [[unlikely]]
      throw damaged("a link");
    position below{medium_.resolve(at), link.kind(), depth + link.skip()};
    if (link.skip() == 0) {
      media::annotate_read(medium_, *below.n);
      below.depth = below.n->depth();
    }
    if (below.depth <= depth || below.depth > deepest) [[unlikely]]
      throw damaged("a depth");
    return below;
  }
  // The depth of the node that a slot of `at` leads to; for a record, that of `at`.
  [[nodiscard]] std::size_t depth_below(slot_word word, const position& at) const {
    return word.is_link() ? child_of(word, at.depth).depth : at.depth;
  }

  [[nodiscard]] std::string_view key_of(const record& r) const noexcept { return detail::key_of(medium_, r); }
  [[nodiscard]] bool leads_to_key(slot_word word, std::string_view key) const {
    return !word.is_empty() && !word.is_link() && key_of(record_in(word)) == key;
  }

  // One step on the way of `key`, which has reached `at`: the word of its digit there. A link: `at` is the node below.
  // Empty: the way ends, and also if the key ends above that node.
  [[nodiscard]] slot_word step(std::string_view key, position& at) const {
    const slot_word word = word_in(at, digit_at(key, at.depth));
    if (!word.is_link()) return word;
    at = child_of(word, at.depth);
    return at.depth > key.size() ? slot_word() : word;
  }

  // Follows the key from the root, but into no node below `limit`.
  [[nodiscard]] way_end descend(std::string_view key, std::size_t limit) const {
    way_end end;
    for (end.at = root_;;) {
      end.word = word_in(end.at, digit_at(key, end.at.depth));
      if (!end.word.is_link()) return end;
      const position below = child_of(end.word, end.at.depth);
      if (below.depth > limit || below.depth > key.size()) return end;
      if (const std::size_t skipped = below.depth - end.at.depth - 1; skipped != 0 && end.is_sure) {
        media::annotate_read(medium_, *below.n);
        end.is_sure = skipped <= header::bytes_before && below.n->follows(key, below.depth, skipped);
      }
      end.parent = end.at;
      end.link = end.word;
      end.at = below;
    }
  }

  // The record that the word leads to, or one below; of an empty word, one below `at`.
  [[nodiscard]] const record& some_record(slot_word word, position at) const {
    for (;;) {
      // A node has children at every moment, but a look at one slot after the other may miss all of them: writers may
      // fill those that it has passed, and empty those that are left.
      constexpr int most_tries = 100;
      for (int tries = 0; word.is_empty() && tries < most_tries; ++tries) word = word_from(at, 0);
      if (word.is_empty()) throw damaged("a node has no children");
      if (!word.is_link()) return record_in(word);
      at = child_of(word, at.depth);
      word = {};
    }
  }

  // Calls function(record) with the records whose keys are >= from, ascending, until it returns false; `most`: it may
  // read so many, and their cache misses overlap. Writers may run: records that are present all the time are never
  // missed.
  template <class Function>
  void walk(std::string_view from, std::size_t most, Function&& function) const {
    std::vector<cursor> path = cursors_at(from);
    bool may_be_below = true;
    for (std::size_t read = 0; !path.empty();) {
      cursor& here = path.back();
      if (here.prefetched == 0 && most - std::min(read, most) > 1)
        here.prefetched = prefetch_children(here, std::min(most - read, prefetched_at_once));
      const slot_word word = word_from(here.in, here.next);
      if (word.is_empty()) {
        path.pop_back();
        continue;
      }
      here.next = word.digit() + 1;
      if (here.prefetched > 0) --here.prefetched;
      if (word.is_link()) {
        path.push_back({child_of(word, here.in.depth), 0});
        continue;
      }
      ++read;
      const record& r = record_in(word);
      if (may_be_below && key_of(r) < from) continue;
      may_be_below = false;
      if (!function(r)) return;
    }
  }

  // Calls function(node, level) for every node; the root's level is 1. REQUIRES: no writer.
  template <class Function>
  void for_each_node(Function&& function) const {
    std::vector<std::pair<position, std::size_t>> waiting{{root_, 1}};
    while (!waiting.empty()) {
      const auto [at, level] = waiting.back();
      waiting.pop_back();
      function(at, level);
      for_each_child(at, [&, below = level + 1, depth = at.depth](slot_word child) {
        if (child.is_link()) waiting.emplace_back(child_of(child, depth), below);
      });
    }
  }

 private:
  // A node of a walk, and the first digit there that was not processed yet.
  struct cursor {
    position in;
    std::size_t next;
    std::size_t prefetched = 0;  // how many of the children from there on
  };
  static constexpr std::size_t prefetched_at_once = 16;

  // Prefetches the first lines of up to `most` children, and returns their number.
  std::size_t prefetch_children(const cursor& of, std::size_t most) const {
    std::size_t count = 0;
    for (std::size_t digit = of.next; count < most; ++count) {
      const slot_word word = word_from(of.in, digit);
      if (word.is_empty()) break;
      if (word.is_link()) {
        const position below = child_of(word, of.in.depth);
        media::prefetch(medium_, below.n, media::cache_line_bytes);
      } else {
        media::prefetch(medium_, &record_in(word), media::cache_line_bytes);
      }
      digit = word.digit() + 1;
    }
    return count;
  }

  [[nodiscard]] auto announced() const noexcept {
    return [this](const auto& object) { media::annotate_read(medium_, object); };
  }

  // The nodes on the way of `from`, each with its first digit whose child may have keys from `from` on.
  [[nodiscard]] std::vector<cursor> cursors_at(std::string_view from) const {
    std::vector<cursor> path;
    slot_word word;
    for (position at = root_;;) {
      const std::size_t digit = digit_at(from, at.depth);
      word = word_in(at, digit);
      path.push_back({at, digit});
      if (!word.is_link()) break;
      path.back().next = digit + 1;
      at = child_of(word, at.depth);
      if (at.depth > from.size()) {
        path.push_back({at, 0});
        word = {};
        break;
      }
    }
    if (path.size() == 1) return path;
    // All keys below the last node share its path: where one of them leaves `from`, the others do.
    const std::string_view other = key_of(some_record(word, path.back().in));
    const std::size_t same = same_bytes(other, from);
    while (path.size() > 1 && path.back().in.depth > same) {
      const position left = path.back().in;
      path.pop_back();
      if (path.back().in.depth > same) continue;
      if (other > from) path.push_back({left, 0});
      break;
    }
    return path;
  }

  Medium& medium_;
  position root_;
};

}  // namespace pmlab::strings::detail::radix
