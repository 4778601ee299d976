// Names for memory that do not depend on where the kernel placed it. Pages of persistent memory are numbered by their
// address, from the first that is touched: the DIMM of a page is a property of the program. Pages of DRAM, which are
// all over the process, are numbered in the order of their first touch. Those that the machine places (its heap, its
// persistent memories) are parts of pages of 2 MB; globals, stacks and thread-local objects lie on pages of 4 KB.
//
// Caches and devices use addresses: to select set, DIMM and granule. With the kernel's own addresses, figures would
// change with every run that maps its memory elsewhere.
#pragma once

#include "checker/simulator/machine/heap.hpp"
#include "checker/simulator/machine/mapping.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/media/lines.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace pmlab::simulator {

// A line of the simulated machine: kind of memory, frame, line of the frame. Below 2^29.
using line_number = std::uint32_t;

// Persistent memory and DRAM are numbered apart, so that neighbours in one have no gaps from the other between them.
inline constexpr unsigned line_bits = 6;    // a frame has 64 lines
inline constexpr unsigned frame_bits = 22;  // frames of each kind: 16 GiB
inline constexpr line_number persistent_bit = line_number{1} << (line_bits + frame_bits);

// Above all addresses, / 4096: the host whose page it is, where hosts have lines of their own.
inline constexpr unsigned host_bit_of_pages = 48;
[[nodiscard]] constexpr std::uintptr_t page_of_any_host(std::uintptr_t page) noexcept {
  return page & ((std::uintptr_t{1} << host_bit_of_pages) - 1);
}

[[nodiscard]] constexpr bool is_persistent(line_number line) noexcept { return (line & persistent_bit) != 0; }

// Not thread-safe, and never allocates: it is called in the middle of memory allocators.
class page_frames {
 public:
  static constexpr line_number none = ~line_number{0};

  // `shift`: the number of the first frame of DRAM; by so many pages the first page of persistent memory lies behind
  // the beginning of a frame of DIMMs.
  explicit page_frames(std::uint32_t shift = 0)
      : shift_(shift),
        table_(table_entries * sizeof(entry)),
        pages_(2 * sizeof(std::uintptr_t) << frame_bits),
        huge_pages_of_frames_(2 * sizeof(std::uint32_t) << frame_bits),
        huge_table_(huge_entries * sizeof(entry)),
        next_{shift, shift} {}

  // The first line of the frame for `page` (address / 4096), at its first touch persistent or not. Throws pmlab::error
  // when 16 GiB of one kind have been touched.
  [[nodiscard]] line_number frame(std::uintptr_t page, bool persistent) {
    entry& recent = recent_[recent_place(page)];
    if (recent.page == page) return recent.line;
    entry& found = look_up(page);
    if (found.page != page) {
      found = {page, (number_of_page(page, persistent) << line_bits) | (persistent ? persistent_bit : 0)};
      page_of(found.line) = page;
      huge_page_of(found.line) = number_of_huge_page(huge_page_at(page_of_any_host(page)));
    }
    recent = found;
    return found.line;
  }

  // The address of a line in the simulated program, / 64.
  [[nodiscard]] std::uintptr_t virtual_line(line_number line) noexcept {
    return (page_of(line) << line_bits) + (line & ((1U << line_bits) - 1));
  }

  // The page, of 2 MB or of 4 KB, that a line lies in, numbered in the order of their first touch: a CPU's translation
  // buffer identifies pages by it.
  [[nodiscard]] std::uint32_t huge_page(line_number line) noexcept { return huge_page_of(line); }

  // As `frame`; `none` if the page has not been touched.
  [[nodiscard]] line_number frame_if_touched(std::uintptr_t page) const noexcept {
    const entry& recent = recent_[recent_place(page)];
    if (recent.page == page) return recent.line;
    const entry& found = const_cast<page_frames*>(this)->look_up(page);
    return found.page == page ? found.line : none;
  }

