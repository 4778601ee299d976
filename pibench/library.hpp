// A shared library with PiBench's interface.
#pragma once

#include <pmlab/pibench/tree_api.hpp>

#include <functional>
#include <memory>
#include <string>

namespace pmlab::pibench {

// Once loaded it stays until the process ends.
class library {
 public:
  // Throws pmlab::error: no such file, not a library, no create_tree in it.
  explicit library(const std::string& path);

  // The same library again, with variables of its own that nothing has touched: as in a process that was just started.
  [[nodiscard]] static library fresh_copy(const std::string& path);

  // Whether this file was built by pmlab_simulate or scripts/pmlab-c++. Throws pmlab::error if it cannot be read.
  [[nodiscard]] static bool built_for_simulation(const std::string& path);

  // Throws pmlab::error, if this file cannot run on the simulated machine.
  static void check_simulated(const std::string& path);

  // Opens, or makes, the tree whose persistent memory is at options.pool_path. Throws pmlab::error if the library gives
  // none, and whatever the library throws.
  [[nodiscard]] std::unique_ptr<tree_api> create(const tree_options_t& options) const;

 private:
  library() = default;
  std::string path_;
  tree_api* (*create_tree_)(const tree_options_t&) = nullptr;
};

}  // namespace pmlab::pibench
