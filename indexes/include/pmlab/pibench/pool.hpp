// A pool for an index that calls malloc or new: pool_malloc.h sends its calls here.
//
// One source file of the library includes this, the one with create_tree. The names in it are the library's own.
//
// Crashes: a block that was handed out before a crash is not handed out after it. Blocks that nothing leads to, and
// freed ones, are lost to it: the lists of free blocks are in DRAM. New blocks are zero, used ones keep their content.
// The pool fences when a thread takes a new part of it (256 KiB), and for a block of more than 64 KiB; nowhere else, so
// that its fences do not stand in for those that the index has forgotten.
//
// A thread takes such a part for itself. The rest of it is lost when the thread ends, and when the pool is opened
// again: 63 openings with one block each fill a pool of 16 MiB. REQUIRES: no child process that was forked with the
// pool uses it: it would hand out the blocks of its parent.
#pragma once

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>

#include <emmintrin.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

// How the functions of that name are declared; undefined at the end.
#define PMLAB_POOL_CALL extern "C" __attribute__((used, visibility("hidden"))) inline

namespace pmlab::pibench {
namespace detail {

// The C library's, also where pool_malloc.h has been included.
extern "C" void* pmlab_dram_malloc(std::size_t bytes) __asm__("malloc");
extern "C" void* pmlab_dram_calloc(std::size_t count, std::size_t bytes) __asm__("calloc");
extern "C" void* pmlab_dram_realloc(void* block, std::size_t bytes) __asm__("realloc");
extern "C" int pmlab_dram_memalign(void** block, std::size_t alignment, std::size_t bytes) __asm__("posix_memalign");
extern "C" void pmlab_dram_free(void* block) __asm__("free");

}  // namespace detail

// A base of the class that implements tree_api: the object is in DRAM, though the file may be under pool_malloc.h.
struct in_dram {
  // Throws std::bad_alloc.
  static void* operator new(std::size_t bytes) {
    void* const block = detail::pmlab_dram_malloc(bytes);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  // The block is from this new.
  static void operator delete(void* block) noexcept { detail::pmlab_dram_free(block); }
};

namespace detail {

inline constexpr std::uint64_t magic = 0x6c6f6f706d6c6162;
inline constexpr std::size_t line = 64;
inline constexpr std::size_t part = std::size_t{256} << 10;
inline constexpr std::size_t first_block = 4096;

// The first page. A new file is zero.
struct head {
  std::atomic<std::uint64_t> written;  // magic: the rest is durable
  std::uint64_t address;               // where it was mapped first: the index has pointers into it
  alignas(line) std::atomic<std::uint64_t> top;
  alignas(line) std::atomic<std::uint64_t> root;
};

// Before each block. Never flushed here, so that no line of the index is: after a crash it may be zero.
struct block_head {
  std::uint64_t bytes;
  std::uint64_t unused;
};

struct pool_state {
  char* start = nullptr;  // null: none is open
  std::size_t bytes = 0;
  std::uint64_t number = 0;  // counts the openings
  std::uint64_t root = 0;    // without a pool
};

// What a thread has of it.
struct thread_part {
  std::uint64_t number;
  char* next;
  char* end;
  std::size_t freed;
  char* free_blocks[64];
};

__attribute__((visibility("hidden"))) inline pool_state the_pool;
__attribute__((visibility("hidden"))) inline thread_local thread_part my_part;

// A part of an earlier opening is none of this one.
inline thread_part& part_of_this_opening() {
  if (my_part.number != the_pool.number) my_part = {the_pool.number, nullptr, nullptr, 0, {}};
  return my_part;
}
inline head& the_head() { return *reinterpret_cast<head*>(the_pool.start); }
inline void flush(const void* address) { _mm_clflush(address); }
inline bool holds(const void* p) {
  const char* const at = static_cast<const char*>(p);
  return the_pool.start != nullptr && at >= the_pool.start && at < the_pool.start + the_pool.bytes;
}
inline block_head& head_of(void* block) { return static_cast<block_head*>(block)[-1]; }

// Durable on return: no call gets these bytes a second time. Null: there is no room.
inline char* reserve(std::size_t bytes) {
  std::atomic<std::uint64_t>& top = the_head().top;
  std::uint64_t at = top.load();
  do {
    if (at > the_pool.bytes || bytes > the_pool.bytes - at) return nullptr;
  } while (!top.compare_exchange_weak(at, at + bytes));
  flush(&top);
  _mm_sfence();
  return the_pool.start + at;
}

// Null: there is no room. `alignment`: a power of two.
inline void* take(std::size_t bytes, std::size_t alignment) {
  if (bytes > the_pool.bytes || alignment > the_pool.bytes) return nullptr;
  if (alignment < sizeof(block_head)) alignment = sizeof(block_head);
  const std::size_t size = bytes == 0 ? sizeof(block_head) : (bytes + 15) & ~std::size_t{15};
  thread_part& mine = part_of_this_opening();
  for (std::size_t i = 0; i < mine.freed; ++i) {
    char* const block = mine.free_blocks[i];
    if (head_of(block).bytes != size || reinterpret_cast<std::uintptr_t>(block) % alignment != 0) continue;
    mine.free_blocks[i] = mine.free_blocks[--mine.freed];
    return block;
  }
  const std::size_t most = (size + alignment + sizeof(block_head) + line - 1) & ~(line - 1);
  const bool is_large = most > part / 4;
  char* from = mine.next;
  if (is_large || from == nullptr || static_cast<std::size_t>(mine.end - from) < most) {
    from = reserve(is_large ? most : part);
    if (from == nullptr) return nullptr;
    if (!is_large) mine.end = from + part;
  }
  const std::uintptr_t earliest = reinterpret_cast<std::uintptr_t>(from) + sizeof(block_head);
  char* const block = from + sizeof(block_head) + (alignment - earliest % alignment) % alignment;
  if (!is_large) mine.next = block + size;
  head_of(block).bytes = size;
  return block;
}

// As malloc; null, with errno: there is no room. Never DRAM while a pool is open.
inline void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (the_pool.start == nullptr) {
    void* block = nullptr;
    if (alignment <= alignof(std::max_align_t)) return pmlab_dram_malloc(bytes);
    errno = pmlab_dram_memalign(&block, alignment, bytes);
    return errno == 0 ? block : nullptr;
  }
  void* const block = take(bytes, alignment);
  if (block == nullptr) errno = ENOMEM;
  return block;
}

inline void* allocate_or_throw(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
  void* const block = allocate(bytes, alignment);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

inline bool is_alignment(std::size_t alignment) { return alignment != 0 && (alignment & (alignment - 1)) == 0; }

}  // namespace detail

namespace detail {

// Where a new pool should lie: far from where the kernel maps libraries, or a later process could have one there.
inline void* wish_for_new_pool() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  constexpr std::uint64_t begin = std::uint64_t{1} << 44, step = std::uint64_t{1} << 34, steps = 2048;
  const std::uint64_t drawn = static_cast<std::uint64_t>(now.tv_nsec) * 0x9e3779b97f4a7c15U >> 53;
  return reinterpret_cast<void*>(begin + drawn % steps * step);
}

}  // namespace detail

namespace detail {

// True if the file is a pool, or has nothing in its first page but what an interrupted making of one leaves there.
inline bool is_pool_or_blank(const void* area) {
  std::uint64_t words[first_block / sizeof(std::uint64_t)];
  std::memcpy(words, area, sizeof words);
  if (words[0] == magic) return true;
  std::uint64_t& address = words[offsetof(head, address) / sizeof words[0]];
  constexpr std::uint64_t page = 4096;
  if (address % page == 0) address = 0;
  std::uint64_t& top = words[offsetof(head, top) / sizeof words[0]];
  if (top == first_block) top = 0;
  return std::all_of(std::begin(words), std::end(words), [](std::uint64_t word) { return word == 0; });
}

}  // namespace detail

// From now on all allocations are DRAM. Blocks of the pool may no longer be freed. The file keeps them.
inline void close_pool() noexcept {
  if (detail::the_pool.start != nullptr) ::munmap(detail::the_pool.start, detail::the_pool.bytes);
  detail::the_pool = {nullptr, 0, detail::the_pool.number + 1, 0};
}

// Opens the pool in the file `path`, or makes it with `bytes`, for all of which it takes space: from now on all
// allocations are in it. An empty path: they stay in DRAM. Throws std::runtime_error: no space, it cannot be mapped, is
// no pool or a part of one, or cannot be mapped at its address. REQUIRES: none is open, or no block of it is used or
// freed any more.
inline void open_pool(const std::string& path, std::size_t bytes) {
  close_pool();
  if (path.empty()) return;
  constexpr std::size_t least = detail::first_block + detail::part;
  if (bytes < least) throw std::runtime_error("the pool is too small");
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0) throw std::runtime_error("cannot open the pool " + path);
  void* area = MAP_FAILED;
  const auto give_up = [&](const std::string& why) {
    if (area != MAP_FAILED) ::munmap(area, bytes);
    ::close(file);
    throw std::runtime_error(why);
  };
  struct stat status {};
  if (::fstat(file, &status) != 0) give_up("cannot open the pool " + path);
  const bool is_new = status.st_size == 0;
  if (!is_new) bytes = static_cast<std::size_t>(status.st_size);
  if (bytes < least) give_up(path + " is too small to be a pool");
  // A store into a part without space would end the process.
  const auto take_space = [&] {
    const int failure = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
    if (failure == 0) return;
    const bool stays = is_new && ::ftruncate(file, 0) != 0;
    give_up("no space for the pool " + path + (stays ? ", whose file stays: " : ": ") + std::strerror(failure));
  };
  const auto map_at = [&](void* wish, int flags) {
    return ::mmap(wish, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | flags, file, 0);
  };
  if (is_new) take_space();
  area = map_at(is_new ? detail::wish_for_new_pool() : nullptr, 0);
  if (area == MAP_FAILED) give_up("cannot map the pool " + path);
  // Before anything is written: a disk's image begins with zeros, too.
  if (!detail::is_pool_or_blank(area)) give_up(path + " is no pool of pmlab/pibench/pool.hpp");
  if (!is_new) take_space();
  if (static_cast<detail::head*>(area)->written == detail::magic) {
    void* const wish = reinterpret_cast<void*>(static_cast<detail::head*>(area)->address);
    if (wish != area) {
      ::munmap(area, bytes);
      area = map_at(wish, MAP_FIXED_NOREPLACE);
      if (area != wish) give_up("cannot map the pool at its address: the index has pointers");
    }
  }
  ::close(file);
  detail::the_pool.start = static_cast<char*>(area);
  detail::the_pool.bytes = bytes;
  detail::head& h = detail::the_head();
  if (h.written == detail::magic) {
    if (h.top <= bytes) return;
    close_pool();
    throw std::runtime_error(path + " is a part of a pool: the rest was cut off");
  }
  h.address = reinterpret_cast<std::uint64_t>(area);
  h.top = detail::first_block;
  h.root = 0;
  for (const void* part_of_it : {static_cast<void*>(&h), static_cast<void*>(&h.top), static_cast<void*>(&h.root)})
    detail::flush(part_of_it);
  _mm_sfence();
  h.written = detail::magic;
  detail::flush(&h);
  _mm_sfence();
}

