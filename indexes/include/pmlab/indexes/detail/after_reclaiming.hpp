// Operations that need space, which memory that waited for readers may become.
#pragma once

#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/epoch.hpp>

namespace pmlab::indexes::detail {

// Calls attempt() until it does not answer `full`, or no retired memory could be reclaimed since; returns its answer.
// REQUIRES: this thread has no guard of `epochs`.
template <class Attempt>
outcome after_reclaiming(sync::epochs& epochs, Attempt&& attempt) {
  for (;;) {
    const outcome answer = attempt();
    if (answer != outcome::full || epochs.reclaim() == 0) return answer;
  }
}

}  // namespace pmlab::indexes::detail
