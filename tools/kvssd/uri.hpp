// The URI of a device: the path of its backing file, and options behind a question mark.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pmlab::kvssd {

struct device_uri {
  std::string path;          // path of the backing file, or of a link to it; device_files finds the files
  std::uint64_t bytes = 0;   // size=: of a device to be made; 0: it must exist
  std::uint64_t memory = 0;  // memory=: of its battery-backed memory; 0: by the size
  std::uint64_t buffer = 0;  // buffer=: of its write buffer; 0: the default
  std::string profile;       // profile=: a drive profile whose time is charged; empty: none
  bool rebuilds = false;     // rebuild=yes: makes the memory again, which is lost, from the backing file
  bool nvme_keys = false;    // mode=nvme: keys of 1 to 16 bytes
};

// "PATH", "PATH?size=1G&profile=p4610". Throws pmlab::error for an option that is not known, a size that is none, an
// empty path.
[[nodiscard]] device_uri parse_uri(std::string_view text);

}  // namespace pmlab::kvssd
