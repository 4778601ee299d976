// The indexes that the program knows.
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include <pmlab/bench/registry.hpp>

#include <algorithm>
#include <deque>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

// Filled while the program starts, in an order that the linker chooses: hence a function's static.
std::deque<index_description>& registered() {
  static std::deque<index_description> indexes;
  return indexes;
}

}  // namespace

registration::registration(index_description description) { registered().push_back(std::move(description)); }

std::vector<const index_description*> all_indexes() {
  std::vector<const index_description*> all;
  for (const index_description& d : registered()) all.push_back(&d);
  std::sort(all.begin(), all.end(), [](const index_description* a, const index_description* b) {
    return std::tie(a->peer, a->name) < std::tie(b->peer, b->name);
  });
  return all;
}

const index_description& find_index(std::string_view name) {
  std::vector<std::string_view> names;
  for (const index_description* d : all_indexes()) {
    if (d->name == name) return *d;
    names.push_back(d->name);
  }
  throw error(fmt::format("there is no index '{}'", name),
              fmt::format("did you mean {}? `pmlab list` names the indexes", nearest(name, names)));
}

}  // namespace pmlab::bench
