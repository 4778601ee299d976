// The block device `simulated_drive`: a drive of the simulated machine.
//
// For code that is built by `pmlab_simulate`, beside the medium `simulated`: a crash interrupts both at one moment.
#pragma once

#include "checker/simulator/calls.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/blocks/device.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>

namespace pmlab::simulator {

// Thread safety: as blocks/device.hpp requires, of (simulated) threads.
class simulated_drive {
 public:
  // The watched drive of this number, whose content may come from an earlier run or crash.
  explicit simulated_drive(unsigned number = 0) : drive_(pmlab_drive_watched(number)) {
    if (drive_ == nullptr)
      throw error("the simulated machine watches no drive " + std::to_string(number), "begin a run with one");
    pmlab_drive_shape s;
    pmlab_drive_shape_of(drive_, &s);
    shape_ = {s.blocks, s.block_bytes, s.atomic_bytes, s.volatile_cache != 0};
  }
  // A new separate drive, which no crash cuts off.
  explicit simulated_drive(const blocks::geometry& shape) : shape_(shape), owned_(true) {
    blocks::check_geometry(shape, name());
    const pmlab_drive_shape s{shape.blocks, shape.block_bytes, shape.atomic_bytes, shape.volatile_cache ? 1U : 0U};
    drive_ = pmlab_drive_make(&s);
    if (drive_ == nullptr) throw error("no room for a simulated drive", "give it fewer blocks");
  }
  simulated_drive(const simulated_drive&) = delete;
  simulated_drive& operator=(const simulated_drive&) = delete;
  ~simulated_drive() {
    if (owned_) pmlab_drive_drop(drive_);
  }

  class queue {
   public:
    queue(simulated_drive& device, unsigned depth)
        : device_(device), depth_(depth), handle_(pmlab_drive_open_queue(device.drive_)) {
      if (depth == 0) throw error("a queue of depth 0", "choose a depth of at least 1");
    }
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;
    ~queue() { pmlab_drive_close_queue(handle_); }

    [[gnu::noinline]] std::size_t submit(std::span<const blocks::request> requests) {
      const std::size_t taken = std::min<std::size_t>(requests.size(), depth_ - in_flight());
      for (const blocks::request& r : requests.first(taken)) blocks::check_request(device_.shape_, r, device_.name());
      for (const blocks::request& r : requests.first(taken)) {
        const pmlab_drive_request one{static_cast<unsigned>(r.what), r.count, r.first, r.data, r.tag};
        pmlab_drive_submit(handle_, &one, __builtin_return_address(0));
      }
      return taken;
    }
    [[gnu::noinline]] std::size_t reap(std::span<blocks::completion> completions, std::size_t at_least) {
      const void* const caller = __builtin_return_address(0);
      std::array<std::uint64_t, 16> tags;
      std::size_t count = 0;
      for (std::size_t more = tags.size(); more == tags.size();) {
        const std::size_t room = std::min(tags.size(), completions.size() - count);
        more = pmlab_drive_reap(handle_, tags.data(), room, at_least > count ? at_least - count : 0, caller);
        for (std::size_t i = 0; i < more; ++i)
          completions[count++] = {tags[i],
                                  pmlab_drive_was_refused(handle_, tags[i]) ? blocks::beyond_end : std::errc{}};
      }
      return count;
    }
    [[nodiscard]] std::size_t in_flight() const noexcept { return pmlab_drive_in_flight(handle_); }
    [[nodiscard]] unsigned depth() const noexcept { return depth_; }

   private:
    simulated_drive& device_;
    unsigned depth_;
    void* handle_;
  };

  [[nodiscard]] blocks::geometry shape() const noexcept { return shape_; }
  [[nodiscard]] std::string name() const { return "simulated"; }
  [[nodiscard]] std::string failure() const { return {}; }

 private:
  blocks::geometry shape_;
  void* drive_ = nullptr;
  bool owned_ = false;
};

static_assert(blocks::device<simulated_drive>);

}  // namespace pmlab::simulator
