// The key spaces of a device: names and limits, kept as pairs of a key space of their own.
#pragma once

#include "tools/kvssd/engine.hpp"

#include <array>
#include <atomic>
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
  // Of a limited one: bytes of keys and values, counted when it is opened.
  std::atomic<std::uint64_t> used{0};
};

// Results of the functions that change key spaces.
enum class space_outcome : std::uint8_t { done, exists, absent, is_open, full };

// Thread safety: any operation from any thread. Durability: what a function returned stays true after a crash. A removal
// that a crash interrupts is completed when the device is opened.
class key_spaces {
 public:
  static constexpr std::uint8_t most = 250;  // ids 0 to 249
  static constexpr std::uint8_t own = 254;   // the key space of their names

  // Reads the names. `pairs` outlives it. Throws pmlab::error: a damaged record.
  explicit key_spaces(engine& pairs);

  [[nodiscard]] space_outcome make(std::string_view name, std::uint64_t capacity);
  [[nodiscard]] space_outcome remove(std::string_view name);
  // The key space itself; nullptr: there is none, or it is open (`outcome` tells).
  [[nodiscard]] key_space* open(std::string_view name, space_outcome& outcome);
  void close(key_space& space);
  [[nodiscard]] std::vector<std::string> names() const;
  // Sum of the limits.
  [[nodiscard]] std::uint64_t reserved() const;

  // Bytes of keys and values, and pairs: reads all keys of the space.
  struct content {
    std::uint64_t pairs = 0, bytes = 0;
  };
  [[nodiscard]] content count(std::uint8_t id);

  // Calls visit(key) for the keys that are there throughout. May erase them.
  template <class Visit>
  void for_each_key(std::uint8_t id, stores::kv_prefix prefix, Visit&& visit) {
    engine::iterator walk = pairs_.iterate(prefix, id);
    for (;;) {
      const std::vector<std::string> keys = walk.next(at_once);
      for (const std::string& key : keys) visit(key);
      if (keys.size() < at_once) return;
    }
  }

 private:
  static constexpr std::size_t at_once = 256;

  void write(const key_space& space, bool is_going);
  void remove_pairs(std::uint8_t id);

  engine& pairs_;
  mutable std::mutex mutex_;
  std::map<std::string, key_space, std::less<>> all_;
};

}  // namespace pmlab::kvssd
