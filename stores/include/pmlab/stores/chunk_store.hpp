// A chunk store: thin block volumes whose writes are atomic without a log, after UStore [UStore].
//
//   auto store = stores::chunk_store<media::pmem, blocks::file>::open(pool, drive, {});
//   auto disk  = store.volume("vm1", {.bytes = std::uint64_t{100} << 30});
//   disk.write(offset, bytes);     // atomic within a chunk, durable on return
//   disk.read(offset, bytes);      // never written: zeros
//
// Use it for block devices, pages and objects whose writes must not be torn, on a drive beside persistent memory. The data
// is on the drive; the memory has a record of three lines for each chunk (1 MiB by default), and an index from chunks to
// records, which is any index of pmlab.
//
// How a write is atomic. A first write goes to the place that its chunk's base extent has for it; an overwrite goes to
// free blocks (redirect on write). When the data is durable, one 8-byte store names it: a word of bits, or a ring entry.
// One line, one flush, one fence. If the drive keeps a whole block, over a power failure (B1) and beside other requests
// (B8), an overwrite of one block goes to the block's place, and the memory is not written at all; unless a read of several
// blocks of the chunk is under way. A full ring goes into the chunk's map: no data is copied. With
// the merge policy `copy`, as in the paper, the data goes back to the base extent instead.
//
// Thread safety: any operation from any number of threads (`check`: no other operation). Operations that overlap in time
// and in blocks take effect in some order, whole per chunk. Progress: an operation holds a lock of its chunk while it plans
// and while it commits, never while the drive works.
//
// A handle of a volume that was removed is void, for ever: its operations fail and name the volume, those in flight end
// with an error (or had taken effect before), and none reaches the volume that gets the number next. The number and the
// chunks of a removed volume are free when the operations that were in flight have ended. After the store is closed its
// handles throw, too; its queues are gone before that.
//
// Durability: what an operation returned stays true after a crash. A write that a crash interrupts is there, whole within
// its chunk, or not at all. One exception: a read that runs at the same time as a write in place of the same block may
// return data that is not durable yet, as on the drive itself. Asynchronous operations: chunk_store/queue.hpp.
//
// Damage: headers, index blocks and pairs of records have checksums, and opening is an error that names the damaged part;
// a torn index block and a damaged one can be told apart on a drive that keeps blocks whole, or if the store was closed.
// The data of users has no checksum, and neither have records in persistent memory: the drive and the memory are trusted
// with these. A copy of drive or records of another session is an error.
//
// Layout: chunk_store/layout.hpp. Differences from the paper, with reasons (design findings in docs/stores.md):
//  * An entry carries the lap of its position. The paper stores an entry and a tail: two lines, two fences, or lost writes.
//  * A chunk knows which blocks were written. In the paper, a read of other blocks returns an earlier owner's data.
//  * A full ring is merged by remapping, in memory; the paper copies the data back. Merging by copy is an option. It is
//    asynchronous I/O of the queue whose write filled the ring. While it runs, writes to its chunk go to free blocks, and
//    it waits for readers of the blocks that it overwrites. A chunk without a base extent, and a ring that is full while a
//    merge cannot go on (it failed, or its thread is idle), are remapped. A write of more pieces than a ring has entries
//    makes a map; the next merge by copy copies its blocks, too, and removes it. Blocks of a base extent stay their
//    chunk's.
//  * Blocks are free again when no running operation can use them, and when the word that replaced them is durable.
//  * Writing in place is used only if the drive promises that it keeps a block whole.
//
// Without persistent memory: the records lie in a region of the drive, and in DRAM (chunk_store/on_blocks.hpp).
//   auto store = stores::chunk_store<stores::records_on_blocks, blocks::file>::open(drive, {});
// A change of a record is one block write, which changes of its neighbours share. Merges are by copy, and a group has at
// most as many ranges as a ring has entries. A write whose index block cannot be written fails; the chunk is unchanged,
// but after a crash before the next write of that index block it may have the write, whole.
//
// With the records as values of a key-value device, and a cache of them in DRAM (chunk_store/on_kv.hpp):
//   auto pairs = stores::kv_device<media::pmem, blocks::file>::open(pool, flash, {});
//   auto store = stores::chunk_store<stores::records_on_kv<decltype(pairs)>, blocks::file>::open(pairs, drive, {},
//                                                                                    {.cache_bytes = 64 << 20});
// A change of a record is one put. Merges and groups are as with records on blocks. A search for a record that is not in
// the cache reads it under the lock of its chunk.
//
// Invariants:
//   C1 a write that returned is there, whole         C2 a block that was never written reads as zeros
//   C3 each block of the drive has one owner, and the free map is the exact complement
//   C4 no entry before its data (K1 < K2)            C5 no block is used again before its replacement is durable
//   C6 a merge may be cut off anywhere (M1 < M2; by copy W1 < W2 < W3)
//   C7 one record for a chunk
//   C8 the records are the truth, the index is a hint that is corrected before the first operation that changes it
//   C9 records and drive belong to one store, and are of one moment (S1 < S2 < S3 < S4, chunk_store/session.hpp)
//   C10 no write in place without the drive's promise
//   C11 a group of writes is there wholly or not
//   C15 a handle of a removed volume changes and reads no other volume
// With records on blocks:
//   C12 a reader sees no record that a crash undoes (I3 < I4)
//   C13 an index block is whole, or is not used (F1 < F2)
// With records on a key-value device:
//   C12 as above (J2 < J3)                           C14 a record in the cache is that of the device, or is being put
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/chunk_store/block_owners.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/limbo.hpp>
#include <pmlab/stores/chunk_store/on_blocks.hpp>
#include <pmlab/stores/chunk_store/on_kv.hpp>
#include <pmlab/stores/chunk_store/on_memory.hpp>
#include <pmlab/stores/chunk_store/options.hpp>
#include <pmlab/stores/chunk_store/queue.hpp>
#include <pmlab/stores/chunk_store/stripe.hpp>
#include <pmlab/stores/chunk_store/used_blocks.hpp>
#include <pmlab/sync/relax.hpp>
#include <pmlab/sync/run_in_parallel.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pmlab::stores {

// The container "index on blocks", in place of a medium: the store's records lie on its drive.
struct records_on_blocks {};
// The container "index on a key-value device": the records are values of pairs. `Pairs`: a kv_device.
template <record_device Pairs>
struct records_on_kv {};

namespace detail::chunk_store {

// Where the records of a store are, and how a change of them becomes durable.
template <class Container, class Device, class Index>
struct container_of {
  using type = records_in_memory<Container, Device, Index>;
};
template <class Device>
struct container_of<records_on_blocks, Device, void> {
  using type = records_in_region<Device>;
};
template <class Pairs, class Device>
struct container_of<records_on_kv<Pairs>, Device, void> {
  using type = records_in_pairs<Pairs, Device>;
};

template <class Container>
struct default_index {
  using type = void;
};
template <media::medium Medium>
struct default_index<Medium> {
  using type = indexes::cceh<Medium>;
};

}  // namespace detail::chunk_store

// See the file's prologue. `Container`: a medium, records_on_blocks or records_on_kv. `Index`: from a chunk to its record, in a medium.
template <class Container, blocks::device Device,
          class Index = typename detail::chunk_store::default_index<Container>::type>
class chunk_store {
  using container = typename detail::chunk_store::container_of<Container, Device, Index>::type;
  using core = detail::chunk_store::core<container, Device>;
  using record = detail::chunk_store::record;
  using chunk = typename core::chunk;
  using extent = detail::chunk_store::extent;
  using placed = detail::chunk_store::placed;
  using places = detail::chunk_store::places;
  using volume_slot = detail::chunk_store::volume_slot;
  using volume_state = detail::chunk_store::volume_state;
  using writer_state = detail::chunk_store::writer_state;
  using stripe = detail::chunk_store::stripe;
  static constexpr std::uint32_t hole = detail::chunk_store::hole;
  static constexpr std::uint32_t no_block = detail::chunk_store::no_block;

  [[nodiscard]] static bool has_key(const record& r, std::uint64_t key) noexcept {
    return detail::chunk_store::has_key(r, key);
  }
  template <class Step>
  [[nodiscard]] static std::errc unless_exhausted(Step&& step) {
    return detail::chunk_store::unless_exhausted(std::forward<Step>(step));
  }

  // Where handles find the store; nullptr: it is closed.
  struct store_place {
    std::atomic<chunk_store*> store{nullptr};
  };

 public:
  // Blocks of a chunk.
  using range = detail::chunk_store::range;
  // Names a volume of an open store.
  struct volume_number {
    std::uint32_t id = 0;          // its number, from 1
    std::uint64_t generation = 0;  // which of the volumes that had this number since the store was opened
  };
  // The result of operations in flight whose volume was removed.
  static constexpr std::errc volume_removed = std::errc::identifier_removed;
  // An error of end_write and discard_in_chunk: the ring is full until a merge by copy ends.
  static constexpr std::errc no_room = std::errc::resource_unavailable_try_again;
  // An error of the same: the index is being written. Call again until the result is another one.
  static constexpr std::errc not_durable_yet = std::errc::operation_in_progress;
  // A ring that no merge makes room in can go into a map.
  static constexpr bool has_maps = container::has_maps;
  // There is no DRAM for a step, which changed nothing.
  static constexpr std::errc no_memory = detail::chunk_store::no_memory;
  // An error of end_write: it has ended without effect. Begin the write again.
  static constexpr std::errc write_again = std::errc::operation_canceled;
  // The name of its root in the medium.
  static constexpr std::string_view layout_name = "chunk_store";
  // The version of the layout of its words in the medium.
  static constexpr std::uint64_t layout_version = 1;

  // A volume of an open store. Copied freely, from and to any thread. Its operations take whole blocks and throw
  // pmlab::error: unaligned, beyond the end, the volume was removed, the store was closed, the drive failed;
  // chunk_store_full: there is no space; std::bad_alloc: there is no DRAM. A chunk is whole as before then, or whole as
  // after.
  class volume_handle {
   public:
    // There is no move: the source stays a handle.
    volume_handle(const volume_handle&) = default;
    // Names the other handle's volume then.
    volume_handle& operator=(const volume_handle&) = default;
    ~volume_handle() = default;

