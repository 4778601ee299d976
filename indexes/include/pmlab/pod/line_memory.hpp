// Lines of memory that several hosts share: what `pod::space` makes a medium of.
//
//   file_lines    a file that each host maps: CXL memory behind a file system, or processes of one machine
//   stale_lines   the same file, and a copy of its own for each process: hosts whose caches are not coherent, without
//                 such hardware
#pragma once

#include <pmlab/base/requirements.hpp>

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace pmlab::pod {

// One host's view of a memory. Offsets are from its first byte. Thread safety: every operation from any number of
// threads, but for classes that state another rule.
template <class L>
concept line_memory = requires(L& l, const L& cl, void* target, const void* address, std::size_t bytes,
                               std::uint64_t offset, std::atomic<std::uint64_t>& word, std::uint64_t& expected) {
  // As a user would name it.
  { cl.name() } -> std::convertible_to<std::string>;
  // The memory has; the first has offset 0.
  { cl.bytes() } -> std::same_as<std::uint64_t>;
  // The first bytes, which are the same for all hosts without a refresh. 0: none.
  { cl.coherent_bytes() } -> std::same_as<std::uint64_t>;
  // Where this host has the byte of this offset.
  { cl.at(offset) }
  noexcept->std::same_as<char*>;
  // REQUIRES: the address is in the memory.
  { cl.offset_of(address) }
  noexcept->std::same_as<std::uint64_t>;
  // Flushed and fenced stores survive a power failure.
  { cl.is_durable() } -> std::same_as<bool>;

  // No other host has it open, or opens it while this one has.
  { cl.is_alone() } -> std::same_as<bool>;
  // Makes this process the host of this number, until `release_host`. False: it is another one's.
  { l.take_host(0U) } -> std::same_as<bool>;
  // Leaves the number to another process. REQUIRES: this one has it.
  { l.release_host(0U) }
  noexcept;
  // The process that had taken the number has ended, and stores nothing more. REQUIRES: it was taken.
  { cl.has_died(0U) }
  noexcept->std::same_as<bool>;

  // As media::medium and media::pod_medium have them.
  { l.flush(address, bytes) }
  noexcept;
  { l.fence() }
  noexcept;
  { l.copy(target, address, bytes) }
  noexcept;
  { l.refresh(address, bytes) }
  noexcept;
  { l.device_compare_exchange(word, expected, offset) }
  noexcept->std::same_as<bool>;
  // Stores the word around the caches, and changes no other byte of its line. On the device behind the next fence.
  { l.device_store(word, offset) }
  noexcept;
};

}  // namespace pmlab::pod
