// Blocks of DRAM in chunks of 2 MB straight from the kernel: huge pages, no lock shared by all threads, no record of a
// block outside of its chunk.
//
//   chunk (2 MB, aligned to 2 MB)           large block (a mapping of its own, aligned to 2 MB)
//   | header page | block | block | ... |   | header page | block ... |
//
// A chunk holds blocks of one size. The address of a block, rounded down to 2 MB, is the address of its chunk's header:
// `deallocate` finds size and owner there. Blocks beyond `largest_small_bytes` have a mapping of their own.
//
//   M1  A chunk belongs to one shelf, which its mutex guards. Threads allocate from the shelf of their number, so two
//       threads contend for a mutex only if one frees a block that the other allocated, or beyond `shelf_count`
//       threads.
//   M2  A chunk is in its shelf's list of its size if and only if it has a free block.
//   M3  A chunk without a live block is returned to the kernel, except for the last one of its size in the list.
#pragma once

#include <pmlab/base/linked.hpp>
#include <pmlab/media/dram_options.hpp>
#include <pmlab/media/huge_pages.hpp>

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include <sys/mman.h>

namespace pmlab::media {

// A block source for `basic_dram`. Thread safety: all but construction and destruction. Progress: a thread waits for
// another one only at a shelf (M1). Destroying it gives every block back to the kernel.
class mapped_blocks {
 public:
  // Only the option `huge_pages` matters here.
  explicit mapped_blocks(const dram_options& options)
      : huge_pages_(options.huge_pages), shelves_(std::make_unique<std::array<shelf, shelf_count>>()) {}
  mapped_blocks(const mapped_blocks&) = delete;
  mapped_blocks& operator=(const mapped_blocks&) = delete;
  ~mapped_blocks() {
    for (shelf& s : *shelves_)
      for (header* h = s.all; h != nullptr;) {
        header* const next = h->next_of_all;
        ::munmap(h, h->mapped_bytes);
        h = next;
      }
  }

  // nullptr: the kernel has no memory, or the alignment is larger than a page.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    if (alignment > page_bytes) return nullptr;
    const std::size_t size_class = class_of(bytes, alignment);
    shelf& mine = (*shelves_)[shelf_of_this_thread()];
    const std::scoped_lock lock(mine.mutex);
    if (size_class >= class_count) return allocate_large(mine, bytes);
    header* chunk = mine.with_room[size_class];
    if (chunk == nullptr) {
      chunk = add_chunk(mine, size_class);
      if (chunk == nullptr) return nullptr;
    }
    void* const block = chunk->take();
    if (!chunk->has_room()) room_list::remove(mine.with_room[size_class], *chunk);
    return block;
  }

  void deallocate(void* block) {
    header& chunk = header_of(block);
    shelf& owner = *chunk.owner;
    const std::scoped_lock lock(owner.mutex);
    if (chunk.block_bytes == 0) return owner.drop(chunk);
    const bool was_full = !chunk.has_room();
    header*& list = owner.with_room[chunk.size_class];
    chunk.put(block);
    if (was_full) room_list::push(list, chunk);
    const bool others = chunk.next_with_room != nullptr || chunk.previous_with_room != nullptr;
    if (chunk.live == 0 && others) {
      room_list::remove(list, chunk);
      owner.drop(chunk);
    }
  }

  // The sum behind `used()`: the bytes that were requested, as the index counts them. Nodes and segments take exactly
  // that; `room_of` includes the rounding of odd sizes, an eighth at most.
  [[nodiscard]] std::size_t size_of(const void* /*block*/, std::size_t bytes) const noexcept { return bytes; }

  // Bytes that `block` occupies.
  [[nodiscard]] std::size_t room_of(const void* block) const noexcept {
    const header& chunk = header_of(block);
    return chunk.block_bytes != 0 ? chunk.block_bytes : chunk.mapped_bytes - page_bytes;
  }

  // Blocks of more bytes have a mapping of their own.
  static constexpr std::size_t largest_small_bytes = std::size_t{128} << 10;

 private:
  static constexpr std::size_t chunk_bytes = huge_page_bytes;
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t least_bytes = 32;
  // Eight sizes to a power of two: rounding adds at most an eighth.
  static constexpr unsigned steps = 8;
  static constexpr std::size_t class_count = (std::bit_width(largest_small_bytes / least_bytes) - 1) * steps + 1;
  // As many as there may be threads that allocate at one time without meeting.
  static constexpr std::size_t shelf_count = 16;

  struct shelf;

  // In the first page of a chunk, or of the mapping of a large block. Guarded by the mutex of `owner`, but for the
  // members that never change: owner, block_bytes, mapped_bytes.
  struct header {
    shelf* owner = nullptr;
    std::size_t block_bytes = 0;  // 0: one large block
    std::size_t mapped_bytes = 0;
    std::size_t size_class = 0;
    std::size_t live = 0;
    std::size_t touched = 0;  // blocks that were handed out at least once: the first ones of the chunk
    void* free = nullptr;     // freed blocks; the first word of each points to the next
    header* next_with_room = nullptr;
    header* previous_with_room = nullptr;
    header* next_of_all = nullptr;
    header* previous_of_all = nullptr;

