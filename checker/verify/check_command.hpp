// A check of crash states by a command: each state is a file, which the command opens and judges by its exit status.
#pragma once

#include <pmlab/base/durable_name.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

namespace pmlab::verify {

// A file in the folder of TMPDIR, or in memory, whose name no other process uses. Removed in the end.
class scratch_file {
 public:
  explicit scratch_file(const std::string& suffix);
  scratch_file(const scratch_file&) = delete;
  scratch_file& operator=(const scratch_file&) = delete;
  ~scratch_file();
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // From now on SIGHUP, SIGINT and SIGTERM remove those that there are, and end the process.
  static void remove_on_signals();
  // Then also the file at `path`, a text that stays until the process ends. False: there are too many.
  static bool remove_too(const char* path);

 private:
  std::string path_;
};

// The last lines of a file.
[[nodiscard]] std::string last_part(const std::string& path);

// One check at a time, of the image at `image`. The command is one of the shell; it gets the path as its last argument,
// or in place of each {}, and in the environment variable PMLAB_IO_MARKS the path of a file with the marks before the
// crash, a line for each. Status 0: sound. Its output goes to a file.
class check_command {
 public:
  // `server`: a shared object by which a check of plain words is started once, and copied for each state; "": it is
  // started for each.
  check_command(const std::string& command, std::string image, double seconds, std::string server = "");
  check_command(const check_command&) = delete;
  check_command& operator=(const check_command&) = delete;
  ~check_command();

  // The command with the path of an image.
  [[nodiscard]] static std::string with_path(std::string command, const std::string& path);
  void start(const std::vector<std::string>& marks);
  [[nodiscard]] bool runs() const noexcept { return runs_; }
  // Waits until one of those that run has ended. REQUIRES: one runs.
  static void wait_for_one(const std::vector<check_command*>& checks);
  // "" or the violation; nothing: it runs still. Throws pmlab::error if it cannot be run; if it is killed; and if it
  // dies of another signal or runs for too long, and has not shown that it works: it may be its own failure as well as
  // the state's.
  [[nodiscard]] std::optional<std::string> verdict();
  // It has ended on a state that a program left, or found one sound: from now on a state at which it dies of a signal,
  // or never ends, is a violation.
  void works() noexcept { works_ = true; }

 private:
  [[nodiscard]] std::string judge(int status) const;
  void spawn(bool as_server);
  [[nodiscard]] bool serve();
  void end_child() noexcept;

  std::string command_;
  std::string image_;
  double seconds_;
  scratch_file marks_file_{".marks"};
  scratch_file output_{".output"};
  std::vector<std::string> words_;  // words of the command, without a shell; none: it needs one
  std::size_t marks_ = 0;
  std::string server_;
  bool runs_ = false;
  bool works_ = false;
  pid_t child_ = 0;
  descriptor ended_;     // readable when the check has ended
  descriptor requests_;  // to a server
  std::chrono::steady_clock::time_point started_;
};

}  // namespace pmlab::verify