 private:
  // No page of a user has number 0: an empty entry.
  struct entry {
    std::uintptr_t page = 0;
    line_number line = 0;
  };
  static constexpr std::uint32_t frames = std::uint32_t{1} << frame_bits;
  static constexpr std::size_t table_entries = std::size_t{4} << frame_bits;  // at most half full
  static constexpr std::uintptr_t pages_per_huge_page = 512;
  static constexpr std::uintptr_t spreading_factor = golden_ratio;
  // A program may touch a page here and there: more than 32 GiB have huge pages.
  static constexpr std::size_t huge_entries = std::size_t{1} << 20;

  // The place of `page`, or a free one for it, in a table of `entries` that is searched from `at` on.
  [[nodiscard]] static entry& place_in(const mapping& memory, std::size_t entries, std::uintptr_t page,
                                       std::size_t at) noexcept {
    auto* const table = reinterpret_cast<entry*>(memory.start());
    at %= entries;
    while (table[at].page != page && table[at].page != 0) at = (at + 1) % entries;
    return table[at];
  }

  // Pages of one address in several hosts have places of their own.
  [[nodiscard]] std::size_t recent_place(std::uintptr_t page) const noexcept {
    return (page ^ page >> (host_bit_of_pages - 3)) % recent_.size();
  }

  // Neighbours lie side by side, so that the table fills page by page.
  [[nodiscard]] entry& look_up(std::uintptr_t page) noexcept {
    const std::uintptr_t region = (page >> 18) * spreading_factor >> 20;
    return place_in(table_, table_entries, page, page + (region << 10));
  }

  [[nodiscard]] std::uint32_t number_of_page(std::uintptr_t page, bool persistent) {
    if (persistent) {
      if (first_page_ == 0) first_page_ = page_of_any_host(page);
      const std::uintptr_t place = page - first_page_ + frames / 2 + shift_;
      if (place < frames && page_of(static_cast<line_number>(place << line_bits) | persistent_bit) == 0)
        return static_cast<std::uint32_t>(place);
    }
    // Pages of a pool's library, or too far from the first, use any free frame.
    std::uint32_t& next = next_[persistent ? 1 : 0];
    while (next < frames && page_of((next << line_bits) | (persistent ? persistent_bit : 0)) != 0) ++next;
    if (next == frames) throw error("the simulated machine has no more memory", "use fewer keys");
    return next++;
  }

  // A page of 4 KB is named by itself, above all pages of 2 MB.
  [[nodiscard]] static std::uintptr_t huge_page_at(std::uintptr_t page) noexcept {
    constexpr std::uintptr_t bytes_of_page = 4096;
    constexpr std::uintptr_t small = std::uintptr_t{1} << 52;
    return is_placed_by_machine(page * bytes_of_page) ? page / pages_per_huge_page : small + page;
  }

  [[nodiscard]] std::uint32_t number_of_huge_page(std::uintptr_t huge_page) {
    entry& found = place_in(huge_table_, huge_entries, huge_page, huge_page * spreading_factor >> 40);
    if (found.page == huge_page) return found.line;
    if (huge_used_ == huge_entries / 2) throw error("the simulated machine has no more memory", "use fewer keys");
    found = {huge_page, huge_used_++};
    return found.line;
  }

  [[nodiscard]] std::uint32_t& huge_page_of(line_number line) noexcept {
    return reinterpret_cast<std::uint32_t*>(huge_pages_of_frames_.start())[line >> line_bits];
  }

  [[nodiscard]] std::uintptr_t& page_of(line_number line) noexcept {
    return reinterpret_cast<std::uintptr_t*>(pages_.start())[line >> line_bits];
  }

  std::uint32_t shift_;
  mapping table_;
  mapping pages_;  // pages of frames
  mapping huge_pages_of_frames_;
  mapping huge_table_;
  std::uint32_t huge_used_ = 0;
  std::uintptr_t first_page_ = 0;  // the first one of persistent memory that was touched
  std::array<entry, 4096> recent_{};
  std::array<std::uint32_t, 2> next_;  // no frame before is free
};

}  // namespace pmlab::simulator
