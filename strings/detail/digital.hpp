// Where the keys of an ordered index are: a trie, whose entries are the words of detail/slice.hpp.
//
// A key's path begins at the root layer. Of each layer, the entry of the key's slice leads to a record, which is the key's
// if all bytes are the same, or to the next layer. Searches read no key but the one that they compare at the end; writers
// of new keys also read the bytes that layers skip.
//
//   D1  A record's key begins with the bytes of its path: slices, and what layers skip.
//   D2  A layer's path never changes, layers never go: one that was found stays right for all keys of its path. A layer
//       may get another one above it, which takes over the first part of what it skipped.
//   D3  A layer is complete before an entry leads to it; the change of that one entry is what makes a new key of it, and
//       of a key or a layer that was there before a part of the new layer.
//   D4  Of each entry, there is a record or a layer: its word changes under its lock only.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/strings/detail/layer_numbers.hpp>
#include <pmlab/strings/detail/parts.hpp>
#include <pmlab/strings/detail/slice.hpp>
#include <pmlab/strings/roots.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::strings::detail {

template <media::medium Medium, class Index, class Hash>
class digital : private parts<Medium, Index> {
  using base = parts<Medium, Index>;
  using publication = typename Medium::publication;
  using outcome = indexes::outcome;
  using base::change_of_words;
  using base::key_of;
  using base::lock_of;
  using base::medium;
  using base::place_of;
  using base::prefix_at;
  using base::record_at;
  using base::words;

 public:
  static constexpr std::string_view name = digital_words;

  explicit digital(const base& all) : base(all), numbers_(all.medium, all.stored.numbers_end) {}

  // Where a key is, or would be. While it exists, its word is locked.
  struct place {
    std::unique_lock<sync::version_lock> lock;
    std::uint64_t word = 0;
    std::uint64_t link = 0;   // what the word leads to; 0: it is free
    std::size_t after = 0;    // bytes of the key up to the end of the word's slice
    std::size_t same = 0;     // and how many more it shares with what the word leads to
    record* found = nullptr;  // if that is the key itself
    layer made{};             // prepared, to stand between
    bytes_block* prefix = nullptr;
  };

  // Calls read(record) with the record of `key`, if there is one, and returns whether. No word needs a look at its lock:
  // what it leads to was durable when the words' index answered.
  template <class Read>
  bool find(std::string_view key, Read&& read) const {
    for (descent at; at.begin <= key.size();) {
      const std::uint64_t link = words.find(at.word_of(key)).value_or(0);
      if (link == 0) return false;
      if (!is_layer(link)) {
        const record& r = record_at(link);
        const bool found = key_of(r) == key;
        if (found) read(r);
        return found;
      }
      at.go_below(link);
    }
    return false;
  }

  // Brings what `find` of these keys reads into the cache, all at once.
  void prefetch(std::span<const std::string_view> keys) const {
    struct walk {
      std::size_t key;
      descent at;
    };
    std::array<walk, batch_width> walks;
    std::array<std::uint64_t, batch_width> asked;
    std::array<std::optional<std::uint64_t>, batch_width> links;
    std::size_t walking = keys.size();
    for (std::size_t i = 0; i < walking; ++i) walks[i] = {i, {}};
    while (walking > 0) {
      for (std::size_t i = 0; i < walking; ++i) asked[i] = walks[i].at.word_of(keys[walks[i].key]);
      words.find_batch(std::span(asked).first(walking), std::span(links).first(walking));
      std::size_t still = 0;
      for (std::size_t i = 0; i < walking; ++i) {
        const std::uint64_t link = links[i].value_or(0);
        if (is_layer(link)) {
          walk next = walks[i];
          next.at.go_below(link);
          if (next.at.begin <= keys[next.key].size()) walks[still++] = next;
        } else if (link != 0) {
          media::prefetch(medium, &record_at(link), media::cache_line_bytes);
        }
      }
      walking = still;
    }
  }
  static constexpr std::size_t batch_width = 16;

  // For a key that may be new: what layers skip is compared.
  [[nodiscard]] place seek(std::string_view key) const { return seek(key, true); }
  // For a key that is to be there.
  [[nodiscard]] place seek_present(std::string_view key) const { return seek(key, false); }

