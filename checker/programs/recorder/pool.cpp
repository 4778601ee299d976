// The pool file: its mappings in the program, and the content that has been recorded.
#include "checker/programs/recorder/pool.hpp"

#include "checker/programs/record.hpp"
#include "checker/programs/recorder/flush_code.hpp"
#include "checker/programs/recorder/log.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pmlab::programs::recorder {
namespace {

struct mapping {
  std::uintptr_t address = 0;
  std::size_t bytes = 0;
  std::uint64_t offset = 0;
};

constexpr std::size_t most_mappings = 32;
mapping mappings[most_mappings];
std::size_t mapping_count = 0;

dev_t device = 0;
ino_t number = 0;
std::uint64_t pool_bytes = 0;
int pool_file = -1;              // open on the pool
char* content = nullptr;         // the file, writable, at an address that the program does not know
char* recorded = nullptr;        // as the record has it, of pages that were opened
unsigned char* known = nullptr;  // for each page: whether `recorded` has it

constexpr std::size_t most_open = 16;
std::uintptr_t open_pages[most_open];
std::size_t open_count = 0;

std::uintptr_t page_of(std::uintptr_t address) noexcept { return address & ~(page_bytes - 1); }

void* map(std::size_t bytes, int protection, int flags, int file) noexcept {
  const long at = ::syscall(SYS_mmap, nullptr, bytes, protection, flags, file, 0);
  if (at == -1) refuse("its pool cannot be mapped a second time", "let it use a smaller pool");
  return reinterpret_cast<void*>(at);
}

void protect(std::uintptr_t address, std::size_t bytes, int protection) noexcept {
  ::syscall(SYS_mprotect, address, bytes, protection);
}

const mapping* mapping_of(std::uintptr_t address) noexcept {
  for (std::size_t i = 0; i < mapping_count; ++i)
    if (address - mappings[i].address < mappings[i].bytes) return &mappings[i];
  return nullptr;
}

std::uint64_t offset_of(std::uintptr_t address) noexcept {
  const mapping* const m = mapping_of(address);
  return m->offset + (address - m->address);
}

void know(std::uint64_t page) noexcept {
  if (known[page] != 0) return;
  known[page] = 1;
  std::memcpy(recorded + page * page_bytes, content + page * page_bytes, page_bytes);
}

void record_line(std::uint64_t at, event what, std::uint32_t stack) noexcept {
  std::uint64_t now[words_of_line];
  std::uint64_t payload[1 + words_of_line];
  std::memcpy(now, content + at, line_bytes);
  std::size_t count = 0;
  payload[0] = 0;
  for (std::size_t w = 0; w < words_of_line; ++w) {
    std::uint64_t old;
    std::memcpy(&old, recorded + at + w * 8, 8);
    if (old == now[w]) continue;
    payload[0] |= std::uint64_t{1} << w;
    payload[++count] = now[w];
  }
  if (count == 0) return;
  append(what, at, line_bytes, stack, payload, (1 + count) * 8);
  std::memcpy(recorded + at, now, line_bytes);
}

// Pages without data are holes.
void keep_base(int file) noexcept {
  const char* const path = std::getenv(base_variable);
  const int base = path == nullptr ? -1 : ::open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  bool kept = base >= 0 && ::ftruncate(base, static_cast<off_t>(pool_bytes)) == 0;
  const off_t place = ::lseek(file, 0, SEEK_CUR);
  for (off_t at = 0; kept && at < static_cast<off_t>(pool_bytes);) {
    const off_t from = ::lseek(file, at, SEEK_DATA);
    if (from < 0) break;
    const off_t to = ::lseek(file, from, SEEK_HOLE);
    for (at = from; kept && at < to; at += static_cast<off_t>(page_bytes)) {
      const std::size_t left = static_cast<std::size_t>(to - at);
      const std::size_t part = left < page_bytes ? left : page_bytes;
      static const char zeros[page_bytes] = {};
      if (std::memcmp(content + at, zeros, part) == 0) continue;
      kept = ::pwrite(base, content + at, part, at) == static_cast<ssize_t>(part);
    }
    at = to;
  }
  ::lseek(file, place, SEEK_SET);
  if (base >= 0) ::close(base);
  if (!kept) refuse("the content of its pool cannot be kept", "make room where TMPDIR leads to");
}

// Out of the way of the numbers that the program gets.
void keep_descriptor(int file) noexcept {
  constexpr int high = 1000;
  const int moved = ::fcntl(file, F_DUPFD_CLOEXEC, high);
  pool_file = moved < 0 ? file : moved;
  if (moved >= 0) ::close(file);
}

void begin(int file, const struct stat& status) noexcept {
  device = status.st_dev;
  number = status.st_ino;
  pool_bytes = static_cast<std::uint64_t>(status.st_size);
  if (pool_bytes % page_bytes != 0) refuse("the size of its pool is no multiple of 4096 bytes", "give it such a size");
  // An open file of its own: a mapping of the program's would keep its locks (flock) after it has closed it.
  char link[64];
  std::snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
  const int again = ::open(link, O_RDWR | O_CLOEXEC);
  content = static_cast<char*>(map(pool_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, again));
  keep_descriptor(again);
  const int own = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  recorded = static_cast<char*>(map(pool_bytes, PROT_READ | PROT_WRITE, own, -1));
  known = static_cast<unsigned char*>(map(pool_bytes / page_bytes + 1, PROT_READ | PROT_WRITE, own, -1));
  keep_base(file);
  append_objects();
  char path[page_bytes];
  const ssize_t length = ::readlink(link, path, sizeof(path));
  append(event::pool, pool_bytes, 0, 0, path, length > 0 ? static_cast<std::size_t>(length) : 0);
  watch_flush_code();
}

}  // namespace

