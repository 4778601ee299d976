// Asynchronous operations on the volumes of a chunk store.
//
//   stores::chunk_queue queue(store, 32);                 // one per thread
//   queue.write(disk, offset, data, tag);                 // false: 32 operations are under way
//   queue.reap(completions, 1);
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/copy_merges.hpp>
#include <pmlab/stores/chunk_store/open_queues.hpp>
#include <pmlab/stores/chunk_store/request_list.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

namespace pmlab::stores {

// `error`: std::errc{}; no_space_on_device: the drive is full; not_enough_memory: the medium is; no_buffer_space: DRAM
// is exhausted; identifier_removed: the volume was removed meanwhile; bad_message: the record of a chunk is damaged,
// and names a place that is not there; others: of the drive.
// After an error each chunk that the operation covers has it, whole, or has not.
struct chunk_completion {
  std::uint64_t tag = 0;  // tag of the operation
  std::errc error{};      // std::errc{}: none
};

// DRAM that is exhausted: an operation is started or its call throws std::bad_alloc and has no effect; one that was
// started ends, with an error if a step of it has no DRAM. `reap` needs none.
//
// Belongs to one thread; any number of them on a store, which outlives them. An operation is done, and durable, when it
// is reaped. Operations under way that overlap take effect in any order. Data is aligned as for the drive
// (blocks::buffer), and stays there until the operation is reaped. Destruction waits for the operations under way.
//
// Merges by copy run on the queue whose write filled the ring, beside its operations and after them; its next
// operations move them on. A write to a chunk whose ring is full waits for the merge. It waits for merges of other
// threads for a tenth of a second at most: then the ring goes into the chunk's map. Without maps it goes on waiting: a
// thread that waits moves on the queues that no thread uses at that moment, so that none depends on one that is not
// reaped. An operation that was moved on is reaped by its owner as any other.
template <class Store>
class chunk_queue final : public detail::chunk_store::helped_queue {
  using plan = typename Store::plan;
  using range = typename Store::range;
  using volume = typename Store::volume_handle;
  using volume_number = typename Store::volume_number;
  using device_queue = typename std::remove_reference_t<decltype(std::declval<Store&>().device())>::queue;

 public:
  // At most `depth` operations under way. Throws pmlab::error for a depth of 0.
  chunk_queue(Store& store, unsigned depth)
      : store_(store), drive_(store.device(), std::max(depth, least_drive_depth)), merges_(store), operations_(depth) {
    if (depth == 0) throw error("a queue of depth 0", "choose a depth of at least 1");
    for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
    store.queues().enter(*this);
  }
  chunk_queue(const chunk_queue&) = delete;
  chunk_queue& operator=(const chunk_queue&) = delete;
  ~chunk_queue() {
    std::array<chunk_completion, 1> ignored;
    while (in_flight() > 0) static_cast<void>(reap(ignored, 1));
    static_cast<void>(go_on_with_merges());
    store_.queues().leave(*this);
    merges_.give_up();
  }

