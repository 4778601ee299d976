// Ticks from a thread of their own: in the program pmlab.
#include "bench/support/ticker.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace pmlab::bench {

struct ticker::running {
  std::mutex mutex;
  std::condition_variable ended;
  bool ends = false;
  std::thread thread;
};

double real_seconds() noexcept {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

ticker::ticker(void (*tick)(void*), void* context) : running_(std::make_unique<running>()) {
  running_->thread = std::thread([r = running_.get(), tick, context] {
    std::unique_lock lock(r->mutex);
    while (!r->ended.wait_for(lock, std::chrono::milliseconds(200), [r] { return r->ends; })) tick(context);
  });
}

ticker::~ticker() {
  {
    const std::scoped_lock lock(running_->mutex);
    running_->ends = true;
  }
  running_->ended.notify_one();
  running_->thread.join();
}

}  // namespace pmlab::bench
