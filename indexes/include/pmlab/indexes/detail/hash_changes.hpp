// The changes of a hash table: what each of them does with a key, once the key's place is locked.
#pragma once

#include <pmlab/indexes/index.hpp>

namespace pmlab::indexes::detail {

// A table makes it a friend. Beside its operations, which are documented there, it has
//
//   step                     the result of the locked part of a change: an outcome, or what an outcome converts to
//   change(key, operation)   calls operation(place, found) with the place of `key` locked; `found`: its slot, or none
//   add(place, value)        step; adds the key, which is absent
//   replace(found, value)    step; gives the key in this slot another value
//   remove(place, found)     step; removes the key in this slot
struct hash_changes {
  template <class Table>
  static outcome insert(Table& table, key_type key, value_type value) {
    return table.change(key, [&](const auto& at, const auto& found) -> typename Table::step {
      return found ? outcome::exists : table.add(at, value);
    });
  }

  template <class Table>
  static outcome update(Table& table, key_type key, value_type value) {
    return table.change(key, [&](const auto&, const auto& found) -> typename Table::step {
      return found ? table.replace(found, value) : outcome::absent;
    });
  }

  template <class Table>
  static outcome upsert(Table& table, key_type key, value_type value) {
    return table.change(key, [&](const auto& at, const auto& found) -> typename Table::step {
      return found ? table.replace(found, value) : table.add(at, value);
    });
  }

  template <class Table>
  static outcome erase(Table& table, key_type key) {
    return table.change(key, [&](const auto& at, const auto& found) -> typename Table::step {
      return found ? table.remove(at, found) : outcome::absent;
    });
  }
};

}  // namespace pmlab::indexes::detail
