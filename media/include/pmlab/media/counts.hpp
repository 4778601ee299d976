// The figures of media that count or delay accesses.
#pragma once

#include <pmlab/base/counters.hpp>

#include <array>
#include <cstdint>

namespace pmlab::media {

// "Device line": 256 B, the unit of an Optane device's media. Distinct lines are distinct addresses.
struct counts {
  std::uint64_t operations = 0;            // calls of begin_operation
  std::uint64_t lines_read = 0;            // 64 B lines visited, each once per operation: later visits hit the cache
  std::uint64_t device_lines_read = 0;     // device lines of these, each once per operation
  std::uint64_t lines_flushed = 0;         // 64 B lines, each time
  std::uint64_t lines_copied = 0;          // 64 B lines written by copy, each time
  std::uint64_t device_lines_written = 0;  // device lines of the flushed and copied lines, each once between two fences
  std::uint64_t fences = 0;                // each time
  std::uint64_t publications = 0;          // committed

  // The counters, in the order of results.
  static constexpr std::array counters{counter{&counts::operations},
                                       counter{&counts::lines_read, "pm_lines_read"},
                                       counter{&counts::device_lines_read, "device_lines_read"},
                                       counter{&counts::device_lines_written, "device_lines_written"},
                                       counter{&counts::lines_flushed, "flushes"},
                                       counter{&counts::fences, "fences"},
                                       counter{&counts::lines_copied, "lines_copied"},
                                       counter{&counts::publications, "publications"}};

  // 64 B lines that were flushed or copied to, each time.
  [[nodiscard]] std::uint64_t lines_written() const noexcept { return lines_flushed + lines_copied; }

  // Adds each counter.
  counts& operator+=(const counts& more) noexcept { return add_counters(*this, more); }

  friend bool operator==(const counts&, const counts&) = default;
};

// Counters of an emulation, summed over all threads or queues.
struct emulation_counts {
  std::uint64_t charged = 0;  // to the model: annotated reads, flush-fence pairs, ... of a memory; requests of a drive
  std::uint64_t waited_ns = 0;  // spent waiting for the device
  std::uint64_t late_ns = 0;    // by which waits ended later than those for the device
};

}  // namespace pmlab::media
