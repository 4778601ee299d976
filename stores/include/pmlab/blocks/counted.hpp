// A device that counts requests, bytes and flushes by stream: its figures do not depend on the machine.
//
// Write amplification is bytes_written of the device over the bytes that the user of a store wrote.
#pragma once

#include <pmlab/blocks/wrapper.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace pmlab::blocks {

// Counts of one stream, or a sum of such. A request counts when it is taken, also if it fails later.
struct counts {
  std::uint64_t reads = 0;            // requests
  std::uint64_t writes = 0;           // requests, durable or not
  std::uint64_t durable_writes = 0;   // of these
  std::uint64_t flushes = 0;          // requests
  std::uint64_t discards = 0;         // requests
  std::uint64_t bytes_read = 0;       // by reads
  std::uint64_t bytes_written = 0;    // by writes
  std::uint64_t bytes_discarded = 0;  // by discards

  // Adds each figure.
  counts& operator+=(const counts& other) noexcept {
    reads += other.reads;
    writes += other.writes;
    durable_writes += other.durable_writes;
    flushes += other.flushes;
    discards += other.discards;
    bytes_read += other.bytes_read;
    bytes_written += other.bytes_written;
    bytes_discarded += other.bytes_discarded;
    return *this;
  }

  friend bool operator==(const counts&, const counts&) = default;
};

// Thread safety: queues as in blocks/device.hpp; `total`, `of` and `reset` from any thread, exact while no thread
// submits.
template <device Inner>
class counted : public wrapper<Inner> {
 public:
  // `arguments` build the inner device.
  template <class... Arguments>
  explicit counted(Arguments&&... arguments) : wrapper<Inner>(std::in_place, std::forward<Arguments>(arguments)...) {}

  // Counts the requests that the inner queue takes.
  class queue : public Inner::queue {
   public:
    // At most `depth` requests in flight. `device` outlives it.
    queue(counted& device, unsigned depth) : Inner::queue(device.inner(), depth), device_(device) {}

    [[nodiscard]] std::size_t submit(std::span<const request> requests) {
      const std::size_t taken = Inner::queue::submit(requests);
      const std::uint32_t block_bytes = device_.shape().block_bytes;
      for (const request& r : requests.first(taken)) device_.count(r, std::uint64_t{r.count} * block_bytes);
      return taken;
    }

   private:
    counted& device_;
  };

  // Since construction or the last reset.
  [[nodiscard]] counts of(stream s) const noexcept {
    const cells& mine = streams_[static_cast<std::size_t>(s)];
    const auto get = [](const cell& c) { return c.load(std::memory_order_relaxed); };
    return {get(mine.reads),    get(mine.writes),     get(mine.durable_writes), get(mine.flushes),
            get(mine.discards), get(mine.bytes_read), get(mine.bytes_written),  get(mine.bytes_discarded)};
  }

  // The sum of all streams.
  [[nodiscard]] counts total() const noexcept {
    counts all;
    for (std::size_t s = 0; s < streams; ++s) all += of(static_cast<stream>(s));
    return all;
  }

  // Restarts from zero.
  void reset() noexcept {
    for (cells& mine : streams_)
      for (cell* c : {&mine.reads, &mine.writes, &mine.durable_writes, &mine.flushes, &mine.discards, &mine.bytes_read,
                      &mine.bytes_written, &mine.bytes_discarded})
        c->store(0, std::memory_order_relaxed);
  }

 private:
  using cell = std::atomic<std::uint64_t>;
  struct alignas(64) cells {
    cell reads{0}, writes{0}, durable_writes{0}, flushes{0}, discards{0};
    cell bytes_read{0}, bytes_written{0}, bytes_discarded{0};
  };

  void count(const request& r, std::uint64_t bytes) noexcept {
    cells& mine = streams_[static_cast<std::size_t>(r.of)];
    const auto add = [](cell& c, std::uint64_t amount) { c.fetch_add(amount, std::memory_order_relaxed); };
    switch (r.what) {
      case operation::read:
        add(mine.reads, 1);
        add(mine.bytes_read, bytes);
        break;
      case operation::write_durable: add(mine.durable_writes, 1); [[fallthrough]];
      case operation::write:
        add(mine.writes, 1);
        add(mine.bytes_written, bytes);
        break;
      case operation::flush: add(mine.flushes, 1); break;
      case operation::discard:
        add(mine.discards, 1);
        add(mine.bytes_discarded, bytes);
        break;
    }
  }

  std::array<cells, streams> streams_;
};

}  // namespace pmlab::blocks
