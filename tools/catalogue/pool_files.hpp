// The pool files of a run: named, made, and removed again, without ever touching a file that is somebody else's.
#pragma once

#include "tools/support/removed_on_interrupt.hpp"
#include <pmlab/media/root_table.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::bench {

// What to do with a file that is there before the run.
enum class existing_file : std::uint8_t {
  refuse,
  reuse,      // open it and measure what it holds; an error if it is not there
  overwrite,  // remove it, if it is a pool
};

// The pool of `index`: the path itself if it is alone, a file beside it if there are several.
[[nodiscard]] std::string pool_path(const std::string& path, const std::string& index, bool alone);

// Of a pool that is to be reused. Throws pmlab::error, with what there is, if it has roots and none is called `index`:
// opening the index would add it to a user's pool. One without roots, as `pmempool create` makes it, is for any index.
void refuse_pool_without(std::string_view index, const std::string& path, const std::vector<media::root_facts>& roots);

// One pool of the run. Removes the file when it goes, if it made it and is not to keep it; an interrupt (SIGINT,
// SIGTERM) removes it too.
class pool_file {
 public:
  // Checks path and space, removes what is to be overwritten; the file is then made by whoever opens the pool, with
  // `bytes`. Throws pmlab::error: missing folder, no space, a file that is there, a file that is no pool.
  pool_file(std::string path, std::uint64_t bytes, existing_file policy, bool keep);
  pool_file(const pool_file&) = delete;
  pool_file& operator=(const pool_file&) = delete;
  ~pool_file();

  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  // Size to make the pool with; 0: it is there and is to be opened.
  [[nodiscard]] std::uint64_t bytes_to_make() const noexcept { return bytes_; }

 private:
  std::string path_;
  std::uint64_t bytes_;
  bool remove_ = false;
  std::optional<removed_on_interrupt> doomed_;
  std::optional<removed_on_interrupt> doomed_unfinished_;
};

}  // namespace pmlab::bench
