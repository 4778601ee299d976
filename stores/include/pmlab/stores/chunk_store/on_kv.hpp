// The container of a chunk store on a key-value device: each record is the value of a pair, and DRAM has a cache of
// them, bounded in bytes.
//
//   key      8 bytes, big-endian: 0 the header; 1 to 256 a volume; from 2^40 on the name of a chunk
//   value    the header; a volume's slot; a chunk's record
//
// A change of a record is one put, and its removal one erase: a record changes as a whole. The pairs are the index from
// chunks to records, so opening corrects nothing but volumes that were being removed. It reads all records, to find the
// free blocks; it keeps none of them beyond the cache.
//
// A record that is not in the cache is read from the device under the lock of its chunk.
//
// A put that the device refuses as full changes nothing. After one that fails otherwise, the device may have it: the
// record is unsure until a later put or erase of its key succeeds.
//
// Orders (docs/architecture: tags):
//   (H1) the header's pair says "forming"    (H2) the drive's header, durable    (H3) the header's pair says "ready"
//   (H1) < (H2) and (H2) < (H3): a drive of this store has its pair; a ready store has its drive.
//   (J1) the data that a record names is durable
//   (J2) the put of the record is acknowledged
//   (J3) its words become the current ones, its changes are settled
//   (J1) < (J2): no crash leaves a name of blocks whose data is not there.
//   (J2) < (J3): a reader sees nothing that a crash undoes; blocks are not used again before their replacement is
//   durable.
#pragma once

#include <pmlab/base/checksum.hpp>
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/cache/eviction/chosen.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/dram.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/drive_header.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/index_region.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/promised_list.hpp>
#include <pmlab/stores/chunk_store/record_cache.hpp>
#include <pmlab/stores/chunk_store/session.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>
#include <pmlab/stores/kv_ssd/options.hpp>
#include <pmlab/stores/moment.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace pmlab::stores {

// Options of a chunk store whose records are on a key-value device. Not stored: each opening may have its own cache.
struct kv_records {
  std::uint8_t space = 0;                               // one of the device's key spaces; the store's alone
  std::uint64_t cache_bytes = std::uint64_t{64} << 20;  // bytes of DRAM; 0: a record is read again at each use
  cache::eviction evict = cache::eviction::s3_fifo;     // eviction of the cache
};

// A key-value device as a container of records: stores::kv_device, or one that wraps it.
template <class K>
concept record_device = requires(K& k, std::string_view key, std::span<const std::byte> in, std::span<std::byte> out,
                                 std::uint8_t space) {
  { k.put(key, in, kv_mode::post, space) } -> std::same_as<kv_outcome>;
  { k.get(key, std::size_t{}, out, space) } -> std::same_as<std::optional<std::size_t>>;
  { k.erase(key, space) } -> std::same_as<bool>;
  { k.iterate(kv_prefix{}, space).next(std::size_t{}) } -> std::same_as<std::vector<std::string>>;
  { k.largest_value() } -> std::convertible_to<std::size_t>;
};

}  // namespace pmlab::stores

namespace pmlab::stores::detail::chunk_store {

// The value of key 0.
struct pairs_header {
  static constexpr std::array<char, 8> right_magic{'P', 'M', 'L', 'C', 'H', 'R', 'K', 'V'};
  static constexpr std::uint64_t current_version = 1;

  std::array<char, 8> magic = right_magic;
  std::uint64_t version = current_version;
  std::array<std::uint64_t, 2> identity{};  // identity of the store; the drive's header has the same
  std::uint64_t block_bytes = 0;
  std::uint64_t chunk_blocks = 0;
  std::uint64_t blocks = 0;  // blocks of the drive
  std::uint32_t state = 0;   // forming or ready
  std::uint32_t ring = 0;
  std::uint64_t checksum = 0;  // checksum of all before

