// The directory of an extendible hash table: in the medium, and its copy in DRAM that every operation reads.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace pmlab::indexes::detail::extendible {

inline constexpr unsigned initial_global_depth = 1;
inline constexpr unsigned greatest_global_depth = 48;

// A directory entry: a word that names a segment (a medium pointer in the medium, an address in DRAM; both multiples
// of 256) with the segment's local depth. Name and depth change in one store.
//
//   63            8  7            6         5           0
//   | segment, upper | unsearched | untidy | local depth |
//
//   unsearched   in DRAM only: an earlier run wrote the segment, and the marks that
//                its searches need (overflow bits, filters) have not been computed yet
//   untidy       in DRAM only, for indexes that use it: removals in the segment may
//                not be durable yet, of old copies of entries that were moved
struct entry_word {
  std::uint64_t word = 0;

  static constexpr std::uint64_t depth_mask = 0x3f;
  static constexpr std::uint64_t untidy_bit = 0x40;
  static constexpr std::uint64_t unsearched_bit = 0x80;
  static constexpr std::uint64_t segment_mask = ~std::uint64_t{0xff};

  static constexpr entry_word of(std::uint64_t segment, unsigned local_depth) noexcept {
    return {segment | local_depth};
  }
  [[nodiscard]] constexpr std::uint64_t segment_word() const noexcept { return word & segment_mask; }
  [[nodiscard]] constexpr unsigned local_depth() const noexcept { return static_cast<unsigned>(word & depth_mask); }
  [[nodiscard]] constexpr bool is_unsearched() const noexcept { return (word & unsearched_bit) != 0; }
  [[nodiscard]] constexpr entry_word unsearched() const noexcept { return {word | unsearched_bit}; }
  [[nodiscard]] constexpr entry_word searched() const noexcept { return {word & ~unsearched_bit}; }
  [[nodiscard]] constexpr bool is_untidy() const noexcept { return (word & untidy_bit) != 0; }
  [[nodiscard]] constexpr entry_word untidy() const noexcept { return {word | untidy_bit}; }
  [[nodiscard]] constexpr entry_word tidy() const noexcept { return {word & ~untidy_bit}; }
  // The word as the medium has it.
  [[nodiscard]] constexpr entry_word unmarked() const noexcept { return {word & ~(unsearched_bit | untidy_bit)}; }
  friend constexpr bool operator==(entry_word, entry_word) noexcept = default;
};

// The run of directory entries that lead to one segment: 2^(global_depth - local_depth) of them, aligned to that.
struct entry_run {
  std::size_t first;
  std::size_t count;

  static constexpr entry_run of(std::uint64_t hash, unsigned global_depth, unsigned local_depth) noexcept {
    const std::size_t count = std::size_t{1} << (global_depth - local_depth);
    return {(hash >> (64 - global_depth)) & ~(count - 1), count};
  }
};

// The hash bit by which a segment of this local depth is split.
[[nodiscard]] constexpr std::uint64_t next_bit(unsigned local_depth) noexcept {
  return std::uint64_t{1} << (63 - local_depth);
}

// The local depth that a segment was made with. A split makes the half whose next hash bit is 1, and leaves the half of
// the 0 to the segment that was there: since then, a segment's prefix has only got zeros. `prefix`: upper bits of a
// hash.
[[nodiscard]] constexpr unsigned depth_when_made(std::uint64_t prefix, unsigned local_depth) noexcept {
  const std::uint64_t bits = prefix >> (64 - local_depth);
  return bits == 0 ? 1 : local_depth - static_cast<unsigned>(std::countr_zero(bits));
}
static_assert(depth_when_made(std::uint64_t{0b101} << 61, 3) == 3 &&
              depth_when_made(std::uint64_t{0b100} << 61, 3) == 1);
static_assert(depth_when_made(0, 4) == 1 && depth_when_made(std::uint64_t{0b0110} << 60, 4) == 3);

// In the medium: one block of 8 * (1 + 2^global_depth) bytes.
//
//   0              8         16        24
//   | global depth | entry 0 | entry 1 | ...
//
// Entry i leads to the segment of the hashes whose first global_depth bits are i.
struct directory {
  std::atomic<std::uint64_t> global_depth;

  [[nodiscard]] std::atomic<entry_word>* entries() noexcept {
    return reinterpret_cast<std::atomic<entry_word>*>(this + 1);
  }
  [[nodiscard]] static constexpr std::size_t bytes(unsigned global_depth) noexcept {
    return sizeof(std::uint64_t) * (1 + (std::size_t{1} << global_depth));
  }
};
static_assert(sizeof(std::atomic<entry_word>) == 8 && sizeof(directory) == 8);

// In DRAM: the same entries with addresses instead of medium pointers.
class cached_directory {
 public:
  // nullptr: no memory.
  [[nodiscard]] static std::unique_ptr<cached_directory> make(unsigned global_depth) {
    std::unique_ptr<cached_directory> made(new (std::nothrow) cached_directory(global_depth));
    if (made != nullptr && made->entries_ == nullptr) made.reset();
    return made;
  }

  [[nodiscard]] unsigned global_depth() const noexcept { return global_depth_; }
  [[nodiscard]] std::size_t size() const noexcept { return std::size_t{1} << global_depth_; }
  [[nodiscard]] std::atomic<entry_word>& operator[](std::size_t i) const noexcept { return entries_[i]; }
  [[nodiscard]] std::atomic<entry_word>& entry_of(std::uint64_t hash) const noexcept {
    return entries_[hash >> (64 - global_depth_)];
  }

 private:
  explicit cached_directory(unsigned global_depth)
      : global_depth_(global_depth),
        entries_(new (std::nothrow) std::atomic<entry_word>[std::size_t{1} << global_depth]) {}

  unsigned global_depth_;
  std::unique_ptr<std::atomic<entry_word>[]> entries_;
};

}  // namespace pmlab::indexes::detail::extendible
