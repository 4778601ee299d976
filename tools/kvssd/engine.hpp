// The store behind the API, on the media that the API has.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/stores/kv_ssd.hpp>

namespace pmlab::kvssd {

using engine = stores::kv_device<media::pmem, blocks::any_device>;

}  // namespace pmlab::kvssd
