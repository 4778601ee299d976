// Which thread writes a key, where only one thread may.
#pragma once

#include <pmlab/base/hash.hpp>
#include "bench/workload/operation.hpp"

#include <cstdint>
#include <utility>
#include <vector>

namespace pmlab::bench {

[[nodiscard]] constexpr std::uint64_t spread(std::uint64_t key) noexcept {
  key ^= key >> 32;
  key *= golden_ratio;
  return key ^ (key >> 29);
}

[[nodiscard]] constexpr unsigned owner_of(std::uint64_t key, unsigned threads) noexcept {
  return threads == 1 ? 0 : static_cast<unsigned>((spread(key) >> 33) % threads);
}

[[nodiscard]] constexpr bool writes(workload::operation_kind kind) noexcept {
  return kind != workload::operation_kind::read && kind != workload::operation_kind::scan;
}

enum class moved : std::uint8_t { writes, everything };

// Moves the operations (or only those that write) to the owners of their keys; each thread keeps their order, thread by
// thread.
inline void move_to_owners(std::vector<std::vector<workload::operation>>& operations, moved what) {
  const auto threads = static_cast<unsigned>(operations.size());
  if (threads == 1) return;
  std::vector<std::vector<workload::operation>> owned(threads);
  for (unsigned t = 0; t < threads; ++t)
    for (const workload::operation& op : operations[t])
      owned[what == moved::everything || writes(op.kind) ? owner_of(op.key, threads) : t].push_back(op);
  operations = std::move(owned);
}

}  // namespace pmlab::bench
