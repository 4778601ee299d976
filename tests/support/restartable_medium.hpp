// A durable medium in the memory of the test: reopened at another address, and exact in what it counts.
//
// The area is flat and position-independent. Its content is copied to another medium: as it is, or as a power failure
// leaves it that saves no store that was not flushed and fenced. The simulated machine (checker/) tries the states
// between these two.
//
//   4096 unmapped bytes        offset 0 is null, and following a null crashes at once
//   root_table
//   blocks                     64 bytes apart at least, so that no block's flush saves its neighbour's line
//
// A block that was never used before holds garbage, durably.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/root_table.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sys/mman.h>

namespace pmlab::tests {

namespace detail {

// Pages of memory, all zero, of which only those that are touched cost anything.
class mapping {
 public:
  explicit mapping(std::size_t bytes) : bytes_(bytes) {
    void* const area =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (area == MAP_FAILED) throw std::runtime_error("cannot map memory for a restartable_medium");
    start_ = static_cast<std::byte*>(area);
  }
  ~mapping() { ::munmap(start_, bytes_); }
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;

  [[nodiscard]] std::byte* at(std::size_t offset) const noexcept { return start_ + offset; }

 private:
  std::byte* start_ = nullptr;
  std::size_t bytes_;
};

}  // namespace detail

// The content of a medium that a copy has: all stores, or those that were flushed and fenced.
enum class surviving { all, durable };

// Thread safety: as a medium's, without `watch`. The durable content is for one thread's run: others may read, flush
// and fence.
class restartable_medium {
 public:
  static constexpr bool durable = true;
  static constexpr media::optional_parts parts{};

  // `area_bytes`: roots, blocks and the gaps between them fit in it, or the medium is full.
  explicit restartable_medium(std::size_t area_bytes = std::size_t{64} << 20)
      : area_bytes_(area_bytes), working_(area_bytes), durable_(area_bytes) {
    ::mprotect(working_.at(0), null_bytes, PROT_NONE);
    ::new (working_.at(null_bytes)) media::root_table();
    end_ = first_block;
  }
  restartable_medium(const restartable_medium&) = delete;
  restartable_medium& operator=(const restartable_medium&) = delete;

  class publication {
   public:
    explicit publication(restartable_medium& medium) noexcept : medium_(medium) {}
    publication(const publication&) = delete;
    publication& operator=(const publication&) = delete;
    ~publication() {
      for (const extent& e : allocated_) medium_.forget_reservation(e);
    }

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      const std::size_t offset = medium_.reserve(bytes, alignment);
      if (offset == 0) return nullptr;
      allocated_.push_back({offset, bytes});
      return medium_.working_.at(offset);
    }
    void store(std::atomic<std::uint64_t>& word, std::uint64_t value) { stores_.push_back({&word, value}); }
    void release(void* block, std::size_t bytes) { released_.push_back({medium_.offset_of(block), bytes}); }

    void commit() {
      medium_.event();
      if (allocated_.size() + stores_.size() + released_.size() > media::publication_limit)
        medium_.misuse("a publication of more than " + std::to_string(media::publication_limit) + " changes");
      for (const extent& e : allocated_) medium_.keep(e);
      for (const extent& e : released_) medium_.give_back(e);
      for (const pending_store& s : stores_) medium_.store_durably(*s.word, s.value);
      allocated_.clear();
      released_.clear();
      stores_.clear();
      medium_.event();
    }

   private:
    struct extent {
      std::size_t offset;
      std::size_t bytes;
    };
    struct pending_store {
      std::atomic<std::uint64_t>* word;
      std::uint64_t value;
    };
    friend class restartable_medium;

    restartable_medium& medium_;
    std::vector<extent> allocated_;
    std::vector<extent> released_;
    std::vector<pending_store> stores_;
  };

  // Few: each run is short.
  [[nodiscard]] std::size_t shards(std::size_t /*usual*/) const noexcept { return 4; }

