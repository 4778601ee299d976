// The drive itself as a volume, and as the base of peers that put something before each write in place.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/stores/subjects.hpp"
#include "bench/stores/volume_subject.hpp"

#include <memory>

namespace pmlab::store_bench {

// A write is one durable write. The volume is at the start of the device.
[[nodiscard]] std::unique_ptr<volume_subject> make_raw(const store_setup& setup, blocks::any_device& device);

}  // namespace pmlab::store_bench
