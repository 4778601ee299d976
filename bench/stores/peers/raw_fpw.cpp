// Full-page writes: rules of its protocol.
//   (F1) a group of images in the log, durable, and all groups before it   (F2) the pages are answered
//   (F3) the images of a half of the log in their places, durable          (F4) that half is written again
//   (F1) < (F2): an answered page is in the log.
//   (F3) < (F4): a page whose image is replaced in the log is durable in its place.
#include <pmlab/blocks/buffer.hpp>
#include "bench/stores/peers/page_stores.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pmlab::store_bench {
namespace {

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr std::size_t halves = 2;
constexpr std::size_t most_groups = 2;  // under way at a time
constexpr std::uint64_t least_half = most_page_bytes + mebibyte;
constexpr std::uint64_t group_bytes = 2 * mebibyte;
// A group's first block has the addresses of its pages.
constexpr std::size_t most_pages_of_group = 120;
constexpr unsigned least_depth = 32;

std::uint64_t half_bytes(const store_setup& setup) {
  const std::uint64_t share = setup.volume_bytes / 16 / setup.threads / mebibyte * mebibyte;
  return std::max(share, least_half);
}

// The newest images of pages that are not in their places: shared_buffers. Images stay where they are until forgotten.
class dirty_pages {
 public:
  explicit dirty_pages(std::uint32_t block_bytes) : block_bytes_(block_bytes) {}

  void put(std::uint64_t first, std::uint32_t count, const std::byte* image) {
    const std::scoped_lock lock(mutex_);
    for (std::uint32_t i = 0; i < count; ++i) newest_[first + i] = image + std::size_t{i} * block_bytes_;
  }
  // Unless a newer image replaced it.
  void forget(std::uint64_t first, std::uint32_t count, const std::byte* image) {
    const std::scoped_lock lock(mutex_);
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto at = newest_.find(first + i);
      if (at != newest_.end() && at->second == image + std::size_t{i} * block_bytes_) newest_.erase(at);
    }
  }
  void discard(std::uint64_t first, std::uint32_t count) {
    const std::scoped_lock lock(mutex_);
    for (std::uint32_t i = 0; i < count; ++i) newest_.erase(first + i);
  }
  [[nodiscard]] bool has_any(std::uint64_t first, std::uint32_t count) {
    const std::scoped_lock lock(mutex_);
    for (std::uint32_t i = 0; i < count && !newest_.empty(); ++i)
      if (newest_.contains(first + i)) return true;
    return false;
  }
  // The blocks of an image that are the newest, as ranges of it: visit(first of them, count, their bytes).
  template <class Visit>
  void for_each_newest(std::uint64_t first, std::uint32_t count, std::byte* image, Visit&& visit) {
    const std::scoped_lock lock(mutex_);
    const auto is_newest = [&](std::uint32_t i) {
      const auto at = newest_.find(first + i);
      return at != newest_.end() && at->second == image + std::size_t{i} * block_bytes_;
    };
    for (std::uint32_t i = 0; i < count;) {
      std::uint32_t end = i;
      while (end < count && is_newest(end)) ++end;
      if (end > i) visit(first + i, end - i, image + std::size_t{i} * block_bytes_);
      i = end + 1;
    }
  }
  // Copies the blocks that it has into `data`, and adds them to `found`.
  void copy(std::uint64_t first, std::uint32_t count, std::byte* data, std::vector<std::uint32_t>& found) {
    const std::scoped_lock lock(mutex_);
    for (std::uint32_t i = 0; i < count && !newest_.empty(); ++i) {
      const auto at = newest_.find(first + i);
      if (at == newest_.end()) continue;
      std::memcpy(data + std::size_t{i} * block_bytes_, at->second, block_bytes_);
      found.push_back(i);
    }
  }

 private:
  std::uint32_t block_bytes_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, const std::byte*> newest_;
};

struct image {
  std::uint64_t first = 0;  // block of the volume
  std::uint32_t count = 0;
  std::byte* bytes = nullptr;
};

// A half of a thread's log, and its pages in memory.
struct log_half {
  std::uint64_t first = 0;  // block
  blocks::buffer content;
  std::uint64_t used = 0;  // bytes
  std::vector<image> images;
  std::size_t next = 0;    // image that the checkpoint goes on with
  std::size_t going = 0;   // transfers to places that are under way
  bool is_durable = true;  // its images are in their places: it can be written again
};

// The log of a thread: it outlives its queues.
struct log_state {
  std::array<log_half, halves> half;
  std::size_t current = 0;
};

struct fpw_counters {
  std::atomic<std::uint64_t> groups{0}, images{0}, in_place{0}, left_out{0};
};

