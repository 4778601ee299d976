// Whether the memory and the flash of a key-value device are of one moment: a copy of one that is older than the other
// is refused, as the index of one moment leads to records of another.
//
// Each opening has a number, which both keep. Orders:
//   (E1) the memory has the number that is begun  (E2) the flash has it  (E3) the memory has it as one that was open
//   (E1) < (E2) < (E3): the number on flash is at least that of (E3) in the memory, or the flash is older; and at most
//   that of (E1), or the memory is older. No number is begun twice: one that a crash ended behind (E1) or (E2) is not
//   that of a later opening.
//
// A rebuilt memory begins with another lineage: no memory from before fits the flash any more, and no flash from before
// the rebuilt memory.
//
// A device of a release before has no moment: it becomes guarded when it is opened. (E3) < (E4): the memory expects a
// moment on flash from then on. A lineage of its own distinguishes it from its state before.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <span>
#include <string>

namespace pmlab::stores::detail::kv_ssd {

[[nodiscard]] inline std::uint64_t random_word() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

// Thread safety: none.
template <media::medium Medium, blocks::device Device>
class moments {
 public:
  moments(Medium& medium, Device& device, state& of) : medium_(medium), device_(device), state_(of) {}

  enum class verdict { same, memory_is_older, flash_is_older, differ, damaged };

  // Of the first block of the flash, whose header is whole and is that of this device.
  [[nodiscard]] verdict judge(std::span<const std::byte> block) const noexcept {
    const bool is_guarded = state_.step.load(std::memory_order_acquire) == guarded;
    if (version_of(block) == flash_header::first_version) return is_guarded ? verdict::flash_is_older : verdict::same;
    const flash_moment on_flash = moment_of(block);
    if (on_flash.checksum != checksum_of(on_flash.word)) return verdict::damaged;
    const moment_word there(on_flash.word);
    const moment_word here = begun();
    if (there.lineage() != here.lineage()) return is_guarded ? verdict::differ : verdict::memory_is_older;
    if (there.opening() > here.opening()) return verdict::memory_is_older;
    return there.opening() < opens() ? verdict::flash_is_older : verdict::same;
  }
  // Throws pmlab::error unless they are of one moment.
  void check(std::span<const std::byte> block) const {
    const std::string memory = "the memory of the key-value device in " + medium_.name();
    const std::string flash = "the flash " + device_.name();
    const std::string remedy =
        "restore both from one copy; or rebuild the memory from the flash: what had not reached the flash is lost, and "
        "deleted keys may be there again";
    switch (judge(block)) {
      case verdict::same: return;
      case verdict::memory_is_older: throw error(memory + " is of an older moment than " + flash, remedy);
      case verdict::flash_is_older: throw error(flash + " is of an older moment than " + memory, remedy);
      case verdict::differ:
        throw error(memory + " and " + flash + " are of different moments: one of them is from before a rebuilding",
                    remedy);
      case verdict::damaged:
        throw error("the moment in block 0 of " + flash + " is damaged: whether " + memory + " is as new is not known",
                    remedy);
    }
  }

  // Begins the first opening's lineage. REQUIRES: the device is forming. Durable on return; `put` it on flash then.
  void begin_lineage() {
    // The same for the same identity, so that a making that is begun again goes on.
    set_begun(moment_word(mix_bits(state_.identity[0].load(std::memory_order_relaxed)), 0));
  }
  // Into the first block of the flash.
  void put(std::span<std::byte> block) const noexcept {
    flash_header header;
    std::memcpy(static_cast<void*>(&header), block.data(), sizeof header);
    header.version = flash_header::current_version;
    header.checksum = pmlab::checksum(&header, offsetof(flash_header, checksum));
    std::memcpy(block.data(), &header, sizeof header);
    const flash_moment m{begun().word(), checksum_of(begun().word())};
    std::memcpy(block.data() + flash_moment::offset, &m, sizeof m);
  }

  // Begins an opening of a device that `check` has let pass, with a number greater than any before. `block`: the first
  // one of the flash. Throws pmlab::error: the flash failed; there is no number left.
  void enter(blocks::buffer& block) {
    // Without a moment on flash, the word in memory may be of an opening that a crash ended, or have any bits.
    const bool is_first = version_of(block.bytes()) == flash_header::first_version;
    const std::uint64_t last = is_first ? opens() : std::max(opens(), begun().opening());
    enter(is_first ? random_word() : begun().lineage(), last + 1, block);
  }
  // The opening `number` of a memory that was made from the flash: with a lineage of its own. Throws pmlab::error as
  // `enter`.
  void enter_rebuilt(std::uint64_t number) {
    blocks::buffer block(device_.shape().block_bytes);
    blocks::synchronous(device_).read(0, block.bytes(), blocks::stream::manifest);
    enter(random_word(), number, block);
  }

 private:
  void enter(std::uint64_t lineage, std::uint64_t number, blocks::buffer& block) {
    if (number > moment_word::most_openings)
      throw error("the key-value device in " + medium_.name() + " was opened " +
                      std::to_string(moment_word::most_openings) + " times, and has no number for one time more",
                  "copy its pairs to a new device");
    set_begun(moment_word(lineage, number));
    put(block.bytes());
    blocks::synchronous(device_).write_durable(0, block.bytes(), blocks::stream::manifest);  // (E2)
    state_.opens.store(number, std::memory_order_release);
    media::persist(medium_, state_.opens);  // (E3)
    if (state_.step.load(std::memory_order_acquire) == ready) {
      state_.step.store(guarded, std::memory_order_release);
      media::persist(medium_, state_.step);  // (E4)
    }
  }
  void set_begun(moment_word m) {
    state_.moment.store(m.word(), std::memory_order_release);
    media::persist(medium_, state_.moment);  // (E1)
  }

  [[nodiscard]] std::uint64_t opens() const noexcept { return state_.opens.load(std::memory_order_acquire); }
  [[nodiscard]] moment_word begun() const noexcept {
    return moment_word(state_.moment.load(std::memory_order_acquire));
  }
  [[nodiscard]] static std::uint64_t version_of(std::span<const std::byte> block) noexcept {
    flash_header h;
    std::memcpy(static_cast<void*>(&h), block.data(), sizeof h);
    return h.version;
  }
  [[nodiscard]] static flash_moment moment_of(std::span<const std::byte> block) noexcept {
    flash_moment m;
    std::memcpy(&m, block.data() + flash_moment::offset, sizeof m);
    return m;
  }
  [[nodiscard]] std::uint64_t checksum_of(std::uint64_t m) const noexcept {
    return pmlab::checksum(&m, sizeof m, state_.identity[0].load(std::memory_order_relaxed));
  }

  Medium& medium_;
  Device& device_;
  state& state_;
};

}  // namespace pmlab::stores::detail::kv_ssd