    // Its size.
    [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
    // Its number in the store, from 1.
    [[nodiscard]] std::uint32_t id() const noexcept { return of_.id; }
    // Its name, as it was opened.
    [[nodiscard]] std::string_view name() const noexcept {
      return {name_.data(), static_cast<std::size_t>(std::ranges::find(name_, '\0') - name_.begin())};
    }

    // Atomic within each chunk, durable on return.
    void write(std::uint64_t offset, std::span<const std::byte> data) { store().write(*this, offset, data); }
    // Blocks that were never written, or were discarded, are zeros.
    void read(std::uint64_t offset, std::span<std::byte> data) { store().read(*this, offset, data); }
    // Blocks that read as zeros from now on, and need no space. Durable on return. A chunk of which all is discarded is
    // removed. If merges are by copy, a part of a chunk stays reserved for this part: only the chunk as a whole frees
    // blocks for others.
    void discard(std::uint64_t offset, std::uint64_t length) { store().discard(*this, offset, length); }

    // One write of a group.
    struct part {
      std::uint64_t offset;             // byte of the volume
      std::span<const std::byte> data;  // whole blocks
    };
    // All of them or none after a crash (C11). They lie in one chunk, and do not overlap. Durable on return.
    void write_group(std::span<const part> parts) { store().write_group(*this, parts); }

   private:
    friend class chunk_store;
    volume_handle(chunk_store& store, volume_number of, std::uint64_t bytes, std::string_view name)
        : place_(store.place_), of_(of), bytes_(bytes) {
      std::ranges::copy(name, name_.begin());
    }
    [[nodiscard]] chunk_store& store() const {
      if (chunk_store* const open = place_->store.load(std::memory_order_acquire)) return *open;
      throw error("the chunk store of volume '" + std::string(name()) + "' is closed",
                  "open it again, and then the volume");
    }
    std::shared_ptr<const store_place> place_;
    volume_number of_;
    std::uint64_t bytes_;
    std::array<char, detail::chunk_store::name_bytes> name_{};
  };

  // Throws pmlab::error if a handle is of another store, or its volume was removed.
  void check_volume(const volume_handle& v) const {
    if (v.place_ != place_)
      throw error("volume '" + std::string(v.name()) + "' is of another chunk store", "use a queue of its own store");
    if (!is_current(v.of_)) throw removed(v);
  }
  // The name of a chunk of a volume, for queues.
  [[nodiscard]] static std::uint64_t key_of(volume_number v, std::uint64_t number) noexcept {
    return detail::chunk_store::name_chunk(v.id, number);
  }
  // The number in a handle, for queues.
  [[nodiscard]] static volume_number number_of(const volume_handle& v) noexcept { return v.of_; }

  // Opens the store `name` (at most 21 characters) in `medium` and on `device`, or makes an empty one if the medium has
  // none. Both outlive it. Throws pmlab::error: a drive of another store or of another moment, too small, other sizes of
  // blocks; impossible options; a damaged pool or header; no space.
  static chunk_store open(Container& medium, Device& device, const chunk_store_options& options = {},
                          std::string_view name = layout_name) requires media::medium<Container> {
    return chunk_store(device, options, [&](detail::chunk_store::free_map& /*free*/, auto& shape) {
      return container(medium, device, shape, options.identity, options.format, name);
    });
  }
  // Opens the store on `device`, or makes an empty one if it has none; with the option format, always. It outlives the
  // store. Merges are by copy. Throws pmlab::error: as above, and a damaged index block.
  static chunk_store open(Device& device,
                          const chunk_store_options& options = {}) requires std::same_as<Container, records_on_blocks> {
    return chunk_store(device, options, [&](detail::chunk_store::free_map& free, auto& shape) {
      shape.merge = merge_policy::copy;
      return container(device, free, shape, options.identity, options.format);
    });
  }
  // Opens the store whose records are in `pairs` and whose data is on `device`, or makes an empty one if the key space has
  // none. Both outlive it. Merges are by copy. Throws pmlab::error: as above, a key space with other pairs, values too
  // short for a record.
  template <record_device Pairs>
  static chunk_store open(Pairs& pairs, Device& device, const chunk_store_options& options = {},
                          const kv_records& records = {}) requires std::same_as<Container, records_on_kv<Pairs>> {
    return chunk_store(device, options, [&](detail::chunk_store::free_map& free, auto& shape) {
      shape.merge = merge_policy::copy;
      return container(pairs, device, free, shape, options.identity, options.format, records);
    });
  }
  chunk_store(const chunk_store&) = delete;
  chunk_store& operator=(const chunk_store&) = delete;
  // Waits for what runs in the background. REQUIRES: no operation, and no queue of a user.
  ~chunk_store() {
    place_->store.store(nullptr, std::memory_order_release);
    if (background_.joinable()) background_.join();
  }

  // Opens the volume `name` (1 to 40 characters), or makes it. Throws pmlab::error: no such volume and no size given, a
  // size that is no multiple of a block, 256 volumes (with removed ones that operations in flight still keep).
  [[nodiscard]] volume_handle volume(std::string_view name, const volume_options& options = {}) {
    static_cast<void>(finish_removals());
    const std::scoped_lock lock(volumes_mutex_);
    if (const std::optional<std::uint32_t> id = find_volume(name)) {
      // A removal that failed may be durable: nothing is acknowledged for a volume that may be gone.
      if (!core_.records.make_volume_sure(*id - 1))
        throw error(core_.records.name() + " failed when volume '" + std::string(name) +
                        "' was to be removed, and fails still: it may be gone",
                    "check the drive, and open the volume again");
      return handle_of(*id, core_.records.volume(*id - 1).bytes.load(std::memory_order_acquire), name);
    }
    return make_volume(name, options);
  }

