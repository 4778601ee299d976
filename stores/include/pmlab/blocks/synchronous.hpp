// One request at a time: submits, waits, and throws if it failed.
//
// For code that has nothing else to do meanwhile: opening a store, recovery, tests.
#pragma once

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace pmlab::blocks {

// Performs `r` on a queue with nothing in flight; returns its error. The tag of `r` means nothing.
template <class Queue>
[[nodiscard]] std::errc perform(Queue& queue, const request& r) {
  if (queue.in_flight() != 0)
    throw error("a synchronous request on a queue with requests in flight", "reap these first, or use another queue");
  std::array<completion, 1> done;
  static_cast<void>(queue.submit({&r, 1}));
  while (queue.reap(done, 1) == 0) continue;
  return done.front().error;
}

// A device and a queue of depth 1, for one thread. Each operation throws pmlab::error if the device fails it; `data` is
// a whole number of blocks, aligned to data_alignment.
template <device D>
class synchronous {
 public:
  // `device` outlives it.
  explicit synchronous(D& device) : device_(device), shape_(device.shape()), queue_(device, 1) {}

  // Fills `data` from block `first`.
  void read(std::uint64_t first, std::span<std::byte> data, stream of = stream::data) {
    run({operation::read, of, blocks_in(data.size()), first, data.data(), 0});
  }
  // The same for blocks that may not be readable: false, if these are not, and the device works.
  [[nodiscard]] bool try_read(std::uint64_t first, std::span<std::byte> data, stream of = stream::data) {
    const request r{operation::read, of, blocks_in(data.size()), first, data.data(), 0};
    const std::errc e = perform(queue_, r);
    if (e == device_failed) fail(r, e);
    return e == std::errc{};
  }
  // Durable after the next flush.
  void write(std::uint64_t first, std::span<const std::byte> data, stream of = stream::data) {
    run({operation::write, of, blocks_in(data.size()), first, writable(data), 0});
  }
  // Durable on return.
  void write_durable(std::uint64_t first, std::span<const std::byte> data, stream of = stream::data) {
    run({operation::write_durable, of, blocks_in(data.size()), first, writable(data), 0});
  }
  // Makes completed writes durable.
  void flush(stream of = stream::data) { run({operation::flush, of, 0, 0, nullptr, 0}); }
  // The content of `count` blocks is not needed any more.
  void discard(std::uint64_t first, std::uint32_t count, stream of = stream::data) {
    run({operation::discard, of, count, first, nullptr, 0});
  }

 private:
  [[nodiscard]] std::uint32_t blocks_in(std::size_t bytes) const {
    if (bytes % shape_.block_bytes != 0)
      throw error(std::to_string(bytes) + " bytes are no whole number of blocks of device " + device_.name(),
                  "use a multiple of " + std::to_string(shape_.block_bytes) + " bytes");
    return static_cast<std::uint32_t>(bytes / shape_.block_bytes);
  }

  // A device only reads the data of a write.
  [[nodiscard]] static std::byte* writable(std::span<const std::byte> data) noexcept {
    return const_cast<std::byte*>(data.data());
  }

  void run(const request& r) {
    if (const std::errc e = perform(queue_, r); e != std::errc{}) fail(r, e);
  }
  [[noreturn]] void fail(const request& r, std::errc e) const {
    const std::string why = device_.failure();
    throw error("device " + device_.name() + ": " + std::string(name_of(r.what)) + " of " + std::to_string(r.count) +
                    " blocks at block " + std::to_string(r.first) + " failed (" + describe(e) + ")",
                why.empty() ? "check the drive; nothing was acknowledged" : why);
  }

  D& device_;
  geometry shape_;
  typename D::queue queue_;
};

// The content of block `number`. Throws pmlab::error if the device fails.
template <device D>
[[nodiscard]] buffer read_block(D& device, std::uint64_t number, stream of = stream::data) {
  buffer block(device.shape().block_bytes);
  synchronous(device).read(number, block.bytes(), of);
  return block;
}

}  // namespace pmlab::blocks
