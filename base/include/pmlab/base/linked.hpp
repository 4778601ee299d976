// A list whose links are members of its items: an item enters and leaves it in constant time, and no memory is
// allocated.
#pragma once

#include <pmlab/base/requirements.hpp>

namespace pmlab {

// The operations of such a list, whose first item is where the caller keeps it (`Item* first`, nullptr: the list is
// empty). An item is in at most one list of the same two members. Links of an item that is in no list have no meaning.
// Thread safety: none.
template <auto Previous, auto Next>
struct linked;

// The same, with the type of the items deduced.
template <class Item, Item* Item::*Previous, Item* Item::*Next>
struct linked<Previous, Next> {
  // Puts an item before the first one. REQUIRES: it is not in the list.
  static void push(Item*& first, Item& item) noexcept {
    item.*Previous = nullptr;
    item.*Next = first;
    if (first != nullptr) first->*Previous = &item;
    first = &item;
  }

  // Takes an item out. REQUIRES: it is in the list.
  static void remove(Item*& first, Item& item) noexcept {
    Item* const next = item.*Next;
    Item* const previous = item.*Previous;
    (previous == nullptr ? first : previous->*Next) = next;
    if (next != nullptr) next->*Previous = previous;
  }
};

}  // namespace pmlab