  // Removes the volume and frees its chunks; those that operations in flight use, when these have ended. False: there is no
  // such volume, nor is one there after a crash. True: it is gone durably; what a crash or a drive that fails leaves of it
  // is freed by later operations, or when the store is opened. Throws pmlab::error if the drive fails before: the volume is
  // there as before; or its handles are void, and `volume` throws, until the drive is well again.
  bool remove_volume(std::string_view name) {
    ensure_recovered_or_throw();
    std::unique_lock lock(volumes_mutex_);
    const std::optional<std::uint32_t> id = find_volume(name);
    if (!id) {
      settle_failed_makings();
      return false;
    }
    try {
      change_state(*id, volume_state::going);
    } catch (...) {
      if (!core_.records.make_volume_sure(*id - 1)) generations_[*id - 1].fetch_add(1, std::memory_order_acq_rel);
      throw;
    }
    // An operation begins under the lock of its stripe: before the removal looks at the stripe, or it fails.
    generations_[*id - 1].fetch_add(1, std::memory_order_acq_rel);
    is_going_[*id - 1] = true;
    going_.fetch_add(1, std::memory_order_acq_rel);
    try {
      go_on_removing(*id);
    } catch (const std::exception&) {
      // It is removed: the next operation that ends goes on with it.
    }
    lock.unlock();
    static_cast<void>(finish_removals());  // an operation that ended meanwhile found the lock taken
    return true;
  }
  // Goes on with removals that waited for operations in flight: at the end of each operation, and where a new one finds no
  // space. True: one has ended.
  bool finish_removals() noexcept {
    if (going_.load(std::memory_order_acquire) == 0) return false;
    const std::unique_lock lock(volumes_mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    bool any = false;
    for (std::uint32_t id = 1; id <= core_.records.volumes(); ++id) {
      if (!is_going_[id - 1] || is_used(id)) continue;
      try {
        go_on_removing(id);
        any |= !is_going_[id - 1];
      } catch (const std::exception&) {
        // The next opening goes on with it, if no later operation can.
      }
    }
    return any;
  }

  // Where a write finds no space: records of chunks whose first writes had failed are free again, if the drive is well
  // again. True: some are.
  bool give_kept() noexcept try {
    if constexpr (container::may_be_unsure) {
      // Before the walk: a record that is kept from now on may be missed there.
      if (!keeps_unnamed_.exchange(false, std::memory_order_acq_rel)) return false;
      std::vector<std::pair<std::uint64_t, record*>> unnamed;
      core_.records.for_each_entry([&](std::uint64_t key, record& r) { unnamed.emplace_back(key, &r); });
      std::erase_if(unnamed, [&](const auto& entry) { return has_name(*entry.second, entry.first); });
      bool any = false;
      std::vector<std::uint32_t> refused;  // numbers of index blocks
      for (const auto& [key, r] : unnamed) {
        const std::uint32_t block = core_.records.index_block_of(*r);
        if (std::ranges::find(refused, block) != refused.end()) continue;
        stripe& s = core_.stripe_of(key);
        const std::unique_lock lock = lock_for_writing(s, key);
        std::errc failure{};
        if (s.writers.contains(key) || core_.look_up(key, failure) != r || has_name(*r, key)) continue;
        // Here, not for all before: a write may have failed since. Later ones name no chunk in this record.
        if (!make_sure(*r)) {
          keeps_unnamed_.store(true, std::memory_order_release);
          refused.push_back(block);
          continue;
        }
        core_.records.leave(key, *r);
        core_.records.give(*r);
        any = true;
      }
      return any;
    }
    return false;
  } catch (const std::exception&) {
    keeps_unnamed_.store(true, std::memory_order_release);
    return false;
  }

  // The promises on this medium and device.
  [[nodiscard]] chunk_store_promises promises() const {
    bool durable = true;
    if constexpr (media::medium<Container>) durable = media::is_durable(core_.records.medium());
    if constexpr (core::has_pairs) durable = core_.records.is_durable();
    return {std::uint64_t{chunk_blocks()} * block_bytes(), core_.in_place, durable};
  }

  // The free blocks are known; with records on blocks, always. Until then reads, and writes that need none, are answered.
  [[nodiscard]] bool is_complete() const noexcept { return recovered_.load(std::memory_order_acquire); }
  // Waits until the free blocks are known. Throws pmlab::error: they cannot be.
  void wait_until_complete() { ensure_recovered_or_throw(); }

  // Walks all records. Exact while no operation runs.
  [[nodiscard]] chunk_store_stats stats() {
    ensure_recovered_or_throw();
    chunk_store_stats s;
    core_.records.for_each([&](record& r) {
      const auto guard = core_.records.guard(r);
      s.chunks += r.key.load(std::memory_order_acquire) != 0 ? 1 : 0;
    });
    for (std::uint32_t i = 0; i < core_.records.volumes(); ++i)
      s.volumes += core_.records.state_of_volume(i) == volume_state::there ? 1 : 0;
    s.free_bytes = core_.free.free_blocks() * block_bytes();
    s.longest_free_extent = std::uint64_t{core_.free.longest_extent()} * block_bytes();
    s.medium_bytes = core_.records.bytes();
    s.in_place = core_.counts.in_place.load(std::memory_order_relaxed);
    s.first = core_.counts.first.load(std::memory_order_relaxed);
    s.redirected = core_.counts.redirected.load(std::memory_order_relaxed);
    s.merges = core_.counts.merges.load(std::memory_order_relaxed);
    s.copied_bytes = core_.counts.copied_bytes.load(std::memory_order_relaxed);
    s.remaps = core_.counts.remaps.load(std::memory_order_relaxed);
    s.replaced_maps = core_.counts.replaced_maps.load(std::memory_order_relaxed);
    if constexpr (core::has_pairs) {
      s.record_hits = core_.records.hits();
      s.record_misses = core_.records.misses();
    }
    return s;
  }

  // Checks C3, C7 and C8 by a walk over all records. REQUIRES: no other operation.
  [[nodiscard]] indexes::check_report check() {
    indexes::check_report report;
    if (const std::errc e = ensure_recovered(); e == no_memory) {
      throw std::bad_alloc();
    } else if (e != std::errc{}) {
      report.add("the free blocks cannot be found: " + recovery_problem_);
      return report;
    }
    detail::chunk_store::block_owners owners(core_.geometry.blocks, report);
    owners.reserve(core_.records.first_data_block());
    core_.records.for_each([&](record& r) {
      const std::uint64_t key = r.key.load(std::memory_order_acquire);
      if (key == 0) return;
      ++report.entries;
      const std::string owner = "chunk " + std::to_string(key & ((std::uint64_t{1} << 40) - 1)) + " of volume " +
                                std::to_string(detail::chunk_store::volume_of(key));
      core_.for_each_owned(r, [&](std::uint64_t block) { owners.own(block, owner); });
      if constexpr (!core::has_pairs)
        if (core_.find_record(key) != &r) report.add(owner + " is not in the index, or another record is");
    });
    if constexpr (core::has_pairs)
      core_.records.check(report);  // C14
    else
      core_.records.for_each_entry([&](std::uint64_t key, const record& r) {
        const bool is_kept =
            keeps_unnamed_.load(std::memory_order_acquire) && r.key.load(std::memory_order_acquire) == 0;
        if (!has_key(r, key) && !is_kept)
          report.add("the index names a record for key " + std::to_string(key) + " that is not its own");
      });
    for (const extent& e : core_.free.all()) owners.own(e, "the free map");
    for (const stripe& s : core_.stripes) {
      s.gone.for_each([&](const extent& e) { owners.own(e, "a replaced write"); });
      // The chunk has them until its record is durable, and then the merge, until it ends.
      for (const auto& [merge, extents] : s.leaving)
        for (const extent& e : extents) owners.allow(e);
    }
    if constexpr (!container::settles_at_once)
      core_.records.for_each_held([&](const extent& e) { owners.own(e, "a write that failed"); });
    owners.end();
    return report;
  }

  // The size of a block: the device's.
  [[nodiscard]] std::uint32_t block_bytes() const noexcept { return core_.geometry.block_bytes; }
  // Blocks of a chunk.
  [[nodiscard]] std::uint32_t chunk_blocks() const noexcept { return core_.shape.blocks; }
  // Its merge policy is `copy`.
  [[nodiscard]] bool merges_by_copy() const noexcept { return core_.shape.merge == merge_policy::copy; }
  // The device that it was opened on.
  [[nodiscard]] Device& device() noexcept { return core_.device; }

  // ---- for queues: the steps of an operation. Users have chunk_queue and the operations of a volume.

  // An operation on blocks of one chunk, between its plan and its end.
  class plan {
   public:
    plan() = default;
    // Where its blocks are on the drive; target `hole`: no transfer, the data is zeros.
    [[nodiscard]] std::span<const placed> transfers() const noexcept { return parts_; }
    // True: no transfer, the data is zeros.
    [[nodiscard]] static bool is_zeros(const placed& p) noexcept { return p.target == hole; }
    // The key of its chunk.
    [[nodiscard]] std::uint64_t key() const noexcept { return key_; }
    // The error of a read that has not begun: its record cannot be read, or there is no DRAM.
    [[nodiscard]] std::errc failure() const noexcept { return failure_; }
    // When it has ended: a merge by copy of its chunk is to begin.
    [[nodiscard]] bool wants_merge() const noexcept { return wants_merge_; }

   private:
    friend class chunk_store;
    plan(volume_number of, std::uint64_t number) : key_(detail::chunk_store::name_chunk(of.id, number)), of_(of) {}
    enum class way : std::uint8_t { read, in_place, first, redirected };
    // To places that a merge by copy may read or write at the same time.
    [[nodiscard]] bool is_direct() const noexcept { return way_ == way::in_place || way_ == way::first; }
    std::uint64_t key_ = 0;
    volume_number of_;
    range blocks_;
    way way_ = way::read;
    bool wants_merge_ = false;
    std::errc failure_{};
    detail::chunk_store::limbo::generation generation_ = 0;
    detail::chunk_store::reader_epochs::epoch epoch_ = 0;  // of a read
    std::vector<placed> parts_;
    detail::chunk_store::index_change change_;  // of the index, if
    bool is_committed_ = false;                 // this is so
    std::vector<extent> replaced_;              // when it is durable
    std::uint32_t promised_ = 0;                // extents that its stripe may be given
  };

  // A merge by copy, between its beginning and its end.
  class merge_plan {
   public:
    // The blocks whose data is elsewhere, in the order of the chunk, and where it is.
    [[nodiscard]] std::span<const placed> sources() const noexcept { return sources_; }
    // Where the data of a block is to go.
    [[nodiscard]] std::uint64_t target_of(std::uint32_t block) const noexcept { return std::uint64_t{base_} + block; }
    // Why a merge that has ended, and whose data was at its targets, is not there; std::errc{}: it is, or the chunk changed.
    [[nodiscard]] std::errc failure() const noexcept { return failure_; }

   private:
    friend class chunk_store;
    std::uint64_t key_ = 0;
    std::uint64_t id_ = 0;
    std::uint32_t base_ = no_block;
    std::uint32_t entries_ = 0;  // oldest ones of the ring
    places before_{};            // of all blocks
    std::vector<placed> sources_;
    detail::chunk_store::limbo::generation generation_ = 0;
    detail::chunk_store::reader_epochs::epoch epoch_ = 0;
    detail::chunk_store::index_change change_;  // as of a plan
    bool is_committed_ = false;
    std::errc failure_{};
    std::uint32_t promised_ = 0;  // as of a plan
  };

  // Plans a read of blocks of one chunk. The caller transfers, and calls end_read; unless the plan has a failure.
  [[nodiscard]] plan begin_read(volume_number v, std::uint64_t number, range blocks) {
    plan p(v, number);
    p.blocks_ = blocks;
    p.failure_ = unless_exhausted([&] { return plan_read(v, blocks, p); });
    return p;
  }
  // Ends a read whose transfers have ended.
  void end_read(const plan& p) noexcept {
    stripe& s = core_.stripe_of(p.key_);
    const std::scoped_lock lock(s.mutex);
    s.gone.leave(p.generation_, core_.free);
    s.readers.leave(p.epoch_);
    if (is_wide(p)) --s.wide_reads_of(p.key_);
    if (s.merges > 0) core_.changes.count_one();
  }

  // Plans a write of blocks of one chunk. The caller writes the data durably to the plan's places, and calls end_write.
  // std::errc{}: planned. no_space_on_device: the drive is full; not_enough_memory: the medium is; no_memory;
  // `volume_removed`. Nothing changed then.
  [[nodiscard]] std::errc begin_write(volume_number v, std::uint64_t number, range blocks, plan& p) {
    p = plan(v, number);
    p.blocks_ = blocks;
    return unless_exhausted([&]() -> std::errc {
      reserve(p, blocks.count);
      if (!is_complete()) {
        if (begin_write_early(p)) return {};
        if (const std::errc e = ensure_recovered(); e != std::errc{}) return e;
      }
      stripe& s = core_.stripe_of(p.key_);
      const auto lock = lock_for_writing(s, p.key_);
      if (!is_current(v)) return volume_removed;
      std::errc failure{};
      writer_state* const state = state_for_writing(s, p.key_, failure);
      if (state == nullptr) return failure;
      return plan_write(s, *state, p) ? std::errc{} : std::errc::no_space_on_device;
    });
  }

  // Ends a write whose data is durable (`written`), or whose transfer failed. Durable on return: std::errc{}. An error:
  // the chunk is unchanged, except that after a failed write in place the block is old or new. `volume_removed`: its data
  // is not in use, or goes with the volume. `no_room`: its ring is
  // full until a merge by copy ends, and the write has not ended; unless it `may_remap`: then the ring goes into a map.
  [[nodiscard]] std::errc end_write(plan& p, bool written, bool may_remap = false) {
    stripe& s = core_.stripe_of(p.key_);
    const std::scoped_lock lock(s.mutex);
    writer_state& state = s.writers.at(p.key_);
    const bool first = p.way_ == plan::way::first;
    std::errc result{};
    if (p.is_committed_) {
      result = result_of(p.change_);
    } else {
      if (first) state.unmark(p.blocks_);
      if (!written)
        result = std::errc::io_error;
      else if (!is_current(p.of_))
        result = volume_removed;
      else if (p.way_ != plan::way::in_place)
        // A merge waits for first writes, so these do not wait for it.
        result = unless_exhausted([&] { return commit(s, state, p, p.parts_, first, may_remap || first); });
    }
    if (result == no_room || result == not_durable_yet) return result;
    for (const extent& e : p.replaced_)
      if (result == std::errc{}) s.gone.put(e);
    if (p.is_direct()) --state.direct;
    p.wants_merge_ = state.wants_merge();
    if (result != std::errc{} && p.is_committed_) state.failed_in(p.change_.era());
    if (result != std::errc{} && p.way_ != plan::way::in_place) take_back(s, state, p);
    if (result == std::errc{})
      (p.way_ == plan::way::first      ? core_.counts.first
       : p.way_ == plan::way::in_place ? core_.counts.in_place
                                       : core_.counts.redirected)
          .fetch_add(1, std::memory_order_relaxed);
    s.gone.leave(p.generation_, core_.free);
    release(s, p);
    leave_state(s, p.key_);
    return result;
  }

  // Plans one write of a group, redirected whatever its blocks are. `ranges` do not overlap and are in order.
  [[nodiscard]] std::errc begin_group(volume_number v, std::uint64_t number, std::span<const range> ranges, plan& p) {
    p = plan(v, number);
    p.way_ = plan::way::redirected;
    if (!has_maps && ranges.size() > core_.shape.ring) return std::errc::argument_list_too_long;
    return unless_exhausted([&]() -> std::errc {
      if (const std::errc e = ensure_recovered(); e != std::errc{}) return e;
      std::uint32_t count = 0;
      for (const range& r : ranges) count += r.count;
      reserve(p, count);
      stripe& s = core_.stripe_of(p.key_);
      const auto lock = lock_for_writing(s, p.key_);
      if (!is_current(v)) return volume_removed;
      std::errc failure{};
      if (state_for_writing(s, p.key_, failure) == nullptr) return failure;
      const std::errc result = unless_exhausted([&]() -> std::errc {
        promise(s, p, count);
        for (const range& r : ranges)
          if (!take_free(r, p.parts_)) return std::errc::no_space_on_device;
        return {};
      });
      if (result == std::errc{}) {
        p.generation_ = s.gone.enter();
        return {};
      }
      give_up(p.parts_);
      release(s, p);
      leave_state(s, p.key_);
      return result;
    });
  }

  // Makes blocks of one chunk read as zeros, durably. not_enough_memory: the medium is full; no_memory; `no_room`: as
  // end_write. Nothing changed then.
  [[nodiscard]] std::errc discard_in_chunk(volume_number v, std::uint64_t number, range blocks, plan& p,
                                           bool may_remap = false) {
    if (p.is_committed_) return end_discard(p);
    p = plan(v, number);
    p.blocks_ = blocks;
    return unless_exhausted([&] { return begin_discard(v, p, may_remap); });
  }

  // ---- the steps of a merge by copy. The caller reads the sources, waits for may_overwrite, writes the data durably to
  // the targets, and calls end_merge.

  // False: there is nothing to merge, a merge of this chunk is under way, or a write to the places of its blocks; or there
  // is no DRAM.
  [[nodiscard]] bool begin_merge(std::uint64_t key, merge_plan& m) {
    m = merge_plan();
    m.key_ = key;
    if (!is_complete()) return false;
    bool begins = false;
    static_cast<void>(unless_exhausted([&] {
      begins = plan_merge(key, m);
      return std::errc{};
    }));
    return begins;
  }

  // True: no read is under way that began before the merge, and may read the blocks that it overwrites.
  [[nodiscard]] bool may_overwrite(const merge_plan& m) {
    stripe& s = core_.stripe_of(m.key_);
    const std::scoped_lock lock(s.mutex);
    return s.readers.have_left(m.epoch_);
  }

  // Ends a merge whose data is durable at its targets (`copied`), or that is given up. False: the index is being written;
  // call again, until it is not this.
  [[nodiscard]] bool end_merge(merge_plan& m, bool copied) {
    stripe& s = core_.stripe_of(m.key_);
    {
      const std::scoped_lock lock(s.mutex);
      if (m.is_committed_ && !m.change_.is_settled()) return false;
      const auto at = s.writers.find(m.key_);
      // Its volume may have been removed meanwhile.
      if (at != s.writers.end() && at->second.merge == m.id_) {
        writer_state& state = at->second;
        if (!m.is_committed_ && copied && !state.merge_is_void) {
          // Without DRAM it is given up.
          m.failure_ = unless_exhausted([&] {
            commit_merge(s, state, m);
            return std::errc{};
          });
          if (m.is_committed_) return false;
        }
        state.merge = 0;
        leave_state(s, m.key_);
      }
      if (m.is_committed_) m.failure_ = m.change_.error();
      if (m.is_committed_ && m.failure_ == std::errc{}) finish_merge(s, m);
      s.leaving.erase(m.id_);
      s.gone.leave(m.generation_, core_.free);
      release(s, m);
      --s.merges;
    }
    core_.changes.count_one();
    return true;
  }

  // Counts the ends of merges, of reads that one waits for, and of the use of queues that have some.
  [[nodiscard]] std::uint64_t changes() const { return core_.changes.now(); }
  // Waits until changes() is not `seen`, or a little while.
  void wait_for_change(std::uint64_t seen) const { core_.changes.wait_while(seen); }

  // Goes on with merges that operations of volumes began, on queues that no operation uses now. False: there was none to
  // go on with.
  bool help_merges() {
    if (core_.shape.merge == merge_policy::remap) return false;
    std::vector<std::unique_ptr<queue>> idle;
    {
      const std::scoped_lock lock(queues_mutex_);
      const auto has_none = [](const auto& q) { return !q->has_merges(); };
      if (std::all_of(queues_.begin(), queues_.end(), has_none)) return false;
      if (unless_exhausted([&] { return idle.reserve(queues_.size()), std::errc{}; }) == no_memory) return false;
      const auto rest = std::partition(queues_.begin(), queues_.end(), has_none);
      std::move(rest, queues_.end(), std::back_inserter(idle));
      queues_.erase(rest, queues_.end());
    }
    bool any = false;
    for (std::unique_ptr<queue>& q : idle) {
      any |= q->go_on_with_merges();
      give_queue(std::move(q));
    }
    return any;
  }

  // Writes changed records, without waiting.
  void drive_records() { core_.records.drive_all(); }
  // Waits until end_write, discard_in_chunk or end_merge may be called again.
  template <class Plan>
  void wait_for_records(const Plan& p) {
    core_.records.wait_for(p.change_);
  }

  // Where a write that found no room may find some later.
  enum class room_later : std::uint8_t {
    no,        // nothing will free blocks
    perhaps,   // operations other than merges are under way, which may replace blocks, or removals of volumes
    kept,      // operations under way keep replaced blocks
    is_there,  // blocks became free meanwhile
  };
  // Frees the replaced blocks that no operation can use any more. `freed`: times_freed() before the write found no room.
  [[nodiscard]] room_later collect(std::uint64_t freed) {
    bool kept = false;
    bool running = going_.load(std::memory_order_acquire) != 0;
    std::uint64_t freed_by_now = 0;
    for (stripe& s : core_.stripes) {
      const std::scoped_lock lock(s.mutex);
      s.gone.collect(core_.free);
      freed_by_now += s.gone.times_freed();
      kept |= !s.gone.empty();
      running |= s.gone.running() > s.merges;
    }
    if (freed_by_now != freed) return room_later::is_there;
    return kept ? room_later::kept : running ? room_later::perhaps : room_later::no;
  }
  // How many extents of replaced blocks became free.
  [[nodiscard]] std::uint64_t times_freed() {
    std::uint64_t all = 0;
    for (stripe& s : core_.stripes) {
      const std::scoped_lock lock(s.mutex);
      all += s.gone.times_freed();
    }
    return all;
  }

 private:
  template <class Open>
  chunk_store(Device& device, const chunk_store_options& options, Open&& open)
      : core_(device, options, std::forward<Open>(open)) {
    place_->store.store(this, std::memory_order_release);
    begin_recovery(options);
  }

  // ---- finding the free blocks
  //
  // Nothing of it is needed for reads, for writes in place, and for first writes that one word commits: of the words of a
  // chunk, readers take the valid ones, and an entry of the index whose record has another key is none. All other
  // operations wait for it. It corrects what a crash left: records without a key that are not zeros, entries of groups
  // that were cut off, names in the index, and volumes that were being removed. A crash in it loses nothing: the next
  // opening does all of it again.
  //
  // A container that has read all of its records when it is open gains nothing from waiting: it is done at once.

  void begin_recovery(const chunk_store_options& options) {
    if constexpr (!container::answers_at_once) {
      ensure_recovered_or_throw();
    } else if constexpr (container::recovers_in_parallel) {
      threads_ = options.recovery_threads != 0 ? options.recovery_threads : sync::recovery_threads();
      if (!options.recovers_in_background) return;
      try {
        background_ = std::thread([this] { static_cast<void>(ensure_recovered()); });
      } catch (const std::system_error&) {
        // The first operation that needs it does it.
      } catch (const std::bad_alloc&) {
      }
    }
  }

  // Waits until the free blocks are known, or finds them. An error: of all later calls, too, but for no_memory.
  [[nodiscard]] std::errc ensure_recovered() {
    if (is_complete()) return {};
    const std::scoped_lock lock(recovery_mutex_);
    if (is_complete()) return {};
    if (recovery_error_ != std::errc{}) return recovery_error_;
    try {
      recovery_error_ = recover();
    } catch (const std::bad_alloc&) {
      return no_memory;  // a later call may have some
    }
    if (recovery_error_ == std::errc{}) recovered_.store(true, std::memory_order_release);
    return recovery_error_;
  }
  void ensure_recovered_or_throw() {
    const std::errc e = ensure_recovered();
    if (e == std::errc{}) return;
    if (e == no_memory) throw std::bad_alloc();
    constexpr bool can_be_read = container::answers_at_once;
    throw error("the chunk store in " + core_.records.name() + " cannot be " + (can_be_read ? "written" : "opened") +
                    ": " + recovery_problem_,
                recovery_error_ == std::errc::not_enough_memory
                    ? "make the pool larger"
                    : (can_be_read ? "restore the pool from a copy; it can be read" : "restore the drive from a copy"));
  }

  // Throws pmlab::error if the drive fails: of a container whose records lie there; std::bad_alloc: a later call does the
  // rest, or all of it.
  [[nodiscard]] std::errc recover() {
    if (!has_free_blocks_)
      if (const std::errc e = find_free_blocks(); e != std::errc{}) return e;
    has_free_blocks_ = true;
    for (std::uint32_t i = 0; i < core_.records.volumes(); ++i) {
      if (core_.records.state_of_volume(i) != volume_state::going) continue;
      const std::scoped_lock lock(volumes_mutex_);
      remove_chunks_of(i + 1);  // no handle of it exists
      change_state(i + 1, volume_state::free);
    }
    return {};
  }
  [[nodiscard]] std::errc find_free_blocks() {
    detail::chunk_store::used_blocks used(core_.geometry.blocks);
    bool right = used.mark(0, core_.records.first_data_block());
    std::atomic<std::uint64_t> chunks{0};
    right &= walk_records(used, chunks);
    if (!right) {
      recovery_problem_ = "a block has no or two owners";
      return std::errc::state_not_recoverable;
    }
    if (!correct_index(chunks.load())) {
      recovery_problem_ = "the pool has no space for its index";
      return std::errc::not_enough_memory;
    }
    core_.free.fill(used.free_extents(), core_.geometry.blocks);
    return {};
  }

  // Marks the blocks of all chunks, and counts these. False: a block has two owners, or there is no such block.
  [[nodiscard]] bool walk_records(detail::chunk_store::used_blocks& used, std::atomic<std::uint64_t>& chunks) {
    std::atomic<bool> right{true};
    std::atomic<bool> has_memory{true};
    if constexpr (!container::changes_as_a_whole) core_.records.forget_all();
    core_.records.for_each_part(threads_, [&](auto&& for_each_of_part) {
      std::vector<record*> unused;
      std::uint64_t found = 0;
      bool fits = true;
      try {
        for_each_of_part([&](record& r) {
          if (r.key.load(std::memory_order_acquire) != 0) {
            ++found;
            fits &= mark_blocks_of(r, used);
            return;
          }
          if constexpr (!container::changes_as_a_whole) {
            core_.records.clear(r);
            unused.push_back(&r);
          }
        });
        if constexpr (!container::changes_as_a_whole) core_.records.give_all(unused, found);
      } catch (const std::bad_alloc&) {
        has_memory.store(false, std::memory_order_relaxed);
      }
      chunks.fetch_add(found, std::memory_order_relaxed);
      if (!fits) right.store(false, std::memory_order_relaxed);
    });
    if (!has_memory.load()) throw std::bad_alloc();
    return right.load();
  }

  [[nodiscard]] bool mark_blocks_of(record& r, detail::chunk_store::used_blocks& used) {
    if (chunk::is_plain(core_.shape, r)) return used.mark(chunk::base_of(r), core_.shape.blocks);
    if constexpr (!container::changes_as_a_whole) static_cast<void>(core_.chunk_of(r).clear_cut_off_entries());
    bool right = true;
    core_.for_each_owned(r, [&](std::uint64_t block) { right &= used.mark(block, 1); });
    return right;
  }

  // Removes names of the index whose record is not theirs, and adds those that it lacks. Before any operation changes it.
  [[nodiscard]] bool correct_index([[maybe_unused]] std::uint64_t chunks) {
    if constexpr (core::has_pairs)
      return true;
    else
      return correct_names(chunks);
  }
  [[nodiscard]] bool correct_names(std::uint64_t chunks) {
    std::vector<std::pair<std::uint64_t, const record*>> stale;
    std::uint64_t right = 0;
    core_.records.for_each_entry([&](std::uint64_t key, const record& r) {
      if (has_key(r, key))
        ++right;
      else
        stale.emplace_back(key, &r);
    });
    for (const auto& [key, r] : stale) core_.records.leave(key, *r);
    if (right == chunks) return true;
    bool fits = true;
    core_.records.for_each([&](record& r) {
      const std::uint64_t key = r.key.load(std::memory_order_acquire);
      if (key != 0 && core_.find_record(key) != &r) fits &= core_.records.enter(key, r);
    });
    return fits;
  }

  // ---- records

  // A record stays where it is while a chunk's writers have it: one of a cache could be evicted.
  void pin([[maybe_unused]] record& r) {
    if constexpr (core::has_pairs) core_.records.pin(r);
  }
  void unpin([[maybe_unused]] record& r) {
    if constexpr (core::has_pairs) core_.records.unpin(r);
  }
  // The lock of a stripe, with the chunk not being removed.
  [[nodiscard]] static std::unique_lock<std::mutex> lock_for_writing(stripe& s, std::uint64_t key) {
    std::unique_lock lock(s.mutex);
    if constexpr (!container::settles_at_once) {
      for (sync::backoff wait;;) {
        const auto at = s.writers.find(key);
        if (at == s.writers.end() || !at->second.removing) break;
        lock.unlock();
        wait.pause();
        lock.lock();
      }
    }
    return lock;
  }

  // The state of a chunk to write to, which exists until leave_state. nullptr: no space, as `failure` says. Throws
  // std::bad_alloc; nothing changed then.
  [[nodiscard]] writer_state* state_for_writing(stripe& s, std::uint64_t key, std::errc& failure) {
    if (const auto at = s.writers.find(key); at != s.writers.end()) {
      ++at->second.writers;
      return &at->second;
    }
    failure = {};
    record* const r = core_.look_up(key, failure);
    if (r != nullptr) {
      const auto guard = core_.records.guard(*r);
      if (has_key(core_.records.newest(*r), key)) return state_of_writers(s, key, *r);
    }
    if (failure != std::errc{}) return nullptr;
    const auto at = s.writers.try_emplace(key).first;
    failure = unless_exhausted([&] { return make_unnamed(at->second, key, container::may_be_unsure ? r : nullptr); });
    if (failure != std::errc{}) {
      s.writers.erase(at);
      return nullptr;
    }
    at->second.writers = 1;
    return &at->second;
  }
  // The same of a chunk with a record. REQUIRES: the guard of the record.
  [[nodiscard]] writer_state* state_of_writers(stripe& s, std::uint64_t key, record& r) {
    const auto [at, is_new] = s.writers.try_emplace(key);
    writer_state& state = at->second;
    if (is_new) {
      try {
        pin(r);
      } catch (const std::bad_alloc&) {
        s.writers.erase(at);
        throw;
      }
      state.where = &r;
      state.base = core_.chunk_of(core_.records.newest(r)).base();
    }
    ++state.writers;
    return &state;
  }

  // A record for a new chunk, which gets its key with its first write.
  [[nodiscard]] std::errc make_unnamed(writer_state& state, std::uint64_t key, record* kept) {
    const std::optional<extent> base = core_.free.take(core_.shape.blocks);
    // Without maps, all data of a chunk must have a place to be merged to.
    if (!base && !has_maps) return std::errc::no_space_on_device;
    const std::errc e = unless_exhausted([&] {
      state.where = kept;
      if (kept != nullptr) return std::errc{};
      state.where = core_.records.take();
      return state.where != nullptr && core_.records.enter(key, *state.where) ? std::errc{}
                                                                              : std::errc::not_enough_memory;
    });
    if (e != std::errc{}) {
      if (state.where != nullptr) core_.records.give(*state.where);
      if (base) core_.free.give(*base);
      return e;
    }
    if (base) state.base = base->first;
    state.may_be_named = kept != nullptr;
    return {};
  }

  void leave_state(stripe& s, std::uint64_t key) {
    const auto at = s.writers.find(key);
    writer_state& state = at->second;
    if (--state.writers > 0) return;
    if (has_name(*state.where, key))
      unpin(*state.where);
    else
      give_unnamed(state, key);
    s.writers.erase(at);
  }

  // REQUIRES: no guard.
  [[nodiscard]] bool has_name(record& r, std::uint64_t key) {
    const auto guard = core_.records.guard(r);
    return has_key(core_.records.newest(r), key);
  }
  // Releases what a new chunk had, of which no write succeeded.
  void give_unnamed(const writer_state& state, std::uint64_t key) {
    // The drive may have the chunk's name in this record. So both stay for the chunk until the drive has none of it.
    const bool stays = state.may_be_named && !make_sure(*state.where);
    if (stays) keeps_unnamed_.store(true, std::memory_order_release);
    const auto guard = core_.records.guard(*state.where);
    const extent base{state.base, core_.shape.blocks};
    if (!stays) core_.records.leave(key, *state.where);
    if (state.base != no_block && state.may_be_named)
      give_back(*state.where, base, state.failed_era);
    else if (state.base != no_block)
      core_.free.give(base);
    if (!stays) core_.records.give(*state.where);
  }
  // False: the drive may have other words of the record, or of another one beside it, and refuses these. REQUIRES: no guard.
  [[nodiscard]] bool make_sure([[maybe_unused]] const record& r) {
    if constexpr (container::may_be_unsure)
      return core_.records.make_sure(r);
    else
      return true;
  }

  // Blocks that no durable record names, and no reader knows. REQUIRES: the guard of the record that was to name them.
  // `era`: of the last change that was to name them.
  void give_back(const record& r, extent e, [[maybe_unused]] std::uint64_t era) {
    if constexpr (container::settles_at_once)
      core_.free.give(e);
    else
      core_.records.hold(r, e, era);
  }

  // ---- writing

  [[nodiscard]] bool reads_as_zeros(record& r, std::uint64_t key, range blocks) const {
    if (!has_key(r, key)) return true;
    places at{};
    core_.chunk_of(r).find(blocks, at);
    return std::all_of(at.begin() + blocks.first, at.begin() + blocks.end(),
                       [](std::uint32_t b) { return b == 0 || b == hole; });
  }

  // Sets `at` to where the blocks of a write are now. False: its data may not go to places that a chunk has.
  [[nodiscard]] bool places_now(writer_state& state, const plan& p, places& at) {
    record& durable = *state.where;
    const auto guard = core_.records.guard(durable);
    record& now = core_.records.newest(durable);
    if (!has_key(now, p.key_)) return container::settles_at_once || is_sure(durable);
    const chunk c = core_.chunk_of(now);
    c.find(p.blocks_, at);
    state.is_full_enough = c.is_full_enough();
    if (!state.may_write_directly()) return false;
    if (&now == &durable) return is_sure(durable);
    // An overwrite in place of a block that is about to have another place could be lost, or be undone by a crash.
    places before{};
    if (has_key(durable, p.key_)) core_.chunk_of(durable).find(p.blocks_, before);
    return is_sure(durable) && before[p.blocks_.first] == at[p.blocks_.first];
  }
  [[nodiscard]] bool is_sure(const record& r) const noexcept {
    if constexpr (container::settles_at_once)
      return true;
    else
      return core_.records.is_sure(r);
  }

  [[nodiscard]] std::errc plan_read(volume_number v, range blocks, plan& p) {
    stripe& s = core_.stripe_of(p.key_);
    const std::scoped_lock lock(s.mutex);
    if (!is_current(v)) return volume_removed;
    places at{};
    std::errc failure{};
    if (record* const r = core_.look_up(p.key_, failure)) {
      const auto guard = core_.records.guard(*r);
      if (has_key(*r, p.key_)) core_.chunk_of(*r).find(blocks, at);
    }
    if (failure != std::errc{}) return failure;
    p.parts_ = detail::chunk_store::joined(blocks, at);
    p.generation_ = s.gone.enter();
    p.epoch_ = s.readers.enter();
    if (is_wide(p)) ++s.wide_reads_of(p.key_);
    return {};
  }

  // A write that needs no free blocks, while they are not known. False: it needs some.
  [[nodiscard]] bool begin_write_early(plan& p) {
    stripe& s = core_.stripe_of(p.key_);
    const auto lock = lock_for_writing(s, p.key_);
    record* const r = core_.find_record(p.key_);
    if (r == nullptr || !is_current(p.of_)) return false;
    const chunk c = core_.chunk_of(*r);
    places at{};
    c.find(p.blocks_, at);
    const bool in_place = core_.in_place && p.blocks_.count == 1;
    const bool first = c.base() != no_block && chunk::in_one_word(p.blocks_);
    for (std::uint32_t b = p.blocks_.first; b < p.blocks_.end(); ++b)
      if (at[b] == hole || (at[b] == 0 ? !first : !in_place)) return false;
    std::errc failure{};
    return plan_write(s, *state_for_writing(s, p.key_, failure), p);
  }

  // False: there is no space. Throws std::bad_alloc. The state was left then.
  [[nodiscard]] bool plan_write(stripe& s, writer_state& state, plan& p) {
    places at{};
    bool fits = false;
    const std::errc e = unless_exhausted([&]() -> std::errc {
      promise(s, p, p.blocks_.count);
      fits = choose_places(s, state, places_now(state, p, at), at, p);
      return {};
    });
    if (!fits) {
      release(s, p);
      leave_state(s, p.key_);
      if (e != std::errc{}) throw std::bad_alloc();
      return false;
    }
    p.generation_ = s.gone.enter();
    return true;
  }

  // What a write of so many blocks needs is there before it changes anything: here without a lock, and then with it. Throw
  // std::bad_alloc.
  void reserve(plan& p, std::uint32_t blocks) {
    p.parts_.reserve(1);
    if constexpr (!container::settles_at_once) p.replaced_.reserve(blocks);
  }
  void promise(stripe& s, plan& p, std::uint32_t extents) {
    s.gone.promise(extents);
    p.promised_ = extents;
  }
  // Ends the promise.
  template <class Plan>
  void release(stripe& s, Plan& p) noexcept {
    s.gone.release(std::exchange(p.promised_, 0));
  }

  // A read of several blocks, of a store that writes in place: the drive keeps one block whole (B8), and the read is to see
  // no write without those that ended before it. Nothing is written in place while such a read of the chunk runs: the
  // writes in place that it meets were under way when it began, so that they may take effect in any order.
  [[nodiscard]] bool is_wide(const plan& p) const noexcept { return core_.in_place && p.blocks_.count > 1; }

  // Decides where a write goes; `at`: where its blocks are now. `directly`: as places_now. False: the drive is full.
  [[nodiscard]] bool choose_places(stripe& s, writer_state& state, bool directly, const places& at, plan& p) {
    const range blocks = p.blocks_;
    const auto is_there = [&](std::uint32_t b) { return at[b] != 0 && at[b] != hole; };
    const bool is_read = s.wide_reads_of(p.key_) > 0;
    if (directly && !is_read && core_.in_place && blocks.count == 1 && is_there(blocks.first)) {
      ++state.direct;
      p.way_ = plan::way::in_place;
      p.parts_ = {{blocks, at[blocks.first]}};
      return true;
    }
    bool first = directly && state.base != no_block;
    for (std::uint32_t b = blocks.first; b < blocks.end() && first; ++b) first = at[b] == 0 && !state.is_marked(b);
    if (first) {
      ++state.direct;
      p.way_ = plan::way::first;
      p.parts_ = {{blocks, state.base + blocks.first}};
      state.mark(blocks);
      return true;
    }
    p.way_ = plan::way::redirected;
    return take_free(blocks, p.parts_);
  }

  // Free blocks for a range, in one piece if there is one that is long enough. False: there are not enough, or in more
  // pieces than can be named; then the blocks in `parts` are free again. Throws std::bad_alloc: `parts` are unchanged.
  [[nodiscard]] bool take_free(range blocks, std::vector<placed>& parts) {
    make_room(parts, 1);
    const auto can_be_named = [&] { return has_maps || parts.size() <= core_.shape.ring; };
    if (const std::optional<extent> whole = core_.free.take(blocks.count)) {
      parts.push_back({blocks, whole->first});
      if (!can_be_named()) give_up(parts);  // ranges before this one are in pieces
      return !parts.empty();
    }
    const std::vector<extent> pieces = core_.free.take_pieces(blocks.count);
    try {
      make_room(parts, pieces.size());
    } catch (const std::bad_alloc&) {
      for (const extent& piece : pieces) core_.free.give(piece);
      throw;
    }
    std::uint32_t next = blocks.first;
    for (const extent& piece : pieces) {
      parts.push_back({{next, piece.count}, piece.first});
      next += piece.count;
    }
    if (!pieces.empty() && can_be_named()) return true;
    give_up(parts);
    return false;
  }
  // A group calls this for each of its ranges, so the list grows by more than that.
  static void make_room(std::vector<placed>& parts, std::size_t more) {
    if (const std::size_t needed = parts.size() + more; needed > parts.capacity())
      parts.reserve(std::max(needed, 2 * parts.capacity()));
  }
  void give_up(std::vector<placed>& parts) noexcept {
    for (const placed& p : parts) core_.free.give({p.target, p.blocks.count});
    parts.clear();
  }

  // Commits `parts` of `p`, whose data is durable (K1). They are in the order of the chunk's blocks.
  [[nodiscard]] std::errc commit(stripe& s, writer_state& state, plan& p, std::span<const placed> parts, bool first,
                                 bool may_remap) {
    const auto guard = core_.records.guard(*state.where);
    const auto most_held = static_cast<std::uint32_t>(parts.size() + 1);  // and the base extent
    record& r = core_.records.edit(*state.where, most_held);
    const std::errc result = change(s, state, r, p, parts, first, may_remap);
    if (container::settles_at_once || result != std::errc{}) return result;
    core_.records.add(*state.where, p.change_, most_held);
    state.may_be_named = true;
    p.is_committed_ = true;
    return not_durable_yet;
  }

  // Changes the words of a record.
  [[nodiscard]] std::errc change(stripe& s, writer_state& state, record& r, plan& p, std::span<const placed> parts,
                                 bool first, bool may_remap) {
    const bool at_once = first && (container::changes_as_a_whole || chunk::in_one_word(parts.front().blocks));
    places before{};
    if (!has_key(r, p.key_)) {
      if (at_once) {
        publish(state, r, p.key_, parts.front().blocks);
        return {};
      }
      // A chunk without blocks; then the write. A crash between the two leaves a chunk that reads as zeros.
      publish(state, r, p.key_, {});
    }
    chunk c = core_.chunk_of(r);
    for (const placed& part : parts) c.find(part.blocks, before);
    if (at_once && std::all_of(before.begin() + parts.front().blocks.first, before.begin() + parts.front().blocks.end(),
                               [](std::uint32_t b) { return b == 0; })) {
      c.mark_written(parts.front().blocks);
      return {};
    }
    if (const std::errc e = name_places(state, c, parts, first, may_remap); e != std::errc{}) return e;
    for (const placed& part : parts)
      for_each_replaced(state, part, before, [&](extent e) {
        if constexpr (container::settles_at_once)
          s.gone.put(e);
        else
          p.replaced_.push_back(e);
      });
    return {};
  }

  void publish(writer_state& state, record& r, std::uint64_t key, range written) {
    detail::chunk_store::head_word head;
    head.base = state.base;
    chunk::name(r, key, head, written);
    media::persist(core_.records.medium(), r);
  }

  // Commits the places of `parts` in the ring, or in a new map where they are too many for it. not_enough_memory: the
  // medium is full; `no_room`: the ring is, and it may not go into a map.
  [[nodiscard]] std::errc name_places(writer_state& state, chunk& c, std::span<const placed> parts, bool first,
                                      bool may_remap) {
    if (parts.size() <= core_.shape.ring) {
      if (!c.has_room(parts.size())) {
        if (c.merges_by_copy() && !may_remap) {
          state.lacks_room = true;
          return no_room;
        }
        if constexpr (has_maps) {
          if (!c.merge()) return std::errc::not_enough_memory;
          ring_is_empty(state);
        } else {
          state.lacks_room = true;
          return first ? write_again : std::errc::timed_out;
        }
        core_.counts.merges.fetch_add(1, std::memory_order_relaxed);
        core_.counts.remaps.fetch_add(1, std::memory_order_relaxed);
      }
      c.push(parts);
      state.is_full_enough = c.is_full_enough();
      return {};
    }
    if constexpr (has_maps) {
      typename core::medium_type::publication change(core_.records.medium());
      if (!c.replace_map(change, parts)) return std::errc::not_enough_memory;
      change.commit();
      ring_is_empty(state);
      core_.counts.replaced_maps.fetch_add(1, std::memory_order_relaxed);
      return {};
    } else {
      return std::errc::no_space_on_device;  // REQUIRED of callers: take_free has taken no more parts than a ring names
    }
  }

  // Its entries went into a map.
  void ring_is_empty(writer_state& state) {
    state.merge_is_void = true;
    state.is_full_enough = false;
    if (std::exchange(state.lacks_room, false)) core_.changes.count_one();
  }

  // The result of a change that was added: not_durable_yet; not_enough_memory: no space for it; io_error: it failed.
  [[nodiscard]] static std::errc result_of(const detail::chunk_store::index_change& c) noexcept {
    return c.is_settled() ? c.error() : not_durable_yet;
  }

  // Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] std::errc begin_discard(volume_number v, plan& p, bool may_remap) {
    const std::uint64_t key = p.key_;
    const range blocks = p.blocks_;
    if (const std::errc e = ensure_recovered(); e != std::errc{}) return e;
    reserve(p, blocks.count);
    stripe& s = core_.stripe_of(key);
    auto lock = lock_for_writing(s, key);
    if (!is_current(v)) return volume_removed;
    std::errc failure{};
    record* const r = core_.look_up(key, failure);
    const auto writing = s.writers.find(key);
    if (r == nullptr) return failure;
    // Without a write there must be nothing on the drive that a crash could bring.
    if (!make_sure(*r)) return std::errc::io_error;
    bool all = writing == s.writers.end() || !writing->second.has_users();
    {
      const auto guard = core_.records.guard(*r);
      record& now = core_.records.newest(*r);
      if (!has_key(now, key)) return {};  // a first write may be under way: it is later
      // A chunk without data keeps no blocks.
      const range after{blocks.end(), core_.shape.blocks - blocks.end()};
      all = all && reads_as_zeros(now, key, {0, blocks.first}) && reads_as_zeros(now, key, after);
      // Durably: another discard of the same blocks may be under way.
      if (!all && reads_as_zeros(now, key, blocks) && (&now == r || reads_as_zeros(*r, key, blocks))) return {};
    }
    if (all) return remove_chunk(s, lock, key, *r);
    writer_state* const state = state_for_writing(s, key, failure);
    if (state == nullptr) return failure;
    const placed nothing{blocks, hole};
    const std::errc result = unless_exhausted([&] {
      promise(s, p, blocks.count);
      return commit(s, *state, p, {&nothing, 1}, false, may_remap);
    });
    if (result == not_durable_yet) return result;
    p.wants_merge_ = state->wants_merge();
    release(s, p);
    leave_state(s, key);
    s.gone.collect(core_.free);
    return result;
  }

