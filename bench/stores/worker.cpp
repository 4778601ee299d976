#include "bench/stores/worker.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/device.hpp>
#include "bench/workload/distribution.hpp"
#include "bench/workload/permutation.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

constexpr std::uint64_t load_bytes = 65536;
constexpr unsigned load_depth = 32;

enum class action : std::uint8_t { read, write, discard };

// Phase `pages`: four operations after each other are two reads of pages, the record in the log, and the page.
constexpr unsigned steps_of_pages = 4;
constexpr unsigned log_step = 2;
constexpr std::uint64_t log_share = 16;  // of the volume: its end

bool has_log(const worker_task& task) { return task.what.what.kind == phase_kind::pages; }
std::uint64_t blocks_of_log(const worker_task& task, std::uint64_t blocks) {
  // More than are under way at a time.
  return has_log(task) ? std::max<std::uint64_t>(blocks / log_share, std::uint64_t{task.threads} * task.what.depth) : 0;
}

// The redo log of one thread: a block after the other, again and again.
class log_blocks {
 public:
  log_blocks(const worker_task& task, std::uint64_t blocks) {
    const std::uint64_t all = blocks_of_log(task, blocks);
    begin_ = blocks - all + all * task.thread / task.threads;
    end_ = blocks - all + all * (task.thread + 1) / task.threads;
    next_ = begin_;
  }
  [[nodiscard]] std::uint64_t next() {
    const std::uint64_t block = next_;
    next_ = next_ + 1 == end_ ? begin_ : next_ + 1;
    return block;
  }

 private:
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
  std::uint64_t next_ = 0;
};

// Chooses the places of one thread's operations. Threads write different places, so that writes do not overlap.
class places {
 public:
  places(const worker_task& task, std::uint64_t count)
      : task_(task),
        count_(count),
        begin_(count * task.thread / task.threads),
        end_(count * (task.thread + 1) / task.threads),
        next_(begin_),
        scattered_(count),
        sampler_(
            task.what.pattern == order::zipfian ? workload::parse_distribution("zipfian") : workload::distribution{},
            count) {}

  // The next part to write, or std::nullopt at the end, as each is written once.
  [[nodiscard]] std::optional<std::uint64_t> next_once() {
    if (next_ == end_) return std::nullopt;
    const std::uint64_t i = next_++;
    return task_.what.pattern == order::sequential ? i : scattered_(i);
  }
  [[nodiscard]] std::uint64_t next_read(random_source& random) {
    return task_.what.pattern == order::sequential ? in_turn() : sampler_(random, count_);
  }
  [[nodiscard]] std::uint64_t next_write(random_source& random) {
    return task_.what.pattern == order::sequential ? in_turn() : own(sampler_(random, count_));
  }
  // The one after it among those that this thread writes.
  [[nodiscard]] std::uint64_t after(std::uint64_t place) const {
    if (task_.what.pattern == order::sequential) return place + 1 == end_ ? begin_ : place + 1;
    return own((place + task_.threads) % count_);
  }

 private:
  [[nodiscard]] std::uint64_t in_turn() {
    const std::uint64_t place = next_;
    next_ = next_ + 1 == end_ ? begin_ : next_ + 1;
    return place;
  }
  // The nearest place that belongs to this thread.
  [[nodiscard]] std::uint64_t own(std::uint64_t place) const {
    const std::uint64_t mine = place / task_.threads * task_.threads + task_.thread;
    return mine < count_ ? mine : mine - task_.threads;
  }

  const worker_task& task_;
  std::uint64_t count_;
  std::uint64_t begin_;
  std::uint64_t end_;
  std::uint64_t next_;
  workload::permutation scattered_;
  workload::sampler sampler_;
};

struct slot {
  action what = action::read;
  block_range blocks;
  std::uint64_t version = 0;
  std::uint64_t began = 0;
  std::vector<std::uint64_t> least;
};

class worker {
 public:
  worker(contestant& on, const worker_task& task, const run_clock& clock, bench::progress& shown)
      : on_(on),
        task_(task),
        clock_(clock),
        shown_(shown),
        ledger_(on.blocks()),
        blocks_(static_cast<std::uint32_t>(task.what.size / ledger_.block_bytes())),
        random_(task.seed * 1024 + task.thread),
        places_(task_, (ledger_.blocks() - blocks_of_log(task, ledger_.blocks())) / blocks_),
        log_(task_, ledger_.blocks()),
        data_(task.what.size * task.what.depth),
        slots_(task.what.depth) {
    // Bytes that no drive compresses.
    for (std::size_t at = 0; at + 8 <= data_.size(); at += 8) {
      const std::uint64_t word = random_.next();
      std::memcpy(data_.data() + at, &word, sizeof word);
    }
    for (std::size_t i = slots_.size(); i > 0; --i) free_.push_back(i - 1);
    for (slot& s : slots_) s.least.resize(blocks_);
  }

