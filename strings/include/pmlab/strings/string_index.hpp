// Keys and values of any length on top of any index of 8-byte words.
//
//   auto words = strings::string_index<media::pmem, indexes::skip_list<media::pmem>>::open(pool, "words");
//   words.upsert("persistent", 1);
//
// Use it if keys are not numbers, or values longer than 8 bytes. Keys have 0 to 64 KB, any bytes in them; values are 8
// bytes (word_values) or up to 1 MB (blob_values). Any index can hold the words: also a cache in front of one, or a
// hybrid index.
//
// Each key is stored once, in a record of its own. The index below holds words that point to records: of a hash table,
// the hash of the key (detail/hashed.hpp); of an ordered index, its next few bytes (detail/trie.hpp), in their order,
// so that scans return keys in byte order. Over a woart the keys have a tree of their own (detail/radix/tree.hpp), and
// the index below stays empty. Nearly all comparisons are of words or of digits: a search reads the one key that it
// finds.
//
// Thread safety: any operation from any number of threads (`check`, `stats`, `size`, `for_each`: no concurrent writer).
// Progress: readers write nothing shared except their own epoch; they wait only while a writer changes the word that
// they read. Writers lock one word, and a value while it is replaced; in a tree of strings the node of the key, and its
// parent if the node is replaced.
//
// Durability: the result of an operation survives a crash (strict durable linearizability), if the index below has the
// same guarantee. A crash leaks nothing: see detail/ledger.hpp.
//
// Layout (medium): named root NAME, of the words' index; named root NAME:s -> detail::state. Opening reads the ledger's
// pages, and undoes or completes at most one interrupted operation of each thread.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/name.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/wanted_roots.hpp>
#include <pmlab/strings/detail/blocks.hpp>
#include <pmlab/strings/detail/hashed.hpp>
#include <pmlab/strings/detail/ledger.hpp>
#include <pmlab/strings/detail/parts.hpp>
#include <pmlab/strings/detail/radix/tree.hpp>
#include <pmlab/strings/detail/record_values.hpp>
#include <pmlab/strings/detail/trie.hpp>
#include <pmlab/strings/roots.hpp>
#include <pmlab/strings/values.hpp>
#include <pmlab/sync/epoch.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmlab::strings {

using indexes::outcome;

// The longest key.
inline constexpr std::size_t most_key_bytes = std::size_t{1} << 16;
static_assert(most_key_bytes <= detail::radix::deepest);

// `Medium`: where records are; it and `Index` determine where the words are. `Values`: word_values or blob_values.
// `Hash`: of the keys of a hash table; part of the layout.
template <media::medium Medium, indexes::point_index Index, class Values = word_values, class Hash = detail::key_hash>
class string_index {
  static constexpr bool is_ordered = indexes::ordered_index<Index>;
  using where_words_are = std::conditional_t<is_ordered, detail::trie<Medium, Index, Hash>,  //
                                             detail::hashed<Medium, Index, Hash>>;
  using where = std::conditional_t<indexes::string_form_over<Index> == indexes::string_form::tree,
                                   detail::radix::tree<Medium, Index>, where_words_are>;
  using place = typename where::place;
  using ledger = detail::ledger<Medium>;
  using publication = typename Medium::publication;
  using record = detail::record;
  using bytes_block = detail::bytes_block;

 public:
  // The result type of `find`: std::uint64_t or std::string.
  using value_type = typename Values::value_type;
  // The parameter type of `insert`: std::uint64_t or std::string_view.
  using value_view = typename Values::view;
  // The layout of the ledger and of the links to records; the words' index has a version of its own.
  static constexpr std::uint64_t layout_version = 1;

  // Opens the index `name` (1 to 21 characters) in `medium`, or makes an empty one; its words are in an Index of that
  // name. Throws pmlab::error: the name belongs to another layout (other values, other words), or to an index of
  // numbers that has entries; no space. `medium` must outlive the index.
  static string_index open(Medium& medium, std::string_view name) {
    return open(medium, name, [&] {
      media::check_roots(medium, {{std::string(name)}, state_root(name)});
      return Index::open(medium, name);
    });
  }

