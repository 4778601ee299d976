// A key-value device under verification: superblocks of two blocks of 512 bytes on a flash that is soon full, so that
// they are collected and used again within a round.
#pragma once

#include <pmlab/stores/kv_ssd.hpp>

namespace pmlab::verify {

inline constexpr stores::kv_options small_kv_device{.unit_bytes = 64,
                                                    .superblock_bytes = 1024,
                                                    .over_provisioning = 0.5,
                                                    .buffer_bytes = 2560,
                                                    .largest_value = 192,
                                                    .bucket_bytes = 320,
                                                    .identity = {1, 2}};

}  // namespace pmlab::verify