  // Each starts an operation and returns true; false: `depth` operations are under way. They throw pmlab::error for
  // misuse: unaligned, beyond the end of the volume, a volume that was removed or is of another store.
  [[nodiscard]] bool write(const volume& v, std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag) {
    check(v, offset, data.size());
    check_data(data.data());
    // The drive only reads the data of a write.
    return start(v, offset, data.size(), const_cast<std::byte*>(data.data()), kind::write, tag);
  }
  // Reads into `data`; blocks that were never written are zeros.
  [[nodiscard]] bool read(const volume& v, std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag) {
    check(v, offset, data.size());
    check_data(data.data());
    return start(v, offset, data.size(), data.data(), kind::read, tag);
  }
  // Blocks that read as zeros when it is reaped.
  [[nodiscard]] bool discard(const volume& v, std::uint64_t offset, std::uint64_t length, std::uint64_t tag) {
    check(v, offset, length);
    return start(v, offset, length, nullptr, kind::discard, tag);
  }
  // Parts in one chunk that do not overlap; all of them take effect or none. Their data may be unaligned: it is copied.
  template <class Part>
  [[nodiscard]] bool write_group(const volume& v, std::span<const Part> parts, std::uint64_t tag) {
    const using_it lock(use_);
    if (free_.empty()) return false;
    std::vector<const Part*> sorted;
    for (const Part& p : parts) {
      check(v, p.offset, p.data.size());
      if (!p.data.empty()) sorted.push_back(&p);
    }
    std::ranges::sort(sorted, {}, [](const Part* p) { return p->offset; });
    if (sorted.empty()) {
      reserve_completions(1);
      done_.push_back({tag, {}});
      return true;
    }
    const std::uint64_t number = sorted.front()->offset / chunk_bytes();
    std::vector<range> ranges;
    std::uint64_t end = 0;
    for (const Part* p : sorted) {
      if (p->offset < end) throw error("parts of a group of writes overlap", "join them");
      end = p->offset + p->data.size();
      if ((end - 1) / chunk_bytes() != number)
        throw error("a group of writes that is not in one chunk", "write a group for each chunk");
      const range r = blocks_in_chunk(p->offset, p->data.size());
      if (!ranges.empty() && ranges.back().end() == r.first)
        ranges.back().count += r.count;
      else
        ranges.push_back(r);
    }
    start_group(v, number, std::move(ranges), sorted, tag);
    return true;
  }