  // The same with words in the index that `open_words()` returns: a cache, a hybrid, one with options. REQUIRES: no
  // other user of that index changes it, and it is durable if `medium` is.
  template <class OpenWords>
  static string_index open(Medium& medium, std::string_view name, OpenWords&& open_words) {
    constexpr std::size_t longest_name = media::root_name_limit - state_suffix.size();
    check_name(name, longest_name, "a string index");
    media::check_roots(medium, {state_root(name)});
    return string_index(medium, name, open_words);
  }

  string_index(const string_index&) = delete;
  string_index& operator=(const string_index&) = delete;
  // No other thread may be using it.
  ~string_index() { is_alone_ = true; }

  // Adds (key, value). inserted; exists: the key is present and was left unchanged; full: no space, nothing changed.
  // Durable on return. One publication, and one insertion of a word (three, if two keys begin to share a word; none
  // into a tree of strings). Throws pmlab::error: key or value too long.
  outcome insert(std::string_view key, value_view value) {
    return with_space([&] { return put(key, value, [](place&) { return outcome::exists; }); });
  }

  // Adds (key, value) or replaces the value of `key`: inserted, updated or full. Durable on return. Throws as `insert`.
  outcome upsert(std::string_view key, value_view value) {
    return with_space([&] { return put(key, value, [&](place& at) { return replace(at, value); }); });
  }

  // Replaces the value of `key`: updated, absent or full. Durable on return: one flush and one fence, or one
  // publication for a blob. Throws pmlab::error: value too long.
  outcome update(std::string_view key, value_view value) {
    Values::check(value);
    return with_space([&] {
      const auto guard = epochs_.pin();
      place at = where_.seek_present(key);
      return at.found == nullptr ? outcome::absent : replace(at, value);
    });
  }

  // Removes `key`: erased, absent, or full (no space for its ledger item; nothing changed). Durable on return. The
  // space of key and value is freed when no reader can use them.
  outcome erase(std::string_view key) {
    return with_space([&] {
      if constexpr (where::links_at_once)
        return take_out_at_once(key);
      else
        return take_out(key);
    });
  }

  // The value of `key`.
  std::optional<value_type> find(std::string_view key) {
    const auto search = where_.begin(key);
    const auto guard = epochs_.pin();
    return find_pinned(key, search);
  }

  // values[i] := find(keys[i]). The cache misses of the searches overlap.
  void find_batch(std::span<const std::string_view> keys, std::span<std::optional<value_type>> values) {
    assert(keys.size() == values.size());
    const auto guard = epochs_.pin();
    for (std::size_t done = 0; done < keys.size(); done += where::batch_width) {
      const std::size_t width = std::min(where::batch_width, keys.size() - done);
      where_.prefetch(keys.subspan(done, width));
      for (std::size_t i = done; i < done + width; ++i) values[i] = find_pinned(keys[i], where_.begin(keys[i]));
    }
  }

  // Calls function(key, value) with up to `most` entries whose keys are >= from, in byte order; returns their number.
  // The arguments are valid during the call, which blocks no writer. Entries that are present during the whole scan are
  // never missed.
  template <class Function>
  std::size_t scan(std::string_view from, std::size_t most, Function&& function) requires is_ordered {
    const auto guard = epochs_.pin();
    std::size_t count = 0;
    if (most == 0) return 0;
    where_.walk(from, most, [&](const record& r) {
      function(r.key(), values_.durable(r));
      return ++count < most;
    });
    return count;
  }

  // Calls function(key) for the keys >= from, in byte order, until it returns false. Reads no value. See `scan`.
  template <class Function>
  void scan_keys(std::string_view from, Function&& function) requires is_ordered {
    const auto guard = epochs_.pin();
    where_.walk(from, any_number, [&](const record& r) { return function(r.key()); });
  }

  // Calls function(key, value) for every entry of [first, last], in byte order. Writers may run; see `scan`.
  template <class Function>
  void for_each_in(std::string_view first, std::string_view last, Function&& function) requires is_ordered {
    const auto guard = epochs_.pin();
    where_.walk(first, any_number, [&](const record& r) {
      if (r.key() > last) return false;
      function(r.key(), values_.durable(r));
      return true;
    });
  }

  // Calls function(key, value) for every entry; in byte order, if the words have an order.
  template <class Function>
  void for_each(Function&& function) const {
    where_.for_each([&](const record& r) { function(r.key(), values_.of(r)); });
  }

