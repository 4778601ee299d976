// Crash-injecting medium: it tracks which stores are durable, and can produce every image that a power failure may
// leave.
//
// The area is flat and position-independent; an image is opened in another crash_medium, at another address. For each
// line it records the content at every event (flush, fence, commit), in order: since stores to one line become durable
// in their order, each of these contents, from the last persisted one to the newest, is possible, independently of
// every other line. States between two events are not seen: the simulated machine sees every store.
//
//   4096 unmapped bytes        offset 0 is null, and following a null crashes at once
//   root_table
//   blocks                     64 bytes apart at least, so that no block's flush saves its neighbour's line
//
// A block that was never used before holds garbage, durably: if an index forgets to write or to flush a field of a new
// object, recovery reads that garbage after the crash.
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
#include <memory>
#include <mutex>
#include <new>
#include <span>
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
    if (area == MAP_FAILED) throw std::runtime_error("cannot map memory for a crash_medium");
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

// A line whose content after a crash is not determined.
struct unpersisted_line {
  std::size_t offset;    // offset of the line in the area
  std::size_t contents;  // how many contents it may have, at least 2: 0 is the oldest, contents - 1 the newest
};

// Thread safety: crash images are taken of one thread's run. Others may read meanwhile, and flush and fence what they
// depend on; their events are no crash points.
class crash_medium {
 public:
  static constexpr bool durable = true;
  static constexpr media::optional_parts parts{};

  // `area_bytes`: roots, blocks and the gaps between them fit in it, or the medium is full.
  explicit crash_medium(std::size_t area_bytes = std::size_t{64} << 20)
      : area_bytes_(area_bytes), working_(area_bytes), durable_(area_bytes), observed_(area_bytes) {
    ::mprotect(working_.at(0), null_bytes, PROT_NONE);
    ::new (working_.at(null_bytes)) media::root_table();
    end_ = first_block;
    settle();
  }
  crash_medium(const crash_medium&) = delete;
  crash_medium& operator=(const crash_medium&) = delete;

  class publication {
   public:
    explicit publication(crash_medium& medium) noexcept : medium_(medium) {}
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
    friend class crash_medium;

    crash_medium& medium_;
    std::vector<extent> allocated_;
    std::vector<extent> released_;
    std::vector<pending_store> stores_;
  };

  // Few: each run is short, and each image is checked completely.
  [[nodiscard]] std::size_t shards(std::size_t /*usual*/) const noexcept { return 4; }

