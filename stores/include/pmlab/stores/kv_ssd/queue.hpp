// Asynchronous operations on a key-value device.
//
//   stores::kv_queue queue(device, 64);                   // one per thread
//   queue.get("user:17", tag);                            // false: 64 operations are under way
//   queue.reap(completions, 1);
//
// An operation looks its key up, reads its records on flash without a lock, beside the reads of the queue's other
// operations, and begins when all of them are there. Then it looks the key up again: if the record lies elsewhere
// meanwhile, or its superblock was filled again, it reads again (kv_ssd/fetched.hpp). So a queue holds no lock while it
// waits, and garbage collection waits for no queue.
//
// On a modelled key-value SSD (blocks/pair_front.hpp) an operation also waits for the firmware: before it looks its key
// up, and after that with its answer. These times pass beside the flash's. In virtual time the device has a processor
// of its own: what an operation makes it do, such as moving records out of a full write buffer, keeps the device, and
// not the thread.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/blocks/flash/time.hpp>
#include <pmlab/stores/kv_ssd.hpp>
#include <pmlab/stores/kv_ssd/fetched.hpp>
#include <pmlab/stores/kv_ssd/options.hpp>
#include <pmlab/stores/kv_ssd/port.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace pmlab::stores {

// The end of an operation of a queue. `error`: std::errc{}; no_space_on_device: a put found no room; bad_message: the
// record is damaged (kv_damaged); value_too_large: an append would make it so (kv_too_large); not_enough_memory: of the
// process; others: of the flash. It then has changed nothing.
struct kv_completion {
  std::uint64_t tag = 0;                   // tag of the operation
  std::errc error{};                       // std::errc{}: none
  kv_outcome outcome = kv_outcome::added;  // outcome of a put
  bool found = false;                      // the other operations: the key was there
  std::span<const std::byte> value{};      // value of get and retrieve_and_erase; until the next call of the queue
};

// Belongs to one thread; any number of them on a device, which outlives them. An operation is done, and durable, when
// it is reaped. Operations under way on the same key take effect in any order. Keys and values stay unchanged until
// their operation is reaped. Destruction waits for the operations under way.
//
// Calls that start operations throw pmlab::error for an impossible key, value or key space. A put that finds the write
// buffer full moves records to flash, and the call waits for that.
template <class Store>
class kv_queue {
  using flash = typename Store::device_type;
  using fetched = detail::kv_ssd::fetched;

 public:
  // At most `depth` operations under way. Throws pmlab::error for a depth of 0.
  kv_queue(Store& store, unsigned depth)
      : store_(store),
        block_bytes_(store.core_.device.shape().block_bytes),
        through_(store.core_.device),
        drive_(store.core_.device, std::max(depth, 1U)),
        operations_(depth) {
    if (depth == 0) throw error("a queue of depth 0", "choose a depth of at least 1");
    // An operation that has begun needs no memory to end.
    for (std::vector<std::size_t>* const list : {&free_, &returned_, &done_}) list->reserve(depth);
    events_.reserve(depth);
    for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
  }
  kv_queue(const kv_queue&) = delete;
  kv_queue& operator=(const kv_queue&) = delete;
  ~kv_queue() {
    std::array<kv_completion, 1> ignored;
    while (in_flight() > 0) static_cast<void>(reap(ignored, 1));
  }

  // Each starts an operation and returns true; false: `depth` operations are under way.
  [[nodiscard]] bool put(std::string_view key, std::span<const std::byte> value, std::uint64_t tag,
                         kv_mode mode = kv_mode::post, std::uint8_t space = 0) {
    store_.check_value(value.size());
    return start(kind::put, key, tag, space, value, mode);
  }
  // Reads the value of a key.
  [[nodiscard]] bool get(std::string_view key, std::uint64_t tag, std::uint8_t space = 0) {
    return start(kind::get, key, tag, space);
  }
  // Deletes a key; `found` of its completion is false if it is absent.
  [[nodiscard]] bool erase(std::string_view key, std::uint64_t tag, std::uint8_t space = 0) {
    return start(kind::erase, key, tag, space);
  }
  // Deletes a key and returns its value: no other operation sees it in between.
  [[nodiscard]] bool retrieve_and_erase(std::string_view key, std::uint64_t tag, std::uint8_t space = 0) {
    return start(kind::retrieve_and_erase, key, tag, space);
  }
  // Looks for a key.
  [[nodiscard]] bool exist(std::string_view key, std::uint64_t tag, std::uint8_t space = 0) {
    return start(kind::exist, key, tag, space);
  }

