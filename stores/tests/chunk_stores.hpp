// Chunk stores on each of their containers, blocks in a map to compare them with, and random operations on both.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store.hpp>
#include <pmlab/stores/kv_ssd.hpp>

#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmlab::tests {

inline constexpr std::uint32_t block = 512;
inline constexpr blocks::geometry torn{.blocks = 512, .block_bytes = block, .atomic_bytes = 0, .volatile_cache = true};
inline constexpr blocks::geometry whole{
    .blocks = 512, .block_bytes = block, .atomic_bytes = block, .volatile_cache = true};

template <media::medium Medium, class Device = blocks::memory, class Index = indexes::cceh<Medium>>
using store_on = stores::chunk_store<Medium, Device, Index>;

inline constexpr stores::chunk_store_options small{.chunk_bytes = 32 * block, .ring = 6};
inline constexpr stores::chunk_store_options tiny{.chunk_bytes = 8 * block, .ring = 3};

inline constexpr auto by_copy = stores::merge_policy::copy;
inline constexpr stores::chunk_store_options small_by_copy{.chunk_bytes = 32 * block, .ring = 6, .merge = by_copy};
inline constexpr stores::chunk_store_options tiny_by_copy{.chunk_bytes = 8 * block, .ring = 3, .merge = by_copy};

// Data of `count` blocks: each has its number and the version of the write, all over.
[[nodiscard]] inline std::vector<std::byte> data_of(std::uint64_t first, std::uint64_t count, std::uint64_t version) {
  std::vector<std::byte> data(count * block);
  for (std::uint64_t i = 0; i < count; ++i)
    for (std::size_t at = 0; at < block; at += 16) {
      const std::uint64_t words[2] = {first + i, version};
      std::memcpy(data.data() + i * block + at, words, sizeof words);
    }
  return data;
}

// The contents that volumes should have.
class expected_volume {
 public:
  explicit expected_volume(std::uint64_t blocks_of) : versions_(blocks_of, 0) {}
  void write(std::uint64_t first, std::uint64_t count, std::uint64_t version) {
    std::fill_n(versions_.begin() + static_cast<std::ptrdiff_t>(first), count, version);
  }
  // Takes these blocks of another one.
  void copy(const expected_volume& from, std::uint64_t first, std::uint64_t count) {
    std::copy_n(from.versions_.begin() + static_cast<std::ptrdiff_t>(first), count,
                versions_.begin() + static_cast<std::ptrdiff_t>(first));
  }
  [[nodiscard]] std::vector<std::byte> read(std::uint64_t first, std::uint64_t count) const {
    std::vector<std::byte> data;
    for (std::uint64_t b = first; b < first + count; ++b) {
      const auto one = versions_[b] == 0 ? std::vector<std::byte>(block) : data_of(b, 1, versions_[b]);
      data.insert(data.end(), one.begin(), one.end());
    }
    return data;
  }
  [[nodiscard]] std::uint64_t blocks() const { return versions_.size(); }

 private:
  std::vector<std::uint64_t> versions_;
};

template <class Store>
void expect_equal(Store& store, const std::map<std::string, expected_volume>& right) {
  for (const auto& [name, content] : right) {
    auto disk = store.volume(name);
    std::vector<std::byte> got(content.blocks() * block);
    disk.read(0, got);
    ASSERT_TRUE(got == content.read(0, content.blocks())) << name;
  }
  const auto report = store.check();
  ASSERT_TRUE(report.ok()) << report.violations.front();
}

// Writes 1 to 6 blocks of a chunk of `small`, at random. False: the write failed, and `content` is as before.
template <class Volume>
[[nodiscard]] bool write_somewhere(Volume& disk, expected_volume& content, splitmix64& random, std::uint64_t version) {
  const std::uint64_t chunk_blocks = small.chunk_bytes / block;
  const std::uint64_t first = random.below(content.blocks());
  const std::uint64_t chunk_end = (first / chunk_blocks + 1) * chunk_blocks;
  const std::uint64_t count = 1 + random.below(std::min<std::uint64_t>(chunk_end - first, 6));
  if (!message_of([&] { disk.write(first * block, data_of(first, count, version)); }).empty()) return false;
  content.write(first, count, version);
  return true;
}