// Where recovery begins: what set_pool_root was given last, before a crash too. Null: nothing yet.
[[nodiscard]] inline void* pool_root() noexcept {
  return reinterpret_cast<void*>(detail::the_pool.start == nullptr ? detail::the_pool.root
                                                                   : detail::the_head().root.load());
}

// Durable on return, as one word. What it leads to must be durable before.
inline void set_pool_root(void* root) noexcept {
  const auto word = reinterpret_cast<std::uint64_t>(root);
  if (detail::the_pool.start == nullptr) {
    detail::the_pool.root = word;
    return;
  }
  detail::the_head().root = word;
  detail::flush(&detail::the_head().root);
  _mm_sfence();
}

namespace detail {

// ---- the calls of files under pool_malloc.h. Thread safety: as malloc's. ----

PMLAB_POOL_CALL void* pmlab_pool_malloc(std::size_t bytes) noexcept {
  return allocate(bytes, alignof(std::max_align_t));
}

// Zeroes used memory too, by stores that the index has to flush.
PMLAB_POOL_CALL void* pmlab_pool_calloc(std::size_t count, std::size_t bytes) noexcept {
  if (the_pool.start == nullptr) return pmlab_dram_calloc(count, bytes);
  std::size_t all = 0;
  if (__builtin_mul_overflow(count, bytes, &all)) {
    errno = ENOMEM;
    return nullptr;
  }
  void* const block = pmlab_pool_malloc(all);
  if (block != nullptr) std::memset(block, 0, all);
  return block;
}

// EINVAL: `alignment` is no power of two, or no multiple of a pointer's size. ENOMEM: there is no room.
PMLAB_POOL_CALL int pmlab_pool_posix_memalign(void** block, std::size_t alignment, std::size_t bytes) noexcept {
  if (!is_alignment(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  void* const found = allocate(bytes, alignment);
  if (found == nullptr) return ENOMEM;
  *block = found;
  return 0;
}

PMLAB_POOL_CALL void* pmlab_pool_aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  if (is_alignment(alignment)) return allocate(bytes, alignment);
  errno = EINVAL;
  return nullptr;
}

// A block from elsewhere, or from before the pool was open, goes to the C library. One of the pool is given out again
// by this thread, for the same size; of more than 64 the later ones are lost until the file is removed.
PMLAB_POOL_CALL void pmlab_pool_free(void* block) noexcept {
  if (!holds(block)) return pmlab_dram_free(block);
  thread_part& mine = part_of_this_opening();
  // The size of a block from before a crash may be lost.
  if (head_of(block).bytes == 0 || mine.freed == std::size(mine.free_blocks)) return;
  mine.free_blocks[mine.freed++] = static_cast<char*>(block);
}

// A block from before the pool was open stays in DRAM. Otherwise a larger one is a new block in the pool, with the
// content copied and not flushed: a crash in between keeps the old one.
PMLAB_POOL_CALL void* pmlab_pool_realloc(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return pmlab_pool_malloc(bytes);
  if (!holds(block)) return pmlab_dram_realloc(block, bytes);
  const std::size_t old = head_of(block).bytes;
  if (bytes <= old) return block;
  void* const larger = pmlab_pool_malloc(bytes);
  if (larger == nullptr) return nullptr;
  const auto rest = static_cast<std::size_t>(the_pool.start + the_pool.bytes - static_cast<char*>(block));
  std::memcpy(larger, block, std::min(old != 0 ? old : bytes, rest));
  pmlab_pool_free(block);
  return larger;
}

}  // namespace detail
}  // namespace pmlab::pibench