  // Keys in the index; walks it.
  [[nodiscard]] std::uint64_t size() const {
    std::uint64_t entries = 0;
    where_.for_each([&](const record&) { ++entries; });
    return entries;
  }

  // The words' index, with the bytes of records and values; `entries` are keys, where the words' index may hold more.
  [[nodiscard]] indexes::index_stats stats() const {
    indexes::index_stats all = words_.stats();
    all.entries = 0;
    all.medium_bytes += sizeof(detail::state) + ledger_.medium_bytes();
    where_.add_to(all);
    where_.for_each([&](const record& r) {
      ++all.entries;
      all.medium_bytes += r.block_bytes() + values_.medium_bytes(r);
    });
    ledger_.for_each_waiting([&](const auto& item) { all.medium_bytes += bytes_waiting_at(item); });
    all.dram_bytes += locks_.bytes() + values_.dram_bytes() + ledger_.dram_bytes();
    return all;
  }

  // Checks the invariants of the words, of the links to records, and of values.
  [[nodiscard]] indexes::check_report check() const {
    indexes::check_report report = words_.check();
    report.entries = 0;
    if (!report.ok()) return report;
    std::uint64_t unlinked = 0;
    if constexpr (!where::links_at_once)
      ledger_.for_each_waiting([&](const auto& item) { unlinked += where_.words_of_gone(*item.where); });
    where_.check(report, unlinked);
    if (report.ok()) where_.for_each([&](const record& r) { values_.check(r, report); });
    return report;
  }

  // The index of the words: for its statistics, and nothing else.
  [[nodiscard]] Index& words() noexcept { return words_; }

 private:
  static constexpr std::size_t usual_stripes = 4096;
  static constexpr std::size_t any_number = std::numeric_limits<std::size_t>::max();  // any number of entries
  // Items that wait for short readers, three batches of them, fit into one page of the ledger: so keys can be erased
  // from a full medium, which has no space for another page. Items that wait longer, of removed layers, are processed
  // before `full` is returned.
  static constexpr std::size_t batch = 16;

  template <class OpenWords>
  string_index(Medium& medium, std::string_view name, OpenWords&& open_words)
      : medium_(medium),
        words_(open_words()),
        state_(open_state(medium, name, words_)),
        locks_(media::lock_stripes_on<Medium>(usual_stripes)),
        values_(medium, media::lock_stripes_on<Medium>(usual_stripes)),
        ledger_(medium, state_.first_page),
        where_(detail::parts<Medium, Index>{medium_, words_, locks_, state_}),
        epochs_(media::reclaim_batch_on<Medium>(batch)) {
    ledger_.for_each_waiting([this](const auto& item) { judge(item); });
    if constexpr (!where::links_at_once) end_erasures();
    ledger_.trim();
    is_alone_ = false;
  }

  // The root of this index beside that of its words.
  [[nodiscard]] static media::wanted_root state_root(std::string_view name) {
    return {std::string(name).append(state_suffix), layout_of(where::name, Values::name), layout_version};
  }

  static detail::state& open_state(Medium& medium, std::string_view name, const Index& words) {
    const media::wanted_root own = state_root(name);
    const media::root root = medium.named_root(own.name, own.layout, own.version);
    if (const media::pointer<detail::state> stored(root.word->load(std::memory_order_acquire)); stored) {
      if (!media::can_name(medium, stored))
        throw error("the root of '" + std::string(name) + "' is corrupt", "restore the pool from a copy");
      return *medium.resolve(stored);
    }
    // Their values would be taken for records.
    if (words.size() != 0)
      throw error("'" + std::string(name) + "' is an index of numbers, and has entries",
                  "open it as that, or take another name for the strings");
    publication change(medium);
    auto* const made = media::create<detail::state>(change);
    if (made == nullptr) throw error("no space for index '" + std::string(name) + "'", "use a larger medium");
    media::persist(medium, *made);                                         // (S1)
    media::publish_store(change, *root.word, medium.locate(made).word());  // (S2)
    // (S1) < (S2): the root leads to a complete state.
    change.commit();
    return *made;
  }

  [[nodiscard]] std::uint64_t place_of(const record& r) const noexcept { return medium_.locate(&r).word(); }
  [[nodiscard]] bytes_block& bytes_at(std::uint64_t at) const noexcept {
    return *medium_.resolve(media::pointer<bytes_block>(at));
  }

