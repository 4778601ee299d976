// The index blocks of a store: all of them in DRAM, and each change of them written to the drive before it is answered.
//
// An index block has up to three contents:
//   current   durable: readers see it
//   next      with the changes since: only while the block is dirty
//   sent      a copy of `next` that is being written
// While a write of a block is under way, further changes of it collect in `next` and share the write after it. A write
// that is durable makes `sent` current, and settles its changes.
//
// A write that fails settles all changes of its block as failed, those that collected since too, for they were made on
// top. The drive may have the content nevertheless: the block is unsure until a later write of it is durable. That goes
// to the same place, so the current content stays whole.
//
// Orders (docs/architecture: tags):
//   (I1) the data that an index block names is durable   (I2) the index block is written
//   (I3) the write is durable                            (I4) `sent` becomes current, its changes are settled
//   (I1) < (I2): no crash leaves a name of blocks whose data is not there.
//   (I3) < (I4): a reader sees nothing that a crash undoes; blocks are not used again before their replacement is
//   durable.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/index_block.hpp>
#include <pmlab/stores/chunk_store/promised_list.hpp>
#include <pmlab/stores/chunk_store/session.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <span>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// A change of an index block, until it is durable or has failed. It stays where it is meanwhile; moved only before.
class index_change {
 public:
  index_change() = default;
  index_change(index_change&& /*unused yet*/) noexcept {}
  index_change& operator=(index_change&& /*unused yet*/) noexcept { return *this; }
  ~index_change() = default;

  [[nodiscard]] bool is_settled() const noexcept { return state_.load(std::memory_order_acquire) != state::waiting; }
  // REQUIRE that it is settled:
  [[nodiscard]] bool succeeded() const noexcept { return state_.load(std::memory_order_acquire) == state::durable; }
  // not_enough_memory: there was no room for it; no_buffer_space: DRAM is exhausted; io_error: it failed.
  [[nodiscard]] std::errc error() const noexcept {
    switch (state_.load(std::memory_order_acquire)) {
      case state::durable: return {};
      case state::full: return std::errc::not_enough_memory;
      case state::without_memory: return std::errc::no_buffer_space;
      default: return std::errc::io_error;
    }
  }
  // The era of a change that failed: it lies between two writes that succeeded. Later eras have higher numbers.
  [[nodiscard]] std::uint64_t era() const noexcept { return era_; }

 private:
  template <blocks::device Device>
  friend class index_region;
  friend class change_list;
  enum class state : std::uint8_t { waiting, durable, failed, full, without_memory };

  // The owner of a change may free it as soon as it is settled.
  static void settle_all(index_change*& list, state as, std::uint64_t era) noexcept {
    for (index_change* c = std::exchange(list, nullptr); c != nullptr;) {
      index_change* const next = c->next_;
      c->era_ = era;
      c->state_.store(as, std::memory_order_release);
      c = next;
    }
  }

  std::atomic<state> state_{state::waiting};
  std::uint32_t block_ = 0;
  std::uint32_t held_ = 0;  // extents that its owner may hold when it has failed
  std::uint64_t era_ = 0;
  index_change* next_ = nullptr;
};

// Changes that are settled together, by a container that has no region. Not thread-safe.
class change_list {
 public:
  // Its owner holds at most so many extents if it fails.
  void add(index_change& c, std::uint32_t most_held) noexcept {
    c.held_ = most_held;
    c.next_ = std::exchange(first_, &c);
  }
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  // Calls visit(extents that the owner of a change may hold) for each.
  template <class Visit>
  void for_each_held(Visit&& visit) const {
    for (const index_change* c = first_; c != nullptr; c = c->next_) visit(c->held_);
  }
  // std::errc{}: they are durable; not_enough_memory: there was no room for them; no_buffer_space: DRAM is exhausted;
  // others: they failed, in this era.
  void settle(std::errc result, std::uint64_t era) noexcept {
    index_change::settle_all(first_,
                             result == std::errc{}                    ? index_change::state::durable
                             : result == std::errc::not_enough_memory ? index_change::state::full
                             : result == std::errc::no_buffer_space   ? index_change::state::without_memory
                                                                      : index_change::state::failed,
                             era);
  }

 private:
  index_change* first_ = nullptr;
};

