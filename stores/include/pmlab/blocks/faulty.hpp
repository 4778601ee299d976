// A device that fails as drives do, on request: for testing what a store does then.
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/completion_ring.hpp>
#include <pmlab/blocks/fail_stop.hpp>
#include <pmlab/blocks/wrapper.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace pmlab::blocks {

// The kinds of faults.
enum class fault : std::uint8_t {
  io_error,        // the request does nothing and fails
  no_space,        // the write does nothing and fails because no space is left
  short_transfer,  // the first half of the blocks is moved, then the request fails
  failed_flush,    // the flush does nothing, fails, and fails the device (B5)
  bit_flip,        // one bit of the data is wrong: of a read on its way to the user, of a write on its way to the drive
  misdirected,     // the data goes to, or comes from, other blocks
  lost_write,      // the write completes and does nothing
  failed_answer    // the write is done, and fails
};

// True if a request of this kind can have the fault.
[[nodiscard]] constexpr bool can_have(operation what, fault f) noexcept {
  switch (f) {
    case fault::io_error: return true;
    case fault::short_transfer:
    case fault::bit_flip:
    case fault::misdirected: return moves_data(what);
    case fault::failed_flush: return what == operation::flush;
    case fault::no_space:
    case fault::lost_write:
    case fault::failed_answer: return writes(what);
  }
  return false;
}

// The enumerator's name.
[[nodiscard]] constexpr std::string_view name_of(fault f) noexcept {
  constexpr std::array<std::string_view, 8> names{"io_error", "no_space",    "short_transfer", "failed_flush",
                                                  "bit_flip", "misdirected", "lost_write",     "failed_answer"};
  return names[static_cast<std::size_t>(f)];
}

// A fault that was injected, for messages and assertions.
struct injected_fault {
  fault kind;    // which
  request into;  // its data may be gone
};

// Thread safety: queues as in blocks/device.hpp; the other operations from any thread. With several queues, requests
// are counted in the order of their submission.
template <device Inner>
class faulty : public wrapper<Inner> {
 public:
  // Which requests fail: of those that can have the fault (and are of stream `only`, if given), `times` after the first
  // `skip`.
  struct plan {
    fault kind = fault::io_error;           // which
    std::uint64_t skip = 0;                 // requests that pass before
    std::uint64_t times = 1;                // requests that have the fault
    std::optional<operation> what{};        // only requests of this kind
    std::optional<stream> only{};           // only requests of this stream
    std::uint64_t first = 0;                // only requests that touch blocks from here on,
    std::uint64_t end = ~std::uint64_t{0};  // and before this one
  };

  // `arguments` build the inner device. `seed` decides which bit flips, and where a misdirected request goes.
  template <class... Arguments>
  explicit faulty(std::uint64_t seed, Arguments&&... arguments)
      : wrapper<Inner>(std::in_place, std::forward<Arguments>(arguments)...), random_(seed) {}

  // Adds to the faults to come.
  void inject(const plan& p) {
    const std::scoped_lock lock(mutex_);
    plans_.push_back(p);
  }
  // From now on a request has a fault of `kinds` that it can have once in `every` requests, at random. 0: none.
  void inject_at_random(std::vector<fault> kinds, std::uint64_t every) {
    const std::scoped_lock lock(mutex_);
    kinds_ = std::move(kinds);
    every_ = every;
  }
  // Forgets all faults to come. A failed device stays failed.
  void stop() {
    const std::scoped_lock lock(mutex_);
    plans_.clear();
    every_ = 0;
  }
  // The faults so far, in order.
  [[nodiscard]] std::vector<injected_fault> injected() const {
    const std::scoped_lock lock(mutex_);
    return injected_;
  }

  // The reason of an injected flush failure, or of the inner device; empty while it works.
  [[nodiscard]] std::string failure() const { return failed_.failed() ? failed_.reason() : this->inner().failure(); }

  // Injects the planned faults into the requests that pass.
  class queue {
   public:
    // At most `depth` requests in flight. `device` outlives it.
    queue(faulty& device, unsigned depth)
        : device_(device), inner_(device.inner(), depth), at_once_(depth), places_(depth) {
      for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
    }

    [[nodiscard]] std::size_t submit(std::span<const request> requests) {
      const geometry shape = device_.shape();
      const std::size_t taken = std::min(requests.size(), free_.size() - at_once_.size());
      for (const request& r : requests.first(taken)) check_request(shape, r, device_.name());
      for (const request& r : requests.first(taken)) submit_one(r, shape);
      return taken;
    }

    [[nodiscard]] std::size_t reap(std::span<completion> completions, std::size_t at_least) {
      std::size_t count = at_once_.pop(completions);
      const std::span<completion> rest = completions.subspan(count);
      const std::size_t later = inner_.reap(rest, at_least > count ? at_least - count : 0);
      for (completion& c : rest.first(later)) finish(c);
      return count + later;
    }
    [[nodiscard]] std::size_t in_flight() const { return inner_.in_flight() + at_once_.size(); }
    [[nodiscard]] unsigned depth() const { return inner_.depth(); }

