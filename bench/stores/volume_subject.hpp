// The subject of `pmlab stores volumes`: one volume of a store, or a drive as it is, behind virtual calls.
//
// A virtual call is paid for each operation, a few nanoseconds of thousands. The engine guarantees: a thread has one
// queue; no two writes (or discards) that overlap are under way at the same time, in all threads together.
#pragma once

#include "bench/stores/store_subject.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <system_error>

namespace pmlab::store_bench {

struct answer {
  std::uint64_t tag = 0;  // tag of the operation
  std::errc error{};      // std::errc{}: none
};

// Operations of one thread. Offsets and lengths are whole blocks; data is aligned as in blocks::buffer, and stays
// unchanged until its operation is reaped. Destruction waits for the operations under way.
class volume_queue {
 public:
  volume_queue() = default;
  volume_queue(const volume_queue&) = delete;
  volume_queue& operator=(const volume_queue&) = delete;
  virtual ~volume_queue() = default;

  // REQUIRES: fewer than `depth` operations are under way. A write that is reaped is durable, and a read that begins
  // later, in any thread, finds it.
  virtual void write(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag) = 0;
  virtual void read(std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag) = 0;
  virtual void discard(std::uint64_t offset, std::uint64_t length, std::uint64_t tag) = 0;

  // Waits until at least `at_least` operations are done (or all of those under way, if these are fewer), and returns
  // how many it wrote.
  [[nodiscard]] virtual std::size_t reap(std::span<answer> answers, std::size_t at_least) = 0;
};

// What a reader may rely on; the engine checks it.
struct volume_promises {
  // An aligned range of so many bytes is written whole, and seen whole by readers. A block if nothing more is promised.
  std::uint64_t whole_bytes = 4096;
  // Blocks that were discarded read as zeros. (Blocks that were never written do in any case: drives begin with zeros.)
  bool discarded_are_zeros = true;
};

// Bytes; nothing: the subject does not know.
struct volume_space {
  std::optional<std::uint64_t> used_bytes;    // used bytes of the device
  std::optional<std::uint64_t> medium_bytes;  // bytes of the memory that has the records; of an index in DRAM too
  std::optional<std::uint64_t> free_bytes;    // free bytes of the device
  std::optional<std::uint64_t> longest_free_extent;  // longest free extent of the device
};

class volume_subject : public store_subject {
 public:
  [[nodiscard]] virtual std::uint64_t bytes() const = 0;
  [[nodiscard]] virtual std::uint32_t block_bytes() const = 0;
  [[nodiscard]] virtual volume_promises promises() const = 0;

  // `thread`: from 0; of each there is one queue at a time. The state of a store that belongs to a thread (a log) stays
  // with its number when the queue ends.
  [[nodiscard]] virtual std::unique_ptr<volume_queue> make_queue(unsigned depth, unsigned thread) = 0;

  [[nodiscard]] virtual volume_space space() { return {}; }
};

}  // namespace pmlab::store_bench
