// Which code of this process is of libraries of simulated code.
#include "checker/simulator/machine/libraries.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include <dlfcn.h>
#include <link.h>

namespace pmlab::simulator {
namespace {

using ranges = std::vector<code_range>;

// The loader has added the address of the library to these, but for the kernel's own object.
const ElfW(Dyn) * entry_of(const dl_phdr_info& object, ElfW(Sxword) tag) {
  for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
    if (object.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    const auto* d = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + object.dlpi_phdr[i].p_vaddr);
    for (; d->d_tag != DT_NULL; ++d)
      if (d->d_tag == tag) return d;
  }
  return nullptr;
}

// Code that an instrumenting compiler made calls this function first. Symbols that a library takes from elsewhere are
// not in its hash table: they come before all that are.
bool calls_hooks(const dl_phdr_info& object) {
  const ElfW(Dyn)* const symbols = entry_of(object, DT_SYMTAB);
  const ElfW(Dyn)* const names = entry_of(object, DT_STRTAB);
  const ElfW(Dyn)* const hash = entry_of(object, DT_GNU_HASH);
  if (symbols == nullptr || names == nullptr || hash == nullptr) return false;
  if (hash->d_un.d_ptr < object.dlpi_addr) return false;
  const std::uint32_t first_in_table = reinterpret_cast<const std::uint32_t*>(hash->d_un.d_ptr)[1];
  const auto* const table = reinterpret_cast<const ElfW(Sym)*>(symbols->d_un.d_ptr);
  const auto* const text = reinterpret_cast<const char*>(names->d_un.d_ptr);
  for (std::uint32_t i = 1; i < first_in_table; ++i)
    if (std::string_view(text + table[i].st_name) == "__tsan_init") return true;
  return false;
}

bool has(const dl_phdr_info& object, const void* address) {
  for (unsigned i = 0; i < object.dlpi_phnum; ++i) {
    const auto& part = object.dlpi_phdr[i];
    if (part.p_type == PT_LOAD && code_range{object.dlpi_addr + part.p_vaddr, part.p_memsz}.contains(address))
      return true;
  }
  return false;
}

int add_code_of(dl_phdr_info* object, std::size_t /*bytes*/, void* to) {
  const bool is_program = object->dlpi_name == nullptr || *object->dlpi_name == 0;
  static const void* const of_loader = ::dlsym(RTLD_DEFAULT, "__tls_get_addr");
  if (is_program || !(calls_hooks(*object) || has(*object, of_loader))) return 0;
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type == PT_LOAD && (part.p_flags & PF_X) != 0)
      static_cast<ranges*>(to)->push_back({object->dlpi_addr + part.p_vaddr, part.p_memsz});
  }
  return 0;
}

struct looked_for {
  const void* address = nullptr;
  const char* path = nullptr;
  std::vector<object_part> parts{};
};

// The loader makes a part of the writable ones read-only, behind relocation.
int add_parts_of(dl_phdr_info* object, std::size_t /*bytes*/, void* to) {
  auto& what = *static_cast<looked_for*>(to);
  if (what.path != nullptr ? std::string_view(what.path) != object->dlpi_name : !has(*object, what.address)) return 0;
  code_range sealed{};
  for (unsigned i = 0; i < object->dlpi_phnum; ++i)
    if (const auto& part = object->dlpi_phdr[i]; part.p_type == PT_GNU_RELRO)
      sealed = {object->dlpi_addr + part.p_vaddr, part.p_memsz};
  for (unsigned i = 0; i < object->dlpi_phnum; ++i) {
    const auto& part = object->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || part.p_memsz == 0) continue;
    code_range where{object->dlpi_addr + part.p_vaddr, part.p_memsz};
    const bool is_writable = (part.p_flags & PF_W) != 0;
    if (is_writable && sealed.bytes != 0 && sealed.start - where.start < where.bytes) {
      const std::size_t to_end = std::min(sealed.start + sealed.bytes - where.start, where.bytes);
      what.parts.push_back({{where.start, to_end}, false});
      where = {where.start + to_end, where.bytes - to_end};
    }
    if (where.bytes != 0) what.parts.push_back({where, is_writable});
  }
  return 1;
}

}  // namespace

ranges code_of_simulated_libraries() {
  ranges found;
  ::dl_iterate_phdr(add_code_of, &found);
  return found;
}

std::vector<object_part> parts_of_object_at(const void* address) {
  looked_for what{.address = address};
  ::dl_iterate_phdr(add_parts_of, &what);
  return std::move(what.parts);
}

std::vector<object_part> parts_of_object(const std::string& path) {
  looked_for what{.path = path.c_str()};
  ::dl_iterate_phdr(add_parts_of, &what);
  return std::move(what.parts);
}

}  // namespace pmlab::simulator
