// Which blocks of a drive have an owner, while a store looks for the free ones.
#pragma once

#include <pmlab/stores/chunk_store/free_map.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Thread safety: `mark` from any thread; `free_extents` while no thread marks.
class used_blocks {
 public:
  // None has. Throws std::bad_alloc.
  explicit used_blocks(std::uint64_t blocks) : blocks_(blocks), words_((blocks + 63) / 64) {}

  // Blocks [first, first + count) have an owner. False: one of them has one already, or is not on the drive.
  [[nodiscard]] bool mark(std::uint64_t first, std::uint64_t count) noexcept {
    if (count == 0) return true;
    if (first >= blocks_ || blocks_ - first < count) return false;
    bool right = true;
    for (const std::uint64_t end = first + count; first < end;) {
      const std::uint64_t in_word = std::min<std::uint64_t>(end - first, 64 - first % 64);
      const std::uint64_t ones = in_word == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << in_word) - 1;
      const std::uint64_t bits = ones << (first % 64);
      right &= (words_[first / 64].fetch_or(bits, std::memory_order_relaxed) & bits) == 0;
      first += in_word;
    }
    return right;
  }

  // The blocks without an owner, in the order of the drive. Throws std::bad_alloc.
  [[nodiscard]] std::vector<extent> free_extents() const {
    std::vector<extent> list;
    for (std::uint64_t at = next(0, false); at < blocks_;) {
      const std::uint64_t end = next(at, true);
      list.push_back({static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end - at)});
      at = next(end, false);
    }
    return list;
  }

 private:
  // The first block from `at` that has an owner (`used`), or has none.
  [[nodiscard]] std::uint64_t next(std::uint64_t at, bool used) const noexcept {
    while (at < blocks_) {
      const std::uint64_t bits = words_[at / 64].load(std::memory_order_relaxed);
      const std::uint64_t rest = (used ? bits : ~bits) >> (at % 64);
      if (rest != 0) return std::min<std::uint64_t>(at + static_cast<unsigned>(std::countr_zero(rest)), blocks_);
      at = (at / 64 + 1) * 64;
    }
    return blocks_;
  }

  std::uint64_t blocks_;
  std::vector<std::atomic<std::uint64_t>> words_;
};

}  // namespace pmlab::stores::detail::chunk_store
