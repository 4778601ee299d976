// The 8-byte pointer that is stored in a medium.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <cstdint>

namespace pmlab::media {

// Names an object of type T inside one medium. Only the medium interprets the word: it is an address in DRAM, an offset
// from the start of the pool in PM, so that the pool may be mapped at another address the next time. Only the medium
// that made a pointer can resolve it. 0 is null on every medium.
//
// Trivially copyable and 8 bytes, so `std::atomic<pointer<T>>` is lock-free and one store replaces it whole.
template <class T>
class pointer {
 public:
  constexpr pointer() noexcept = default;
  // `word`: from `word()`, of a pointer into the same medium.
  constexpr explicit pointer(std::uint64_t word) noexcept : word_(word) {}

  // The stored word.
  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }
  // False: null.
  constexpr explicit operator bool() const noexcept { return word_ != 0; }
  friend constexpr bool operator==(pointer, pointer) noexcept = default;

 private:
  std::uint64_t word_ = 0;
};

static_assert(sizeof(pointer<int>) == 8);

}  // namespace pmlab::media
