// The keys of a hash table: the word of a key is its 64-bit hash, and points to its record.
//
// Few keys share a hash, if any; those that do are a chain, and the word points to the newest record. So the word is a
// fingerprint of 64 bits: a search reads one key, the one that it returns.
//
//   H1  A record is in the chain of its key's hash, and no other record of the chain has its key.
//   H2  Chains change under the lock of their word, and are durable before it is released; a reader's result is valid
//       if the lock was free and unchanged while it read.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/strings/detail/hash.hpp>
#include <pmlab/strings/detail/layer_gates.hpp>
#include <pmlab/strings/detail/parts.hpp>
#include <pmlab/strings/roots.hpp>

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

struct key_hash {
  std::uint64_t operator()(std::string_view key) const noexcept { return hash_of(key); }
};

template <media::medium Medium, class Index, class Hash>
class hashed : private parts<Medium, Index> {
  using base = parts<Medium, Index>;
  using publication = typename Medium::publication;
  using base::change_of_words;
  using base::key_of;
  using base::lock_of;
  using base::medium;
  using base::place_of;
  using base::record_at;
  using base::words;

 public:
  static constexpr std::string_view name = hashed_words;
  static constexpr bool links_at_once = false;

  explicit hashed(const base& all) : base(all) {}

  // Where a key is, or would be. While it exists, its word is locked.
  struct place {
    std::unique_lock<sync::version_lock> lock;
    std::uint64_t word = 0;
    std::uint64_t head = 0;  // head of the chain
    record* found = nullptr;
    record* before = nullptr;  // in the chain; nullptr: `found` is the head
  };

  // The part of a search that is computed before the index may be read.
  struct search {
    std::uint64_t word;
  };
  // Also prefetches the line of the word, before anything else: so it arrives while the previous search still waits for
  // its record.
  [[nodiscard]] search begin(std::string_view key) const {
    const search s{Hash{}(key)};
    if constexpr (requires { words.prefetch_find(s.word); }) words.prefetch_find(s.word);
    return s;
  }

  // Calls read(record) with the record of `key`, if there is one, until the result is valid. True: there is one. `s`:
  // of this key.
  template <class Read>
  bool find(std::string_view key, const search& s, Read&& read) const {
    const std::uint64_t word = s.word;
    const sync::version_lock& lock = lock_of(word);
    for (;;) {
      const std::uint64_t version = lock.read_begin();
      record* const found = in_chain(words.find(word).value_or(0), key).found;
      if (found != nullptr) read(*found);
      if (lock.read_validate(version)) return found != nullptr;
    }
  }

  // Prefetches the lines that `find` of these keys reads, all at once.
  void prefetch(std::span<const std::string_view> keys) const {
    std::array<std::uint64_t, batch_width> hashes;
    std::array<std::optional<std::uint64_t>, batch_width> heads;
    for (std::size_t i = 0; i < keys.size(); ++i) hashes[i] = Hash{}(keys[i]);
    words.find_batch(std::span(hashes).first(keys.size()), std::span(heads).first(keys.size()));
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (heads[i]) media::prefetch(medium, &record_at(*heads[i]), media::cache_line_bytes);
  }
  static constexpr std::size_t batch_width = 16;

  [[nodiscard]] place seek(std::string_view key) const { return seek_present(key); }

  [[nodiscard]] place seek_present(std::string_view key) const {
    place p;
    p.word = Hash{}(key);
    p.lock = std::unique_lock(lock_of(p.word));
    p.head = words.find(p.word).value_or(0);
    const position in = in_chain(p.head, key);
    p.found = in.found;
    p.before = in.before;
    return p;
  }

  // The link that a new record must hold before it is published.
  [[nodiscard]] std::uint64_t next_of_new(const place& p) const noexcept { return p.head; }

  // The ledger's part of the publication that makes `made`. False: no space.
  bool prepare(publication& change, place& /*p*/, std::string_view /*key*/, item& on, const record& made) const {
    media::publish_store(change, on.record, place_of(made));  // (H1)
    media::publish_store(change, on.what, waits_for::words);  // (H2)
    // (H1), (H2) < commit: the block and its item are one step (G1).
    return true;
  }

