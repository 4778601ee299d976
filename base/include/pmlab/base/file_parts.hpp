// The parts of a file that have content. To touch a hole of a mapped file would give it pages.
#pragma once

#include <pmlab/base/requirements.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include <unistd.h>

namespace pmlab {

// Calls function(offset, bytes) for each part of the first `bytes` bytes of `file`, an open descriptor, that is no
// hole, in ascending order. A file whose file system does not find holes, and a device, is one part. Moves the
// descriptor's place.
template <class Function>
void for_each_part_with_data(int file, std::uint64_t bytes, Function&& function) {
  const auto end = static_cast<off_t>(bytes);
  for (off_t at = 0, next = end; at < end; at = next) {
    const off_t data = ::lseek(file, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) return;  // a hole to the end
    const off_t from = data < 0 ? at : data;
    const off_t hole = data < 0 ? -1 : ::lseek(file, from, SEEK_HOLE);
    next = hole > from ? std::min(hole, end) : end;
    if (from < next) function(static_cast<std::uint64_t>(from), static_cast<std::uint64_t>(next - from));
  }
}

}  // namespace pmlab