  // Waits until at least `at_least` operations are done (or all of those under way, if these are fewer), writes as many
  // as fit into `completions`, and returns how many. With 0 it does not wait for other threads, but for one thing, as
  // the calls that start writes do: a write for which the drive has no space waits up to two seconds while operations
  // of others, also of other queues of this thread, keep replaced blocks; while removals of volumes are under way, it
  // waits for a thread that makes or removes a volume, too.
  std::size_t reap(std::span<chunk_completion> completions, std::size_t at_least) {
    const using_it lock(use_);
    const std::size_t wanted = std::min({at_least, completions.size(), under_way()});
    if (wanted == 0 && (has_work() || waits_for_others())) progress(0);
    while (done_.size() < wanted) progress(1);
    static_cast<void>(store_.finish_removals());
    const std::size_t count = std::min(completions.size(), done_.size());
    std::copy_n(done_.begin(), count, completions.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

  // Waits for the requests of operations and of merges, and goes on with merges while that is possible. False: there
  // was nothing to do.
  bool go_on_with_merges() {
    const using_it lock(use_);
    if (merges_.any()) merges_.go_on(waiting_);
    const bool any = has_work();
    while (has_work()) progress(1);
    return any;
  }
  // Merges of this queue are under way.
  [[nodiscard]] bool has_merges() const noexcept {
    const using_it lock(use_);
    return merges_.any();
  }

  // Started and not reaped.
  [[nodiscard]] std::size_t in_flight() const noexcept {
    const using_it lock(use_);
    return under_way();
  }

  // Moves it on for a thread that waits for what it has. False: it is in use, or there was nothing to do.
  bool go_on_for_another() noexcept override {
    const std::unique_lock lock(use_, std::try_to_lock);
    if (!lock.owns_lock() || (!has_work() && !waits_for_others())) return false;
    const std::size_t before = done_.size();
    const std::uint64_t changes = store_.changes();
    is_helped_ = true;
    progress_beside_owner();
    is_helped_ = false;
    return done_.size() != before || store_.changes() != changes;
  }

 private:
  using using_it = std::scoped_lock<detail::chunk_store::one_at_a_time>;

  static constexpr unsigned least_drive_depth = 32;
  // For space. A thread that does not reap its operations keeps replaced blocks from being free: the wait for it ends
  // after about two seconds, or a fifth of a second if no replaced block is kept. Others may free blocks and take them
  // again for ever: that ends, too.
  static constexpr unsigned most_waits = 100'000;
  static constexpr unsigned most_idle_waits = 2'000;  // waits of up to a millisecond each
  // For merges of other threads: how long nothing may change in the store, and how long it may take in all. Without
  // maps the write fails then.
  static constexpr std::chrono::milliseconds longest_rest{Store::has_maps ? 100 : 10'000};
  static constexpr std::chrono::milliseconds longest_wait{Store::has_maps ? 100 : 60'000};

  static constexpr std::size_t most_submitted = 32;  // requests at a time
  // The most tries for space, before a wait may be long.
  static constexpr unsigned most_spins = 100;

  enum class kind : std::uint8_t { read, write, discard };

  // Blocks of one chunk, of one operation.
  struct part {
    std::uint64_t chunk = 0;
    std::vector<range> blocks;     // one; several of a group
    std::vector<std::byte*> data;  // data of each of these
    plan planned;
    std::size_t transfers = 0;  // not ended
    bool failed = false;
    // While its chunk's ring is full, or the drive:
    std::optional<std::uint64_t> merge_failures{};  // number that the queue had when it began to wait
    bool may_remap = false;                         // the ring may go into a map
    std::chrono::steady_clock::time_point waits_since{};
    std::chrono::steady_clock::time_point rests_since{};
    std::uint64_t changes = 0;  // changes of the store when it last tried
    // Its place, and the part after it in a list of parts:
    std::size_t operation = 0;
    std::size_t number = 0;
    part* next = nullptr;
  };

  // Parts that wait, first in, first out. A part is in one list at most, so a list needs no memory.
  class part_list {
   public:
    void push_back(part& p) noexcept {
      p.next = nullptr;
      (last_ == nullptr ? first_ : last_->next) = &p;
      last_ = &p;
    }
    [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
    [[nodiscard]] part& front() const noexcept { return *first_; }
    // Empties the list, and calls visit(part&) for each part of it; that may end a part, or put it into a list again.
    template <class Visit>
    void take_all(Visit&& visit) {
      last_ = nullptr;
      for (part* p = std::exchange(first_, nullptr); p != nullptr;) {
        part& now = *p;
        p = now.next;
        visit(now);
      }
    }
    template <class Visit>
    void for_each(Visit&& visit) const {
      for (part* p = first_; p != nullptr; p = p->next) visit(*p);
    }

   private:
    part* first_ = nullptr;
    part* last_ = nullptr;
  };

  struct operation {
    std::vector<part> parts;
    std::size_t parts_left = 0;
    kind what = kind::read;
    volume_number of;
    std::uint64_t tag = 0;
    std::errc error{};
    blocks::buffer copy;  // copy of a group's data

    explicit operation(const volume& v) : of(Store::number_of(v)) {}
  };

  [[nodiscard]] std::uint64_t block_bytes() const noexcept { return store_.block_bytes(); }
  [[nodiscard]] std::uint64_t chunk_bytes() const noexcept { return block_bytes() * store_.chunk_blocks(); }

  void check(const volume& v, std::uint64_t offset, std::uint64_t length) const {
    store_.check_volume(v);
    if (offset % block_bytes() != 0 || length % block_bytes() != 0)
      throw error("an operation on " + std::to_string(length) + " bytes at byte " + std::to_string(offset) +
                      " is not on whole blocks",
                  "use multiples of " + std::to_string(block_bytes()) + " bytes");
    if (offset > v.bytes() || length > v.bytes() - offset)
      throw error("an operation on " + std::to_string(length) + " bytes at byte " + std::to_string(offset) +
                      " lies beyond the end of the volume, which has " + std::to_string(v.bytes()),
                  "stay within the volume");
  }
  void check_data(const std::byte* data) const {
    const std::size_t alignment = blocks::alignment_of(store_.device().shape());
    if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0)
      throw error("the data of an operation does not begin at a multiple of " + std::to_string(alignment) + " bytes",
                  "use blocks::buffer");
  }

  [[nodiscard]] range blocks_in_chunk(std::uint64_t offset, std::uint64_t length) const {
    return {static_cast<std::uint32_t>(offset % chunk_bytes() / block_bytes()),
            static_cast<std::uint32_t>(length / block_bytes())};
  }

  // Calls visit(chunk, its blocks, bytes before them) for each chunk of the range.
  template <class Visit>
  void for_each_chunk(std::uint64_t offset, std::uint64_t length, Visit&& visit) const {
    for (std::uint64_t done = 0; done < length;) {
      const std::uint64_t at = offset + done;
      const std::uint64_t bytes = std::min(length - done, chunk_bytes() - at % chunk_bytes());
      visit(at / chunk_bytes(), blocks_in_chunk(at, bytes), done);
      done += bytes;
    }
  }

  [[nodiscard]] bool start(const volume& v, std::uint64_t offset, std::uint64_t length, std::byte* data, kind what,
                           std::uint64_t tag) {
    const using_it lock(use_);
    if (free_.empty()) return false;
    operation made(v);
    made.what = what;
    made.tag = tag;
    const auto add = [&](std::uint64_t number, range blocks, std::uint64_t at) {
      part& p = made.parts.emplace_back();
      p.chunk = number;
      p.blocks = {blocks};
      p.data = {data == nullptr ? nullptr : data + at};
    };
    if (what == kind::discard)
      for_each_chunk_to_discard(made.of, offset, length, add);
    else
      for_each_chunk(offset, length, add);
    if (made.parts.empty()) {
      reserve_completions(1);
      done_.push_back({tag, {}});
      return true;
    }
    begin(std::move(made));
    return true;
  }
  // Visits the chunks of the range that have blocks: for the others there is nothing to do.
  template <class Visit>
  void for_each_chunk_to_discard(volume_number of, std::uint64_t offset, std::uint64_t length, Visit&& visit) {
    if (length == 0) return;
    const std::uint64_t end = offset + length;
    for (const std::uint64_t number :
         store_.chunks_to_discard(of, offset / chunk_bytes(), (end - 1) / chunk_bytes() + 1)) {
      const std::uint64_t first = std::max(offset, number * chunk_bytes());
      const std::uint64_t last = std::min(end, (number + 1) * chunk_bytes());
      visit(number, blocks_in_chunk(first, last - first), first - offset);
    }
  }

  template <class Part>
  void start_group(const volume& v, std::uint64_t number, std::vector<range> ranges,
                   const std::vector<const Part*>& sorted, std::uint64_t tag) {
    operation made(v);
    made.what = kind::write;
    made.tag = tag;
    std::size_t bytes = 0;
    for (const Part* p : sorted) bytes += p->data.size();
    made.copy = blocks::buffer(bytes);
    part whole;
    whole.chunk = number;
    whole.blocks = std::move(ranges);
    std::byte* to = made.copy.data();
    for (const Part* p : sorted) {
      std::memcpy(to, p->data.data(), p->data.size());
      to += p->data.size();
    }
    to = made.copy.data();
    for (const range& r : whole.blocks) {
      whole.data.push_back(to);
      to += r.count * block_bytes();
    }
    made.parts.push_back(std::move(whole));
    begin(std::move(made));
  }

  // Memory for the completions of all operations under way, and of so many more.
  void reserve_completions(std::size_t more) {
    const std::size_t needed = under_way() + more;
    if (needed > done_.capacity()) done_.reserve(std::max(needed, operations_.size()));
  }

  void begin(operation made) {
    reserve_completions(1);
    const std::size_t at = free_.back();
    free_.pop_back();
    made.parts_left = made.parts.size();
    for (std::size_t i = 0; i < made.parts.size(); ++i) {
      made.parts[i].operation = at;
      made.parts[i].number = i;
    }
    operations_[at].emplace(std::move(made));
    // The operation may end, and its place be empty, with its last part.
    const std::size_t parts = operations_[at]->parts.size();
    for (std::size_t i = 0; i < parts; ++i) begin_part(at, i);
    submit_waiting();
  }

  // Plans a part and queues its transfers. A write for which the drive has no space begins a merge by copy of its
  // chunk, and waits while that and operations under way, of this queue and then of others, keep replaced blocks from
  // being free; then it fails. A merge that failed for it is not begun again: what the drive answered is the write's
  // error then, if there is no space otherwise.
  void begin_part(std::size_t at, std::size_t number) {
    operation& o = *operations_[at];
    part& p = o.parts[number];
    if (o.what == kind::discard) return finish_part(at, number);
    if (o.what == kind::read) {
      p.planned = store_.begin_read(o.of, p.chunk, p.blocks.front());
      if (p.planned.failure() != std::errc{}) return end_part(at, p.planned.failure());
    } else {
      const std::uint64_t ended = store_.ended_removals();
      std::errc e = plan_write(o, p);
      // The chunks of a removed volume, when the operations on it have ended.
      if (is_full(e) && !is_helped_) store_.wait_for_removals();
      if (is_full(e) && store_.ended_removals() != ended) e = plan_write(o, p);
      // What writes kept that had failed, when the drive is well again.
      if (is_full(e) && store_.give_kept()) e = plan_write(o, p);
      // A merge frees the blocks that the ring names, and lets discarded blocks of the base extent be written again.
      // One that had nothing to copy has ended by now.
      const std::uint64_t key = Store::key_of(o.of, p.chunk);
      if (e == std::errc::no_space_on_device && merge_failure(p, key) == std::errc{} && merges_.begin(key, waiting_))
        e = plan_write(o, p);
      // A thread that helps holds the queue, and its owner may have other operations: waiting is the owner's.
      if (e == std::errc::no_space_on_device && (has_work() || !without_room_.empty() || is_helped_)) {
        without_space_.push_back(p);
        return;
      }
      if (e == std::errc::no_space_on_device) e = wait_for_space(o, p);
      if (e == std::errc::no_space_on_device && merge_failure(p, key) != std::errc{}) e = merge_failure(p, key);
      if (e != std::errc{}) {
        p.failed = true;
        return end_part(at, e);
      }
    }
    try {
      waiting_.reserve_more(p.planned.transfers().size());
    } catch (const std::bad_alloc&) {
      o.error = Store::no_memory;
      p.failed = true;
      return finish_part(at, number);
    }
    for (const auto& t : p.planned.transfers()) {
      std::byte* const data = data_of(p, t.blocks.first);
      if (plan::is_zeros(t)) {
        std::memset(data, 0, t.blocks.count * block_bytes());
        continue;
      }
      ++p.transfers;
      waiting_.push_back({o.what == kind::write ? blocks::operation::write_durable : blocks::operation::read,
                          blocks::stream::data, t.blocks.count, t.target, data, std::uint64_t{at} << 32 | number});
    }
    if (p.transfers == 0) finish_part(at, number);
  }

  // Plans a write that has found no space. Blocks may wait for operations of other threads, which end without this one
  // and may not run for a while, and for merges.
  [[nodiscard]] std::errc wait_for_space(operation& o, part& p) {
    using later = typename Store::room_later;
    sync::backoff wait;
    std::errc e = std::errc::no_space_on_device;
    unsigned idle_waits = 0;
    for (unsigned i = 0; i < most_waits && idle_waits < most_idle_waits; ++i) {
      const std::uint64_t seen = store_.changes();
      const std::uint64_t freed = store_.times_freed();
      e = plan_write(o, p);
      if (e != std::errc::no_space_on_device) break;
      merges_.give_up();
      store_.wait_for_removals();
      const bool merged = store_.help_merges();
      const later room = store_.collect(freed);
      if (room == later::no && !merged) break;
      if (room == later::is_there || i < most_spins) {
        wait.pause();
      } else {
        store_.wait_for_change(seen);
        // Another queue may keep blocks, and not be reaped.
        if (store_.queues().help(*this)) continue;
        if (store_.changes() == seen) idle_waits += room == later::kept || merged ? 1 : 10;
      }
    }
    return e;
  }

  [[nodiscard]] static bool is_full(std::errc e) noexcept {
    return e == std::errc::no_space_on_device || e == std::errc::not_enough_memory;
  }
  [[nodiscard]] std::errc plan_write(operation& o, part& p) {
    return o.copy.size() > 0 ? store_.begin_group(o.of, p.chunk, p.blocks, p.planned)
                             : store_.begin_write(o.of, p.chunk, p.blocks.front(), p.planned);
  }

  // Where the data of a block of the chunk is.
  [[nodiscard]] std::byte* data_of(const part& p, std::uint32_t block) const {
    std::size_t i = 0;
    while (block < p.blocks[i].first || block >= p.blocks[i].end()) ++i;
    return p.data[i] + (block - p.blocks[i].first) * block_bytes();
  }

  void submit_waiting() {
    while (!waiting_.empty()) {
      const std::size_t room = drive_.depth() - drive_.in_flight();
      const std::span<const blocks::request> all = waiting_.all();
      const std::size_t count = std::min({room, all.size(), most_submitted});
      if (count == 0) return;
      const std::size_t taken = drive_.submit(all.first(count));
      if (taken == 0) return;
      waiting_.drop(taken);
    }
  }

  [[nodiscard]] std::size_t under_way() const noexcept { return operations_.size() - free_.size() + done_.size(); }
  // Requests of operations or of merges that have not ended.
  [[nodiscard]] bool has_transfers() const noexcept { return drive_.in_flight() > 0 || !waiting_.empty(); }

  // Waits for `at_least` transfers, or for other threads if there are none, and goes on with what that makes possible.
  void progress(std::size_t at_least) {
    std::array<blocks::completion, 16> ended;
    submit_waiting();
    std::size_t count = 0;
    if (has_transfers())
      count = drive_.reap(ended, at_least);
    else if (has_work())
      wait_for_records(at_least);
    else
      wait_for_others(at_least);
    go_on(std::span(ended).first(count));
  }
  // The same, without waiting for anything.
  void progress_beside_owner() {
    std::array<blocks::completion, 16> ended;
    submit_waiting();
    go_on(std::span(ended).first(has_transfers() ? drive_.reap(ended, 0) : 0));
  }
  void go_on(std::span<const blocks::completion> ended) {
    for (blocks::completion c : ended) {
      if (c.error == blocks::beyond_end) c.error = Store::damaged_record;
      if (merges_.is_mine(c.tag)) {
        merges_.completed(c, waiting_);
        continue;
      }
      const auto at = static_cast<std::size_t>(c.tag >> 32);
      const std::size_t number = c.tag & 0xffffffff;
      part& p = operations_[at]->parts[number];
      if (!c.succeeded()) {
        p.failed = true;
        operations_[at]->error = c.error;
      }
      if (--p.transfers == 0) finish_part(at, number);
    }
    // Before the state is examined: a change after that ends the wait.
    if (merges_.any() || !without_room_.empty()) seen_ = store_.changes();
    // Changes of records that came together share a write.
    store_.drive_records();
    if (merges_.any()) merges_.go_on(waiting_);
    not_durable_.take_all([&](part& p) { finish_part(p.operation, p.number); });
    without_room_.take_all([&](part& p) { finish_part(p.operation, p.number); });
    without_space_.take_all([&](part& p) { begin_part(p.operation, p.number); });
    submit_waiting();
  }

  // Operations wait for room in rings, or merges of this queue for readers: other threads have these. No transfer is in
  // flight here.
  void wait_for_others(std::size_t at_least) {
    bool may_remap = false;
    without_room_.for_each([&](const part& p) { may_remap |= p.may_remap; });
    if (may_remap) return;
    // A caller that polls does not wait, but the time that it lets pass counts.
    if (store_.changes() == seen_ && !store_.help_merges() && at_least > 0) store_.wait_for_change(seen_);
    // Whatever changed: that may be of others, again and again.
    store_.queues().help(*this);
  }

  // What can go on without another thread: transfers, and records that are being written.
  [[nodiscard]] bool has_work() const noexcept {
    return has_transfers() || !not_durable_.empty() || merges_.waits_for_records() != nullptr;
  }
  // Parts and merges that go on when another thread does.
  [[nodiscard]] bool waits_for_others() const noexcept {
    return merges_.any() || !without_room_.empty() || !without_space_.empty();
  }
  void wait_for_records(std::size_t at_least) {
    if (at_least == 0) return;
    if (!not_durable_.empty()) {
      store_.wait_for_records(not_durable_.front().planned);
    } else {
      store_.wait_for_records(*merges_.waits_for_records());
    }
  }

  void finish_part(std::size_t at, std::size_t number) {
    operation& o = *operations_[at];
    part& p = o.parts[number];
    std::errc e{};
    if (o.what == kind::read) {
      store_.end_read(p.planned);
    } else {
      e = o.what == kind::write ? store_.end_write(p.planned, !p.failed, p.may_remap)
                                : store_.discard_in_chunk(o.of, p.chunk, p.blocks.front(), p.planned, p.may_remap);
      if (e == Store::no_room) return wait_for_room(at, number);
      if (e == Store::not_durable_yet) return not_durable_.push_back(p);
      if (p.planned.wants_merge()) static_cast<void>(merges_.begin(p.planned.key(), waiting_));
      if (e == Store::write_again) return begin_part(at, number);
    }
    // The drive's own error says more than that the write was not made, or that a merge was not.
    const std::errc not_merged = e == std::errc::timed_out ? merge_failure(p, p.planned.key()) : std::errc{};
    end_part(at, p.failed ? o.error : not_merged != std::errc{} ? not_merged : e);
  }

  // Merges the part's chunk, if no queue does, and tries again later.
  void wait_for_room(std::size_t at, std::size_t number) {
    part& p = operations_[at]->parts[number];
    const auto now = std::chrono::steady_clock::now();
    if (p.waits_since == std::chrono::steady_clock::time_point{}) p.waits_since = p.rests_since = now;
    if (seen_ != p.changes) p.rests_since = now;
    p.changes = seen_;
    // A merge that fails may fail again.
    const auto has_failed = [&] { return merge_failure(p, p.planned.key()) != std::errc{}; };
    p.may_remap = now - p.rests_since > longest_rest || now - p.waits_since > longest_wait || has_failed();
    if (!p.may_remap && !merges_.begin(p.planned.key(), waiting_)) p.may_remap = has_failed();
    without_room_.push_back(p);
  }

  // Why a merge of the part's chunk failed since the part began to wait for one; std::errc{}: none did.
  [[nodiscard]] std::errc merge_failure(part& p, std::uint64_t key) const noexcept {
    if (!p.merge_failures) p.merge_failures = merges_.failures();
    return merges_.failure_of(key, *p.merge_failures);
  }

  void end_part(std::size_t at, std::errc e) {
    operation& o = *operations_[at];
    if (e != std::errc{}) o.error = e;
    if (--o.parts_left > 0) return;
    done_.push_back({o.tag, o.error});
    operations_[at].reset();
    free_.push_back(at);
  }

  mutable detail::chunk_store::one_at_a_time use_;  // the owner's, or that of a thread that moves the queue on
  Store& store_;
  device_queue drive_;
  detail::chunk_store::copy_merges<Store> merges_;
  std::vector<std::optional<operation>> operations_;
  std::vector<std::size_t> free_;
  detail::chunk_store::request_list waiting_;  // transfers that were not submitted
  part_list without_space_;                    // the drive is full
  part_list without_room_;                     // the ring of the chunk is
  part_list not_durable_;                      // the record is being written
  std::uint64_t seen_ = 0;                     // changes of the store
  bool is_helped_ = false;                     // another thread moves the queue on
  std::vector<chunk_completion> done_;         // has memory for all operations under way
};

}  // namespace pmlab::stores
