// A list that has its memory before an entry comes: what must not fail adds entries that were promised before.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Thread safety: none.
template <class T>
class promised_list {
 public:
  // `count` more entries can be put, until as many are released. Throws std::bad_alloc; nothing changed then. 0 does
  // not.
  void promise(std::size_t count) {
    if (count == 0) return;
    const std::size_t needed = list_.size() + promised_ + count;
    if (needed > list_.capacity()) list_.reserve(std::max(needed, 2 * list_.capacity()));
    promised_ += count;
  }
  // Ends promises, whether their entries were put or not.
  void release(std::size_t count) noexcept { promised_ -= count; }
  [[nodiscard]] std::size_t promised() const noexcept { return promised_; }

  // REQUIRES: a promise that has not ended, and that no other entry used.
  void put(T entry) noexcept { list_.push_back(std::move(entry)); }
  // REQUIRES: it is not empty.
  [[nodiscard]] T take_last() noexcept {
    T last = std::move(list_.back());
    list_.pop_back();
    return last;
  }
  // Keeps the memory.
  void clear() noexcept { list_.clear(); }

  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  [[nodiscard]] std::size_t size() const noexcept { return list_.size(); }
  [[nodiscard]] auto begin() const noexcept { return list_.begin(); }
  [[nodiscard]] auto end() const noexcept { return list_.end(); }

 private:
  std::vector<T> list_;
  std::size_t promised_ = 0;
};

}  // namespace pmlab::stores::detail::chunk_store
