// The heap of simulated code: DRAM at addresses that are the same in every run, with a record of freed blocks.
#pragma once

#include "checker/simulator/machine/mapping.hpp"
#include "checker/simulator/machine/pages.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

namespace pmlab::simulator {

// Mappings of libraries of simulated code begin here (machine_options::heap_of_libraries).
inline constexpr std::uintptr_t mapped_by_libraries = 0x280000000000;
inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Whether the page at this address is one of those that are placed by the machine, not by the kernel or the C library.
[[nodiscard]] constexpr bool is_placed_by_machine(std::uintptr_t address) noexcept {
  constexpr std::uintptr_t from = 0x100000000000;  // persistent memories, the heap, mappings
  return address >= from && address < mapped_by_libraries + (std::uintptr_t{8} << 40);
}

// Who has allocated a block, where several hosts have DRAM of their own in this heap.
struct block_owner {
  unsigned host = 0;             // its number, plus 1; 0: not one of several
  const void* caller = nullptr;  // place of the allocation
};

// Thread safety: none; fibers share one kernel thread. Uses no other allocator.
class heap {
 public:
  // In quarantine, freed blocks are not handed out again before `reset`, so that every access to one is noticed.
  void quarantine(bool on) noexcept { quarantine_ = on; }

  [[nodiscard]] static constexpr bool contains(std::uintptr_t address) noexcept { return address - base < area_bytes; }

  // nullptr: the arena is full.
  void* allocate(std::size_t bytes, std::size_t alignment, const block_owner& by = {}) noexcept {
    if (bytes == 0) bytes = 1;  // such a block has an address of its own, too
    const unsigned size_class = class_of(bytes + (alignment > granule ? alignment : 0));
    const std::size_t room = bytes_of(size_class);
    std::uintptr_t block = 0;
    if (free_[size_class] != 0 && !quarantine_) {
      block = free_[size_class];
      std::memcpy(&free_[size_class], reinterpret_cast<void*>(block), sizeof(std::uintptr_t));
    } else {
      if (top_ + room + 2 * granule > area_bytes) return nullptr;
      // The granule in between belongs to no block: an overrun is detected.
      block = base + top_ + granule;
      if (top_ >= marked_) ++live_above_mark_;
      top_ += room + 2 * granule;
    }
    const std::uintptr_t start = alignment > granule ? (block + alignment - 1) & ~(alignment - 1) : block;
    header& h = header_of(start);
    h = {block, size_class};
    bytes_of_block(start) = bytes;
    std::memset(state_.start() + (start - base) / granule, allocated | static_cast<int>(by.host << owner_shift),
                (bytes + granule - 1) / granule);
    if (by.host != 0) {
      allocator_of(start) = by.caller;
      has_owners_ = true;
    }
    ++live_;
    return reinterpret_cast<void*>(start);
  }

  // False: this is no live block (freed before, or never allocated).
  bool release(void* address) noexcept {
    const auto start = reinterpret_cast<std::uintptr_t>(address);
    if ((state(start) & kind_mask) != allocated || header_of(start).block == 0) return false;
    const header h = header_of(start);
    const std::size_t bytes = bytes_of_block(start);
    std::memset(state_.start() + (start - base) / granule, freed | (state(start) & ~kind_mask),
                (bytes + granule - 1) / granule);
    header_of(start).block = 0;
    --live_;
    if (start - base >= marked_) --live_above_mark_;
    if (quarantine_) {
      // Nothing reads it again: a run may allocate more than the machine has.
      if (bytes >= large_block) clear(area_, start - base, start - base + bytes);
      return true;
    }
    std::memcpy(reinterpret_cast<void*>(h.block), &free_[h.size_class], sizeof(std::uintptr_t));
    free_[h.size_class] = h.block;
    return true;
  }

  [[nodiscard]] std::size_t size_of(const void* address) noexcept {
    return bytes_of_block(reinterpret_cast<std::uintptr_t>(address));
  }

  // True if `address`, in the arena, belongs to a block that was freed.
  [[nodiscard]] bool is_freed(std::uintptr_t address) const noexcept { return (state(address) & kind_mask) == freed; }

  // As block_owner::host, of the block that `address`, in the arena, belongs to or belonged to.
  [[nodiscard]] unsigned host_of(std::uintptr_t address) const noexcept { return state(address) >> owner_shift; }
  // Who has allocated it. For reports.
  [[nodiscard]] block_owner owner_of(std::uintptr_t address) noexcept {
    const unsigned host = host_of(address);
    std::uintptr_t start = address / granule * granule;
    // A freed block has no header any more.
    while (allocator_of(start) == nullptr && start > base && host_of(start - granule) == host) start -= granule;
    return {host, allocator_of(start)};
  }