  // Waits until at least `at_least` operations are done (or all of those under way, if these are fewer), writes as many
  // as fit into `completions`, and returns how many.
  std::size_t reap(std::span<kv_completion> completions, std::size_t at_least) {
    recycle();
    const std::size_t wanted = std::min({at_least, completions.size(), in_flight()});
    if (done_.size() < completions.size()) go_on_with_due_ones();
    while (done_.size() < wanted) {
      wait_for_next();
      go_on_with_due_ones();
    }
    const std::size_t count = std::min(completions.size(), done_.size());
    for (std::size_t i = 0; i < count; ++i) {
      completions[i] = operations_[done_[i]].result;
      returned_.push_back(done_[i]);
    }
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

  // Started and not reaped.
  [[nodiscard]] std::size_t in_flight() const noexcept { return operations_.size() - free_.size() - returned_.size(); }
  // Operations under way, at most.
  [[nodiscard]] unsigned depth() const noexcept { return static_cast<unsigned>(operations_.size()); }

 private:
  // An operation that is overtaken so often, by changes of its key or by garbage collection, reads under the lock.
  static constexpr std::size_t most_reads = 8;

  enum class kind : std::uint8_t { put, get, erase, retrieve_and_erase, exist };

  // What an operation does when the time of the firmware for it has come.
  enum class step : std::uint8_t { begin, end };

  struct operation {
    step next = step::begin;
    kind what = kind::get;
    kv_mode mode = kv_mode::post;
    std::uint8_t space = 0;
    std::string_view key{};
    std::span<const std::byte> value{};
    fetched read;
    std::vector<std::byte> copy;  // copy of a value that was in the write buffer
    kv_completion result{};
  };

  [[nodiscard]] bool start(kind what, std::string_view key, std::uint64_t tag, std::uint8_t space,
                           std::span<const std::byte> value = {}, kv_mode mode = kv_mode::post) {
    store_.check_key(key, space);
    recycle();
    if (free_.empty()) return false;
    const std::size_t at = free_.back();
    free_.pop_back();
    operation& o = operations_[at];
    o.what = what;
    o.mode = mode;
    o.space = space;
    o.key = key;
    o.value = value;
    o.result = {.tag = tag};
    o.read.clear();
    if (store_.front_ == nullptr) {
      go_on(at);
    } else {
      o.next = step::begin;
      wait_for_firmware(at, store_.front_->command(value.size()));
    }
    return true;
  }

  // Values that were returned are not valid any more.
  void recycle() {
    free_.insert(free_.end(), returned_.begin(), returned_.end());
    returned_.clear();
  }

  // ---- events: completions of the flash, and times of the firmware

  struct event {
    blocks::picoseconds due = 0;
    std::uint64_t order = 0;
    std::size_t operation = 0;

    // The heap's top is the earliest.
    friend bool operator<(const event& a, const event& b) noexcept {
      return a.due != b.due ? a.due > b.due : a.order > b.order;
    }
  };

  void wait_for_firmware(std::size_t at, blocks::picoseconds due) {
    events_.push_back({due, next_order_++, at});
    std::push_heap(events_.begin(), events_.end());
  }

  // Until the earliest event. REQUIRES: there is one.
  void wait_for_next() {
    if (events_.empty() || (drive_.in_flight() > 0 && is_due_first())) return reap_flash(1);
    store_.front_->wait_until(events_.front().due);
  }
  // The flash completes a request before the firmware has time. A drive that does not tell is asked again then.
  [[nodiscard]] bool is_due_first() const {
    if constexpr (requires { drive_.due(); }) {
      const std::optional<blocks::picoseconds> due = drive_.due();
      return due && *due <= events_.front().due;
    } else {
      return false;
    }
  }

  void go_on_with_due_ones() {
    if (drive_.in_flight() > 0) reap_flash(0);
    if (events_.empty()) return;
    const blocks::picoseconds now = store_.front_->now();
    while (!events_.empty() && events_.front().due <= now) {
      const std::size_t at = events_.front().operation;
      std::pop_heap(events_.begin(), events_.end());
      events_.pop_back();
      if (operations_[at].next == step::begin)
        go_on(at);
      else
        done_.push_back(at);
    }
  }

  void reap_flash(std::size_t at_least) {
    const std::size_t count = drive_.reap(reaped_, at_least);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = reaped_[i].tag;
      if (reaped_[i].error == blocks::device_failed) {
        fail(at, reaped_[i].error);
        continue;
      }
      // A part that cannot be read is damaged: the operation meets it as such, if it needs it.
      if (!reaped_[i].succeeded()) operations_[at].read.fail_last();
      go_on(at);
    }
  }

