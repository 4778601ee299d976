// A medium behind virtual calls: an index is compiled once for all that count or delay accesses, a store once for all.
//
// Its cost, where accesses are counted or delayed: a virtual call for each annotated read, flush, fence and copy, and
// for each change of a publication. Counts are not affected. On an emulated device, whose reads take hundreds of
// nanoseconds each, reads of an index took 3 to 6 % longer than without the calls, and changes about as long. Pointers
// are resolved without a call.
//
// dram and pmem have calls for copies and publications alone: a flush or a fence is a branch and the instruction
// itself. Indexes are measured on them directly all the same, and stores, whose operations take microseconds, through
// this: puts and gets of kv_ssd had 0.98 to 1.01 of their rate on the media themselves, of 100 bytes and 4 KB, blocks
// of chunk_store 0.99 to 1.00.
#pragma once

#include <pmlab/erased/any_change.hpp>
#include <pmlab/media/cache_flush.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/persistence_domain.hpp>
#include <pmlab/media/root_table.hpp>
#include "bench/catalogue/subject.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::bench {

// Thread safety and durability: the medium's behind it.
class chosen_medium {
 public:
  // See `is_durable` for the actual value.
  static constexpr bool durable = true;
  static constexpr media::optional_parts parts{
      .operations = true, .prefetches = true, .pointer_bound = true, .varying_durability = true};

  chosen_medium(const chosen_medium&) = delete;
  chosen_medium& operator=(const chosen_medium&) = delete;
  virtual ~chosen_medium() = default;

  // Where a change is made: an allocation for each of them would be measured.
  struct alignas(std::max_align_t) change_room {
    std::byte bytes[2304];
  };

  class publication {
   public:
    explicit publication(chosen_medium& medium) : change_(medium.begin_change(room_)) {}
    publication(const publication&) = delete;
    publication& operator=(const publication&) = delete;
    ~publication() { change_.~any_change(); }
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      return change_.allocate(bytes, alignment);
    }
    void store(std::atomic<std::uint64_t>& word, std::uint64_t value) { change_.store(word, value); }
    void release(void* block, std::size_t bytes) { change_.release(block, bytes); }
    void commit() { change_.commit(); }

   private:
    change_room room_;
    erased::any_change& change_;
  };

  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return reinterpret_cast<T*>(facts_.base + p.word());
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return media::pointer<T>(reinterpret_cast<std::uintptr_t>(object) - facts_.base);
  }

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] bool is_durable() const noexcept { return facts_.is_durable; }
  [[nodiscard]] media::persistence_domain persistence() const noexcept { return facts_.persistence; }
  void flush(const void* start, std::size_t bytes) noexcept {
    if (facts_.is_observed)
      observe_flush(start, bytes);
    else if (facts_.flushes_with)
      media::flush_lines(*facts_.flushes_with, start, bytes);
  }
  void fence() noexcept {
    if (facts_.is_observed)
      observe_fence();
    else if (facts_.has_fence)
      media::store_fence();
  }
  virtual void copy(void* target, const void* source, std::size_t bytes) noexcept = 0;
  void annotate_read(const void* start, std::size_t bytes) noexcept {
    if (facts_.is_observed) observe_read(start, bytes);
  }
  void prefetch(const void* start, std::size_t bytes) noexcept {
    if (facts_.is_observed) observe_prefetch(start, bytes);
  }
  [[nodiscard]] virtual media::root named_root(std::string_view name, std::string_view layout,
                                               std::uint64_t version) = 0;
  [[nodiscard]] virtual media::usage used() const = 0;
  // The greatest of all words, if the medium knows no bound.
  [[nodiscard]] std::uint64_t pointer_bound() const noexcept { return facts_.pointer_bound; }
  void begin_operation() {
    if (facts_.is_observed) observe_begin();
  }
  void end_operation() {
    if (facts_.is_observed) observe_end();
  }

  // The roots of the pool that the bytes are in; none: they are in DRAM.
  [[nodiscard]] virtual std::vector<media::root_facts> roots() = 0;
  // Nothing, unless it counts.
  [[nodiscard]] virtual std::optional<media::counts> accesses() = 0;
  virtual void reset_accesses() = 0;
  // The bytes since an emulated medium was made, or since the last reset. std::nullopt: as subject::media_bytes.
  [[nodiscard]] virtual std::optional<media_sums> media_bytes() = 0;
  // The sums of an emulated medium. std::nullopt: it is not emulated.
  [[nodiscard]] virtual std::optional<media::emulation_counts> emulation() = 0;

 protected:
  // The facts of a medium that do not change: no access makes a call for them.
  struct facts {
    std::uintptr_t base = 0;  // origin of pointer words that are offsets
    std::uint64_t pointer_bound = std::numeric_limits<std::uint64_t>::max();
    bool is_durable = false;
    media::persistence_domain persistence = media::persistence_domain::adr;
    bool is_observed = true;  // it counts or delays accesses, so it hears of each
    // How a medium that is not observed flushes. std::nullopt: it does not.
    std::optional<media::flush_instruction> flushes_with{};
    bool has_fence = false;
  };

  explicit chosen_medium(const facts& found) noexcept : facts_(found) {}

 private:
  [[nodiscard]] virtual erased::any_change& begin_change(change_room& room) = 0;
  // The medium's operations, if it is observed.
  virtual void observe_flush(const void* start, std::size_t bytes) noexcept = 0;
  virtual void observe_fence() noexcept = 0;
  virtual void observe_read(const void* start, std::size_t bytes) noexcept = 0;
  virtual void observe_prefetch(const void* start, std::size_t bytes) noexcept = 0;
  virtual void observe_begin() = 0;
  virtual void observe_end() = 0;

  facts facts_;
};
static_assert(media::medium<chosen_medium>);

// The medium of a setup that is not simulated. Throws pmlab::error: see the media's constructors.
[[nodiscard]] std::unique_ptr<chosen_medium> make_chosen_medium(const subject_setup& setup);

}  // namespace pmlab::bench
