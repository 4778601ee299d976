// The names of the indexes that a test of pools runs on: all of pmlab's own that keep their entries.
#pragma once

#include "bench/catalogue/registry.hpp"

#include <string>
#include <vector>

namespace pmlab::tests {

[[nodiscard]] inline std::vector<std::string> pool_indexes() {
  std::vector<std::string> own;
  // A hybrid has no root of its own.
  for (const bench::index_description* d : bench::all_indexes())
    if (!d->peer && d->kept == bench::keeps::entries && d->layout_version != 0) own.push_back(d->name);
  return own;
}

}  // namespace pmlab::tests
