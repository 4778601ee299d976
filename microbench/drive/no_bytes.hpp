// The storage of a modelled drive that is measured: a device without bytes.
//
// A suite looks at times only. Without bytes a drive of any size takes no memory, and the machine's copies are not in
// the way of an emulated one.
#pragma once

#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/immediate_queue.hpp>

#include <string>

namespace pmlab::drive {

// Reads change nothing, writes are dropped.
class no_bytes {
 public:
  explicit no_bytes(const blocks::geometry& shape) : shape_(shape) { blocks::check_geometry(shape, name()); }

  using queue = blocks::immediate_queue<no_bytes>;

  [[nodiscard]] blocks::geometry shape() const noexcept { return shape_; }
  [[nodiscard]] std::string name() const { return "no-bytes"; }
  [[nodiscard]] std::string failure() const { return {}; }

 private:
  friend queue;

  void perform(const blocks::request& /*r*/) noexcept {}

  blocks::geometry shape_;
};

static_assert(blocks::device<no_bytes>);

}  // namespace pmlab::drive
