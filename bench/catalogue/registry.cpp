// The indexes that the program knows.
#include "bench/catalogue/registry.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/spec.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/support/optional_packages.hpp"

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

std::deque<index_description>& registered_by_hosts() {
  static std::deque<index_description> indexes;
  return indexes;
}

std::deque<combination>& combinations() {
  static std::deque<combination> known;
  return known;
}

// Kept like a registered one: a later caller gets the same.
const index_description& combined(std::string_view text, const spec& given) {
  std::vector<std::string_view> names;
  for (const combination* c : all_combinations()) {
    names.push_back(c->name);
    if (c->name != given.name) continue;
    index_description made = c->describe(given);
    made.name = text;
    // It was made of the description of an index, whose roots are that index alone.
    made.layout_version = 0;
    made.open_root = {};
    made.salvage_root = {};
    return registered().emplace_back(std::move(made));
  }
  throw error(fmt::format("nothing is called {}(...)", given.name),
              fmt::format("did you mean {}(...)? `pmlab list` names the indexes", nearest(given.name, names)));
}

std::vector<const index_description*> sorted(const std::deque<index_description>& indexes) {
  std::vector<const index_description*> all;
  for (const index_description& d : indexes) all.push_back(&d);
  std::sort(all.begin(), all.end(), [](const index_description* a, const index_description* b) {
    return std::tie(a->peer, a->name) < std::tie(b->peer, b->name);
  });
  return all;
}

}  // namespace

registration::registration(index_description description) { registered().push_back(std::move(description)); }
registration::registration(index_description description, by_hosts) {
  registered_by_hosts().push_back(std::move(description));
}
registration::registration(combination made) { combinations().push_back(std::move(made)); }

std::vector<const combination*> all_combinations() {
  std::vector<const combination*> all;
  for (const combination& c : combinations()) all.push_back(&c);
  std::sort(all.begin(), all.end(), [](const combination* a, const combination* b) { return a->name < b->name; });
  return all;
}

std::vector<const index_description*> all_indexes() { return sorted(registered()); }

std::vector<const index_description*> host_indexes() { return sorted(registered_by_hosts()); }

bool is_shared_by_hosts(const index_description& index) noexcept {
  return std::ranges::any_of(registered_by_hosts(), [&](const index_description& d) { return &d == &index; });
}

error has_one_host(std::string_view index, const medium_spec& medium) {
  return error(fmt::format("{} is for several hosts, and medium {} has one", index, medium.text()),
               "use --medium simulated:cxl-pod");
}

const index_description& find_index(std::string_view name) {
  std::vector<std::string_view> names;
  for (const auto known : {all_indexes, host_indexes})
    for (const index_description* d : known()) {
      if (d->name == name) return *d;
      names.push_back(d->name);
    }
  if (const spec given = parse_spec(name); !given.arguments.empty() || !given.options.empty())
    return combined(name, given);
  refuse_left_out(name);
  throw error(fmt::format("there is no index '{}'", name),
              fmt::format("did you mean {}? `pmlab list` names the indexes", nearest(name, names)));
}

}  // namespace pmlab::bench
