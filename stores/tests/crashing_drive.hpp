// A drive with a volatile cache, for tests that crash: the durable content, and the sectors that were written since.
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/immediate_queue.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::tests {

// Thread safety: requests from any thread; the rest while no request runs.
class crashing_drive {
 public:
  explicit crashing_drive(const blocks::geometry& shape)
      : shape_(shape), now_(shape.bytes()), durable_(shape.bytes()), is_dirty_(shape.bytes() / sector) {}
  crashing_drive(const crashing_drive&) = delete;
  crashing_drive& operator=(const crashing_drive&) = delete;

  class queue : public blocks::immediate_queue<crashing_drive> {
   public:
    queue(crashing_drive& drive, unsigned depth) : immediate_queue(drive, depth), drive_(drive) {}
    [[nodiscard]] std::size_t submit(std::span<const blocks::request> requests) {
      const bool was_idle = in_flight() == 0;
      const std::size_t taken = immediate_queue::submit(requests);
      const std::scoped_lock lock(drive_.mutex_);
      if (was_idle) ++drive_.waits_;
      drive_.most_in_flight_ = std::max(drive_.most_in_flight_, in_flight());
      return taken;
    }

   private:
    crashing_drive& drive_;
  };
  [[nodiscard]] blocks::geometry shape() const noexcept { return shape_; }
  [[nodiscard]] std::string name() const { return "crashing"; }
  [[nodiscard]] std::string failure() const { return {}; }

  // What a power failure now leaves: each sector in the cache survives or not.
  [[nodiscard]] std::vector<std::byte> after_crash(splitmix64& random) const {
    std::vector<std::byte> left = durable_;
    const std::uint64_t kind = random.below(4);  // all lost, all kept, or some
    for (std::size_t s = 0; s < is_dirty_.size(); ++s)
      if (is_dirty_[s] && (kind == 0 || (kind > 1 && random.one_in(2))))
        std::memcpy(left.data() + s * sector, now_.data() + s * sector, sector);
    return left;
  }
  void restore(const std::vector<std::byte>& content) {
    now_ = durable_ = content;
    is_dirty_.assign(is_dirty_.size(), false);
  }
  [[nodiscard]] std::vector<std::byte>& content() noexcept { return now_; }
  // The most requests of a queue that were in flight at once since the last call.
  [[nodiscard]] std::size_t take_most_in_flight() noexcept { return std::exchange(most_in_flight_, 0); }
  // How often a queue without requests got some since the last call: so often its thread waits for the drive.
  [[nodiscard]] std::size_t take_waits() noexcept { return std::exchange(waits_, 0); }

 private:
  friend queue;
  friend blocks::immediate_queue<crashing_drive>;
  static constexpr std::size_t sector = blocks::least_block_bytes;

  void perform(const blocks::request& r) {
    const std::scoped_lock lock(mutex_);
    const std::size_t first = r.first * shape_.block_bytes;
    const std::size_t bytes = std::size_t{r.count} * shape_.block_bytes;
    if (r.what == blocks::operation::read) {
      std::memcpy(r.data, now_.data() + first, bytes);
    } else if (blocks::writes(r.what)) {
      std::memcpy(now_.data() + first, r.data, bytes);
      for (std::size_t s = first / sector; s < (first + bytes) / sector; ++s) is_dirty_[s] = true;
      if (r.what == blocks::operation::write_durable) make_durable(first / sector, bytes / sector);
    } else if (r.what == blocks::operation::flush) {
      make_durable(0, is_dirty_.size());
    }
  }
  void make_durable(std::size_t first, std::size_t count) {
    for (std::size_t s = first; s < first + count; ++s) {
      if (!is_dirty_[s]) continue;
      std::memcpy(durable_.data() + s * sector, now_.data() + s * sector, sector);
      is_dirty_[s] = false;
    }
  }

  blocks::geometry shape_;
  std::mutex mutex_;
  std::vector<std::byte> now_;
  std::vector<std::byte> durable_;
  std::vector<bool> is_dirty_;
  std::size_t most_in_flight_ = 0;
  std::size_t waits_ = 0;
};

static_assert(blocks::device<crashing_drive>);

}  // namespace pmlab::tests
