// A medium that counts or delays accesses, behind virtual calls: an index is compiled once for all of them.
//
// Its cost: a virtual call for each annotated read, flush, fence and copy, and for each change of a publication. Counts
// are not affected. On an emulated device, whose reads take hundreds of nanoseconds each, reads of an index took 3 to
// 6 % longer than without the calls, and changes about as long. Pointers are resolved without a call. The media that
// are measured directly, dram and pmem, are never behind this.
#pragma once

#include <pmlab/erased/any_change.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/persistence_domain.hpp>
#include <pmlab/media/root_table.hpp>
#include "bench/catalogue/subject.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::bench {

// Thread safety and durability: the medium's that is watched.
class watched_medium {
 public:
  // See `is_durable` for the actual value.
  static constexpr bool durable = true;
  static constexpr media::optional_parts parts{
      .operations = true, .prefetches = true, .pointer_bound = true, .varying_durability = true};

  watched_medium(const watched_medium&) = delete;
  watched_medium& operator=(const watched_medium&) = delete;
  virtual ~watched_medium() = default;

  // Where a change is made: an allocation for each of them would be measured.
  struct alignas(std::max_align_t) change_room {
    std::byte bytes[2304];
  };

  class publication {
   public:
    explicit publication(watched_medium& medium) : change_(medium.begin_change(room_)) {}
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
    return reinterpret_cast<T*>(base_ + p.word());
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return media::pointer<T>(reinterpret_cast<std::uintptr_t>(object) - base_);
  }

  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual bool is_durable() const noexcept = 0;
  [[nodiscard]] virtual media::persistence_domain persistence() const noexcept = 0;
  virtual void flush(const void* start, std::size_t bytes) noexcept = 0;
  virtual void fence() noexcept = 0;
  virtual void copy(void* target, const void* source, std::size_t bytes) noexcept = 0;
  virtual void annotate_read(const void* start, std::size_t bytes) noexcept = 0;
  virtual void prefetch(const void* start, std::size_t bytes) noexcept = 0;
  [[nodiscard]] virtual media::root named_root(std::string_view name, std::string_view layout,
                                               std::uint64_t version) = 0;
  [[nodiscard]] virtual media::usage used() const = 0;
  // The greatest of all words, if the medium knows no bound.
  [[nodiscard]] virtual std::uint64_t pointer_bound() const noexcept = 0;
  virtual void begin_operation() = 0;
  virtual void end_operation() = 0;

  // The roots of the pool that the bytes are in; none: they are in DRAM.
  [[nodiscard]] virtual std::vector<media::root_facts> roots() = 0;
  // Nothing, unless it counts.
  [[nodiscard]] virtual std::optional<access_sums> accesses() = 0;
  virtual void reset_accesses() = 0;
  // The bytes since an emulated medium was made, or since the last reset. std::nullopt: as subject::media_bytes.
  [[nodiscard]] virtual std::optional<media_sums> media_bytes() = 0;
  // The sums of an emulated medium. std::nullopt: it is not emulated.
  [[nodiscard]] virtual std::optional<emulation_sums> emulation() = 0;

 protected:
  // `base`: the origin of pointer words that are offsets.
  explicit watched_medium(std::uintptr_t base) noexcept : base_(base) {}

 private:
  [[nodiscard]] virtual erased::any_change& begin_change(change_room& room) = 0;

  std::uintptr_t base_;
};
static_assert(media::medium<watched_medium>);

// The medium of a setup that is counted, emulated or both. Throws pmlab::error: see the media's constructors.
[[nodiscard]] std::unique_ptr<watched_medium> make_watched_medium(const subject_setup& setup);

}  // namespace pmlab::bench
