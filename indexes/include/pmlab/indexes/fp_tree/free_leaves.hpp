// Which leaves of an FP-tree are free, by group: so that leaves are taken where few are free, and groups empty
// elsewhere.
#pragma once

#include <pmlab/indexes/fp_tree/descriptor.hpp>
#include <pmlab/indexes/fp_tree/leaf.hpp>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::fp_tree {

// Groups in classes, one for each number of free leaves; groups without any are in none. Every operation but
// `take_outside` takes a constant time. Thread safety: none.
class free_leaves {
 public:
  [[nodiscard]] std::size_t count() const noexcept { return count_; }

  void add(descriptor& d) noexcept {
    descriptor_page& page = descriptor_page::of(d);
    take_out(page);
    d.next.store(page.free, std::memory_order_relaxed);
    page.free = &d;
    ++page.free_count;
    ++count_;
    put_in(page);
  }

  // A leaf of a group that has the fewest free ones. nullptr: none is free.
  [[nodiscard]] descriptor* take() noexcept {
    return present_ == 0 ? nullptr : &take_from(*first_[static_cast<std::size_t>(std::countr_zero(present_))]);
  }

  // The same, but of another group than this. nullptr: there is none.
  [[nodiscard]] descriptor* take_outside(const descriptor_page& page) noexcept {
    for (std::uint64_t left = present_; left != 0; left &= left - 1) {
      descriptor_page* candidate = first_[static_cast<std::size_t>(std::countr_zero(left))];
      if (candidate == &page) candidate = candidate->next_in_class;
      if (candidate != nullptr) return &take_from(*candidate);
    }
    return nullptr;
  }

  // The group that has the most free leaves. nullptr: none is free.
  [[nodiscard]] descriptor_page* emptiest() const noexcept {
    return present_ == 0 ? nullptr : first_[static_cast<std::size_t>(std::bit_width(present_)) - 1];
  }

  // Forgets the free leaves of a group.
  void forget(descriptor_page& page) noexcept {
    take_out(page);
    count_ -= page.free_count;
    page.free = nullptr;
    page.free_count = 0;
  }

 private:
  descriptor& take_from(descriptor_page& page) noexcept {
    take_out(page);
    descriptor& taken = *page.free;
    page.free = taken.next.load(std::memory_order_relaxed);
    --page.free_count;
    --count_;
    put_in(page);
    return taken;
  }

  void put_in(descriptor_page& page) noexcept {
    if (page.free_count == 0) return;
    page_list::push(first_[page.free_count], page);
    present_ |= std::uint64_t{1} << page.free_count;
  }

  void take_out(descriptor_page& page) noexcept {
    if (page.free_count == 0) return;
    page_list::remove(first_[page.free_count], page);
    if (first_[page.free_count] == nullptr) present_ &= ~(std::uint64_t{1} << page.free_count);
  }

  static_assert(leaves_per_group < 64);
  std::array<descriptor_page*, leaves_per_group + 1> first_{};  // first page of each class
  std::uint64_t present_ = 0;                                   // bit n: there is a group with n free leaves
  std::size_t count_ = 0;
};

}  // namespace pmlab::indexes::detail::fp_tree
