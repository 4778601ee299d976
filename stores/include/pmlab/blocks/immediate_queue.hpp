// The queue of a device that performs a request when it is submitted.
#pragma once

#include <pmlab/blocks/completion_ring.hpp>
#include <pmlab/blocks/device.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>

namespace pmlab::blocks {

// A request completes at the next reap. Only one beyond the end fails. `Device` has shape(), name() and
// perform(const request&), and makes this class its friend if the last one is private. Thread safety: belongs to one
// thread.
template <class Device>
class immediate_queue {
 public:
  // At most `depth` requests in flight. `device` outlives it. Throws pmlab::error if `depth` is 0.
  immediate_queue(Device& device, unsigned depth) : device_(device), completed_(depth), name_(device.name()) {}

  // See blocks/device.hpp.
  [[nodiscard]] std::size_t submit(std::span<const request> requests) {
    const std::size_t taken = std::min(requests.size(), completed_.room());
    for (const request& r : requests.first(taken)) check_request(device_.shape(), r, name_);
    for (const request& r : requests.first(taken)) {
      const bool is_within = has_blocks_of(device_.shape(), r);
      if (is_within) device_.perform(r);
      completed_.push({r.tag, is_within ? std::errc{} : beyond_end});
    }
    return taken;
  }
  // See blocks/device.hpp. It never waits.
  [[nodiscard]] std::size_t reap(std::span<completion> completions, std::size_t /*at_least*/) {
    return completed_.pop(completions);
  }
  // Requests that were not reaped.
  [[nodiscard]] std::size_t in_flight() const noexcept { return completed_.size(); }
  // The one it was made with.
  [[nodiscard]] unsigned depth() const noexcept { return completed_.capacity(); }

 private:
  Device& device_;
  completion_ring completed_;
  std::string name_;
};

}  // namespace pmlab::blocks