  // Before `full` is returned, erased or replaced blocks of all threads are freed: an erased key takes a few rounds, if
  // layers of the trie are removed with it.
  template <class Work>
  outcome with_space(Work&& work) {
    constexpr int most_rounds = 8;
    outcome answer = work();
    for (int round = 0; answer == outcome::full && round < most_rounds && epochs_.reclaim() != 0; ++round)
      answer = work();
    return answer;
  }

  // ---- changes of a tree of strings ----

  // Adds the key in one publication.
  outcome put_at_once(place& at, std::string_view key, value_view value) {
    detail::spare_item of_node(ledger_, at.replaces());
    if (of_node.is_missing()) return outcome::full;
    publication change(medium_);
    const record* const made = make_record(change, key, value, 0);
    if (made == nullptr || !where_.link(change, at, key, *made, of_node.where())) return outcome::full;
    change.commit();
    at.lock.unlock();
    if (at.replaces()) retire_node(of_node.keep());
    return outcome::inserted;
  }

  outcome take_out_at_once(std::string_view key) {
    const auto guard = epochs_.pin();
    place at = where_.seek_to_erase(key);
    if (at.found == nullptr) return outcome::absent;
    detail::spare_item of_record(ledger_, true);
    detail::spare_item of_node(ledger_, at.replaces());
    if (of_record.is_missing() || of_node.is_missing()) return outcome::full;
    publication change(medium_);
    const bool replaced = where_.unlink(change, at, of_node.where());
    media::publish_store(change, of_record.where()->record, place_of(*at.found));      // (E1)
    media::publish_store(change, of_record.where()->what, detail::waits_for::erased);  // (E2)
    // (E1), (E2) < commit: the record is linked, or in the ledger (G1).
    change.commit();
    at.lock.unlock();
    if (replaced) retire_node(of_node.keep());
    epochs_.retire([this, item = of_record.keep()] { give_back_record(item); });
    return outcome::erased;
  }

  // Releases an unlinked node when no reader can be in it. No memory for that: the next open does it.
  void retire_node(const typename ledger::place& item) {
    epochs_.retire([this, item] { give_back_node(item); });
  }

  void give_back_node(const typename ledger::place& item) {
    publication change(medium_);
    where_.release_node(change, *item.where);
    forget(change, item);
  }

  // ---- changes of words ----

  outcome take_out(std::string_view key) {
    const auto guard = epochs_.pin();
    place at = where_.seek_present(key);
    if (at.found == nullptr) return outcome::absent;
    const auto item = ledger_.take();
    if (!item) return outcome::full;
    record& gone = *at.found;
    ledger_.enter_record(item, place_of(gone));
    if (!where_.unlink(at)) {
      ledger_.clear(item);
      return outcome::full;
    }
    at.lock.unlock();
    end_erase_later(item, gone, where_.leave(at));
    return outcome::erased;
  }

  template <class Existing>
  outcome put(std::string_view key, value_view value, Existing&& existing) {
    if (key.size() > most_key_bytes)
      throw error("a key of " + std::to_string(key.size()) + " bytes is too long",
                  "keys have at most " + std::to_string(most_key_bytes) + " bytes");
    Values::check(value);
    const auto guard = epochs_.pin();
    place at = where_.seek(key);
    if (at.found != nullptr) return existing(at);
    if constexpr (where::links_at_once)
      return put_at_once(at, key, value);
    else
      return put_in_steps(at, key, value);
  }

  // A record that nothing leads to yet, with its value; nullptr: no space.
  [[nodiscard]] record* make_record(publication& change, std::string_view key, value_view value, std::uint64_t next) {
    const std::optional<std::uint64_t> stored = values_.store(change, value);
    if (!stored) return nullptr;
    return detail::make_block<record>(medium_, change, key, [&](record& r) {
      r.next.store(next, std::memory_order_relaxed);
      r.value.store(*stored, std::memory_order_relaxed);
    });
  }

