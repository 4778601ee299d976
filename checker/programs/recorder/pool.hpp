// The pool file: its mappings in the program, which it may only read, and the content that has been recorded.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pmlab::programs::recorder {

// A mapping that the program has made of the file `file`. The first one makes it the pool.
void add_mapping(void* address, std::size_t bytes, int file, std::uint64_t offset) noexcept;
void remove_mapping(void* address, std::size_t bytes) noexcept;
// Whether `file` is open on the pool.
[[nodiscard]] bool is_pool(int file) noexcept;
// Whether a mapping of the pool holds the address.
[[nodiscard]] bool holds(const void* address) noexcept;

// REQUIRES of these: the lock, and addresses that a mapping of the pool holds.
// Lets the program store to the page of the address, until close_pages.
void open_page(void* address) noexcept;
// Records what has changed in the open pages.
void record_changes(bool streaming, std::uint32_t stack) noexcept;
// One instruction may have no room for further ones.
[[nodiscard]] bool are_almost_all_open() noexcept;
// Closes them, and records what has changed in them.
void close_pages(bool streaming, std::uint32_t stack) noexcept;
// Stores for the program: null `source` sets to `value`. In lines, each of which may be torn anywhere.
void store(void* target, const void* source, int value, std::size_t bytes, std::uint32_t stack) noexcept;
void flush(const void* address, std::size_t bytes, bool complete, std::uint32_t stack) noexcept;
void fence(std::uint32_t stack) noexcept;
void sync(std::uint32_t stack) noexcept;

// The program ends.
void finish() noexcept;

}  // namespace pmlab::programs::recorder