// Thread safety: all operations from any thread, but format and load: before all others. Lock order: a lock of a chunk
// store's stripe, then the lock of `guard`.
template <blocks::device Device>
class index_region {
  struct dirty_block {
    blocks::buffer next;
    blocks::buffer sent;
    bool in_flight = false;
    bool queued = false;                // in `ready`
    std::uint64_t failures = 0;         // writes since the current content
    index_change* collected = nullptr;  // changes of `next` that `sent` has not
    index_change* carried = nullptr;    // changes of `sent`
    promised_list<extent> held;         // blocks that the drive may have names of, after a failure
  };

  // Index blocks with the same remainder. A thread that waits for one of them does the lane's requests meanwhile.
  struct lane {
    explicit lane(Device& device) : queue(device, depth) {}
    static constexpr unsigned depth = 16;

    std::mutex state;  // guards the contents of the lane's blocks, and these
    std::unordered_map<std::uint32_t, dirty_block> dirty;
    std::vector<std::uint32_t> ready;  // dirty, with changes, and no write under way

    std::mutex driving;  // guards the queue. Taken before `state`
    typename Device::queue queue;
  };

 public:
  // `device` and `free` outlive it.
  index_region(Device& device, const index_layout& layout, free_map& free)
      : device_(device),
        free_(free),
        layout_(layout),
        stride_(layout.payload_bytes()),
        current_(std::size_t{layout.blocks} * stride_),
        sequences_(layout.blocks, 0) {
    for (std::uint32_t i = 0; i < std::min(most_lanes, layout.blocks); ++i)
      lanes_.push_back(std::make_unique<lane>(device));
  }

  // Writes all index blocks, empty, to both of their places, durably. Throws pmlab::error if the drive fails.
  void format() {
    blocks::synchronous drive(device_);
    blocks::buffer some(piece_bytes());
    for (std::uint32_t number = 0; number < layout_.blocks;) {
      const std::uint32_t count = std::min(blocks_in_piece(), layout_.blocks - number);
      for (std::uint32_t i = 0; i < count; ++i, ++number)
        for (std::uint64_t sequence = 0; sequence < index_layout::places; ++sequence)
          seal(block_in(some, i, sequence), layout_, number, sequence);
      drive.write_durable(layout_.place(number - count, 0),
                          some.bytes().first(std::size_t{count} * index_layout::places * layout_.block_bytes),
                          blocks::stream::index);
    }
  }

  // Reads all index blocks. A place that is not whole is damage, unless an earlier opening forgot it: if `whole`, the
  // drive tears no block; or if no write was cut off, because the store was closed at writes() of `closed_at` and has
  // no more now. Otherwise a crash tore it. Fewer writes than `closed_at` are damage, whatever the places look like: a
  // newest content is lost. Throws pmlab::error: an index block is damaged, the drive fails.
  void load(bool whole, std::uint64_t closed_at = 0) {
    blocks::synchronous drive(device_);
    // Contents that are on the drive and not durable: what is read now must not be lost later.
    drive.flush(blocks::stream::index);
    blocks::buffer some(piece_bytes());
    std::vector<std::uint32_t> torn;
    std::vector<std::uint32_t> without_head;
    for (std::uint32_t number = 0; number < layout_.blocks;) {
      const std::uint32_t count = std::min(blocks_in_piece(), layout_.blocks - number);
      drive.read(layout_.place(number, 0),
                 some.bytes().first(std::size_t{count} * index_layout::places * layout_.block_bytes),
                 blocks::stream::index);
      for (std::uint32_t i = 0; i < count; ++i, ++number) {
        const other_place other = load_block(some, i, number, whole);
        if (other == other_place::torn) torn.push_back(number);
        if (other == other_place::without_head) without_head.push_back(number);
      }
    }
    if (!torn.empty() && (whole || writes() <= closed_at)) damaged(torn.front());
    // A place without a head may be one that a release before forgot: that one lacked no write at the closing.
    if (closed_at != unknown_writes && writes() < closed_at) lacks_writes(without_head, closed_at);
    for (const std::uint32_t number : torn) forget_torn(drive, number);
  }
  // Number of writes of all index blocks since they were made, as far as the current contents show.
  [[nodiscard]] std::uint64_t writes() const noexcept {
    return std::accumulate(sequences_.begin(), sequences_.end(), std::uint64_t{0});
  }

