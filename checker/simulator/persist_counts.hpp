// Flushes and fences of timed code on the simulated machine, for the benchmark.
#pragma once

#include <cstdint>

extern "C" {

// What the platform saves when the power fails: a media::persistence_domain.
unsigned pmlab_machine_persistence() noexcept;

// Since the process began, of code that takes virtual time: lines flushed, and fences. Those of publications are not
// counted, nor flushes that are left out.
std::uint64_t pmlab_machine_flushes() noexcept;
std::uint64_t pmlab_machine_fences() noexcept;
}
