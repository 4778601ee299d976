// The superblocks of the flash: which are free, which are being filled, and how many units of each are valid.
//
// All of it is in DRAM: opening counts the words of the index. Nothing on flash is read for it.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace pmlab::stores::detail::kv_ssd {

// Records of one stream are written together: they tend to die together.
enum class flash_stream : std::uint8_t { user, moved, buckets };
inline constexpr std::size_t flash_streams = 3;

// Thread safety: `add`, `drop` and `life_of` from any thread; the others by one thread at a time.
class superblocks {
 public:
  superblocks(std::uint32_t count, std::uint32_t units)
      : units_(units),
        valid_(std::make_unique<std::atomic<std::uint32_t>[]>(count)),
        lives_(std::make_unique<std::atomic<std::uint64_t>[]>(count)),
        states_(count, state::free) {}

  [[nodiscard]] std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(states_.size()); }
  // The units of one superblock.
  [[nodiscard]] std::uint32_t units() const noexcept { return units_; }
  [[nodiscard]] std::uint32_t number_of(std::uint64_t unit) const noexcept {
    return static_cast<std::uint32_t>(unit / units_);
  }
  [[nodiscard]] std::uint32_t valid(std::uint32_t number) const noexcept {
    return valid_[number].load(std::memory_order_acquire);
  }

  // The life of a unit's superblock: another number each time that it is filled again. It stays as it is while a word
  // of the index leads to the unit, so bytes that were read in this life are still the current ones.
  [[nodiscard]] std::uint64_t life_of(std::uint64_t unit) const noexcept {
    return lives_[number_of(unit)].load(std::memory_order_acquire);
  }

  // A word of the index leads to these units; from now on, or no more (durably).
  void add(std::uint64_t unit, std::uint32_t units) noexcept {
    valid_[number_of(unit)].fetch_add(units, std::memory_order_acq_rel);
  }
  void drop(std::uint64_t unit, std::uint32_t units) noexcept {
    valid_[number_of(unit)].fetch_sub(units, std::memory_order_acq_rel);
  }

  // Opening, when all words were added: those with valid units are full, as far as is known.
  void begin() {
    for (std::uint32_t i = 0; i < count(); ++i)
      if (valid(i) != 0) states_[i] = state::closed;
  }

  // A free superblock, which is open from now on; they are taken in turn.
  [[nodiscard]] std::optional<std::uint32_t> take() {
    for (std::uint32_t i = 0; i < count(); ++i) {
      const std::uint32_t number = (next_ + i) % count();
      if (states_[number] != state::free) continue;
      states_[number] = state::open;
      lives_[number].fetch_add(1, std::memory_order_acq_rel);
      next_ = number + 1;
      return number;
    }
    return std::nullopt;
  }
  // It is full.
  void close(std::uint32_t number) { states_[number] = state::closed; }
  // Its records are being moved: it is no victim.
  void set_aside(std::uint32_t number) { states_[number] = state::emptied; }
  // REQUIRES: no word leads into it, durably.
  void free(std::uint32_t number) { states_[number] = state::free; }
  // A record in it is live and cannot be read: it is never reused.
  void retire(std::uint32_t number) { states_[number] = state::retired; }
  [[nodiscard]] bool is_free(std::uint32_t number) const { return states_[number] == state::free; }
  [[nodiscard]] bool is_closed(std::uint32_t number) const { return states_[number] == state::closed; }

  [[nodiscard]] std::uint32_t free_count() const {
    std::uint32_t n = 0;
    for (const state s : states_) n += s == state::free ? 1 : 0;
    return n;
  }
  // The full superblock with the least valid units, or std::nullopt if each has all of its units valid.
  [[nodiscard]] std::optional<std::uint32_t> victim() const {
    std::optional<std::uint32_t> best;
    for (std::uint32_t i = 0; i < count(); ++i)
      if (states_[i] == state::closed && valid(i) < units_ && (!best || valid(i) < valid(*best))) best = i;
    return best;
  }

 private:
  enum class state : std::uint8_t { free, open, closed, emptied, retired };

  std::uint32_t units_;
  std::unique_ptr<std::atomic<std::uint32_t>[]> valid_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> lives_;
  std::vector<state> states_;
  std::uint32_t next_ = 0;
};

}  // namespace pmlab::stores::detail::kv_ssd
