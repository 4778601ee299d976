// The pool files of a run: named, made, and removed again, without ever touching a file that the run did not make.
#pragma once

#include <pmlab/media/root_table.hpp>
#include "bench/support/removed_on_interrupt.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::bench {

// The treatment of a file that exists before the run.
enum class existing_file : std::uint8_t {
  refuse,
  reuse,      // open it and measure its contents; an error if it does not exist
  overwrite,  // remove it, if it is a pool
};

// The pool of `index`: the path itself if it is alone, a file beside it if there are several.
[[nodiscard]] std::string pool_path(const std::string& path, const std::string& index, bool alone);

// For a pool that is reused. Throws pmlab::error, with the list of roots, if it has roots and none is called `index`:
// opening the index would add it to a user's pool. One without roots, as `pmempool create` makes it, is for any index.
void refuse_pool_without(std::string_view index, const std::string& path, const std::vector<media::root_facts>& roots);

// One pool of the run. Its destructor removes the file, if this object made it and it is not to be kept; an interrupt
// (SIGINT, SIGTERM) removes it too.
class pool_file {
 public:
  // Checks path and space, and removes a file that will be overwritten; the file is then made by the code that opens
  // the pool, with `bytes`. Throws pmlab::error: missing folder, no space, an existing file, a file that is no pool.
  // `has_reuse`: the command has --reuse, so that messages may name it.
  pool_file(std::string path, std::uint64_t bytes, existing_file policy, bool keep, bool has_reuse = true);
  pool_file(const pool_file&) = delete;
  pool_file& operator=(const pool_file&) = delete;
  ~pool_file();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // Size to make the pool with; 0: it exists and is opened.
  [[nodiscard]] std::uint64_t bytes_to_make() const noexcept { return bytes_; }

 private:
  std::string path_;
  std::uint64_t bytes_;
  bool remove_ = false;
  std::optional<removed_on_interrupt> doomed_;
  std::optional<removed_on_interrupt> doomed_unfinished_;
};

}  // namespace pmlab::bench
