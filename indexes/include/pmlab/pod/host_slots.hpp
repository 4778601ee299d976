// The hosts of a memory: who has joined it, who has died, and locks that outlive their holders.
#pragma once

#include <pmlab/media/lines.hpp>
#include <pmlab/pod/line_memory.hpp>
#include <pmlab/sync/relax.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pmlab::pod {

// Words of a memory that hosts change by exchanges of the device alone: no cache has a store to them.
using device_word = std::atomic<std::uint64_t>;

// Where the host of a slot stands.
enum class host_stage : std::uint64_t {
  none,    // no host has the slot: there was none, or it has left in order
  joined,  // one has it, which lives, or has died and is not recovered yet
  dead,    // it has died, and what it had begun is complete
};

// A slot's word: | joins 32 | deaths 30 | stage 2 |. A host's number is deaths * slots + slot: so the number of one
// that has died is never another's, and locks that name it can be inherited at any time.
class host_state {
 public:
  // What a slot's word tells.
  explicit constexpr host_state(std::uint64_t word) noexcept : word_(word) {}
  // The slot's word.
  [[nodiscard]] constexpr std::uint64_t word() const noexcept { return word_; }
  // Where its host stands.
  [[nodiscard]] constexpr host_stage stage() const noexcept { return static_cast<host_stage>(word_ & stage_mask); }
  // Hosts of this slot that died before this one.
  [[nodiscard]] constexpr std::uint64_t deaths() const noexcept { return (word_ & 0xffffffff) >> 2; }
  // Hosts that have had the slot, with this one.
  [[nodiscard]] constexpr std::uint64_t joins() const noexcept { return word_ >> 32; }
  // The next host's. The joins tell it from any other one of this slot.
  [[nodiscard]] constexpr host_state joined() const noexcept {
    const std::uint64_t died = deaths() + (stage() == host_stage::dead ? 1 : 0);
    return host_state((joins() + 1) << 32 | died << 2 | static_cast<std::uint64_t>(host_stage::joined));
  }
  // The same host's at another stage.
  [[nodiscard]] constexpr host_state at(host_stage stage) const noexcept {
    return host_state((word_ & ~stage_mask) | static_cast<std::uint64_t>(stage));
  }
  friend constexpr bool operator==(host_state, host_state) noexcept = default;

 private:
  static constexpr std::uint64_t stage_mask = 3;
  std::uint64_t word_;
};

// A host's line.
struct alignas(media::cache_line_bytes) host_slot {
  device_word state{0};  // host_state
  // Changes of units (space_blocks.hpp) by hosts of this slot have numbers. Those up to this one are done; so are those
  // whose numbers the units have.
  device_word done{0};
};
static_assert(sizeof(host_slot) == media::cache_line_bytes);

// Names a host of a slot for ever: | joins 32 | slot + 1 |. 0 names none.
[[nodiscard]] constexpr std::uint64_t name_of_holder(std::size_t slot, host_state state) noexcept {
  return state.joins() << 32 | (slot + 1);
}
// The slot in this name. One that no host has: the name is 0, or damaged.
[[nodiscard]] constexpr std::size_t slot_of_holder(std::uint64_t name) noexcept {
  return static_cast<std::size_t>((name & 0xffffffff) - 1);
}

// The word as the device has it.
template <line_memory Lines>
[[nodiscard]] std::uint64_t now(Lines& lines, const device_word& word) noexcept {
  lines.refresh(&word, sizeof word);
  return word.load(std::memory_order_acquire);
}

// Changes the word, durably, unless it is greater already.
template <line_memory Lines>
void raise(Lines& lines, device_word& word, std::uint64_t value) noexcept {
  std::uint64_t seen = now(lines, word);
  while (seen < value && !lines.device_compare_exchange(word, seen, value)) {
  }
  // Another host may have raised it, and not have flushed it yet.
  lines.flush(&word, sizeof word);
  lines.fence();
}

