// A device with the speed of a modelled drive on the real clock: for comparisons with programs that know no virtual
// one.
//
// Use it over blocks::memory, or a file on tmpfs: the inner device must be faster than the drive. Where it is not,
// where the machine's cores are taken, or where a sleeper wakes up late, requests are late; `emulation().late_ns` is by
// how much, and `warning()` is not empty when figures are not to be trusted.
#pragma once

#include <pmlab/blocks/timed.hpp>

#include <utility>

namespace pmlab::blocks {

// Thread safety: as the inner device.
template <device Inner>
class emulated : public timed<Inner, emulated_clock> {
 public:
  // `arguments` build the inner device. Throws pmlab::error for an impossible profile.
  template <class... Arguments>
  explicit emulated(const drive_profile& profile, Arguments&&... arguments)
      : timed<Inner, emulated_clock>(profile, emulated_clock(), std::forward<Arguments>(arguments)...) {}
};

}  // namespace pmlab::blocks