  [[nodiscard]] static std::uint64_t next_of_new(const place& /*p*/) noexcept { return 0; }

  // The ledger's part of the publication that makes `made`, and the skipped bytes of a layer that must be made with it.
  // False: no space.
  bool prepare(publication& change, place& p, std::string_view key, item& on, const record& made) {
    media::publish_store(change, on.record, place_of(made));  // (D1)
    if (p.link == 0) {
      media::publish_store(change, on.what, waits_for::words);  // (D2)
      return true;
    }
    p.made.number = numbers_.take();
    p.made.skip = p.same;
    p.made.width = is_layer(p.link) ? std::min(widest_slice, layer_of(p.link).skip - p.same) : widest_slice;
    if (p.made.number == 0) return false;
    if (p.made.skip != 0) {
      p.prefix = make_block<bytes_block>(medium, change, key.substr(p.after, p.same), [](bytes_block&) {});
      if (p.prefix == nullptr) return false;
    }
    media::publish_store(change, on.prefix, place_of_prefix(p));  // (D3)
    media::publish_store(change, on.word, p.word);                // (D4)
    media::publish_store(change, on.number, p.made.number);       // (D5)
    media::publish_store(change, on.what, waits_for::layer);      // (D6)
    // (D1), (D2), (D3), (D4), (D5), (D6) < commit: blocks and item are one step (G1).
    return true;
  }

  [[nodiscard]] linked link_in(place& p, std::string_view key, record& made) const {
    if (p.link == 0)
      return change_of_words([&] { return words.insert(p.word, place_of(made)); }) == outcome::full ? linked::no
                                                                                                    : linked::yes;
    const std::size_t begin = p.after + p.same;
    const bool complete = add(p.made.word_of(rest_of_old(p)), old_link(p)) &&
                          add(p.made.word_of(key.substr(begin)), place_of(made)) &&
                          (p.prefix == nullptr || add(p.made.word(prefix_code), place_of_prefix(p)));
    // D3: each of these is durable, and nothing leads to them yet.
    if (complete && change_of_words([&] { return words.update(p.word, link_to(p.made)); }) != outcome::full)
      return linked::yes;
    return take_back(p.made.number);
  }

  // Takes the record that was found out of the words, durably. False: no space for that.
  [[nodiscard]] bool unlink(place& p) const {
    return change_of_words([&] { return words.erase(p.word); }) != outcome::full;
  }

  // ---- recovery, while there is one thread ----

  [[nodiscard]] bool leads_to(const record& r) const {
    const place p = seek_present(r.key());
    return p.found == &r;
  }
  [[nodiscard]] bool layer_is_there(const item& of) const {
    const std::uint64_t link = words.find(of.word.load(std::memory_order_acquire)).value_or(0);
    return is_layer(link) && layer_of(link).number == of.number.load(std::memory_order_acquire);
  }
  // Erases the words of a layer that nothing leads to.
  [[nodiscard]] linked take_back(std::uint64_t number) const {
    const layer gone{number, widest_slice, 0};
    std::array<indexes::entry, 4> some;
    for (;;) {
      const std::size_t count = words.scan(gone.word(0), some);
      if (count == 0 || some[0].key > gone.last_word()) return linked::no;
      for (std::size_t i = 0; i < count && some[i].key <= gone.last_word(); ++i)
        if (change_of_words([&] { return words.erase(some[i].key); }) == outcome::full) return linked::in_pieces;
    }
  }

  // ---- walks ----

  // Calls function(record) with the records whose keys are >= from, ascending, until it returns false. Writers may
  // run: what is there all the time is never missed.
  template <class Function>
  void walk(std::string_view from, Function&& function) const {
    std::vector<cursor> path = cursors_at(from);
    std::array<indexes::entry, 16> some;
    bool may_be_below = true;
    while (!path.empty()) {
      const std::size_t count = words.scan(path.back().next, some);
      bool ended = count == 0;
      for (std::size_t i = 0; i < count; ++i) {
        cursor& here = path.back();
        if (some[i].key >= here.in.last_word()) {
          ended = true;
          break;
        }
        here.next = some[i].key + 1;
        if (is_layer(some[i].value)) {
          const layer below = layer_of(some[i].value);
          path.push_back({below, below.word(0)});
          break;
        }
        const record& r = record_at(some[i].value);
        if (may_be_below && key_of(r) < from) continue;
        may_be_below = false;
        if (!function(r)) return;
      }
      if (ended) path.pop_back();
    }
  }

