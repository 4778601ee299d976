// Brings the entries of an FP-tree's leaf into order, without a branch on the keys.
#pragma once

#include <pmlab/base/simd.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>
#include <pmlab/indexes/index.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace pmlab::indexes::detail::fp_tree {

// Entries of one leaf, in the order of reading. The rank of an entry is the number of smaller keys: counting them takes
// a comparison for every pair; none waits for another, and with AVX2 four are compared at a time.
class gathered_entries {
 public:
  // The entries of `of` in the slots of `set` with keys >= `from`.
  gathered_entries(const leaf& of, slot_set set, key_type from) noexcept {
    for_each_slot(set, [&](std::size_t i) {
      const key_type key = of.slots[i].key.load(std::memory_order_acquire);
      keys_[count_] = key;
      values_[count_] = of.slots[i].value.load(std::memory_order_acquire);
      count_ += static_cast<std::size_t>(key >= from);
    });
  }

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] entry operator[](std::size_t i) const noexcept { return {keys_[i], values_[i]}; }

  // Calls function(i, rank) for every entry. (Entries read while a writer was active may have equal keys, and then
  // equal ranks.)
  template <class Function>
  void for_each_rank(Function&& function) const noexcept {
    std::array<std::int64_t, room> ranks;
    find_ranks(ranks);
    for (std::size_t i = 0; i < count_; ++i) function(i, static_cast<std::size_t>(ranks[i]));
  }

  // The first entries in ascending order of keys, as many as fit into `out`; returns their number.
  std::size_t copy_in_order(std::span<entry> out) const noexcept {
    for_each_rank([&](std::size_t i, std::size_t rank) {
      if (rank < out.size()) out[rank] = {keys_[i], values_[i]};
    });
    return std::min(count_, out.size());
  }

 private:
  static constexpr std::size_t room = capacity + 1;

  // ranks[i]: how many keys are smaller than key i; anything beyond the last key.
  void find_ranks(std::array<std::int64_t, room>& ranks) const noexcept {
#if defined(__x86_64__)
    if (simd_of_this_cpu() >= simd::avx2) return find_ranks_by_avx2(ranks);
#endif
    // Each key is compared with those before it, and one of the two is the smaller one.
    ranks = {};
    for (std::size_t i = 1; i < count_; ++i) {
      std::int64_t rank = 0;
      for (std::size_t j = 0; j < i; ++j) {
        const auto smaller = static_cast<std::int64_t>(keys_[j] < keys_[i]);
        rank += smaller;
        ranks[j] += 1 - smaller;
      }
      ranks[i] = rank;
    }
  }

#if defined(__x86_64__)
  [[gnu::target("avx2")]] void find_ranks_by_avx2(std::array<std::int64_t, room>& ranks) const noexcept {
    using lanes [[gnu::vector_size(32)]] = std::int64_t;
    constexpr std::size_t width = sizeof(lanes) / sizeof(key_type);
    static_assert(room % (2 * width) == 0);
    // Signed comparisons are cheaper: with the top bit flipped they give the order of unsigned keys.
    constexpr key_type top_bit = key_type{1} << 63;
    std::array<std::int64_t, room> sought;
    for (std::size_t i = 0; i < room; ++i) sought[i] = static_cast<std::int64_t>(keys_[i] ^ top_bit);
    for (std::size_t first = 0; first < count_; first += 2 * width) {
      lanes low;
      lanes high;
      std::memcpy(&low, &sought[first], sizeof low);
      std::memcpy(&high, &sought[first + width], sizeof high);
      // A true comparison is -1.
      lanes smaller_than_low{};
      lanes smaller_than_high{};
      for (std::size_t i = 0; i < count_; ++i) {
        const lanes key = lanes{} + sought[i];
        smaller_than_low -= key < low;
        smaller_than_high -= key < high;
      }
      std::memcpy(&ranks[first], &smaller_than_low, sizeof low);
      std::memcpy(&ranks[first + width], &smaller_than_high, sizeof high);
    }
  }
#endif

  std::array<key_type, room> keys_{};
  std::array<value_type, room> values_;
  std::size_t count_ = 0;
};

}  // namespace pmlab::indexes::detail::fp_tree
