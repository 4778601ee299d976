// What a search takes from the leaf of its key.
#pragma once

#include <pmlab/indexes/fast_fair/node.hpp>
#include <pmlab/indexes/index.hpp>

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

}  // namespace pmlab::indexes::detail::fast_fair
