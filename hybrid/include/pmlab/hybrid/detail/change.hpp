// A change of the replica, and the queue in which writers pass changes to the updaters.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/bounded_queue.hpp>

#include <cstdint>

namespace pmlab::hybrid::detail {

// A change of the replica, independent of the operation: an insert, an update and an upsert are all a put.
struct change {
  enum class kind : std::uint8_t { nothing, put, remove };
  kind what = kind::nothing;
  indexes::key_type key = 0;
  indexes::value_type value = 0;
};

// A writer reserves its position before it changes the primary, and publishes the change afterwards. So a thread that
// has seen a change in the primary finds its position already reserved: `reserved` is then the position that the
// replica must reach.
using change_queue = sync::bounded_queue<change>;

}  // namespace pmlab::hybrid::detail