  [[nodiscard]] std::string name() const { return "crash"; }

  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return reinterpret_cast<T*>(working_.at(p.word()));
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return media::pointer<T>(offset_of(object));
  }

  void flush(const void* start, std::size_t bytes) noexcept {
    if (!tracking_) return;
    event();
    const std::scoped_lock lock(mutex_);
    auto& flushed = flushed_[std::this_thread::get_id()];
    media::for_each_line(start, bytes, [&](std::uintptr_t line) {
      const std::size_t offset = line - reinterpret_cast<std::uintptr_t>(working_.at(0));
      if (const auto known = histories_.find(offset); known != histories_.end())
        flushed.emplace_back(offset, known->second.newest());
    });
  }

  void fence() noexcept {
    if (!tracking_) return;
    event();
    const std::scoped_lock lock(mutex_);
    auto& flushed = flushed_[std::this_thread::get_id()];
    for (const auto& [offset, content] : flushed) make_durable(offset, content);
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
    for (const auto& [offset, size] : *blocks_) bytes += size;
    return {bytes, area_bytes_};
  }

  // From now on every event is a crash point, at which `at_crash_point` is called; it must not touch this medium but
  // through const members. Costs a comparison of the whole area at each event.
  void track(std::function<void()> at_crash_point) {
    settle();
    tracking_ = true;
    tracked_ = std::this_thread::get_id();
    at_crash_point_ = std::move(at_crash_point);
  }

  // Everything becomes durable, and events are crash points no more.
  void stop_tracking() {
    tracking_ = false;
    at_crash_point_ = nullptr;
  }

  // A crash point between two operations: results returned so far must survive from here.
  void event() noexcept {
    if (!tracking_) return;
    {
      const std::scoped_lock lock(mutex_);
      observe();
      if (std::this_thread::get_id() != tracked_) return;
      ++events_;
    }
    if (at_crash_point_) at_crash_point_();
  }

  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }

  // In ascending order of address.
  [[nodiscard]] std::vector<unpersisted_line> unpersisted_lines() const {
    std::vector<unpersisted_line> lines;
    for (const auto& [offset, history] : histories_)
      if (history.contents.size() > 1) lines.push_back({offset, history.contents.size()});
    return lines;
  }

  // Changes when the persisted content changes: two images with one number and equal choices are equal.
  [[nodiscard]] std::uint64_t persisted_version() const noexcept { return persisted_version_; }

  // Replaces the content by an image of a crash of `crashed`: `choice[i]` is the content of the i-th unpersisted line.
  void restore(const crash_medium& crashed, std::span<const std::size_t> choice) {
    stop_tracking();
    histories_.clear();
    flushed_.clear();
    reserved_.clear();
    misuse_.clear();
    blocks_ = crashed.blocks_;
    lowest_places_.clear();
    // Content of this medium above the image is dropped: blocks there count as never used again.
    end_ = crashed.end_;
    std::memcpy(working_.at(null_bytes), crashed.durable_.at(null_bytes), end_ - null_bytes);
    std::size_t line = 0;
    for (const auto& [offset, history] : crashed.histories_) {
      if (history.contents.size() < 2) continue;
      std::memcpy(working_.at(offset), history.contents[choice[line++]].data(), media::cache_line_bytes);
    }
  }

  // While hidden, the area faults when touched: an image that still points into the memory that it was taken from
  // (a DRAM address in PM) is noticed.
  void hide() const noexcept { ::mprotect(working_.at(null_bytes), end_page() - null_bytes, PROT_NONE); }
  void show() const noexcept { ::mprotect(working_.at(null_bytes), end_page() - null_bytes, PROT_READ | PROT_WRITE); }

  // Invalid calls of the allocator: blocks released twice, with a wrong size, ...
  [[nodiscard]] const std::vector<std::string>& misuses() const noexcept { return misuse_; }

 private:
  using line_content = std::array<std::byte, media::cache_line_bytes>;
  using block_table = std::map<std::size_t, std::size_t>;  // offset, bytes

  struct line_history {
    std::vector<line_content> contents;  // the durable one first
    std::size_t dropped = 0;             // contents that are older than the durable one
    [[nodiscard]] std::size_t newest() const { return dropped + contents.size() - 1; }
  };

  static constexpr std::size_t null_bytes = 4096;
  static constexpr std::size_t first_block =
      (null_bytes + sizeof(media::root_table) + 2 * media::xpline_bytes) & ~(media::xpline_bytes - 1);

  [[nodiscard]] std::size_t offset_of(const void* address) const noexcept {
    return static_cast<std::size_t>(static_cast<const std::byte*>(address) - working_.at(0));
  }
  [[nodiscard]] std::size_t end_page() const noexcept { return (end_ + 4095) & ~std::size_t{4095}; }

  static constexpr std::size_t round_up(std::size_t offset, std::size_t alignment) noexcept {
    return (offset + alignment - 1) / alignment * alignment;
  }

  // The lowest place for `bytes` between live and reserved blocks; 0: none.
  std::size_t reserve(std::size_t bytes, std::size_t alignment) {
    alignment = std::max(alignment, media::cache_line_bytes);
    // No place below the last one of this kind, unless a block was freed since.
    std::size_t& lowest = lowest_places_.try_emplace({bytes, alignment}, first_block).first->second;
    std::size_t offset = round_up(lowest, alignment);
    auto live = first_that_ends_above(*blocks_, lowest);
    auto held = first_that_ends_above(reserved_, lowest);
    while (live != blocks_->end() || held != reserved_.end()) {
      const bool take_live = held == reserved_.end() || (live != blocks_->end() && live->first < held->first);
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
      if (!tracking_) continue;
      std::memcpy(durable_.at(end_), &garbage, sizeof garbage);
      std::memcpy(observed_.at(end_), &garbage, sizeof garbage);
    }
  }

  void forget_reservation(const publication::extent& e) {
    reserved_.erase(e.offset);
    lowest_places_.clear();
  }

  void keep(const publication::extent& e) {
    reserved_.erase(e.offset);
    own_blocks().emplace(e.offset, e.bytes);
    ++persisted_version_;
  }

  void give_back(const publication::extent& e) {
    const auto found = blocks_->find(e.offset);
    if (found == blocks_->end() || found->second != e.bytes)
      return misuse("release of " + std::to_string(e.bytes) + " bytes at offset " + std::to_string(e.offset) +
                    (found == blocks_->end() ? ": no such block" : ": the block has another size"));
    own_blocks().erase(e.offset);
    lowest_places_.clear();
    ++persisted_version_;
  }

  // Images share the table of the medium that they were taken from, until one of them changes it.
  block_table& own_blocks() {
    if (blocks_.use_count() > 1) blocks_ = std::make_shared<block_table>(*blocks_);
    return *blocks_;
  }

  // This store is ordered after all others of this thread to its line, so a line that has it has them too.
  void store_durably(std::atomic<std::uint64_t>& word, std::uint64_t value) {
    word.store(value, std::memory_order_release);
    if (!tracking_) return;
    observe();
    const std::size_t line = offset_of(&word) & ~(media::cache_line_bytes - 1);
    if (const auto known = histories_.find(line); known != histories_.end()) make_durable(line, known->second.newest());
  }

  void make_durable(std::size_t offset, std::size_t content) {
    line_history& h = histories_[offset];
    if (content <= h.dropped) return;
    h.contents.erase(h.contents.begin(), h.contents.begin() + static_cast<std::ptrdiff_t>(content - h.dropped));
    h.dropped = content;
    std::memcpy(durable_.at(offset), h.contents.front().data(), media::cache_line_bytes);
    ++persisted_version_;
  }

  // Finds the lines that changed since the last event.
  void observe() {
    constexpr std::size_t step = 4096;
    for (std::size_t page = null_bytes; page < end_; page += step) {
      const std::size_t page_end = std::min(page + step, end_);
      if (std::memcmp(working_.at(page), observed_.at(page), page_end - page) == 0) continue;
      for (std::size_t line = page; line < page_end; line += media::cache_line_bytes) {
        if (std::memcmp(working_.at(line), observed_.at(line), media::cache_line_bytes) == 0) continue;
        line_history& h = histories_[line];
        line_content content;
        if (h.contents.empty()) {
          std::memcpy(content.data(), durable_.at(line), content.size());
          h.contents.push_back(content);
        }
        std::memcpy(content.data(), working_.at(line), content.size());
        std::memcpy(observed_.at(line), content.data(), content.size());
        h.contents.push_back(content);
      }
    }
  }

  // Makes all that is in the working memory durable.
  void settle() {
    histories_.clear();
    flushed_.clear();
    std::memcpy(durable_.at(null_bytes), working_.at(null_bytes), end_ - null_bytes);
    std::memcpy(observed_.at(null_bytes), working_.at(null_bytes), end_ - null_bytes);
    ++persisted_version_;
  }

  void misuse(std::string what) { misuse_.push_back(std::move(what)); }

  std::size_t area_bytes_;
  detail::mapping working_;   // the content seen by loads and stores
  detail::mapping durable_;   // the oldest content that each line may have after a crash
  detail::mapping observed_;  // the working memory at the last event
  std::size_t end_ = 0;       // blocks were never above
  std::shared_ptr<block_table> blocks_ = std::make_shared<block_table>();
  block_table reserved_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t>
      lowest_places_;                              // lowest places of blocks of so many bytes, so aligned
  std::map<std::size_t, line_history> histories_;  // lines that were stored to since they were last persisted
  std::map<std::thread::id, std::vector<std::pair<std::size_t, std::size_t>>> flushed_;  // and not fenced yet
  std::vector<std::string> misuse_;
  std::function<void()> at_crash_point_;
  bool tracking_ = false;
  std::thread::id tracked_;  // the thread whose events are crash points
  std::mutex mutex_;         // state of flush, fence and event
  std::uint64_t events_ = 0;
  std::uint64_t persisted_version_ = 0;
};

static_assert(media::medium<crash_medium>);

}  // namespace pmlab::tests