  [[nodiscard]] std::errc end_discard(plan& p) {
    const std::errc result = result_of(p.change_);
    if (result == not_durable_yet) return result;
    stripe& s = core_.stripe_of(p.key_);
    const std::scoped_lock lock(s.mutex);
    for (const extent& e : p.replaced_)
      if (result == std::errc{}) s.gone.put(e);
    writer_state& state = s.writers.at(p.key_);
    if (result != std::errc{}) state.failed_in(p.change_.era());
    p.wants_merge_ = state.wants_merge();
    release(s, p);
    leave_state(s, p.key_);
    s.gone.collect(core_.free);
    return result;
  }

  // As begin_merge. Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] bool plan_merge(std::uint64_t key, merge_plan& m) {
    stripe& s = core_.stripe_of(key);
    const std::scoped_lock lock(s.mutex);
    std::errc failure{};
    record* const durable = core_.look_up(key, failure);
    if (durable == nullptr) return false;
    const auto writing = s.writers.find(key);
    if (writing != s.writers.end() &&
        (writing->second.merge != 0 || writing->second.direct > 0 || writing->second.removing))
      return false;
    // The durable entries: the data of others must not overwrite blocks that the durable record names.
    const auto guard = core_.records.guard(*durable);
    if (!has_key(*durable, key) || !has_key(core_.records.newest(*durable), key)) return false;
    const chunk c = core_.chunk_of(*durable);
    if (!c.merges_by_copy() || c.is_merged()) return false;
    m.base_ = c.base();
    m.entries_ = c.ring_entries();
    c.find({0, core_.shape.blocks}, m.before_);
    for (const placed& p : detail::chunk_store::joined({0, core_.shape.blocks}, m.before_))
      if (p.target != hole && !c.in_base(p.target)) m.sources_.push_back(p);
    m.id_ = merge_ids_.fetch_add(1, std::memory_order_relaxed) + 1;
    writer_state* const state = join_merge(s, *durable, m);
    state->merge = m.id_;
    state->merge_is_void = false;
    m.generation_ = s.gone.enter();
    m.epoch_ = s.readers.now();
    ++s.merges;
    return true;
  }
  // The state of its chunk, with memory for the blocks that it replaces. Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] writer_state* join_merge(stripe& s, record& r, merge_plan& m) {
    std::uint32_t count = 0;
    for (const placed& p : m.sources_) count += p.blocks.count;
    s.gone.promise(count);
    try {
      s.leaving[m.id_].reserve(count);
      writer_state* const state = state_of_writers(s, m.key_, r);
      m.promised_ = count;
      return state;
    } catch (const std::bad_alloc&) {
      s.leaving.erase(m.id_);
      s.gone.release(count);
      throw;
    }
  }

  // The base extent has the data of the merge's blocks. Blocks that newer entries replaced meanwhile are free already.
  void commit_merge(stripe& s, writer_state& state, merge_plan& m) {
    const auto guard = core_.records.guard(*state.where);
    record& r = core_.records.edit(*state.where, 0);
    chunk c = core_.chunk_of(r);
    places now{};
    c.find({0, core_.shape.blocks}, now);
    detail::chunk_store::block_bits written{};
    for (std::uint32_t b = 0; b < core_.shape.blocks; ++b)
      if (m.before_[b] != 0 && m.before_[b] != hole) written[b / 64] |= std::uint64_t{1} << (b % 64);
    c.take_base(m.entries_, written);
    for (const placed& p : m.sources_)
      for (std::uint32_t b = p.blocks.first; b < p.blocks.end(); ++b)
        if (now[b] == m.before_[b]) s.leaving[m.id_].push_back({now[b], 1});
    state.is_full_enough = core_.chunk_of(r).is_full_enough();
    state.lacks_room = false;
    if constexpr (container::settles_at_once) {
      finish_merge(s, m);
    } else {
      core_.records.add(*state.where, m.change_, 0);
      m.is_committed_ = true;
    }
  }
  void finish_merge(stripe& s, const merge_plan& m) {
    std::uint64_t copied = 0;
    for (const placed& p : m.sources_) copied += p.blocks.count;
    for (const extent& e : s.leaving[m.id_]) s.gone.put(e);  // (W3) < here: C5
    core_.counts.merges.fetch_add(1, std::memory_order_relaxed);
    core_.counts.copied_bytes.fetch_add(copied * block_bytes(), std::memory_order_relaxed);
  }

  // Calls visit(extent) for blocks that a committed write replaced: when it is durable, nothing names them any more, and
  // nothing will.
  template <class Visit>
  void for_each_replaced(const writer_state& state, const placed& now, const places& before, Visit&& visit) const {
    for (std::uint32_t b = now.blocks.first; b < now.blocks.end(); ++b) {
      std::uint32_t old = before[b];
      if (old == hole) continue;
      if (old == 0) {
        if (state.base == no_block || state.is_marked(b)) continue;
        old = state.base + b;
      }
      if (old == now.target_of(b) || keeps(state, old)) continue;
      visit(extent{old, 1});
    }
  }

  // A block of a base extent that stays its chunk's.
  [[nodiscard]] bool keeps(const writer_state& state, std::uint32_t block) const noexcept {
    return core_.shape.merge == merge_policy::copy && state.base != no_block && block >= state.base &&
           block - state.base < core_.shape.blocks;
  }

  // The blocks of a write that was not committed. Its transfers have ended.
  void take_back(stripe& s, const writer_state& state, const plan& p) {
    if (p.way_ == plan::way::redirected) {
      const auto guard = core_.records.guard(*state.where);
      for (const placed& part : p.parts_) {
        if (p.is_committed_)
          give_back(*state.where, {part.target, part.blocks.count}, p.change_.era());
        else
          s.gone.put({part.target, part.blocks.count});
      }
      return;
    }
    // Another write replaced these blocks of the base extent meanwhile.
    if (core_.shape.merge == merge_policy::copy || !has_key(*state.where, p.key_)) return;
    places now{};
    core_.chunk_of(*state.where).find(p.blocks_, now);
    for (std::uint32_t b = p.blocks_.first; b < p.blocks_.end(); ++b)
      if (now[b] != 0 && now[b] != state.base + b) s.gone.put({state.base + b, 1});
  }

  // ---- removing

  struct promise_to_end {
    detail::chunk_store::limbo& gone;
    std::size_t extents;
    ~promise_to_end() { gone.release(extents); }
  };

  // Removes a chunk that no operation writes to: its newest record has `key`, which the durable one may not have yet.
  // Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] std::errc remove_chunk(stripe& s, std::unique_lock<std::mutex>& lock, std::uint64_t key, record& r) {
    const std::size_t most_owned = 2 * std::size_t{core_.shape.blocks};
    std::vector<std::uint64_t> owned;
    owned.reserve(most_owned);
    s.gone.promise(most_owned);
    const promise_to_end ends{s.gone, most_owned};
    if constexpr (container::settles_at_once) {
      core_.for_each_owned(r, [&](std::uint64_t block) { owned.push_back(block); });
      core_.records.erase(r);
      s.writers.erase(key);  // a merge by copy may have the state: it ends later
    } else {
      detail::chunk_store::index_change change;
      writer_state* state = nullptr;
      const std::errc e = unless_exhausted([&] {
        const auto guard = core_.records.guard(r);
        state = state_of_writers(s, key, r);
        core_.for_each_owned(core_.records.newest(r), [&](std::uint64_t block) { owned.push_back(block); });
        core_.records.clear_newest(r);
        core_.records.add(r, change, 0);
        return std::errc{};
      });
      if (e == std::errc{}) {
        // Operations on the chunk wait for this one, and a merge by copy is given up.
        state->removing = state->merge_is_void = true;
        lock.unlock();
        core_.records.settle(change);
        lock.lock();
      }
      if (e != std::errc{} || !change.succeeded()) {
        if (state == nullptr) return e;
        state->removing = false;
        leave_state(s, key);
        return e != std::errc{} ? e : change.error();
      }
      s.writers.erase(key);
    }
    core_.records.leave(key, r);
    core_.records.give(r);
    for (const std::uint64_t block : owned) s.gone.put({static_cast<std::uint32_t>(block), 1});
    s.gone.collect(core_.free);
    return {};
  }

  // Removes the chunks of a volume that no handle has any more, and then frees its number; unless operations in flight use
  // some. With the lock of volumes. Throws pmlab::error if the drive fails.
  void go_on_removing(std::uint32_t volume_id) {
    // Before the walk: what is in use may get its record after the walk has passed, and nothing is used again.
    const bool used = is_used(volume_id);
    remove_chunks_of(volume_id);
    if (used) return;
    if constexpr (container::may_be_unsure) {
      // No later volume of this number gets chunks of this one by a crash.
      if (!core_.records.make_all_sure()) throw error_of_removal();
    }
    change_state(volume_id, volume_state::free);
    is_going_[volume_id - 1] = false;
    going_.fetch_sub(1, std::memory_order_acq_rel);
  }
  // Operations in flight write to chunks of this volume; a merge alone does not count.
  [[nodiscard]] bool is_used(std::uint32_t volume_id) {
    for (stripe& s : core_.stripes) {
      const std::scoped_lock lock(s.mutex);
      for (const auto& [key, state] : s.writers)
        if (detail::chunk_store::volume_of(key) == volume_id && state.has_users()) return true;
    }
    return false;
  }

  // Removes the chunks of a volume whose handles are void, except those that operations in flight use.
  void remove_chunks_of(std::uint32_t volume_id) {
    std::vector<std::uint64_t> all;
    const auto add = [&](std::uint64_t key) {
      if (detail::chunk_store::volume_of(key) == volume_id) all.push_back(key);
    };
    core_.records.for_each([&](record& r) {
      const auto guard = core_.records.guard(r);
      add(r.key.load(std::memory_order_acquire));
    });
    // A removal of a record that failed is undone at its next use: that is here, and not in a later volume.
    if constexpr (core::has_pairs)
      for (std::size_t i = 0; i < core_.stripes.size(); ++i) {
        const std::scoped_lock lock(core_.stripes[i].mutex);
        core_.records.for_each_unsure(i, add);
      }
    for (const std::uint64_t key : all) {
      stripe& s = core_.stripe_of(key);
      std::unique_lock lock(s.mutex);
      if (const auto at = s.writers.find(key); at != s.writers.end() && at->second.has_users()) continue;
      std::errc failure{};
      record* const r = core_.look_up(key, failure);
      if (r == nullptr && failure == std::errc{}) continue;  // a change that had failed is undone: the chunk is gone
      if (r != nullptr) failure = remove_chunk(s, lock, key, *r);
      if (failure == no_memory) throw std::bad_alloc();
      if (failure != std::errc{}) throw error_of_removal();
    }
  }
  [[nodiscard]] error error_of_removal() const {
    return error(core_.records.name() + " failed: a volume cannot be removed",
                 "check the drive, and open the store again");
  }

  // ---- volumes

  [[nodiscard]] static std::array<std::uint64_t, detail::chunk_store::name_bytes / 8> words_of(std::string_view name) {
    if (name.empty() || name.size() > detail::chunk_store::name_bytes)
      throw error("'" + std::string(name) + "' cannot name a volume", "use 1 to 40 characters");
    std::array<std::uint64_t, detail::chunk_store::name_bytes / 8> words{};
    std::memcpy(words.data(), name.data(), name.size());
    return words;
  }

  [[nodiscard]] std::optional<std::uint32_t> find_volume(std::string_view name) {
    const auto wanted = words_of(name);
    for (std::uint32_t id = 1; id <= core_.records.volumes(); ++id) {
      if (core_.records.state_of_volume(id - 1) == volume_state::there &&
          std::ranges::equal(wanted, core_.records.volume(id - 1).name, {}, {},
                             [](const auto& w) { return w.load(std::memory_order_acquire); }))
        return id;
    }
    return std::nullopt;
  }

  // (V1) size and name < (V2) state, in one line: a volume that is there has both.
  [[nodiscard]] volume_handle make_volume(std::string_view name, const volume_options& options) {
    const auto words = words_of(name);
    if (options.bytes == 0 || options.bytes % block_bytes() != 0 ||
        options.bytes / block_bytes() > std::uint64_t{1} << 40)
      throw error("there is no volume '" + std::string(name) + "', and a new one of " + std::to_string(options.bytes) +
                      " bytes cannot be made",
                  "give its size as a multiple of " + std::to_string(block_bytes()) + " bytes");
    settle_failed_makings();
    for (std::uint32_t id = 1; id <= core_.records.volumes(); ++id) {
      if (core_.records.state_of_volume(id - 1) != volume_state::free) continue;
      core_.records.change_volume(id - 1, [&](volume_slot& v) {
        for (std::size_t i = 0; i < words.size(); ++i) v.name[i].store(words[i], std::memory_order_relaxed);
        v.bytes.store(options.bytes, std::memory_order_relaxed);                                    // (V1)
        v.state.store(static_cast<std::uint64_t>(volume_state::there), std::memory_order_release);  // (V2)
      });
      return handle_of(id, options.bytes, name);
    }
    throw error("this chunk store has room for " + std::to_string(core_.records.volumes()) + " volumes",
                "remove one, or use another store");
  }

  // A making that failed may be durable: its name is free only when it is not. Throws pmlab::error: the drive fails still.
  void settle_failed_makings() {
    for (std::uint32_t id = 1; id <= core_.records.volumes(); ++id)
      if (core_.records.state_of_volume(id - 1) == volume_state::free && !core_.records.make_volume_sure(id - 1))
        throw error(core_.records.name() + " failed when a volume was to be made, and fails still", "check the drive");
  }
  [[nodiscard]] volume_handle handle_of(std::uint32_t id, std::uint64_t bytes, std::string_view name) {
    return {*this, {id, generations_[id - 1].load(std::memory_order_acquire)}, bytes, name};
  }
  [[nodiscard]] bool is_current(volume_number v) const noexcept {
    return generations_[v.id - 1].load(std::memory_order_acquire) == v.generation;
  }
  [[nodiscard]] static error removed(const volume_handle& v) {
    return error("volume '" + std::string(v.name()) + "' was removed", "open or make a volume of this name");
  }

  void change_state(std::uint32_t id, volume_state to) {
    core_.records.change_volume(
        id - 1, [&](volume_slot& v) { v.state.store(static_cast<std::uint64_t>(to), std::memory_order_release); });
  }

  // ---- one operation at a time, on a queue of the store's

  using queue = chunk_queue<chunk_store>;

  void write(const volume_handle& v, std::uint64_t offset, std::span<const std::byte> data) {
    if (data.empty()) return;
    const blocks::buffer aligned = is_aligned(data.data()) ? blocks::buffer() : copy_of(data);
    const std::span<const std::byte> from = aligned.size() == 0 ? data : aligned.bytes();
    run("write", v, offset, [&](queue& q) { return q.write(v, offset, from, 0); });
  }

  void read(const volume_handle& v, std::uint64_t offset, std::span<std::byte> data) {
    if (data.empty()) return;
    if (is_aligned(data.data())) {
      run("read", v, offset, [&](queue& q) { return q.read(v, offset, data, 0); });
      return;
    }
    blocks::buffer aligned(data.size());
    run("read", v, offset, [&](queue& q) { return q.read(v, offset, aligned.bytes(), 0); });
    std::memcpy(data.data(), aligned.data(), data.size());
  }

  void discard(const volume_handle& v, std::uint64_t offset, std::uint64_t length) {
    if (length == 0) return;
    run("discard", v, offset, [&](queue& q) { return q.discard(v, offset, length, 0); });
  }

  void write_group(const volume_handle& v, std::span<const typename volume_handle::part> parts) {
    if (parts.empty()) return;
    run("write group", v, parts.front().offset, [&](queue& q) { return q.write_group(v, parts, 0); });
  }

  [[nodiscard]] bool is_aligned(const std::byte* data) const noexcept {
    return reinterpret_cast<std::uintptr_t>(data) % blocks::alignment_of(core_.geometry) == 0;
  }
  [[nodiscard]] static blocks::buffer copy_of(std::span<const std::byte> data) {
    blocks::buffer copy(data.size());
    std::memcpy(copy.data(), data.data(), data.size());
    return copy;
  }

  template <class Submit>
  void run(std::string_view what, const volume_handle& v, std::uint64_t offset, Submit&& submit) {
    std::unique_ptr<queue> q = take_queue();
    chunk_completion done;
    try {
      static_cast<void>(submit(*q));
    } catch (...) {
      give_queue(std::move(q));
      throw;
    }
    while (q->reap({&done, 1}, 1) == 0) continue;
    give_queue(std::move(q));
    if (done.error == std::errc{}) return;
    if (done.error == volume_removed) throw removed(v);
    if (done.error == no_memory) throw std::bad_alloc();
    const std::string where =
        std::string(what) + " at byte " + std::to_string(offset) + " of volume " + std::to_string(v.id());
    if (done.error == std::errc::no_space_on_device)
      throw chunk_store_full(where + ": device " + core_.device.name() + " is full",
                             "remove volumes or discard blocks");
    if (done.error == std::errc::not_enough_memory && is_complete())
      throw chunk_store_full(where + ": " + core_.records.name() + " is full",
                             container::settles_at_once ? "make the pool larger" : "remove volumes");
    ensure_recovered_or_throw();
    if (done.error == std::errc::argument_list_too_long)
      throw error(where + ": more ranges than the ring of a chunk has entries", "write several groups");
    if (done.error == std::errc::timed_out)
      throw error(where + ": the chunk's ring is full, and its merge failed or does not end",
                  "check the drive, and reap the other queues of the store");
    if constexpr (core::has_pairs)
      if (core_.device.failure().empty() && !core_.records.failure().empty())
        throw error(where + ": the " + core_.records.name() + " failed", core_.records.failure());
    const std::string why = core_.device.failure();
    throw error(where + ": device " + core_.device.name() + " failed (" + blocks::describe(done.error) + ")",
                why.empty() ? "check the drive" : why);
  }

  [[nodiscard]] std::unique_ptr<queue> take_queue() {
    const std::scoped_lock lock(queues_mutex_);
    if (queues_.empty()) {
      // Giving it back must not fail.
      queues_.reserve(made_queues_ + 1);
      auto made = std::make_unique<queue>(*this, 1);
      ++made_queues_;
      return made;
    }
    std::unique_ptr<queue> q = std::move(queues_.back());
    queues_.pop_back();
    return q;
  }
  void give_queue(std::unique_ptr<queue> q) noexcept {
    const bool has_merges = q->has_merges();
    {
      const std::scoped_lock lock(queues_mutex_);
      queues_.push_back(std::move(q));
    }
    if (has_merges) core_.changes.count_one();  // help_merges finds it
  }

  core core_;
  // With each removal of a volume its number gets another generation: handles of before are void.
  std::array<std::atomic<std::uint64_t>, detail::chunk_store::most_volumes> generations_{};
  std::shared_ptr<store_place> place_ = std::make_shared<store_place>();
  std::mutex volumes_mutex_;                                        // of the volumes' slots, and of
  std::array<bool, detail::chunk_store::most_volumes> is_going_{};  // removed since the store was opened, and not free
  std::atomic<unsigned> going_{0};                                  // how many are
  std::atomic<bool> keeps_unnamed_{false};  // records that no write succeeded for, see give_unnamed
  std::mutex queues_mutex_;
  std::size_t made_queues_ = 0;  // behind it
  std::atomic<std::uint64_t> merge_ids_{0};
  std::atomic<bool> recovered_{false};
  std::mutex recovery_mutex_;
  std::errc recovery_error_{};  // behind it
  bool has_free_blocks_ = false;
  std::string recovery_problem_;
  unsigned threads_ = 1;
  std::thread background_;
  std::vector<std::unique_ptr<queue>> queues_;  // last: they use the others until they are gone
};

}  // namespace pmlab::stores
