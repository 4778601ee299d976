// Replacing leaves of an NV-Tree by new ones, and adding rows of them.
#pragma once

#include <pmlab/indexes/detail/fingerprints.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/indexes/nv_tree/descriptor.hpp>
#include <pmlab/indexes/nv_tree/gathered.hpp>
#include <pmlab/indexes/nv_tree/inner_nodes.hpp>
#include <pmlab/indexes/nv_tree/leaf.hpp>
#include <pmlab/indexes/nv_tree/leaf_store.hpp>
#include <pmlab/media/medium.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <span>

namespace pmlab::indexes::detail::nv_tree {

// Entries of a leaf that is loaded: room for a few more before it is replaced.
template <class Medium>
inline constexpr std::size_t loaded_entries = slots_of_leaf<Medium> * 6 / 7;
inline constexpr std::size_t most_in_row = 16;

// The effects of a replacement.
struct aftermath {
  bool has_space = true;
  descriptor* added = nullptr;  // locked; the inner nodes do not know it
  descriptor* gone = nullptr;   // unlinked
  std::array<leaf*, 2> freed{};
};

// New leaves, locked.
struct row {
  std::array<descriptor*, most_in_row> leaves;
  std::size_t count = 0;
  std::size_t entries = 0;  // that they have
};

// The tree makes added leaves known to its inner nodes, and reclaims those that were replaced.
template <media::medium Medium>
class replacer {
 public:
  replacer(Medium& medium, leaf_store<Medium>& store, inner_nodes& inner) noexcept
      : medium_(medium), store_(store), inner_(inner) {}

  // Replaces the leaf of `d`, and the next one, `also`, if it is not null, by `pieces` new ones that hold their
  // live entries: 0, 1 or 2. `left` is the neighbour of `d`. All are locked. `to`: the first new leaf; null: any.
  // Durable on return; without space nothing has changed.
  aftermath rewrite(descriptor& left, descriptor& d, descriptor* also, std::size_t pieces, leaf* to = nullptr) {
    gathered_entries gathered;
    gathered.add(visited(d), 0);
    if (also != nullptr) gathered.add(visited(*also), 0);
    const auto all = gathered.in_order();
    const std::size_t stay = pieces == 2 ? (all.size() + 1) / 2 : all.size();
    const auto lower = all.first(stay);
    const auto upper = all.subspan(stay);
    aftermath done;
    leaf* const second = pieces == 2 ? store_.take(false) : nullptr;
    leaf* const first = pieces == 0 || to != nullptr ? to : store_.take(pieces == 1);
    if (pieces == 2) done.added = new (std::nothrow) descriptor(upper.empty() ? 0 : upper.front().key, second);
    if ((pieces > 0 && first == nullptr) || (pieces == 2 && (second == nullptr || done.added == nullptr))) {
      if (first != nullptr) store_.give_back(*first);
      if (second != nullptr) store_.give_back(*second);
      delete done.added;
      return {.has_space = false};
    }

    descriptor& end = also == nullptr ? d : *also;
    const leaf_place after = read_header(end.entries(), medium_.locate(&end.entries())).next;
    if (second != nullptr) store_.fill(*second, done.added->low, after, upper);
    const leaf_place behind_first = second == nullptr ? after : medium_.locate(second);
    if (first != nullptr) store_.fill(*first, d.low, behind_first, lower);
    if (first != nullptr) medium_.fence();                         // (R1)
    link(left, first == nullptr ? after : medium_.locate(first));  // (R2) commit
    // (R1) < (R2): the new leaves are whole before the list leads to them; one store, so that a crash leaves the old
    // leaves or the new ones.
    // (R2) < unlock: the new leaves are durably in the list before they change, and nothing is written to the old ones.

    done.freed = {&d.entries(), also == nullptr ? nullptr : &also->entries()};
    descriptor* next = next_of(end);
    key_type last = end.last.load(std::memory_order_relaxed);
    if (done.added != nullptr) {
      done.added->lock.lock();
      put_in_charge(*done.added, *second, upper, last, next);
      next = done.added;
      last = next->low - 1;
    }
    if (pieces == 0) {
      left.last.store(last, std::memory_order_release);
      left.next.store(next, std::memory_order_release);
      done.gone = &d;
    } else {
      put_in_charge(d, *first, lower, last, next);
      done.gone = also;
    }
    if (done.gone != nullptr) {
      done.gone->appended.fetch_or(descriptor::unlinked, std::memory_order_release);
      // Readers that the inner nodes still lead there wait for the lock.
      inner_.remove(done.gone->low, word_of(*done.gone));
    }
    return done;
  }