void add_mapping(void* address, std::size_t bytes, int file, std::uint64_t offset) noexcept {
  struct stat status {};
  if (::fstat(file, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size < static_cast<off_t>(page_bytes))
    return;
  if (content == nullptr) begin(file, status);
  if (status.st_dev != device || status.st_ino != number)
    refuse("it maps a second file for writing, and a crash state is one of one file",
           "let it use one pool, of one part");
  if (offset + bytes > pool_bytes + page_bytes - 1)
    refuse("its pool grew after it was mapped", "give the pool its size before it is mapped");
  if (mapping_count == most_mappings) refuse("it maps its pool too often at once", "let it map the pool once");
  mappings[mapping_count++] = {reinterpret_cast<std::uintptr_t>(address), bytes, offset};
  protect(reinterpret_cast<std::uintptr_t>(address), bytes, PROT_READ);
}

void remove_mapping(void* address, std::size_t bytes) noexcept {
  const auto from = reinterpret_cast<std::uintptr_t>(address);
  const std::uintptr_t to = from + (bytes + page_bytes - 1) / page_bytes * page_bytes;
  for (std::size_t i = mapping_count; i-- > 0;) {
    mapping& m = mappings[i];
    const std::uintptr_t end = m.address + m.bytes;
    if (to <= m.address || end <= from) continue;
    const mapping before{m.address, from > m.address ? from - m.address : 0, m.offset};
    const mapping after{to, end > to ? end - to : 0, m.offset + (to - m.address)};
    m = mappings[--mapping_count];
    if (before.bytes != 0) mappings[mapping_count++] = before;
    if (after.bytes != 0 && mapping_count < most_mappings) mappings[mapping_count++] = after;
  }
}

bool is_pool(int file) noexcept {
  struct stat status {};
  return content != nullptr && ::fstat(file, &status) == 0 && status.st_dev == device && status.st_ino == number;
}

bool holds(const void* address) noexcept { return mapping_of(reinterpret_cast<std::uintptr_t>(address)) != nullptr; }

void open_page(void* address) noexcept {
  const std::uintptr_t page = page_of(reinterpret_cast<std::uintptr_t>(address));
  if (open_count == most_open) refuse("one instruction stores to too many pages of its pool", "report it");
  know(offset_of(page) / page_bytes);
  open_pages[open_count++] = page;
  protect(page, page_bytes, PROT_READ | PROT_WRITE);
}

void record_changes(bool streaming, std::uint32_t stack) noexcept {
  for (std::size_t i = 0; i < open_count; ++i) {
    const std::uint64_t page = offset_of(open_pages[i]);
    if (std::memcmp(content + page, recorded + page, page_bytes) == 0) continue;
    for (std::uint64_t line = page; line < page + page_bytes; line += line_bytes)
      record_line(line, streaming ? event::streaming_store : event::store, stack);
  }
}

bool are_almost_all_open() noexcept {
  constexpr std::size_t pages_of_an_instruction = 4;
  return open_count + pages_of_an_instruction > most_open;
}

// A store of another thread may come until the page is closed: recorded before, it would be lost until the next step
// here, and its flush would be taken for one of nothing.
void close_pages(bool streaming, std::uint32_t stack) noexcept {
  for (std::size_t i = 0; i < open_count; ++i) protect(open_pages[i], page_bytes, PROT_READ);
  record_changes(streaming, stack);
  open_count = 0;
}

void store(void* target, const void* source, int value, std::size_t bytes, std::uint32_t stack) noexcept {
  const std::uint64_t begin = offset_of(reinterpret_cast<std::uintptr_t>(target));
  const std::uint64_t end = begin + bytes;
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t line = at / line_bytes * line_bytes;
    const std::uint64_t to = line + line_bytes < end ? line + line_bytes : end;
    know(line / page_bytes);
    if (source == nullptr)
      std::memset(content + at, value, to - at);
    else
      std::memcpy(content + at, static_cast<const char*>(source) + (at - begin), to - at);
    record_line(line, event::store, stack);
    at = to;
  }
}

void flush(const void* address, std::size_t bytes, bool complete, std::uint32_t stack) noexcept {
  const std::uint64_t at = offset_of(reinterpret_cast<std::uintptr_t>(address));
  append(complete ? event::complete_flush : event::flush, at, bytes, stack);
}

void fence(std::uint32_t stack) noexcept { append(event::fence, 0, 0, stack); }

void sync(std::uint32_t stack) noexcept { append(event::sync, 0, 0, stack); }

void finish() noexcept {
  if (!is_recording() || content == nullptr) return;
  const locked own;
  append_objects();
  // To read a hole through the mapping would fill it. The program may have closed the descriptor: then all is read.
  const bool finds_holes = is_pool(pool_file);
  std::uint64_t hash = 0;
  for (std::uint64_t at = 0; at < pool_bytes;) {
    std::uint64_t to = pool_bytes;
    if (finds_holes) {
      const off_t from = ::lseek(pool_file, static_cast<off_t>(at), SEEK_DATA);
      if (from < 0) break;
      at = static_cast<std::uint64_t>(from) / 8 * 8;
      const off_t hole = ::lseek(pool_file, from, SEEK_HOLE);
      if (hole >= 0 && static_cast<std::uint64_t>(hole) < pool_bytes)
        to = (static_cast<std::uint64_t>(hole) + 7) / 8 * 8;
    }
    for (; at < to; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, content + at, 8);
      hash += hash_of_word(at, word);
    }
  }
  append(event::end, hash, 0, 0);
}

}  // namespace pmlab::programs::recorder
