// A key-value device in a file: its flash, its memory, its key spaces and iterators.
#pragma once

#include "tools/kvssd/engine.hpp"
#include "tools/kvssd/files.hpp"
#include "tools/kvssd/iterators.hpp"
#include "tools/kvssd/key_spaces.hpp"
#include "tools/kvssd/uri.hpp"
#include "tools/kvssd/workers.hpp"

namespace pmlab::kvssd {

// Opens or makes the device of a URI. Throws pmlab::error: no such file, open elsewhere, another version, damaged,
// full. Thread safety: any operation from any thread.
class device {
 public:
  explicit device(const device_uri& uri);

  [[nodiscard]] engine& pairs() noexcept { return engine_; }
  [[nodiscard]] key_spaces& spaces() noexcept { return spaces_; }
  [[nodiscard]] iterators& open_iterators() noexcept { return iterators_; }
  [[nodiscard]] workers& requests() noexcept { return workers_; }

 private:
  device(const device_uri& uri, const device_files& at);

  media::pmem memory_;
  blocks::any_device flash_;
  engine engine_;
  key_spaces spaces_;
  iterators iterators_;
  workers workers_;  // last: its requests end before the rest does
};

}  // namespace pmlab::kvssd
