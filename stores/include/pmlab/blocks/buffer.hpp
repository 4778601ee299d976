// Memory for the data of requests.
#pragma once

#include <pmlab/blocks/device.hpp>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>

namespace pmlab::blocks {

// `bytes` bytes, zero at first, at an address that direct I/O accepts. Throws std::bad_alloc. Not copied; movable.
class buffer {
 public:
  buffer() = default;
  // `bytes` zeros. Throws std::bad_alloc.
  explicit buffer(std::size_t bytes)
      : start_(static_cast<std::byte*>(::operator new (bytes, std::align_val_t{data_alignment}))), bytes_(bytes) {
    std::memset(start_.get(), 0, bytes);
  }

  // Its first byte; nullptr if it is empty.
  [[nodiscard]] std::byte* data() noexcept { return start_.get(); }
  // The same.
  [[nodiscard]] const std::byte* data() const noexcept { return start_.get(); }
  // The size in bytes.
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }
  // All of its bytes.
  [[nodiscard]] std::span<std::byte> bytes() noexcept { return {data(), bytes_}; }
  // The same.
  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data(), bytes_}; }

 private:
  struct release {
    void operator()(std::byte* start) const noexcept { ::operator delete (start, std::align_val_t{data_alignment}); }
  };

  std::unique_ptr<std::byte, release> start_;
  std::size_t bytes_ = 0;
};

}  // namespace pmlab::blocks
