// A block device behind virtual calls, for programs that choose it at run time.
//
// A virtual call is paid for each submit and each reap, not for each request.
#pragma once

#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/flash/time.hpp>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

namespace pmlab::blocks {

class pair_front;

// Owns a device of any type. Thread safety: as that device.
class any_device {
  class held_queue {
   public:
    held_queue() = default;
    held_queue(const held_queue&) = delete;
    held_queue& operator=(const held_queue&) = delete;
    virtual ~held_queue() = default;
    [[nodiscard]] virtual std::size_t submit(std::span<const request> requests) = 0;
    [[nodiscard]] virtual std::size_t reap(std::span<completion> completions, std::size_t at_least) = 0;
    [[nodiscard]] virtual std::size_t in_flight() const = 0;
    [[nodiscard]] virtual unsigned depth() const = 0;
    [[nodiscard]] virtual std::optional<picoseconds> due() const = 0;
  };

  class held_device {
   public:
    held_device() = default;
    held_device(const held_device&) = delete;
    held_device& operator=(const held_device&) = delete;
    virtual ~held_device() = default;
    [[nodiscard]] virtual std::unique_ptr<held_queue> open_queue(unsigned depth) = 0;
    [[nodiscard]] virtual geometry shape() const = 0;
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual std::string failure() const = 0;
    [[nodiscard]] virtual pair_front* pairs() = 0;
  };

  template <device D>
  class queue_on final : public held_queue {
   public:
    queue_on(D& of, unsigned depth) : queue_(of, depth) {}
    std::size_t submit(std::span<const request> requests) override { return queue_.submit(requests); }
    std::size_t reap(std::span<completion> completions, std::size_t at_least) override {
      return queue_.reap(completions, at_least);
    }
    std::size_t in_flight() const override { return queue_.in_flight(); }
    unsigned depth() const override { return queue_.depth(); }
    std::optional<picoseconds> due() const override {
      if constexpr (requires { queue_.due(); })
        return queue_.due();
      else
        return std::nullopt;
    }

   private:
    typename D::queue queue_;
  };

  template <device D>
  class holder final : public held_device {
   public:
    template <class... Arguments>
    explicit holder(Arguments&&... arguments) : device_(std::forward<Arguments>(arguments)...) {}
    std::unique_ptr<held_queue> open_queue(unsigned depth) override {
      return std::make_unique<queue_on<D>>(device_, depth);
    }
    geometry shape() const override { return device_.shape(); }
    std::string name() const override { return device_.name(); }
    std::string failure() const override { return device_.failure(); }
    pair_front* pairs() override {
      if constexpr (requires { device_.pairs(); })
        return device_.pairs();
      else
        return nullptr;
    }
    D device_;
  };

 public:
  // Builds a D from `arguments`.
  template <device D, class... Arguments>
  explicit any_device(std::in_place_type_t<D> /*type*/, Arguments&&... arguments)
      : held_(std::make_unique<holder<D>>(std::forward<Arguments>(arguments)...)) {}

  // A queue of the device, whatever its type.
  class queue {
   public:
    // At most `depth` requests in flight. `of` outlives it.
    queue(any_device& of, unsigned depth) : held_(of.held_->open_queue(depth)) {}
    [[nodiscard]] std::size_t submit(std::span<const request> requests) { return held_->submit(requests); }
    [[nodiscard]] std::size_t reap(std::span<completion> completions, std::size_t at_least) {
      return held_->reap(completions, at_least);
    }
    [[nodiscard]] std::size_t in_flight() const { return held_->in_flight(); }
    [[nodiscard]] unsigned depth() const { return held_->depth(); }
    // When a modelled drive completes the next request, on its clock. REQUIRES: one is in flight.
    [[nodiscard]] std::optional<picoseconds> due() const { return held_->due(); }

   private:
    std::unique_ptr<held_queue> held_;
  };

  // The device's.
  [[nodiscard]] geometry shape() const { return held_->shape(); }
  // The device's.
  [[nodiscard]] std::string name() const { return held_->name(); }
  // The device's.
  [[nodiscard]] std::string failure() const { return held_->failure(); }

  // The place where commands of a modelled key-value SSD wait for its firmware. nullptr: any other device.
  [[nodiscard]] pair_front* pairs() { return held_->pairs(); }

  // The device, if it is a D; otherwise nullptr.
  template <device D>
  [[nodiscard]] D* get() noexcept {
    auto* const held = dynamic_cast<holder<D>*>(held_.get());
    return held == nullptr ? nullptr : &held->device_;
  }

 private:
  std::unique_ptr<held_device> held_;
};

static_assert(device<any_device>);

}  // namespace pmlab::blocks
