// The blocks of a memory that hosts share: which of its units are allocated, and which host may allocate where.
//
//   unit    64 bytes: a line
//   chunk   units in a row. One host at a time owns a chunk, and it alone allocates in there, so that what it reserves
//           is known to it alone, and vanishes with it. Any host may free a unit of any chunk. The owner's word has
//           its name (host_slots.hpp), which no later host of its slot has: so an exchange of a word that was seen
//           while its owner lived fails once another one has the chunk.
//
// A word of units changes by exchanges of the device:
//
//   63          22    16            0
//   | number | host | 16 units: 1 = allocated |
//
// Number and host name the change that was the last one. So it can be told later, by others, too, whether a change has
// been made: a host's changes have ascending numbers, and each is made once, although those who find its log begin
// again. That is the recoverable compare-and-swap of [Delay-free].
//
//   (U1) < (U2): before a name is replaced, its host's slot has its number: what is not named any more is done.
//   (U3): the slot has it durably, so a power failure keeps no word without it.
//
// Owners and units that a power failure leaves are those that are on the device: each change is flushed, and the log is
// complete until a fence behind it.
#pragma once

#include <pmlab/pod/host_slots.hpp>
#include <pmlab/pod/line_memory.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <vector>

namespace pmlab::pod {

// The sizes of a space, the same for all hosts.
struct space_sizes {
  std::size_t chunk_bytes = std::size_t{64} << 10;  // a power of two, at least 1 KiB
  unsigned hosts = 64;                              // so many may have it open at a time; at most 64
};

inline constexpr std::size_t unit_bytes = media::cache_line_bytes;  // the smallest block
inline constexpr std::size_t units_per_word = 16;                   // a change of units concerns those of one word

// Names a change of units. | number 42 | host 6 | 16 bits of units |
class change_name {
 public:
  // `host`: a slot; `number`: ascends with each change by hosts of this slot.
  constexpr change_name(unsigned host, std::uint64_t number) noexcept
      : word_(number << number_shift | std::uint64_t{host} << units_per_word) {}
  // That of the last change of this word.
  explicit constexpr change_name(std::uint64_t units_word) noexcept : word_(units_word & ~unit_mask) {}
  // The slot.
  [[nodiscard]] constexpr unsigned host() const noexcept {
    return static_cast<unsigned>(word_ >> units_per_word) & host_mask;
  }
  // Among those of its slot.
  [[nodiscard]] constexpr std::uint64_t number() const noexcept { return word_ >> number_shift; }
  // The word with these units, changed last by this change.
  [[nodiscard]] constexpr std::uint64_t with(std::uint64_t units) const noexcept { return word_ | units; }

  static constexpr std::uint64_t unit_mask = (std::uint64_t{1} << units_per_word) - 1;  // a word's units
  static constexpr unsigned most_hosts = 64;                                            // slots that a name can tell

 private:
  static constexpr unsigned host_mask = most_hosts - 1;
  static constexpr unsigned number_shift = units_per_word + 6;

  std::uint64_t word_;
};

// Where the parts of a space lie, by chunks. Those before `first` have the space's own data.
struct chunk_ranges {
  std::size_t first = 0;        // the first one that blocks are cut from
  std::size_t first_stale = 0;  // the first one that is not coherent
  std::size_t end = 0;          // behind the last one
};

// What this host knows of a space's blocks, and the words by which hosts share it. Thread safety: every operation from
// any number of threads. Progress: waits for other threads of the host.
template <line_memory Lines, space_sizes Sizes>
class space_blocks {
 public:
  static constexpr std::size_t units_per_chunk = Sizes.chunk_bytes / unit_bytes;    // all of them
  static constexpr std::size_t words_per_chunk = units_per_chunk / units_per_word;  // that have their states
  static_assert(std::has_single_bit(Sizes.chunk_bytes) && words_per_chunk != 0);
  // Memory is mapped at pages, and a chunk begins where its size says.
  static constexpr std::size_t largest_alignment = std::min<std::size_t>(4096, Sizes.chunk_bytes);

