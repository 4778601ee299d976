// A crash image as a medium: an index is opened on it, checked and used at the speed of plain memory.
//
// Nothing is logged here, and flushes do nothing: the crash consistency of the recovery itself is examined on the
// simulated machine.
#pragma once

#include "checker/simulator/machine/blocks.hpp"
#include "checker/simulator/machine/mapping.hpp"
#include "checker/simulator/machine/persistent_memory.hpp"
#include "checker/simulator/machine/space_limit.hpp"
#include <pmlab/media/medium.hpp>
#include <pmlab/media/root_table.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::verify {

// Thread safety: none.
class image_medium {
 public:
  static constexpr bool durable = true;
  static constexpr media::optional_parts parts{.pointer_bound = true};
  // Images are opened by the thousand: as few locks as there can be.
  static constexpr media::index_sizes sizes = media::sizes_for_short_histories(16);

  explicit image_medium(std::size_t bytes) : area_(bytes) {}
  image_medium(const image_medium&) = delete;
  image_medium& operator=(const image_medium&) = delete;

  // The image is in area(), `used` bytes of it, and these blocks are allocated.
  void begin(std::size_t used, std::shared_ptr<const simulator::block_table::extents> blocks, std::size_t allocated) {
    blocks_ = std::move(blocks);
    allocated_ = allocated;
    own_.clear();
    released_.clear();
    free_.clear();
    misuse_.clear();
    limit_ = {};
    // Memory above the image was never used; a block there holds garbage.
    top_ = (used + 2 * media::xpline_bytes) & ~(media::xpline_bytes - 1);
  }

  [[nodiscard]] std::byte* area() const noexcept { return area_.start(); }
  [[nodiscard]] const std::string& misuse() const noexcept { return misuse_; }
  // Until the next `begin`.
  void limit(const simulator::space_limit& to) noexcept { limit_ = to; }
  [[nodiscard]] const simulator::space_limit& limit() const noexcept { return limit_; }

  class publication {
   public:
    explicit publication(image_medium& medium) noexcept : medium_(medium) {}
    publication(const publication&) = delete;
    publication& operator=(const publication&) = delete;
    ~publication() {
      for (std::size_t i = 0; i < count_; ++i)
        if (changes_[i].what == kind::allocate) medium_.free_.emplace_back(changes_[i].place, changes_[i].value);
    }

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      void* const block = medium_.take(bytes, alignment);
      if (block != nullptr) changes_[count_++] = {kind::allocate, block, bytes};
      return block;
    }
    void store(std::atomic<std::uint64_t>& word, std::uint64_t value) {
      changes_[count_++] = {kind::store, &word, value};
    }
    void release(void* block, std::size_t bytes) { changes_[count_++] = {kind::release, block, bytes}; }
    void commit() {
      for (std::size_t i = 0; i < count_; ++i) medium_.apply(changes_[i]);
      count_ = 0;
    }

   private:
    friend class image_medium;
    enum class kind : std::uint8_t { allocate, store, release };
    struct change {
      kind what;
      void* place;
      std::uint64_t value;
    };
    image_medium& medium_;
    std::array<change, media::publication_limit + 1> changes_;
    std::size_t count_ = 0;
  };

  [[nodiscard]] std::size_t shards(std::size_t /*usual*/) const noexcept { return 2; }

  [[nodiscard]] std::string name() const { return "image"; }
  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return reinterpret_cast<T*>(area_.start() + p.word());
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return media::pointer<T>(offset_of(object));
  }
  [[nodiscard]] std::uint64_t pointer_bound() const noexcept { return area_.bytes(); }

  void flush(const void* /*start*/, std::size_t /*bytes*/) noexcept {}
  void fence() noexcept {}
  void copy(void* target, const void* source, std::size_t bytes) noexcept { std::memcpy(target, source, bytes); }
  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {}

  [[nodiscard]] media::root named_root(std::string_view name, std::string_view layout, std::uint64_t version) {
    auto& table = *reinterpret_cast<media::root_table*>(area_.start() + simulator::persistent_memory::roots_at);
    return table.find_or_add(name, layout, version, [](const media::root_entry&) {});
  }
  [[nodiscard]] media::usage used() const { return {allocated_, area_.bytes()}; }

 private:
  [[nodiscard]] std::uint64_t offset_of(const void* address) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(address) - area_.start());
  }

  void* take(std::size_t bytes, std::size_t alignment) {
    if (limit_.refuses(bytes, allocated_)) return nullptr;
    for (auto& [block, size] : free_)
      if (size == bytes && reinterpret_cast<std::uintptr_t>(block) % alignment == 0) {
        void* const found = block;
        std::swap(free_.back().first, block);
        std::swap(free_.back().second, size);
        free_.pop_back();
        return found;
      }
    // A pool's blocks begin behind a header, in the middle of a line.
    const bool small = alignment <= simulator::block_table::small_alignment;
    const std::size_t whole = std::max(alignment, media::cache_line_bytes);
    const std::size_t start =
        (top_ + whole - 1) / whole * whole + (small ? simulator::block_table::small_alignment : 0);
    if (start + bytes + media::cache_line_bytes > area_.bytes()) return nullptr;
    top_ = start + bytes + media::cache_line_bytes;
    std::memset(area_.start() + start, 0x5a, bytes);
    return area_.start() + start;
  }

  void apply(const publication::change& c) {
    switch (c.what) {
      case publication::kind::allocate:
        own_.emplace_back(c.place, c.value);
        allocated_ += c.value;
        break;
      case publication::kind::store:
        static_cast<std::atomic<std::uint64_t>*>(c.place)->store(c.value, std::memory_order_release);
        break;
      case publication::kind::release: release(c.place, c.value); break;
    }
  }

  void release(void* block, std::size_t bytes) {
    for (auto& [own, size] : own_)
      if (own == block && size == bytes) {
        own = nullptr;
        free_.emplace_back(block, bytes);
        allocated_ -= bytes;
        return;
      }
    const auto found = blocks_->find(offset_of(block));
    const bool again = std::find(released_.begin(), released_.end(), block) != released_.end();
    if (found == blocks_->end() || found->second != bytes || again) {
      if (misuse_.empty()) misuse_ = again ? "a block is released twice" : "release of a block that is not allocated";
      return;
    }
    released_.push_back(block);
    allocated_ -= bytes;
  }

  simulator::mapping area_;
  std::shared_ptr<const simulator::block_table::extents> blocks_;
  std::size_t allocated_ = 0;
  std::size_t top_ = 0;
  std::vector<std::pair<void*, std::size_t>> own_;   // allocated after the crash; nullptr: released again
  std::vector<std::pair<void*, std::size_t>> free_;  // released ones of these
  std::vector<void*> released_;                      // released blocks of the image
  std::string misuse_;
  simulator::space_limit limit_;
};

static_assert(media::medium<image_medium>);

}  // namespace pmlab::verify
