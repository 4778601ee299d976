// A shared library with PiBench's interface.
#include <pmlab/base/error.hpp>
#include <pmlab/pibench/library.hpp>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>
#include <system_error>
#include <vector>

#include <dlfcn.h>
#include <unistd.h>

namespace pmlab::pibench {
namespace {

bool holds(const std::string& path, std::string_view text) {
  std::ifstream file(path, std::ios::binary);
  if (!std::filesystem::is_regular_file(path) || !file)
    throw error("there is no library " + path, "check the path and its permissions");
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  return std::search(bytes.begin(), bytes.end(), text.begin(), text.end()) != bytes.end();
}

}  // namespace

library::library(const std::string& path) : path_(path) {
  if (!std::filesystem::exists(path)) throw error("there is no library " + path, "check the path");
  // Without a slash the loader would look in its own folders.
  void* const handle = ::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = ::dlerror();
    throw error("cannot load " + path + ": " + (why != nullptr ? why : "unknown reason"),
                "build it as a shared library whose own libraries can be found");
  }
  create_tree_ = reinterpret_cast<decltype(create_tree_)>(::dlsym(handle, "create_tree"));
  if (create_tree_ == nullptr)
    throw error(path + " has no function create_tree", "export PiBench's interface: pibench/tree_api.hpp");
}

library library::fresh_copy(const std::string& path) {
  // The loader knows a library by its file.
  const std::filesystem::path copy =
      std::filesystem::temp_directory_path() / ("pmlab-" + std::to_string(::getpid()) + "-copy.so");
  std::error_code failed;
  std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing, failed);
  if (failed) throw error("cannot copy " + path + ": " + failed.message(), "free some space in the temporary folder");
  library loaded(copy.string());
  std::filesystem::remove(copy, failed);
  loaded.path_ = path;
  return loaded;
}

bool library::built_for_simulation(const std::string& path) {
  // Every object that reports its accesses calls this when it is loaded, and its name is among those to be found.
  return holds(path, "__tsan_init");
}

void library::check_simulated(const std::string& path) {
  if (!built_for_simulation(path))
    throw error(path + " was not built for the simulated machine", "build it with scripts/pmlab-c++");
  if (holds(path, "libpmemobj.so"))
    throw error(path + " uses libpmemobj, whose accesses and open pools the simulated machine does not see",
                "use libpmem, or mmap and flush instructions");
}

std::unique_ptr<tree_api> library::create(const tree_options_t& options) const {
  tree_api* const tree = create_tree_(options);
  if (tree == nullptr) throw error(path_ + " created no tree", "see what it says about its pool");
  return std::unique_ptr<tree_api>(tree);
}

}  // namespace pmlab::pibench