  [[nodiscard]] const index_layout& layout() const noexcept { return layout_; }
  // The places of this drive that a write had left torn, found since it was opened.
  [[nodiscard]] std::uint64_t torn_places() const noexcept { return torn_; }
  // The bytes of DRAM, without dirty blocks.
  [[nodiscard]] std::uint64_t dram_bytes() const noexcept {
    return current_.size() + sequences_.size() * sizeof(std::uint64_t);
  }

  // ---- contents

  // While it is held, contents of this block stay as they are, but for the owner's changes.
  [[nodiscard]] std::unique_lock<std::mutex> guard(std::uint32_t number) const {
    return std::unique_lock(lane_of(number).state);
  }
  // The rest: REQUIRES the guard of the block.

  // Its durable content: an address that does not change.
  [[nodiscard]] const std::byte* current(std::uint32_t number) const noexcept {
    return current_.data() + std::size_t{number} * stride_;
  }
  // The same.
  [[nodiscard]] std::byte* current(std::uint32_t number) noexcept {
    return current_.data() + std::size_t{number} * stride_;
  }
  // Its content with all changes: valid while the guard is held.
  [[nodiscard]] std::byte* newest(std::uint32_t number) noexcept {
    const auto at = lane_of(number).dirty.find(number);
    return at == lane_of(number).dirty.end() ? current(number) : payload_of(at->second.next.bytes());
  }
  // False: a write of it failed, and the drive has one of two contents.
  [[nodiscard]] bool is_sure(std::uint32_t number) const noexcept {
    const auto at = lane_of(number).dirty.find(number);
    return at == lane_of(number).dirty.end() || at->second.failures == 0;
  }
  // To be changed by the caller, who then calls add; all that needs memory until the change is settled, and to hold so
  // many extents then, is there. Throws std::bad_alloc; nothing changed then.
  [[nodiscard]] std::byte* edit(std::uint32_t number, std::uint32_t most_held = 1) {
    lane& l = lane_of(number);
    auto at = l.dirty.find(number);
    if (at == l.dirty.end()) {
      dirty_block made;
      made.next = blocks::buffer(layout_.block_bytes);
      made.sent = blocks::buffer(layout_.block_bytes);
      std::memcpy(payload_of(made.next.bytes()), current(number), stride_);
      if (l.ready.capacity() <= l.dirty.size()) l.ready.reserve(2 * l.dirty.size() + 1);
      at = l.dirty.emplace(number, std::move(made)).first;
    }
    at->second.held.promise(most_held);
    at->second.held.release(most_held);
    return payload_of(at->second.next.bytes());
  }
  // The changes of the block since are settled with `change`, whose owner then holds at most so many extents. REQUIRES:
  // an edit for as many.
  void add(std::uint32_t number, index_change& change, std::uint32_t most_held = 1) noexcept {
    lane& l = lane_of(number);
    dirty_block& d = l.dirty.find(number)->second;
    d.held.promise(most_held);
    change.held_ = most_held;
    change.block_ = number;
    change.next_ = std::exchange(d.collected, &change);
    if (!d.in_flight && !std::exchange(d.queued, true)) l.ready.push_back(number);
  }

  // Blocks of a change that failed in this era: free as soon as the drive has no name of them. A later write that
  // succeeded has none, and with it the promises of changes before it ended.
  void hold(std::uint32_t number, extent e, std::uint64_t era) noexcept {
    const auto at = lane_of(number).dirty.find(number);
    if (at == lane_of(number).dirty.end() || at->second.failures == 0 || sequences_[number] != era)
      free_.give(e);
    else
      at->second.held.put(e);
  }
  // Calls visit(extent) for each that is held. REQUIRES: no guard is held.
  template <class Visit>
  void for_each_held(Visit&& visit) const {
    for (const auto& l : lanes_) {
      const std::scoped_lock lock(l->state);
      for (const auto& [number, d] : l->dirty)
        for (const extent& e : d.held) visit(e);
    }
  }

