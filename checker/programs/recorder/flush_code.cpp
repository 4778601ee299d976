// Flush and fence instructions of the program's own code.
#include "checker/programs/recorder/flush_code.hpp"

#include "checker/programs/record.hpp"
#include "checker/programs/recorder/log.hpp"
#include "checker/programs/recorder/pool.hpp"

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <link.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pmlab::programs::recorder {
namespace {

constexpr std::size_t longest_instruction = 15;

struct breakpoint {
  std::uintptr_t address;
  unsigned char code[longest_instruction + 1];  // as it was
};
constexpr std::size_t most_breakpoints = std::size_t{1} << 14;
breakpoint breakpoints[most_breakpoints];
std::size_t count = 0;

bool is_of_the_system(const char* path) noexcept {
  return std::strncmp(path, "/lib", 4) == 0 || std::strncmp(path, "/usr/lib", 8) == 0;
}

// 0f ae with a memory operand (clflush, clwb; others, too), or a fence.
bool may_hold_flushes(const unsigned char* code, std::size_t bytes) noexcept {
  for (std::size_t i = 0; i + 2 < bytes; ++i) {
    if (code[i] != 0x0f || code[i + 1] != 0xae) continue;
    const unsigned operation = (code[i + 2] >> 3) & 7;
    if (operation == 7 || operation == 6) return true;
  }
  return false;
}

void set_breakpoint(std::uintptr_t address) noexcept {
  for (std::size_t i = 0; i < count; ++i)
    if (breakpoints[i].address == address) return;
  if (count == most_breakpoints) refuse("its code has too many flush instructions", "report it");
  breakpoint& b = breakpoints[count];
  b.address = address;
  std::memcpy(b.code, reinterpret_cast<const void*>(address), longest_instruction);
  const std::uintptr_t page = address & ~(page_bytes - 1);
  if (::syscall(SYS_mprotect, page, 2 * page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0 &&
      ::syscall(SYS_mprotect, page, page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
    refuse("the kernel does not let its code be changed", "allow it, or flush by pmem_persist only");
  ++count;
  constexpr unsigned char int3 = 0xcc;
  *reinterpret_cast<volatile unsigned char*>(address) = int3;
}

// Where instructions begin, only a disassembler knows.
void disassemble(const char* path, std::uintptr_t base) noexcept {
  char command[2 * page_bytes];
  std::snprintf(command, sizeof(command), "objdump -d -w --no-show-raw-insn '%s' 2>/dev/null", path);
  FILE* const lines = ::popen(command, "r");
  char line[1024];
  bool any = false;
  while (lines != nullptr && std::fgets(line, sizeof(line), lines) != nullptr) {
    any = true;
    const char* const colon = std::strchr(line, ':');
    if (colon == nullptr || colon[1] != '\t') continue;
    const char* const name = colon + 2;
    const bool wanted = std::strncmp(name, "clwb", 4) == 0 || std::strncmp(name, "clflush", 7) == 0 ||
                        std::strncmp(name, "sfence", 6) == 0 || std::strncmp(name, "mfence", 6) == 0;
    if (wanted) set_breakpoint(base + std::strtoull(line, nullptr, 16));
  }
  if (lines != nullptr) ::pclose(lines);
  if (!any) refuse("its code holds flush instructions, and objdump cannot read it", "install binutils");
}

int take_object(dl_phdr_info* info, std::size_t /*size*/, void* data) noexcept {
  int& position = *static_cast<int*>(data);
  const bool is_program = position++ == 0;
  const char* const name = info->dlpi_name;
  if (!is_program && (name == nullptr || name[0] != '/' || is_of_the_system(name))) return 0;
  bool own = false, holds_flushes = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    const std::uintptr_t from = info->dlpi_addr + part.p_vaddr;
    const auto here = reinterpret_cast<std::uintptr_t>(&take_object);
    own = own || (here >= from && here < from + part.p_memsz);
    holds_flushes = holds_flushes || may_hold_flushes(reinterpret_cast<const unsigned char*>(from), part.p_filesz);
  }
  if (own || !holds_flushes) return 0;
  char self[page_bytes];
  const ssize_t length = is_program ? ::readlink("/proc/self/exe", self, sizeof(self) - 1) : 0;
  self[length > 0 ? length : 0] = 0;
  disassemble(is_program ? self : name, info->dlpi_addr);
  return 0;
}

// The general register of a number in an instruction's encoding.
std::uintptr_t value_of(const ucontext_t& context, unsigned reg) noexcept {
  static constexpr int names[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                    REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<std::uintptr_t>(context.uc_mcontext.gregs[names[reg]]);
}

struct decoded {
  bool is_fence = false;
  bool is_complete = false;  // clflush
  std::uintptr_t operand = 0;
  std::size_t bytes = 0;
};

decoded decode(const breakpoint& b, const ucontext_t& context) noexcept {
  const unsigned char* c = b.code;
  decoded d;
  bool small = false;
  unsigned extension = 0;
  for (;; ++c) {
    if (*c == 0x66)
      small = true;
    else if ((*c & 0xf0) == 0x40)
      extension = *c & 0xfu;
    else if (*c != 0x3e && *c != 0x2e && *c != 0x36 && *c != 0x26)
      break;
  }
  c += 2;  // 0f ae
  const unsigned mode = *c >> 6, operation = (*c >> 3) & 7u;
  unsigned base = *c & 7u;
  ++c;
  if (mode == 3) {
    d.is_fence = true;
    d.bytes = static_cast<std::size_t>(c - b.code);
    return d;
  }
  d.is_complete = operation == 7 && !small;
  std::uintptr_t at = 0;
  bool relative = false, absolute = false;
  if (base == 4) {  // a byte of scale, index and base
    const unsigned index = ((*c >> 3) & 7u) | ((extension & 2u) << 2);
    if (index != 4) at += value_of(context, index) << (*c >> 6);
    base = *c & 7u;
    ++c;
    absolute = base == 5 && mode == 0;
  } else {
    relative = base == 5 && mode == 0;
  }
  if (!relative && !absolute) at += value_of(context, base | ((extension & 1u) << 3));
  if (mode == 1) {
    at += static_cast<std::uintptr_t>(static_cast<std::intptr_t>(static_cast<signed char>(*c)));
    c += 1;
  } else if (mode == 2 || relative || absolute) {
    std::int32_t displacement;
    std::memcpy(&displacement, c, 4);
    at += static_cast<std::uintptr_t>(static_cast<std::intptr_t>(displacement));
    c += 4;
  }
  d.bytes = static_cast<std::size_t>(c - b.code);
  if (relative) at += b.address + d.bytes;
  d.operand = at;
  return d;
}

}  // namespace

void watch_flush_code() noexcept {
  int position = 0;
  ::dl_iterate_phdr(&take_object, &position);
}

bool take_breakpoint(ucontext_t& context) noexcept {
  const auto address = static_cast<std::uintptr_t>(context.uc_mcontext.gregs[REG_RIP]) - 1;
  const breakpoint* found = nullptr;
  for (std::size_t i = 0; i < count && found == nullptr; ++i)
    if (breakpoints[i].address == address) found = &breakpoints[i];
  if (found == nullptr) return false;
  const decoded d = decode(*found, context);
  context.uc_mcontext.gregs[REG_RIP] = static_cast<greg_t>(address + d.bytes);
  const locked own;
  const auto* const line = reinterpret_cast<const void*>(d.operand & ~(line_bytes - 1));
  if (d.is_fence)
    fence(this_stack(address + d.bytes));
  else if (holds(line))
    flush(line, line_bytes, d.is_complete, this_stack(address + d.bytes));
  return true;
}

}  // namespace pmlab::programs::recorder
