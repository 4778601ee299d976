// A publication of any medium, behind virtual calls.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::erased {

// Forwards to the medium's publication: thread safety and durability are the same.
class any_change {
 public:
  any_change() = default;
  any_change(const any_change&) = delete;
  any_change& operator=(const any_change&) = delete;
  virtual ~any_change() = default;
  virtual void* allocate(std::size_t bytes, std::size_t alignment) = 0;
  virtual void store(std::atomic<std::uint64_t>& word, std::uint64_t value) = 0;
  virtual void release(void* block, std::size_t bytes) = 0;
  virtual void commit() = 0;
};

// A publication of a `Medium`.
template <class Medium>
class change_of final : public any_change {
 public:
  // Begins it. `medium` outlives this.
  explicit change_of(Medium& medium) : publication_(medium) {}
  void* allocate(std::size_t bytes, std::size_t alignment) override { return publication_.allocate(bytes, alignment); }
  void store(std::atomic<std::uint64_t>& word, std::uint64_t value) override { publication_.store(word, value); }
  void release(void* block, std::size_t bytes) override { publication_.release(block, bytes); }
  void commit() override { publication_.commit(); }

 private:
  typename Medium::publication publication_;
};

}  // namespace pmlab::erased
