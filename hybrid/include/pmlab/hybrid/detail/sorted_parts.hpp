// The entries of a hash in the order of keys: cut into ranges of keys, each of which one thread sorts.
#pragma once

#include <pmlab/hybrid/detail/rebuild.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace pmlab::hybrid::detail {

inline bool by_key(const indexes::entry& a, const indexes::entry& b) noexcept { return a.key < b.key; }

// Numbers for keys between two bounds, ascending with the keys: their upper bits.
class upper_bits {
 public:
  // `wanted`: the desired number of parts; the result has at most twice as many.
  upper_bits(indexes::key_type lowest, indexes::key_type highest, std::size_t wanted) noexcept
      : lowest_(lowest), bits_(bits_for(wanted)) {
    const auto width = static_cast<unsigned>(std::bit_width(highest - lowest));
    shift_ = width > bits_ ? width - bits_ : 0;
  }

  [[nodiscard]] static constexpr std::size_t count_for(std::size_t wanted) noexcept {
    return std::size_t{1} << bits_for(wanted);
  }
  [[nodiscard]] std::size_t count() const noexcept { return std::size_t{1} << bits_; }
  [[nodiscard]] std::size_t operator()(indexes::key_type key) const noexcept { return (key - lowest_) >> shift_; }

 private:
  // One at least: a shift by all 64 bits is none.
  static constexpr unsigned bits_for(std::size_t wanted) noexcept {
    return std::max(1U, static_cast<unsigned>(std::bit_width(wanted)));
  }
  indexes::key_type lowest_;
  unsigned bits_;
  unsigned shift_;
};

// Entries in the order of arrival, in blocks that are not moved when more are added.
class entry_blocks {
 public:
  static constexpr std::size_t block_entries = std::size_t{1} << 16;

  void push_back(const indexes::entry& e) {
    if (count_ % block_entries == 0) blocks_.emplace_back(new indexes::entry[block_entries]);
    blocks_.back()[count_++ % block_entries] = e;
    lowest_ = std::min(lowest_, e.key);
    highest_ = std::max(highest_, e.key);
  }

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_.size(); }
  [[nodiscard]] std::span<indexes::entry> block(std::size_t b) const noexcept {
    return {blocks_[b].get(), std::min(block_entries, count_ - b * block_entries)};
  }
  [[nodiscard]] const indexes::entry& operator[](std::size_t i) const noexcept {
    return blocks_[i / block_entries][i % block_entries];
  }
  // REQUIRES: there is one.
  [[nodiscard]] indexes::key_type lowest() const noexcept { return lowest_; }
  [[nodiscard]] indexes::key_type highest() const noexcept { return highest_; }

 private:
  std::vector<std::unique_ptr<indexes::entry[]>> blocks_;
  std::size_t count_ = 0;
  indexes::key_type lowest_ = std::numeric_limits<indexes::key_type>::max();
  indexes::key_type highest_ = 0;
};

// Entries, cut into parts: all keys of a part are below those of the next one.
struct parted_entries {
  std::unique_ptr<indexes::entry[]> entries;
  std::vector<std::size_t> starts;  // starts of the parts, and the end of the last one

  [[nodiscard]] std::size_t parts() const noexcept { return starts.size() - 1; }
  [[nodiscard]] std::span<indexes::entry> part(std::size_t p) const noexcept {
    return {entries.get() + starts[p], starts[p + 1] - starts[p]};
  }
};

// Cuts into parts part_of(key) = 0, 1, ...: counted block by block, so that each block knows the position of its
// entries. Nothing if a part is larger than `largest`.
template <class PartOf>
[[nodiscard]] std::optional<parted_entries> cut(const entry_blocks& all, std::size_t parts, unsigned threads,
                                                std::size_t largest, PartOf&& part_of) {
  std::vector<std::size_t> places(all.blocks() * parts);
  sync::run_in_parallel(threads, all.blocks(), 1, [&](std::size_t b) {
    for (const indexes::entry& e : all.block(b)) ++places[b * parts + part_of(e.key)];
  });
  parted_entries result;
  std::size_t next = 0;
  for (std::size_t p = 0; p < parts; ++p) {
    result.starts.push_back(next);
    for (std::size_t b = 0; b < all.blocks(); ++b) next += std::exchange(places[b * parts + p], next);
    if (next - result.starts.back() > largest) return std::nullopt;
  }
  result.starts.push_back(next);
  result.entries.reset(new indexes::entry[all.size()]);
  sync::run_in_parallel(threads, all.blocks(), 1, [&](std::size_t b) {
    for (const indexes::entry& e : all.block(b)) result.entries[places[b * parts + part_of(e.key)]++] = e;
  });
  return result;
}

