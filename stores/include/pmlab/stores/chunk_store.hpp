// A chunk store: thin block volumes whose writes are atomic without a log, after UStore [UStore].
//
//   auto store = stores::chunk_store<media::pmem, blocks::file>::open(pool, drive, {});
//   auto disk  = store.volume("vm1", {.bytes = std::uint64_t{100} << 30});
//   disk.write(offset, bytes);     // atomic within a chunk, durable on return
//   disk.read(offset, bytes);      // never written: zeros
//
// Use it for block devices, pages and objects whose writes must not be torn, on a drive beside persistent memory. The
// data is on the drive; the memory has a record of three lines for each chunk (1 MiB by default), and an index from
// chunks to records, which is any index of pmlab.
//
// How a write is atomic. A first write goes to the place that its chunk's base extent has for it; an overwrite goes to
// free blocks (redirect on write). When the data is durable, one 8-byte store names it: a word of bits, or a ring
// entry. One line, one flush, one fence. If the drive keeps a whole block, over a power failure (B1) and beside other
// requests (B8), an overwrite of one block goes to the block's place, and the memory is not written at all; unless a
// read of several blocks of the chunk is under way. A full ring goes into the chunk's map: no data is copied. With the
// merge policy `copy`, as in the paper, the data goes back to the base extent instead.
//
// Thread safety: any operation from any number of threads (`check`: no other operation). Operations that overlap in
// time and in blocks take effect in some order, whole per chunk. Progress: an operation holds a lock of its chunk while
// it plans and while it commits, never while the drive works.
//
// A handle of a volume that was removed is void, for ever: its operations fail and name the volume, those in flight end
// with an error (or had taken effect before), and none reaches the volume that gets the number next. The number and the
// chunks of a removed volume are free when the operations that were in flight have ended. After the store is closed its
// handles throw, too; its queues are gone before that.
//
// Durability: what an operation returned stays true after a crash. A write that a crash interrupts is there, whole
// within its chunk, or not at all. One exception: a read that runs at the same time as a write in place of the same
// block may return data that is not durable yet, as on the drive itself. Asynchronous operations:
// chunk_store/queue.hpp.
//
// Damage: headers, superblocks, volumes, index blocks and pairs of records have checksums, and opening is an error that
// names the damaged part; a torn index block and a damaged one can be told apart on a drive that keeps blocks whole, or
// if the store was closed. The data of users has no checksum, and neither have records in persistent memory: the drive
// and the memory are trusted with these. Places of slabs, records and maps that lie beyond the memory are errors. A
// copy of drive or records of another session is an error.
//
// Layout: chunk_store/layout.hpp. Differences from the paper, with reasons (docs/chunk-store.md):
//  * An entry carries the lap of its position. The paper stores an entry and a tail: two lines, two fences, or lost
//    writes.
//  * A chunk knows which blocks were written. In the paper, a read of other blocks returns an earlier owner's data.
//  * A full ring is merged by remapping, in memory; the paper copies the data back. Merging by copy is an option. It is
//    asynchronous I/O of the queue whose write filled the ring. While it runs, writes to its chunk go to free blocks,
//    and it waits for readers of the blocks that it overwrites. A chunk without a base extent, and a ring that is full
//    while a merge cannot go on (it failed, or its thread is idle), are remapped. A write of more pieces than a ring
//    has entries makes a map; the next merge by copy copies its blocks, too, and removes it. Blocks of a base extent
//    stay their chunk's.
//  * Blocks are free again when no running operation can use them, and when the word that replaced them is durable.
//  * Writing in place is used only if the drive promises that it keeps a block whole.
//
// Without persistent memory: the records lie in a region of the drive, and in DRAM (chunk_store/on_blocks.hpp).
//   auto store = stores::chunk_store<stores::records_on_blocks, blocks::file>::open(drive, {});
// A change of a record is one block write, which changes of its neighbours share. Merges are by copy, and a group has
// at most as many ranges as a ring has entries. A write whose index block cannot be written fails; the chunk is
// unchanged, but after a crash before the next write of that index block it may have the write, whole.
//
// With the records as values of a key-value device, and a cache of them in DRAM (chunk_store/on_kv.hpp):
//   auto pairs = stores::kv_device<media::pmem, blocks::file>::open(pool, flash, {});
//   auto store = stores::chunk_store<stores::records_on_kv<decltype(pairs)>, blocks::file>::open(pairs, drive, {},
//                                                                                    {.cache_bytes = 64 << 20});
// A change of a record is one put. Merges and groups are as with records on blocks. A search for a record that is not
// in the cache reads it under the lock of its chunk.
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
//
// The parts are in chunk_store/, over the state that they share (core.hpp, all_parts.hpp):
//   reads.hpp, writes.hpp, discards.hpp   an operation on one chunk, from its plan to its end (plans.hpp)
//   writers.hpp, commits.hpp              the chunks that have writes under way; the change of a chunk's words
//   merge_steps.hpp, copy_merges.hpp      merges by copy
//   volumes.hpp, removals.hpp             volumes; the removal of their chunks
//   recovery.hpp, check.hpp               opening: the free blocks; the check of a store
//   queue.hpp, synchronous.hpp            operations that run beside each other; one at a time
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/indexes/cceh.hpp>
#include <pmlab/indexes/index.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/stores/chunk_store/all_parts.hpp>
#include <pmlab/stores/chunk_store/check.hpp>
#include <pmlab/stores/chunk_store/core.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/layout.hpp>
#include <pmlab/stores/chunk_store/on_blocks.hpp>
#include <pmlab/stores/chunk_store/on_kv.hpp>
#include <pmlab/stores/chunk_store/on_memory.hpp>
#include <pmlab/stores/chunk_store/open_queues.hpp>
#include <pmlab/stores/chunk_store/options.hpp>
#include <pmlab/stores/chunk_store/plans.hpp>
#include <pmlab/stores/chunk_store/queue.hpp>
#include <pmlab/stores/chunk_store/room.hpp>
#include <pmlab/stores/chunk_store/statistics.hpp>
#include <pmlab/stores/chunk_store/synchronous.hpp>
#include <pmlab/stores/chunk_store/volumes.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
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

