// A shared library with PiBench's interface.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/shared_object.hpp>
#include <pmlab/pibench/tree_api.hpp>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <dlfcn.h>

namespace pmlab::pibench {

// An index that its authors built for PiBench. Once loaded, the library stays until the process ends.
//
// Thread safety: `create` may be called by several threads if the library allows that.
class library {
 public:
  // Throws pmlab::error: no such file, not a library or a part of one, no create_tree in it.
  explicit library(const std::string& path) : library(path, path) {}
  // The same. `name`: what messages about its trees call it.
  library(const std::string& path, std::string name) : name_(std::move(name)) {
    if (!std::filesystem::exists(path)) throw error("there is no library " + path, "check the path");
    check_not_cut_off(path);
    // Without a slash the loader would look in its own folders.
    void* const handle = ::dlopen(std::filesystem::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      const char* const why = ::dlerror();
      throw error("cannot load " + path + ": " + (why != nullptr ? why : "unknown reason"),
                  "build it as a shared library whose own libraries can be found");
    }
    create_tree_ = reinterpret_cast<decltype(create_tree_)>(::dlsym(handle, "create_tree"));
    if (create_tree_ == nullptr)
      throw error(path + " has no function create_tree", "export PiBench's interface: pmlab/pibench/tree_api.hpp");
  }

  // Opens, or makes, the tree whose persistent memory is at options.pool_path. Throws pmlab::error if the library gives
  // none, and every exception of the library.
  [[nodiscard]] std::unique_ptr<tree_api> create(const tree_options_t& options) const {
    tree_api* const tree = create_tree_(options);
    if (tree == nullptr) throw error(name_ + " created no tree", "read the library's message about its pool");
    return std::unique_ptr<tree_api>(tree);
  }

  // The address of its create_tree: it tells this copy of the library from others.
  [[nodiscard]] const void* entry() const noexcept { return reinterpret_cast<const void*>(create_tree_); }

 private:
  std::string name_;
  tree_api* (*create_tree_)(const tree_options_t&) = nullptr;
};

}  // namespace pmlab::pibench