  worker_sums run() {
    // Declared last: it waits for operations that use the slots.
    const std::unique_ptr<volume_queue> queue = on_.subject().make_queue(task_.what.depth, task_.thread);
    sums_.began = clock_.now();
    std::uint64_t now = sums_.began;
    std::vector<answer> done(task_.what.depth);
    std::size_t under_way = 0;
    bool goes_on = true;
    for (;;) {
      starting_.clear();
      while (goes_on && !free_.empty()) goes_on = prepare(now);
      const std::uint64_t prepared = clock_.now();
      sums_.own_ns += std::min(prepared - now, longest_own_ps) / 1000;
      for (const std::size_t s : starting_) start(*queue, s);
      under_way += starting_.size();
      if (under_way == 0) break;
      const std::size_t count = queue->reap(done, 1);
      now = clock_.now();
      for (const answer& a : std::span(done).first(count)) finish(a, now);
      under_way -= count;
    }
    sums_.ended = now;
    shown_.did(unreported_);
    return std::move(sums_);
  }

 private:
  [[nodiscard]] std::span<std::byte> data_of(std::size_t s) {
    return data_.bytes().subspan(s * task_.what.size, slots_[s].blocks.count * ledger_.block_bytes());
  }

  [[nodiscard]] bool is_over(std::uint64_t now) const {
    if (task_.operations != 0) return begun_ == task_.operations;
    return now - sums_.began >= task_.time;
  }

  [[nodiscard]] action next_action() {
    switch (task_.what.what.kind) {
      case phase_kind::read:
      case phase_kind::open: return action::read;
      case phase_kind::mix: return random_.below(100) < task_.what.what.read_percent ? action::read : action::write;
      case phase_kind::pages: return begun_ % steps_of_pages < log_step ? action::read : action::write;
      case phase_kind::discard: return action::discard;
      case phase_kind::fill:
      case phase_kind::overwrite: return action::write;
    }
    return action::read;
  }

  [[nodiscard]] block_range blocks_of(std::uint64_t place) const { return {place * blocks_, blocks_}; }

  // A place that no write is under way for.
  [[nodiscard]] block_range idle_place() {
    std::uint64_t place = places_.next_write(random_);
    for (unsigned draws = 0; ledger_.is_busy(blocks_of(place)); ++draws)
      place = draws < most_draws ? places_.next_write(random_) : places_.after(place);
    return blocks_of(place);
  }

  // The next block of the redo log that no write is under way for.
  [[nodiscard]] block_range idle_log_block() {
    std::uint64_t block = log_.next();
    while (ledger_.is_busy({block, 1})) block = log_.next();
    return {block, 1};
  }

  // False: there is nothing more to do.
  [[nodiscard]] bool prepare(std::uint64_t now) {
    if (is_over(now)) return false;
    const phase_kind kind = task_.what.what.kind;
    const std::size_t at = free_.back();
    slot& s = slots_[at];
    s.what = next_action();
    if (kind == phase_kind::fill || kind == phase_kind::discard) {
      const std::optional<std::uint64_t> place = places_.next_once();
      if (!place) return false;
      s.blocks = blocks_of(*place);
    } else if (has_log(task_) && begun_ % steps_of_pages == log_step) {
      s.blocks = idle_log_block();
    } else {
      s.blocks = s.what == action::read ? blocks_of(places_.next_read(random_)) : idle_place();
    }
    if (s.what == action::write)
      s.version = ledger_.begin_write(s.blocks, data_of(at));
    else if (s.what == action::discard)
      s.version = ledger_.begin_discard(s.blocks);
    free_.pop_back();
    starting_.push_back(at);
    ++begun_;
    return true;
  }

  void start(volume_queue& queue, std::size_t at) {
    slot& s = slots_[at];
    const std::uint64_t offset = s.blocks.first * ledger_.block_bytes();
    if (s.what == action::read) ledger_.begin_read(s.blocks, s.least);
    s.began = clock_.now();
    switch (s.what) {
      case action::read: return queue.read(offset, data_of(at), at);
      case action::write: return queue.write(offset, data_of(at), at);
      case action::discard: return queue.discard(offset, task_.what.size, at);
    }
  }

