// The versions that the value of each key may have, and the check of what a store answered.
//
// Keys have ranks: a key of a larger rank is greater in the order of bytes. Each change of a key has a version, which
// grows. A value has its key's rank, its version and its length, and the rest of its bytes follow from these: so each
// byte proves where it is from. The ledger knows of each key the version that was given out last (`issued`), the one
// that was acknowledged last, and that of its last erase. An answer is right if
//   * a value is whole, of this store and this key, with a version that is not older than the last one that was
//     acknowledged when the read began, and not newer than the last one that was issued when it ended;
//   * a key that is not found was never put, or an erase is among these versions;
//   * a scan has keys in rising order, each with a right value, and leaves out no key between its first and its last
//     that was there from its beginning to its end.
#pragma once

#include "bench/stores/pair_subject.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::store_bench {

// Texts of keys. Four characters name a group of 1,000 neighbours, the rest the key in its group.
class pair_keys {
 public:
  static constexpr std::size_t least_bytes = 8;
  static constexpr std::size_t most_bytes = 255;
  static constexpr std::uint64_t group = 1000;
  static constexpr std::uint64_t most_ranks = 36ULL * 36 * 36 * 36 * group;

  // Each key has so many bytes, in this range.
  explicit pair_keys(std::size_t bytes) noexcept : bytes_(bytes) {}
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  void write(std::uint64_t rank, std::string& key) const;
  // The rank of a key, or std::nullopt if it is no key of a run.
  [[nodiscard]] std::optional<std::uint64_t> rank_of(std::string_view key) const;

 private:
  std::size_t bytes_;
};

// Thread safety: all of it from any thread, if no two changes of a key are under way at a time.
class pair_ledger {
 public:
  // The bytes of a value.
  static constexpr std::size_t least_value = 24;
  static constexpr std::size_t most_value = (std::size_t{1} << 24) - 1;

  pair_ledger(std::uint64_t ranks, pair_keys keys, std::uint64_t seed);

  [[nodiscard]] std::uint64_t ranks() const noexcept { return cells_.size(); }
  [[nodiscard]] const pair_keys& keys() const noexcept { return keys_; }

  // A change of it is under way.
  [[nodiscard]] bool is_busy(std::uint64_t rank) const noexcept;
  // It was put, and not erased since. No change of it is under way.
  [[nodiscard]] bool is_there(std::uint64_t rank) const noexcept;
  [[nodiscard]] bool was_put(std::uint64_t rank) const noexcept;

  // Begins a change. The version is for `end`. A put makes its value.
  std::uint64_t begin_put(std::uint64_t rank, std::span<std::byte> value) noexcept;
  std::uint64_t begin_erase(std::uint64_t rank) noexcept;
  // It was acknowledged.
  void end(std::uint64_t rank, std::uint64_t version) noexcept;

  // Before a read: the version that it must not fall behind.
  [[nodiscard]] std::uint64_t begin_read(std::uint64_t rank) const noexcept;
  // After it: nothing, or the error.
  [[nodiscard]] std::optional<std::string> check(std::uint64_t rank, bool found, std::span<const std::byte> value,
                                                 std::uint64_t least) const;

  // Before a scan from `from` on: the versions of as many keys as `least` has room for. Returns of how many.
  std::size_t begin_scan(std::uint64_t from, std::span<std::uint64_t> least) const noexcept;
  // After it. `most`: the pairs that it asked for.
  [[nodiscard]] std::optional<std::string> check_scan(std::uint64_t from, std::size_t most, std::span<const pair> pairs,
                                                      std::span<const std::uint64_t> least) const;

 private:
  struct cell {
    std::atomic<std::uint64_t> issued{0};
    std::atomic<std::uint64_t> acknowledged{0};
    std::atomic<std::uint64_t> erased{0};  // the version of its last erase
  };
  std::uint64_t next_version(std::uint64_t rank) noexcept;
  [[nodiscard]] std::string name_of(std::uint64_t rank) const;
  // It was there from a moment at which `least` was acknowledged until now.
  [[nodiscard]] bool was_there_throughout(std::uint64_t rank, std::uint64_t least) const noexcept;
  void fill(std::uint64_t rank, std::uint64_t version, std::span<std::byte> value) const noexcept;

  std::vector<cell> cells_;
  pair_keys keys_;
  std::uint64_t seed_;
};

}  // namespace pmlab::store_bench
