// A way to the flash: a queue of the device, and an aligned buffer. One thread uses it at a time.
#pragma once

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/kv_ssd/fetched.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

template <blocks::device Device>
class port {
 public:
  explicit port(Device& device) : block_bytes_(device.shape().block_bytes), device_(device) {}

  // `bytes` bytes from byte `first` of the device, of a superblock in its life `life`: valid until the next call. Bytes
  // that a queue has read are not read again. std::nullopt: they cannot be read, which is damage as flipped bits are.
  // Throws pmlab::error: the device failed as a whole.
  [[nodiscard]] std::optional<std::span<const std::byte>> read(std::uint64_t first, std::size_t bytes,
                                                               std::uint64_t life) {
    if (fetched_ != nullptr)
      if (const fetched::piece* const there = fetched_->find(first, bytes, life)) {
        if (there->is_unreadable) return std::nullopt;
        return there->content().first(bytes);
      }
    const block_range range(first, bytes, block_bytes_);
    const std::span<std::byte> all = buffer_of(range.bytes);
    if (!device_.try_read(range.first, all, blocks::stream::values)) return std::nullopt;
    return all.subspan(range.offset, bytes);
  }
  // The same of many blocks, for a search of records. Those that cannot be read are zeros, and `has_all` is false then.
  [[nodiscard]] std::span<const std::byte> read_readable(std::uint64_t first, std::size_t bytes, bool& has_all) {
    const block_range range(first, bytes, block_bytes_);
    const std::span<std::byte> all = buffer_of(range.bytes);
    has_all = device_.try_read(range.first, all, blocks::stream::values);
    if (!has_all) {
      has_all = true;  // it may have failed once only
      for (std::size_t at = 0; at < all.size(); at += block_bytes_) {
        const std::span<std::byte> one = all.subspan(at, block_bytes_);
        if (device_.try_read(range.first + at / block_bytes_, one, blocks::stream::values)) continue;
        std::ranges::fill(one, std::byte{});
        has_all = false;
      }
    }
    return all.subspan(range.offset, bytes);
  }
  // Until it is nullptr.
  void use(const fetched* bytes) noexcept { fetched_ = bytes; }

  // Whole blocks. Durable on return.
  void write(std::uint64_t first, std::span<const std::byte> data, blocks::stream of) {
    device_.write_durable(first / block_bytes_, data, of);
  }

 private:
  [[nodiscard]] std::span<std::byte> buffer_of(std::size_t bytes) {
    if (buffer_.size() < bytes) buffer_ = blocks::buffer(bytes);
    return buffer_.bytes().first(bytes);
  }

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
