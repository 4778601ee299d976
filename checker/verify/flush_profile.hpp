// Flushes and fences of a campaign that had no effect, by the place in the code.
#pragma once

#include "checker/simulator/machine/machine.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace pmlab::verify {

// Kinds of them.
enum class waste : std::uint8_t {
  clean,        // a flush of a line that was not stored to since its last flush
  of_volatile,  // a flush of memory that is not persistent
  idle,         // a fence, and no flush or non-temporal store of its thread since its last one
  again,        // a flush of a line with new stores that the same operation has flushed before: the older ones twice
};
inline constexpr std::size_t kinds_of_waste = 4;

struct flush_place {
  const void* caller = nullptr;
  std::uint64_t flushes = 0;
  std::uint64_t fences = 0;
  std::uint64_t wasted[kinds_of_waste] = {};
};

// Lies in memory that a child process shares with its parent: it counts, and the parent reads.
class flush_profile final : public simulator::durability_watch {
 public:
  static constexpr std::size_t most_places = 4096;

  // In shared memory; a process has few.
  static flush_profile& make();
  flush_profile(const flush_profile&) = delete;
  flush_profile& operator=(const flush_profile&) = delete;
  ~flush_profile() override;

  // A run begins: the machine reports to this.
  void begin();
  void operation_begins() noexcept { ++operations_; }

  [[nodiscard]] std::uint64_t operations() const noexcept { return operations_; }
  [[nodiscard]] std::vector<flush_place> places() const;

  void stored(std::uintptr_t address, std::size_t bytes) override;
  void stored_around(std::uintptr_t address, std::size_t bytes) override;
  void flushed(std::uintptr_t address, bool persistent, const void* caller) override;
  void fenced(const void* caller) override;
  void published(std::uintptr_t address) override;

 private:
  struct lines;

  flush_profile() = default;
  [[nodiscard]] flush_place& place_of(const void* caller) noexcept;

  std::uint64_t operations_ = 0;
  lines* lines_ = nullptr;  // lines of the process that counts
  flush_place places_[most_places];
};

}  // namespace pmlab::verify
