// The first level of the index of a store without persistent memory: from a chunk to the number of its record, in DRAM.
//
// Pages of an array for each volume, as long as they have an entry: one access of DRAM after the page's, and 4
// bytes for each chunk of a volume that is full.
#pragma once

#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace pmlab::stores::detail::chunk_store {

// Thread safety: all operations from any thread.
class chunk_table {
 public:
  using number = std::uint32_t;

  [[nodiscard]] std::optional<number> find(std::uint64_t key) const {
    const part& p = part_of(key);
    const std::scoped_lock lock(p.mutex);
    const auto at = p.pages.find(key / page_entries);
    if (at == p.pages.end()) return std::nullopt;
    const number n = at->second->numbers[key % page_entries];
    return n == none ? std::nullopt : std::optional(n);
  }
  // Throws std::bad_alloc; nothing changed then.
  void set(std::uint64_t key, number n) {
    part& p = part_of(key);
    const std::scoped_lock lock(p.mutex);
    auto at = p.pages.find(key / page_entries);
    if (at == p.pages.end()) at = p.pages.emplace(key / page_entries, std::make_unique<page>()).first;
    number& place = at->second->numbers[key % page_entries];
    if (place == none) ++at->second->used;
    place = n;
  }
  // Erases an entry. No effect if the chunk has another number, or none.
  void erase(std::uint64_t key, number n) {
    part& p = part_of(key);
    const std::scoped_lock lock(p.mutex);
    const auto at = p.pages.find(key / page_entries);
    if (at == p.pages.end()) return;
    number& place = at->second->numbers[key % page_entries];
    if (place != n) return;
    place = none;
    if (--at->second->used == 0) p.pages.erase(at);
  }
  // Calls visit(key, number) for each.
  template <class Visit>
  void for_each(Visit&& visit) const {
    for (const part& p : parts_) {
      const std::scoped_lock lock(p.mutex);
      for (const auto& [first, entries] : p.pages)
        for (std::size_t i = 0; i < page_entries; ++i)
          if (entries->numbers[i] != none) visit(first * page_entries + i, entries->numbers[i]);
    }
  }
  // The bytes of DRAM, without the heap's bookkeeping.
  [[nodiscard]] std::uint64_t bytes() const {
    constexpr std::size_t node = 4 * sizeof(void*);
    std::uint64_t sum = sizeof(*this);
    for (const part& p : parts_) {
      const std::scoped_lock lock(p.mutex);
      sum += p.pages.size() * (sizeof(page) + node) + p.pages.bucket_count() * sizeof(void*);
    }
    return sum;
  }

 private:
  static constexpr std::size_t page_entries = 1024;
  static constexpr number none = 0xffffffff;

  struct page {
    page() { numbers.fill(none); }
    std::array<number, page_entries> numbers;
    std::size_t used = 0;
  };
  struct alignas(64) part {
    mutable std::mutex mutex;
    std::unordered_map<std::uint64_t, std::unique_ptr<page>> pages;  // key / page_entries
  };

  [[nodiscard]] part& part_of(std::uint64_t key) noexcept {
    return parts_[mix_bits(key / page_entries) % parts_.size()];
  }
  [[nodiscard]] const part& part_of(std::uint64_t key) const noexcept {
    return parts_[mix_bits(key / page_entries) % parts_.size()];
  }

  std::array<part, 16> parts_;
};

}  // namespace pmlab::stores::detail::chunk_store
