// The keys of an ordered index: a trie, whose entries are the words of detail/slice.hpp.
//
// A key's path begins at the root layer. In each layer, the entry of the key's slice leads to a record, which is the
// key's if all bytes are equal, or to the next layer. Searches read no key but the one that they compare at the end;
// writers of new keys also read the bytes that layers skip.
//
//   D1  A record's key begins with the bytes of its path: slices, and skipped bytes of layers.
//   D2  A layer's path never changes: once found, it stays valid for all keys of its path, for as long as the operation
//       lasts that found it. Another layer may be inserted above it, which takes over the first part of its skipped
//       bytes; when that one is removed, the layer skips those bytes again.
//   D3  A layer is complete before an entry leads to it; the change of that one entry adds a new key, and makes the key
//       or layer that was there before a part of the new layer.
//   D4  Each entry has a record or a layer: its word changes under its lock only.
//
// A layer with one entry or none is removed by the erasure that left it so, once no reader can use the erased record.
// The erasure needs only the key: its path leads to the layer.
//
//   D5  One change of the entry that leads to a layer removes it from the trie, under that entry's lock and while no
//       writer is in the layer (detail/layer_gates.hpp). The entry is erased, or leads to the layer's only record, or
//       to its only layer, which then skips the bytes of both.
//   D6  From before that change until nothing of the layer is left, an item of the ledger names it (`removal`). Its
//       words, the block of its skipped bytes and its number are kept until no reader can be in it: readers find the
//       layer's content at the time of its removal.
//   D7  A layer that will skip more bytes gets a block of them first; its old block's last bytes equal those of the new
//       one, so both are valid for all paths that lead to it. The ledger lists both until then (`skipped`).
//   D8  After the removal of a layer, the one above it is checked in the same way. So no layer with fewer than two
//       entries stays, except those that an operation is removing, those that there was no space to remove, and one
//       whose last entry leads to a layer that an insert created since: it is checked when that layer is removed. The
//       next open completes the removals that a crash interrupted.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/strings/detail/layer_gates.hpp>
#include <pmlab/strings/detail/layer_numbers.hpp>
#include <pmlab/strings/detail/parts.hpp>
#include <pmlab/strings/detail/slice.hpp>
#include <pmlab/strings/roots.hpp>
#include <pmlab/sync/relax.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::strings::detail {

template <media::medium Medium, class Index, class Hash>
class trie : private parts<Medium, Index> {
  using base = parts<Medium, Index>;
  using publication = typename Medium::publication;
  using outcome = indexes::outcome;
  using base::change_of_words;
  using book = ledger<Medium>;
  using base::key_of;
  using base::lock_of;
  using base::medium;
  using base::place_of;
  using base::prefix_at;
  using base::record_at;
  using base::words;

 public:
  static constexpr std::string_view name = trie_words;
  static constexpr bool links_at_once = false;

  explicit trie(const base& all)
      : base(all), numbers_(all.medium, all.stored.numbers_end), gates_(media::lock_stripes_on<Medium>(usual_gates)) {}

  // Where a key is, or would be. While it exists, its word is locked.
  struct place {
    std::unique_lock<sync::version_lock> lock;
    layer in;  // where the word is
    std::uint64_t word = 0;
    std::uint64_t link = 0;   // the target of the word; 0: it is free
    std::size_t after = 0;    // bytes of the key up to the end of the word's slice
    std::size_t same = 0;     // and how many more it shares with the target's key
    record* found = nullptr;  // if that is the key itself
    layer made{};             // prepared, for insertion in between
    bytes_block* prefix = nullptr;
  };

  // There is nothing to prefetch.
  struct search {};
  [[nodiscard]] static search begin(std::string_view /*key*/) noexcept { return {}; }

