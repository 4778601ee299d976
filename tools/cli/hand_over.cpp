// The program pmlab: hands simulated runs over to pmlab-simulated, which lies beside it.
#include "tools/cli/completion.hpp"
#include "tools/cli/doctor.hpp"
#include "tools/cli/facts.hpp"
#include "tools/cli/python.hpp"
#include "tools/cli/simulated_program.hpp"
#include "tools/pool/inspect.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/probe_pool.hpp>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <sys/personality.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

namespace fs = std::filesystem;

fs::path simulated_program() { return fs::read_symlink("/proc/self/exe").parent_path() / "pmlab-simulated"; }

bool is_there() {
  std::error_code ignored;
  return fs::exists(simulated_program(), ignored);
}

constexpr unsigned long current_personality = 0xffffffff;

// The kernel keeps it for the program that is run next. False: not permitted.
bool switch_randomisation_off() {
  const int now = ::personality(current_personality);
  return now != -1 && ::personality(static_cast<unsigned long>(now) | ADDR_NO_RANDOMIZE) != -1;
}

}  // namespace

void start_program(char** /*values*/) {}

std::vector<command> own_commands(CLI::App& program, const arguments& given) {
  std::vector<command> commands = {add_doctor(program)};
  for (command& c : add_python_commands(program, given)) commands.push_back(std::move(c));
  commands.push_back(add_pod(program));
  commands.push_back(add_pool(program));
  commands.push_back(add_facts(program));
  commands.push_back(add_completion(program));
  commands.push_back(add_manual(program));
  return commands;
}

void hand_over(const arguments& given) {
  if (!is_there())
    throw error("there is no program " + simulated_program().string() + " for simulated media",
                "build the target pmlab_simulated_program, or install all of pmlab");
  std::vector<std::string> words = {"pmlab"};
  words.insert(words.end(), given.begin(), given.end());
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  // pmlab-simulated sees whether it worked.
  static_cast<void>(switch_randomisation_off());
  ::execv(simulated_program().c_str(), pointers.data());
  throw error("cannot run " + simulated_program().string() + ": " + std::strerror(errno), "check its permissions");
}

std::string doubt_about_simulation() { return {}; }

void refuse_damaged_pool(const std::string& path) {
  pool::refuse_damaged(path, std::chrono::ceil<std::chrono::seconds>(media::time_to_probe(path)));
}

std::string state_of_simulation() {
  if (!is_there()) return "not installed: no pmlab-simulated beside this program";
  const int now = ::personality(current_personality);
  const bool allowed = switch_randomisation_off();
  if (allowed) ::personality(static_cast<unsigned long>(now));
  return allowed ? "any number of cores up to 127 in virtual time, the same figures at every run"
                 : "any number of cores up to 127 in virtual time; the kernel does not let addresses be the same at "
                   "every run, so figures of indexes that hash addresses (tbb_hash) may differ between runs";
}

}  // namespace pmlab::cli
