// Gates of layers: control which writers may still change a layer that is about to be removed from the trie.
//
//   L1  A layer that may be removed is armed. It is shut when all operations that began before have ended, if no writer
//       has entered it since. It is opened when all operations that began before its removal from the trie have ended,
//       too.
//   L2  A writer enters the gate of a layer after it has locked a word of it, and before it changes that word. Entering
//       disarms. So while a gate is shut, no writer is in the layer: those that entered before it was armed have ended
//       (L1), and those after would have disarmed it.
//   L3  A shut gate lets no writer in: the writer retries from the root, which leads to another path by then.
//   L4  At most one operation is in charge of an armed layer: the one that holds its ticket.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace pmlab::strings::detail {

// Layers share gates, by their numbers; a gate serves one layer at a time, and the next one waits until it is open.
//
// Thread safety: any. Progress: no operation waits.
class layer_gates {
 public:
  // The ticket of an armed gate is unique. These are no tickets of a gate:
  using ticket = std::uint64_t;
  static constexpr ticket nothing = 0;  // there is nothing to do
  static constexpr ticket later = 1;    // the gate serves another layer: to be armed later
  static constexpr ticket alone = 2;    // there is one thread: no gate is needed

  // `gates`: a power of two.
  explicit layer_gates(std::size_t gates) : mask_(gates - 1), gates_(new std::atomic<std::uint64_t>[gates]()) {}

  // L2. False: the gate is shut.
  [[nodiscard]] bool enter(std::uint64_t number) const noexcept {
    std::atomic<std::uint64_t>& gate = gate_of(number);
    std::uint64_t now = gate.load(std::memory_order_acquire);
    while (number_of(now) == number && state_of(now) != open_gate) {
      if (state_of(now) == shut_gate) return false;
      if (gate.compare_exchange_weak(now, after(now, number, open_gate), std::memory_order_acq_rel)) return true;
    }
    return true;
  }

  // A ticket; `nothing`: another operation has it; or `later`.
  [[nodiscard]] ticket arm(std::uint64_t number) const noexcept {
    std::atomic<std::uint64_t>& gate = gate_of(number);
    std::uint64_t now = gate.load(std::memory_order_acquire);
    for (;;) {
      if (state_of(now) != open_gate) return number_of(now) == number ? nothing : later;
      const ticket made = after(now, number, armed_gate);
      if (gate.compare_exchange_weak(now, made, std::memory_order_seq_cst)) return made;
    }
  }
  // Whether it is the ticket of this layer, which no writer has entered since.
  [[nodiscard]] bool is_armed(ticket t, std::uint64_t number) const noexcept {
    return number_of(t) == number && gate_of(number).load(std::memory_order_acquire) == t;
  }
  // Gives a ticket back.
  void disarm(ticket t) const noexcept {
    gate_of(number_of(t)).compare_exchange_strong(t, after(t, number_of(t), open_gate), std::memory_order_acq_rel);
  }
  // When all operations have ended that began before it was armed. False: a writer has entered since.
  [[nodiscard]] bool shut(ticket t) const noexcept {
    return gate_of(number_of(t))
        .compare_exchange_strong(t, after(t, number_of(t), shut_gate), std::memory_order_acq_rel);
  }
  // Opens the gate of this layer, if it is shut.
  void open(std::uint64_t number) const noexcept {
    std::atomic<std::uint64_t>& gate = gate_of(number);
    const std::uint64_t now = gate.load(std::memory_order_acquire);
    if (number_of(now) == number && state_of(now) == shut_gate)
      gate.store(after(now, number, open_gate), std::memory_order_release);
  }

  // The bytes of DRAM.
  [[nodiscard]] std::size_t bytes() const noexcept { return (mask_ + 1) * sizeof(std::uint64_t); }

 private:
  // | number: 30 | changes: 32 | state: 2 |
  static constexpr unsigned state_bits = 2;
  static constexpr unsigned change_bits = 32;
  static constexpr std::uint64_t open_gate = 0;
  static constexpr std::uint64_t armed_gate = 1;
  static constexpr std::uint64_t shut_gate = 2;

  [[nodiscard]] static constexpr std::uint64_t state_of(std::uint64_t word) noexcept { return word & 3; }
  [[nodiscard]] static constexpr std::uint64_t number_of(std::uint64_t word) noexcept {
    return word >> (change_bits + state_bits);
  }
  [[nodiscard]] static constexpr std::uint64_t after(std::uint64_t word, std::uint64_t number,
                                                     std::uint64_t state) noexcept {
    const std::uint64_t changes = ((word >> state_bits) + 1) & ((std::uint64_t{1} << change_bits) - 1);
    return number << (change_bits + state_bits) | changes << state_bits | state;
  }
  [[nodiscard]] std::atomic<std::uint64_t>& gate_of(std::uint64_t number) const noexcept {
    return gates_[number & mask_];
  }

  std::size_t mask_;
  std::unique_ptr<std::atomic<std::uint64_t>[]> gates_;
};

}  // namespace pmlab::strings::detail
