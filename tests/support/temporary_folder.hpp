// A folder of a test's own, on memory that outlives a process where there is such memory.
#pragma once

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

#include <stdlib.h>

namespace pmlab::tests {

// Made empty under /dev/shm (or, where that is missing, under the system's folder for temporary files); removed with
// all that is in it.
class temporary_folder {
 public:
  temporary_folder() {
    std::error_code ignored;
    const std::filesystem::path shared_memory = "/dev/shm";
    const auto parent =
        std::filesystem::is_directory(shared_memory, ignored) ? shared_memory : std::filesystem::temp_directory_path();
    std::string name = (parent / "pmlab-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a folder under " + parent.string());
    path_ = name;
  }

  ~temporary_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  temporary_folder(const temporary_folder&) = delete;
  temporary_folder& operator=(const temporary_folder&) = delete;

  [[nodiscard]] std::string file(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace pmlab::tests
