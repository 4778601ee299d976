// The indexes that can be verified.
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include <pmlab/verify/subjects.hpp>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <system_error>

#include <dlfcn.h>

namespace pmlab::verify {
namespace {

// Filled while the program starts and while shared objects are loaded.
std::deque<subject>& all() {
  static std::deque<subject> subjects;
  return subjects;
}

std::string& last_registered() {
  static std::string name;
  return name;
}

subject* find(std::string_view name) {
  for (subject& s : all())
    if (s.name == name) return &s;
  return nullptr;
}

// The shared objects of this program lie beside it.
std::filesystem::path object_folder() {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  return program.parent_path().parent_path() / "lib" / "pmlab" / "simulated" / "verify";
}

}  // namespace

std::vector<std::string> subject_names() {
  std::vector<std::string> names;
  for (const subject& s : all()) names.push_back(s.name);
  std::sort(names.begin(), names.end());
  return names;
}

std::string load_subject(const std::string& path) {
  last_registered().clear();
  if (::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL) == nullptr)
    throw error("cannot load " + path + ": " + ::dlerror(), "build it with pmlab_simulate, or scripts/pmlab-c++");
  if (last_registered().empty())
    throw error(path + " registers no index",
                "see verify/register_subject.hpp, or give a PiBench library by --library");
  return last_registered();
}

const subject& find_subject(std::string_view name) {
  subject* const found = find(name);
  if (found == nullptr) {
    const std::vector<std::string> names = subject_names();
    const std::vector<std::string_view> known(names.begin(), names.end());
    throw error("there is no index '" + std::string(name) + "' to verify",
                "did you mean " + std::string(nearest(name, known)) + "? `pmlab list` names the indexes");
  }
  if (found->open_simulated == nullptr) {
    const std::filesystem::path object = object_folder() / (found->name + ".so");
    if (!std::filesystem::exists(object))
      throw error("the simulated half of " + found->name + " is missing", "build pmlab again: cmake --build");
    load_subject(object.string());
  }
  return *found;
}

}  // namespace pmlab::verify

extern "C" void pmlab_verify_register(const pmlab::verify::subject* part) {
  using namespace pmlab::verify;
  last_registered() = part->name;
  subject* known = find(part->name);
  if (known == nullptr) {
    all().push_back({});
    known = &all().back();
    known->name = part->name;
  }
  known->ordered = part->ordered;
  known->key_of_hash = part->key_of_hash;
  if (part->open_simulated != nullptr) known->open_simulated = part->open_simulated;
  // The program's own is faster than an instrumented one; a mutant's is its own.
  if (known->open_image == nullptr || part->is_mutant) known->open_image = part->open_image;
}
