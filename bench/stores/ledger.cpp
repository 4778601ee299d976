#include "bench/stores/ledger.hpp"

#include <algorithm>
#include <cstring>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

constexpr std::uint32_t sector_bytes = 512;
constexpr std::uint64_t most_blocks_checked = 4096;

struct stamp {
  std::uint64_t seed = 0;
  std::uint64_t block = 0;
  std::uint64_t version = 0;
  std::uint32_t before = 0;  // blocks of the same write before this one
  std::uint32_t count = 0;   // blocks of the write

  friend bool operator==(const stamp&, const stamp&) = default;
};

// A sector whose stamp is zero must be zero to its end, or a lost write of the rest would go unseen.
bool is_zero(const std::byte* data, std::size_t bytes) noexcept {
  return data[0] == std::byte{0} && std::memcmp(data, data + 1, bytes - 1) == 0;
}

stamp stamp_at(const std::byte* data) noexcept {
  stamp s;
  std::memcpy(&s, data, sizeof s);
  return s;
}

}  // namespace

ledger::ledger(std::uint64_t blocks, std::uint32_t block_bytes, std::uint64_t seed, std::uint64_t whole_bytes,
               bool discarded_are_zeros)
    : cells_(blocks),
      block_bytes_(block_bytes),
      seed_(seed == 0 ? 1 : seed),
      whole_blocks_(std::max<std::uint64_t>(whole_bytes / block_bytes, 1)),
      discarded_are_zeros_(discarded_are_zeros) {}

bool ledger::is_busy(block_range of) const noexcept {
  for (std::uint64_t b = of.first; b < of.end(); ++b)
    if (cells_[b].issued.load(std::memory_order_acquire) != cells_[b].acknowledged.load(std::memory_order_acquire))
      return true;
  return false;
}

bool ledger::is_empty(std::uint64_t block) const noexcept {
  const cell& c = cells_[block];
  return c.issued.load(std::memory_order_acquire) == c.zeros.load(std::memory_order_acquire);
}

std::uint64_t ledger::next_version(block_range of) noexcept {
  std::uint64_t version = 0;
  for (std::uint64_t b = of.first; b < of.end(); ++b)
    version = std::max(version, cells_[b].issued.load(std::memory_order_relaxed));
  ++version;
  for (std::uint64_t b = of.first; b < of.end(); ++b) cells_[b].issued.store(version, std::memory_order_release);
  return version;
}

std::uint64_t ledger::begin_write(block_range of, std::span<std::byte> data) noexcept {
  const std::uint64_t version = next_version(of);
  for (std::uint32_t i = 0; i < of.count; ++i) {
    const stamp s{seed_, of.first + i, version, i, of.count};
    for (std::uint32_t at = 0; at < block_bytes_; at += sector_bytes)
      std::memcpy(data.data() + std::size_t{i} * block_bytes_ + at, &s, sizeof s);
  }
  return version;
}

std::uint64_t ledger::begin_discard(block_range of) noexcept {
  const std::uint64_t version = next_version(of);
  for (std::uint64_t b = of.first; b < of.end(); ++b) cells_[b].zeros.store(version, std::memory_order_release);
  return version;
}

void ledger::end(block_range of, std::uint64_t version) noexcept {
  for (std::uint64_t b = of.first; b < of.end(); ++b) cells_[b].acknowledged.store(version, std::memory_order_release);
}

void ledger::begin_read(block_range of, std::span<std::uint64_t> least) const noexcept {
  for (std::uint32_t i = 0; i < of.count; ++i)
    least[i] = cells_[of.first + i].acknowledged.load(std::memory_order_acquire);
}

std::optional<std::string> ledger::check_block(std::uint64_t block, std::span<const std::byte> data,
                                               std::uint64_t least, seen& found) const {
  const cell& c = cells_[block];
  const std::uint64_t most = c.issued.load(std::memory_order_acquire);
  const std::uint64_t zeros = c.zeros.load(std::memory_order_acquire);
  // A drive may return anything for a discarded block until it is written again.
  if (!discarded_are_zeros_ && zeros >= least && zeros != 0) {
    found = {most, {block, 1}};
    return std::nullopt;
  }
  const bool may_be_zeros = least == 0 || zeros >= least;
  stamp first;
  for (std::uint32_t at = 0; at < block_bytes_; at += sector_bytes) {
    const stamp s = stamp_at(data.data() + at);
    const bool zero = s == stamp{};
    if (zero && !is_zero(data.data() + at, sector_bytes))
      return fmt::format("block {}, sector {}: no stamp, and not zeros", block, at / sector_bytes);
    if (zero && !may_be_zeros)
      return fmt::format("block {}, sector {}: zeros in place of version {}", block, at / sector_bytes, least);
    if (!zero && (s.seed != seed_ || s.block != block))
      return fmt::format("block {}, sector {}: has the data of {}", block, at / sector_bytes,
                         s.seed == seed_ ? fmt::format("block {}", s.block) : "another store");
    if (!zero && s.version < least)
      return fmt::format("block {}, sector {}: version {}, but version {} was acknowledged before the read", block,
                         at / sector_bytes, s.version, least);
    if (!zero && s.version > most)
      return fmt::format("block {}, sector {}: version {}, but only {} were written", block, at / sector_bytes,
                         s.version, most);
    if (at == 0) first = s;
    // A write of this block alone that is under way may be seen in part; otherwise a block is of one write.
    const stamp& newer = s.version > first.version ? s : first;
    if (s != first && (most == least || (newer.count > 1 && whole_blocks_ > 1)))
      return fmt::format("block {}: sector 0 is of version {}, sector {} of version {}", block, first.version,
                         at / sector_bytes, s.version);
  }
  if (first == stamp{})
    found = {zeros, {block, 1}};
  else
    found = {first.version, {block - first.before, first.count}};
  return std::nullopt;
}

std::optional<std::string> ledger::check(block_range of, std::span<const std::byte> data,
                                         std::span<const std::uint64_t> least) const {
  static thread_local std::array<seen, most_blocks_checked> found;
  const std::uint32_t count = std::min<std::uint32_t>(of.count, most_blocks_checked);
  for (std::uint32_t i = 0; i < count; ++i)
    if (auto wrong =
            check_block(of.first + i, data.subspan(std::size_t{i} * block_bytes_, block_bytes_), least[i], found[i]))
      return wrong;
  for (std::uint32_t i = 0; i < count; ++i) {
    const seen& s = found[i];
    if (s.write.count < 2) continue;
    const std::uint64_t unit = (of.first + i) / whole_blocks_;
    const std::uint64_t begin = std::max({s.write.first, of.first, unit * whole_blocks_});
    const std::uint64_t end = std::min({s.write.end(), of.first + count, (unit + 1) * whole_blocks_});
    for (std::uint64_t b = begin; b < end; ++b)
      if (found[b - of.first].version < s.version)
        return fmt::format("a torn write of {} blocks from block {}: block {} has its version {}, block {} version {}",
                           s.write.count, s.write.first, of.first + i, s.version, b, found[b - of.first].version);
  }
  return std::nullopt;
}

}  // namespace pmlab::store_bench
