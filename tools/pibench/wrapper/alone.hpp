// Recipe of a library: an index by itself.
#pragma once

#include <string_view>

namespace pmlab::pibench {

// `Index`: a class template whose first parameter is the medium, its others defaulted.
template <template <class...> class Index>
struct alone {
  // The index `name` in `medium`; empty: of its layout's name. Throws the exceptions of Index::open.
  template <class Medium>
  [[nodiscard]] Index<Medium> open(Medium& medium, std::string_view name = {}) const {
    return Index<Medium>::open(medium, name.empty() ? Index<Medium>::layout_name : name);
  }
};

}  // namespace pmlab::pibench
