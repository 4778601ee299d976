// One operation of a volume at a time: on a queue of the store's own, which no other operation uses meanwhile.
//
// Merges that an operation began stay with its queue, which the next operation that takes it moves on, or help_merges.
#pragma once

#include <pmlab/base/error.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include <pmlab/stores/chunk_store/all_parts.hpp>
#include <pmlab/stores/chunk_store/exhausted.hpp>
#include <pmlab/stores/chunk_store/options.hpp>
#include <pmlab/stores/chunk_store/plans.hpp>
#include <pmlab/stores/chunk_store/queue.hpp>
#include <pmlab/stores/chunk_store/volumes.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace pmlab::stores::detail::chunk_store {

// Thread safety: all operations from any thread. They throw what an operation of a volume throws.
template <class Store, class Core>
class synchronous {
  using queue = chunk_queue<Store>;

 public:
  synchronous(Store& store, all_parts<Core>& parts) : store_(store), parts_(parts) {}

  template <class Volume>
  void write(const Volume& v, std::uint64_t offset, std::span<const std::byte> data) {
    if (data.empty()) return;
    const blocks::buffer aligned = is_aligned(data.data()) ? blocks::buffer() : copy_of(data);
    const std::span<const std::byte> from = aligned.size() == 0 ? data : aligned.bytes();
    run("write", v, offset, [&](queue& q) { return q.write(v, offset, from, 0); });
  }

  template <class Volume>
  void read(const Volume& v, std::uint64_t offset, std::span<std::byte> data) {
    if (data.empty()) return;
    if (is_aligned(data.data())) {
      run("read", v, offset, [&](queue& q) { return q.read(v, offset, data, 0); });
      return;
    }
    blocks::buffer aligned(data.size());
    run("read", v, offset, [&](queue& q) { return q.read(v, offset, aligned.bytes(), 0); });
    std::memcpy(data.data(), aligned.data(), data.size());
  }

  template <class Volume>
  void discard(const Volume& v, std::uint64_t offset, std::uint64_t length) {
    if (length == 0) return;
    run("discard", v, offset, [&](queue& q) { return q.discard(v, offset, length, 0); });
  }

  template <class Volume>
  void write_group(const Volume& v, std::span<const typename Volume::part> parts) {
    if (parts.empty()) return;
    run("write group", v, parts.front().offset, [&](queue& q) { return q.write_group(v, parts, 0); });
  }

  // As chunk_store::help_merges.
  bool help_merges() {
    if (parts_.shape.merge == merge_policy::remap) return false;
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
      put_back(std::move(q));
    }
    return any;
  }

 private:
  [[nodiscard]] bool is_aligned(const std::byte* data) const noexcept {
    return reinterpret_cast<std::uintptr_t>(data) % blocks::alignment_of(parts_.geometry) == 0;
  }
  [[nodiscard]] static blocks::buffer copy_of(std::span<const std::byte> data) {
    blocks::buffer copy(data.size());
    std::memcpy(copy.data(), data.data(), data.size());
    return copy;
  }

  template <class Volume, class Submit>
  void run(std::string_view what, const Volume& v, std::uint64_t offset, Submit&& submit) {
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
    if (done.error == volume_removed) throw error_of_removed(v.name());
    if (done.error == no_memory) throw std::bad_alloc();
    const std::string where =
        std::string(what) + " at byte " + std::to_string(offset) + " of volume " + std::to_string(v.id());
    if (done.error == std::errc::no_space_on_device)
      throw chunk_store_full(where + ": device " + parts_.device.name() + " is full",
                             "remove volumes or discard blocks");
    if (done.error == std::errc::not_enough_memory && parts_.is_complete())
      throw chunk_store_full(where + ": " + parts_.records.name() + " is full",
                             Core::container::settles_at_once ? "make the pool larger" : "remove volumes");
    parts_.ensure_recovered_or_throw();
    if (done.error == std::errc::argument_list_too_long)
      throw error(where + ": more ranges than the ring of a chunk has entries", "write several groups");
    if (done.error == damaged_record)
      throw error(where + ": the record of its chunk in " + parts_.records.name() +
                      " is damaged, and names a place that is not there",
                  "discard the chunk, which loses it, or restore the store from a copy");
    if (done.error == std::errc::timed_out)
      throw error(where + ": the chunk's ring is full, and its merge failed or does not end",
                  "check the drive, and reap the other queues of the store");
    if constexpr (Core::has_pairs)
      if (parts_.device.failure().empty() && !parts_.records.failure().empty())
        throw error(where + ": the " + parts_.records.name() + " failed", parts_.records.failure());
    const std::string why = parts_.device.failure();
    throw error(where + ": device " + parts_.device.name() + " failed (" + blocks::describe(done.error) + ")",
                why.empty() ? "check the drive" : why);
  }

  [[nodiscard]] std::unique_ptr<queue> take_queue() {
    const std::scoped_lock lock(queues_mutex_);
    if (queues_.empty()) {
      // Giving it back must not fail.
      queues_.reserve(made_queues_ + 1);
      auto made = std::make_unique<queue>(store_, 1);
      ++made_queues_;
      return made;
    }
    std::unique_ptr<queue> q = std::move(queues_.back());
    queues_.pop_back();
    return q;
  }
  void give_queue(std::unique_ptr<queue> q) noexcept {
    const bool has_merges = q->has_merges();
    put_back(std::move(q));
    if (has_merges) parts_.changes.count_one();  // help_merges finds it
  }
  // No change: of a merge that went on, its end is one. Else a thread that helps and waits would wake itself.
  void put_back(std::unique_ptr<queue> q) noexcept {
    const std::scoped_lock lock(queues_mutex_);
    queues_.push_back(std::move(q));
  }

  Store& store_;
  all_parts<Core>& parts_;
  std::mutex queues_mutex_;
  std::size_t made_queues_ = 0;                 // behind it
  std::vector<std::unique_ptr<queue>> queues_;  // they use the store's other parts until they are gone
};

}  // namespace pmlab::stores::detail::chunk_store
