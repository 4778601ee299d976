// A block of a medium for as long as something is measured on it.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/media/huge_pages.hpp>
#include <pmlab/media/medium.hpp>

#include <cstddef>
#include <cstdint>
#include <string>

namespace pmlab::microbench {

// Reserved and never published: a pool holds nothing of it after a crash, nor after the run.
template <class Medium>
class region {
 public:
  // Throws pmlab::error if the medium has no room.
  region(Medium& medium, std::uint64_t bytes) : block_(medium), bytes_(bytes) {
    // Aligned here: libpmemobj would use more than the block's bytes for a large aligned block.
    void* const block = block_.allocate(bytes + media::huge_page_bytes, alignof(std::max_align_t));
    if (block == nullptr)
      throw error("no room for a working set of " + std::to_string(bytes >> 20) + " MB on " + medium.name(),
                  "measure a smaller working set, or give the pool more space");
    const auto start = reinterpret_cast<std::uintptr_t>(block);
    start_ = reinterpret_cast<std::byte*>((start + media::huge_page_bytes - 1) & ~(media::huge_page_bytes - 1));
  }

  [[nodiscard]] std::byte* start() const noexcept { return start_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  typename Medium::publication block_;
  std::byte* start_;
  std::uint64_t bytes_;
};

}  // namespace pmlab::microbench