  // `owners`: a word for each chunk; `units`: words_per_chunk for each; `hosts`: all of them.
  space_blocks(Lines& lines, chunk_ranges ranges, std::span<device_word> owners, std::span<device_word> units,
               const host_slots<Lines>& hosts)
      : lines_(lines),
        ranges_(ranges),
        owners_(owners),
        units_(units),
        hosts_(hosts),
        places_(owners.size(), nowhere) {}

  // From here on it allocates as the host that the slot's state is of.
  void be(std::size_t slot, host_state state) noexcept {
    slot_ = slot;
    name_ = name_of_holder(slot, state);
    number_ = now(lines_, hosts_[slot].done);
  }
  // Gives its chunks to all. REQUIRES: nothing is reserved.
  void leave() noexcept {
    raise(lines_, slot().done, number_);
    const std::scoped_lock lock(mutex_);
    for (const owned_chunk& c : owned_) give_up(c.number);
    owned_.clear();
    std::fill(places_.begin(), places_.end(), nowhere);
  }

  // A block that is this host's until `keep` or `cancel`; nullptr: no room. It lies in coherent memory, or, where
  // `is_coherent` is false, elsewhere; where all is alike, anywhere.
  [[nodiscard]] void* reserve(std::size_t bytes, std::size_t alignment, bool is_coherent) {
    const std::size_t count = units_of(bytes);
    if (alignment > largest_alignment || bytes > lines_.bytes()) return nullptr;
    const std::size_t step = std::max<std::size_t>(alignment / unit_bytes, 1);
    const auto [first, end] = range_for(is_coherent);
    try {
      const std::scoped_lock lock(mutex_);
      if (count > units_per_chunk) return reserve_chunks(count, first, end);
      if (void* const block = reserve_in_owned(count, step, first, end)) return block;
      if (void* const block = reserve_in_new(count, step, first, end)) return block;
      // What others have freed in there.
      for (owned_chunk& c : owned_) read(c);
      return reserve_in_owned(count, step, first, end);
    } catch (const std::bad_alloc&) {
      return nullptr;  // DRAM is short
    }
  }
  // The reserved block is allocated now.
  void keep(const void* block, std::size_t bytes) noexcept {
    const std::scoped_lock lock(mutex_);
    for_each_own_unit(block, bytes, [](owned_chunk& c, std::size_t unit) { put(c.reserved, unit, false); });
  }
  // The block is not reserved any more, and was not allocated. REQUIRES: no cache of this host has a store to it.
  void cancel(const void* block, std::size_t bytes) noexcept {
    const std::scoped_lock lock(mutex_);
    for_each_own_unit(block, bytes, [](owned_chunk& c, std::size_t unit) {
      put(c.reserved, unit, false);
      put(c.taken, unit, false);
      c.too_many = units_per_chunk + 1;
    });
    drop_empty(block, bytes);
  }
  // This host has freed the block. The units are read again: since they were free, another host that had the chunk
  // then may have allocated them, or another thread of this one have reserved them.
  void freed(const void* block, std::size_t bytes) noexcept {
    const std::scoped_lock lock(mutex_);
    const std::uint64_t first = lines_.offset_of(block) / unit_bytes;
    for (std::uint64_t w = first / units_per_word; w * units_per_word < first + units_of(bytes); ++w)
      if (const std::size_t place = places_[w / words_per_chunk]; place != nowhere) {
        read_word(owned_[place], static_cast<std::size_t>(w % words_per_chunk));
        owned_[place].too_many = units_per_chunk + 1;
      }
    drop_empty(block, bytes);
  }

  // Gives this host `count` numbers more; returns the last one.
  [[nodiscard]] std::uint64_t more_numbers(std::uint64_t count) noexcept { return number_ += count; }
  // How many changes a block of these bytes takes.
  [[nodiscard]] static std::size_t changes_of(std::uint64_t offset, std::size_t bytes) noexcept {
    const std::uint64_t first = offset / unit_bytes;
    return static_cast<std::size_t>((first + units_of(bytes) - 1) / units_per_word - first / units_per_word + 1);
  }
  // Allocates or frees the block, by changes of slot `host` from `number` on, each once. Durable behind the next fence.
  void change(std::uint64_t offset, std::size_t bytes, bool is_allocated, unsigned host,
              std::uint64_t number) noexcept {
    std::uint64_t unit = offset / unit_bytes;
    for (const std::uint64_t end = unit + units_of(bytes); unit < end; ++number) {
      const std::uint64_t word = unit / units_per_word;
      const std::uint64_t behind = std::min(end, (word + 1) * units_per_word);
      const std::uint64_t mask = ((std::uint64_t{1} << (behind - unit)) - 1) << unit % units_per_word;
      change(units_[word], mask, is_allocated, host, number);
      unit = behind;
    }
  }

