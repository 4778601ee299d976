// Moments of a chunk store: the content of its drive, the session that its records know, and whether a store that is
// opened answers right.
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/blocks/memory.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store.hpp>

#include "stores/tests/chunk_stores.hpp"
#include "support/message_of.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace pmlab::tests {

namespace layout = stores::detail::chunk_store;
using content = std::map<std::string, expected_volume>;

[[nodiscard]] inline std::vector<std::byte> content_of(blocks::memory& device) {
  const auto all = device.content();
  return {all.begin(), all.end()};
}
inline void restore(blocks::memory& device, const std::vector<std::byte>& to) {
  std::ranges::copy(to, device.content().begin());
}

// Opens, and returns the error; each volume is right, if there is none.
template <class Open>
[[nodiscard]] std::string answer(Open&& open, const content& right, const std::string& what) {
  return message_of([&] {
    auto store = open();
    for (const auto& [name, volume] : right) {
      std::vector<std::byte> got(volume.blocks() * block);
      store.volume(name).read(0, got);
      EXPECT_TRUE(got == volume.read(0, volume.blocks())) << what << ": volume " << name << " is wrong in silence";
    }
    const auto report = store.check();
    EXPECT_TRUE(report.ok()) << what << ": " << report.violations.front();
  });
}

inline constexpr blocks::geometry torn_small{
    .blocks = 200, .block_bytes = block, .atomic_bytes = 0, .volatile_cache = true};

// The words of the session in the superblock of the store in `medium`: of the durable moment, and of the begun one.
class session_words {
 public:
  using words = std::array<std::uint64_t, 2>;
  explicit session_words(media::dram& medium)
      : super_(*medium.resolve(
            media::pointer<layout::superblock>(medium.named_root("chunk_store", "chunk_store", 1).word->load()))) {}
  [[nodiscard]] words now() const { return {super_.volumes[0].session.load(), super_.volumes[1].session.load()}; }
  void set(const words& to) const {
    for (std::size_t i = 0; i < to.size(); ++i) super_.volumes[i].session.store(to[i]);
  }

 private:
  layout::superblock& super_;
};

template <class Store>
void make(Store& store, content& right, splitmix64& random, std::uint64_t& version, int steps) {
  for (const auto& [name, volume] : right) static_cast<void>(store.volume(name, {.bytes = volume.blocks() * block}));
  operate(store, right, random, steps, version);
}

// Opens a store, makes the volumes of `right` with some content, and closes it.
template <class Open>
void make_and_close(Open&& open, content& right) {
  auto store = open();
  splitmix64 random(6);
  std::uint64_t version = 0;
  make(store, right, random, version, 20);
}

}  // namespace pmlab::tests
