// Requests that wait for the drive, first in, first out. Their memory is there before they come.
#pragma once

#include <pmlab/blocks/device.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Thread safety: none.
class request_list {
 public:
  // Memory for so many more. Throws std::bad_alloc; nothing changed then.
  void reserve_more(std::size_t count) {
    if (list_.size() + count <= list_.capacity()) return;
    list_.erase(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
    if (const std::size_t needed = list_.size() + count; needed > list_.capacity())
      list_.reserve(std::max(needed, 2 * list_.capacity()));
  }
  // REQUIRES: memory for it.
  void push_back(const blocks::request& r) noexcept { list_.push_back(r); }

  [[nodiscard]] bool empty() const noexcept { return taken_ == list_.size(); }
  // All of them, the oldest first.
  [[nodiscard]] std::span<const blocks::request> all() const noexcept { return std::span(list_).subspan(taken_); }
  // The oldest go.
  void drop(std::size_t count) noexcept {
    taken_ += count;
    if (!empty()) return;
    list_.clear();
    taken_ = 0;
  }

 private:
  std::vector<blocks::request> list_;
  std::size_t taken_ = 0;
};

}  // namespace pmlab::stores::detail::chunk_store