// See the file's prologue. `Container`: a medium, records_on_blocks or records_on_kv. `Index`: from a chunk to its
// record, in a medium.
template <class Container, blocks::device Device,
          class Index = typename detail::chunk_store::default_index<Container>::type>
class chunk_store {
  using container = typename detail::chunk_store::container_of<Container, Device, Index>::type;
  using core = detail::chunk_store::core<container, Device>;

  // Where handles find the store; nullptr: it is closed.
  struct store_place {
    std::atomic<chunk_store*> store{nullptr};
  };

 public:
  // Blocks of a chunk.
  using range = detail::chunk_store::range;
  // Names a volume of an open store.
  using volume_number = detail::chunk_store::volume_number;
  // The result of operations in flight whose volume was removed.
  static constexpr std::errc volume_removed = detail::chunk_store::volume_removed;
  // An error of end_write and discard_in_chunk: the ring is full until a merge by copy ends.
  static constexpr std::errc no_room = detail::chunk_store::no_room;
  // An error of the same: the index is being written. Call again until the result is another one.
  static constexpr std::errc not_durable_yet = detail::chunk_store::not_durable_yet;
  // A ring that no merge makes room in can go into a map.
  static constexpr bool has_maps = container::has_maps;
  // There is no DRAM for a step, which changed nothing.
  static constexpr std::errc no_memory = detail::chunk_store::no_memory;
  // The record of a chunk names a place that the drive or the medium does not have.
  static constexpr std::errc damaged_record = detail::chunk_store::damaged_record;
  // An error of end_write: it has ended without effect. Begin the write again.
  static constexpr std::errc write_again = detail::chunk_store::write_again;
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
    void write(std::uint64_t offset, std::span<const std::byte> data) {
      store().synchronous_.write(*this, offset, data);
    }
    // Blocks that were never written, or were discarded, are zeros.
    void read(std::uint64_t offset, std::span<std::byte> data) { store().synchronous_.read(*this, offset, data); }
    // Blocks that read as zeros from now on, and need no space. Durable on return. A chunk of which all is discarded is
    // removed. If merges are by copy, a part of a chunk stays reserved for this part: only the chunk as a whole frees
    // blocks for others.
    void discard(std::uint64_t offset, std::uint64_t length) { store().synchronous_.discard(*this, offset, length); }

