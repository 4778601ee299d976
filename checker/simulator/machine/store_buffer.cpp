// The store buffer of a core.
#include "checker/simulator/machine/store_buffer.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <cstring>

namespace pmlab::simulator {
namespace {

// Every store becomes visible in finite time: a thread that spins on one would wait for ever.
constexpr std::uint64_t longest_wait = 4000;

bool holds_data(store_buffer::kind what) noexcept {
  return what == store_buffer::kind::store || what == store_buffer::kind::around;
}

void exchange_with_memory(store_buffer::entry& e) noexcept {
  if (!holds_data(e.what)) return;
  auto* const memory = reinterpret_cast<std::byte*>(e.address);
  std::byte held[store_buffer::widest];
  std::memcpy(held, memory, e.bytes);
  std::memcpy(memory, e.other, e.bytes);
  std::memcpy(e.other, held, e.bytes);
}

}  // namespace

void store_buffer::add(kind what, std::uintptr_t address, std::size_t bytes, const void* caller,
                       std::uint64_t now) noexcept {
  entry& e = at(size_++);
  e.what = what;
  e.bytes = static_cast<std::uint32_t>(bytes);
  e.address = address;
  e.caller = caller;
  e.since = now;
  if (holds_data(what)) std::memcpy(e.other, reinterpret_cast<const std::byte*>(address), bytes);
}

void store_buffer::take_out() noexcept {
  for (std::size_t i = size_; i > 0; --i) exchange_with_memory(at(i - 1));
}

void store_buffer::put_in() noexcept {
  for (std::size_t i = 0; i < size_; ++i) exchange_with_memory(at(i));
}

// What later entries hold of the content below them includes this one's.
store_buffer::entry store_buffer::take_oldest(bool out) noexcept {
  entry& e = at(0);
  if (out) exchange_with_memory(e);
  first_ = (first_ + 1) % room;
  --size_;
  return e;
}

bool store_buffer::newest_is_not_done(std::size_t bytes) const noexcept {
  if (size_ == 0) return false;
  const entry& e = at(size_ - 1);
  return e.what == kind::store && e.bytes == bytes &&
         std::memcmp(e.other, reinterpret_cast<const std::byte*>(e.address), bytes) == 0;
}

std::size_t store_buffer::up_to(std::uintptr_t address, std::size_t bytes) const noexcept {
  for (std::size_t i = size_; i > 0; --i) {
    const entry& e = at(i - 1);
    if (holds_data(e.what) && e.address < address + bytes && address < e.address + e.bytes) return i;
  }
  return 0;
}

std::uint64_t store_drainage::below(std::uint64_t bound) noexcept { return mix_bits(random_ += golden_ratio) % bound; }

store_drainage::store_drainage(std::uint64_t seed) noexcept : random_(seed) {
  constexpr std::size_t rooms[] = {2, 6, store_buffer::room, store_buffer::room};
  constexpr std::uint64_t chances[] = {2, 8, 64, 512};
  room_ = rooms[below(4)];
  one_in_ = chances[below(4)];
}

std::size_t store_drainage::leaving(std::size_t waiting, std::uint64_t age) noexcept {
  if (age > longest_wait) return waiting;
  if (below(one_in_) != 0) return 0;
  return std::min<std::size_t>(waiting, 1 + below(waiting));
}

}  // namespace pmlab::simulator
