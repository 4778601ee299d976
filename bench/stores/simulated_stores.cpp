#include "bench/stores/simulated_stores.hpp"
#include <pmlab/base/error.hpp>

#include <filesystem>
#include <string>
#include <string_view>

#include <dlfcn.h>

namespace pmlab::store_bench {
namespace {

// The function `pmlab_simulated_STORE` of the library of a store.
template <class Function>
Function* loaded_function(const std::string& store) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib/pmlab/simulated/stores";
  void* const loaded = ::dlopen((folder / (store + ".so")).c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const found = loaded == nullptr ? nullptr : ::dlsym(loaded, ("pmlab_simulated_" + store).c_str());
  if (found == nullptr)
    throw error("cannot load the simulated " + store + ": " + ::dlerror(), "build or install all of pmlab");
  return reinterpret_cast<Function*>(found);
}

auto* maker_of_chunk_store() {
  static auto* const make = loaded_function<decltype(pmlab_simulated_chunk_store)>("chunk_store");
  return make;
}

auto* maker_of_kv_ssd() {
  static auto* const make = loaded_function<decltype(pmlab_simulated_kv_ssd)>("kv_ssd");
  return make;
}

}  // namespace

void load_library_of(std::string_view store) {
  if (store == "chunk_store") maker_of_chunk_store();
  if (store.starts_with("kv_ssd")) maker_of_kv_ssd();  // and its variants
}

std::unique_ptr<volume_subject> make_simulated_chunk_store(const store_setup& setup, blocks::any_device& device) {
  return std::unique_ptr<volume_subject>(maker_of_chunk_store()(setup, device));
}

std::unique_ptr<pair_subject> make_simulated_kv_ssd(const pair_setup& setup, const pair_drives& drives) {
  return std::unique_ptr<pair_subject>(maker_of_kv_ssd()(setup, drives));
}

}  // namespace pmlab::store_bench
