// Double write: rules of its protocol.
//   (W1) the batch in the double-write area, durable   (W2) its pages in their places, durable   (W3) the area is free
//   (W1) < (W2): a page that a crash tears in its place is whole in the area.
//   (W2) < (W3): until all pages of a batch are durable in their places, nothing replaces the batch.
#include <pmlab/blocks/buffer.hpp>
#include "bench/stores/peers/page_stores.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <utility>
#include <vector>

namespace pmlab::store_bench {
namespace {

// The areas of each thread: one batch can go to its area while the pages of the other go to their places.
constexpr std::size_t areas = 2;
constexpr std::uint64_t area_bytes = most_page_bytes;

class raw_dwb_queue final : public volume_queue {
 public:
  // `first`: block of the thread's areas.
  raw_dwb_queue(blocks::any_device& device, unsigned depth, std::uint64_t first)
      : queue_(device, depth + static_cast<unsigned>(areas)), shape_(device.shape()), slots_(depth) {
    for (std::size_t i = 0; i < areas; ++i) {
      areas_[i].first = first + i * (area_bytes / shape_.block_bytes);
      areas_[i].copy = blocks::buffer(area_bytes);
    }
    for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
  }
  raw_dwb_queue(const raw_dwb_queue&) = delete;
  raw_dwb_queue& operator=(const raw_dwb_queue&) = delete;
  ~raw_dwb_queue() override {
    while (queue_.in_flight() > 0 || !waiting_.empty()) progress();
  }

