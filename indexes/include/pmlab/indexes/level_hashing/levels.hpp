// Levels of Level hashing, and the words that name them: in the medium and in DRAM.
#pragma once

#include <pmlab/indexes/level_hashing/bucket.hpp>
#include <pmlab/indexes/level_hashing/place.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/pointer.hpp>
#include <pmlab/sync/version_lock.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pmlab::indexes::detail::level_hashing {

inline constexpr std::uint64_t log2_bits = 0x3f;  // that a word has free, since buckets are aligned

[[nodiscard]] constexpr std::size_t level_bytes(unsigned log2) noexcept { return sizeof(bucket) << log2; }

// A level as the medium stores it; 0: none.
//
//   0             6                                   48      64
//   | log2 (size) | pointer (its lower 6 bits are 0)  | check |
//
// The check makes it improbable that a damaged word is followed.
class stored_level {
 public:
  constexpr stored_level() noexcept = default;
  constexpr explicit stored_level(std::uint64_t word) noexcept : word_(word) {}

  [[nodiscard]] static constexpr stored_level of(media::pointer<bucket> buckets, unsigned log2) noexcept {
    const std::uint64_t named = buckets.word() | log2;
    return stored_level(named | check_of(named) << check_at);
  }

  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] constexpr bool none() const noexcept { return word_ == 0; }
  // False: damaged.
  [[nodiscard]] constexpr bool plausible() const noexcept {
    return word_ >> check_at == check_of(named()) && log2() <= candidates::greatest_log2;
  }
  [[nodiscard]] constexpr unsigned log2() const noexcept { return static_cast<unsigned>(word_ & log2_bits); }
  [[nodiscard]] constexpr media::pointer<bucket> buckets() const noexcept {
    return media::pointer<bucket>(named() & ~log2_bits);
  }
  friend constexpr bool operator==(stored_level, stored_level) noexcept = default;

 private:
  static constexpr unsigned check_at = 48;

  [[nodiscard]] constexpr std::uint64_t named() const noexcept { return word_ & ((std::uint64_t{1} << check_at) - 1); }
  [[nodiscard]] static constexpr std::uint64_t check_of(std::uint64_t named) noexcept {
    return hash_of_key(named) >> check_at;
  }

  std::uint64_t word_ = 0;
};

// A level in DRAM: address and size in one word, so that a reader that reads one while it changes still never leaves
// its buckets.
class level {
 public:
  constexpr level() noexcept = default;
  explicit level(std::uint64_t word) noexcept : word_(word) {}
  level(bucket* buckets, unsigned log2) noexcept : word_(reinterpret_cast<std::uint64_t>(buckets) | log2) {}

  [[nodiscard]] std::uint64_t word() const noexcept { return word_; }
  [[nodiscard]] bool none() const noexcept { return word_ == 0; }
  [[nodiscard]] unsigned log2() const noexcept { return static_cast<unsigned>(word_ & log2_bits); }
  [[nodiscard]] std::uint64_t size() const noexcept { return std::uint64_t{1} << log2(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return level_bytes(log2()); }
  [[nodiscard]] bucket& operator[](std::uint64_t number) const noexcept {
    return reinterpret_cast<bucket*>(word_ & ~log2_bits)[number];
  }

 private:
  std::uint64_t word_ = 0;
};

// The root object: the number of shards, the levels that wait for their release, and the levels of each shard.
//
//   | log2 (shards) | retired -> | (to 64) | top | bottom | top | bottom | ...
//                       |
//                       v
//                       token word of the first bucket of a level, now a link -> the next one
struct stored_shard {
  std::atomic<std::uint64_t> top;
  std::atomic<std::uint64_t> bottom;
};

struct alignas(media::cache_line_bytes) root_object {
  std::atomic<std::uint64_t> log2_shards;
  std::atomic<std::uint64_t> retired;
  std::array<std::atomic<std::uint64_t>, 6> unused;

  [[nodiscard]] stored_shard* shards() noexcept { return reinterpret_cast<stored_shard*>(this + 1); }
  [[nodiscard]] static constexpr std::size_t bytes(unsigned log2_shards) noexcept {
    return sizeof(root_object) + (sizeof(stored_shard) << log2_shards);
  }
};

static_assert(sizeof(root_object) == media::cache_line_bytes && sizeof(stored_shard) == 16);

// DRAM state of a shard. The levels change only while the lock is held.
struct alignas(media::cache_line_bytes) shard {
  sync::version_lock lock;
  std::atomic<std::uint64_t> top{0};
  std::atomic<std::uint64_t> bottom{0};

  [[nodiscard]] level top_level() const noexcept { return level(top.load(std::memory_order_acquire)); }
  [[nodiscard]] level bottom_level() const noexcept { return level(bottom.load(std::memory_order_acquire)); }
};

static_assert(sizeof(shard) == media::cache_line_bytes);

}  // namespace pmlab::indexes::detail::level_hashing