  outcome put_in_steps(place& at, std::string_view key, value_view value) {
    detail::spare_item spare(ledger_, true);
    if (spare.is_missing()) return outcome::full;
    publication change(medium_);
    record* const made = make_record(change, key, value, where_.next_of_new(at));
    if (made == nullptr || !where_.prepare(change, at, key, *spare.where(), *made)) return outcome::full;
    change.commit();  // (P1)
    const auto item = spare.keep();
    const detail::linked done = where_.link_in(at, key, *made);
    if (done == detail::linked::yes) {
      ledger_.clear(item);  // (P2)
      // (P1) < link_in < (P2) < unlock: the ledger names the blocks for as long as nothing leads to them (G1), and no
      // longer than this key is locked (G2).
      return outcome::inserted;
    }
    if (done == detail::linked::no) {
      publication undo(medium_);
      give_back(undo, *made, item);
      where_.forget_layer(at);
    }
    return outcome::full;
  }

  outcome replace(place& at, value_view value) {
    record& r = *at.found;
    std::unique_lock lock(values_.lock_of(r), std::defer_lock);
    if constexpr (!Values::in_blocks) {
      lock.lock();
      r.value.store(value, std::memory_order_release);  // (V1) commit
      media::persist(medium_, r.value);                 // (V2)
      // (V1) < (V2) < unlock: a reader answers with a value only when it is durable.
    } else {
      detail::spare_item item(ledger_, true);
      if (item.is_missing()) return outcome::full;
      const std::uint64_t old = r.value.load(std::memory_order_relaxed);
      publication change(medium_);
      const std::optional<std::uint64_t> stored = values_.store(change, value);
      if (!stored) return outcome::full;
      media::publish_store(change, r.value, *stored);  // (V3)
      if (old != 0) {
        media::publish_store(change, item.where()->prefix, old);                       // (V4)
        media::publish_store(change, item.where()->what, detail::waits_for::readers);  // (V5)
      }
      lock.lock();
      // (V3), (V4), (V5) < commit: the new value is linked, and the old one in the ledger, atomically.
      change.commit();
      lock.unlock();
      at.lock.unlock();
      if (old == 0) return outcome::updated;
      epochs_.retire([this, replaced = item.keep()] { give_back_value(replaced); });
    }
    return outcome::updated;
  }

  std::optional<value_type> find_pinned(std::string_view key, const typename where::search& search) {
    std::optional<value_type> value;
    const bool found = where_.find(key, search, [&](const record& r) { value = values_.durable(r); });
    if (!found) value.reset();
    return value;
  }

  // ---- items of the ledger ----

  [[nodiscard]] record* record_at(const typename ledger::place& item) const noexcept {
    return medium_.resolve(media::pointer<record>(item->record.load(std::memory_order_acquire)));
  }

  // Releases a record that nothing leads to, its value, and the skipped bytes that were made with it.
  void give_back(publication& change, record& gone, const typename ledger::place& item) {
    values_.release(change, gone);
    if (item->what.load(std::memory_order_relaxed) == detail::waits_for::layer) {
      const std::uint64_t prefix = item->prefix.load(std::memory_order_relaxed);
      if (prefix != 0) {
        detail::release_block(change, bytes_at(prefix));
      }
    }
    detail::release_block(change, gone);
    forget(change, item);
  }

  void give_back_record(const typename ledger::place& item) {
    publication change(medium_);
    give_back(change, *record_at(item), item);
  }

  void end_erase_later(const typename ledger::place& item, record& gone, detail::layer_gates::ticket t) {
    // Without memory for it, the item waits for the next open.
    if (!epochs_.retire([this, item, record_gone = &gone, t] { end_erase(item, *record_gone, t); })) where_.let_go(t);
  }

  // When no reader can use an erased record: frees it, and before it the layers in which it was the last but one entry.
  void end_erase(const typename ledger::place& item, record& gone, detail::layer_gates::ticket t) {
    if constexpr (where::has_layers) {
      if (t != detail::layer_gates::nothing) {
        using state = typename where::tidied::state;
        const auto guard = epochs_.pin();
        const auto left =
            where_.tidy(gone.key(), item, is_alone_ ? detail::layer_gates::alone : t, ledger_,
                        [this](const auto& skipped) { epochs_.retire([this, skipped] { give_back_value(skipped); }); });
        if (left.now == state::again) return end_erase_later(item, gone, left.ticket);
        if (left.now == state::in_pieces) return;
      }
    }
    give_back_record(item);
  }

