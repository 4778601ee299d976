// The update of a stored value in place.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>

namespace pmlab::indexes::detail {

// Replaces the value of a present key. The caller holds the lock of the node that it is in. Durable on return; one
// flush and one fence.
template <media::medium Medium>
outcome replace_value(Medium& medium, std::atomic<value_type>& stored, value_type value) {
  stored.store(value, std::memory_order_release);  // (U1) commit
  media::persist(medium, stored);                  // (U2)
  // (U1) < (U2) < unlock: the value that a reader returns is durable.
  return outcome::updated;
}

}  // namespace pmlab::indexes::detail