   private:
    struct place {
      request asked;
      std::optional<fault> has;
      std::uint64_t bit = 0;
      buffer changed;  // data of a write with a wrong bit
    };

    void submit_one(const request& r, const geometry& shape) {
      if (device_.failed_.failed()) return at_once_.push({r.tag, device_failed});
      const std::optional<fault> has = has_blocks_of(shape, r) ? device_.fault_for(r) : std::nullopt;
      if (!has) return pass(r, r, std::nullopt);
      request changed = r;
      switch (*has) {
        case fault::io_error: return at_once_.push({r.tag, request_failed});
        case fault::no_space: return at_once_.push({r.tag, std::errc::no_space_on_device});
        case fault::failed_flush:
          device_.failed_.fail("a flush of device " + device_.name() + " failed");
          return at_once_.push({r.tag, request_failed});
        case fault::lost_write: return at_once_.push({r.tag, std::errc{}});
        case fault::short_transfer:
          changed.count = r.count / 2;
          if (changed.count == 0) return at_once_.push({r.tag, request_failed});
          break;
        case fault::misdirected: changed.first = device_.other_place(r, shape); break;
        case fault::bit_flip:
        case fault::failed_answer: break;
      }
      pass(r, changed, has);
    }

    void pass(const request& asked, request passed, std::optional<fault> has) {
      const std::size_t at = free_.back();
      free_.pop_back();
      place& mine = places_[at];
      mine.asked = asked;
      mine.has = has;
      if (has == fault::bit_flip) {
        const std::size_t bytes = std::size_t{asked.count} * device_.shape().block_bytes;
        mine.bit = device_.random_below(bytes * 8);
        if (writes(asked.what)) {
          mine.changed = buffer(bytes);
          std::memcpy(mine.changed.data(), asked.data, bytes);
          flip(mine.changed.data(), mine.bit);
          passed.data = mine.changed.data();
        }
      }
      passed.tag = at;
      static_cast<void>(inner_.submit({&passed, 1}));
    }

    void finish(completion& c) {
      place& mine = places_[c.tag];
      free_.push_back(c.tag);
      if (c.succeeded() && (mine.has == fault::short_transfer || mine.has == fault::failed_answer))
        c.error = request_failed;
      if (c.succeeded() && mine.has == fault::bit_flip && mine.asked.what == operation::read)
        flip(mine.asked.data, mine.bit);
      mine.changed = buffer();
      c.tag = mine.asked.tag;
    }

    static void flip(std::byte* data, std::uint64_t bit) noexcept {
      data[bit / 8] ^= static_cast<std::byte>(1U << (bit % 8));
    }

    faulty& device_;
    typename Inner::queue inner_;
    completion_ring at_once_;
    std::vector<place> places_;  // in flight, by the tag that the inner queue has
    std::vector<std::size_t> free_;
  };

 private:
  [[nodiscard]] std::optional<fault> fault_for(const request& r) {
    const std::scoped_lock lock(mutex_);
    std::optional<fault> has = planned(r);
    if (!has && every_ != 0 && !kinds_.empty() && random_.one_in(every_)) {
      const fault kind = kinds_[random_.below(kinds_.size())];
      if (can_have(r.what, kind)) has = kind;
    }
    if (has) injected_.push_back({*has, r});
    return has;
  }

  [[nodiscard]] std::optional<fault> planned(const request& r) {
    std::optional<fault> has;
    for (plan& p : plans_) {
      if (p.times == 0 || !can_have(r.what, p.kind) || (p.what && *p.what != r.what) || (p.only && *p.only != r.of) ||
          r.first >= p.end || (p.first != 0 && r.first + r.count <= p.first))
        continue;
      if (p.skip > 0) {
        --p.skip;
      } else if (!has) {
        --p.times;
        has = p.kind;
      }
    }
    return has;
  }

  [[nodiscard]] std::uint64_t random_below(std::uint64_t bound) {
    const std::scoped_lock lock(mutex_);
    return random_.below(bound);
  }

  // Another place for a request of this size; the same one if there is no other.
  [[nodiscard]] std::uint64_t other_place(const request& r, const geometry& shape) {
    const std::uint64_t places = shape.blocks - r.count + 1;
    if (places == 1) return r.first;
    return (r.first + 1 + random_below(places - 1)) % places;
  }

  mutable std::mutex mutex_;
  splitmix64 random_;
  std::vector<plan> plans_;
  std::vector<fault> kinds_;
  std::uint64_t every_ = 0;
  std::vector<injected_fault> injected_;
  fail_stop failed_;
};

}  // namespace pmlab::blocks
