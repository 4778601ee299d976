// Objects in DRAM that stay objects of their type for the pool's lifetime, so that a late reader does no harm.
#pragma once

#include <pmlab/media/huge_pages.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace pmlab::indexes::detail {

// Allocates objects of type T, takes them back, and allocates them again without constructing them again: a reader that
// still holds a pointer to a freed object reads atomics of a live T, and its version shows that the object was reused.
// So a version of T must never decrease, and its own words must show whether it is in use.
//
// Thread safety: all operations from any number of threads, under a mutex. Memory: chunks that double up to 2 MB, which
// request huge pages; all of it is freed with the pool.
template <class T>
class object_pool {
  static_assert(std::is_trivially_destructible_v<T>);

 public:
  object_pool() = default;
  object_pool(const object_pool&) = delete;
  object_pool& operator=(const object_pool&) = delete;
  ~object_pool() = default;

  // An object for exclusive use: a new one, or a freed one in its last state. nullptr: no memory.
  [[nodiscard]] T* take() noexcept {
    const std::scoped_lock guard(mutex_);
    if (!free_.empty()) {
      T* const again = free_.back();
      free_.pop_back();
      return again;
    }
    if (!given_up_.empty()) {
      T* const again = given_up_.back();
      given_up_.pop_back();
      return ::new (static_cast<void*>(again)) T;
    }
    if (made_ == room_ && !add_chunk(next_chunk_)) return nullptr;
    return make();
  }

  // `count` new objects in a row. nullptr: no memory.
  [[nodiscard]] T* take_row(std::size_t count) noexcept {
    const std::scoped_lock guard(mutex_);
    if (room_ - made_ < count && !add_chunk(std::max(count, next_chunk_))) return nullptr;
    T* const first = make();
    for (std::size_t i = 1; i < count; ++i) make();
    return first;
  }

  void give_back(T* object) noexcept {
    const std::scoped_lock guard(mutex_);
    free_.push_back(object);  // never beyond what add_chunk reserved
  }

  // Frees an object that no reader can hold any more. Its memory, which is whole pages, is returned to the kernel
  // until it is allocated and constructed again.
  void give_up(T* object) noexcept {
    static_assert(can_give_up);
    madvise(static_cast<void*>(object), sizeof(T), MADV_DONTNEED);
    const std::scoped_lock guard(mutex_);
    given_up_.push_back(object);  // never beyond what add_chunk reserved
  }

  // Bytes of the objects that were ever handed out, but for those that were given up.
  [[nodiscard]] std::uint64_t bytes() const {
    const std::scoped_lock guard(mutex_);
    return (objects_ - given_up_.size()) * sizeof(T);
  }

 private:
  struct free_memory {
    std::size_t alignment;
    void operator()(void* start) const noexcept { ::operator delete(start, static_cast<std::align_val_t>(alignment)); }
  };

  static constexpr std::size_t kernel_page = 4096;
  static constexpr bool can_give_up = sizeof(T) % kernel_page == 0 && alignof(T) % kernel_page == 0;
  static constexpr std::size_t first_chunk = 16;
  static constexpr std::size_t greatest_chunk = std::max(media::huge_page_bytes / sizeof(T), first_chunk);

  T* make() noexcept {
    ++objects_;
    return ::new (static_cast<void*>(chunk_ + made_++)) T;
  }

  bool add_chunk(std::size_t count) noexcept {
    const std::size_t bytes = count * sizeof(T);
    const bool huge = bytes >= media::huge_page_bytes / 2;
    const std::size_t alignment = huge ? media::huge_page_bytes : alignof(T);
    try {
      free_.reserve(objects_ + count);
      if constexpr (can_give_up) given_up_.reserve(objects_ + count);
      chunks_.reserve(chunks_.size() + 1);
    } catch (const std::bad_alloc&) {
      return false;
    }
    void* const start = ::operator new(bytes, static_cast<std::align_val_t>(alignment), std::nothrow);
    if (start == nullptr) return false;
    if (huge) madvise(start, bytes, MADV_HUGEPAGE);
    chunks_.emplace_back(start, free_memory{alignment});
    chunk_ = static_cast<T*>(start);
    made_ = 0;
    room_ = count;
    next_chunk_ = std::min(2 * next_chunk_, greatest_chunk);
    return true;
  }

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<void, free_memory>> chunks_;
  std::vector<T*> free_;
  std::vector<T*> given_up_;
  T* chunk_ = nullptr;  // the last chunk: `made_` objects of `room_`
  std::size_t made_ = 0;
  std::size_t room_ = 0;
  std::size_t next_chunk_ = first_chunk;
  std::size_t objects_ = 0;  // in all chunks
};

}  // namespace pmlab::indexes::detail
