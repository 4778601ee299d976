// DRAM as a medium, on a jemalloc arena of its own: huge pages, and one NUMA node if there are several.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/media/huge_pages.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <jemalloc/jemalloc.h>
#include <numa.h>
#include <sys/mman.h>

namespace pmlab::media {

// One jemalloc arena whose memory is allocated by the hooks below. Destroying it frees all of its memory.
class jemalloc_blocks {
 public:
  // Throws pmlab::error: no such NUMA node, no arena.
  explicit jemalloc_blocks(const dram_options& options)
      : hooks_{extent_hooks(), options.huge_pages, options.numa_node} {
    if (options.numa_node >= 0 && (numa_available() < 0 || options.numa_node > numa_max_node()))
      throw error("NUMA node " + std::to_string(options.numa_node) + " is not on this machine",
                  "`pmlab doctor` lists the nodes");
    extent_hooks_t* const hooks = &hooks_.table;
    std::size_t bytes = sizeof arena_;
    // jemalloc expects the address of the pointer, and so the pointer's size.
    constexpr std::size_t pointer_bytes = sizeof(void*);
    if (mallctl("arenas.create", &arena_, &bytes, const_cast<extent_hooks_t**>(&hooks), pointer_bytes) != 0)
      throw error("jemalloc could not make an arena", "close other media of this process");
  }
  jemalloc_blocks(const jemalloc_blocks&) = delete;
  jemalloc_blocks& operator=(const jemalloc_blocks&) = delete;
  ~jemalloc_blocks() {
    const std::string command = "arena." + std::to_string(arena_) + ".destroy";
    mallctl(command.c_str(), nullptr, nullptr, nullptr, 0);
  }

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    return mallocx(bytes, MALLOCX_ARENA(arena_) | MALLOCX_TCACHE_NONE | MALLOCX_ALIGN(alignment));
  }
  void deallocate(void* block) { dallocx(block, MALLOCX_ARENA(arena_) | MALLOCX_TCACHE_NONE); }
  [[nodiscard]] std::size_t size_of(void* block, std::size_t /*bytes*/) const noexcept { return sallocx(block, 0); }

 private:
  // jemalloc passes the table's address to every hook: the members after it belong to the hook.
  struct hooks_and_settings {
    extent_hooks_t table;
    bool huge_pages;
    int numa_node;
  };

  static extent_hooks_t extent_hooks() {
    extent_hooks_t table{};
    table.alloc = &map_extent;
    table.destroy = &unmap_extent;
    table.split = [](extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, bool, unsigned) { return false; };
    table.merge = [](extent_hooks_t*, void*, std::size_t, void*, std::size_t, bool, unsigned) { return false; };
    return table;
  }

  static void* map_extent(extent_hooks_t* hooks, void* wanted, std::size_t bytes, std::size_t alignment, bool* zero,
                          bool* commit, unsigned /*arena*/) {
    const auto& settings = *reinterpret_cast<const hooks_and_settings*>(hooks);
    if (wanted != nullptr) return nullptr;
    const std::size_t unit = alignment > huge_page_bytes ? alignment : huge_page_bytes;
    const std::size_t mapped = bytes + unit;
    void* const area = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED) return nullptr;
    const auto start = reinterpret_cast<std::uintptr_t>(area);
    const std::uintptr_t aligned = (start + unit - 1) & ~(unit - 1);
    if (aligned > start) munmap(area, aligned - start);
    if (start + mapped > aligned + bytes)
      munmap(reinterpret_cast<void*>(aligned + bytes), start + mapped - aligned - bytes);
    auto* const extent = reinterpret_cast<void*>(aligned);
    if (settings.huge_pages) madvise(extent, bytes, MADV_HUGEPAGE);
    if (settings.numa_node >= 0) numa_tonode_memory(extent, bytes, settings.numa_node);
    *zero = true;
    *commit = true;
    return extent;
  }

  static void unmap_extent(extent_hooks_t*, void* start, std::size_t bytes, bool, unsigned) { munmap(start, bytes); }

  hooks_and_settings hooks_;
  unsigned arena_ = 0;
};

// DRAM by jemalloc: huge pages, NUMA nodes, no lock shared by all threads.
using jemalloc_dram = basic_dram<jemalloc_blocks>;
static_assert(medium<jemalloc_dram>);

}  // namespace pmlab::media
