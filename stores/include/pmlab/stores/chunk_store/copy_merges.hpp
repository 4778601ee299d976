// Merges by copy that a queue runs beside its operations: asynchronous, and no lock is held while the drive works.
//
//   read the sources  -->  wait for readers of the base extent  -->  write the base extent, durably  -->  end_merge
//
// A merge that fails, that is cut off or that has no DRAM changes nothing: the ring's entries are still there.
#pragma once

#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/stores/chunk_store/chunk.hpp>
#include <pmlab/stores/chunk_store/request_list.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Belongs to its queue, whose requests carry its tags.
template <class Store>
class copy_merges {
 public:
  using requests = request_list;

  explicit copy_merges(Store& store) : store_(store) {}

  // A completion with this tag is one of a merge.
  [[nodiscard]] static bool is_mine(std::uint64_t tag) noexcept { return (tag & mark) != 0; }
  // Under way.
  [[nodiscard]] bool any() const noexcept { return running_ > 0; }
  // Requests in `out` or in flight.
  [[nodiscard]] std::size_t transfers() const noexcept { return transfers_; }
  // Merges that failed, ever: of the drive, or without DRAM. One that was given up, or whose chunk changed, did not
  // fail.
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_; }
  // Why the last merge of a chunk failed, of those after the first `since` failures; std::errc{}: none did, or many
  // others did after it.
  [[nodiscard]] std::errc failure_of(std::uint64_t key, std::uint64_t since) const noexcept {
    for (std::uint64_t n = failures_; n > since && n + most > failures_; --n)
      if (failed_[(n - 1) % most].key == key) return failed_[(n - 1) % most].why;
    return {};
  }

  // Begins to merge a chunk, if that is possible now. False: it is not, or the merge failed.
  [[nodiscard]] bool begin(std::uint64_t key, requests& out) {
    for (std::size_t i = 0; i < most; ++i) {
      if (runs_[i]) continue;
      runs_[i].emplace().key = key;
      if (store_.begin_merge(key, runs_[i]->planned)) {
        ++running_;
        read(i, out);
        return true;
      }
      note_failure(key, runs_[i]->planned.failure());
      runs_[i].reset();
      return false;
    }
    return false;
  }

  void completed(const blocks::completion& c, requests& out) {
    const std::size_t number = c.tag & ~mark;
    run& r = *runs_[number];
    --transfers_;
    if (!c.succeeded()) r.failure = c.error;
    if (--r.transfers > 0) return;
    if (r.failure != std::errc{} || r.writes)
      end(number, r.failure);
    else
      write(number, out);
  }

  // Goes on with merges that wait for readers, or for records to be durable.
  void go_on(requests& out) {
    for (std::size_t i = 0; i < most && running_ > 0; ++i) {
      if (!runs_[i] || runs_[i]->transfers > 0) continue;
      if (runs_[i]->ends)
        end(i, {});
      else
        write(i, out);
    }
  }
  // A merge whose record is being written; nullptr: none.
  [[nodiscard]] const typename Store::merge_plan* waits_for_records() const noexcept {
    if (running_ == 0) return nullptr;
    for (const std::optional<run>& r : runs_)
      if (r && r->ends) return &r->planned;
    return nullptr;
  }

  // Gives up those that wait for readers.
  void give_up() {
    for (std::size_t i = 0; i < most; ++i)
      if (runs_[i] && runs_[i]->transfers == 0 && !runs_[i]->ends) end(i, given_up);
  }

 private:
  static constexpr std::uint64_t mark = std::uint64_t{1} << 63;
  static constexpr std::size_t most = 8;  // at a time: each has up to a chunk of data in DRAM

  static constexpr std::errc given_up = std::errc::operation_canceled;

  struct run {
    std::uint64_t key = 0;
    typename Store::merge_plan planned;
    blocks::buffer data;  // data of all sources, one after the other
    std::size_t transfers = 0;
    bool writes = false;
    std::errc failure{};
    bool ends = false;  // when its record is durable
  };
  struct failed_merge {
    std::uint64_t key = 0;
    std::errc why{};
  };

  void add(requests& out, std::size_t number, blocks::operation what, std::uint64_t at, std::uint32_t count,
           std::byte* data) {
    out.push_back({what, blocks::stream::merge, count, at, data, mark | number});
    ++runs_[number]->transfers;
    ++transfers_;
  }

  void read(std::size_t number, requests& out) {
    run& r = *runs_[number];
    std::size_t blocks_of = 0;
    for (const placed& p : r.planned.sources()) blocks_of += p.blocks.count;
    try {
      out.reserve_more(r.planned.sources().size());
      r.data = blocks_of == 0 ? blocks::buffer() : blocks::buffer(blocks_of * store_.block_bytes());
    } catch (const std::bad_alloc&) {
      return end(number, Store::no_memory);
    }
    std::byte* to = r.data.data();
    for (const placed& p : r.planned.sources()) {
      add(out, number, blocks::operation::read, p.target, p.blocks.count, to);
      to += std::size_t{p.blocks.count} * store_.block_bytes();
    }
    if (r.transfers == 0) write(number, out);
  }

  // Once no reader of the base extent is left; else a later go_on does it.
  void write(std::size_t number, requests& out) {
    run& r = *runs_[number];
    if (!store_.may_overwrite(r.planned)) return;
    try {
      out.reserve_more(r.planned.sources().size());
    } catch (const std::bad_alloc&) {
      return end(number, Store::no_memory);
    }
    r.writes = true;
    std::byte* from = r.data.data();
    const std::span<const placed> sources = r.planned.sources();
    for (std::size_t i = 0; i < sources.size();) {
      // Neighbours in the chunk are neighbours in its base extent.
      range together = sources[i].blocks;
      for (++i; i < sources.size() && sources[i].blocks.first == together.end(); ++i)
        together.count += sources[i].blocks.count;
      add(out, number, blocks::operation::write_durable, r.planned.target_of(together.first), together.count,
          from);  // (W1)
      from += std::size_t{together.count} * store_.block_bytes();
    }
    if (r.transfers == 0) end(number, {});
  }

  // `why`: std::errc{}, or its data is not at its targets.
  void end(std::size_t number, std::errc why) {
    run& r = *runs_[number];
    const bool copied = why == std::errc{};
    r.ends = !store_.end_merge(r.planned, copied);
    if (r.ends) return;
    if (copied) why = r.planned.failure();
    note_failure(r.key, why);
    runs_[number].reset();
    --running_;
  }

  void note_failure(std::uint64_t key, std::errc why) noexcept {
    if (why != std::errc{} && why != given_up) failed_[failures_++ % most] = {key, why};
  }

  Store& store_;
  std::array<std::optional<run>, most> runs_;
  std::size_t running_ = 0;
  std::size_t transfers_ = 0;
  std::uint64_t failures_ = 0;
  std::array<failed_merge, most> failed_{};  // failure n at place (n - 1) modulo `most`
};

}  // namespace pmlab::stores::detail::chunk_store