  [[nodiscard]] std::uint64_t right_checksum() const noexcept {
    return pmlab::checksum(this, offsetof(pairs_header, checksum));
  }
};
static_assert(sizeof(pairs_header) == 72 && std::is_trivially_copyable_v<pairs_header>);

// The same with the session of the store.
struct pairs_header_and_session {
  pairs_header header;
  std::array<std::uint64_t, 2> moments{};  // the words of kept_moments: the durable one, the begun one
  std::uint64_t checksum = 0;              // covers all before
};
static_assert(sizeof(pairs_header_and_session) == 96 && std::is_trivially_copyable_v<pairs_header_and_session>);
// Sizes of the value: of today; of a release with one moment, and the checksum behind it; of one without.
inline constexpr std::array<std::size_t, 3> sizes_of_pairs_header{96, 88, 72};

// Thread safety: a record's functions, and those with a key: the caller has the lock of the chunk's part; volumes: the
// caller has the lock of volumes. The rest: any thread.
template <record_device Pairs, blocks::device Device>
class records_in_pairs {
  // The changes of a record, while a put of it is under way or it is unsure.
  struct changes {
    // Each has record_bytes, and more for its alignment:
    std::unique_ptr<std::byte[]> next;  // its words with all changes
    std::unique_ptr<std::byte[]> sent;  // a copy that is being put
    bool queued = false;
    bool in_flight = false;
    std::uint64_t failures = 0;  // since the current words
    std::uint64_t era = 0;       // in which the current words became durable
    change_list collected;       // changes of `next` that are in no put yet
    promised_list<extent> held;  // blocks that the device may have names of, after a failure
  };
  using cache_part = record_cache<changes>;
  using node = typename cache_part::node;

  struct part {
    part(std::size_t sets, cache::eviction policy) : cache(sets, policy) {}
    cache_part cache;          // behind the lock of the part's chunks
    mutable std::mutex state;  // guards the words and changes of pinned records, and these
    std::uint64_t eras = 0;    // puts that succeeded, and beginnings of changes
  };

 public:
  using medium_type = media::dram;
  static constexpr bool settles_at_once = false;
  static constexpr bool may_be_unsure = false;  // `find` writes such a record again
  static constexpr bool changes_as_a_whole = true;
  static constexpr bool has_maps = false;
  // Opening reads all records.
  static constexpr bool answers_at_once = false;
  static constexpr bool recovers_in_parallel = false;

  // Opens the records in `pairs`, or makes empty ones. `shape` is what a new store is to have, and then what it has.
  records_in_pairs(Pairs& pairs, Device& device, free_map& free, chunk_shape& shape, const store_identity& identity,
                   bool format, const kv_records& options)
      : pairs_(pairs),
        device_(device),
        free_(free),
        geometry_(device.shape()),
        space_(options.space),
        known_(),
        header_(open_header(shape, identity, format)),
        shape_(shape),
        bytes_(record_bytes(shape.ring)),
        volumes_(std::make_unique<std::array<volume_slot, most_volumes>>()) {
    const std::size_t sets = options.cache_bytes / cache_part::set_bytes(bytes_);
    cache_bytes_ = sets * cache_part::set_bytes(bytes_);
    for (std::size_t i = 0; i < parts_of_chunks; ++i)
      parts_.push_back(
          std::make_unique<part>(sets / parts_of_chunks + (i < sets % parts_of_chunks ? 1 : 0), options.evict));
    for_each_key(only_ours, [&](std::uint64_t key) {
      if (key == 0) return;
      volume_slot& v = (*volumes_)[key - 1];
      if (pairs_.get(key_bytes(key), 0, bytes_of(v), space_) != sizeof v) damaged("volume " + std::to_string(key));
    });
    session_.begin(*this, "the " + name());
  }
  records_in_pairs(const records_in_pairs&) = delete;
  records_in_pairs& operator=(const records_in_pairs&) = delete;
  // As that of records_in_region.
  ~records_in_pairs() {
    if (make_all_sure()) session_.end(*this);
  }

