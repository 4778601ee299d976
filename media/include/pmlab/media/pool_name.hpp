// Naming a new pool, so that a power failure at any point leaves no pool or a complete one.
//
// It is created as PATH.unfinished, synced, renamed to PATH, and its folder is synced; only then does its creator
// return, and only then can it hold data that a caller relies on. The rename may still be lost if no call that synced
// the folder has returned: so a PATH.unfinished that is complete is adopted, and never deleted. The rename replaces
// nothing: `mv` and other programs take no lock, and PATH may be a pool by then.
#pragma once

#include <pmlab/base/durable_name.hpp>
#include <pmlab/base/error.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace pmlab::media {

// The name of the pool `path` while it is made.
[[nodiscard]] inline std::string unfinished_name(const std::string& path) { return path + ".unfinished"; }

// Held while a pool is created or adopted in the folder of `path`, so that no other process mistakes its unfinished
// file for one that a crash left. The lock (flock of the folder) ends with the process that holds it, and leaves no
// file behind.
class folder_lock {
 public:
  // Waits until the lock is free. A folder that is missing is not locked: creating the pool there then reports it.
  // Throws pmlab::error: the folder cannot be read, its file system has no locks; or half an hour has passed, as a
  // large pool on a slow disk takes minutes.
  explicit folder_lock(const std::string& path)
      : folder_(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (!folder_.is_open() && errno == ENOENT) return;
    if (!folder_.is_open()) refuse(path, errno);
    using clock = std::chrono::steady_clock;
    constexpr std::chrono::milliseconds pause(5);
    const clock::time_point deadline = clock::now() + std::chrono::minutes(30);
    while (::flock(folder_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) refuse(path, errno);
      if (clock::now() > deadline)
        throw error("cannot make pool " + path + ": another process has locked its folder for half an hour",
                    "wait until the pool that it makes there is done");
      std::this_thread::sleep_for(pause);
    }
  }
  folder_lock(const folder_lock&) = delete;
  folder_lock& operator=(const folder_lock&) = delete;
  ~folder_lock() {
    // Unlocked, not only closed: a child process that was forked since has the descriptor, too.
    if (folder_.is_open()) ::flock(folder_.get(), LOCK_UN);
  }

 private:
  // Without the lock, two processes take each other's unfinished file.
  [[noreturn]] static void refuse(const std::string& path, int failure) {
    throw error("cannot make pool " + path + ": cannot lock folder " + folder_of(path) + ": " + std::strerror(failure),
                "let this user read the folder, or make the pool in another one");
  }

  descriptor folder_;
};

// Throws the pmlab::error for an unfinished file of `path` that this user can neither read nor replace. `failure`:
// errno of the attempt. REQUIRES: the caller holds the folder_lock of `path`, so that no process is making the pool.
[[noreturn]] inline void refuse_unfinished(const std::string& path, int failure) {
  const std::string unfinished = unfinished_name(path);
  struct stat status {};
  const bool is_of_another = ::lstat(unfinished.c_str(), &status) == 0 && status.st_uid != ::geteuid();
  const std::string of_whom = is_of_another ? " of user " + std::to_string(status.st_uid) : "";
  throw error("cannot finish pool " + path + ": a making" + of_whom + " that was cut off left " + unfinished + ": " +
                  std::strerror(failure),
              is_of_another ? "let that user make the pool or remove the file, or choose another path"
                            : "check the permissions of that file and of its folder, or remove it");
}

// The unfinished file of `path`, for reading; none: there is no such file. libpmemobj gives a file its permissions
// last: that of a process that was killed before has none, and gets those of a pool here, if it is this user's.
// REQUIRES and throws as refuse_unfinished.
[[nodiscard]] inline descriptor opened_unfinished(const std::string& path) {
  const std::string unfinished = unfinished_name(path);
  constexpr int flags = O_RDONLY | O_NONBLOCK | O_CLOEXEC;
  descriptor file(::open(unfinished.c_str(), flags));
  if (file.is_open() || errno == ENOENT) return file;
  const int failure = errno;
  // The file itself, and not what a link leads to.
  const descriptor place(::open(unfinished.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  const bool is_own = ::fstat(place.get(), &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == ::geteuid();
  if (failure != EACCES || !is_own) refuse_unfinished(path, failure);
  const std::string name = "/proc/self/fd/" + std::to_string(place.get());
  if (::chmod(name.c_str(), 0600) == 0) file = descriptor(::open(name.c_str(), flags));
  if (!file.is_open()) refuse_unfinished(path, errno);
  return file;
}

// Gives the unfinished file of `path` its name if is_complete(descriptor) holds for it; false: there is no such file,
// or it is not complete. If `path` exists by then, both files stay. REQUIRES: the caller holds the folder_lock of
// `path`. Throws pmlab::error: a process has the unfinished file open, this user cannot read it, or the device fails.
template <class IsComplete>
[[nodiscard]] bool adopt_unfinished(const std::string& path, IsComplete&& is_complete) {
  const std::string unfinished = unfinished_name(path);
  const descriptor file = opened_unfinished(path);
  if (!file.is_open()) return false;
  // libpmemobj holds this lock while a pool is open.
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
    throw error("pool " + path + " is being made: another process has " + unfinished + " open",
                "wait until it is done");
  if (!is_complete(file.get())) return false;
  // As for a new pool: the bytes that the crash kept may not have reached the device yet.
  sync_file(file.get(), unfinished);
  static_cast<void>(rename_durably_to_new(unfinished, path));
  return true;
}

}  // namespace pmlab::media
