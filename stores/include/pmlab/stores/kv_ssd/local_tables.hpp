// The local tables of the index managers: in DRAM, the words of slots whose records were overwritten and have not
// reached the flash. They stand before the words of the global index, which follow when the records are moved.
//
// So an overwrite changes nothing of the global index, and a key that is overwritten again before it is moved never
// does; a search that finds its slot here reads nothing of it. A Bloom filter over each table answers most searches for
// other slots without reading the table.
//
// A crash loses the tables: replay finds the records in the write buffer (replay.hpp).
#pragma once

#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

// A set of words that may return true for others. Not thread-safe.
class bloom_filter {
 public:
  [[nodiscard]] bool may_have(std::uint64_t key) const noexcept {
    if (bits_.empty()) return false;
    const std::uint64_t mixed = mix_bits(key);
    return has(mixed) && has(std::rotl(mixed, 32));
  }
  void add(std::uint64_t key) noexcept {
    const std::uint64_t mixed = mix_bits(key);
    set(mixed);
    set(std::rotl(mixed, 32));
    ++added_;
  }
  // One word more would make false answers frequent.
  [[nodiscard]] bool is_full() const noexcept { return added_ * bits_for_each >= bits_.size() * word_bits; }
  // Empty, with room for `count` words.
  void reset(std::size_t count) {
    bits_.assign(std::bit_ceil(std::max<std::size_t>(count, 4) * bits_for_each / word_bits), 0);
    added_ = 0;
  }

 private:
  static constexpr std::size_t word_bits = 64;
  static constexpr std::size_t bits_for_each = 16;

  [[nodiscard]] bool has(std::uint64_t mixed) const noexcept {
    return (bits_[mixed / word_bits & (bits_.size() - 1)] >> mixed % word_bits & 1) != 0;
  }
  void set(std::uint64_t mixed) noexcept {
    bits_[mixed / word_bits & (bits_.size() - 1)] |= std::uint64_t{1} << mixed % word_bits;
  }

  std::vector<std::uint64_t> bits_;
  std::size_t added_ = 0;
};

// Searches of one manager. Any thread counts.
struct local_counts {
  std::atomic<std::uint64_t> hits{0};    // the table had the slot
  std::atomic<std::uint64_t> misses{0};  // the table was searched, and did not have it
  std::atomic<std::uint64_t> spared{0};  // the filter answered
};

// The local table of one manager. Thread safety: one writer, or any number of readers.
class alignas(64) local_table {
 public:
  void use(bool filter) noexcept { has_filter_ = filter; }

  [[nodiscard]] std::optional<std::uint64_t> find(std::uint64_t slot) const {
    if (words_.empty()) return std::nullopt;
    if (has_filter_ && !filter_.may_have(slot)) {
      counts_.spared.fetch_add(1, std::memory_order_relaxed);
      return std::nullopt;
    }
    const auto at = words_.find(slot);
    (at == words_.end() ? counts_.misses : counts_.hits).fetch_add(1, std::memory_order_relaxed);
    return at == words_.end() ? std::nullopt : std::optional(at->second.word);
  }
  // Adds the slot with this word, unless it has one: `set` needs no memory then. If it throws, nothing has changed.
  void add(std::uint64_t slot, std::uint64_t place) {
    if (words_.contains(slot)) return;
    // Before the word: one too many in the filter is a search in vain.
    if (has_filter_ && filter_.is_full()) {
      // Words that are gone leave the filter, too.
      filter_.reset(2 * (words_.size() + 1));
      for (const auto& [there, ignored] : words_) filter_.add(there);
    }
    if (has_filter_) filter_.add(slot);
    words_.emplace(slot, entry{place, 0});
  }
  // `position`: of its record in the write buffer. REQUIRES: the slot was added.
  void set(std::uint64_t slot, std::uint64_t place, std::uint64_t position) noexcept {
    entry& e = words_.find(slot)->second;
    e.word = place;
    if (e.since == 0) e.since = position;
  }
  // Calls settle(slot, place) for each whose first record since it was added lies before `position`: they go.
  template <class Settle>
  void settle_before(std::uint64_t position, Settle&& settle) {
    std::erase_if(words_, [&](const auto& one) {
      if (one.second.since >= position) return false;
      settle(one.first, one.second.word);
      return true;
    });
  }
  void erase(std::uint64_t slot) noexcept { words_.erase(slot); }

  // Calls visit(slot, place) for each.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const auto& [slot, e] : words_) visit(slot, e.word);
  }
  [[nodiscard]] const local_counts& counts() const noexcept { return counts_; }

 private:
  struct entry {
    std::uint64_t word = 0;
    std::uint64_t since = 0;  // position of the first record that it led to; 0: none yet
  };

  bool has_filter_ = true;
  std::unordered_map<std::uint64_t, entry> words_;
  bloom_filter filter_;
  mutable local_counts counts_;
};

}  // namespace pmlab::stores::detail::kv_ssd