    [[nodiscard]] bool has_room() const noexcept {
      return free != nullptr || touched < (chunk_bytes - page_bytes) / block_bytes;
    }
    [[nodiscard]] void* take() noexcept {
      ++live;
      if (free == nullptr) return reinterpret_cast<char*>(this) + page_bytes + touched++ * block_bytes;
      void* const block = free;
      std::memcpy(&free, block, sizeof free);
      return block;
    }
    void put(void* block) noexcept {
      --live;
      std::memcpy(block, &free, sizeof free);
      free = block;
    }
  };
  static_assert(sizeof(header) <= page_bytes);
  using room_list = linked<&header::previous_with_room, &header::next_with_room>;
  using chunk_list = linked<&header::previous_of_all, &header::next_of_all>;

  struct alignas(64) shelf {
    std::mutex mutex;
    header* all = nullptr;  // every mapping of the shelf
    std::array<header*, class_count> with_room{};
    std::array<bool, class_count> had_chunk{};

    void add(header& h) noexcept {
      h.owner = this;
      chunk_list::push(all, h);
    }
    // Gives the mapping back to the kernel.
    void drop(header& h) noexcept {
      chunk_list::remove(all, h);
      ::munmap(&h, h.mapped_bytes);
    }
  };

  [[nodiscard]] static header& header_of(const void* block) noexcept {
    return *reinterpret_cast<header*>(reinterpret_cast<std::uintptr_t>(block) & ~(chunk_bytes - 1));
  }

  [[nodiscard]] static constexpr std::size_t bytes_of_class(std::size_t size_class) noexcept {
    const std::size_t power = least_bytes << (size_class / steps);
    return power + power / steps * (size_class % steps);
  }

  // The smallest size that holds `bytes` and is a multiple of `alignment`; class_count or more: a large block. Blocks
  // of a chunk begin at a page and lie side by side, so a multiple is enough.
  [[nodiscard]] static constexpr std::size_t class_of(std::size_t bytes, std::size_t alignment) noexcept {
    if (bytes > largest_small_bytes) return class_count;
    std::size_t result = 0;
    if (bytes > least_bytes) {
      const auto power = static_cast<std::size_t>(std::bit_width((bytes - 1) / least_bytes) - 1);
      const std::size_t base = least_bytes << power;
      result = power * steps + (bytes - base + base / steps - 1) / (base / steps);
    }
    while (result < class_count && bytes_of_class(result) % alignment != 0) ++result;
    return result;
  }

  [[nodiscard]] static std::size_t shelf_of_this_thread() noexcept {
    static std::atomic<std::size_t> threads{0};
    static thread_local const std::size_t number = threads.fetch_add(1, std::memory_order_relaxed);
    return number % shelf_count;
  }

  // `bytes` bytes at a multiple of 2 MB; nullptr: no memory.
  [[nodiscard]] static void* map(std::size_t bytes) noexcept {
    const std::size_t room = bytes + chunk_bytes;
    void* const area = ::mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<std::uintptr_t>(area);
    const std::uintptr_t aligned = (start + chunk_bytes - 1) & ~(chunk_bytes - 1);
    if (aligned > start) ::munmap(area, aligned - start);
    if (start + room > aligned + bytes)
      ::munmap(reinterpret_cast<void*>(aligned + bytes), start + room - aligned - bytes);
    return reinterpret_cast<void*>(aligned);
  }

  [[nodiscard]] header* add_chunk(shelf& mine, std::size_t size_class) noexcept {
    void* const area = map(chunk_bytes);
    if (area == nullptr) return nullptr;
    // The first chunk of a size stays on small pages, so that a small index does not take 2 MB of each size.
    if (huge_pages_ && mine.had_chunk[size_class]) use_huge_pages(area, chunk_bytes);
    mine.had_chunk[size_class] = true;
    auto* const chunk = ::new (area) header;
    chunk->block_bytes = bytes_of_class(size_class);
    chunk->mapped_bytes = chunk_bytes;
    chunk->size_class = size_class;
    mine.add(*chunk);
    room_list::push(mine.with_room[size_class], *chunk);
    return chunk;
  }

  [[nodiscard]] void* allocate_large(shelf& mine, std::size_t bytes) noexcept {
    if (bytes > PTRDIFF_MAX - 2 * chunk_bytes) return nullptr;
    const std::size_t mapped = (bytes + page_bytes - 1) / page_bytes * page_bytes + page_bytes;
    void* const area = map(mapped);
    if (area == nullptr) return nullptr;
    if (huge_pages_) use_huge_pages(area, mapped);
    auto* const large = ::new (area) header;
    large->mapped_bytes = mapped;
    mine.add(*large);
    return static_cast<char*>(area) + page_bytes;
  }

  bool huge_pages_;
  std::unique_ptr<std::array<shelf, shelf_count>> shelves_;
};

}  // namespace pmlab::media
