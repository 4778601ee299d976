// A drive on which databases keep pages from being torn: the peers `raw_dwb` and `raw_fpw`.
//
// Both promise that a write, a page, is there whole or not at all after a crash, and is durable when it is answered.
// They are the strong forms of their protocols: pages are batched over all operations under way, a write is durable
// only where a crash needs it, and a page no larger than the drive's atomic unit is written in place, as there is
// nothing to protect. Recovery is not part of them: the benchmark does not crash.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/stores/subjects.hpp"
#include "bench/stores/volume_subject.hpp"

#include <cstdint>
#include <memory>

namespace pmlab::store_bench {

// The largest page.
inline constexpr std::uint64_t most_page_bytes = std::uint64_t{4} << 20;

// InnoDB's double write. A batch of pages goes to an area beside the volume in one durable write, then each page to its
// place. The area is used again when the pages are durable in their places. Bytes: 2 for each byte of pages.
[[nodiscard]] std::unique_ptr<volume_subject> make_raw_dwb(const store_setup& setup, blocks::any_device& device);

// PostgreSQL's full-page writes, for pages that change wholly. A group of pages goes to the end of a log in one durable
// write, with a block of their addresses; then they are answered. The newest image of each page stays in memory, as in
// PostgreSQL's shared buffers, and readers get it from there. When half of the log is full, a checkpoint writes the
// images of that half to their places while the other half fills; an image that a newer one replaced meanwhile is left
// out. The log has an eighth of the volume's bytes. Bytes: 1 for the log, a block for each group, and up to 1 for the
// place.
[[nodiscard]] std::unique_ptr<volume_subject> make_raw_fpw(const store_setup& setup, blocks::any_device& device);

// Beside the volume.
[[nodiscard]] std::uint64_t area_of_raw_dwb(const store_setup& setup);
[[nodiscard]] std::uint64_t area_of_raw_fpw(const store_setup& setup);

}  // namespace pmlab::store_bench
