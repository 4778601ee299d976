// Memory that several hosts share, whose caches may not be coherent with one another: CXL memory behind a switch.
//
// A host that is to see what another one has stored needs two steps, in this order:
//   publish   the writer writes its lines back, and waits until the memory has them
//   refresh   the reader drops its copies of the lines, and orders its loads behind that
// So one source serves one host and many: on media of a single host `refresh` is empty, and `publish` is `persist`.
//
// Rules for code on such memory (docs/hosts.md):
//  * A line has one writer at a time. A write-back takes all 64 bytes with it, also those that were never stored to.
//  * Data are published before the word that leads to them, and refreshed behind it.
//  * Words on which hosts exclude each other change by `device_compare_exchange` alone.
//  * A host may die between any two of its stores. Those that were not published may be lost, each line by itself; what
//    it held is inherited by a host that finds it dead (`host_is_alive`).
#pragma once

#include <pmlab/media/medium.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pmlab::media {

// A medium that several hosts share. Its publications have allocate_coherent: as allocate, in memory that is coherent
// between hosts, where there is such.
template <class M>
concept pod_medium = medium<M> &&
    requires(M& m, const M& cm, const void* address, std::size_t bytes, std::atomic<std::uint64_t>& word,
             std::uint64_t& expected, typename M::publication& change) {
  requires M::shared_by_hosts;
  { cm.hosts() } -> std::same_as<unsigned>;  // how many there are
  { cm.host() } -> std::same_as<unsigned>;   // the number of the one that the caller runs on, from 0
  { cm.host_is_alive(0U) } -> std::same_as<bool>;
  { m.refresh(address, bytes) }
  noexcept;
  { m.device_compare_exchange(word, expected, expected) } -> std::same_as<bool>;
  { change.allocate_coherent(bytes, bytes) } -> std::same_as<void*>;
};

// How many hosts share `m`; 1 if it is the medium of one.
template <medium M>
[[nodiscard]] unsigned hosts_of(const M& m) noexcept {
  if constexpr (pod_medium<M>)
    return m.hosts();
  else
    return 1;
}

// The number of the host that the caller runs on, from 0.
template <medium M>
[[nodiscard]] unsigned host_of(const M& m) noexcept {
  if constexpr (pod_medium<M>)
    return m.host();
  else
    return 0;
}

// False: this host has died, and stores to `m` no more. Never false of a host that lives; some time passes until a
// death is known.
template <medium M>
[[nodiscard]] bool host_is_alive(const M& m, unsigned host) noexcept {
  if constexpr (pod_medium<M>)
    return m.host_is_alive(host);
  else
    return true;
}

// Later loads of `object`, which lives in `m`, see all that other hosts have published by now. REQUIRES: this host has
// no unpublished store to its lines. On x86: clflushopt of each line, then mfence; an sfence does not order loads.
template <medium M, detail::flushable_object T>
void refresh(M& m, const T& object) noexcept {
  if constexpr (pod_medium<M>) m.refresh(std::addressof(object), sizeof(T));
}

// Other hosts that refresh `object` from now on see what this one has stored to it; durable on return, too. On x86:
// clwb of each line, then sfence.
template <medium M, detail::flushable_object T>
void publish(M& m, const T& object) noexcept {
  persist(m, object);
}

// Stores `desired` if the word, which lives in `m`, is `expected`: atomic for all hosts, around all caches. True: it
// was stored. False: `expected` becomes the value that was there. REQUIRES: no host stores to the word's line in
// another way.
template <medium M>
bool device_compare_exchange(M& m, std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                             std::uint64_t desired) noexcept {
  if constexpr (pod_medium<M>)
    return m.device_compare_exchange(word, expected, desired);
  else
    return word.compare_exchange_strong(expected, desired, std::memory_order_acq_rel, std::memory_order_acquire);
}

// As `create`, in memory that is coherent between hosts where there is such. nullptr: it has no room.
template <class T, publication P>
[[nodiscard]] T* create_coherent(P& change) {
  void* block = nullptr;
  if constexpr (requires { change.allocate_coherent(sizeof(T), alignof(T)); })
    block = change.allocate_coherent(sizeof(T), alignof(T));
  else
    block = change.allocate(sizeof(T), alignof(T));
  return block == nullptr ? nullptr : ::new (block) T;
}

}  // namespace pmlab::media
