// A version lock in memory that several hosts share, coherent or not: writers of all hosts exclude each other, readers
// write nothing and validate afterwards.
//
// Its word changes by compare-exchanges of the device alone, so no cache of a host ever holds a store to it, and no
// death of a host loses one. Where the word is not coherent, each look at it is a refresh.
#pragma once

#include <pmlab/media/hosts.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/sync/relax.hpp>

#include <atomic>
#include <cstdint>
#include <optional>

namespace pmlab::pod {

// How a lock was acquired.
enum class acquired : std::uint8_t {
  mine,
  inherited,  // its holder has died in the middle of what it did: repair that first
};

// Rules of those who use it:
//  (L1) the lock outlives its holder's stores: the word is on the device before the first of them, by the exchange
//  (L2) every store under the lock is published before `unlock`: a line that stays dirty is written back later
//       over the stores of the next holder
//  (L3) a reader refreshes behind `read_begin` before it loads, and validates last; a holder refreshes behind `lock`
//
// A host that dies leaves its locks held. The next caller of `lock` inherits it, once the death is known. A host that
// is started again needs another number: it would wait for itself. Numbers have 15 bits.
//
// Thread safety: any number of threads of any number of hosts. Progress: `lock` and `read_begin` wait for a holder
// that lives; validation never waits.
class alignas(media::cache_line_bytes) version_lock {
 public:
  // The version to validate against. Waits until no writer is inside. Nothing: the writer inside has died, so that the
  // next caller of `lock` inherits it.
  template <media::medium M>
  [[nodiscard]] std::optional<std::uint64_t> read_begin(M& m) const noexcept {
    for (sync::backoff wait;; wait.pause()) {
      const std::uint64_t word = now(m);
      if ((word & held) == 0) return word;
      if (!holder_is_alive(m, word)) return std::nullopt;
    }
  }

  // True if no writer has held the lock since `read_begin` returned `version`.
  template <media::medium M>
  [[nodiscard]] bool read_validate(M& m, std::uint64_t version) const noexcept {
    return now(m) == version;
  }

  // Waits until no other writer that lives holds the lock, and acquires it. Not recursive, not fair.
  template <media::medium M>
  [[nodiscard]] acquired lock(M& m) noexcept {
    std::uint64_t ignored = 0;
    return lock(m, ignored);
  }
  // The same; `version` becomes that of the last unlock, which `read_begin` returned until now.
  template <media::medium M>
  [[nodiscard]] acquired lock(M& m, std::uint64_t& version) noexcept {
    for (sync::backoff wait;; wait.pause()) {
      std::uint64_t word = now(m);
      const bool inherits = (word & held) != 0;
      if (inherits && holder_is_alive(m, word)) continue;
      version = word & ~(host_mask | held);
      const std::uint64_t mine = version | std::uint64_t{media::host_of(m)} << host_shift | held;
      if (media::device_compare_exchange(m, word_, word, mine)) return inherits ? acquired::inherited : acquired::mine;
    }
  }

  // Releases the lock and increments the version; returns it. REQUIRES: (L2).
  template <media::medium M>
  std::uint64_t unlock(M& m) noexcept {
    std::uint64_t word = now(m);
    const std::uint64_t next = released(word);
    media::device_compare_exchange(m, word_, word, next);
    return next;
  }

  // Frees it, if it is held by another holder, and publishes that. The version moves on. REQUIRES: no other host or
  // thread uses the memory.
  template <media::medium M>
  void reset(M& m) noexcept {
    const std::uint64_t word = now(m);
    if ((word & held) == 0) return;
    word_.store(released(word), std::memory_order_release);
    media::publish(m, word_);
  }

 private:
  // | version 48 | host 15 | held 1 |
  static constexpr std::uint64_t held = 1;
  static constexpr unsigned host_shift = 1;
  static constexpr std::uint64_t host_mask = std::uint64_t{0x7fff} << host_shift;
  static constexpr std::uint64_t one_version = std::uint64_t{1} << 16;

  // As the holder leaves it.
  [[nodiscard]] static constexpr std::uint64_t released(std::uint64_t word) noexcept {
    return (word & ~(host_mask | held)) + one_version;
  }
  template <media::medium M>
  [[nodiscard]] static bool holder_is_alive(const M& m, std::uint64_t word) noexcept {
    return media::host_is_alive(m, static_cast<unsigned>((word & host_mask) >> host_shift));
  }
  template <media::medium M>
  [[nodiscard]] std::uint64_t now(M& m) const noexcept {
    media::refresh(m, word_);
    return word_.load(std::memory_order_acquire);
  }

  std::atomic<std::uint64_t> word_{0};
};

}  // namespace pmlab::pod
