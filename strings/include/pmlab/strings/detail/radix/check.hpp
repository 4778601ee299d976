// The invariants of a radix tree of strings, checked. The medium may be damaged.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/parts.hpp>
#include <pmlab/strings/detail/radix/ways.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

namespace pmlab::strings::detail::radix {

// Without recursion: a long key may have a node for each of its bytes. REQUIRES: no writer.
template <media::medium Medium>
class checker {
 public:
  checker(Medium& medium, const ways<Medium>& of, indexes::check_report& report)
      : medium_(medium), ways_(of), report_(report), waiting_{of.root()} {}

  // T1 to T4. Adds violations and, if there are none, the number of entries.
  void run() {
    while (!waiting_.empty()) {
      const position at = waiting_.back();
      waiting_.pop_back();
      if (!met_.insert(at.n).second) {
        report_.add("T3: two slots lead to one node");
        continue;
      }
      if (at.n->is_gone()) report_.add("T4: an unlinked node is linked");
      if (at.n->depth() != at.depth) report_.add("T1: a node has another depth than the link to it says");
      check_children(at);
    }
    if (report_.ok()) check_order();
  }

 private:
  void check_children(const position& at) {
    const std::size_t count = children_of(at);
    if (at.n != ways_.root().n && count < 2) report_.add("T2: a node has fewer than two children");
    std::optional<std::string_view> path;
    std::size_t met = 0;
    for (std::size_t digit = 0; digit < digit_values; ++digit) {
      const slot_word word = ways_.word_in(at, digit);
      if (word.is_empty()) continue;
      ++met;
      if (word.digit() != digit) return report_.add("T2: a slot stands for another digit");
      const std::optional<std::string_view> key = key_below(word, at);
      if (!key) return;
      const bool has_digit = key->size() >= at.depth && digit_at(*key, at.depth) == digit;
      if (!has_digit || !at.n->follows(*key, at.depth, std::min(at.depth, header::bytes_before)) ||
          (path && key->substr(0, at.depth) != *path))
        return report_.add("T1: " + printable(*key) + " is below another path");
      path = key->substr(0, at.depth);
    }
    if (met != count) report_.add("T2: a child cannot be found");
  }

  // A key below the slot, if all on the way to it is inside the medium. The node there will be checked, too.
  [[nodiscard]] std::optional<std::string_view> key_below(slot_word word, const position& at) {
    try {
      const record& below = ways_.some_record(word, at);
      if (word.is_link()) waiting_.push_back(ways_.child_of(word, at.depth));
      if (media::can_name(medium_, medium_.locate(&below), below.block_bytes())) return below.key();
      report_.add("T1: a record is longer than its medium");
    } catch (const error& e) {
      report_.add(std::string("T1: ") + e.what());
    }
    return std::nullopt;
  }

  void check_order() {
    std::optional<std::string_view> last;
    ways_.walk({}, any_number, [&](const record& r) {
      if (last && r.key() <= *last) report_.add("T1: keys do not ascend at " + printable(r.key()));
      last = r.key();
      ++report_.entries;
      return true;
    });
  }

  Medium& medium_;
  const ways<Medium>& ways_;
  indexes::check_report& report_;
  std::vector<position> waiting_;
  std::unordered_set<const header*> met_;
};

}  // namespace pmlab::strings::detail::radix
