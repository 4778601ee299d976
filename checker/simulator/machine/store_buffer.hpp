// The store buffer of a core (x86-TSO): stores that the thread has done and no other thread can see yet.
//
//   memory          while a fiber runs, memory holds what that fiber sees: the shared content, and its own waiting
//                   stores above it. So its loads are forwarded, whatever their size and place, by reading memory
//   take_out        removes the waiting stores from memory, the newest first: memory is the shared content
//   put_in          puts them back, the oldest first
//   take_oldest     the oldest store leaves: the shared content has it from now on
//
// Write-backs and store fences wait in the same queue, behind the stores that they follow. A write-back is ordered with
// the stores to its own line and with fences only; here it keeps its place in the queue, which promises least: where it
// could run earlier, a crash keeps no more, since any line may be written back at any time.
#pragma once

#include <pmlab/media/lines.hpp>

#include <cstddef>
#include <cstdint>

namespace pmlab::simulator {

class store_buffer {
 public:
  static constexpr std::size_t room = 16;
  static constexpr std::size_t widest = media::cache_line_bytes;

  enum class kind : std::uint8_t {
    store,
    around,      // a non-temporal store. Here, as the processor may do, in the order of the others
    write_back,  // write-back of the line of `address`
    unseen,      // stores of code that is not instrumented, to the line of `address`
    fence,       // sfence
  };
  struct entry {
    kind what;
    std::uint32_t bytes;
    std::uintptr_t address;
    const void* caller;
    std::uint64_t since;      // accesses of the run
    std::byte other[widest];  // content of a store while it is out of memory, else the content below it
  };

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const entry& oldest() const noexcept { return ring_[first_]; }

  // A store is announced before it is done. REQUIRES: there is room, and at most `widest` bytes.
  void add(kind what, std::uintptr_t address, std::size_t bytes, const void* caller, std::uint64_t now) noexcept;
  void take_out() noexcept;
  void put_in() noexcept;
  // REQUIRES: not empty. If the stores are out of memory, memory is changed.
  entry take_oldest(bool out) noexcept;
  // The newest entry is a store of so many bytes, and memory is as it was before.
  [[nodiscard]] bool newest_is_not_done(std::size_t bytes) const noexcept;
  // Number of entries up to the newest that touches [address, address + bytes).
  [[nodiscard]] std::size_t up_to(std::uintptr_t address, std::size_t bytes) const noexcept;

 private:
  [[nodiscard]] entry& at(std::size_t i) noexcept { return ring_[(first_ + i) % room]; }
  [[nodiscard]] const entry& at(std::size_t i) const noexcept { return ring_[(first_ + i) % room]; }

  std::size_t first_ = 0;
  std::size_t size_ = 0;
  entry ring_[room];
};

// When waiting stores leave. A run has one length of its buffers, and one chance for stores to leave at a turn: often,
// or so seldom that other threads finish operations before.
class store_drainage {
 public:
  store_drainage() = default;
  explicit store_drainage(std::uint64_t seed) noexcept;

  [[nodiscard]] std::size_t room() const noexcept { return room_; }
  // The number of entries that leave now, of `waiting` ones. The oldest has waited for `age` accesses.
  [[nodiscard]] std::size_t leaving(std::size_t waiting, std::uint64_t age) noexcept;

 private:
  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept;

  std::uint64_t random_ = 0;  // state of splitmix64, which is no literal
  std::size_t room_ = store_buffer::room;
  std::uint64_t one_in_ = 1;
};

}  // namespace pmlab::simulator