  void finish(const answer& a, std::uint64_t now) {
    const auto at = static_cast<std::size_t>(a.tag);
    slot& s = slots_[at];
    if (a.error != std::errc{})
      throw error(fmt::format("{}: a {} of {} bytes at byte {} failed: {}", on_.labels().store,
                              s.what == action::read    ? "read"
                              : s.what == action::write ? "write"
                                                        : "discard",
                              data_of(at).size(), s.blocks.first * ledger_.block_bytes(), blocks::describe(a.error)),
                  a.error == std::errc::no_space_on_device  ? "give a larger --device-bytes"
                  : a.error == std::errc::not_enough_memory ? "give a larger --medium-bytes"
                                                            : "check the drive");
    sums_.bytes += data_of(at).size();
    if (s.what == action::write) sums_.user_bytes += data_of(at).size();
    (s.what == action::read ? sums_.read_latency : sums_.write_latency).record((now - s.began) / 1000);
    if (s.what == action::read) {
      ++sums_.reads;
      ++sums_.verified;
      if (const auto wrong = ledger_.check(s.blocks, data_of(at), s.least))
        sums_.add_wrong(fmt::format("{}, {}: {}", on_.labels().store, text_of(task_.what), *wrong));
    } else {
      ledger_.end(s.blocks, s.version);
    }
    ++sums_.operations;
    free_.push_back(at);
    if (++unreported_ == reported_together) shown_.did(std::exchange(unreported_, 0));
  }

  contestant& on_;
  worker_task task_;
  const run_clock& clock_;
  bench::progress& shown_;
  ledger& ledger_;
  std::uint32_t blocks_;
  random_source random_;
  places places_;
  log_blocks log_;
  blocks::buffer data_;
  std::vector<slot> slots_;
  std::vector<std::size_t> free_;
  std::vector<std::size_t> starting_;
  std::uint64_t begun_ = 0;
  std::uint64_t unreported_ = 0;
  worker_sums sums_;
};

}  // namespace

worker_sums run_worker(contestant& on, const worker_task& task, const run_clock& clock, bench::progress& shown) {
  return worker(on, task, clock, shown).run();
}

std::uint64_t most_operations(const bench_case& what, std::uint64_t volume_bytes) {
  const bool once = what.what.kind == phase_kind::fill || what.what.kind == phase_kind::discard;
  return once ? volume_bytes / what.size : 0;
}

void complete_fill(contestant& on, bench::progress& shown) {
  ledger& blocks = on.blocks();
  const std::uint32_t most = static_cast<std::uint32_t>(load_bytes / blocks.block_bytes());
  blocks::buffer data(load_bytes * load_depth);
  std::vector<std::pair<block_range, std::uint64_t>> writes(load_depth);
  std::vector<std::size_t> free;
  for (std::size_t i = load_depth; i > 0; --i) free.push_back(i - 1);
  const std::unique_ptr<volume_queue> queue = on.subject().make_queue(load_depth, 0);
  std::array<answer, load_depth> done;
  const auto reap = [&] {
    const std::size_t count = queue->reap(done, 1);
    for (const answer& a : std::span(done).first(count)) {
      const auto at = static_cast<std::size_t>(a.tag);
      if (a.error != std::errc{})
        throw error(fmt::format("{}: filling the volume failed at byte {}: {}", on.labels().store,
                                writes[at].first.first * blocks.block_bytes(), blocks::describe(a.error)),
                    "give a larger --device-bytes, or a smaller --volume-bytes");
      blocks.end(writes[at].first, writes[at].second);
      shown.did(writes[at].first.count);
      free.push_back(at);
    }
  };
  for (std::uint64_t b = 0; b < blocks.blocks();) {
    block_range of{b, 0};
    while (of.end() < blocks.blocks() && of.count < most && blocks.is_empty(of.end())) ++of.count;
    if (of.count == 0) {
      ++b;
      shown.did(1);
      continue;
    }
    if (free.empty()) reap();
    const std::size_t at = free.back();
    free.pop_back();
    const std::span<std::byte> bytes = data.bytes().subspan(at * load_bytes, of.count * blocks.block_bytes());
    writes[at] = {of, blocks.begin_write(of, bytes)};
    queue->write(b * blocks.block_bytes(), bytes, at);
    b += of.count;
  }
  while (free.size() < load_depth) reap();
  on.set_filled();
}

worker_sums check_all(contestant& on, const run_clock& clock, bench::progress& shown) {
  const std::uint64_t bytes = on.subject().bytes();
  std::uint64_t size = load_bytes;
  while (bytes % size != 0) size /= 2;
  const worker_task task{.what = {{phase_kind::read, "check", 100, false}, order::sequential, size, load_depth},
                         .operations = bytes / size};
  return run_worker(on, task, clock, shown);
}

}  // namespace pmlab::store_bench