  [[nodiscard]] medium_type& medium() noexcept { return words_; }
  [[nodiscard]] std::string name() const { return "key-value device beside " + device_.name(); }
  [[nodiscard]] static std::uint64_t first_data_block() noexcept { return 1; }
  [[nodiscard]] bool is_durable() const {
    if constexpr (requires { pairs_.is_durable(); }) return pairs_.is_durable();
    return true;
  }
  // The bytes of DRAM: the cache's.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return cache_bytes_; }
  // Why the device failed last; "": it did not.
  [[nodiscard]] std::string failure() const {
    const std::scoped_lock lock(ready_mutex_);
    return failure_;
  }
  // Searches that found the record in DRAM, and others.
  [[nodiscard]] std::uint64_t hits() const noexcept { return hits_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t misses() const noexcept { return misses_.load(std::memory_order_relaxed); }

  // ---- the session

  [[nodiscard]] kept_moments known() const noexcept { return known_; }
  [[nodiscard]] bool keep(const kept_moments& k) { return put_header(header_, k); }  // (S1), (S2), (S4)

  // ---- level 1

  // The record that has this chunk, or is to have it: valid while the lock of its part is held, or it is pinned.
  // `failure`: it cannot be read.
  [[nodiscard]] record* find(std::uint64_t key, std::errc& failure) {
    cache_part& cache = part_of(key).cache;
    node* n = cache.find(key);
    if (n != nullptr) {
      hits_.fetch_add(1, std::memory_order_relaxed);
      if (n->pins > 0 || n->changes == nullptr || repair(*n)) {
        if (n->pins > 0 || n->words().key.load(std::memory_order_acquire) != 0) {
          cache.release(*n);
          return &n->words();
        }
        cache.erase(*n);
        return nullptr;
      }
      // Unsure, and the device has no record that is durable.
      if (n->words().key.load(std::memory_order_acquire) != 0) return &n->words();
      failure = std::errc::io_error;
      return nullptr;
    }
    misses_.fetch_add(1, std::memory_order_relaxed);
    typename cache_part::owner read = cache_part::make(key, bytes_);
    try {
      if (!load(key, read->words())) return nullptr;
    } catch (const error& e) {
      failure = failed(e);
      return nullptr;
    }
    return &cache.insert(std::move(read)).words();
  }
  // While no operation runs. Throws pmlab::error: it cannot be read.
  [[nodiscard]] record* find(std::uint64_t key) {
    std::errc failure{};
    record* const r = find(key, failure);
    if (failure != std::errc{}) damaged("the record of chunk " + std::to_string(key));
    return r;
  }
  // Names a record that was taken; it is pinned. Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] bool enter(std::uint64_t key, record& r) {
    typename cache_part::owner taken = adopt(r);
    try {
      taken->key = key;
      part_of(key).cache.insert_pinned(taken);
    } catch (const std::bad_alloc&) {
      taken->key = 0;
      static_cast<void>(taken.release());
      throw;
    }
    return true;
  }
  static void leave(std::uint64_t /*key*/, const record& /*r*/) noexcept {}

  // ---- records. The address of a record is where its durable words are.

  [[nodiscard]] record* take() { return &cache_part::make(0, bytes_).release()->words(); }
  // REQUIRES: its newest words are zeros.
  void give(record& r) {
    node& n = node::of(r);
    if (n.key == 0) {
      adopt(r).reset();
      return;
    }
    n.pins = 0;
    // One that the device may have stays, until it is known.
    if (n.changes == nullptr) part_of(n.key).cache.erase(n);
  }
  void pin(record& r) { part_of(node::of(r).key).cache.pin(node::of(r)); }
  void unpin(record& r) { part_of(node::of(r).key).cache.unpin(node::of(r)); }

  // Calls visit(record&) for every record of the device, which is gone after that. REQUIRES: no operation runs. Throws
  // pmlab::error: the device failed, or has a pair that is no record.
  template <class Visit>
  void for_each(Visit&& visit) {
    typename cache_part::owner one = cache_part::make(0, bytes_);
    for_each_key({}, [&](std::uint64_t key) {
      if (key <= most_volumes) return;
      if (load(key, one->words())) visit(one->words());
    });
  }
  template <class Visit>
  void for_each_part(unsigned /*threads*/, Visit&& visit) {
    visit([&](auto&& each) { for_each(each); });
  }