// Random operations on two volumes of `blocks_of` blocks.
template <class Store>
void operate(Store& store, std::map<std::string, expected_volume>& right, splitmix64& random, int steps,
             std::uint64_t& version) {
  for (int step = 0; step < steps; ++step) {
    const auto at = std::next(right.begin(), static_cast<std::ptrdiff_t>(random.below(right.size())));
    auto disk = store.volume(at->first);
    expected_volume& content = at->second;
    const std::uint64_t first = random.below(content.blocks());
    const std::uint64_t longest =
        random.one_in(3) ? content.blocks() - first : std::min<std::uint64_t>(content.blocks() - first, 9);
    const std::uint64_t count = random.one_in(3) ? 1 : 1 + random.below(longest);
    ++version;
    switch (random.below(10)) {
      case 0:
        disk.discard(first * block, count * block);
        content.write(first, count, 0);
        break;
      case 1: {
        std::vector<std::byte> got(count * block);
        disk.read(first * block, got);
        ASSERT_TRUE(got == content.read(first, count)) << "step " << step;
        break;
      }
      case 2: {
        const std::uint64_t chunk = first / store.chunk_blocks() * store.chunk_blocks();
        if (chunk + store.chunk_blocks() > content.blocks()) break;
        const auto a = data_of(chunk + 1, 1, version);
        const auto b = data_of(chunk + 3, 2, version);
        const typename Store::volume_handle::part parts[] = {{(chunk + 3) * block, b}, {(chunk + 1) * block, a}};
        disk.write_group(parts);
        content.write(chunk + 1, 1, version);
        content.write(chunk + 3, 2, version);
        break;
      }
      default: disk.write(first * block, data_of(first, count, version)); content.write(first, count, version);
    }
  }
}

// A container of records, which outlives the stores that are opened on it.
template <class Container, class Index, stores::merge_policy Merge = stores::merge_policy::remap>
struct records_in {
  template <class Device>
  using store = stores::chunk_store<Container, Device, Index>;

  Container medium{};

  template <class Device>
  [[nodiscard]] auto open(Device& device, stores::chunk_store_options options) {
    if (Merge == by_copy) options.merge = Merge;
    return store<Device>::open(medium, device, options);
  }
};
template <>
struct records_in<stores::records_on_blocks, void> {
  template <class Device>
  using store = stores::chunk_store<stores::records_on_blocks, Device>;

  template <class Device>
  [[nodiscard]] auto open(Device& device, const stores::chunk_store_options& options) {
    return store<Device>::open(device, options);
  }
};

// A key-value device that is opened again with each store, and a cache of `CacheBytes` for their records.
using pairs_type = stores::kv_device<media::dram, blocks::memory>;
template <std::uint64_t CacheBytes>
struct records_in_pairs {
  template <class Device>
  using store = stores::chunk_store<stores::records_on_kv<pairs_type>, Device>;

  media::dram medium{};
  blocks::memory flash{blocks::geometry{.blocks = 2049, .block_bytes = 512}};
  std::unique_ptr<pairs_type> pairs{};

  template <class Device>
  [[nodiscard]] auto open(Device& device, const stores::chunk_store_options& options) {
    pairs.reset();
    pairs.reset(new pairs_type(pairs_type::open(medium, flash,
                                                {.unit_bytes = 64,
                                                 .superblock_bytes = 16384,
                                                 .over_provisioning = 0.2,
                                                 .buffer_bytes = 16384,
                                                 .largest_value = 4096})));
    return store<Device>::open(*pairs, device, options, {.cache_bytes = CacheBytes});
  }
};

// Fails the next put or erase, behind `skip` others, where `next` asks for it: before it is made, or after that; or
// answers that the device is full.
struct failing_pairs {
  enum class when : std::uint8_t { never, before, after, full };
  pairs_type& inner;
  when next = when::never;
  int skip = 0;
  bool goes_on = false;               // all behind the first fail as it does
  std::function<void()> meanwhile{};  // runs once, within the next of these

  template <class Action>
  auto once(Action&& action) {
    if (meanwhile) std::exchange(meanwhile, {})();
    const when now = skip > 0 ? when::never : std::exchange(next, goes_on ? next : when::never);
    if (skip > 0) --skip;
    if (now == when::before) throw error("the device failed", "test");
    if constexpr (std::is_same_v<decltype(action()), stores::kv_outcome>)
      if (now == when::full) return stores::kv_outcome::full;
    const auto result = action();
    if (now == when::after) throw error("the device failed", "test");
    return result;
  }
  stores::kv_outcome put(std::string_view key, std::span<const std::byte> value, stores::kv_mode mode,
                         std::uint8_t space) {
    return once([&] { return inner.put(key, value, mode, space); });
  }
  std::optional<std::size_t> get(std::string_view key, std::size_t offset, std::span<std::byte> out,
                                 std::uint8_t space) {
    return inner.get(key, offset, out, space);
  }
  bool erase(std::string_view key, std::uint8_t space) {
    return once([&] { return inner.erase(key, space); });
  }
  auto iterate(stores::kv_prefix prefix, std::uint8_t space) { return inner.iterate(prefix, space); }
  [[nodiscard]] std::size_t largest_value() const { return inner.largest_value(); }
};

}  // namespace pmlab::tests
