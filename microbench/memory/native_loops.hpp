// The shape of every native loop, and the choice of one by kinds and size.
#pragma once

#include "microbench/memory/instructions.hpp"
#include "microbench/memory/native_kernels.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace pmlab::microbench::detail {

// Calls one(place) for the next `count` places. No test for the end of the places inside of the loop.
template <bool ByTable, class One>
[[gnu::always_inline]] inline void for_each_place(walk& way, std::uint64_t count, One&& one) {
  const std::uint64_t distance = way.distance;
  while (count != 0) {
    const std::uint64_t run = std::min(count, way.places - way.at);
    if constexpr (ByTable) {
      const std::uint32_t* entry = way.table + way.at;
      for (const std::uint32_t* const end = entry + run; entry != end; ++entry) one(way.base + *entry * distance);
    } else {
      std::byte* place = way.base + way.at * distance;
      for (std::uint64_t i = 0; i != run; ++i, place += distance) one(place);
    }
    way.at += run;
    if (way.at == way.places) way.at = 0;
    count -= run;
  }
}

// The sizes that have a loop of their own; any other is 0, with the size as an argument.
template <class Visit>
auto with_size(std::uint64_t bytes, Visit&& visit) {
  switch (bytes) {
    case 8: return visit.template operator()<8>();
    case 16: return visit.template operator()<16>();
    case 32: return visit.template operator()<32>();
    case 64: return visit.template operator()<64>();
    case 128: return visit.template operator()<128>();
    case 256: return visit.template operator()<256>();
    case 512: return visit.template operator()<512>();
    default: return visit.template operator()<0>();
  }
}

template <class Visit>
auto with_load_kind(load_kind kind, Visit&& visit) {
  switch (kind) {
    case load_kind::avx2: return visit.template operator()<load_kind::avx2>();
    case load_kind::avx512: return visit.template operator()<load_kind::avx512>();
    default: return visit.template operator()<load_kind::scalar>();
  }
}

}  // namespace pmlab::microbench::detail
