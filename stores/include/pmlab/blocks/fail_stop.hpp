// The state of a device that a failed flush has ended (rule B5 in blocks/device.hpp).
//
// After a failed flush the content of the drive is unknown: Linux drops the pages and reports the error once. Trying
// again would report success for data that is lost. Therefore no later request succeeds.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <atomic>
#include <mutex>
#include <string>

namespace pmlab::blocks {

// Thread safety: all of it, from any thread. `failed` is one load.
class fail_stop {
 public:
  // The first call's reason stays.
  void fail(const std::string& reason) {
    const std::scoped_lock lock(mutex_);
    if (reason_.empty())
      reason_ =
          reason +
          "; no request succeeds after a failed flush: close the device, and check its store when it is opened again";
    failed_.store(true, std::memory_order_release);
  }

  // True: no request may succeed any more.
  [[nodiscard]] bool failed() const noexcept { return failed_.load(std::memory_order_acquire); }

  // Empty while the device works.
  [[nodiscard]] std::string reason() const {
    const std::scoped_lock lock(mutex_);
    return reason_;
  }

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::string reason_;
};

}  // namespace pmlab::blocks