// Into parts of about `entries_per_part`. If keys are spread evenly, their upper bits select the part; otherwise bounds
// that are chosen from a sample.
[[nodiscard]] inline parted_entries cut_by_key(const entry_blocks& all, std::size_t entries_per_part,
                                               unsigned threads) {
  const upper_bits even_part(all.lowest(), all.highest(), all.size() / entries_per_part);
  constexpr std::size_t tolerated = 4;
  if (auto even = cut(all, even_part.count(), threads, tolerated * entries_per_part, even_part))
    return *std::move(even);

  constexpr std::size_t samples_per_part = 32;
  const std::size_t parts = all.size() / entries_per_part + 1;
  const std::size_t samples = parts * samples_per_part;
  std::vector<indexes::key_type> bounds;
  for (std::size_t i = 0; i < samples; ++i) bounds.push_back(all[all.size() / samples * i].key);
  std::sort(bounds.begin(), bounds.end());
  for (std::size_t i = 1; i < parts; ++i) bounds[i - 1] = bounds[i * samples_per_part];
  bounds.resize(parts - 1);
  return *cut(all, parts, threads, all.size(), [&bounds](indexes::key_type key) {
    return static_cast<std::size_t>(std::upper_bound(bounds.begin(), bounds.end(), key) - bounds.begin());
  });
}

// Sorts one part after the other. Where keys are spread evenly, the place of an entry is nearly known from its key:
// they go into small buckets by the upper bits, and these are sorted.
class part_sorter {
 public:
  // `largest`: entries of the largest part. May throw std::bad_alloc; sorting does not.
  explicit part_sorter(std::size_t largest)
      : sorted_(new indexes::entry[largest]), ends_(upper_bits::count_for(largest / entries_per_bucket)) {}

  // The same entries, ascending; until the next call.
  [[nodiscard]] std::span<const indexes::entry> sort(std::span<const indexes::entry> part) noexcept {
    if (part.empty()) return part;
    const auto [lowest, highest] = std::minmax_element(part.begin(), part.end(), by_key);
    const upper_bits bucket_of(lowest->key, highest->key, part.size() / entries_per_bucket);
    const auto ends = std::span(ends_).first(bucket_of.count());
    std::fill(ends.begin(), ends.end(), 0);
    for (const indexes::entry& e : part) ++ends[bucket_of(e.key)];
    std::size_t next = 0;
    for (std::size_t& end : ends) next += std::exchange(end, next);
    for (const indexes::entry& e : part) sorted_[ends[bucket_of(e.key)]++] = e;
    indexes::entry* begin = sorted_.get();
    for (const std::size_t end : ends) {
      indexes::entry* const bucket_end = sorted_.get() + end;
      if (bucket_end - begin > 1) std::sort(begin, bucket_end, by_key);
      begin = bucket_end;
    }
    return {sorted_.get(), part.size()};
  }

 private:
  static constexpr std::size_t entries_per_bucket = 4;
  std::unique_ptr<indexes::entry[]> sorted_;
  std::vector<std::size_t> ends_;  // ends of the buckets
};

// Calls load(entries) with all entries of `hash` in parts: ascending within each, and no two parts' keys between one
// another; from up to `threads` threads. REQUIRES: no concurrent change of `hash`. Uses 32 bytes of DRAM per entry
// while it runs. Returns the number of entries; stops early when `stop` returns true. May throw std::bad_alloc, before
// the first call, or when all threads have ended, if `load` did.
template <class Hash, class Load>
std::uint64_t for_each_sorted_part(const Hash& hash, unsigned threads, const std::atomic<bool>& stop, Load&& load) {
  constexpr std::size_t entries_per_part = std::size_t{1} << 14;
  entry_blocks all;
  hash.for_each([&](indexes::key_type key, indexes::value_type value) { all.push_back({key, value}); });
  const std::uint64_t count = all.size();
  if (count == 0) return 0;
  const parted_entries parted = cut_by_key(all, entries_per_part, threads);
  all = {};
  std::size_t largest = 0;
  for (std::size_t p = 0; p < parted.parts(); ++p) largest = std::max(largest, parted.part(p).size());
  std::vector<part_sorter> sorters;
  for (unsigned t = 0; t < threads; ++t) sorters.emplace_back(largest);
  std::atomic<std::size_t> next{0};
  run_while_memory(threads, [&](std::size_t t) {
    for (std::size_t p = next++; p < parted.parts() && !stop.load(std::memory_order_relaxed); p = next++)
      load(sorters[t].sort(parted.part(p)));
  });
  return count;
}

}  // namespace pmlab::hybrid::detail
