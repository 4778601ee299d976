// The record as the recorder writes it, and the lock under which everything of the recorder happens.
#pragma once

#include "checker/programs/record.hpp"

#include <cstddef>
#include <cstdint>

namespace pmlab::programs::recorder {

// False outside of pmlab, or when the run is over: then nothing is recorded.
[[nodiscard]] bool is_recording() noexcept;

void open_log() noexcept;

// One step of one thread at a time. A thread that has it may take it again.
void lock() noexcept;
void unlock() noexcept;
[[nodiscard]] bool has_lock() noexcept;

struct locked {
  locked() noexcept { lock(); }
  ~locked() { unlock(); }
  locked(const locked&) = delete;
  locked& operator=(const locked&) = delete;
};

// REQUIRES of these: the lock.
void append(event what, std::uint64_t at, std::uint64_t length, std::uint32_t stack, const void* payload = nullptr,
            std::size_t bytes = 0) noexcept;
// The calls that led here, without the recorder's own. The number of one that was seen before is the same.
// `interrupted`: the instruction that a signal has interrupted; 0: none has.
[[nodiscard]] std::uint32_t this_stack(std::uintptr_t interrupted = 0) noexcept;
// The objects that are loaded now and were not before.
void append_objects() noexcept;

// The run cannot be judged: ends the program.
[[noreturn]] void refuse(const char* problem, const char* remedy) noexcept;

}  // namespace pmlab::programs::recorder
