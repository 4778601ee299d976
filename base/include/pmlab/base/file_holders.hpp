// The processes that have a file open: for messages about a lock that another process holds.
//
// A lock of flock belongs to the open file, which a forked child shares with its parent: the child keeps the lock of a
// parent that was killed. So the process that took the lock may be gone, and those that have the file open are named.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

namespace pmlab {

// The processes, in ascending order, that have the file of the open descriptor `file` open by another descriptor than
// this one. Only root sees processes of other users. Empty: none is seen.
[[nodiscard]] inline std::vector<pid_t> holders_of(int file) {
  namespace fs = std::filesystem;
  std::vector<pid_t> found;
  struct stat wanted {};
  if (::fstat(file, &wanted) != 0) return found;
  std::error_code ignored;
  for (fs::directory_iterator process("/proc", ignored), end; process != end; process.increment(ignored)) {
    const std::string name = process->path().filename();
    pid_t id = 0;
    const auto [last, failure] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (failure != std::errc{} || last != name.data() + name.size()) continue;
    std::size_t count = id == ::getpid() ? 0 : 1;  // `file` is a descriptor of this process, and is not counted
    for (fs::directory_iterator entry(process->path() / "fd", ignored); entry != end; entry.increment(ignored)) {
      struct stat there {};
      if (::stat(entry->path().c_str(), &there) == 0 && there.st_dev == wanted.st_dev && there.st_ino == wanted.st_ino)
        ++count;
    }
    if (count > 1) found.push_back(id);
  }
  std::ranges::sort(found);
  return found;
}

// The same as text: "in process 17", "in processes 17, 18", "in this process", or `otherwise` if none is seen.
[[nodiscard]] inline std::string holders_as_text(int file, const std::string& otherwise) {
  const std::vector<pid_t> all = holders_of(file);
  if (all.empty()) return otherwise;
  if (all.size() == 1 && all.front() == ::getpid()) return "in this process";
  std::string text = all.size() == 1 ? "in process " : "in processes ";
  for (std::size_t i = 0; i < all.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(all[i]);
  return text;
}

}  // namespace pmlab
