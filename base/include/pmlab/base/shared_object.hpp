// Files of shared objects, before the loader maps them.
#pragma once

#include <pmlab/base/error.hpp>

#include <cstdint>
#include <fstream>
#include <string>

#include <elf.h>

namespace pmlab {

// Whether the file ends before a part that its own headers name. The loader maps such a part nevertheless, and its
// first touch ends the process (SIGBUS). False: it is whole, or no shared object of a 64-bit machine.
[[nodiscard]] inline bool is_cut_off(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  const std::streamoff end = file.tellg();
  if (!file || end < 0) return false;
  const auto bytes = static_cast<std::uint64_t>(end);
  const auto read_at = [&](std::uint64_t at, auto& into) {
    file.seekg(static_cast<std::streamoff>(at));
    return static_cast<bool>(file.read(reinterpret_cast<char*>(&into), sizeof into));
  };
  Elf64_Ehdr head{};
  if (bytes < sizeof head || !read_at(0, head)) return false;
  if (std::string(reinterpret_cast<const char*>(head.e_ident), SELFMAG) != ELFMAG ||
      head.e_ident[EI_CLASS] != ELFCLASS64)
    return false;
  for (std::uint64_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part{};
    const std::uint64_t at = head.e_phoff + i * sizeof part;
    if (head.e_phoff > bytes || at + sizeof part > bytes || !read_at(at, part)) return true;
    if (part.p_type == PT_LOAD && (part.p_offset > bytes || part.p_filesz > bytes - part.p_offset)) return true;
  }
  return false;
}

// Throws pmlab::error if it is.
inline void check_not_cut_off(const std::string& path) {
  if (is_cut_off(path))
    throw error(path + " ends before its headers say: it is a part of a file", "build or copy it again");
}

}  // namespace pmlab