  template <class Function>
  void for_each(Function&& function) const {
    walk({}, [&](const record& r) {
      function(r);
      return true;
    });
  }

  // Bytes of blocks that are no records.
  [[nodiscard]] std::uint64_t other_bytes() const {
    std::uint64_t bytes = 0;
    words.for_each([&](std::uint64_t word, std::uint64_t link) {
      if (holds_prefix(word)) bytes += prefix_at(link).block_bytes();
    });
    return bytes;
  }

  void check(indexes::check_report& report) const {
    std::uint64_t reached = 0;
    std::uint64_t there = 0;
    check_layers(report, reached);
    words.for_each([&](std::uint64_t, std::uint64_t) { ++there; });
    if (report.ok() && reached != there)
      report.add("D3: of " + std::to_string(there) + " words, " + std::to_string(reached) + " are part of the trie");
    if (!report.ok()) return;
    std::string_view last;
    for_each([&](const record& r) {
      if (report.entries++ != 0 && r.key() <= last) report.add("D1: keys do not ascend at " + printable(r.key()));
      last = r.key();
    });
  }

 private:
  // Where a search is: in this layer, at this byte of its key.
  struct descent {
    layer in;
    std::size_t begin = 0;

    [[nodiscard]] std::uint64_t word_of(std::string_view key) const noexcept { return in.word_of(key.substr(begin)); }
    void go_below(std::uint64_t link) noexcept {
      begin += in.width;
      in = layer_of(link);
      begin += in.skip;
    }
  };

  struct cursor {
    layer in;
    std::uint64_t next;  // its first word that was not looked at yet
  };

  [[nodiscard]] static bool holds_prefix(std::uint64_t word) noexcept {
    return word >> 63 != 0 && (word & prefix_code) == prefix_code;
  }
  [[nodiscard]] std::uint64_t place_of_prefix(const place& p) const noexcept {
    return p.prefix == nullptr ? 0 : medium.locate(p.prefix).word();
  }
  [[nodiscard]] static std::string printable(std::string_view key) {
    std::string text;
    for (const char c : key.substr(0, 40)) text += c >= ' ' && c <= '~' ? c : '?';
    return "'" + text + "'";
  }

  // The bytes that a layer skips: the last ones of those that it skipped when it was made (D2).
  [[nodiscard]] std::string_view skipped(const layer& l) const {
    if (l.skip == 0) return {};
    const std::uint64_t block = words.find(l.word(prefix_code)).value_or(0);
    const auto& prefix = prefix_at(block);
    media::visit(medium, prefix);
    const std::string_view text = prefix.text();
    medium.visit(text.data(), text.size());
    return text.substr(text.size() - l.skip);
  }

  [[nodiscard]] place seek(std::string_view key, bool may_be_new) const {
    for (;;) {
      place p;
      layer in;
      for (std::size_t begin = 0;;) {
        p.word = in.word_of(key.substr(begin));
        p.link = words.find(p.word).value_or(0);
        p.after = begin + in.width;
        if (!is_layer(p.link)) break;
        const layer below = layer_of(p.link);
        if (may_be_new) {
          p.same = same_bytes(skipped(below), key.substr(p.after));
          if (p.same < below.skip) break;
        } else if (p.after + below.skip > key.size()) {
          p.link = 0;
          return p;
        }
        begin = p.after + below.skip;
        in = below;
      }
      p.lock = std::unique_lock(lock_of(p.word));
      if (words.find(p.word).value_or(0) != p.link) continue;
      if (p.link == 0 || is_layer(p.link)) return p;
      record& r = record_at(p.link);
      const std::string_view there = key_of(r);
      if (there == key) {
        p.found = &r;
      } else if (may_be_new) {
        // Both have a whole slice: shorter ones are one key's alone.
        p.same = same_bytes(there.substr(p.after), key.substr(p.after));
      }
      return p;
    }
  }