  // Bytes that are allocated: reads all units.
  [[nodiscard]] std::uint64_t allocated_bytes() const noexcept {
    std::uint64_t count = 0;
    for (std::size_t w = ranges_.first * words_per_chunk; w < ranges_.end * words_per_chunk; ++w)
      count += static_cast<unsigned>(std::popcount(now(lines_, units_[w]) & change_name::unit_mask));
    return count * unit_bytes;
  }
  // Behind a power failure, or the death of all. REQUIRES: no other host has the space open.
  void recover() noexcept {
    for (device_word& owner : owners_) set(owner, 0);
  }

 private:
  // A chunk of this host. A bit of `taken` is set where a unit is allocated or reserved, as far as the host knows.
  struct owned_chunk {
    std::size_t number = 0;
    std::size_t too_many = units_per_chunk + 1;  // no room was found for so many units
    std::array<std::uint64_t, (units_per_chunk + 63) / 64> taken{};
    std::array<std::uint64_t, (units_per_chunk + 63) / 64> reserved{};
  };
  using bits = decltype(owned_chunk::taken);
  static constexpr std::size_t nowhere = ~std::size_t{0};

  [[nodiscard]] static std::size_t units_of(std::size_t bytes) noexcept {
    return std::max<std::size_t>((bytes + unit_bytes - 1) / unit_bytes, 1);
  }
  [[nodiscard]] static bool has(const bits& b, std::size_t i) noexcept { return (b[i / 64] >> i % 64 & 1) != 0; }
  static void put(bits& b, std::size_t i, bool value) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << i % 64;
    b[i / 64] = value ? b[i / 64] | bit : b[i / 64] & ~bit;
  }

  struct chunk_range {
    std::size_t first, end;
  };
  [[nodiscard]] chunk_range range_for(bool is_coherent) const noexcept {
    const bool are_alike = ranges_.first_stale == ranges_.first || ranges_.first_stale == ranges_.end;
    if (are_alike) return {ranges_.first, ranges_.end};
    return is_coherent ? chunk_range{ranges_.first, ranges_.first_stale}
                       : chunk_range{ranges_.first_stale, ranges_.end};
  }

  // ---- words of all hosts ----

  void set(device_word& word, std::uint64_t value) noexcept {
    std::uint64_t seen = now(lines_, word);
    while (seen != value && !lines_.device_compare_exchange(word, seen, value)) {
    }
    lines_.flush(&word, sizeof word);
  }
  void change(device_word& units, std::uint64_t mask, bool is_allocated, unsigned host, std::uint64_t number) noexcept {
    for (;;) {
      std::uint64_t seen = now(lines_, units);
      if (const change_name last(seen); last.host() == host && last.number() != 0) {
        if (last.number() >= number) break;
      } else {
        // Behind the look at the units: (U1) of another host came before its (U2).
        if (now(lines_, hosts_[host].done) >= number) break;
        if (last.number() != 0) raise(lines_, hosts_[last.host()].done, last.number());  // (U1), (U3)
      }
      const std::uint64_t before = seen & change_name::unit_mask;
      const std::uint64_t after = is_allocated ? before | mask : before & ~mask;
      if (lines_.device_compare_exchange(units, seen, change_name(host, number).with(after))) break;  // (U2)
    }
    lines_.flush(&units, sizeof units);
  }

  // ---- chunks ----

