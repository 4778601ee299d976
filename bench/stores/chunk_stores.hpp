// chunk_store as a subject, with its records in each container. Each is defined in a source of its own, which is long
// to compile.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/stores/subjects.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

namespace pmlab::store_bench {

// In the medium of the setup.
[[nodiscard]] std::unique_ptr<volume_subject> make_chunk_store_on_medium(const store_setup& setup,
                                                                         blocks::any_device& device);
// On the drive.
[[nodiscard]] std::unique_ptr<volume_subject> make_chunk_store_on_blocks(const store_setup& setup,
                                                                         blocks::any_device& device);
// In a key-value device on the drive, whose memory is the medium of the setup.
[[nodiscard]] std::unique_ptr<volume_subject> make_chunk_store_on_kv(const store_setup& setup,
                                                                     blocks::any_device& device);

// Bytes at the end of the drive that are the key-value device's flash: for twice the records that chunks of the volume
// can have.
[[nodiscard]] inline std::uint64_t flash_of_records(const store_setup& setup) {
  constexpr std::uint64_t least = std::uint64_t{8} << 20;
  constexpr std::uint64_t of_record = 1024;
  constexpr std::uint64_t superblock = std::uint64_t{256} << 10;
  const std::uint64_t needed = std::max(least, setup.volume_bytes / setup.chunk_bytes * 2 * of_record);
  return (needed + superblock - 1) / superblock * superblock + superblock;
}

}  // namespace pmlab::store_bench
