// Whether the memory and the flash of a key-value device are of one moment: a copy of one of them that is of another
// time is refused, as the index of one moment leads to records of another.
//
// Each opening is a moment (stores/moment.hpp), and so is its closing, with the same number. The flash keeps one in
// block 0. The memory knows two. Orders:
//   (E0) the memory knows the moment that flash has to be durable, if an interrupted opening left it begun only
//   (E1) the memory begins a moment  (E2) the flash has it  (E3) the memory knows it to be durable
//   (E0) < (E1) < (E2) < (E3): the flash has one of the two moments that the memory knows. No number is begun twice:
//   one that a crash ended behind (E1) or (E2) is not that of a later opening.
//
// A rebuilt memory begins with a moment of its own: no memory from before fits the flash any more, and no flash from
// before fits the rebuilt memory.
//
// A release before gave all openings one mark, and the memory knew the number of the durable one. Such a device opens
// by the numbers. A device of a release without moments becomes guarded when it is opened. (E3) < (E4): the memory
// expects a moment on flash from then on.
//
// Words of the index are checked from (E5) on, and their names, when the flash has the version of the layout that has
// such words.
// (E2) < (E5): a release before, which does not know them, refuses the flash.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/kv_ssd/layout.hpp>
#include <pmlab/stores/moment.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <span>
#include <string>

namespace pmlab::stores::detail::kv_ssd {

// Thread safety: none.
template <media::medium Medium, blocks::device Device>
class moments {
 public:
  moments(Medium& medium, Device& device, state& of) : medium_(medium), device_(device), state_(of) {}

  // The verdict, or std::nullopt if the moment on flash is damaged. `block`: the first one of the flash, whose header
  // is whole and this device's.
  [[nodiscard]] std::optional<moment_verdict> judge(std::span<const std::byte> block) const noexcept {
    const bool is_guarded = step() == guarded;
    if (version_of(block) == flash_header::first_version)
      return is_guarded ? moment_verdict::part_is_older : moment_verdict::same;
    const auto on_flash = moment_in(block);
    if (!is_guarded) return on_flash == begun() ? moment_verdict::same : moment_verdict::known_is_older;
    if (!on_flash) return std::nullopt;
    if (durable().mark() == 0 && on_flash->mark() == begun().mark())  // a release before had one mark for all openings
      return on_flash->number() > begun().number()     ? moment_verdict::known_is_older
             : on_flash->number() < durable().number() ? moment_verdict::part_is_older
                                                       : moment_verdict::same;
    return compare(*on_flash, {durable(), begun()});
  }
  // Throws pmlab::error unless they are of one moment.
  void check(std::span<const std::byte> block) const {
    const std::string memory = "the memory of the key-value device in " + medium_.name();
    const std::string flash = "the flash " + device_.name();
    const std::string remedy =
        "restore both from one copy; or rebuild the memory from the flash: what had not reached the flash is lost, and "
        "deleted keys may be there again";
    const std::optional<moment_verdict> found = judge(block);
    if (!found)
      throw error("the moment in block 0 of " + flash + " is damaged: whether " + memory + " is as new is not known",
                  remedy);
    switch (*found) {
      case moment_verdict::same: return;
      case moment_verdict::known_is_older: throw error(memory + " is of an older moment than " + flash, remedy);
      case moment_verdict::part_is_older: throw error(flash + " is of an older moment than " + memory, remedy);
      case moment_verdict::differ:
        throw error(memory + " and " + flash +
                        " are of different moments: they are of two copies that were both used, or one of them is from "
                        "before a rebuilding",
                    remedy);
    }
  }

  // Begins the moment that a device is made with: number 0. REQUIRES: the device is forming. Durable on return; `put`
  // it on flash then.
  void begin_making() {
    // The same for the same identity, so that a making that is begun again goes on.
    set_begun(moment(mix_bits(state_.identity[0].load(std::memory_order_relaxed)), 0));
  }
  // The moment with which `block` was made, and none since.
  [[nodiscard]] bool is_of_making(std::span<const std::byte> block) const noexcept {
    if (version_of(block) == flash_header::first_version) return true;
    const auto on_flash = moment_in(block);
    return !on_flash || on_flash->number() == 0;
  }
  // Into the first block of the flash.
  void put(std::span<std::byte> block) const noexcept {
    flash_header header;
    std::memcpy(static_cast<void*>(&header), block.data(), sizeof header);
    header.version = flash_header::current_version;
    header.checksum = pmlab::checksum(&header, offsetof(flash_header, checksum));
    std::memcpy(block.data(), &header, sizeof header);
    const flash_moment m{begun().word(), checksum_of(begun())};
    std::memcpy(block.data() + flash_moment::offset, &m, sizeof m);
  }

