// A device profile: the parameters of the device model for one kind of memory.
//
// Plain data. The model (media/device/model.hpp) defines the meaning of the parameters; docs/device-profiles.md
// describes how to measure and edit them. The profiles that come with pmlab are the files of profiles/, compiled in, so
// that a program finds them in every installation.
#pragma once

#include <pmlab/media/persistence_domain.hpp>

#include <cstdint>
#include <string>

namespace pmlab::media {

// Times in nanoseconds on an idle device, unless noted. A "granule" is the unit in which the device's media reads and
// writes: 256 B on Optane, a cache line elsewhere.
struct device_profile {
  std::string name;         // name of the file, without .toml
  std::string description;  // one line

  // What the platform saves when the power fails. Media of the profile leave flushes out if its caches are saved.
  persistence_domain persistence = persistence_domain::adr;

  // DRAM of the machine where the other figures were measured: the basis of a scale.
  double dram_read_latency_ns = 0;  // measured as read_latency_ns

  // Reads, as seen by a thread.
  double read_latency_ns = 0;            // a line that is read from the media
  double buffered_read_latency_ns = 0;   // a line of a granule that the device's buffer holds
  double next_line_read_latency_ns = 0;  // the line after one that was read: same granule, same row
  double translation_miss_ns = 0;        // more, for an address that the translation buffer does not hold
  double page_walk_ns = 0;               // more, beyond the reach of the CPU's translation buffer
  double line_read_transfer_ns = 0;      // one 64 B line on a DIMM's channel
  double read_p99_ns = 0;                // 99th percentile of idle reads from the media; 0: all are alike
  double read_p99_9_ns = 0;              // and the 99.9th; 0: as read_p99_ns

  // Writes, as seen by a thread.
  double flush_accept_ns = 0;           // store + clwb + fence of a cached line
  double ntstore_accept_ns = 0;         // non-temporal store of a line + fence
  double ntstore_fence_period_ns = 0;   // from one fenced non-temporal store to the next of one thread
  double line_write_transfer_ns = 0;    // one 64 B line on a DIMM's channel
  bool flush_drops_cached_line = true;  // clwb behaves like clflushopt: the next read accesses the device

  // The media of one DIMM.
  double media_read_ns_per_granule = 0;   // how long it is busy, for any part of the granule
  double media_write_ns_per_granule = 0;  // the same
  double write_share = 0;                 // share of its time for writes while both kinds wait, between 0 and 1
  double wear_move_ns = 0;                // contents that are written too often are moved; 0: never
  std::uint64_t wear_writes = 0;          // so often, within 64 KB

  // Sizes.
  std::uint64_t granule_bytes = 0;  // power of two, 64 to 4096
  std::uint64_t dimms = 0;
  std::uint64_t interleave_bytes = 0;            // consecutive bytes on one DIMM; power of two, one granule or more
  std::uint64_t buffer_granules = 0;             // read and write-combining buffer of one DIMM
  std::uint64_t read_queue_granules = 0;         // reads that wait before granules leave the buffer half read
  std::uint64_t write_queue_granules = 0;        // waiting for the media before a thread has to wait
  std::uint64_t translation_buffer_entries = 0;  // entries for 4 KB each, per DIMM; 0: none, no misses
  std::uint64_t outstanding_reads = 0;           // lines, per thread
  std::uint64_t outstanding_stores = 0;          // lines that stores wait for, per thread
  std::uint64_t outstanding_writes = 0;          // lines on their way to the DIMM, per thread; they keep no order
  std::uint64_t partial_write_bytes = 0;         // a line that is not written whole leaves in such pieces; 0: as one
  std::uint64_t cpu_cache_bytes = 0;             // a thread's share of the CPU caches; 0: none

  // Several hosts on one device, and what passes between them. All 0: it has one host.
  std::uint64_t hosts = 0;          // at most so many
  double host_transfer_ns = 0;      // a coherent line that another host has modified, by way of the device
  double host_invalidation_ns = 0;  // one that other hosts have, and have not modified, for a store
  double device_exchange_ns = 0;    // compare-exchange by the device, around the caches
  double line_invalidation_ns = 0;  // clflushopt of a line, where it is not written back
  double load_fence_ns = 0;         // mfence behind it

  // All times above were multiplied by this (see `scaled`). Not in the file.
  double scale = 1;
};

}  // namespace pmlab::media