  void give_back_value(const typename ledger::place& item) {
    publication change(medium_);
    detail::release_block(change, bytes_at(item->prefix.load(std::memory_order_relaxed)));
    forget(change, item);
  }

  // The item and the blocks that it names are freed atomically (G2).
  void forget(publication& change, const typename ledger::place& item) {
    media::publish_store(change, item->what, detail::waits_for::nothing);  // (F1)
    // (F1) < commit: no item names a block that may be reused (G2).
    change.commit();
    ledger_.make_free(item);
  }

  // Checks an item that a crash left in the ledger: a block that is part of the index stays, others are freed; a record
  // that will be freed waits until all items have been checked.
  void judge(const typename ledger::place& item) {
    if constexpr (where::links_at_once)
      judge_unlinked(item);
    else
      judge_by_words(item);
  }

  [[nodiscard]] static error corrupt_ledger() {
    return error("the ledger of a string index is corrupt", "restore the pool from a copy");
  }

  // Frees an item of a tree of strings: it names what was unlinked, or a value that was replaced.
  void judge_unlinked(const typename ledger::place& item) {
    switch (item->what.load(std::memory_order_acquire)) {
      case detail::waits_for::readers: return give_back_value(item);
      case detail::waits_for::node: return give_back_node(item);
      case detail::waits_for::erased: return give_back_record(item);
      default: throw corrupt_ledger();
    }
  }

  // Layers change only when all items have been checked against the current words. That uses and frees items.
  void end_erasures() {
    std::vector<typename ledger::place> erased;
    ledger_.for_each_waiting([&](const auto& item) {
      const auto what = item->what.load(std::memory_order_acquire);
      if (what == detail::waits_for::words || what == detail::waits_for::removal) erased.push_back(item);
    });
    for (const auto& item : erased) end_erase(item, *record_at(item), detail::layer_gates::alone);
    where_.find_free_numbers();
  }

  void judge_by_words(const typename ledger::place& item) {
    switch (item->what.load(std::memory_order_acquire)) {
      case detail::waits_for::erased:
      case detail::waits_for::node: throw corrupt_ledger();
      case detail::waits_for::nothing: return;
      case detail::waits_for::readers: return give_back_value(item);
      case detail::waits_for::words:
        if (where_.leads_to(*record_at(item))) return ledger_.clear(item);
        return;
      case detail::waits_for::removal:
        // The layer is removed with the record.
        if (where_.layer_is_there(*item.where)) ledger_.leave_removal(item);
        return;
      case detail::waits_for::skipped:
        if (where_.leads_to_skipped(*item.where)) return ledger_.clear(item);
        return give_back_value(item);
      case detail::waits_for::layer:
        if (where_.layer_is_there(*item.where)) return ledger_.clear(item);
        if (where_.take_back(item->number.load(std::memory_order_acquire)) == detail::linked::in_pieces) return;
        break;
    }
    give_back_record(item);
  }

  // The bytes of blocks that the index does not lead to.
  [[nodiscard]] std::uint64_t bytes_waiting_at(const typename ledger::place& item) const {
    const auto what = item->what.load(std::memory_order_acquire);
    if (what == detail::waits_for::readers) return bytes_of_prefix(item);
    if constexpr (where::links_at_once) {
      if (what == detail::waits_for::node) return where::bytes_of_node(*item.where);
    } else if (what == detail::waits_for::skipped) {
      return where_.leads_to_skipped(*item.where) ? 0 : bytes_of_prefix(item);
    }
    const record& r = *record_at(item);
    if constexpr (!where::links_at_once)
      if (where_.leads_to(r)) return 0;
    return r.block_bytes() + values_.medium_bytes(r);
  }
  [[nodiscard]] std::uint64_t bytes_of_prefix(const typename ledger::place& item) const {
    return bytes_at(item->prefix.load(std::memory_order_acquire)).block_bytes();
  }

  Medium& medium_;
  mutable Index words_;
  detail::state& state_;
  sync::version_lock_table locks_;
  detail::record_values<Medium, Values> values_;
  ledger ledger_;
  where where_;
  bool is_alone_ = true;  // opening or closing: no other thread runs
  // Last, so that its pending functions run first.
  sync::epochs epochs_;
};

}  // namespace pmlab::strings
