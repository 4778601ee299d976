// A way to the flash: a queue of the device, and an aligned buffer. One thread uses it at a time.
#pragma once

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/kv_ssd/fetched.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

template <blocks::device Device>
class port {
 public:
  explicit port(Device& device) : block_bytes_(device.shape().block_bytes), device_(device) {}

  // `bytes` bytes from byte `first` of the device: valid until the next call. Throws pmlab::error: the device failed.
  [[nodiscard]] std::span<const std::byte> read(std::uint64_t first, std::size_t bytes) {
    const block_range blocks(first, bytes, block_bytes_);
    if (buffer_.size() < blocks.bytes) buffer_ = blocks::buffer(blocks.bytes);
    device_.read(blocks.first, buffer_.bytes().first(blocks.bytes), blocks::stream::values);
    return std::span<const std::byte>(buffer_.bytes()).subspan(blocks.offset, bytes);
  }
  // The same, of a superblock in its life `life`: bytes that a queue has read are not read again.
  [[nodiscard]] std::span<const std::byte> read(std::uint64_t first, std::size_t bytes, std::uint64_t life) {
    if (fetched_ != nullptr)
      if (const fetched::piece* const there = fetched_->find(first, bytes, life)) return there->content().first(bytes);
    return read(first, bytes);
  }
  // Until it is nullptr.
  void use(const fetched* bytes) noexcept { fetched_ = bytes; }

  // Whole blocks. Durable on return.
  void write(std::uint64_t first, std::span<const std::byte> data, blocks::stream of) {
    device_.write_durable(first / block_bytes_, data, of);
  }

 private:
  std::uint32_t block_bytes_;
  blocks::synchronous<Device> device_;
  blocks::buffer buffer_;
  const fetched* fetched_ = nullptr;
};

// Ports that are not in use. Thread safety: any thread.
template <blocks::device Device>
class ports {
 public:
  explicit ports(Device& device) : device_(device) {}

  // Returns the port at the end of its life.
  class lease {
   public:
    explicit lease(ports& of) : of_(of), port_(of.take()) {}
    lease(const lease&) = delete;
    lease& operator=(const lease&) = delete;
    ~lease() { of_.give(std::move(port_)); }
    [[nodiscard]] port<Device>& operator*() const noexcept { return *port_; }

   private:
    ports& of_;
    std::unique_ptr<port<Device>> port_;
  };

 private:
  [[nodiscard]] std::unique_ptr<port<Device>> take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) {
      auto made = std::make_unique<port<Device>>(device_);
      free_.reserve(made_ + 1);  // to give one back needs no memory
      ++made_;
      return made;
    }
    std::unique_ptr<port<Device>> p = std::move(free_.back());
    free_.pop_back();
    return p;
  }
  void give(std::unique_ptr<port<Device>> p) noexcept {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(p));
  }

  Device& device_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<port<Device>>> free_;
  std::size_t made_ = 0;
};

}  // namespace pmlab::stores::detail::kv_ssd
