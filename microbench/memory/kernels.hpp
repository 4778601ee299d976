// The measured loops of one thread. One implementation for each way of charging an access:
//
//   native      the CPU's own instructions                        dram, pmem              native_kernels.cpp
//   charged     the same, and the medium sees each access         emulated, counted       charged_kernels.hpp
//   announced   each instruction is announced to the machine      simulated               announced_kernels.cpp
#pragma once

#include "microbench/memory/case.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace pmlab::microbench {

// A thread's sequence of places. After the last place the first one follows.
struct walk {
  std::byte* base = nullptr;                // place 0; chase: the current place
  std::uint64_t distance = 0;               // from one place to the next
  std::uint64_t places = 0;                 // or the length of the table
  const std::uint32_t* table = nullptr;     // the order of the places; null: as they lie
  std::uint64_t at = 0;                     // the next place, or entry of the table
  std::uint64_t bytes = 0;                  // bytes of an access
  std::uint64_t fence_bytes = fence_never;  // stores: a fence after so many bytes; fence_each_access is resolved
  std::uint64_t since_fence = 0;            // bytes

  // The next place, which then is the current one.
  [[nodiscard]] std::byte* next() noexcept {
    std::byte* const place = base + (table != nullptr ? table[at] : at) * distance;
    at = at + 1 == places ? 0 : at + 1;
    return place;
  }
};

// Not thread-safe: one for each thread.
class kernels {
 public:
  kernels() = default;
  kernels(const kernels&) = delete;
  kernels& operator=(const kernels&) = delete;
  virtual ~kernels() = default;

  // `count` accesses in a row; dependent ones wait for each other. Loads are copies if the choice has that.
  virtual void load(walk& way, std::uint64_t count) = 0;
  virtual void store(walk& way, std::uint64_t count) = 0;
  virtual void chase(walk& way, std::uint64_t count) = 0;

  // One access, which has ended when the call returns: loads have their data, stores have the state that their kind and
  // the fence after them guarantee.
  virtual void load_one(std::byte* place) = 0;
  virtual void store_one(std::byte* place, bool fenced) = 0;
  // As the two, without the access: the cost of timing.
  virtual void load_none(std::byte* place) = 0;
  virtual void store_none(std::byte* place) = 0;

  // The thread begins to measure, and has ended: a simulated core's time runs in between.
  virtual void enter() {}
  virtual void leave() {}

  // Makes a memory that numbers its pages by their first access see this one.
  virtual void touch(std::byte* /*place*/) {}
  // Evicts [start, start + bytes) from the CPU's caches.
  virtual void drop(std::byte* start, std::uint64_t bytes) = 0;
  // Waits for everything that this thread began.
  virtual void finish() = 0;

  // Around timed accesses: a medium with debts settles them.
  virtual void begin() {}
  virtual void end() {}
  // Does nothing for so long.
  virtual void idle(std::uint64_t ns) = 0;
};

// The kernels of a case. `load` is resolved.
struct kernel_choice {
  load_kind load = load_kind::scalar;
  store_kind store = store_kind::ntstore;
  std::uint64_t bytes = 64;
  bool dependent = false;
  bool copies = false;  // loads go to DRAM
};

[[nodiscard]] kernel_choice choice_for(const bench_case& c);

}  // namespace pmlab::microbench
