// Counts of timed code on the simulated machine, for the benchmark: flushes, fences, the work of the device's media.
#pragma once

#include <cstdint>

extern "C" {

// What the platform saves when the power fails: a media::persistence_domain.
unsigned pmlab_machine_persistence() noexcept;

// Lines flushed, and fences, of code that takes virtual time, since the process began. Publications are not
// counted, nor flushes that are left out.
std::uint64_t pmlab_machine_flushes() noexcept;
std::uint64_t pmlab_machine_fences() noexcept;

// Since the run under way began, in bytes: granules that the media of the device read, and wrote, publications
// included; the size of a granule. 0: no run is under way that has a device.
std::uint64_t pmlab_machine_media_bytes_read() noexcept;
std::uint64_t pmlab_machine_media_bytes_written() noexcept;
std::uint64_t pmlab_machine_granule_bytes() noexcept;
}
