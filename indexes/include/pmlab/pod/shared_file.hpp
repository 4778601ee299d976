// Memory that hosts share, as a medium: a file that each of them maps.
//
//   pod::make_shared_file("/mnt/cxl/table", 1 << 30, 64 << 20);             // once
//   pod::shared_file memory("/mnt/cxl/table", pod::sharing::with_others);   // on each host
//   auto table = pod::shared_dash<pod::shared_file>::open(memory);
#pragma once

#include <pmlab/pod/file_lines.hpp>
#include <pmlab/pod/space.hpp>

#include <cstdint>
#include <string>

namespace pmlab::pod {

// A host's view of the file: see `space`. Processes of one machine may be hosts of it, too.
using shared_file = space<file_lines>;
static_assert(media::medium<shared_file> && media::pod_medium<shared_file>);

// Makes the file at `path`, with a space of `bytes` bytes, whose first `coherent_bytes` are coherent between hosts; as
// many as `bytes`: all. Throws pmlab::error: the path exists, there is no room, or it is too small.
template <line_memory Lines = file_lines>
void make_shared_file(const std::string& path, std::uint64_t bytes, std::uint64_t coherent_bytes) {
  const file_shape shape{bytes, coherent_bytes, Lines::has_stale_copies};
  host_file::make(path, shape, Lines::bytes_beyond,
                  [](const std::string& unnamed) { const space<Lines> made(unnamed, sharing::alone); });
}

}  // namespace pmlab::pod
