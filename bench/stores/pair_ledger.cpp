#include "bench/stores/pair_ledger.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

constexpr std::string_view digits = "0123456789abcdefghijklmnopqrstuvwxyz";
constexpr std::size_t group_digits = 4;
constexpr unsigned length_bits = 24;

// The first bytes of a value; words that follow from these fill the rest.
struct head {
  std::uint64_t rank = 0;
  std::uint64_t version_and_length = 0;
};

// Not compressible by what looks for repeated bytes, and quick to make and to compare.
std::uint64_t word_at(std::uint64_t base, std::size_t i) noexcept { return base ^ ((i + 1) * golden_ratio); }

std::uint64_t base_of(std::uint64_t seed, const head& h) noexcept {
  return mix_bits(seed ^ mix_bits(h.rank ^ mix_bits(h.version_and_length)));
}

// visit(at, its word, bytes of it) for each word after the head: whole ones, then the rest.
template <class Visit>
void for_each_word(std::uint64_t base, std::size_t bytes, Visit&& visit) noexcept {
  std::size_t at = sizeof(head);
  for (; at + sizeof base <= bytes; at += sizeof base)
    if (!visit(at, word_at(base, at), std::integral_constant<std::size_t, sizeof base>())) return;
  if (at < bytes) visit(at, word_at(base, at), bytes - at);
}

// The first byte that does not follow from `h`; nothing: there is none.
std::optional<std::size_t> first_strange(std::uint64_t seed, const head& h, std::span<const std::byte> value) noexcept {
  std::optional<std::size_t> strange;
  for_each_word(base_of(seed, h), value.size(), [&](std::size_t at, std::uint64_t word, auto count) {
    if (std::memcmp(value.data() + at, &word, count) != 0) strange = at;
    return !strange;
  });
  return strange;
}

}  // namespace

void pair_keys::write(std::uint64_t rank, std::string& key) const {
  key.assign(bytes_, '0');
  std::uint64_t of_group = rank / group;
  for (std::size_t i = group_digits; i-- > 0; of_group /= digits.size()) key[i] = digits[of_group % digits.size()];
  std::uint64_t in_group = rank % group;
  for (std::size_t i = bytes_; in_group != 0; in_group /= 10) key[--i] = digits[in_group % 10];
}