  void write(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag) override {
    const std::size_t s = begin(offset, data.size(), const_cast<std::byte*>(data.data()), tag);
    if (data.size() <= shape_.atomic_bytes && offset % shape_.atomic_bytes + data.size() <= shape_.atomic_bytes)
      return submit(blocks::operation::write_durable, blocks::stream::data, slots_[s], s);
    waiting_.push_back(s);
    // Operations that are started one after the other meet in a batch: it begins at the next reap.
  }
  void read(std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag) override {
    const std::size_t s = begin(offset, data.size(), data.data(), tag);
    submit(blocks::operation::read, blocks::stream::data, slots_[s], s);
  }
  void discard(std::uint64_t offset, std::uint64_t length, std::uint64_t tag) override {
    const std::size_t s = begin(offset, length, nullptr, tag);
    submit(blocks::operation::discard, blocks::stream::data, slots_[s], s);
  }
  [[nodiscard]] std::size_t reap(std::span<answer> answers, std::size_t at_least) override {
    const std::size_t under_way = slots_.size() - free_.size() + done_.size();
    const std::size_t wanted = std::min({at_least, answers.size(), under_way});
    begin_batches();
    while (done_.size() < wanted) progress();
    const std::size_t count = std::min(answers.size(), done_.size());
    std::copy_n(done_.begin(), count, answers.begin());
    done_.erase(done_.begin(), done_.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

 private:
  static constexpr std::uint64_t of_area = std::uint64_t{1} << 32;
  static constexpr std::size_t none = areas;

  struct slot {
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::byte* data = nullptr;
    std::uint64_t tag = 0;
    std::size_t area = none;
  };
  struct area {
    std::uint64_t first = 0;  // block
    blocks::buffer copy;
    std::vector<std::size_t> pages;  // slots
    std::size_t left = 0;            // pages that are not in their places
    bool is_free = true;
    bool flushes = false;
  };

  std::size_t begin(std::uint64_t offset, std::uint64_t bytes, std::byte* data, std::uint64_t tag) {
    const std::size_t s = free_.back();
    free_.pop_back();
    slots_[s] = {offset, bytes, data, tag, none};
    return s;
  }

  void submit(blocks::operation what, blocks::stream of, const slot& s, std::uint64_t tag) {
    put({what, of, static_cast<std::uint32_t>(s.bytes / shape_.block_bytes), s.offset / shape_.block_bytes, s.data,
         tag});
  }
  // The queue has room for each operation and each area.
  void put(const blocks::request& r) {
    while (queue_.submit({&r, 1}) == 0) continue;
  }

  // (W1): all pages that wait, as far as they fit.
  void begin_batches() {
    for (std::size_t i = 0; i < areas && !waiting_.empty(); ++i) {
      area& a = areas_[i];
      if (!a.is_free) continue;
      std::uint64_t bytes = 0;
      a.pages.clear();
      while (!waiting_.empty() && bytes + slots_[waiting_.front()].bytes <= area_bytes) {
        slot& s = slots_[waiting_.front()];
        std::memcpy(a.copy.data() + bytes, s.data, s.bytes);
        bytes += s.bytes;
        s.area = i;
        a.pages.push_back(waiting_.front());
        waiting_.pop_front();
      }
      a.is_free = false;
      a.left = a.pages.size();
      put({blocks::operation::write_durable, blocks::stream::log,
           static_cast<std::uint32_t>(bytes / shape_.block_bytes), a.first, a.copy.data(), of_area | i});
    }
  }

  void progress() {
    std::array<blocks::completion, 64> ended;
    const std::size_t count = queue_.reap(ended, 1);
    for (const blocks::completion& c : std::span(ended).first(count))
      if ((c.tag & of_area) != 0)
        finish_area(areas_[c.tag & ~of_area], c.error);
      else
        finish_slot(static_cast<std::size_t>(c.tag), c.error);
    begin_batches();
  }

  // Its copy is durable, or a flush of its pages has ended.
  void finish_area(area& a, std::errc e) {
    if (a.flushes || e != std::errc{}) {
      if (!a.flushes)
        for (const std::size_t s : a.pages) end(s, e);
      a.flushes = false;
      a.is_free = true;  // (W3)
      return;
    }
    for (const std::size_t s : a.pages) submit(blocks::operation::write, blocks::stream::data, slots_[s], s);  // (W2)
  }

  void finish_slot(std::size_t s, std::errc e) {
    if (slots_[s].area != none) {
      area& a = areas_[slots_[s].area];
      if (--a.left == 0) {
        // Without a volatile cache a completed write is durable.
        a.flushes = shape_.volatile_cache;
        if (a.flushes)
          put({blocks::operation::flush, blocks::stream::data, 1, 0, nullptr,
               of_area | static_cast<std::uint64_t>(&a - areas_.data())});
        else
          a.is_free = true;  // (W3)
      }
    }
    end(s, e);
  }

  void end(std::size_t s, std::errc e) {
    done_.push_back({slots_[s].tag, e});
    free_.push_back(s);
  }

  blocks::any_device::queue queue_;
  blocks::geometry shape_;
  std::array<area, areas> areas_;
  std::vector<slot> slots_;
  std::vector<std::size_t> free_;
  std::deque<std::size_t> waiting_;
  std::deque<answer> done_;
};

class raw_dwb final : public volume_subject {
 public:
  raw_dwb(const store_setup& setup, blocks::any_device& device) : device_(device), bytes_(setup.volume_bytes) {}

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::uint32_t block_bytes() const override { return device_.shape().block_bytes; }
  // A crash leaves pages whole; a reader beside a writer sees them block by block.
  [[nodiscard]] volume_promises promises() const override { return {block_bytes(), false}; }
  [[nodiscard]] std::unique_ptr<volume_queue> make_queue(unsigned depth, unsigned thread) override {
    return std::make_unique<raw_dwb_queue>(device_, depth, (bytes_ + thread * areas * area_bytes) / block_bytes());
  }

 private:
  blocks::any_device& device_;
  std::uint64_t bytes_;
};

}  // namespace

std::uint64_t area_of_raw_dwb(const store_setup& setup) { return setup.threads * areas * area_bytes; }

std::unique_ptr<volume_subject> make_raw_dwb(const store_setup& setup, blocks::any_device& device) {
  return std::make_unique<raw_dwb>(setup, device);
}

}  // namespace pmlab::store_bench
