// Whether persistent memory and drives belong to one store: checked whenever it is opened.
//
// (H1) < (N1) < (H2), (H4) < (N2), in the order of drives.hpp: while a store is made, the memory is forming, and empty,
// before the first manifest; it is ready when both drives are. So memory that is ready belongs to a store that exists.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/stores/tiered/layout.hpp>
#include <pmlab/stores/tiered/version_index.hpp>

namespace pmlab::stores::detail::tiered {

template <class Versions>
class memory_opener {
 public:
  static constexpr bool is_there = true;

  explicit memory_opener(Versions& versions) : versions_(versions) {}

  // Throws pmlab::error: another store has it.
  void check_free(bool format) const {
    if (!format && versions_.phase() == memory_phase::ready)
      throw error("the memory belongs to another tiered store, and the drives are blank",
                  "give the drives of that store or another pool; option `format` makes an empty store, and loses all "
                  "that is there");
  }
  void begin(const identity& store) {
    versions_.become(store, memory_phase::forming);  // (N1)
    versions_.clear();
  }
  // Throws pmlab::error: the memory belongs to another store than `store`.
  void check(const identity& store) const {
    if (versions_.phase() == memory_phase::none)
      throw error("the memory is empty, and the drives belong to a tiered store",
                  "give the memory that the store was made with, or none if it was made without");
    if (versions_.store() != store)
      throw error("the memory belongs to another tiered store than the drives", "give memory and drives of one store");
  }
  void end(const identity& store) {
    if (versions_.phase() != memory_phase::ready) versions_.become(store, memory_phase::ready);  // (N2)
  }

 private:
  Versions& versions_;
};

}  // namespace pmlab::stores::detail::tiered
