// Towers in DRAM: a search layer over all entries, built again by every open.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/skip_list/body.hpp>
#include <pmlab/indexes/skip_list/outside.hpp>
#include <pmlab/indexes/skip_list/recovery.hpp>
#include <pmlab/indexes/skip_list/tower_layers.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace pmlab::indexes::detail::skip_list {

// A hint: entries may be missing (no memory; an insert under way). But it never leads to a freed node: a word is
// inserted and removed with its node's lock held, never inserted when the node is marked, and removed before the node
// is retired. So a thread that finds it under a guard had that guard before.
template <class Medium>
class dram_towers {
 public:
  static constexpr std::size_t levels_in_medium = 1;
  static constexpr bool zeroed_slabs = false;
  static constexpr bool recovers_all_slabs = true;  // when it opens
  using body_type = body<Medium, levels_in_medium>;
  using slab_type = typename body_type::slab_type;

  // Also recovers the list: marked nodes are removed, and unreachable nodes are free. Throws pmlab::error, and has
  // changed nothing, if that would lose the entry of an insert that returned (K5).
  explicit dram_towers(body_type& b)
      : body_(b), layer_(reinterpret_cast<std::uint64_t>(&b.root->heads[0]), least_bytes) {
    const node_table<slab_type> table(slabs_from<slab_type>(b.medium, b.root->slabs.load(std::memory_order_acquire)));
    const std::uint64_t writers = writers_of(b.root->writers);
    chain_walks<Medium, slab_type> walks(b.medium, b.root->heads[0], table, writers, threads());
    const scratch<search_entry> entries(walks.size());
    std::vector<std::uint8_t> in_list(table.size());
    walks.collect(entries.all(), in_list);
    const outside_search<Medium, slab_type> outside(b.medium, table, writers, threads(),
                                                    [&](std::size_t number) { return in_list[number] != 0; });
    if (!outside.found().lost.empty()) throw corrupt(b.name, text_of_lost(outside.found().lost.size()));
    walks.take_out_deleted();
    take_back(outside.found().unanswered);
    b.nodes.adopt(table.slabs(), in_list);
    if (!layer_.build(entries.all(), threads())) throw std::bad_alloc();
  }

  // A node at or below `key`: the last one, or one further left, which may be marked; or the head.
  [[nodiscard]] node& floor(key_type key) const { return *reinterpret_cast<node*>(layer_.floor(key)); }

  // out[i] := floor(keys[i]), with overlapping cache misses; the nodes are on their way. At most `most_at_once`.
  static constexpr std::size_t most_at_once = 16;
  void floors(std::span<const key_type> keys, std::span<node*> out) const {
    std::array<tower_layers::descent, most_at_once> searches;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      searches[i] = layer_.begin(keys[i]);
      out[i] = nullptr;
    }
    for (std::size_t left = keys.size(); left > 0;)
      for (std::size_t i = 0; i < keys.size(); ++i) {
        if (out[i] != nullptr) continue;
        const std::uint64_t word = layer_.step(searches[i]);
        if (word == 0) continue;
        out[i] = reinterpret_cast<node*>(word);
        media::prefetch(body_.medium, *out[i]);
        --left;
      }
  }

  // Prefetches the next nodes behind `key`, `count` of them or fewer.
  void look_ahead(key_type key, std::size_t count) const {
    std::array<std::uint64_t, most_ahead> words;
    const std::size_t found = layer_.words_after(key, std::span(words.data(), std::min(count, most_ahead)));
    for (std::size_t i = 0; i < found; ++i) media::prefetch(body_.medium, *reinterpret_cast<const node*>(words[i]));
  }
  static constexpr std::size_t most_ahead = 128;

  // Persistent towers are made of nodes; these are not.
  struct tower_nodes {};
  template <class Allocate>
  [[nodiscard]] static tower_nodes prepare(key_type /*key*/, const node& /*n*/, Allocate&& /*allocate*/) noexcept {
    return {};
  }
  static void put_away(tower_nodes& /*made*/) noexcept {}
  template <class Slab>
  static void recover_slab(Slab& /*s*/, std::vector<node*>& /*found*/) noexcept {}

  // With the lock of `n` held; put: `n` is not marked. Without memory nothing happens: it is a hint.
  void put(key_type key, node& n, tower_nodes& /*made*/) { layer_.put(key, reinterpret_cast<std::uint64_t>(&n)); }
  void remove(key_type key, node& n) { layer_.remove(key, reinterpret_cast<std::uint64_t>(&n)); }

  // All nodes of slabs are entries.
  static constexpr std::uint64_t level_of(const node& /*n*/) noexcept { return level_of_entries; }
  static constexpr bool is_in_list(const node& /*n*/, std::uint64_t /*level*/) noexcept { return false; }
  static constexpr bool renew(key_type /*key*/, node& /*n*/, tower_nodes& /*made*/) noexcept { return false; }

  // Only nodes of slabs whose free nodes are not known yet need this.
  static constexpr bool claim(const node& /*n*/) noexcept { return true; }

  // Does a part of the work that makes the memory fit so many entries. Under a guard; one thread at a time.
  void shrink(std::size_t entries) {
    layer_.shrink(entries, body_.epochs, [this](const node& n) -> sync::version_lock& { return body_.lock_of(n); });
  }

  [[nodiscard]] std::uint64_t levels() const { return layer_.levels(); }
  [[nodiscard]] std::uint64_t bytes() const { return layer_.bytes(); }

  // Every word leads to an entry of its key.
  template <class Table>
  void check(const Table& /*table*/, check_report& report) const {
    layer_.check(report, [&](key_type key, std::uint64_t word) {
      const node& n = *reinterpret_cast<const node*>(word);
      if (is_marked(n.next.load(std::memory_order_acquire)) || n.key.load(std::memory_order_acquire) != key)
        report.add("the towers lead from key " + std::to_string(key) + " to a node that is deleted or another's");
    });
  }

 private:
  // Bytes of towers that may shrink: all where memory is reclaimed at once.
  static constexpr std::uint64_t least_bytes = media::sizes_on<Medium>.reclaims_at_once ? 0 : std::uint64_t{32} << 10;

  [[nodiscard]] static unsigned threads() noexcept {
    return media::sizes_on<Medium>.recovers_in_parallel ? sync::recovery_threads() : 1;
  }

  // Withdraws nodes of inserts that a crash interrupted: they count as never written from now on, so that they do not
  // accumulate.
  void take_back(const std::vector<node*>& unanswered) const {
    for (node* const n : unanswered) {
      n->level.store(0, std::memory_order_relaxed);  // (T1)
      media::flush(body_.medium, n->level);          // (T2)
    }
    if (!unanswered.empty()) body_.medium.fence();  // (T3)
    // (T1) < (T2) < (T3). In any order, at any time: a crash leaves some of them as they were.
  }

  body_type& body_;
  tower_layers layer_;
};

}  // namespace pmlab::indexes::detail::skip_list
