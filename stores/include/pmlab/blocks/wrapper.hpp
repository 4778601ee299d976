// Base of devices that wrap another device.
#pragma once

#include <pmlab/blocks/device.hpp>

#include <string>
#include <utility>

namespace pmlab::blocks {

// Owns the inner device and answers for it. A derived class adds its queue, which passes requests on to a queue of
// inner(). To wrap a device that another object owns, wrap blocks::reference<D>.
template <class Inner>
class wrapper {
 public:
  wrapper(const wrapper&) = delete;
  wrapper& operator=(const wrapper&) = delete;

  // The device that is wrapped; it lives as long as this.
  [[nodiscard]] Inner& inner() noexcept { return inner_; }
  // The same.
  [[nodiscard]] const Inner& inner() const noexcept { return inner_; }

  // The inner device's, if it may be a modelled key-value SSD (blocks/pair_front.hpp).
  [[nodiscard]] auto* pairs() noexcept requires requires(Inner& i) { i.pairs(); }
  { return inner_.pairs(); }
  // The inner device's.
  [[nodiscard]] geometry shape() const { return inner_.shape(); }
  // The inner device's.
  [[nodiscard]] std::string name() const { return inner_.name(); }
  // The inner device's.
  [[nodiscard]] std::string failure() const { return inner_.failure(); }

 protected:
  // `arguments` build the inner device.
  template <class... Arguments>
  explicit wrapper(std::in_place_t /*builds the inner device*/, Arguments&&... arguments)
      : inner_(std::forward<Arguments>(arguments)...) {}
  ~wrapper() = default;

 private:
  Inner inner_;
};

// A device that another object owns, which outlives this one.
template <device D>
class reference {
 public:
  // The queue of the owned device.
  using queue_base = typename D::queue;

  // `of` outlives it.
  explicit reference(D& of) noexcept : device_(of) {}

  // A queue of the owned device.
  class queue : public queue_base {
   public:
    // At most `depth` requests in flight. `of` outlives it.
    queue(reference& of, unsigned depth) : queue_base(of.device_, depth) {}
  };

  // The owned device's, if it may be a modelled key-value SSD (blocks/pair_front.hpp).
  [[nodiscard]] auto* pairs() noexcept requires requires(D& d) { d.pairs(); }
  { return device_.pairs(); }
  // The owned device's.
  [[nodiscard]] geometry shape() const { return device_.shape(); }
  // The owned device's.
  [[nodiscard]] std::string name() const { return device_.name(); }
  // The owned device's.
  [[nodiscard]] std::string failure() const { return device_.failure(); }

 private:
  D& device_;
};

}  // namespace pmlab::blocks