  // False: the last write of some index block failed, and its place may be torn. REQUIRES: no guard is held.
  [[nodiscard]] bool is_sure() const {
    return std::ranges::all_of(lanes_, [](const auto& l) {
      const std::scoped_lock lock(l->state);
      return std::ranges::all_of(l->dirty, [](const auto& entry) { return entry.second.failures == 0; });
    });
  }

  // ---- writing

  // Writes the content of an unsure block again, with the changes since, and waits. False: the drive refused it.
  // REQUIRES: no guard is held.
  [[nodiscard]] bool make_sure(std::uint32_t number) {
    index_change change;
    {
      const auto lock = guard(number);
      if (is_sure(number)) return true;
      add(number, change, 0);
    }
    settle(change);
    return change.succeeded();
  }
  // All of them. False: the drive refused one.
  [[nodiscard]] bool make_all_sure() {
    if (is_sure()) return true;
    for (std::uint32_t number = 0; number < layout_.blocks; ++number)
      if (!make_sure(number)) return false;
    return true;
  }

  // Submits the writes of dirty blocks and settles changes, without waiting. REQUIRES: no guard is held.
  void drive_all() {
    for (const auto& l : lanes_) {
      const std::unique_lock driving(l->driving, std::try_to_lock);
      if (driving.owns_lock()) drive(*l, false);
    }
  }
  // Waits until `change` is settled, or some of its lane's are. REQUIRES: no guard is held.
  void wait_for(const index_change& change) {
    lane& l = lane_of(change.block_);
    const std::scoped_lock driving(l.driving);
    if (!change.is_settled()) drive(l, true);
  }
  void settle(const index_change& change) {
    while (!change.is_settled()) wait_for(change);
  }

 private:
  static constexpr std::uint32_t most_lanes = 8;
  static constexpr std::uint32_t usual_piece_bytes = 1 << 20;

  [[nodiscard]] lane& lane_of(std::uint32_t number) const noexcept { return *lanes_[number % lanes_.size()]; }

  // Index blocks that one request of opening reads, and their bytes.
  [[nodiscard]] std::uint32_t blocks_in_piece() const noexcept {
    return std::min(layout_.blocks, usual_piece_bytes / layout_.block_bytes / index_layout::places);
  }
  [[nodiscard]] std::size_t piece_bytes() const noexcept {
    return std::size_t{blocks_in_piece()} * index_layout::places * layout_.block_bytes;
  }
  [[nodiscard]] std::span<std::byte> block_in(blocks::buffer& piece, std::uint32_t index,
                                              std::uint64_t sequence) const noexcept {
    const std::uint64_t at = std::uint64_t{index} * index_layout::places + sequence % index_layout::places;
    return piece.bytes().subspan(at * layout_.block_bytes, layout_.block_bytes);
  }

  // The place of an index block that does not have its content.
  enum class other_place : std::uint8_t {
    right,         // whole, or forgotten
    without_head,  // a release before forgot it, or the drive has lost it
    torn,          // or damaged
  };

  // `whole`: the drive tears no block.
  [[nodiscard]] other_place load_block(blocks::buffer& piece, std::uint32_t index, std::uint32_t number, bool whole) {
    other_place other = other_place::right;
    std::span<std::byte> best;
    for (std::uint64_t place = 0; place < index_layout::places; ++place) {
      const std::span<std::byte> b = block_in(piece, index, place);
      if (!is_whole(b, layout_, number) || head_of(b).sequence % index_layout::places != place) {
        if (!is_forgotten(b, layout_, number))
          other = !whole && has_no_head(b) ? other_place::without_head : other_place::torn;
        ++torn_;
        continue;
      }
      if (!best.empty() && head_of(b).sequence < head_of(best).sequence) continue;
      best = b;
    }
    if (best.empty()) damaged(number);
    std::memcpy(current(number), payload_of(best), stride_);
    sequences_[number] = head_of(best).sequence;
    return other;
  }

  // The next write of a torn place could complete the write that tore it: where they are equal, sectors of both fit
  // together. Without its head it is never whole.
  void forget_torn(blocks::synchronous<Device>& drive, std::uint32_t number) {
    const std::uint64_t place = layout_.place(number, sequences_[number] + 1);
    blocks::buffer other(layout_.block_bytes);
    drive.read(place, other.bytes(), blocks::stream::index);
    const index_block_head head = forgotten_head(layout_, number);
    std::memcpy(other.data(), &head, sizeof head);
    drive.write_durable(place, other.bytes(), blocks::stream::index);
  }

