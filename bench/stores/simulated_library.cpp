#include "bench/stores/simulated_library.hpp"
#include <pmlab/base/error.hpp>

#include <filesystem>

#include <dlfcn.h>

namespace pmlab::store_bench {

void* simulated_library_function(const std::string& store) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/pmlab/simulated/stores";
  void* const loaded = ::dlopen((folder / (store + ".so")).c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = loaded == nullptr ? nullptr : ::dlsym(loaded, ("pmlab_simulated_" + store).c_str());
  if (found == nullptr)
    throw error("cannot load the simulated " + store + ": " + ::dlerror(), "build or install all of pmlab");
  return found;
}

}  // namespace pmlab::store_bench