class raw_fpw_queue final : public volume_queue {
 public:
  raw_fpw_queue(blocks::any_device& device, unsigned depth, log_state& log, dirty_pages& dirty, fpw_counters& counters)
      : queue_(device, 2 * depth + 8),
        shape_(device.shape()),
        log_(log),
        dirty_(dirty),
        counters_(counters),
        slots_(depth) {
    for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
  }
  raw_fpw_queue(const raw_fpw_queue&) = delete;
  raw_fpw_queue& operator=(const raw_fpw_queue&) = delete;
  ~raw_fpw_queue() override {
    begin_groups();
    while (queue_.in_flight() > 0 || !waiting_.empty()) progress();
  }

  void write(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag) override {
    const std::size_t s = begin(offset, data.size(), const_cast<std::byte*>(data.data()), tag);
    const bool is_atomic =
        data.size() <= shape_.atomic_bytes && offset % shape_.atomic_bytes + data.size() <= shape_.atomic_bytes;
    // A checkpoint would write an older image over it.
    if (is_atomic && !dirty_.has_any(slots_[s].first, slots_[s].count))
      return put({blocks::operation::write_durable, blocks::stream::data, slots_[s].count, slots_[s].first,
                  slots_[s].data, s});
    waiting_.push_back(s);
    // Operations that are started one after the other meet in a group: it begins at the next reap.
  }
  void read(std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag) override {
    const std::size_t at = begin(offset, data.size(), data.data(), tag);
    slot& s = slots_[at];
    s.found.clear();
    dirty_.copy(s.first, s.count, s.data, s.found);
    if (s.found.size() == s.count) return end(at, {});
    // The blocks that were in memory: the drive's are older.
    s.newer.resize(s.found.size() * shape_.block_bytes);
    for (std::size_t i = 0; i < s.found.size(); ++i)
      std::memcpy(s.newer.data() + i * shape_.block_bytes, s.data + std::size_t{s.found[i]} * shape_.block_bytes,
                  shape_.block_bytes);
    put({blocks::operation::read, blocks::stream::data, s.count, s.first, s.data, at});
  }
  void discard(std::uint64_t offset, std::uint64_t length, std::uint64_t tag) override {
    const std::size_t s = begin(offset, length, nullptr, tag);
    dirty_.discard(slots_[s].first, slots_[s].count);
    put({blocks::operation::discard, blocks::stream::data, slots_[s].count, slots_[s].first, nullptr, s});
  }
  [[nodiscard]] std::size_t reap(std::span<answer> answers, std::size_t at_least) override {
    const std::size_t under_way = slots_.size() - free_.size() + done_.size();
    const std::size_t wanted = std::min({at_least, answers.size(), under_way});
    begin_groups();
    while (done_.size() < wanted) progress();
    const std::size_t count = std::min(answers.size(), done_.size());
    std::copy_n(done_.begin(), count, answers.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

  // Ends the checkpoint of each half: all pages are in their places. No operation is under way.
  void settle() {
    for (std::size_t i = 0; i < halves; ++i) {
      finish_checkpoint();
      static_cast<void>(switch_halves());
    }
    finish_checkpoint();
  }

 private:
  static constexpr std::uint64_t of_group = std::uint64_t{1} << 62;
  static constexpr std::uint64_t of_place = std::uint64_t{1} << 61;
  static constexpr std::uint64_t of_flush = std::uint64_t{1} << 60;

  struct slot {
    std::uint64_t first = 0;
    std::uint32_t count = 0;
    std::byte* data = nullptr;
    std::uint64_t tag = 0;
    std::vector<std::uint32_t> found;  // blocks of a read that were in memory
    std::vector<std::byte> newer;      // their bytes
  };
  struct group {
    std::vector<std::pair<std::size_t, image>> pages;  // slots
    bool ended = false;
    std::errc error{};
  };
  struct transfer {
    image of;
    log_half* half = nullptr;
  };

  std::size_t begin(std::uint64_t offset, std::uint64_t bytes, std::byte* data, std::uint64_t tag) {
    const std::size_t at = free_.back();
    free_.pop_back();
    slot& s = slots_[at];
    s.first = offset / shape_.block_bytes;
    s.count = static_cast<std::uint32_t>(bytes / shape_.block_bytes);
    s.data = data;
    s.tag = tag;
    s.found.clear();
    return at;
  }
  void put(const blocks::request& r) {
    outgoing_.push_back(r);
    submit();
  }
  void submit() {
    while (!outgoing_.empty() && queue_.in_flight() < queue_.depth()) {
      const blocks::request r = outgoing_.front();
      if (queue_.submit({&r, 1}) == 0) return;
      outgoing_.pop_front();
    }
  }

  // (F1): all pages that wait, as far as they fit into a group.
  void begin_groups() {
    while (!waiting_.empty() && groups_.size() < most_groups) {
      log_half& h = log_.half[log_.current];
      const std::uint64_t header = shape_.block_bytes;
      group g;
      std::uint64_t bytes = header;
      std::size_t pages = 0;
      for (const std::size_t s : waiting_) {
        const std::uint64_t more = std::uint64_t{slots_[s].count} * shape_.block_bytes;
        if (pages == most_pages_of_group || (pages > 0 && bytes + more > group_bytes) ||
            h.used + bytes + more > h.content.size())
          break;
        bytes += more;
        ++pages;
      }
      if (pages == 0) {
        if (!switch_halves()) return;
        continue;
      }
      std::byte* const start = h.content.data() + h.used;
      std::byte* to = start + header;
      for (std::size_t i = 0; i < pages; ++i) {
        const slot& s = slots_[waiting_.front()];
        const std::uint64_t address = s.first << 16 | s.count;
        std::memcpy(start + i * sizeof address, &address, sizeof address);
        std::memcpy(to, s.data, std::size_t{s.count} * shape_.block_bytes);
        g.pages.emplace_back(waiting_.front(), image{s.first, s.count, to});
        to += std::size_t{s.count} * shape_.block_bytes;
        waiting_.pop_front();
      }
      for (const auto& [s, page] : g.pages) h.images.push_back(page);
      put({blocks::operation::write_durable, blocks::stream::log,
           static_cast<std::uint32_t>(bytes / shape_.block_bytes), h.first + h.used / shape_.block_bytes, start,
           of_group | begun_groups_++});
      h.used += bytes;
      counters_.groups.fetch_add(1, std::memory_order_relaxed);
      counters_.images.fetch_add(pages, std::memory_order_relaxed);
      groups_.push_back(std::move(g));
      checkpoint(pages);
    }
  }

  [[nodiscard]] log_half& other() { return log_.half[1 - log_.current]; }

  // The half that is full waits for its checkpoint, and the other one is written again. False: not yet.
  [[nodiscard]] bool switch_halves() {
    // Images of groups under way are in no table yet.
    if (!groups_.empty()) return false;
    log_half& o = other();
    if (!o.is_durable) {
      checkpoint(o.images.size());
      return false;
    }
    log_.half[log_.current].is_durable = false;
    log_.current = 1 - log_.current;
    o.used = 0;
    o.images.clear();
    o.next = 0;
    return true;
  }

  // Writes so many images of the other half to their places (F3): as many as are logged meanwhile, so that it is done
  // before the current one is full.
  void checkpoint(std::size_t pages) {
    log_half& o = other();
    if (o.is_durable) return;
    for (; pages > 0 && o.next < o.images.size(); --pages) {
      const image i = o.images[o.next++];
      bool any = false;
      dirty_.for_each_newest(
          i.first, i.count, i.bytes, [&](std::uint64_t first, std::uint32_t count, std::byte* bytes) {
            any = true;
            ++o.going;
            const std::size_t at = transfer_for({{first, count, bytes}, &o});
            outgoing_.push_back({blocks::operation::write, blocks::stream::data, count, first, bytes, of_place | at});
          });
      (any ? counters_.in_place : counters_.left_out).fetch_add(1, std::memory_order_relaxed);
    }
    submit();
    end_checkpoint(o);
  }
  void end_checkpoint(log_half& o) {
    if (o.is_durable || flushes_ || o.going > 0 || o.next < o.images.size()) return;
    if (!shape_.volatile_cache) {
      o.is_durable = true;
      return;
    }
    flushes_ = true;
    put({blocks::operation::flush, blocks::stream::data, 1, 0, nullptr, of_flush});
  }
  void finish_checkpoint() {
    checkpoint(other().images.size());
    while (queue_.in_flight() > 0) progress();
  }
  std::size_t transfer_for(const transfer& t) {
    if (free_transfers_.empty()) {
      transfers_.push_back(t);
      return transfers_.size() - 1;
    }
    const std::size_t at = free_transfers_.back();
    free_transfers_.pop_back();
    transfers_[at] = t;
    return at;
  }

  void progress() {
    std::array<blocks::completion, 64> ended;
    const std::size_t count = queue_.reap(ended, 1);
    for (const blocks::completion& c : std::span(ended).first(count)) {
      if ((c.tag & of_group) != 0)
        finish_group(c.tag & ~of_group, c.error);
      else if ((c.tag & of_place) != 0)
        finish_place(static_cast<std::size_t>(c.tag & ~of_place), c.error);
      else if ((c.tag & of_flush) != 0)
        finish_flush(c.error);
      else
        finish_slot(static_cast<std::size_t>(c.tag), c.error);
    }
    submit();
    begin_groups();
  }

  // (F2): in the order of the log.
  void finish_group(std::uint64_t number, std::errc e) {
    group& ended = groups_[number - (begun_groups_ - groups_.size())];
    ended.ended = true;
    ended.error = e;
    while (!groups_.empty() && groups_.front().ended) {
      const group& g = groups_.front();
      for (const auto& [s, page] : g.pages) {
        if (g.error == std::errc{}) dirty_.put(page.first, page.count, page.bytes);
        end(s, g.error);
      }
      groups_.pop_front();
    }
  }
  void finish_place(std::size_t at, std::errc e) {
    const transfer t = transfers_[at];
    free_transfers_.push_back(at);
    --t.half->going;
    if (e != std::errc{}) failure_ = e;
    // Its blocks are read from the drive from now on; the log has them until they are durable there.
    dirty_.forget(t.of.first, t.of.count, t.of.bytes);
    end_checkpoint(*t.half);
  }
  void finish_flush(std::errc e) {
    if (e != std::errc{}) failure_ = e;
    flushes_ = false;
    other().is_durable = true;
  }
  void finish_slot(std::size_t at, std::errc e) {
    slot& s = slots_[at];
    for (std::size_t i = 0; i < s.found.size(); ++i)
      std::memcpy(s.data + std::size_t{s.found[i]} * shape_.block_bytes, s.newer.data() + i * shape_.block_bytes,
                  shape_.block_bytes);
    end(at, e);
  }
  void end(std::size_t s, std::errc e) {
    done_.push_back({slots_[s].tag, failure_ != std::errc{} ? failure_ : e});
    free_.push_back(s);
  }

  blocks::any_device::queue queue_;
  blocks::geometry shape_;
  log_state& log_;
  dirty_pages& dirty_;
  fpw_counters& counters_;
  std::vector<slot> slots_;
  std::vector<std::size_t> free_;
  std::deque<std::size_t> waiting_;
  std::deque<blocks::request> outgoing_;
  std::deque<group> groups_;  // under way, in the order of the log
  std::uint64_t begun_groups_ = 0;
  std::vector<transfer> transfers_;
  std::vector<std::size_t> free_transfers_;
  bool flushes_ = false;
  std::errc failure_{};  // failure of a checkpoint
  std::deque<answer> done_;
};

class raw_fpw final : public volume_subject {
 public:
  raw_fpw(const store_setup& setup, blocks::any_device& device)
      : device_(device),
        bytes_(setup.volume_bytes),
        half_(half_bytes(setup)),
        dirty_(device.shape().block_bytes),
        logs_(setup.threads) {
    std::uint64_t at = bytes_ / block_bytes();
    for (log_state& log : logs_)
      for (log_half& h : log.half) {
        h.first = at;
        h.content = blocks::buffer(half_);
        at += half_ / block_bytes();
      }
  }

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return device_.shape().block_bytes; }
  // A crash leaves pages whole; a reader beside a writer sees them block by block.
  [[nodiscard]] volume_promises promises() const override { return {block_bytes(), false}; }
  [[nodiscard]] std::unique_ptr<volume_queue> make_queue(unsigned depth, unsigned thread) override {
    return std::make_unique<raw_fpw_queue>(device_, depth, logs_.at(thread), dirty_, counters_);
  }
  void settle() override {
    for (log_state& log : logs_) raw_fpw_queue(device_, least_depth, log, dirty_, counters_).settle();
  }
  [[nodiscard]] volume_space space() override {
    return {bytes_ + logs_.size() * halves * half_, std::nullopt, std::nullopt, std::nullopt};
  }
  [[nodiscard]] std::vector<store_statistic> statistics() override {
    return {{"groups", counters_.groups.load(std::memory_order_relaxed)},
            {"logged_pages", counters_.images.load(std::memory_order_relaxed)},
            {"pages_in_place", counters_.in_place.load(std::memory_order_relaxed)},
            {"pages_left_out", counters_.left_out.load(std::memory_order_relaxed)}};
  }

 private:
  blocks::any_device& device_;
  std::uint64_t bytes_;
  std::uint64_t half_;
  dirty_pages dirty_;
  fpw_counters counters_;
  std::vector<log_state> logs_;
};

}  // namespace

std::uint64_t area_of_raw_fpw(const store_setup& setup) { return setup.threads * halves * half_bytes(setup); }

std::unique_ptr<volume_subject> make_raw_fpw(const store_setup& setup, blocks::any_device& device) {
  return std::make_unique<raw_fpw>(setup, device);
}

}  // namespace pmlab::store_bench