  // While it is held: the words of this record stay as they are, but for the owner's changes.
  [[nodiscard]] auto guard(const record& r) const { return std::unique_lock(part_of(node::of(r).key).state); }
  // REQUIRE the guard of the record:
  [[nodiscard]] record& newest(record& r) noexcept {
    const node& n = node::of(r);
    return n.changes == nullptr ? r : next_of(*n.changes);
  }
  // `most_held`: extents that the owner of the change holds if it fails. What needs memory until it is settled is
  // there. Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] record& edit(record& r, std::uint32_t most_held) {
    node& n = node::of(r);
    if (n.changes == nullptr) {
      auto made = std::make_unique<changes>();
      made->next = std::make_unique<std::byte[]>(bytes_ + alignof(record));
      made->sent = std::make_unique<std::byte[]>(bytes_ + alignof(record));
      std::memcpy(static_cast<void*>(&next_of(*made)), &r, bytes_);
      made->held.promise(most_held);
      made->held.release(most_held);
      made->era = ++part_of(n.key).eras;
      const std::scoped_lock lock(ready_mutex_);
      ready_.promise(1);
      n.changes = std::move(made);
    } else {
      n.changes->held.promise(most_held);
      n.changes->held.release(most_held);
    }
    return next_of(*n.changes);
  }
  // REQUIRES: an edit for as many extents.
  void add(record& r, index_change& change, std::uint32_t most_held) noexcept {
    node& n = node::of(r);
    n.changes->held.promise(most_held);
    n.changes->collected.add(change, most_held);
    if (!n.changes->in_flight && !std::exchange(n.changes->queued, true)) enqueue(n);
  }
  [[nodiscard]] static bool is_sure(const record& r) noexcept {
    const node& n = node::of(r);
    return n.changes == nullptr || n.changes->failures == 0;
  }
  // Blocks of a change that failed in this era: free as soon as the device has no name of them.
  void hold(const record& r, extent e, std::uint64_t era) noexcept {
    const node& n = node::of(r);
    if (is_sure(r) || n.changes->era != era)
      free_.give(e);
    else
      n.changes->held.put(e);
  }
  template <class Visit>
  void for_each_held(Visit&& visit) const {
    for (const auto& p : parts_)
      p->cache.for_each([&](const node& n) {
        if (n.changes != nullptr)
          for (const extent& e : n.changes->held) visit(e);
      });
  }
  // Calls visit(key) for each record of a part with a change that failed or is under way. REQUIRES: the lock of the
  // part's chunks.
  template <class Visit>
  void for_each_unsure(std::size_t number, Visit&& visit) const {
    parts_[number]->cache.for_each([&](const node& n) {
      if (n.changes != nullptr) visit(n.key);
    });
  }
  void clear_newest(record& r) { std::memset(static_cast<void*>(&edit(r, 0)), 0, bytes_); }

  // ---- REQUIRE that no guard is held:

  // Puts changed records.
  void drive_all() {
    while (waiting_.load(std::memory_order_acquire) != 0) {
      node* n = nullptr;
      {
        const std::scoped_lock lock(ready_mutex_);
        if (ready_.empty()) return;
        n = ready_.take_last();
        waiting_.fetch_sub(1, std::memory_order_acq_rel);
      }
      put(*n);
    }
  }
  void settle(const index_change& change) {
    for (sync::backoff wait; !change.is_settled(); wait.pause()) drive_all();
  }
  void wait_for(const index_change& change) { settle(change); }

  // ---- volumes

  [[nodiscard]] static std::uint32_t volumes() noexcept { return most_volumes; }
  [[nodiscard]] const volume_slot& volume(std::uint32_t i) const noexcept { return (*volumes_)[i]; }
  [[nodiscard]] volume_state state_of_volume(std::uint32_t i) const noexcept {
    return static_cast<volume_state>(volume(i).state.load(std::memory_order_acquire));
  }
  // change(volume_slot&), durable on return. Throws pmlab::error if the device fails: the volume is unchanged, but
  // unsure, since the device may have the change.
  template <class Change>
  void change_volume(std::uint32_t i, Change&& change) {
    volume_slot& now = (*volumes_)[i];
    volume_slot next;
    std::memcpy(static_cast<void*>(&next), &now, sizeof next);
    change(next);
    put_volume(i, next);
    std::memcpy(static_cast<void*>(&now), &next, sizeof next);
  }
  // As in records_in_region.
  [[nodiscard]] bool make_volume_sure(std::uint32_t i) noexcept {
    if (!unsure_volumes_[i]) return true;
    try {
      put_volume(i, (*volumes_)[i]);
    } catch (const error& e) {
      static_cast<void>(failed(e));
    } catch (const std::bad_alloc&) {
      // It stays unsure.
    }
    return !unsure_volumes_[i];
  }

