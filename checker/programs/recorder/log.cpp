// The record as the recorder writes it.
#include "checker/programs/recorder/log.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <link.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

namespace pmlab::programs::recorder {
namespace {

record_head* head = nullptr;

// Signal handlers use it, so it must not be allocated when it is first used.
__attribute__((tls_model("initial-exec"))) thread_local std::uint16_t own_number = 0;
std::atomic<std::uint16_t> numbers{0};
std::atomic<std::uint16_t> owner{0};
unsigned depth = 0;  // depth of the owner's locks

std::uint16_t this_thread() noexcept {
  if (own_number == 0) own_number = static_cast<std::uint16_t>(numbers.fetch_add(1) + 1);
  return own_number;
}

constexpr std::size_t most_frames = 24;
struct frames {
  std::uintptr_t at[most_frames];
  std::size_t count = 0;
};

std::uintptr_t own_begin = 0, own_end = 0;  // the recorder's code

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* data) noexcept {
  frames& taken = *static_cast<frames*>(data);
  int before = 0;
  const std::uintptr_t at = _Unwind_GetIPInfo(context, &before);
  if (at == 0) return _URC_END_OF_STACK;
  if (at >= own_begin && at < own_end) {
    // Frames inside of it are the handler's: the calls of the program are those outside.
    taken.count = 0;
    return _URC_NO_REASON;
  }
  // Return addresses are those after the call; one that a signal interrupted is the instruction itself.
  taken.at[taken.count++] = before != 0 ? at + 1 : at;
  return taken.count == most_frames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

constexpr std::size_t slots = std::size_t{1} << 16;
std::uint64_t known_stacks[slots];
std::uint32_t numbers_of_stacks[slots];
std::uint32_t stacks = 0;

constexpr std::size_t most_objects = 256;
std::uintptr_t known_objects[most_objects];
std::size_t objects = 0;

int take_object(dl_phdr_info* info, std::size_t /*size*/, void* /*data*/) noexcept {
  std::uintptr_t begin = ~std::uintptr_t{0}, end = 0;
  bool own = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const std::uintptr_t from = info->dlpi_addr + part.p_vaddr;
    if (from < begin) begin = from;
    if (from + part.p_memsz > end) end = from + part.p_memsz;
    const auto here = reinterpret_cast<std::uintptr_t>(&take_object);
    own = own || (here >= from && here < from + part.p_memsz);
  }
  if (own) {
    own_begin = begin;
    own_end = end;
    return 0;
  }
  for (std::size_t i = 0; i < objects; ++i)
    if (known_objects[i] == begin) return 0;
  if (objects == most_objects || head == nullptr) return 0;
  known_objects[objects++] = begin;
  char self[page_bytes];
  const char* path = info->dlpi_name;
  if (path == nullptr || *path == 0) {
    const ssize_t length = ::readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (objects > 1 || length <= 0) return 0;  // the kernel's
    self[length] = 0;
    path = self;
  }
  // `stack` holds nothing else here: 1 if addresses of the file are those of the process.
  append(event::object, begin, end - begin, info->dlpi_addr == 0 ? 1 : 0, path, std::strlen(path));
  return 0;
}

}  // namespace

bool is_recording() noexcept { return head != nullptr; }

void open_log() noexcept {
  const char* const path = std::getenv(record_variable);
  if (path == nullptr) return;
  const int file = ::open(path, O_RDWR | O_CLOEXEC);
  struct stat status {};
  if (file < 0 || ::fstat(file, &status) != 0) return;
  const long at = ::syscall(SYS_mmap, nullptr, static_cast<std::size_t>(status.st_size), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_NORESERVE, file, 0);
  ::close(file);
  if (at == -1) return;
  head = reinterpret_cast<record_head*>(at);
  if (head->magic != record_magic) head = nullptr;
}

void lock() noexcept {
  const std::uint16_t self = this_thread();
  if (owner.load(std::memory_order_relaxed) != self) {
    for (std::uint16_t none = 0; !owner.compare_exchange_weak(none, self, std::memory_order_acquire); none = 0)
      ::sched_yield();
  }
  ++depth;
}

void unlock() noexcept {
  if (--depth == 0) owner.store(0, std::memory_order_release);
}

bool has_lock() noexcept { return owner.load(std::memory_order_relaxed) == this_thread(); }

void append(event what, std::uint64_t at, std::uint64_t length, std::uint32_t stack, const void* payload,
            std::size_t bytes) noexcept {
  const std::uint64_t place = head->used.load(std::memory_order_relaxed);
  const std::uint64_t next = place + sizeof(entry) + (bytes + 7) / 8 * 8;
  constexpr std::uint64_t room_for_a_refusal = 4096;
  if (next + room_for_a_refusal > head->capacity && what != event::refusal)
    refuse("its record is full: the program stores too much to its pool", "let it do less");
  entry e;
  e.at = at;
  e.length = length;
  e.bytes = static_cast<std::uint32_t>(bytes);
  e.stack = stack;
  e.thread = this_thread();
  e.what = what;
  char* const target = reinterpret_cast<char*>(head) + place;
  std::memcpy(target, &e, sizeof(e));
  if (bytes != 0) std::memcpy(target + sizeof(e), payload, bytes);
  head->used.store(next, std::memory_order_release);
}

std::uint32_t this_stack(std::uintptr_t interrupted) noexcept {
  frames here;
  _Unwind_Backtrace(&take_frame, &here);
  // Between the handler and the instruction is a frame of the system.
  if (interrupted != 0 && here.count > 1 && here.at[0] != interrupted + 1) {
    --here.count;
    std::memmove(here.at, here.at + 1, here.count * sizeof(here.at[0]));
  }
  std::uint64_t hash = 0x243f6a8885a308d3;
  for (std::size_t i = 0; i < here.count; ++i) hash = (hash ^ here.at[i]) * 0x9e3779b97f4a7c15 + (hash >> 29);
  if (hash == 0) hash = 1;
  std::size_t slot = hash >> 48;
  for (; known_stacks[slot] != 0; slot = (slot + 1) % slots)
    if (known_stacks[slot] == hash) return numbers_of_stacks[slot];
  if (stacks + 1 >= slots / 2) return 0;
  known_stacks[slot] = hash;
  numbers_of_stacks[slot] = ++stacks;
  append(event::stack, 0, 0, stacks, here.at, here.count * sizeof(here.at[0]));
  return stacks;
}

void append_objects() noexcept { ::dl_iterate_phdr(&take_object, nullptr); }

void refuse(const char* problem, const char* remedy) noexcept {
  lock();
  char text[2048];
  const int length = std::snprintf(text, sizeof(text), "%s\n%s", problem, remedy);
  append(event::refusal, 0, 0, 0, text, static_cast<std::size_t>(length));
  constexpr int status_of_a_refusal = 99;
  ::syscall(SYS_exit_group, status_of_a_refusal);
  __builtin_unreachable();
}

}  // namespace pmlab::programs::recorder
