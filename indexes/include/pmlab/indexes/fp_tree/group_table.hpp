// Where the leaves of an FP-tree's groups are, and how the search layer names a leaf: so that a search can have a line
// of the leaf on its way together with the descriptor, without having read the descriptor.
#pragma once

#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace pmlab::indexes::detail::fp_tree {

// A leaf in one word: the address of its descriptor, and the number of its group in the bits that no such address has.
//
//   63      48 47              6 5      0
//   | number  | descriptor / 64 | number |      0 : the group has no number
//     upper 16                    lower 6
//
// The descriptor's place in its page is the leaf's place in the group.
class leaf_name {
 public:
  static constexpr std::uint64_t greatest_group = (std::uint64_t{1} << 22) - 1;

  explicit leaf_name(std::uint64_t word) noexcept : word_(word) {}
  explicit leaf_name(const descriptor& d) noexcept {
    const std::uint64_t group = descriptor_page::of(d).group;
    word_ = group >> low_width << address_width | reinterpret_cast<std::uint64_t>(&d) | (group & low_bits);
  }

  [[nodiscard]] std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] fp_tree::descriptor* descriptor() const noexcept {
    return reinterpret_cast<fp_tree::descriptor*>(word_ & address_bits);
  }
  [[nodiscard]] std::uint64_t group() const noexcept {
    return (word_ >> address_width << low_width) | (word_ & low_bits);
  }
  [[nodiscard]] std::size_t place_in_group() const noexcept { return word_ % page_bytes / sizeof(fp_tree::descriptor); }

 private:
  static constexpr unsigned low_width = std::countr_zero(alignof(fp_tree::descriptor));
  static constexpr unsigned address_width = 48;
  static constexpr std::uint64_t low_bits = (std::uint64_t{1} << low_width) - 1;
  static constexpr std::uint64_t address_bits = ((std::uint64_t{1} << address_width) - 1) & ~low_bits;
  std::uint64_t word_;
};

// Group number -> address of the group's leaves: eight bytes a group, a small part of the caches.
//
// Thread safety: `leaves_of` from any number of threads; `add` and `remove` one at a time. Memory: chunks that double
// and never move.
class group_table {
 public:
  group_table() = default;
  group_table(const group_table&) = delete;
  group_table& operator=(const group_table&) = delete;
  ~group_table() {
    for (std::size_t k = 0; k < chunk_count; ++k)
      std::default_delete<chunk[]>()(chunks_[k].load(std::memory_order_relaxed));
  }

  // The number of a group whose leaves begin at `leaves`. 0: there is no memory, or no number left; searches then find
  // the group's leaves through their descriptors alone.
  [[nodiscard]] std::uint64_t add(leaf* leaves) noexcept {
    if (!free_.empty()) {
      const std::uint64_t again = free_.back();
      free_.pop_back();
      word_of(again).store(leaves, std::memory_order_release);
      return again;
    }
    const std::uint64_t number = groups_ + 1;
    if (number > leaf_name::greatest_group) return 0;
    const place at(number);
    chunk* here = chunks_[at.chunk].load(std::memory_order_relaxed);
    if (here == nullptr) {
      here = new (std::nothrow) chunk[first_chunk << at.chunk]{};
      if (here == nullptr) return 0;
      chunks_[at.chunk].store(here, std::memory_order_release);
    }
    here[at.index].store(leaves, std::memory_order_release);
    groups_ = number;
    return number;
  }

  // Removes the group of this number: no leaf of it has a name any more, and a later group gets the number. 0: it had
  // none.
  void remove(std::uint64_t number) noexcept {
    if (number == 0) return;
    word_of(number).store(nullptr, std::memory_order_release);
    try {
      free_.push_back(number);
    } catch (const std::bad_alloc&) {
      // One of four million numbers is lost.
    }
  }

  // nullptr: the number is none of a group.
  [[nodiscard]] leaf* leaves_of(std::uint64_t number) const noexcept {
    const place at(number);
    const chunk* const here = chunks_[at.chunk].load(std::memory_order_acquire);
    return here == nullptr ? nullptr : here[at.index].load(std::memory_order_acquire);
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return (groups_ + 1) * sizeof(chunk); }

 private:
  using chunk = std::atomic<leaf*>;
  static constexpr std::size_t first_chunk = 64;

  struct place {
    explicit place(std::uint64_t number) noexcept
        : chunk(static_cast<std::size_t>(std::bit_width(number / first_chunk + 1)) - 1),
          index(number + first_chunk - (first_chunk << chunk)) {}
    std::size_t chunk;
    std::size_t index;
  };
  [[nodiscard]] chunk& word_of(std::uint64_t number) noexcept {
    const place at(number);
    return chunks_[at.chunk].load(std::memory_order_relaxed)[at.index];
  }

  static constexpr std::size_t chunk_count = 17;
  static_assert((first_chunk << chunk_count) - first_chunk > leaf_name::greatest_group);

  std::array<std::atomic<chunk*>, chunk_count> chunks_{};
  std::uint64_t groups_ = 0;         // numbers that are or were one of a group: 1, 2, ...
  std::vector<std::uint64_t> free_;  // free ones of these: those of groups that are gone
};

}  // namespace pmlab::indexes::detail::fp_tree
