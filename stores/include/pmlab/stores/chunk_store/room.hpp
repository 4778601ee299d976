// Where a write that found no room may find some: blocks that were replaced, when no operation can use them any more.
#pragma once

#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>

#include <cstdint>
#include <mutex>

namespace pmlab::stores::detail::chunk_store {

// Where a write that found no room may find some later.
enum class room_later : std::uint8_t {
  no,        // nothing will free blocks
  perhaps,   // operations other than merges are under way, which may replace blocks, or removals of volumes
  kept,      // operations under way keep replaced blocks
  is_there,  // blocks became free meanwhile
};

// As chunk_store::collect.
template <class Core>
[[nodiscard]] room_later collect(all_parts<Core>& store, std::uint64_t freed) {
  bool kept = false;
  bool running = store.any_going();
  std::uint64_t freed_by_now = 0;
  for (stripe& s : store.stripes) {
    const std::scoped_lock lock(s.mutex);
    s.gone.collect(store.free);
    freed_by_now += s.gone.times_freed();
    kept |= !s.gone.empty();
    running |= s.gone.running() > s.merges;
  }
  if (freed_by_now != freed) return room_later::is_there;
  return kept ? room_later::kept : running ? room_later::perhaps : room_later::no;
}

// As chunk_store::times_freed.
template <class Core>
[[nodiscard]] std::uint64_t times_freed(all_parts<Core>& store) {
  std::uint64_t all = 0;
  for (stripe& s : store.stripes) {
    const std::scoped_lock lock(s.mutex);
    all += s.gone.times_freed();
  }
  return all;
}

}  // namespace pmlab::stores::detail::chunk_store