  // The next new block lies `bytes` further on; a multiple of 16.
  void skip(std::size_t bytes) noexcept { top_ += bytes; }

  // While hidden, it faults when touched.
  void hide() const noexcept { ::mprotect(area_.start(), pages(), PROT_NONE); }
  void show() const noexcept { ::mprotect(area_.start(), pages(), PROT_READ | PROT_WRITE); }

  [[nodiscard]] std::uint64_t live_blocks() const noexcept { return live_; }
  // Bytes up to the end of the last block since `reset`, those in quarantine among them.
  [[nodiscard]] std::size_t extent() const noexcept { return top_; }

  // In quarantine: blocks that are allocated from here on lie above all others, until `forget_above`.
  void mark() noexcept {
    marked_ = top_;
    live_above_mark_ = 0;
  }
  // The freed blocks above the mark are no more in quarantine, if no other block lies there.
  void forget_above() noexcept {
    if (live_above_mark_ == 0) {
      clear(state_, marked_ / granule, top_ / granule + 1);
      clear(headers_, marked_ / granule * sizeof(header), (top_ / granule + 1) * sizeof(header));
      top_ = marked_;
    }
    marked_ = no_mark;
  }

  // Everything is free, and the next blocks get the addresses that the first ones had.
  void reset() noexcept {
    clear(state_, 0, top_ / granule + 1);
    clear(headers_, 0, (top_ / granule + 1) * sizeof(header));
    clear(area_, 0, top_);
    if (std::exchange(has_owners_, false)) clear(allocators_, 0, (top_ / granule + 1) * sizeof(const void*));
    top_ = 0;
    live_ = 0;
    free_.fill(0);
  }

 private:
  static constexpr std::uintptr_t base = 0x200000000000;
  static constexpr std::size_t area_bytes = std::size_t{64} << 30;
  static constexpr std::size_t granule = 16;
  static constexpr std::size_t large_block = std::size_t{1} << 20;
  // A granule's state: what it is, and its host above that.
  static constexpr unsigned owner_shift = 2;
  static constexpr std::uint8_t kind_mask = 3;
  static constexpr std::uint8_t allocated = 1;
  static constexpr std::uint8_t freed = 2;

  struct header {
    std::uintptr_t block;  // 0: no live block starts here
    unsigned size_class;
  };

  [[nodiscard]] std::size_t pages() const noexcept { return (top_ + 8191) & ~std::size_t{4095}; }

  // Four classes to a power of two.
  static unsigned class_of(std::size_t bytes) noexcept {
    if (bytes <= 4 * granule) return static_cast<unsigned>((bytes + granule - 1) / granule);
    const auto log = static_cast<unsigned>(std::bit_width(bytes - 1) - 1);
    return 4 * (log - 5) + static_cast<unsigned>(((bytes - 1) >> (log - 2)) & 3) + 1;
  }
  static std::size_t bytes_of(unsigned size_class) noexcept {
    if (size_class <= 4) return size_class == 0 ? granule : size_class * granule;
    const unsigned log = (size_class - 1) / 4 + 5;
    return (std::size_t{5} + (size_class - 1) % 4) << (log - 2);
  }

  [[nodiscard]] std::uint8_t state(std::uintptr_t address) const noexcept {
    return static_cast<std::uint8_t>(state_.start()[(address - base) / granule]);
  }
  [[nodiscard]] header& header_of(std::uintptr_t start) noexcept {
    return reinterpret_cast<header*>(headers_.start())[(start - base) / granule];
  }
  [[nodiscard]] const void*& allocator_of(std::uintptr_t start) noexcept {
    return reinterpret_cast<const void**>(allocators_.start())[(start - base) / granule];
  }
  [[nodiscard]] std::size_t& bytes_of_block(std::uintptr_t start) noexcept {
    return reinterpret_cast<std::size_t*>(sizes_.start())[(start - base) / granule];
  }

  mapping area_{area_bytes, base};
  mapping state_{area_bytes / granule};
  mapping headers_{area_bytes / granule * sizeof(header)};
  mapping sizes_{area_bytes / granule * sizeof(std::size_t)};
  mapping allocators_{area_bytes / granule * sizeof(const void*)};  // touched for blocks of several hosts alone
  std::size_t top_ = 0;
  std::uint64_t live_ = 0;
  static constexpr std::size_t no_mark = ~std::size_t{0};
  std::size_t marked_ = no_mark;
  std::uint64_t live_above_mark_ = 0;
  std::array<std::uintptr_t, 160> free_{};
  bool quarantine_ = false;
  bool has_owners_ = false;  // a block has one
};

}  // namespace pmlab::simulator
