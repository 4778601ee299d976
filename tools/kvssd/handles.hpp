// What the handles of the API lead to.
#pragma once

#include "tools/kvssd/device.hpp"
#include <pmlab/kvssd/kvs_api.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>

// A handle that was closed keeps its memory, so that its use is an error and not a crash.
struct _kvs_key_space_handle {
  _kvs_device_handle* on = nullptr;
  pmlab::kvssd::key_space* of = nullptr;
  std::atomic<bool> is_open{true};
};

struct _kvs_device_handle {
  std::unique_ptr<pmlab::kvssd::device> of;
  std::mutex mutex;  // of the key spaces' handles
  std::map<pmlab::kvssd::key_space*, std::unique_ptr<_kvs_key_space_handle>> spaces;
  std::atomic<bool> is_open{true};
};

namespace pmlab::kvssd {

[[nodiscard]] inline bool is_valid(const _kvs_device_handle* handle) noexcept {
  return handle != nullptr && handle->is_open.load(std::memory_order_acquire);
}
[[nodiscard]] inline bool is_valid(const _kvs_key_space_handle* handle) noexcept {
  return handle != nullptr && handle->is_open.load(std::memory_order_acquire) && is_valid(handle->on);
}

}  // namespace pmlab::kvssd
