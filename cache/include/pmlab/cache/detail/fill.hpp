// A fill of the cache, and the queue in which readers pass fills to the fillers.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/bounded_queue.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::cache::detail {

// A reader's result, and the gate of the key's set from before the search in the index.
struct fill {
  indexes::key_type key;
  indexes::value_type value;
  std::uint64_t gate;
};

// A fill in atomic words.
class fill_cell {
 public:
  void put(const fill& f) noexcept {
    key_.store(f.key, std::memory_order_relaxed);
    value_.store(f.value, std::memory_order_relaxed);
    gate_.store(f.gate, std::memory_order_relaxed);
  }
  [[nodiscard]] fill get() const noexcept {
    return {key_.load(std::memory_order_relaxed), value_.load(std::memory_order_relaxed),
            gate_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<indexes::key_type> key_{0};
  std::atomic<indexes::value_type> value_{0};
  std::atomic<std::uint64_t> gate_{0};
};

using fill_queue = sync::bounded_queue<fill, fill_cell>;

}  // namespace pmlab::cache::detail
