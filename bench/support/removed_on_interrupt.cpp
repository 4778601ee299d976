// Files that a killed run does not leave behind.
#include "bench/support/removed_on_interrupt.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <utility>

#include <unistd.h>

namespace pmlab {
namespace {

// A signal handler may neither allocate nor lock: hence plain characters.
constexpr std::size_t path_limit = 4096;
struct doomed_path {
  std::atomic<bool> used{false};
  std::array<char, path_limit> text{};
};
std::array<doomed_path, 64>& doomed_paths() {
  static std::array<doomed_path, 64> paths;
  return paths;
}

extern "C" void remove_files_and_die(int signal) {
  for (doomed_path& p : doomed_paths())
    if (p.used.load(std::memory_order_acquire)) ::unlink(p.text.data());
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void install() {
  static const bool installed = [] {
    doomed_paths();
    for (const int s : {SIGINT, SIGTERM, SIGHUP})
      // As nohup started it.
      if (::signal(s, remove_files_and_die) == SIG_IGN) ::signal(s, SIG_IGN);
    return true;
  }();
  static_cast<void>(installed);
}

}  // namespace

removed_on_interrupt::removed_on_interrupt(std::string path) : path_(std::move(path)) {
  install();
  if (path_.empty() || path_.size() >= path_limit) return;
  for (doomed_path& p : doomed_paths()) {
    if (p.used.load(std::memory_order_relaxed)) continue;
    std::memcpy(p.text.data(), path_.c_str(), path_.size() + 1);
    p.used.store(true, std::memory_order_release);
    return;
  }
}

removed_on_interrupt::~removed_on_interrupt() {
  for (doomed_path& p : doomed_paths())
    if (p.used.load(std::memory_order_relaxed) && path_ == p.text.data())
      p.used.store(false, std::memory_order_release);
}

}  // namespace pmlab