#undef PMLAB_POOL_CALL

// Those of the library: in one of its files only. Without room, new throws std::bad_alloc.
#if defined(PMLAB_PIBENCH_POOL_MALLOC_H) && !defined(PMLAB_POOL_WITHOUT_NEW)
void* operator new(std::size_t bytes) { return pmlab::pibench::detail::allocate_or_throw(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return pmlab::pibench::detail::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return pmlab::pibench::detail::pmlab_pool_malloc(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return pmlab::pibench::detail::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* block) noexcept { pmlab::pibench::detail::pmlab_pool_free(block); }
void operator delete(void* block, std::size_t) noexcept { pmlab::pibench::detail::pmlab_pool_free(block); }
void operator delete(void* block, std::align_val_t) noexcept { pmlab::pibench::detail::pmlab_pool_free(block); }
void operator delete(void* block, std::size_t, std::align_val_t) noexcept {
  pmlab::pibench::detail::pmlab_pool_free(block);
}
void operator delete(void* block, const std::nothrow_t&) noexcept { pmlab::pibench::detail::pmlab_pool_free(block); }
void operator delete(void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  pmlab::pibench::detail::pmlab_pool_free(block);
}
void* operator new[](std::size_t bytes) { return pmlab::pibench::detail::allocate_or_throw(bytes); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return pmlab::pibench::detail::allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return pmlab::pibench::detail::pmlab_pool_malloc(bytes);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return pmlab::pibench::detail::allocate(bytes, static_cast<std::size_t>(alignment));
}
void operator delete[](void* block) noexcept { pmlab::pibench::detail::pmlab_pool_free(block); }
void operator delete[](void* block, std::size_t) noexcept { pmlab::pibench::detail::pmlab_pool_free(block); }
void operator delete[](void* block, std::align_val_t) noexcept { pmlab::pibench::detail::pmlab_pool_free(block); }
void operator delete[](void* block, std::size_t, std::align_val_t) noexcept {
  pmlab::pibench::detail::pmlab_pool_free(block);
}
void operator delete[](void* block, const std::nothrow_t&) noexcept { pmlab::pibench::detail::pmlab_pool_free(block); }
void operator delete[](void* block, std::align_val_t, const std::nothrow_t&) noexcept {
  pmlab::pibench::detail::pmlab_pool_free(block);
}
#endif
