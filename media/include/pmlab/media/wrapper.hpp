// Base of media that wrap another medium.
#pragma once

#include <pmlab/media/medium.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace pmlab::media {

// Owns the inner medium and forwards to it. Derived classes add flush, fence, copy, annotate_read and their
// publication.
template <class Inner>
class wrapper {
 public:
  static constexpr bool durable = Inner::durable;
  // A wrapper that adds no parts has those of the inner medium.
  static constexpr optional_parts parts = Inner::parts;

  wrapper(const wrapper&) = delete;
  wrapper& operator=(const wrapper&) = delete;

  // The medium that is wrapped; it lives as long as this.
  [[nodiscard]] Inner& inner() noexcept { return inner_; }
  // The same.
  [[nodiscard]] const Inner& inner() const noexcept { return inner_; }

  [[nodiscard]] std::string name() const { return inner_.name(); }

  template <class T>
  [[nodiscard]] T* resolve(pointer<T> p) const noexcept {
    return inner_.resolve(p);
  }
  template <class T>
  [[nodiscard]] pointer<T> locate(const T* object) const noexcept {
    return inner_.locate(object);
  }

  // The inner medium's, if it has them.
  [[nodiscard]] std::uint64_t pointer_bound() const noexcept requires(Inner::parts.pointer_bound) {
    return inner_.pointer_bound();
  }
  void begin_operation() requires(Inner::parts.operations) { inner_.begin_operation(); }
  void end_operation() requires(Inner::parts.operations) { inner_.end_operation(); }
  void prefetch(const void* start, std::size_t bytes) noexcept requires(Inner::parts.prefetches) {
    inner_.prefetch(start, bytes);
  }

  [[nodiscard]] root named_root(std::string_view root_name, std::string_view layout, std::uint64_t version) {
    return inner_.named_root(root_name, layout, version);
  }
  [[nodiscard]] usage used() const { return inner_.used(); }

 protected:
  // `arguments` build the inner medium.
  template <class... Arguments>
  explicit wrapper(std::in_place_t /*builds the inner medium*/, Arguments&&... arguments)
      : inner_(std::forward<Arguments>(arguments)...) {}
  ~wrapper() = default;

  // The operations that a medium need not have.
  void inner_begin_operation() {
    if constexpr (Inner::parts.operations) inner_.begin_operation();
  }
  // The same at the end of an operation.
  void inner_end_operation() {
    if constexpr (Inner::parts.operations) inner_.end_operation();
  }
  // Forwards a prefetch to the inner medium, if it has prefetches.
  void inner_prefetch(const void* start, std::size_t bytes) noexcept {
    if constexpr (Inner::parts.prefetches) inner_.prefetch(start, bytes);
  }

 private:
  Inner inner_;
};

}  // namespace pmlab::media