  [[noreturn]] void damaged(std::uint32_t number) const {
    throw error("index block " + std::to_string(number) + " of the chunk store on device " + device_.name() +
                    " is damaged (blocks " + std::to_string(layout_.place(number, 0)) + " and " +
                    std::to_string(layout_.place(number, 1)) + " of the device)",
                "restore the drive from a copy");
  }

  // `suspects`: index blocks that may lack one.
  [[noreturn]] void lacks_writes(const std::vector<std::uint32_t>& suspects, std::uint64_t closed_at) const {
    if (suspects.size() == 1) damaged(suspects.front());
    throw error("the index of the chunk store on device " + device_.name() + " is damaged: it has " +
                    std::to_string(writes()) + " writes, and had " + std::to_string(closed_at) +
                    " when the store was closed",
                "restore the drive from a copy");
  }

  // REQUIRES: the lane is being driven by the caller.
  void drive(lane& l, bool waits) {
    send(l);
    std::array<blocks::completion, lane::depth> ended;
    const std::size_t count = l.queue.in_flight() == 0 ? 0 : l.queue.reap(ended, waits ? 1 : 0);
    for (const blocks::completion& c : std::span(ended).first(count)) end(l, c);
    if (count != 0) send(l);
  }

  void send(lane& l) {
    for (;;) {
      blocks::request r;
      {
        const std::scoped_lock lock(l.state);
        if (l.ready.empty() || l.queue.in_flight() == l.queue.depth()) return;
        const std::uint32_t number = l.ready.back();
        l.ready.pop_back();
        r = prepare(l.dirty.at(number), number);
      }
      static_cast<void>(l.queue.submit({&r, 1}));  // (I2)
    }
  }

  [[nodiscard]] blocks::request prepare(dirty_block& d, std::uint32_t number) {
    // After a failure: the same place again, and a sequence that the drive does not have.
    const std::uint64_t sequence = sequences_[number] + 1 + index_layout::places * d.failures;
    std::memcpy(d.sent.data(), d.next.data(), d.next.size());
    seal(d.sent.bytes(), layout_, number, sequence);
    d.carried = std::exchange(d.collected, nullptr);
    d.queued = false;
    d.in_flight = true;
    return {blocks::operation::write_durable, blocks::stream::index, 1,
            layout_.place(number, sequence),  d.sent.data(),         number};
  }

  void end(lane& l, const blocks::completion& c) {
    const auto number = static_cast<std::uint32_t>(c.tag);
    const std::scoped_lock lock(l.state);
    dirty_block& d = l.dirty.at(number);
    d.in_flight = false;
    if (c.succeeded()) {  // (I3)
      std::memcpy(current(number), payload_of(d.sent.bytes()), stride_);
      sequences_[number] = head_of(d.sent.bytes()).sequence;
      d.failures = 0;
      for (const extent& e : d.held) free_.give(e);
      d.held.clear();
      d.held.release(d.held.promised());
      for (const index_change* change = d.collected; change != nullptr; change = change->next_)
        d.held.promise(change->held_);                                                        // has its memory
      index_change::settle_all(d.carried, index_change::state::durable, sequences_[number]);  // (I4)
    } else {
      ++d.failures;
      std::memcpy(payload_of(d.next.bytes()), current(number), stride_);
      index_change::settle_all(d.carried, index_change::state::failed, sequences_[number]);
      index_change::settle_all(d.collected, index_change::state::failed, sequences_[number]);
    }
    if (d.collected != nullptr) {
      d.queued = true;
      l.ready.push_back(number);
    } else if (d.failures == 0) {
      l.dirty.erase(number);
    }
  }

  Device& device_;
  free_map& free_;
  index_layout layout_;
  std::size_t stride_;
  blocks::buffer current_;                // contents of all blocks, payloads only
  std::vector<std::uint64_t> sequences_;  // sequences of the current contents
  std::uint64_t torn_ = 0;
  std::vector<std::unique_ptr<lane>> lanes_;
};

}  // namespace pmlab::stores::detail::chunk_store
