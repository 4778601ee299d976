// The key spaces of a device: names and limits, kept as pairs of a key space of their own.
#pragma once

#include "tools/kvssd/engine.hpp"

#include <atomic>
#include <bitset>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::kvssd {

struct key_space {
  std::uint8_t id = 0;
  std::string name;
  std::uint64_t capacity = 0;  // bytes of keys and values; 0: unlimited
  bool is_open = false;
  bool is_lost = false;  // its name is damaged: `name` stands in for it
  // Bytes of keys and values in a limited one, counted when it is opened; where some are damaged, a bound.
  std::atomic<std::uint64_t> used{0};
};

// Results of the functions that change key spaces.
enum class space_outcome : std::uint8_t { done, exists, absent, is_open, full };

// Thread safety: any operation from any thread. Durability: what a function returned stays true after a crash; a
// function that throws has changed nothing.
//
// A key space that is removed is gone at once; its pairs may follow later. Those that a failure or a crash left are
// removed by the next `make`, `remove` or opening, and its id is not used before.
//
// Damage: a key space whose name is damaged is there as `#damaged-ID`, without a limit, to be read and removed. While
// there is one, functions throw for a name that is not there: it may be that one.
class key_spaces {
 public:
  static constexpr std::uint8_t most = 250;  // ids 0 to 249
  static constexpr std::uint8_t own = 254;   // the key space of their names

  // Reads the names. `pairs` outlives it. Throws pmlab::error: the device failed.
  explicit key_spaces(engine& pairs);

  [[nodiscard]] space_outcome make(std::string_view name, std::uint64_t capacity);
  [[nodiscard]] space_outcome remove(std::string_view name);
  // The key space itself; nullptr: there is none, or it is open (`outcome` tells).
  [[nodiscard]] key_space* open(std::string_view name, space_outcome& outcome);
  void close(key_space& space);
  [[nodiscard]] std::vector<std::string> names() const;
  // Sum of the limits.
  [[nodiscard]] std::uint64_t reserved() const;

  // Bytes of keys and values, and pairs: reads all keys of the space; where it meets a damaged page of keys, each
  // record's head. A damaged pair counts with the most that it can have; also one that may be of another key space,
  // whose record and page are both damaged.
  struct content {
    std::uint64_t pairs = 0, bytes = 0;
  };
  [[nodiscard]] content count(std::uint8_t id);

 private:
  // False: no room; nothing has changed.
  [[nodiscard]] bool write(const key_space& space, bool is_going);
  // Throws pmlab::error: `name`, which is not there, may be one that is damaged.
  void check_lost(std::string_view name) const;
  void finish_removals() noexcept;

  engine& pairs_;
  mutable std::mutex mutex_;
  std::map<std::string, key_space, std::less<>> all_;
  std::bitset<most> going_;  // ids of key spaces that were removed, and may have pairs
};

}  // namespace pmlab::kvssd
