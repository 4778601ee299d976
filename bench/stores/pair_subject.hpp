// The subject of `pmlab stores pairs`: a store of pairs of key and value, behind virtual calls.
//
// A virtual call is paid for each operation, a few nanoseconds of thousands. The engine guarantees: a thread has one
// queue; no two changes of the same key are under way at the same time, in all threads together.
#pragma once

#include "bench/stores/store_subject.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>

namespace pmlab::store_bench {

struct pair {
  std::string_view key;
  std::span<const std::byte> value;
};

struct pair_answer {
  std::uint64_t tag = 0;  // tag of the operation
  std::errc error{};      // std::errc{}: none
  bool found = true;      // get: the key is there
  // get: its value. scan: pairs in the order of keys. Both stay until the next call of the queue.
  std::span<const std::byte> value{};
  std::span<const pair> pairs{};
};

// Operations of one thread. Keys and values stay unchanged until their operation is reaped. Destruction waits for the
// operations under way. A queue of a store whose calls wait has done the operation when the call returns.
class pair_queue {
 public:
  pair_queue() = default;
  pair_queue(const pair_queue&) = delete;
  pair_queue& operator=(const pair_queue&) = delete;
  virtual ~pair_queue() = default;

  // REQUIRES: fewer than `depth` operations are under way. What is reaped is acknowledged: as durable as the store says
  // (pair_promises), and an operation that begins later, in any thread, sees it.
  virtual void put(std::string_view key, std::span<const std::byte> value, std::uint64_t tag) = 0;
  virtual void get(std::string_view key, std::uint64_t tag) = 0;
  virtual void erase(std::string_view key, std::uint64_t tag) = 0;
  // Up to `most` pairs from `from` on. REQUIRES: pair_promises::is_ordered.
  virtual void scan(std::string_view from, unsigned most, std::uint64_t tag) = 0;

  // Returns how many operations are done and in `answers`. `at_least`: 0 or 1; 1: waits for one, if any is under way.
  [[nodiscard]] virtual std::size_t reap(std::span<pair_answer> answers, std::size_t at_least) = 0;
};

struct pair_promises {
  bool is_ordered = false;     // scans
  std::uint64_t loss_ms = 0;   // a crash may take acknowledged changes that are younger; 0: none
  std::size_t least_key = 1;   // bytes
  std::size_t most_key = 255;  // bytes
};

// Bytes; nothing: the subject does not know.
struct pair_space {
  std::optional<std::uint64_t> used_bytes;    // used bytes of its drives
  std::optional<std::uint64_t> memory_bytes;  // DRAM of the host: caches, indexes, buffers
  std::optional<std::uint64_t> medium_bytes;  // persistent memory
};

class pair_subject : public store_subject {
 public:
  [[nodiscard]] virtual pair_promises promises() const = 0;

  // `thread`: from 0; of each there is one queue at a time.
  [[nodiscard]] virtual std::unique_ptr<pair_queue> make_queue(unsigned depth, unsigned thread) = 0;

  [[nodiscard]] virtual pair_space space() { return {}; }
};

}  // namespace pmlab::store_bench
