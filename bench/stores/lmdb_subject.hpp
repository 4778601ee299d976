// LMDB as a store of pairs.
//
// It maps its file, so its bytes go past the block devices of a run: for a device in memory the file is on tmpfs
// (/dev/shm), for a file it is beside that file (PATH.lmdb); modelled drives are refused. Its bytes are those that its
// threads give to the kernel's write calls; where the kernel does not count these they are not known.
//
// Several drives have a file each; keys are spread by hash. A change is a transaction, synced by itself if `loss_ms` is
// 0, else by a timer every `loss_ms`. It has no log, and no cache but the kernel's pages.
#pragma once

#include "bench/stores/pair_stores.hpp"

#include <memory>

namespace pmlab::store_bench {

[[nodiscard]] std::unique_ptr<pair_subject> make_lmdb(const pair_setup& setup, const pair_drives& drives);

}  // namespace pmlab::store_bench
