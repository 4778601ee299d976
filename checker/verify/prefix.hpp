// A store of keys under verification whose crashes may take the newest changes: behind virtual calls.
//
// Keys and values are numbers: a target makes bytes of them, and tells a value that no change wrote from one that was.
#pragma once

#include <pmlab/base/error.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace pmlab::verify {

class crash_image;

inline constexpr std::size_t prefix_keys = 8;

// Values with this number or a greater one are large, and all of one size: a few of them fill small drives.
inline constexpr std::uint32_t first_large_number = 1U << 30;

// Sets the value of a key; 0: erases it.
struct prefix_change {
  std::uint32_t key = 0;
  std::uint32_t number = 0;
  friend bool operator==(const prefix_change&, const prefix_change&) = default;
};

// By key; 0: it is not there.
using prefix_state = std::vector<std::uint32_t>;

// How the content of a snapshot is read.
enum class prefix_look : std::uint8_t { forward, backward, gets };

class prefix_target {
 public:
  prefix_target() = default;
  prefix_target(const prefix_target&) = delete;
  prefix_target& operator=(const prefix_target&) = delete;
  virtual ~prefix_target() = default;

  // One change, or a batch. The sequence of the last one; 0: no room, and nothing changed.
  virtual std::uint64_t apply(std::span<const prefix_change> changes) = 0;
  // All that returned is durable.
  virtual void sync() = 0;
  // Time passes; the store does what becomes due.
  virtual void pass(std::uint64_t milliseconds) = 0;
  // Rearranges; changes no answer.
  virtual void compact() = 0;
  virtual std::uint32_t get(std::uint32_t key) = 0;
  // The contents, found by a walk over all keys.
  virtual prefix_state contents(bool backward) = 0;
  // The content stays as it is now for `look`, until the next `hold`.
  virtual void hold() = 0;
  virtual prefix_state look(prefix_look how) = 0;
  // The sequence of the newest change.
  virtual std::uint64_t sequence() = 0;
  // The first violated invariant; "": none.
  virtual std::string check() = 0;
};

struct prefix_kind {
  std::uint64_t at_most_milliseconds = 0;  // the store's bound of the loss; 0: nothing may be lost
  // Instrumented; on the drives that the machine observes.
  std::function<std::unique_ptr<prefix_target>()> open_simulated{};
  std::unique_ptr<prefix_target> (*open_image)(crash_image& image) = nullptr;
};

}  // namespace pmlab::verify
