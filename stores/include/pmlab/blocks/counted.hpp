// A device that counts requests, bytes and flushes by stream: its figures do not depend on the machine.
//
// Write amplification is bytes_written of the device over the bytes that the user of a store wrote.
#pragma once

#include <pmlab/base/counters.hpp>
#include <pmlab/blocks/wrapper.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace pmlab::blocks {

// Counts of one stream, or a sum of such. A request counts when it is taken, also if it fails later.
struct counts {
  std::uint64_t reads = 0;            // requests
  std::uint64_t writes = 0;           // requests, durable or not
  std::uint64_t durable_writes = 0;   // durable ones of these
  std::uint64_t flushes = 0;          // requests
  std::uint64_t discards = 0;         // requests
  std::uint64_t bytes_read = 0;       // by reads
  std::uint64_t bytes_written = 0;    // by writes
  std::uint64_t bytes_discarded = 0;  // by discards

  // The counters, in the order of results.
  static constexpr std::array counters{counter{&counts::bytes_written, "written_bytes"},
                                       counter{&counts::bytes_read, "read_bytes"},
                                       counter{&counts::bytes_discarded, "discarded_bytes"},
                                       counter{&counts::writes, "writes"},
                                       counter{&counts::durable_writes, "durable_writes"},
                                       counter{&counts::reads, "reads"},
                                       counter{&counts::flushes, "flushes"},
                                       counter{&counts::discards}};

  // Adds each counter.
  counts& operator+=(const counts& more) noexcept { return add_counters(*this, more); }

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
  [[nodiscard]] counts of(stream s) const noexcept { return streams_[static_cast<std::size_t>(s)].now(); }

  // The sum of all streams.
  [[nodiscard]] counts total() const noexcept {
    counts all;
    for (std::size_t s = 0; s < streams; ++s) all += of(static_cast<stream>(s));
    return all;
  }

  // Restarts from zero.
  void reset() noexcept {
    for (cells& mine : streams_) mine.reset();
  }

 private:
  struct alignas(64) cells : shared_counters<counts> {};

  void count(const request& r, std::uint64_t bytes) noexcept {
    cells& mine = streams_[static_cast<std::size_t>(r.of)];
    switch (r.what) {
      case operation::read:
        mine.add(&counts::reads, 1);
        mine.add(&counts::bytes_read, bytes);
        break;
      case operation::write_durable: mine.add(&counts::durable_writes, 1); [[fallthrough]];
      case operation::write:
        mine.add(&counts::writes, 1);
        mine.add(&counts::bytes_written, bytes);
        break;
      case operation::flush: mine.add(&counts::flushes, 1); break;
      case operation::discard:
        mine.add(&counts::discards, 1);
        mine.add(&counts::bytes_discarded, bytes);
        break;
    }
  }

  std::array<cells, streams> streams_;
};

}  // namespace pmlab::blocks