  // The device has no other words than the current ones, of any record or volume. False: it refuses a put that would
  // make that so. REQUIRES: no operation runs.
  [[nodiscard]] bool make_all_sure() noexcept {
    bool is_sure = true;
    for (const auto& p : parts_)
      p->cache.for_each([&](node& n) {
        if (n.changes != nullptr && !repair(n)) is_sure = false;
      });
    for (std::uint32_t i = 0; i < most_volumes; ++i) is_sure = make_volume_sure(i) && is_sure;
    return is_sure;
  }

  // Adds each violation: a record in DRAM that the device has otherwise. REQUIRES: no operation runs.
  void check(indexes::check_report& report) {
    typename cache_part::owner there = cache_part::make(0, bytes_);
    for (const auto& p : parts_)
      p->cache.for_each([&](node& n) {
        if (n.changes != nullptr) return;
        if (!load(n.key, there->words()) || std::memcmp(&there->words(), &n.words(), bytes_) != 0)
          report.add("the cached record of chunk " + std::to_string(n.key) + " is not that of the device");
      });
  }

 private:
  [[nodiscard]] part& part_of(std::uint64_t key) const noexcept { return *parts_[part_of_chunk(key)]; }
  [[nodiscard]] static typename cache_part::owner adopt(record& r) noexcept {
    return typename cache_part::owner(&node::of(r));
  }
  [[nodiscard]] static record& next_of(const changes& c) noexcept { return in(c.next); }
  [[nodiscard]] static record& in(const std::unique_ptr<std::byte[]>& memory) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(memory.get());
    constexpr std::uintptr_t line = alignof(record);
    return *reinterpret_cast<record*>((at + line - 1) / line * line);
  }
  template <class T>
  [[nodiscard]] static std::span<std::byte> bytes_of(T& value) noexcept {
    return {reinterpret_cast<std::byte*>(&value), sizeof value};
  }
  [[nodiscard]] static std::string key_bytes(std::uint64_t key) {
    std::string bytes(sizeof key, '\0');
    for (std::size_t i = 0; i < sizeof key; ++i) bytes[i] = static_cast<char>(key >> (56 - 8 * i));
    return bytes;
  }
  [[noreturn]] void damaged(const std::string& what) const {
    throw error(what + " of the chunk store on the " + name() + " is damaged, or the device failed",
                "restore both from a copy");
  }

  // False: the chunk has none. Throws pmlab::error.
  [[nodiscard]] bool load(std::uint64_t key, record& to) {
    const auto size = pairs_.get(key_bytes(key), 0, std::span(reinterpret_cast<std::byte*>(&to), bytes_), space_);
    if (!size) return false;
    if (*size != bytes_ || to.key.load(std::memory_order_acquire) != key)
      damaged("the record of chunk " + std::to_string(key));
    return true;
  }

  // The header and the volumes: keys below 2^32.
  static constexpr kv_prefix only_ours{.mask = 0xffffffff, .pattern = 0};

  template <class Visit>
  void for_each_key(kv_prefix prefix, Visit&& visit) {
    constexpr std::size_t some = 64;
    auto all = pairs_.iterate(prefix, space_);
    for (;;) {
      const std::vector<std::string> keys = all.next(some);
      for (const std::string& k : keys) {
        std::uint64_t key = 0;
        for (const char c : k) key = key << 8 | static_cast<std::uint8_t>(c);
        if (k.size() != sizeof key || (key > most_volumes && volume_of(key) == 0)) foreign();
        visit(key);
      }
      if (keys.size() < some) return;
    }
  }
  [[noreturn]] void foreign() const {
    throw error("key space " + std::to_string(space_) + " of the " + name() + " has pairs that are no chunk store's",
                "give a key space of the store's own");
  }

  // ---- puts

  // Throws pmlab::error, std::bad_alloc. A device that is full, or has no memory, has changed nothing.
  void put_volume(std::uint32_t i, volume_slot& v) {
    kv_outcome outcome{};
    try {
      outcome = pairs_.put(key_bytes(i + 1), bytes_of(v), kv_mode::post, space_);
    } catch (const error&) {
      unsure_volumes_[i] = true;
      throw;
    }
    if (outcome != kv_outcome::full)
      unsure_volumes_[i] = false;
    else
      throw error(name() + " is full: a volume cannot be changed", "remove pairs of it, or use a larger one");
  }

  void enqueue(node& n) noexcept {
    const std::scoped_lock lock(ready_mutex_);
    ready_.put(&n);
    waiting_.fetch_add(1, std::memory_order_acq_rel);
  }

  // std::errc{}: the device has these words. not_enough_memory: it is full; no_memory: DRAM is; then it has the words
  // from before.
  [[nodiscard]] std::errc send(std::uint64_t key, const record& words) {
    try {
      if (words.key.load(std::memory_order_acquire) == 0) {
        static_cast<void>(pairs_.erase(key_bytes(key), space_));
        return {};
      }
      const std::span<const std::byte> value(reinterpret_cast<const std::byte*>(&words), bytes_);
      return pairs_.put(key_bytes(key), value, kv_mode::post, space_) == kv_outcome::full ? std::errc::not_enough_memory
                                                                                          : std::errc{};
    } catch (const error& e) {
      return failed(e);
    } catch (const std::bad_alloc&) {
      return no_memory;
    }
  }
  [[nodiscard]] std::errc failed(const error& e) noexcept {
    const std::scoped_lock lock(ready_mutex_);
    try {
      failure_ = e.what();
    } catch (const std::bad_alloc&) {
      failure_.clear();
    }
    return std::errc::io_error;
  }
  void end_changes(node& n) noexcept {
    n.changes.reset();
    const std::scoped_lock lock(ready_mutex_);
    ready_.release(1);
  }

  // One that no thread changes: brings the device to the current words. False: it failed again.
  [[nodiscard]] bool repair(node& n) {
    const std::scoped_lock lock(part_of(n.key).state);
    if (send(n.key, n.words()) != std::errc{}) return false;
    for (const extent& e : n.changes->held) free_.give(e);
    end_changes(n);
    return true;
  }

  void put(node& n) {
    part& p = part_of(n.key);
    const record* sent = nullptr;
    change_list carried;
    {
      const std::scoped_lock lock(p.state);
      std::memcpy(static_cast<void*>(&in(n.changes->sent)), &next_of(*n.changes), bytes_);
      sent = &in(n.changes->sent);
      carried = std::exchange(n.changes->collected, {});
      n.changes->queued = false;
      n.changes->in_flight = true;
    }
    const std::errc result = send(n.key, *sent);  // (J2)
    const std::scoped_lock lock(p.state);
    changes& c = *n.changes;
    const std::uint64_t era = c.era;
    c.in_flight = false;
    change_list undone;
    if (result == std::errc{}) {
      std::memcpy(static_cast<void*>(&n.words()), sent, bytes_);  // (J3)
      c.failures = 0;
      c.era = ++p.eras;
      for (const extent& e : c.held) free_.give(e);
      c.held.clear();
      c.held.release(c.held.promised());
      c.collected.for_each_held([&](std::uint32_t extents) { c.held.promise(extents); });  // has its memory
    } else {
      if (result != std::errc::not_enough_memory && result != no_memory) ++c.failures;
      std::memcpy(static_cast<void*>(&next_of(c)), &n.words(), bytes_);
      undone = std::exchange(c.collected, {});
    }
    if (!c.collected.empty()) {
      c.queued = true;
      enqueue(n);
    } else if (c.failures == 0) {
      end_changes(n);
    }
    // The owner of a change may free it, and the record, as soon as it is settled.
    carried.settle(result, era);
    undone.settle(result, era);
  }

  // ---- opening

  [[nodiscard]] pairs_header open_header(chunk_shape& shape, const store_identity& identity, bool format) {
    check_room(device_, shape);
    pairs_header_and_session there;
    pairs_header h;
    if (const auto size = pairs_.get(key_bytes(0), 0, bytes_of(there), space_)) {
      h = there.header;
      check(h, *size);
      known_ = session_in(there, *size);
      shape.blocks = static_cast<std::uint32_t>(h.chunk_blocks);
      shape.ring = h.ring;
    } else {
      for_each_key({}, [&](std::uint64_t /*key*/) { foreign(); });
      h = made_header(shape, identity);
    }
    const std::size_t needed = record_bytes(shape.ring);
    if (pairs_.largest_value() < needed)
      throw error("a record of " + std::to_string(needed) + " bytes on a key-value device with values of at most " +
                      std::to_string(pairs_.largest_value()),
                  "choose a smaller ring, or a device with larger values");
    if (h.state != ready) {
      write_pair(h);                                           // (H1)
      claim_drive(device_, header_for(h), format, "records");  // (H2)
      h.state = static_cast<std::uint32_t>(ready);
      write_pair(h);  // (H3)
    }
    check_drive(device_, header_for(h), "whose records the key-value device has");
    return h;
  }

  [[nodiscard]] pairs_header made_header(const chunk_shape& shape, const store_identity& identity) const {
    pairs_header h;
    h.identity = identity_or_drawn(identity);
    h.block_bytes = geometry_.block_bytes;
    h.chunk_blocks = shape.blocks;
    h.blocks = geometry_.blocks;
    h.state = static_cast<std::uint32_t>(forming);
    h.ring = shape.ring;
    return h;
  }
  [[nodiscard]] kept_moments session_in(const pairs_header_and_session& there, std::size_t size) const {
    if (size == sizeof there.header) return {};
    const bool has_both = size == sizeof there;
    const std::size_t before = size - sizeof there.checksum;
    const std::uint64_t checksum_there = has_both ? there.checksum : there.moments[1];
    const auto known = kept_moments::of(there.moments[0], has_both ? there.moments[1] : 0);
    if (!is_checksum(checksum_there, &there, before) || !known) damaged("the session");
    return *known;
  }
  // False: the device is full.
  [[nodiscard]] bool put_header(const pairs_header& h, const kept_moments& k) {
    pairs_header_and_session value{h, {k.durable.word(), k.begun.word()}, 0};
    value.checksum = pmlab::checksum(&value, offsetof(pairs_header_and_session, checksum));
    return pairs_.put(key_bytes(0), bytes_of(value), kv_mode::post, space_) != kv_outcome::full;
  }
  void write_pair(pairs_header& h) {
    h.checksum = h.right_checksum();
    if (!put_header(h, {})) throw error("the " + name() + " is full", "remove pairs of it, or use a larger one");
  }

  void check(const pairs_header& h, std::size_t size) const {
    if (std::ranges::find(sizes_of_pairs_header, size) == sizes_of_pairs_header.end() ||
        h.magic != pairs_header::right_magic)
      foreign();
    if (h.version != pairs_header::current_version)
      throw error("the records on the " + name() + " have version " + std::to_string(h.version) +
                      " of the layout, and this program reads version " + std::to_string(pairs_header::current_version),
                  "open them with the release of pmlab that wrote them");
    if (!is_checksum(h.checksum, &h, offsetof(pairs_header, checksum))) damaged("the header");
    check_size("the chunk store on the " + name(), h.blocks, h.block_bytes, "it", geometry_);
  }

  [[nodiscard]] static drive_header header_for(const pairs_header& h) noexcept {
    drive_header header;
    header.version = drive_header::version_with_pairs;
    header.identity = h.identity;
    header.block_bytes = h.block_bytes;
    header.chunk_blocks = h.chunk_blocks;
    header.blocks = h.blocks;
    return header;
  }

  Pairs& pairs_;
  Device& device_;
  free_map& free_;
  blocks::geometry geometry_;
  std::uint8_t space_;
  kept_moments known_;
  pairs_header header_;
  chunk_shape shape_;
  std::size_t bytes_;  // bytes of a record
  std::uint64_t cache_bytes_ = 0;
  std::unique_ptr<std::array<volume_slot, most_volumes>> volumes_;
  std::bitset<most_volumes> unsure_volumes_;
  media::dram words_;
  std::vector<std::unique_ptr<part>> parts_;
  mutable std::mutex ready_mutex_;  // guards these
  promised_list<node*> ready_;      // changed, and no put under way; memory for all that have changes
  std::string failure_;
  std::atomic<std::uint64_t> waiting_{0};
  std::atomic<std::uint64_t> hits_{0}, misses_{0};
  session<Device> session_{device_};
};

}  // namespace pmlab::stores::detail::chunk_store
