// The storage of a modelled drive that is measured: a device without bytes.
//
// A suite looks at times only. Without bytes a drive of any size takes no memory, and the machine's copies are not in
// the way of an emulated one.
#pragma once

#include <pmlab/blocks/completion_ring.hpp>
#include <pmlab/blocks/device.hpp>

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>

namespace pmlab::drive {

// Reads change nothing, writes are dropped.
class no_bytes {
 public:
  explicit no_bytes(const blocks::geometry& shape) : shape_(shape) { blocks::check_geometry(shape, name()); }

  class queue {
   public:
    queue(no_bytes& device, unsigned depth) : device_(device), completed_(depth), name_(device.name()) {}

    [[nodiscard]] std::size_t submit(std::span<const blocks::request> requests) {
      const std::size_t taken = std::min(requests.size(), completed_.room());
      for (const blocks::request& r : requests.first(taken)) check_request(device_.shape_, r, name_);
      for (const blocks::request& r : requests.first(taken)) completed_.push({r.tag, std::errc{}});
      return taken;
    }
    [[nodiscard]] std::size_t reap(std::span<blocks::completion> completions, std::size_t /*at_least*/) {
      return completed_.pop(completions);
    }
    [[nodiscard]] std::size_t in_flight() const noexcept { return completed_.size(); }
    [[nodiscard]] unsigned depth() const noexcept { return completed_.capacity(); }

   private:
    no_bytes& device_;
    blocks::completion_ring completed_;
    std::string name_;
  };

  [[nodiscard]] blocks::geometry shape() const noexcept { return shape_; }
  [[nodiscard]] std::string name() const { return "no-bytes"; }
  [[nodiscard]] std::string failure() const { return {}; }

 private:
  blocks::geometry shape_;
};

static_assert(blocks::device<no_bytes>);

}  // namespace pmlab::drive
