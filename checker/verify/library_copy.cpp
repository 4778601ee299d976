// A second copy of a library.
#include "checker/verify/library_copy.hpp"
#include <pmlab/base/error.hpp>

#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <system_error>
#include <vector>

#include <elf.h>
#include <unistd.h>

namespace pmlab::verify {
namespace {

// Another one for each copy: the loader returns a library that it has under a name.
std::string name_of_next() {
  static unsigned copies = 0;
  return "pmlab-" + std::to_string(::getpid()) + "-" + std::to_string(++copies) + "-copy.so";
}

template <class T>
T read_at(const std::vector<char>& bytes, std::size_t at) {
  T value{};
  if (at <= bytes.size() && sizeof value <= bytes.size() - at) std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// The loaded copies, and the library of each.
std::map<std::string, std::string>& originals() {
  static std::map<std::string, std::string> of_copies;
  return of_copies;
}

// Unique symbols become global ones. A file that is not as expected stays as it is: the loader judges it.
void make_symbols_its_own(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::vector<char> bytes(std::istreambuf_iterator<char>(in), {});
  in.close();
  const auto head = read_at<Elf64_Ehdr>(bytes, 0);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64) return;
  bool has_changed = false;
  for (std::size_t s = 0; s < head.e_shnum; ++s) {
    const auto section = read_at<Elf64_Shdr>(bytes, head.e_shoff + s * sizeof(Elf64_Shdr));
    if (section.sh_type != SHT_DYNSYM || section.sh_offset + section.sh_size > bytes.size()) continue;
    for (std::size_t at = section.sh_offset; at < section.sh_offset + section.sh_size; at += sizeof(Elf64_Sym)) {
      auto symbol = read_at<Elf64_Sym>(bytes, at);
      if (ELF64_ST_BIND(symbol.st_info) != STB_GNU_UNIQUE) continue;
      symbol.st_info = static_cast<unsigned char>(ELF64_ST_INFO(STB_GLOBAL, ELF64_ST_TYPE(symbol.st_info)));
      std::memcpy(bytes.data() + at, &symbol, sizeof symbol);
      has_changed = true;
    }
  }
  if (!has_changed) return;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!out.flush()) throw error("cannot write the copy " + path.string(), "free some space in the temporary folder");
}

}  // namespace

private_copy::private_copy(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(failed);
  if (failed) throw error("there is no temporary folder: " + failed.message(), "set TMPDIR to a folder");
  at_ = folder / name_of_next();
  std::filesystem::copy_file(path, at_, std::filesystem::copy_options::overwrite_existing, failed);
  if (failed) throw error("cannot copy " + path + ": " + failed.message(), "free some space in the temporary folder");
  std::filesystem::permissions(at_, std::filesystem::perms::owner_all, failed);
  make_symbols_its_own(at_);
  originals()[at_.string()] = path;
}

private_copy::~private_copy() {
  std::error_code ignored;
  std::filesystem::remove(at_, ignored);
}

pibench::library fresh_copy(const std::string& path) {
  // The loader knows a library by its file.
  const private_copy copy(path);
  return pibench::library(copy.path().string(), path);
}

std::string original_of(const std::string& name) {
  const auto found = originals().find(name);
  return found == originals().end() ? name : found->second;
}

}  // namespace pmlab::verify
