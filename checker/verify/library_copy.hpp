// A second copy of a library, as a process that was just started has it.
#pragma once

#include <pmlab/pibench/library.hpp>

#include <filesystem>
#include <string>

namespace pmlab::verify {

// A copy of a shared object in a file of its own, whose symbols are its own too. The loader has it when it is loaded:
// the file goes with this. Throws pmlab::error: it cannot be copied.
class private_copy {
 public:
  explicit private_copy(const std::string& path);
  private_copy(const private_copy&) = delete;
  private_copy& operator=(const private_copy&) = delete;
  ~private_copy();
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return at_; }

 private:
  std::filesystem::path at_;
};

// The same library again, with variables of its own that nothing has touched. Inline variables, and statics of inline
// functions, are such, too: the loader has one of each per process where its symbol is unique (STB_GNU_UNIQUE), so the
// copy's symbols are not. Throws pmlab::error: it cannot be copied or loaded.
[[nodiscard]] pibench::library fresh_copy(const std::string& path);

// The library that the loaded file `name` is a copy of, whose code has the same offsets: the copy's own file is gone.
// `name`, if it is none.
[[nodiscard]] std::string original_of(const std::string& name);

}  // namespace pmlab::verify
