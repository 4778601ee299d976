// The program pmlab-simulated: finds the indexes that were built for the simulated machine.
#include "tools/cli/simulated_program.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <sys/personality.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

namespace fs = std::filesystem;

constexpr unsigned long current_personality = 0xffffffff;

bool randomised() {
  const int now = ::personality(current_personality);
  return now == -1 || (now & ADDR_NO_RANDOMIZE) == 0;
}

// Each registers itself. In the order of their names, so that they lie at the same addresses at every run.
void load_indexes() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/pmlab/simulated";
  std::vector<fs::path> files;
  std::error_code failure;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, failure))
    if (entry.path().extension() == ".so") files.push_back(entry.path());
  if (files.empty())
    throw error("there are no simulated indexes in " + folder.string(), "build or install all of pmlab");
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files)
    if (::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
      throw error(std::string("cannot load a simulated index: ") + ::dlerror(), "build or install all of pmlab again");
}

}  // namespace

void start_program(char** values) {
  if (randomised()) {
    // Again, once, with the same addresses at every run; where that is not allowed, with those that come.
    const int now = ::personality(current_personality);
    if (now != -1 && ::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) != -1 && !randomised())
      ::execv("/proc/self/exe", values);
  }
  load_indexes();
}

std::vector<command> own_commands(CLI::App& /*program*/, const arguments& /*given*/) { return {}; }

void hand_over(const arguments& /*given*/) {}

void refuse_damaged_pool(const std::string& /*path*/) {}

std::string doubt_about_simulation() {
  return randomised() ? "the kernel does not let this program have the same addresses at every run: figures of indexes "
                        "that hash addresses (tbb_hash) may differ between runs"
                      : "";
}

}  // namespace pmlab::cli