  [[nodiscard]] host_slot& slot() const noexcept { return hosts_[slot_]; }
  // The owner of a chunk that any host may own: 0, none; or one that is recovered.
  [[nodiscard]] std::optional<std::uint64_t> owner_of_free(std::size_t number) noexcept {
    const std::uint64_t owner = now(lines_, owners_[number]);
    if (owner != 0 && !is_gone(owner)) return std::nullopt;
    return owner;
  }
  [[nodiscard]] bool is_gone(std::uint64_t owner) const noexcept {
    const std::size_t slot = slot_of_holder(owner);
    if (slot >= hosts_.size()) return true;  // damage
    const host_state state = hosts_.state_of(slot);
    return state.stage() != host_stage::joined || name_of_holder(slot, state) != owner;
  }
  void give_up(std::size_t number) noexcept { set(owners_[number], 0); }
  // The chunk at this place is not this host's any more. REQUIRES: nothing in it is reserved.
  void drop(std::size_t place) noexcept {
    give_up(owned_[place].number);
    places_[owned_[place].number] = nowhere;
    if (place + 1 != owned_.size()) {
      owned_[place] = owned_.back();
      places_[owned_[place].number] = place;
    }
    owned_.pop_back();
  }

  // Sees what is allocated in the chunk now. Frees of others may come at any time, allocations do not.
  void read(owned_chunk& c) const noexcept {
    for (std::size_t w = 0; w < words_per_chunk; ++w) read_word(c, w);
    c.too_many = units_per_chunk + 1;
  }
  void read_word(owned_chunk& c, std::size_t word) const noexcept {
    const std::uint64_t units = now(lines_, units_[c.number * words_per_chunk + word]) & change_name::unit_mask;
    const std::size_t at = word * units_per_word / 64;
    const unsigned shift = word * units_per_word % 64;
    const std::uint64_t mask = change_name::unit_mask << shift;
    c.taken[at] = (c.taken[at] & ~mask) | units << shift | (c.reserved[at] & mask);
  }
  [[nodiscard]] static std::optional<std::size_t> room_in(const owned_chunk& c, std::size_t count,
                                                          std::size_t step) noexcept {
    for (std::size_t at = 0; at + count <= units_per_chunk; at += step) {
      std::size_t free = 0;
      while (free < count && !has(c.taken, at + free)) ++free;
      if (free == count) return at;
      at += free / step * step;
    }
    return std::nullopt;
  }
  [[nodiscard]] void* reserve_in(owned_chunk& c, std::size_t count, std::size_t step) noexcept {
    if (count >= c.too_many) return nullptr;
    const std::optional<std::size_t> at = room_in(c, count, step);
    if (!at) {
      if (step == 1) c.too_many = count;
      return nullptr;
    }
    return reserve_at(c, *at, count);
  }
  [[nodiscard]] void* reserve_at(owned_chunk& c, std::size_t at, std::size_t count) noexcept {
    for (std::size_t i = at; i < at + count; ++i) {
      put(c.taken, i, true);
      put(c.reserved, i, true);
    }
    return lines_.at(c.number * Sizes.chunk_bytes + at * unit_bytes);
  }
  [[nodiscard]] void* reserve_in_owned(std::size_t count, std::size_t step, std::size_t first,
                                       std::size_t end) noexcept {
    // The newest one has most room.
    for (auto c = owned_.rbegin(); c != owned_.rend(); ++c)
      if (c->number >= first && c->number < end)
        if (void* const block = reserve_in(*c, count, step)) return block;
    return nullptr;
  }
  [[nodiscard]] void* reserve_in_new(std::size_t count, std::size_t step, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      // Behind the one that was found last: those in front are mostly taken.
      const std::size_t number = first + (i - first + newest_) % (end - first);
      if (!owner_of_free(number)) continue;
      owned_chunk seen{number};
      read(seen);
      if (!room_in(seen, count, step)) continue;
      owned_chunk* const c = add(number);
      if (c == nullptr) continue;
      newest_ = number - first;
      if (void* const block = reserve_in(*c, count, step)) return block;
    }
    return nullptr;
  }
  // The chunk, which is this host's now; nullptr: it is another host's.
  [[nodiscard]] owned_chunk* add(std::size_t number) {
    if (places_[number] != nowhere) return &owned_[places_[number]];
    if (owned_.size() == owned_.capacity()) owned_.reserve(2 * owned_.size() + 8);
    std::optional<std::uint64_t> owner = owner_of_free(number);
    if (!owner || !lines_.device_compare_exchange(owners_[number], *owner, name_)) return nullptr;
    lines_.flush(&owners_[number], sizeof(device_word));
    places_[number] = owned_.size();
    owned_.push_back(owned_chunk{number});
    read(owned_.back());
    return &owned_.back();
  }

  // More than a chunk: some in a row, none of whose units is allocated. Chunks are this host's only where it has all.
  [[nodiscard]] void* reserve_chunks(std::size_t count, std::size_t first, std::size_t end) {
    const std::size_t chunks = (count + units_per_chunk - 1) / units_per_chunk;
    std::size_t in_a_row = 0;
    for (std::size_t number = first; number < end; ++number) {
      in_a_row = is_empty(number) ? in_a_row + 1 : 0;
      if (in_a_row < chunks) continue;
      const std::size_t from = number + 1 - chunks;
      if (!add_empty(from, chunks)) {
        in_a_row = 0;
        continue;
      }
      for (std::size_t i = 0; i < chunks; ++i)
        static_cast<void>(
            reserve_at(owned_[places_[from + i]], 0, std::min(count - i * units_per_chunk, units_per_chunk)));
      return lines_.at(from * Sizes.chunk_bytes);
    }
    return nullptr;
  }
  // This host, or no other one, has the chunk, and nothing in it is allocated or reserved.
  [[nodiscard]] bool is_empty(std::size_t number) noexcept {
    if (places_[number] != nowhere) {
      read(owned_[places_[number]]);
      return owned_[places_[number]].taken == bits{};
    }
    owned_chunk seen{number};
    if (!owner_of_free(number)) return false;
    read(seen);
    return seen.taken == bits{};
  }
  // False: another host was quicker, and no chunk is this host's that was not.
  [[nodiscard]] bool add_empty(std::size_t from, std::size_t chunks) {
    for (std::size_t i = 0; i < chunks; ++i) {
      const bool was_mine = places_[from + i] != nowhere;
      const owned_chunk* const c = add(from + i);
      if (c != nullptr && (was_mine || c->taken == bits{})) continue;
      for (std::size_t k = 0; k <= i; ++k)
        if (const std::size_t place = places_[from + k]; place != nowhere && owned_[place].reserved == bits{})
          drop(place);
      return false;
    }
    return true;
  }

  // Those units of the block that lie in chunks of this host. REQUIRES: `mutex_` is held.
  template <class Function>
  void for_each_own_unit(const void* block, std::size_t bytes, Function&& function) noexcept {
    const std::uint64_t first = lines_.offset_of(block) / unit_bytes;
    for (std::uint64_t u = first; u < first + units_of(bytes); ++u)
      if (const std::size_t place = places_[u / units_per_chunk]; place != nowhere)
        function(owned_[place], static_cast<std::size_t>(u % units_per_chunk));
  }
  // Other hosts may need the chunks of the block that are empty now. One stays, for the next block.
  void drop_empty(const void* block, std::size_t bytes) noexcept {
    const std::uint64_t begin = lines_.offset_of(block);
    for (std::uint64_t n = begin / Sizes.chunk_bytes; n * Sizes.chunk_bytes < begin + bytes && owned_.size() > 1; ++n)
      if (const std::size_t place = places_[n]; place != nowhere && owned_[place].taken == bits{}) drop(place);
  }

  Lines& lines_;
  chunk_ranges ranges_;
  std::span<device_word> owners_;
  std::span<device_word> units_;
  const host_slots<Lines>& hosts_;
  std::size_t slot_ = 0;      // this host's
  std::uint64_t name_ = 0;    // this host's
  std::uint64_t number_ = 0;  // this host's last change has it
  std::mutex mutex_;          // guards the members below
  std::vector<owned_chunk> owned_;
  std::vector<std::size_t> places_;  // by chunk: where it is in `owned_`, or nowhere
  std::size_t newest_ = 0;           // the chunk of its range that was found last
};

}  // namespace pmlab::pod
