// The functions of a shared object that a campaign has reached.
#include "checker/verify/reached_code.hpp"
#include "checker/verify/source_lines.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>

namespace pmlab::verify {
namespace {

struct loaded_object {
  std::filesystem::path path;
  std::uintptr_t base = 0;
  std::size_t bytes = 0;
};

// Fills in the other members of the loaded object with this path.
int find_by_path(dl_phdr_info* info, std::size_t, void* wanted) {
  auto& object = *static_cast<loaded_object*>(wanted);
  std::error_code failed;
  if (info->dlpi_name == nullptr || info->dlpi_name[0] == '\0') return 0;
  if (!std::filesystem::equivalent(info->dlpi_name, object.path, failed)) return 0;
  object.base = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i)
    if (info->dlpi_phdr[i].p_type == PT_LOAD)
      object.bytes = std::max(object.bytes, info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
  return 1;
}

// A call of the instrument, by the text of its operand.
bool is_access(std::string_view instruction) {
  if (instruction.find("call") == std::string_view::npos) return false;
  for (const std::string_view name : {"<__tsan_read", "<__tsan_write", "<__tsan_atomic", "<__tsan_unaligned",
                                      "<__tsan_volatile", "<__tsan_mem", "<pmlab_mem"})
    if (instruction.find(name) != std::string_view::npos) return true;
  return false;
}

// The addresses after the calls of the instrument, from the disassembly.
std::vector<std::uintptr_t> places_of_accesses(const std::string& path) {
  std::vector<std::uintptr_t> places;
  bool after_access = false;
  for (const std::string& line : lines_of_command("objdump -d --no-show-raw-insn -- '" + path + "' 2>/dev/null")) {
    const std::size_t colon = line.find(":\t");
    if (colon == std::string::npos) continue;
    if (after_access) places.push_back(std::strtoull(line.c_str(), nullptr, 16));
    after_access = is_access(line);
  }
  return places;
}

}  // namespace

reached_code::reached_code(std::string path) : path_(std::move(path)) {
  loaded_object object{path_};
  ::dl_iterate_phdr(find_by_path, &object);
  base_ = object.base;
  bytes_ = object.bytes;
  if (bytes_ == 0) return;
  void* const area = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) throw std::runtime_error("cannot map shared memory");
  marks_ = static_cast<std::uint8_t*>(area);
}

reached_code::~reached_code() {
  if (marks_ != nullptr) ::munmap(marks_, bytes_);
}

simulator::recorded_code reached_code::copy_with(const void* function) const {
  Dl_info object{};
  if (::dladdr(function, &object) == 0) return {};
  return at(reinterpret_cast<std::uintptr_t>(object.dli_fbase));
}

simulator::recorded_code reached_code::object(std::vector<std::uint8_t>& marks) const {
  marks.assign(bytes_, 0);
  return {base_, bytes_, marks.data()};
}

reached_functions reached_code::functions() const {
  const std::vector<std::uintptr_t> places = places_of_accesses(path_);
  const std::vector<std::string> names = functions_at(path_, places);
  reached_functions result;
  if (names.size() != places.size()) return result;
  std::map<std::string, bool> reached;  // by "name (file:line)"; the line is that of the first access
  std::map<std::string, std::string> first_of_name;
  for (std::size_t i = 0; i < places.size(); ++i) {
    // Not those that the compiler makes.
    if (names[i].empty() || names[i].starts_with("_GLOBAL__")) continue;
    // "name (file:line)": one function for all lines of the same name and file.
    const std::string key = names[i].substr(0, names[i].rfind(':'));
    const std::string& name = first_of_name.emplace(key, names[i]).first->second;
    bool& is = reached[name];
    is = is || (places[i] < bytes_ && marks_[places[i]] != 0);
  }
  result.all = reached.size();
  for (const auto& [name, is] : reached)
    if (!is) result.never.push_back(name);
  return result;
}

}  // namespace pmlab::verify
