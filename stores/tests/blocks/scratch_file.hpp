// A file for a block device on the drive below the temporary folder (tests/support has folders on tmpfs, where there is
// nothing to wait for), removed with its owner.
#pragma once

#include <pmlab/blocks/file/create.hpp>

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>

#include <unistd.h>

namespace pmlab::tests {

class scratch_file {
 public:
  // create_file makes it with `bytes` bytes; 0: there is no file yet.
  explicit scratch_file(std::uint64_t bytes) : path_(next_path()) {
    if (bytes != 0) blocks::create_file(path_, bytes);
  }
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  ~scratch_file() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  [[nodiscard]] static std::string next_path() {
    static std::atomic<unsigned> made{0};
    const std::string name = "pmlab-blocks-" + std::to_string(::getpid()) + "-" + std::to_string(made++);
    return (std::filesystem::temp_directory_path() / name).string();
  }

  std::string path_;
};

}  // namespace pmlab::tests
