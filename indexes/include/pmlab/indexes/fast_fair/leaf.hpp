// What operations do with the leaf of their key, once they have found it and, to change it, locked it.
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/fast_fair/split.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>

#include <atomic>
#include <cstddef>
#include <optional>
#include <span>

namespace pmlab::indexes::detail::fast_fair {

// The word of the key's value; nullptr: the key is not there.
[[nodiscard]] inline std::atomic<value_type>* stored_value(node& leaf, key_type key) noexcept {
  if (key == greatest_key)
    return leaf.greatest_present.load(std::memory_order_acquire) != 0 ? &leaf.greatest_value : nullptr;
  const auto slot = leaf.slot_of(key);
  return slot ? &leaf.value(*slot) : nullptr;
}

// The first entries of a leaf from `from` on, as many as fit into `out`; returns their number.
[[nodiscard]] inline std::size_t copy_entries(node& leaf, key_type from, std::span<entry> out) noexcept {
  std::size_t count = 0;
  for (std::size_t i = 0; i < capacity && count < out.size(); ++i)
    if (leaf.key_at(i) >= from && !leaf.is_free(i)) out[count++] = {leaf.key_at(i), leaf.value_at(i)};
  if (count < out.size() && !leaf.sibling.load(std::memory_order_acquire) &&
      leaf.greatest_present.load(std::memory_order_acquire) != 0)
    out[count++] = {greatest_key, leaf.greatest_value.load(std::memory_order_acquire)};
  return count;
}

// Removes the key of a locked leaf. erased or absent; durable on return.
template <media::medium Medium>
outcome remove(Medium& medium, node& leaf, key_type key) {
  if (key == greatest_key) {
    if (leaf.greatest_present.load(std::memory_order_relaxed) == 0) return outcome::absent;
    leaf.greatest_present.store(0, std::memory_order_release);  // (X1) commit
    media::persist(medium, leaf.greatest_present);              // (X2)
    // (X1) < (X2) < unlock: a reader that misses the key answers only when its removal is durable.
    return outcome::erased;
  }
  const auto slot = leaf.slot_of(key);
  if (!slot) return outcome::absent;
  erase_from(medium, leaf, *slot);
  return outcome::erased;
}

// Adds greatest_key, which is not there, to the locked last leaf. Durable on return.
template <media::medium Medium>
outcome put_greatest(Medium& medium, node& leaf, value_type value) {
  // (Y1) < (Y2): one line, so no crash image holds the key without its value.
  leaf.greatest_value.store(value, std::memory_order_release);  // (Y1)
  leaf.greatest_present.store(1, std::memory_order_release);    // (Y2) commit
  media::persist(medium, leaf.greatest_present);                // (Y3)
  // (Y2) < (Y3) < unlock: the value that a reader returns is durable.
  return outcome::inserted;
}

// Adds (key, value), which is not there, to a locked leaf. inserted; full: no space for a split; nothing: the leaf was
// split for it, so that the caller tells the parent, and begins again.
template <media::medium Medium>
std::optional<outcome> add(Medium& medium, node& leaf, key_type key, value_type value, unannounced& split_off) {
  if (key == greatest_key) return put_greatest(medium, leaf, value);
  if (insert_into(medium, leaf, key, value)) return outcome::inserted;
  if (!split(medium, leaf, key, split_off)) return outcome::full;
  return std::nullopt;
}

}  // namespace pmlab::indexes::detail::fast_fair