  [[nodiscard]] linked link_in(place& p, std::string_view /*key*/, record& made) const {
    using indexes::outcome;
    const std::uint64_t to = place_of(made);
    const outcome o =
        change_of_words([&] { return p.head == 0 ? words.insert(p.word, to) : words.update(p.word, to); });
    return o == outcome::full ? linked::no : linked::yes;
  }

  // Removes the found record from the chain, durably. False: no space for that.
  [[nodiscard]] bool unlink(place& p) const {
    using indexes::outcome;
    const std::uint64_t next = p.found->next.load(std::memory_order_acquire);
    if (p.before != nullptr) {
      p.before->next.store(next, std::memory_order_release);  // (H3) commit
      media::persist(medium, p.before->next);                 // (H4)
      // (H3) < (H4) < unlock: H2.
      return true;
    }
    return change_of_words([&] { return next == 0 ? words.erase(p.word) : words.update(p.word, next); }) !=
           outcome::full;
  }

  static void forget_layer(const place& /*p*/) noexcept {}

  // There are no layers.
  static constexpr bool has_layers = false;
  [[nodiscard]] static layer_gates::ticket leave(const place& /*p*/) noexcept { return layer_gates::nothing; }
  static void let_go(layer_gates::ticket /*t*/) noexcept {}

  // ---- recovery, while there is one thread ----

  [[nodiscard]] bool leads_to(const record& r) const {
    for (std::uint64_t link = words.find(Hash{}(r.key())).value_or(0); link != 0;
         link = record_at(link).next.load(std::memory_order_acquire))
      if (link == place_of(r)) return true;
    return false;
  }
  [[nodiscard]] static bool layer_is_there(const item& /*of*/) { return true; }
  [[nodiscard]] static linked take_back(std::uint64_t /*number*/) { return linked::yes; }
  [[nodiscard]] static bool leads_to_skipped(const item& /*of*/) { return true; }
  static void find_free_numbers() {}
  [[nodiscard]] static std::uint64_t words_of_gone(const item& /*of*/) { return 0; }

  // ---- walks ----

  // Calls function(record) with every record.
  template <class Function>
  void for_each(Function&& function) const {
    words.for_each([&](std::uint64_t, std::uint64_t head) {
      for (std::uint64_t link = head; link != 0;) {
        record& r = record_at(link);
        link = r.next.load(std::memory_order_acquire);
        function(r);
      }
    });
  }

  // There are no blocks but records.
  static void add_to(indexes::index_stats& /*stats*/) noexcept {}

  void check(indexes::check_report& report, std::uint64_t /*unlinked*/) const {
    words.for_each([&](std::uint64_t word, std::uint64_t head) {
      std::vector<std::string_view> keys;
      for (std::uint64_t link = head; link != 0;) {
        if (!media::can_name(medium, media::pointer<record>(link)))
          return report.add("H1: the chain of word " + std::to_string(word) + " leads nowhere");
        const record& r = record_at(link);
        if (!media::can_name(medium, media::pointer<record>(link), r.block_bytes()))
          return report.add("H1: a record of word " + std::to_string(word) + " is longer than its medium");
        if (Hash{}(r.key()) != word)
          report.add("H1: a record is in the chain of another hash: " + std::to_string(word));
        for (const std::string_view other : keys)
          if (other == r.key()) return report.add("H1: a key is twice in the chain of word " + std::to_string(word));
        keys.push_back(r.key());
        link = r.next.load(std::memory_order_acquire);
      }
      report.entries += keys.size();
    });
  }

 private:
  struct position {
    record* found = nullptr;
    record* before = nullptr;
  };

  [[nodiscard]] position in_chain(std::uint64_t head, std::string_view key) const {
    position in;
    for (std::uint64_t next = head; next != 0;) {
      record& r = record_at(next);
      if (key_of(r) == key) {
        in.found = &r;
        return in;
      }
      in.before = &r;
      next = r.next.load(std::memory_order_acquire);
    }
    return in;
  }
};

}  // namespace pmlab::strings::detail