// The hosts of a memory by their numbers.
template <line_memory Lines>
class host_slots {
 public:
  // `slots`: in the memory of `lines`. Both outlive it.
  host_slots(Lines& lines, std::span<host_slot> slots) noexcept : lines_(lines), slots_(slots) {}

  // So many hosts may live at a time.
  [[nodiscard]] std::size_t size() const noexcept { return slots_.size(); }
  // The slot of this place.
  [[nodiscard]] host_slot& operator[](std::size_t slot) const noexcept { return slots_[slot]; }
  // The place of the slot that a host of this number has, or had.
  [[nodiscard]] std::size_t slot_of(unsigned host) const noexcept { return host % slots_.size(); }
  // The number of the host that the slot's state is of.
  [[nodiscard]] unsigned number_of(std::size_t slot, host_state state) const noexcept {
    return static_cast<unsigned>(state.deaths() * slots_.size() + slot);
  }
  // As the device has it now.
  [[nodiscard]] host_state state_of(std::size_t slot) const noexcept {
    return host_state(now(lines_, slots_[slot].state));
  }

  // How the host is that is meant.
  struct standing {
    // died: it has ended, and is not recovered. gone: it is recovered, or has left in order.
    enum class kind : std::uint8_t { alive, died, gone };
    kind is;           // at the moment of the question
    host_state state;  // the slot has it
  };
  // How the slot's host stands. is_meant(state): the host that the slot has is the one asked for.
  template <class IsMeant>
  [[nodiscard]] standing standing_at(std::size_t slot, IsMeant&& is_meant) const noexcept {
    for (;;) {
      const host_state before = state_of(slot);
      if (before.stage() != host_stage::joined || !is_meant(before)) return {standing::kind::gone, before};
      if (!lines_.has_died(static_cast<unsigned>(slot))) return {standing::kind::alive, before};
      // The kernel may have been asked between one that has left and another one that has come.
      if (state_of(slot) == before) return {standing::kind::died, before};
    }
  }
  // How the host of this number stands.
  [[nodiscard]] standing standing_of(unsigned host) const noexcept {
    const std::size_t slot = slot_of(host);
    return standing_at(slot, [&](host_state state) { return number_of(slot, state) == host; });
  }

 private:
  Lines& lines_;
  std::span<host_slot> slots_;
};

// A lock of one word, for what is done seldom: 0, or its holder's name. One that died holding it gives way. Progress:
// waits for a holder that lives.
template <line_memory Lines>
class exclusive {
 public:
  // `state`: of this host, in its slot.
  exclusive(Lines& lines, const host_slots<Lines>& hosts, device_word& word, std::size_t slot,
            host_state state) noexcept
      : lines_(lines), word_(word), mine_(name_of_holder(slot, state)) {
    for (sync::backoff wait;; wait.pause()) {
      std::uint64_t holder = now(lines_, word_);
      // The other threads of this host hold it as this host does.
      if (holder == mine_ || (holder != 0 && is_alive(hosts, holder))) continue;
      if (lines_.device_compare_exchange(word_, holder, mine_)) return;
    }
  }
  exclusive(const exclusive&) = delete;
  exclusive& operator=(const exclusive&) = delete;
  ~exclusive() {
    std::uint64_t holder = mine_;
    static_cast<void>(lines_.device_compare_exchange(word_, holder, 0));
  }

 private:
  [[nodiscard]] static bool is_alive(const host_slots<Lines>& hosts, std::uint64_t holder) noexcept {
    const std::size_t slot = slot_of_holder(holder);
    if (slot >= hosts.size()) return false;  // damage
    return hosts.standing_at(slot, [holder](host_state state) { return state.joins() == holder >> 32; }).is ==
           host_slots<Lines>::standing::kind::alive;
  }

  Lines& lines_;
  device_word& word_;
  std::uint64_t mine_;
};

}  // namespace pmlab::pod
