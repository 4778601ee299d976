// The medium of an open index, behind virtual calls: for a layer that keeps blocks of its own beside the index, in the
// same medium, and is not compiled for each of them.
#pragma once

#include <pmlab/erased/any_change.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

namespace pmlab::erased {

// Thread safety and durability: the medium's.
class any_medium {
 public:
  any_medium() = default;
  any_medium(const any_medium&) = delete;
  any_medium& operator=(const any_medium&) = delete;
  virtual ~any_medium() = default;

  // Begins a publication.
  [[nodiscard]] virtual std::unique_ptr<any_change> begin() = 0;
  [[nodiscard]] virtual std::string name() const = 0;
  [[nodiscard]] virtual void* resolve(std::uint64_t word) const noexcept = 0;
  [[nodiscard]] virtual std::uint64_t locate(const void* object) const noexcept = 0;
  virtual void flush(const void* start, std::size_t bytes) noexcept = 0;
  virtual void fence() noexcept = 0;
  virtual void copy(void* target, const void* source, std::size_t bytes) noexcept = 0;
  virtual void annotate_read(const void* start, std::size_t bytes) noexcept = 0;
  virtual void prefetch(const void* start, std::size_t bytes) noexcept = 0;
  virtual media::root named_root(std::string_view name, std::string_view layout, std::uint64_t version) = 0;
  [[nodiscard]] virtual media::usage used() const = 0;
  // False: annotate_read and prefetch do nothing.
  [[nodiscard]] virtual bool hears_reads() const = 0;
  // The greatest of all words, if the medium knows no bound.
  [[nodiscard]] virtual std::uint64_t pointer_bound() const noexcept = 0;

  // Called around each operation, if the medium has these hooks.
  [[nodiscard]] virtual bool wants_hooks() const = 0;
  virtual void begin_operation() = 0;
  virtual void end_operation() = 0;
};

// `medium` outlives this.
template <media::medium Medium>
class erased_medium final : public any_medium {
 public:
  // Operations of `medium`.
  explicit erased_medium(Medium& medium) : medium_(medium) {}

  // Begins a publication of the medium.
  [[nodiscard]] std::unique_ptr<any_change> begin() override { return std::make_unique<change_of<Medium>>(medium_); }
  [[nodiscard]] std::string name() const override { return medium_.name(); }
  [[nodiscard]] void* resolve(std::uint64_t word) const noexcept override {
    return medium_.resolve(media::pointer<char>(word));
  }
  [[nodiscard]] std::uint64_t locate(const void* object) const noexcept override {
    return medium_.locate(static_cast<const char*>(object)).word();
  }
  void flush(const void* start, std::size_t bytes) noexcept override { medium_.flush(start, bytes); }
  void fence() noexcept override { medium_.fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept override {
    medium_.copy(target, source, bytes);
  }
  void annotate_read(const void* start, std::size_t bytes) noexcept override { medium_.annotate_read(start, bytes); }
  void prefetch(const void* start, std::size_t bytes) noexcept override {
    if constexpr (Medium::parts.prefetches) medium_.prefetch(start, bytes);
  }
  media::root named_root(std::string_view name, std::string_view layout, std::uint64_t version) override {
    return medium_.named_root(name, layout, version);
  }
  [[nodiscard]] media::usage used() const override { return medium_.used(); }
  [[nodiscard]] bool hears_reads() const override { return Medium::parts.prefetches; }
  [[nodiscard]] std::uint64_t pointer_bound() const noexcept override {
    if constexpr (Medium::parts.pointer_bound)
      return medium_.pointer_bound();
    else
      return std::numeric_limits<std::uint64_t>::max();
  }

  [[nodiscard]] bool wants_hooks() const override { return Medium::parts.operations; }
  void begin_operation() override { media::begin_operation(medium_); }
  void end_operation() override { media::end_operation(medium_); }

 private:
  Medium& medium_;
};

// The same as a medium by itself. Pointers are resolved without a call, and reads make one only if the medium hears
// them: an index that follows many pointers is then nearly as fast as on the medium itself. Always `durable`:
// superfluous flushes cost nothing in DRAM. The small numbers of locks and shards of a medium for verification
// (`sizes`, `shards`) are not forwarded: verification does not use virtual calls.
class attached_medium {
 public:
  static constexpr bool durable = true;
  static constexpr media::optional_parts parts{.operations = true, .prefetches = true, .pointer_bound = true};

  // Operations of `behind`, which outlives this.
  explicit attached_medium(any_medium& behind)
      : behind_(behind),
        base_(reinterpret_cast<std::uintptr_t>(behind.resolve(0))),
        pointer_bound_(behind.pointer_bound()),
        hears_reads_(behind.hears_reads()) {}
  // The medium that this one forwards to.
  [[nodiscard]] any_medium& behind() const noexcept { return behind_; }

  class publication {
   public:
    // Begins a publication of the medium behind.
    explicit publication(attached_medium& medium) : change_(medium.behind_.begin()) {}
    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      return change_->allocate(bytes, alignment);
    }
    void store(std::atomic<std::uint64_t>& word, std::uint64_t value) { change_->store(word, value); }
    void release(void* block, std::size_t bytes) { change_->release(block, bytes); }
    void commit() { change_->commit(); }

   private:
    std::unique_ptr<any_change> change_;
  };

  [[nodiscard]] std::string name() const { return behind_.name(); }
  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return reinterpret_cast<T*>(base_ + p.word());
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return media::pointer<T>(reinterpret_cast<std::uintptr_t>(object) - base_);
  }
  void flush(const void* start, std::size_t bytes) noexcept { behind_.flush(start, bytes); }
  void fence() noexcept { behind_.fence(); }
  void copy(void* target, const void* source, std::size_t bytes) noexcept { behind_.copy(target, source, bytes); }
  void annotate_read(const void* start, std::size_t bytes) noexcept {
    if (hears_reads_) behind_.annotate_read(start, bytes);
  }
  void prefetch(const void* start, std::size_t bytes) noexcept {
    if (hears_reads_) behind_.prefetch(start, bytes);
  }
  media::root named_root(std::string_view name, std::string_view layout, std::uint64_t version) {
    return behind_.named_root(name, layout, version);
  }
  [[nodiscard]] media::usage used() const { return behind_.used(); }
  [[nodiscard]] std::uint64_t pointer_bound() const noexcept { return pointer_bound_; }
  void begin_operation() { behind_.begin_operation(); }
  void end_operation() { behind_.end_operation(); }

 private:
  any_medium& behind_;
  std::uintptr_t base_;  // all media resolve a pointer by adding its word to an address
  std::uint64_t pointer_bound_;
  bool hears_reads_;
};
static_assert(media::medium<attached_medium>);

}  // namespace pmlab::erased
