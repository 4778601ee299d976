// DRAM as a medium: nothing survives the process, flush and fence cost nothing.
//
// Use it for indexes that live in DRAM, and as the inner medium of `emulated` and `counted`. `dram` allocates from the
// kernel, in huge pages (media/mapped_blocks.hpp); media/jemalloc_dram.hpp has the same medium on jemalloc, which can
// bind it to a NUMA node.
#pragma once

#include <pmlab/base/platform.hpp>
#include <pmlab/media/dram_options.hpp>
#include <pmlab/media/mapped_blocks.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/root_table.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>

namespace pmlab::media {

// The allocator of a DRAM medium. `allocate` returns nullptr if there is no memory; `size_of` returns the size of a
// block. All of them thread-safe. Destroying the source frees every block.
template <class B>
concept block_source = std::constructible_from<B, const dram_options&> &&
    requires(B& b, const B& cb, void* block, std::size_t bytes, std::size_t alignment) {
  { b.allocate(bytes, alignment) } -> std::same_as<void*>;
  { b.deallocate(block) } -> std::same_as<void>;
  { cb.size_of(block, bytes) } -> std::same_as<std::size_t>;
};

// Thread safety: every operation from any number of threads. Durability: none.
template <block_source Blocks>
class basic_dram {
 public:
  static constexpr bool durable = false;
  static constexpr optional_parts parts{};

  // Throws the exceptions of Blocks.
  explicit basic_dram(dram_options options = {}) : options_(options), blocks_(options) {}
  basic_dram(const basic_dram&) = delete;
  basic_dram& operator=(const basic_dram&) = delete;
  ~basic_dram() = default;

  class publication {
   public:
    // Nothing happens yet. `medium` outlives it.
    explicit publication(basic_dram& medium) noexcept : medium_(medium) {}
    publication(const publication&) = delete;
    publication& operator=(const publication&) = delete;
    ~publication() {
      for (std::size_t i = 0; i < allocations_; ++i) medium_.give_back(allocated_[i].block, allocated_[i].bytes);
    }

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      void* const block = medium_.take(bytes, alignment);
      if (block != nullptr) allocated_[allocations_++] = {block, bytes};
      return block;
    }

    void store(std::atomic<std::uint64_t>& word, std::uint64_t value) { stores_[stores_count_++] = {&word, value}; }
    void release(void* block, std::size_t bytes) { released_[releases_++] = {block, bytes}; }

    void commit() {
      for (std::size_t i = 0; i < stores_count_; ++i)
        stores_[i].word->store(stores_[i].value, std::memory_order_release);
      for (std::size_t i = 0; i < releases_; ++i) medium_.give_back(released_[i].block, released_[i].bytes);
      allocations_ = stores_count_ = releases_ = 0;
    }

   private:
    struct extent {
      void* block;
      std::size_t bytes;
    };
    struct pending_store {
      std::atomic<std::uint64_t>* word;
      std::uint64_t value;
    };

    basic_dram& medium_;
    std::array<extent, publication_limit> allocated_;
    std::array<extent, publication_limit> released_;
    std::array<pending_store, publication_limit> stores_;
    std::size_t allocations_ = 0;
    std::size_t releases_ = 0;
    std::size_t stores_count_ = 0;
  };

  [[nodiscard]] std::string name() const { return "dram"; }

  template <class T>
  [[nodiscard]] T* resolve(pointer<T> p) const noexcept {
    return reinterpret_cast<T*>(p.word());
  }
  template <class T>
  [[nodiscard]] pointer<T> locate(const T* object) const noexcept {
    return pointer<T>(reinterpret_cast<std::uint64_t>(object));
  }

  void flush(const void* /*start*/, std::size_t /*bytes*/) noexcept {}
  void fence() noexcept {}
  void copy(void* target, const void* source, std::size_t bytes) noexcept { std::memcpy(target, source, bytes); }
  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {}

  [[nodiscard]] root named_root(std::string_view name, std::string_view layout, std::uint64_t version) {
    const std::scoped_lock lock(roots_mutex_);
    return roots_.find_or_add(name, layout, version, [](const root_entry&) {});
  }

  [[nodiscard]] usage used() const {
    return {allocated_bytes_.load(std::memory_order_relaxed), options_.capacity_bytes};
  }

 private:
  void* take(std::size_t bytes, std::size_t alignment) {
    void* const block = blocks_.allocate(bytes, alignment);
    if (block == nullptr) return nullptr;
    const std::size_t taken = blocks_.size_of(block, bytes);
    const std::uint64_t total = allocated_bytes_.fetch_add(taken, std::memory_order_relaxed) + taken;
    if (options_.capacity_bytes == 0 || total <= options_.capacity_bytes) return block;
    give_back(block, bytes);
    return nullptr;
  }

  void give_back(void* block, std::size_t bytes) {
    allocated_bytes_.fetch_sub(blocks_.size_of(block, bytes), std::memory_order_relaxed);
    blocks_.deallocate(block);
  }

  dram_options options_;
  Blocks blocks_;
  std::atomic<std::uint64_t> allocated_bytes_{0};
  std::mutex roots_mutex_;
  root_table roots_;
};

// Blocks from the standard library's aligned operator new, each an allocation of its own. An instrument that watches
// the heap detects an access to a freed block; it could not for blocks in chunks.
class standard_blocks {
 public:
  // No option matters here.
  explicit standard_blocks(const dram_options& /*options*/) {}
  standard_blocks(const standard_blocks&) = delete;
  standard_blocks& operator=(const standard_blocks&) = delete;
  ~standard_blocks() {
    for (const auto& [block, alignment] : live_) ::operator delete(block, alignment);
  }

  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
    const auto aligned = static_cast<std::align_val_t>(alignment);
    void* const block = ::operator new(bytes, aligned, std::nothrow);
    if (block == nullptr) return nullptr;
    try {
      const std::scoped_lock lock(mutex_);
      live_.emplace(block, aligned);
    } catch (const std::bad_alloc&) {
      ::operator delete(block, aligned);
      return nullptr;
    }
    return block;
  }

  void deallocate(void* block) {
    const std::scoped_lock lock(mutex_);
    const auto found = live_.find(block);
    ::operator delete(block, found->second);
    live_.erase(found);
  }

  [[nodiscard]] std::size_t size_of(const void* /*block*/, std::size_t bytes) const noexcept { return bytes; }

 private:
  std::mutex mutex_;
  std::unordered_map<void*, std::align_val_t> live_;
};

// DRAM from the kernel, in huge pages; where the heap is watched, from the heap.
using dram = basic_dram<std::conditional_t<platform::watches_heap, standard_blocks, mapped_blocks>>;
static_assert(medium<dram>);

}  // namespace pmlab::media
