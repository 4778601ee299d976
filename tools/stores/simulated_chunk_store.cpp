#include "tools/stores/simulated_chunk_store.hpp"
#include <pmlab/base/error.hpp>

#include <filesystem>
#include <string>

#include <dlfcn.h>

namespace pmlab::store_bench {

std::unique_ptr<volume_subject> make_simulated_chunk_store(const store_setup& setup, blocks::any_device& device) {
  namespace fs = std::filesystem;
  static const auto make = [] {
    const fs::path library =
        fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/pmlab/simulated/stores/chunk_store.so";
    void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const found = loaded == nullptr ? nullptr : ::dlsym(loaded, "pmlab_simulated_chunk_store");
    if (found == nullptr)
      throw error(std::string("cannot load the simulated chunk_store: ") + ::dlerror(),
                  "build or install all of pmlab");
    return reinterpret_cast<decltype(&pmlab_simulated_chunk_store)>(found);
  }();
  return std::unique_ptr<volume_subject>(make(setup, device));
}

}  // namespace pmlab::store_bench