  [[nodiscard]] std::string name() const { return "restartable"; }

  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return reinterpret_cast<T*>(working_.at(p.word()));
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return media::pointer<T>(offset_of(object));
  }

  void flush(const void* start, std::size_t bytes) noexcept {
    if (!is_watched_) return;
    event();
    const std::scoped_lock lock(mutex_);
    auto& flushed = flushed_[std::this_thread::get_id()];
    media::for_each_line(start, bytes, [&](std::uintptr_t line) {
      const std::size_t offset = line - reinterpret_cast<std::uintptr_t>(working_.at(0));
      std::memcpy(flushed[offset].data(), working_.at(offset), media::cache_line_bytes);
    });
  }

  void fence() noexcept {
    if (!is_watched_) return;
    event();
    const std::scoped_lock lock(mutex_);
    auto& flushed = flushed_[std::this_thread::get_id()];
    for (const auto& [offset, content] : flushed) std::memcpy(durable_.at(offset), content.data(), content.size());
    flushed.clear();
  }

  void copy(void* target, const void* source, std::size_t bytes) noexcept {
    std::memcpy(target, source, bytes);
    flush(target, bytes);
  }

  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {}

  [[nodiscard]] media::root named_root(std::string_view root_name, std::string_view layout, std::uint64_t version) {
    auto& table = *reinterpret_cast<media::root_table*>(working_.at(null_bytes));
    return table.find_or_add(root_name, layout, version,
                             [this](const media::root_entry& entry) { media::persist(*this, entry); });
  }

  // The requested bytes of blocks, without rounding and gaps: comparable with an index's own count to the byte.
  [[nodiscard]] media::usage used() const {
    std::uint64_t bytes = 0;
    for (const auto& [offset, size] : blocks_) bytes += size;
    return {bytes, area_bytes_};
  }

  // Everything becomes durable; from now on stores are not until they are flushed and fenced. Calls `at_event` in this
  // thread before each flush and fence, and before and after each publication.
  void watch(std::function<void()> at_event = {}) {
    flushed_.clear();
    std::memcpy(durable_.at(null_bytes), working_.at(null_bytes), end_ - null_bytes);
    is_watched_ = true;
    watcher_ = std::this_thread::get_id();
    at_event_ = std::move(at_event);
  }
  void stop_watching() {
    is_watched_ = false;
    at_event_ = nullptr;
  }
  // While it is watched: no store would be lost.
  [[nodiscard]] bool is_written_back() const noexcept {
    return std::memcmp(durable_.at(null_bytes), working_.at(null_bytes), end_ - null_bytes) == 0;
  }

  // Replaces the content by that of `other`; `durable` of one that is watched.
  void restore(const restartable_medium& other, surviving what = surviving::all) {
    stop_watching();
    flushed_.clear();
    reserved_.clear();
    misuse_.clear();
    blocks_ = other.blocks_;
    lowest_places_.clear();
    // Content of this medium above that of the other is dropped: blocks there count as never used again.
    end_ = other.end_;
    const detail::mapping& from = what == surviving::all ? other.working_ : other.durable_;
    std::memcpy(working_.at(null_bytes), from.at(null_bytes), end_ - null_bytes);
  }

  // Invalid calls of the allocator: blocks released twice, with a wrong size, ...
  [[nodiscard]] const std::vector<std::string>& misuses() const noexcept { return misuse_; }

 private:
  using line_content = std::array<std::byte, media::cache_line_bytes>;
  using block_table = std::map<std::size_t, std::size_t>;  // offset, bytes

  static constexpr std::size_t null_bytes = 4096;
  static constexpr std::size_t first_block =
      (null_bytes + sizeof(media::root_table) + 2 * media::xpline_bytes) & ~(media::xpline_bytes - 1);

  [[nodiscard]] std::size_t offset_of(const void* address) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - working_.at(0));
  }

  static constexpr std::size_t round_up(std::size_t offset, std::size_t alignment) noexcept {
    return (offset + alignment - 1) / alignment * alignment;
  }

  // The lowest place for `bytes` between live and reserved blocks; 0: none.
  std::size_t reserve(std::size_t bytes, std::size_t alignment) {
    alignment = std::max(alignment, media::cache_line_bytes);
    // No place below the last one of this kind, unless a block was freed since.
    std::size_t& lowest = lowest_places_.try_emplace({bytes, alignment}, first_block).first->second;
    std::size_t offset = round_up(lowest, alignment);
    auto live = first_that_ends_above(blocks_, lowest);
    auto held = first_that_ends_above(reserved_, lowest);
    while (live != blocks_.end() || held != reserved_.end()) {
      const bool take_live = held == reserved_.end() || (live != blocks_.end() && live->first < held->first);
      const auto& [start, size] = take_live ? *live : *held;
      if (offset + bytes + media::cache_line_bytes <= start) break;
      offset = std::max(offset, round_up(start + size + media::cache_line_bytes, alignment));
      take_live ? ++live : ++held;
    }
    if (offset + bytes > area_bytes_) return 0;
    lowest = offset;
    reserved_.emplace(offset, bytes);
    fill_with_garbage_up_to(round_up(offset + bytes, media::cache_line_bytes));
    return offset;
  }

  static block_table::const_iterator first_that_ends_above(const block_table& blocks, std::size_t offset) {
    auto block = blocks.upper_bound(offset);
    if (block != blocks.begin() &&
        std::prev(block)->first + std::prev(block)->second + media::cache_line_bytes > offset)
      --block;
    return block;
  }

  void fill_with_garbage_up_to(std::size_t end) {
    for (; end_ < end; end_ += sizeof(std::uint64_t)) {
      const std::uint64_t garbage = end_ * golden_ratio | 1;
      std::memcpy(working_.at(end_), &garbage, sizeof garbage);
      std::memcpy(durable_.at(end_), &garbage, sizeof garbage);
    }
  }

  void forget_reservation(const publication::extent& e) {
    reserved_.erase(e.offset);
    lowest_places_.clear();
  }

  void keep(const publication::extent& e) {
    reserved_.erase(e.offset);
    blocks_.emplace(e.offset, e.bytes);
  }

  void give_back(const publication::extent& e) {
    const auto found = blocks_.find(e.offset);
    if (found == blocks_.end() || found->second != e.bytes)
      return misuse("release of " + std::to_string(e.bytes) + " bytes at offset " + std::to_string(e.offset) +
                    (found == blocks_.end() ? ": no such block" : ": the block has another size"));
    blocks_.erase(e.offset);
    lowest_places_.clear();
  }

  // This store is ordered after all others of this thread to its line, so a line that has it has them too.
  void store_durably(std::atomic<std::uint64_t>& word, std::uint64_t value) {
    word.store(value, std::memory_order_release);
    if (!is_watched_) return;
    const std::size_t line = offset_of(&word) & ~(media::cache_line_bytes - 1);
    std::memcpy(durable_.at(line), working_.at(line), media::cache_line_bytes);
  }

  void event() const {
    if (at_event_ && std::this_thread::get_id() == watcher_) at_event_();
  }

  void misuse(std::string what) { misuse_.push_back(std::move(what)); }

  std::size_t area_bytes_;
  detail::mapping working_;  // the content seen by loads and stores
  detail::mapping durable_;  // while it is watched: what a power failure leaves
  std::size_t end_ = 0;      // blocks were never above
  block_table blocks_;
  block_table reserved_;
  // Lowest places of blocks of so many bytes, so aligned.
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> lowest_places_;
  std::map<std::thread::id, std::map<std::size_t, line_content>> flushed_;  // lines as flushed, and not fenced yet
  std::vector<std::string> misuse_;
  std::function<void()> at_event_;
  bool is_watched_ = false;
  std::thread::id watcher_;
  std::mutex mutex_;  // flushed_, and durable_ at a fence
};

static_assert(media::medium<restartable_medium>);

}  // namespace pmlab::tests