  // The number of the next opening: greater than any before. Throws pmlab::error: there is none left.
  [[nodiscard]] std::uint64_t next_number() const {
    // Without a moment on flash, the word in memory may have any bits.
    const bool is_first = step() == ready;
    const std::uint64_t last = is_first ? durable().number() : std::max(durable().number(), begun().number());
    if (last < moment::largest_number) return last + 1;
    throw error("the key-value device in " + medium_.name() + " was opened " + std::to_string(last) +
                    " times, and has no number for one time more",
                "copy its pairs to a new device, from an earlier copy of memory and flash");
  }
  // Begins the opening `number` of a device that `check` has let pass, or of one that is being rebuilt. `block`: the
  // first one of the flash. Returns its moment. Throws pmlab::error: the flash failed.
  [[nodiscard]] moment enter(std::uint64_t number, blocks::buffer& block) {
    blocks::synchronous flash(device_);
    const auto there = moment_in(block.bytes());
    const bool is_guarded_on_flash = version_of(block.bytes()) != flash_header::first_version;
    if (step() != being_rebuilt && is_guarded_on_flash && there) {
      if (*there != durable()) {
        flash.flush(blocks::stream::manifest);  // what a killed process wrote may be in the drive's cache
        set_durable(*there);                    // (E0)
      }
      guard();
    }
    advance(number, block);
    guard();
    return begun();
  }
  // Ends the opening with this moment. Calls settle() before, if flash has no other opening: one that was begun, and
  // did not get there, is none. Without effect if the flash fails.
  template <class Settle>
  void end(moment opening, Settle&& settle) noexcept try {
    blocks::buffer block = blocks::read_block(device_, 0, blocks::stream::manifest);
    if (step() != guarded || durable() != opening || moment_in(block.bytes()) != opening) return;
    settle();
    if (begun() == opening) advance(opening.number(), block);
  } catch (const std::exception&) {
    // The device looks as after a crash.
  }

 private:
  void advance(std::uint64_t number, blocks::buffer& block) {
    set_begun(moment::with_number(number));
    put(block.bytes());
    blocks::synchronous(device_).write_durable(0, block.bytes(), blocks::stream::manifest);  // (E2)
    set_durable(begun());                                                                    // (E3)
  }
  void set_begun(moment m) {
    state_.begun.store(m.word(), std::memory_order_release);
    media::persist(medium_, state_.begun);  // (E1)
  }
  void set_durable(moment m) {
    state_.durable.store(m.word(), std::memory_order_release);
    media::persist(medium_, state_.durable);
  }

  void guard() {
    if (step() != ready) return;
    state_.step.store(guarded, std::memory_order_release);
    media::persist(medium_, state_.step);  // (E4)
  }

  [[nodiscard]] std::uint64_t step() const noexcept { return state_.step.load(std::memory_order_acquire); }
  [[nodiscard]] moment durable() const noexcept { return moment(state_.durable.load(std::memory_order_acquire)); }
  [[nodiscard]] moment begun() const noexcept { return moment(state_.begun.load(std::memory_order_acquire)); }
  [[nodiscard]] static std::uint64_t version_of(std::span<const std::byte> block) noexcept {
    flash_header h;
    std::memcpy(static_cast<void*>(&h), block.data(), sizeof h);
    return h.version;
  }
  // The moment, or std::nullopt if it is damaged. A write that a crash tore between the two words has neither moment,
  // and is whole: the memory knows both.
  [[nodiscard]] std::optional<moment> moment_in(std::span<const std::byte> block) const noexcept {
    flash_moment m;
    std::memcpy(&m, block.data() + flash_moment::offset, sizeof m);
    const moment there(m.word);
    if (is_checksum_of(m.checksum, there)) return there;
    if (there == durable() && is_checksum_of(m.checksum, begun())) return begun();
    if (there == begun() && is_checksum_of(m.checksum, durable())) return durable();
    return std::nullopt;
  }
  [[nodiscard]] std::uint64_t checksum_of(moment m) const noexcept {
    const std::uint64_t bits = m.word();
    return pmlab::checksum(&bits, sizeof bits, state_.identity[0].load(std::memory_order_relaxed));
  }
  [[nodiscard]] bool is_checksum_of(std::uint64_t stored, moment m) const noexcept {
    const std::uint64_t bits = m.word();
    return is_checksum(stored, &bits, sizeof bits, state_.identity[0].load(std::memory_order_relaxed));
  }

  Medium& medium_;
  Device& device_;
  state& state_;
};

}  // namespace pmlab::stores::detail::kv_ssd