std::optional<std::uint64_t> pair_keys::rank_of(std::string_view key) const {
  if (key.size() != bytes_) return std::nullopt;
  std::uint64_t of_group = 0;
  for (std::size_t i = 0; i < group_digits; ++i) {
    const std::size_t digit = digits.find(key[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    of_group = of_group * digits.size() + digit;
  }
  std::uint64_t in_group = 0;
  for (const char c : key.substr(group_digits)) {
    if (c < '0' || c > '9' || in_group >= group) return std::nullopt;
    in_group = in_group * 10 + static_cast<std::uint64_t>(c - '0');
  }
  return in_group < group ? std::optional(of_group * group + in_group) : std::nullopt;
}

pair_ledger::pair_ledger(std::uint64_t ranks, pair_keys keys, std::uint64_t seed)
    : cells_(ranks), keys_(keys), seed_(seed) {}

bool pair_ledger::is_busy(std::uint64_t rank) const noexcept {
  const cell& c = cells_[rank];
  return c.issued.load(std::memory_order_acquire) != c.acknowledged.load(std::memory_order_acquire);
}
bool pair_ledger::is_there(std::uint64_t rank) const noexcept {
  const cell& c = cells_[rank];
  const std::uint64_t now = c.acknowledged.load(std::memory_order_acquire);
  return now != 0 && c.erased.load(std::memory_order_acquire) != now;
}
bool pair_ledger::was_put(std::uint64_t rank) const noexcept {
  return cells_[rank].issued.load(std::memory_order_acquire) != 0;
}

std::uint64_t pair_ledger::next_version(std::uint64_t rank) noexcept {
  // A key has one change at a time.
  return cells_[rank].issued.load(std::memory_order_relaxed) + 1;
}

void pair_ledger::fill(std::uint64_t rank, std::uint64_t version, std::span<std::byte> value) const noexcept {
  const head h{rank, version << length_bits | value.size()};
  std::memcpy(value.data(), &h, sizeof h);
  for_each_word(base_of(seed_, h), value.size(), [&](std::size_t at, std::uint64_t word, auto count) {
    std::memcpy(value.data() + at, &word, count);
    return true;
  });
}

std::uint64_t pair_ledger::begin_put(std::uint64_t rank, std::span<std::byte> value) noexcept {
  const std::uint64_t version = next_version(rank);
  fill(rank, version, value);
  cells_[rank].issued.store(version, std::memory_order_release);
  return version;
}

std::uint64_t pair_ledger::begin_erase(std::uint64_t rank) noexcept {
  const std::uint64_t version = next_version(rank);
  cells_[rank].erased.store(version, std::memory_order_release);
  cells_[rank].issued.store(version, std::memory_order_release);
  return version;
}

void pair_ledger::end(std::uint64_t rank, std::uint64_t version) noexcept {
  cells_[rank].acknowledged.store(version, std::memory_order_release);
}

std::uint64_t pair_ledger::begin_read(std::uint64_t rank) const noexcept {
  return cells_[rank].acknowledged.load(std::memory_order_acquire);
}

std::string pair_ledger::name_of(std::uint64_t rank) const {
  std::string key;
  keys_.write(rank, key);
  return key;
}

std::optional<std::string> pair_ledger::check(std::uint64_t rank, bool found, std::span<const std::byte> value,
                                              std::uint64_t least) const {
  const cell& c = cells_[rank];
  const std::uint64_t most = c.issued.load(std::memory_order_acquire);
  if (!found) {
    if (least == 0 || c.erased.load(std::memory_order_acquire) >= least) return std::nullopt;
    return fmt::format("key {}: not found, but version {} was acknowledged before the read", name_of(rank), least);
  }
  if (value.size() < least_value)
    return fmt::format("key {}: a value of {} bytes, which is none of this run", name_of(rank), value.size());
  head h;
  std::memcpy(&h, value.data(), sizeof h);
  const std::uint64_t version = h.version_and_length >> length_bits;
  const std::uint64_t length = h.version_and_length & most_value;
  const std::optional<std::size_t> strange = first_strange(seed_, h, value);
  if (strange && *strange == sizeof h)
    return fmt::format("key {}: the value is of another store, or junk", name_of(rank));
  if (strange)
    return fmt::format("key {}: a torn value: from byte {} on it is not that of version {}", name_of(rank), *strange,
                       version);
  if (length != value.size())
    return fmt::format("key {}: {} bytes of a value of {}", name_of(rank), value.size(), length);
  if (h.rank != rank) return fmt::format("key {}: has the value of key {}", name_of(rank), name_of(h.rank));
  if (version < least) {
    const bool erased = c.erased.load(std::memory_order_acquire) == least;
    return fmt::format("key {}: version {}, but {} was acknowledged before the read", name_of(rank), version,
                       erased ? "its erase" : fmt::format("version {}", least));
  }
  if (version > most) return fmt::format("key {}: version {}, but only {} were written", name_of(rank), version, most);
  return std::nullopt;
}

std::size_t pair_ledger::begin_scan(std::uint64_t from, std::span<std::uint64_t> least) const noexcept {
  const std::size_t count = std::min<std::uint64_t>(least.size(), cells_.size() - from);
  for (std::size_t i = 0; i < count; ++i) least[i] = begin_read(from + i);
  return count;
}

bool pair_ledger::was_there_throughout(std::uint64_t rank, std::uint64_t least) const noexcept {
  // Versions between are puts if no erase is as young as the first of them.
  return least != 0 && cells_[rank].erased.load(std::memory_order_acquire) < least;
}

std::optional<std::string> pair_ledger::check_scan(std::uint64_t from, std::size_t most, std::span<const pair> pairs,
                                                   std::span<const std::uint64_t> least) const {
  if (pairs.size() > most) return fmt::format("a scan of {} pairs returned {}", most, pairs.size());
  // Keys below it were returned, or need not be.
  std::uint64_t next = from;
  const auto first_left_out = [&](std::uint64_t end) -> std::optional<std::string> {
    for (; next < end && next - from < least.size(); ++next)
      if (was_there_throughout(next, least[next - from]))
        return fmt::format("key {}: a scan from {} left it out", name_of(next), name_of(from));
    return std::nullopt;
  };
  for (const pair& p : pairs) {
    const std::optional<std::uint64_t> rank = keys_.rank_of(p.key);
    if (!rank || *rank >= cells_.size())
      return fmt::format("a scan from {} returned '{}', which is no key of this run", name_of(from), p.key);
    if (*rank < next)
      return fmt::format("key {}: a scan from {} returned it out of order, or twice", name_of(*rank), name_of(from));
    if (auto wrong = first_left_out(*rank)) return wrong;
    const std::uint64_t at = *rank - from;
    if (auto wrong = check(*rank, true, p.value, at < least.size() ? least[at] : 0)) return wrong;
    next = *rank + 1;
  }
  return pairs.size() < most ? first_left_out(cells_.size()) : std::nullopt;
}

}  // namespace pmlab::store_bench
