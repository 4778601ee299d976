// Which segments of the log class are in use: counts of references, volatile, rebuilt when a store is opened.
//
// A segment is referred to by the log while replay may need it, and by each set whose keys or values are in it.
#pragma once

#include <pmlab/stores/tiered/layout.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

namespace pmlab::stores::detail::tiered {

// Thread safety: all of it, from any thread.
class segment_map {
 public:
  explicit segment_map(std::uint32_t count) : references_(count), free_(count) {}

  // A free segment, with one reference. Nothing: no more than `keep_free` are free.
  [[nodiscard]] std::optional<std::uint32_t> take(std::uint32_t keep_free) {
    const std::scoped_lock lock(mutex_);
    if (free_ <= keep_free) return std::nullopt;
    while (references_[next_] != 0) next_ = (next_ + 1) % count();
    const std::uint32_t taken = next_;
    next_ = (next_ + 1) % count();
    references_[taken] = 1;
    --free_;
    return taken;
  }
  // One more reference.
  void refer(std::uint32_t segment) {
    const std::scoped_lock lock(mutex_);
    if (references_[segment]++ == 0) --free_;
  }
  // One reference less. A segment without any may be overwritten at once: the word that replaced it must be durable.
  void drop(std::uint32_t segment) {
    const std::scoped_lock lock(mutex_);
    if (--references_[segment] == 0) ++free_;
  }

  [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(references_.size()); }
  [[nodiscard]] std::uint32_t free() const {
    const std::scoped_lock lock(mutex_);
    return free_;
  }
  [[nodiscard]] std::vector<std::uint32_t> references() const {
    const std::scoped_lock lock(mutex_);
    return references_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::uint32_t> references_;
  std::uint32_t free_;
  std::uint32_t next_ = 0;
};

}  // namespace pmlab::stores::detail::tiered