  // What the word led to, as an entry of the new layer: a record as it is; a layer skips less.
  [[nodiscard]] std::uint64_t old_link(const place& p) const noexcept {
    if (!is_layer(p.link)) return p.link;
    layer below = layer_of(p.link);
    below.skip -= p.same + p.made.width;
    return link_to(below);
  }
  [[nodiscard]] std::string_view rest_of_old(const place& p) const {
    if (is_layer(p.link)) return skipped(layer_of(p.link)).substr(p.same);
    return record_at(p.link).key().substr(p.after + p.same);
  }
  [[nodiscard]] bool add(std::uint64_t word, std::uint64_t link) const {
    return change_of_words([&] { return words.insert(word, link); }) == outcome::inserted;
  }

  // The path to the first entry that can lead to keys >= from.
  [[nodiscard]] std::vector<cursor> cursors_at(std::string_view from) const {
    std::vector<cursor> path;
    layer in;
    for (std::size_t begin = 0;;) {
      const std::uint64_t word = in.word_of(from.substr(begin));
      const std::uint64_t link = words.find(word).value_or(0);
      if (!is_layer(link)) {
        path.push_back({in, word});
        return path;
      }
      path.push_back({in, word + 1});
      begin += in.width;
      const layer below = layer_of(link);
      const std::string_view wanted = from.substr(begin);
      const std::string_view there = skipped(below);
      const std::size_t same = same_bytes(there, wanted);
      if (same < there.size()) {
        const bool above =
            same == wanted.size() || static_cast<unsigned char>(there[same]) > static_cast<unsigned char>(wanted[same]);
        if (above) path.push_back({below, below.word(0)});
        return path;
      }
      begin += below.skip;
      in = below;
    }
  }

  // D1, D4: goes through the layers, and asks for each record whether its key leads to it.
  void check_layers(indexes::check_report& report, std::uint64_t& reached) const {
    std::vector<cursor> path{{layer{}, 0}};
    std::array<indexes::entry, 16> some;
    while (!path.empty() && report.ok()) {
      const std::size_t count = words.scan(path.back().next, some);
      bool ended = count == 0;
      for (std::size_t i = 0; i < count; ++i) {
        cursor& here = path.back();
        if (some[i].key > here.in.last_word()) {
          ended = true;
          break;
        }
        ++reached;
        here.next = some[i].key + 1;
        if (holds_prefix(some[i].key)) {
          ended = true;
          break;
        }
        if (is_layer(some[i].value)) {
          const layer below = layer_of(some[i].value);
          if (path.size() > most_depth) return report.add("D2: layers lead to each other in a circle");
          if (check_layer(below, report)) path.push_back({below, below.word(0)});
          break;
        }
        check_record(some[i], report);
      }
      if (ended) path.pop_back();
    }
  }
  static constexpr std::size_t most_depth = 70000;

  [[nodiscard]] bool check_layer(const layer& l, indexes::check_report& report) const {
    if (l.skip == 0) return true;
    const std::uint64_t block = words.find(l.word(prefix_code)).value_or(0);
    const media::pointer<bytes_block> prefix(block);
    const bool named = media::can_name(medium, prefix) &&
                       media::can_name(medium, prefix, prefix_at(block).block_bytes()) &&
                       prefix_at(block).size() >= l.skip;
    if (!named) report.add("D2: layer " + std::to_string(l.number) + " has lost the bytes that it skips");
    return named;
  }

  void check_record(const indexes::entry& e, indexes::check_report& report) const {
    const media::pointer<record> p(e.value);
    if (!media::can_name(medium, p) || !media::can_name(medium, p, record_at(e.value).block_bytes()))
      return report.add("D4: word " + std::to_string(e.key) + " leads nowhere");
    const record& r = record_at(e.value);
    if (seek(r.key(), true).found != &r)
      report.add("D1: the key " + printable(r.key()) + " does not lead to its record");
  }

  layer_numbers<Medium> numbers_;
};

}  // namespace pmlab::strings::detail