    // One write of a group.
    struct part {
      std::uint64_t offset;             // byte of the volume
      std::span<const std::byte> data;  // whole blocks
    };
    // All of them or none after a crash (C11). They lie in one chunk, and do not overlap. Durable on return.
    void write_group(std::span<const part> parts) { store().synchronous_.write_group(*this, parts); }

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
    if (!parts_.is_current(v.of_)) throw detail::chunk_store::error_of_removed(v.name());
  }
  // The name of a chunk of a volume, for queues.
  [[nodiscard]] static std::uint64_t key_of(volume_number v, std::uint64_t number) noexcept {
    return detail::chunk_store::name_chunk(v.id, number);
  }
  // The number in a handle, for queues.
  [[nodiscard]] static volume_number number_of(const volume_handle& v) noexcept { return v.of_; }

  // Opens the store `name` (at most 21 characters) in `medium` and on `device`, or makes an empty one if the medium has
  // none. Both outlive it. Throws pmlab::error: a drive of another store or of another moment, too small, other sizes
  // of blocks; impossible options; a damaged pool or header; no space.
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
  // Opens the store whose records are in `pairs` and whose data is on `device`, or makes an empty one if the key space
  // has none. Both outlive it. Merges are by copy. Throws pmlab::error: as above, a key space with other pairs, values
  // too short for a record.
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
    parts_.join_recovery();
  }

  // Opens the volume `name` (1 to 40 characters), or makes it. Throws pmlab::error: no such volume and no size given, a
  // size that is no multiple of a block, 256 volumes (with removed ones that operations in flight still keep).
  [[nodiscard]] volume_handle volume(std::string_view name, const volume_options& options = {}) {
    const auto found = parts_.open_volume(name, options);
    return {*this, found.of, found.bytes, name};
  }

  // Removes the volume and frees its chunks; those that operations in flight use, when these have ended. False: there
  // is no such volume, nor is one there after a crash. True: it is gone durably; what a crash or a drive that fails
  // leaves of it is freed by later operations, or when the store is opened. Throws pmlab::error if the drive fails
  // before: the volume is there as before; or its handles are void, and `volume` throws, until the drive is well again.
  bool remove_volume(std::string_view name) {
    parts_.ensure_recovered_or_throw();
    return parts_.remove_volume(name);
  }
  // Goes on with removals that waited for operations in flight: at the end of each operation. Does nothing while
  // another thread makes or removes a volume, which goes on with them then. True: one has ended.
  bool finish_removals() noexcept { return parts_.finish_removals(); }
  // The same where a write finds no space: it waits for that thread.
  void wait_for_removals() noexcept { parts_.wait_for_removals(); }
  // How many removals of volumes have ended: their chunks are free.
  [[nodiscard]] std::uint64_t ended_removals() const noexcept { return parts_.ended_removals(); }

  // Where a write finds no space: records of chunks whose first writes had failed are free again, if the drive is well
  // again. True: some are.
  bool give_kept() noexcept { return parts_.give_kept(); }

  // The promises on this medium and device.
  [[nodiscard]] chunk_store_promises promises() const {
    bool durable = true;
    if constexpr (media::medium<Container>) durable = media::is_durable(parts_.records.medium());
    if constexpr (core::has_pairs) durable = parts_.records.is_durable();
    return {std::uint64_t{chunk_blocks()} * block_bytes(), parts_.in_place, durable};
  }

  // The free blocks are known; with records on blocks, always. Until then reads, and writes that need none, are
  // answered.
  [[nodiscard]] bool is_complete() const noexcept { return parts_.is_complete(); }
  // Waits until the free blocks are known. Throws pmlab::error: they cannot be.
  void wait_until_complete() { parts_.ensure_recovered_or_throw(); }

  // Walks all records. Exact while no operation runs.
  [[nodiscard]] chunk_store_stats stats() {
    parts_.ensure_recovered_or_throw();
    return detail::chunk_store::stats_of(parts_);
  }

  // Checks C3, C7 and C8 by a walk over all records. REQUIRES: no other operation.
  [[nodiscard]] indexes::check_report check() {
    indexes::check_report report;
    if (const std::errc e = parts_.ensure_recovered(); e == no_memory) {
      throw std::bad_alloc();
    } else if (e != std::errc{}) {
      report.add("the free blocks cannot be found: " + parts_.recovery_problem());
      return report;
    }
    detail::chunk_store::check(parts_, report);
    return report;
  }

  // The size of a block: the device's.
  [[nodiscard]] std::uint32_t block_bytes() const noexcept { return parts_.geometry.block_bytes; }
  // Blocks of a chunk.
  [[nodiscard]] std::uint32_t chunk_blocks() const noexcept { return parts_.shape.blocks; }
  // Its merge policy is `copy`.
  [[nodiscard]] bool merges_by_copy() const noexcept { return parts_.shape.merge == merge_policy::copy; }
  // The device that it was opened on.
  [[nodiscard]] Device& device() noexcept { return parts_.device; }

  // ---- for queues: the steps of an operation. Users have chunk_queue and the operations of a volume.

  // An operation on blocks of one chunk, between its plan and its end.
  using plan = detail::chunk_store::plan;

  // A merge by copy, between its beginning and its end.
  using merge_plan = detail::chunk_store::merge_plan;

  // Plans a read of blocks of one chunk. The caller transfers, and calls end_read; unless the plan has a failure.
  [[nodiscard]] plan begin_read(volume_number v, std::uint64_t number, range blocks) {
    return parts_.begin_read(v, number, blocks);
  }
  // Ends a read whose transfers have ended.
  void end_read(const plan& p) noexcept { parts_.end_read(p); }

  // Plans a write of blocks of one chunk. The caller writes the data durably to the plan's places, and calls end_write.
  // std::errc{}: planned. no_space_on_device: the drive is full; not_enough_memory: the medium is; no_memory;
  // `volume_removed`. Nothing changed then.
  [[nodiscard]] std::errc begin_write(volume_number v, std::uint64_t number, range blocks, plan& p) {
    return parts_.begin_write(v, number, blocks, p);
  }

  // Ends a write whose data is durable (`written`), or whose transfer failed. Durable on return: std::errc{}. An error:
  // the chunk is unchanged, except that after a failed write in place the block is old or new. `volume_removed`: its
  // data is not in use, or goes with the volume. `no_room`: its ring is
  // full until a merge by copy ends, and the write has not ended; unless it `may_remap`: then the ring goes into a map.
  [[nodiscard]] std::errc end_write(plan& p, bool written, bool may_remap = false) {
    return parts_.end_write(p, written, may_remap);
  }

  // Plans one write of a group, redirected whatever its blocks are. `ranges` do not overlap and are in order.
  [[nodiscard]] std::errc begin_group(volume_number v, std::uint64_t number, std::span<const range> ranges, plan& p) {
    return parts_.begin_group(v, number, ranges, p);
  }

  // Makes blocks of one chunk read as zeros, durably. not_enough_memory: the medium is full; no_memory; `no_room`: as
  // end_write. Nothing changed then.
  [[nodiscard]] std::errc discard_in_chunk(volume_number v, std::uint64_t number, range blocks, plan& p,
                                           bool may_remap = false) {
    return parts_.discard_in_chunk(v, number, blocks, p, may_remap);
  }

  // ---- the steps of a merge by copy. The caller reads the sources, waits for may_overwrite, writes the data durably
  // to the targets, and calls end_merge.

  // False: there is nothing to merge, a merge of this chunk is under way, or a write to the places of its blocks; or
  // the plan has a failure: there is no DRAM.
  [[nodiscard]] bool begin_merge(std::uint64_t key, merge_plan& m) { return parts_.begin_merge(key, m); }

  // True: no read is under way that began before the merge, and may read the blocks that it overwrites.
  [[nodiscard]] bool may_overwrite(const merge_plan& m) { return parts_.may_overwrite(m); }

  // Ends a merge whose data is durable at its targets (`copied`), or that is given up. False: the index is being
  // written; call again, until it is not this.
  [[nodiscard]] bool end_merge(merge_plan& m, bool copied) { return parts_.end_merge(m, copied); }

  // Counts the ends of merges, of reads that one waits for, and of operations of volumes that leave a merge. Helping is
  // no change by itself.
  [[nodiscard]] std::uint64_t changes() const { return parts_.changes.now(); }
  // Waits until changes() is not `seen`, or a little while.
  void wait_for_change(std::uint64_t seen) const { parts_.changes.wait_while(seen); }

  // Goes on with merges that operations of volumes began, on queues that no operation uses now. False: there was none
  // to go on with.
  bool help_merges() { return synchronous_.help_merges(); }

  // All queues of the store.
  [[nodiscard]] detail::chunk_store::open_queues& queues() noexcept { return queues_; }
  // The numbers of the chunks of a volume, of those from `first` to before `end`, that may have blocks to discard. An
  // operation that is under way may give blocks to others. Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::uint64_t> chunks_to_discard(volume_number v, std::uint64_t first, std::uint64_t end) {
    return parts_.chunks_to_discard(v, first, end);
  }

  // Writes changed records, without waiting.
  void drive_records() { parts_.records.drive_all(); }
  // Waits until end_write, discard_in_chunk or end_merge may be called again.
  template <class Plan>
  void wait_for_records(const Plan& p) {
    parts_.wait_for_records(p);
  }

  // Where a write that found no room may find some later.
  using room_later = detail::chunk_store::room_later;
  // Frees the replaced blocks that no operation can use any more. `freed`: times_freed() before the write found no
  // room.
  [[nodiscard]] room_later collect(std::uint64_t freed) { return detail::chunk_store::collect(parts_, freed); }
  // How many extents of replaced blocks became free.
  [[nodiscard]] std::uint64_t times_freed() { return detail::chunk_store::times_freed(parts_); }

 private:
  template <class Open>
  chunk_store(Device& device, const chunk_store_options& options, Open&& open)
      : parts_(device, options, std::forward<Open>(open)) {
    place_->store.store(this, std::memory_order_release);
    parts_.begin_recovery(options);
  }

  detail::chunk_store::all_parts<core> parts_;
  std::shared_ptr<store_place> place_ = std::make_shared<store_place>();
  detail::chunk_store::open_queues queues_;
  // Last: its queues use the parts until they are gone.
  detail::chunk_store::synchronous<chunk_store, core> synchronous_{*this, parts_};
};

}  // namespace pmlab::stores