  // Calls read(record) with the record of `key`, if there is one, and returns whether. Locks of words are not checked:
  // the target of a word was durable when the words' index returned it.
  template <class Read>
  bool find(std::string_view key, const search& /*s*/, Read&& read) const {
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

  // Prefetches the lines that `find` of these keys reads, all at once.
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

  // The place of a key that may be new: skipped bytes are compared.
  [[nodiscard]] place seek(std::string_view key) const { return seek(key, true, true); }
  // The place of a key that should be present.
  [[nodiscard]] place seek_present(std::string_view key) const { return seek(key, false, true); }

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
      if (p.prefix == nullptr) {
        numbers_.give_back(p.made.number);
        return false;
      }
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

  // After `link_in` took all back, when the ledger names the layer no more.
  void forget_layer(const place& p) noexcept {
    if (p.made.number != 0) numbers_.give_back(p.made.number);
  }

  // Removes the found record from the words, durably. False: no space for that.
  [[nodiscard]] bool unlink(place& p) const {
    return change_of_words([&] { return words.erase(p.word); }) != outcome::full;
  }

  // ---- recovery, while there is one thread ----

  [[nodiscard]] bool leads_to(const record& r) const { return seek(r.key(), false, false).found == &r; }
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

  [[nodiscard]] bool leads_to_skipped(const item& of) const {
    return words.find(of.word.load(std::memory_order_acquire)).value_or(0) == of.prefix.load(std::memory_order_acquire);
  }
  // Numbers of layers that earlier runs freed, if they are needed.
  void find_free_numbers() {
    if (!numbers_.are_short()) return;
    std::vector<std::uint64_t> used;
    words.for_each([&](std::uint64_t word, std::uint64_t link) {
      if (word >> 63 != 0) used.push_back(word >> code_bits & most_layers);
      if (is_layer(link) && !holds_prefix(word)) used.push_back(layer_of(link).number);
    });
    numbers_.find_free(std::move(used));
  }

  // ---- removal of layers ----

  static constexpr bool has_layers = true;

  // After `unlink`: if its layer has fewer than two entries, it may be removed. Unless `nothing` is returned, `tidy`
  // must be called with the ticket when all current operations have ended.
  [[nodiscard]] layer_gates::ticket leave(const place& p) const {
    if (p.in.is_root() || entries_of(p.in).count > 1) return layer_gates::nothing;
    return gates_.arm(p.in.number);
  }

  // `tidy` will not be called: another erasure may be in charge.
  void let_go(layer_gates::ticket t) const noexcept { gates_.disarm(t); }

  // The next step for an erased record.
  struct tidied {
    enum class state : std::uint8_t {
      done,      // nothing: the record may be freed
      again,     // `tidy` with this ticket, when all current operations have ended
      in_pieces  // no space, not even to erase words: the item stays, and the next open continues
    } now;
    layer_gates::ticket ticket = layer_gates::nothing;
  };

  // D5, D8: removes the layer at the end of the path of `key` from the trie, if it is empty enough, and those above it.
  // `key` was erased, and `on` names its record. retire(item): the old skipped bytes that it names are freed when no
  // reader can use them. REQUIRES: a guard.
  template <class Retire>
  [[nodiscard]] tidied tidy(std::string_view key, const typename book::place& on, layer_gates::ticket t, book& items,
                            Retire&& retire) {
    const bool alone = t == layer_gates::alone;
    if (on->what.load(std::memory_order_relaxed) == waits_for::removal && !give_back_layer(on, items))
      return {tidied::state::in_pieces};
    for (sync::backoff wait;; wait.pause()) {
      const std::optional<branch> at = deepest(key);
      if (!at || entries_of(at->below).count > 1) {
        gates_.disarm(t);
        return {tidied::state::done};
      }
      if (!alone && !gates_.is_armed(t, at->below.number)) {
        gates_.disarm(t);
        t = gates_.arm(at->below.number);
        return {t == layer_gates::nothing ? tidied::state::done : tidied::state::again, t};
      }
      {
        const std::unique_lock lock(lock_of(at->word));
        if (words.find(at->word).value_or(0) != at->link) continue;
        if (!alone && !gates_.enter(at->above.number)) continue;
        if (!alone && !gates_.shut(t)) continue;
        if (!take_out(*at, on, items, retire)) {
          gates_.open(at->below.number);
          return {tidied::state::done};
        }
      }
      if (!alone) return {tidied::state::again, layer_gates::later};
      if (!give_back_layer(on, items)) return {tidied::state::in_pieces};
    }
  }

  // How many words are left of the layer that an item of the ledger names and that nothing leads to.
  [[nodiscard]] std::uint64_t words_of_gone(const item& of) const {
    const auto what = of.what.load(std::memory_order_acquire);
    if ((what != waits_for::removal && what != waits_for::layer) || layer_is_there(of)) return 0;
    std::uint64_t count = 0;
    const layer gone{of.number.load(std::memory_order_acquire), widest_slice, 0};
    words.for_each(
        [&](std::uint64_t word, std::uint64_t) { count += word >= gone.word(0) && word <= gone.last_word(); });
    return count;
  }

  // ---- walks ----

  // Calls function(record) with the records whose keys are >= from, ascending, until it returns false: at most so many.
  // Writers may run: records that are present all the time are never missed.
  template <class Function>
  void walk(std::string_view from, std::size_t /*most*/, Function&& function) const {
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
    walk({}, std::numeric_limits<std::size_t>::max(), [&](const record& r) {
      function(r);
      return true;
    });
  }

  // The bytes of skipped bytes, and of the numbers and gates of layers.
  void add_to(indexes::index_stats& stats) const {
    words.for_each([&](std::uint64_t word, std::uint64_t link) {
      if (holds_prefix(word)) stats.medium_bytes += prefix_at(link).block_bytes();
    });
    stats.dram_bytes += numbers_.bytes() + gates_.bytes();
  }

  // `unlinked`: words of layers that wait in the ledger.
  void check(indexes::check_report& report, std::uint64_t unlinked) const {
    std::uint64_t reached = unlinked;
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
    std::uint64_t next;  // its first word that was not processed yet
  };

  // A step from one layer to the next.
  struct branch {
    layer above;
    std::uint64_t word;  // word of the layer above
    std::uint64_t link;  // its target: the layer below
    layer below;
  };

  // The number of a layer's entries, up to two, and the first of them.
  struct some_entries {
    std::size_t count = 0;
    indexes::entry first{};
  };
  [[nodiscard]] some_entries entries_of(const layer& l) const {
    std::array<indexes::entry, 2> some;
    const std::size_t count = words.scan(l.word(0), some);
    some_entries found;
    for (std::size_t i = 0; i < count && some[i].key < l.last_word(); ++i)
      if (found.count++ == 0) found.first = some[i];
    return found;
  }

  // The last step of the path of `key`; none: the path ends in the root layer.
  [[nodiscard]] std::optional<branch> deepest(std::string_view key) const {
    std::optional<branch> last;
    layer in;
    for (std::size_t begin = 0;;) {
      const std::uint64_t word = in.word_of(key.substr(begin));
      const std::uint64_t link = words.find(word).value_or(0);
      if (!is_layer(link)) return last;
      const layer below = layer_of(link);
      const std::size_t after = begin + in.width;
      if (same_bytes(skipped(below), key.substr(after)) < below.skip) return last;
      last = {in, word, link, below};
      begin = after + below.skip;
      in = below;
    }
  }

  // D5, with the lock of the word that leads to the layer, and while no writer is in it. False: it stays.
  template <class Retire>
  [[nodiscard]] bool take_out(const branch& at, const typename book::place& on, book& items, Retire&& retire) {
    const some_entries left = entries_of(at.below);
    if (left.count > 1) return false;
    std::uint64_t instead = left.count == 0 ? 0 : left.first.value;
    if (is_layer(instead)) {
      layer lower = layer_of(instead);
      if (!skip_more(at.below, left.first, items, retire)) return false;
      lower.skip += at.below.skip + at.below.width;
      instead = link_to(lower);
    }
    const std::uint64_t prefix = words.find(at.below.word(prefix_code)).value_or(0);
    items.enter_removal(on, at.word, at.below.number, prefix);
    if (change_of_words([&] { return instead == 0 ? words.erase(at.word) : words.update(at.word, instead); }) !=
        outcome::full)
      return true;
    items.leave_removal(on);
    return false;
  }

  // D7: prepares the layer that is the only entry of `above` to skip the bytes of its path, too. False: no space.
  template <class Retire>
  [[nodiscard]] bool skip_more(const layer& above, const indexes::entry& only, book& items, Retire&& retire) {
    const layer lower = layer_of(only.value);
    const std::uint64_t word = lower.word(prefix_code);
    const std::uint64_t old = words.find(word).value_or(0);
    std::string text;
    typename book::place of_new;
    typename book::place of_old;
    try {
      text.append(skipped(above))
          .append(whole_slice(above.code_in(only.key), above.width).text())
          .append(skipped(lower));
      // A layer that once got the upper one above it has all of them.
      if (old != 0 && prefix_at(old).text().ends_with(text)) return true;
      of_new = items.take();
      if (of_new && old != 0) of_old = items.take();
    } catch (const std::bad_alloc&) {
    }
    const auto fails = [&] {
      if (of_new) items.make_free(of_new);
      if (of_old) items.make_free(of_old);
      return false;
    };
    if (!of_new || (old != 0 && !of_old)) return fails();
    publication change(medium);
    const bytes_block* const made = make_block<bytes_block>(medium, change, text, [](bytes_block&) {});
    if (made == nullptr) return fails();
    const std::uint64_t place_of_made = medium.locate(made).word();
    media::publish_store(change, of_new->prefix, place_of_made);     // (K1)
    media::publish_store(change, of_new->word, word);                // (K2)
    media::publish_store(change, of_new->what, waits_for::skipped);  // (K3)
    // (K1), (K2), (K3) < commit: block and item are one step (G1).
    change.commit();
    if (old != 0) items.enter_skipped(of_old, word, old);
    if (change_of_words([&] {
          return old != 0 ? words.update(word, place_of_made) : words.insert(word, place_of_made);
        }) == outcome::full) {
      if (old != 0) items.clear(of_old);
      retire(of_new);
      return false;
    }
    items.clear(of_new);
    if (old != 0) retire(of_old);
    return true;
  }

  // D6: frees a layer that no reader can be in. False: no space, not even to erase words.
  [[nodiscard]] bool give_back_layer(const typename book::place& on, book& items) {
    const std::uint64_t number = on->number.load(std::memory_order_relaxed);
    const bool taken_back = take_back(number) != linked::in_pieces;
    if (taken_back) {
      if (const std::uint64_t prefix = on->prefix.load(std::memory_order_relaxed); prefix != 0) {
        publication change(medium);
        release_block(change, prefix_at(prefix));
        media::publish_store(change, on->what, waits_for::words);  // (K4)
        // (K4) < commit: no item names a block that may be reused (G2).
        change.commit();
      } else {
        items.leave_removal(on);
      }
    }
    gates_.open(number);
    // Last: who gets the number finds nothing of the layer that had it.
    if (taken_back) numbers_.give_back(number);
    return taken_back;
  }

  [[nodiscard]] static bool holds_prefix(std::uint64_t word) noexcept {
    return word >> 63 != 0 && (word & prefix_code) == prefix_code;
  }
  [[nodiscard]] std::uint64_t place_of_prefix(const place& p) const noexcept {
    return p.prefix == nullptr ? 0 : medium.locate(p.prefix).word();
  }

  // The bytes that a layer skips: the last ones of those that it skipped when it was made (D2).
  [[nodiscard]] std::string_view skipped(const layer& l) const {
    if (l.skip == 0) return {};
    const std::uint64_t block = words.find(l.word(prefix_code)).value_or(0);
    const auto& prefix = prefix_at(block);
    media::annotate_read(medium, prefix);
    const std::string_view text = prefix.text();
    medium.annotate_read(text.data(), text.size());
    return text.substr(text.size() - l.skip);
  }

  // `writes`: the result may be changed.
  [[nodiscard]] place seek(std::string_view key, bool may_be_new, bool writes) const {
    for (sync::backoff wait;;) {
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
      if (writes && !gates_.enter(in.number)) {
        p.lock.unlock();
        wait.pause();
        continue;
      }
      p.in = in;
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

  // The old target of the word, as an entry of the new layer: a record is unchanged; a layer skips less.
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

  // D1, D4: walks the layers, and checks for each record that its key leads to it.
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
    if (seek(r.key(), true, false).found != &r)
      report.add("D1: the key " + printable(r.key()) + " does not lead to its record");
  }

  static constexpr std::size_t usual_gates = 1024;

  layer_numbers<Medium> numbers_;
  layer_gates gates_;
};

}  // namespace pmlab::strings::detail