  // Links new leaves with these entries, which are greater than those of `left`, behind it. It is locked, and in charge
  // of them and of `low`, the least key of the first new leaf. Fewer than given, or none, if there is no space.
  // REQUIRES: they fit into a row, and none of them is in the leaf.
  row link_row(descriptor& left, key_type low, std::span<const entry> ascending) {
    row made;
    do {
      leaf* const home = store_.take(false);
      if (home == nullptr) break;
      const key_type begin = made.count == 0 ? low : ascending[made.count * loaded_entries<Medium>].key;
      auto* const added = new (std::nothrow) descriptor(begin, home);
      if (added == nullptr) {
        store_.give_back(*home);
        break;
      }
      added->lock.lock();
      made.leaves[made.count++] = added;
    } while (made.count * loaded_entries<Medium> < ascending.size());
    if (made.count == 0) return made;
    made.entries = std::min(ascending.size(), made.count * loaded_entries<Medium>);

    leaf_place behind = read_header(left.entries(), medium_.locate(&left.entries())).next;
    descriptor* next = next_of(left);
    key_type last = left.last.load(std::memory_order_relaxed);
    for (std::size_t i = made.count; i-- > 0;) {
      descriptor& added = *made.leaves[i];
      leaf& home = added.entries();
      const std::size_t first = i * loaded_entries<Medium>;
      const auto its = ascending.subspan(first, std::min(loaded_entries<Medium>, made.entries - first));
      store_.fill(home, added.low, behind, its);
      put_in_charge(added, home, its, last, next);
      behind = medium_.locate(&home);
      next = &added;
      last = added.low - 1;
    }
    medium_.fence();     // (W1)
    link(left, behind);  // (W2) commit
    // (W1) < (W2): the row is whole before the list leads to it; one store, so that a crash leaves all or nothing.
    // (W2) < unlock: the new leaves are durably in the list before they change.
    left.next.store(next, std::memory_order_release);
    left.last.store(last, std::memory_order_release);
    return made;
  }

 private:
  // Makes the leaf of `d`, which is locked, lead to another place. Durable on return.
  void link(descriptor& d, leaf_place next) noexcept {
    leaf& from = d.entries();
    from.link.store(link_to(next, medium_.locate(&from), d.low), std::memory_order_release);  // (K1)
    media::persist(medium_, from.link);                                                       // (K2)
    // (K1) < (K2) < return: see the callers.
  }

  // Gives a locked descriptor this leaf, which has these entries.
  static void put_in_charge(descriptor& d, leaf& home, std::span<const entry> entries, key_type last,
                            descriptor* next) noexcept {
    d.clear_marks();
    for (std::size_t i = 0; i < entries.size(); ++i) d.set_mark(i, fingerprint_of(entries[i].key));
    d.home.store(&home, std::memory_order_release);
    d.last.store(last, std::memory_order_release);
    d.next.store(next, std::memory_order_release);
    d.appended.store(entries.size(), std::memory_order_release);
  }

  const descriptor& visited(const descriptor& d) const noexcept {
    medium_.annotate_read(&d.entries(), leaf_bytes<Medium>);
    return d;
  }

  Medium& medium_;
  leaf_store<Medium>& store_;
  inner_nodes& inner_;
};

}  // namespace pmlab::indexes::detail::nv_tree
