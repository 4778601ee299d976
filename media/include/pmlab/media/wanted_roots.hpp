// Roots that belong together, looked for before the first of them is made.
//
// An index of several roots that finds no place for a later one would leave the earlier ones in the table for good.
#pragma once

#include <pmlab/media/medium.hpp>
#include <pmlab/media/root_table.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::media {

// A root that an index will have: the parameters of named_root.
struct wanted_root {
  std::string name;           // unique in the medium
  std::string layout = {};    // empty: any, which its own opening checks
  std::uint64_t version = 0;  // version of the layout
};

// Throws pmlab::error, as named_root would at one of them: the name belongs to another layout or version; the medium
// has no room for those that it lacks. Makes none, and looks at no medium that does not list its roots. REQUIRES: no
// other thread opens an index in `medium`.
template <class Medium>
void check_roots(Medium& medium, const std::vector<wanted_root>& wanted) {
  if constexpr (requires { medium.roots(); }) {
    const auto there = medium.roots();
    std::size_t places = root_limit - std::min(root_limit, there.size());
    for (const wanted_root& w : wanted) {
      const auto known = std::ranges::find(there, w.name, &root_facts::name);
      if (known == there.end()) {
        if (places-- == 0) throw no_room_for_root(w.name);
      } else if (!w.layout.empty()) {
        check_layout(*known, w.layout, w.version);
      }
    }
  }
}

}  // namespace pmlab::media