  // Reads the records of the operation; if all of them are there, performs it.
  void go_on(std::size_t at) {
    operation& o = operations_[at];
    blocks::picoseconds done = 0;
    through_.use(&o.read);
    try {
      if (!begin_read(at)) {
        const device_work work(store_.front_, done);
        perform(o);
      }
    } catch (const kv_damaged&) {
      o.result.error = std::errc::bad_message;
    } catch (const kv_too_large&) {
      o.result.error = std::errc::value_too_large;
    } catch (const error&) {
      o.result.error = blocks::request_failed;
    } catch (const std::bad_alloc&) {
      o.result.error = std::errc::not_enough_memory;
    }
    through_.use(nullptr);
    if (!is_reading_) end(at, done);
    is_reading_ = false;
  }
  // It was performed, which the device has `done` then: the rest is the firmware's.
  void end(std::size_t at, blocks::picoseconds done) {
    operation& o = operations_[at];
    if (store_.front_ == nullptr) return done_.push_back(at);
    const bool replaced = o.what == kind::put && o.result.outcome == kv_outcome::replaced;
    if (replaced) done = std::max(done, store_.front_->replaced());
    if (!replaced && !o.result.value.empty()) done = std::max(done, store_.front_->answer(o.result.value.size()));
    if (done <= store_.front_->now()) return done_.push_back(at);
    o.next = step::end;
    wait_for_firmware(at, done);
  }
  // Lives while the device works by itself; then `done` is the time at which it has ended.
  class device_work {
   public:
    device_work(blocks::pair_front* front, blocks::picoseconds& done) : front_(front), done_(done) {
      if (front_ != nullptr) front_->begin_work();
    }
    device_work(const device_work&) = delete;
    device_work& operator=(const device_work&) = delete;
    ~device_work() {
      if (front_ != nullptr) done_ = front_->end_work();
    }

   private:
    blocks::pair_front* front_;
    blocks::picoseconds& done_;
  };
  void fail(std::size_t at, std::errc e) {
    operations_[at].result.error = e;
    done_.push_back(at);
  }

  // Submits a read of a record that was not read yet. False: there is none.
  [[nodiscard]] bool begin_read(std::size_t at) {
    operation& o = operations_[at];
    if (o.read.count() >= most_reads) return false;
    const std::optional<fetched::wanted> next = next_read(o);
    if (!next) return false;
    const detail::kv_ssd::block_range range(next->first, next->bytes, block_bytes_);
    fetched::piece& piece = o.read.add(*next, range);
    const blocks::request r{.what = blocks::operation::read,
                            .of = blocks::stream::values,
                            .count = static_cast<std::uint32_t>(range.bytes / block_bytes_),
                            .first = range.first,
                            .data = piece.blocks.data(),
                            .tag = at};
    is_reading_ = drive_.submit({&r, 1}) == 1;  // otherwise the operation reads by itself
    if (!is_reading_) o.read.clear();
    return is_reading_;
  }

  [[nodiscard]] std::optional<fetched::wanted> next_read(operation& o) {
    const auto is_missing = [&](const std::optional<fetched::wanted>& w) {
      return w.has_value() && o.read.find(*w) == nullptr;
    };
    const bool needs_value =
        o.what == kind::get || o.what == kind::retrieve_and_erase || (o.what == kind::put && o.mode == kv_mode::append);
    bool is_there = false;
    std::optional<fetched::wanted> next = store_.record_of(o.space, o.key, needs_value, is_there);
    if (is_missing(next)) return next;
    if (o.what == kind::put && !is_there && o.mode != kv_mode::update_only)
      next = store_.page_of_new(o.space, o.key);
    else if (is_there && (o.what == kind::erase || o.what == kind::retrieve_and_erase))
      next = store_.page_of(o.space, o.key, through_);
    else
      return std::nullopt;
    return is_missing(next) ? next : std::nullopt;
  }

  void perform(operation& o) {
    switch (o.what) {
      case kind::put:
        o.result.outcome = store_.put(o.key, o.value, o.mode, o.space, through_);
        o.result.found = o.result.outcome == kv_outcome::replaced || o.result.outcome == kv_outcome::exists;
        if (o.result.outcome == kv_outcome::full) o.result.error = std::errc::no_space_on_device;
        return;
      case kind::get:
        o.result.found = store_
                             .with_value(o.key, o.space, through_,
                                         [&](std::span<const std::byte> v) {
                                           if (!o.read.has(v)) {
                                             o.copy.assign(v.begin(), v.end());
                                             v = o.copy;
                                           }
                                           o.result.value = v;
                                           return true;
                                         })
                             .has_value();
        return;
      case kind::erase: o.result.found = store_.take(o.key, o.space, false, through_).has_value(); return;
      case kind::retrieve_and_erase:
        if (auto value = store_.take(o.key, o.space, true, through_)) {
          o.copy = std::move(*value);
          o.result.value = o.copy;
          o.result.found = true;
        }
        return;
      case kind::exist: o.result.found = store_.is_there(o.key, o.space, through_); return;
    }
  }

  Store& store_;
  std::uint32_t block_bytes_;
  detail::kv_ssd::port<flash> through_;
  typename flash::queue drive_;
  std::vector<operation> operations_;
  std::vector<std::size_t> free_;
  std::vector<std::size_t> returned_;  // reaped; their values are valid still
  std::vector<std::size_t> done_;      // not reaped, in their order
  std::vector<event> events_;          // a heap; empty without a front end
  std::uint64_t next_order_ = 0;
  std::array<blocks::completion, 32> reaped_{};
  bool is_reading_ = false;  // the operation that goes on has a read under way
};

}  // namespace pmlab::stores
