// Files that a killed run does not leave behind.
#pragma once

#include <string>

namespace pmlab {

// While it lives, SIGINT, SIGTERM and SIGHUP remove the file at `path` before they end the process; signals that the
// process was started to ignore stay ignored. An empty path is none. At most 64 at a time, of paths shorter than 4096
// characters; others are left alone. Not thread-safe.
class removed_on_interrupt {
 public:
  explicit removed_on_interrupt(std::string path);
  removed_on_interrupt(const removed_on_interrupt&) = delete;
  removed_on_interrupt& operator=(const removed_on_interrupt&) = delete;
  ~removed_on_interrupt();

 private:
  std::string path_;
};

}  // namespace pmlab
