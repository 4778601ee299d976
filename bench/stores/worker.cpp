#include "bench/stores/worker.hpp"
#include <pmlab/blocks/buffer.hpp>
#include "bench/stores/case_worker.hpp"
#include "bench/stores/thread_share.hpp"
#include "bench/workload/distribution.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

constexpr std::uint64_t load_bytes = 65536;
constexpr unsigned load_depth = 32;

enum class action : std::uint8_t { read, write, discard };

// Phase `pages`: four operations after each other are two reads of pages, the record in the log, and the page.
constexpr unsigned steps_of_pages = 4;
constexpr unsigned log_step = 2;
constexpr std::uint64_t log_share = 16;  // log share of the volume: its end

// The redo log of all threads: a block after the other, again and again.
std::uint64_t blocks_of_log(const worker_task& task, std::uint64_t blocks) {
  if (task.what.what.kind != phase_kind::pages) return 0;
  // More than are under way at a time.
  return std::max<std::uint64_t>(blocks / log_share, std::uint64_t{task.threads} * task.what.depth);
}

struct slot {
  action what = action::read;
  block_range blocks;
  std::uint64_t version = 0;
  std::uint64_t began = 0;
  std::vector<std::uint64_t> least;
};

class worker final : public case_worker<contestant, bench_case, volume_queue, answer, slot> {
 public:
  worker(contestant& on, const worker_task& task, const run_clock& clock, bench::progress& shown)
      : case_worker(on, task, clock, shown, starting::together),
        ledger_(on.ledger()),
        blocks_(static_cast<std::uint32_t>(task.what.size / ledger_.block_bytes())),
        log_begin_(ledger_.blocks() - blocks_of_log(task, ledger_.blocks())),
        count_(log_begin_ / blocks_),
        places_(count_, task.thread, task.threads, task.what.pattern == order::sequential),
        log_(ledger_.blocks() - log_begin_, task.thread, task.threads, true),
        sampler_(
            task.what.pattern == order::zipfian ? workload::parse_distribution("zipfian") : workload::distribution{},
            std::max<std::uint64_t>(count_, 1)),
        data_(task.what.size * task.what.depth) {
    // Bytes that no drive compresses.
    for (std::size_t at = 0; at + 8 <= data_.size(); at += 8) {
      const std::uint64_t word = random_.next();
      std::memcpy(data_.data() + at, &word, sizeof word);
    }
    for (slot& s : slots_) s.least.resize(blocks_);
  }

 private:
  [[nodiscard]] phase_kind kind() const noexcept { return task_.what.what.kind; }
  [[nodiscard]] std::uint64_t byte_of(const slot& s) const { return s.blocks.first * ledger_.block_bytes(); }
  [[nodiscard]] std::span<std::byte> data_of(const slot& s) {
    return data_.bytes().subspan(static_cast<std::size_t>(&s - slots_.data()) * task_.what.size, bytes_of(s));
  }
  [[nodiscard]] std::size_t bytes_of(const slot& s) const { return s.blocks.count * ledger_.block_bytes(); }

  [[nodiscard]] bool prepare(slot& s) override {
    s.what = next_action();
    const std::optional<block_range> blocks = next_blocks(s.what);
    if (!blocks) return false;
    s.blocks = *blocks;
    if (s.what == action::write)
      s.version = ledger_.begin_write(s.blocks, data_of(s));
    else if (s.what == action::discard)
      s.version = ledger_.begin_discard(s.blocks);
    return true;
  }

  [[nodiscard]] action next_action() {
    switch (kind()) {
      case phase_kind::read:
      case phase_kind::open: return action::read;
      case phase_kind::mix: return random_.below(100) < task_.what.what.read_percent ? action::read : action::write;
      case phase_kind::pages: return prepared() % steps_of_pages < log_step ? action::read : action::write;
      case phase_kind::discard: return action::discard;
      case phase_kind::fill:
      case phase_kind::complete:
      case phase_kind::overwrite: return action::write;
    }
    return action::read;
  }

  // Nothing: there are no more. Threads write different places, so that writes do not overlap.
  [[nodiscard]] std::optional<block_range> next_blocks(action what) {
    if (kind() == phase_kind::complete) return next_empty();
    if (kind() == phase_kind::fill || kind() == phase_kind::discard) {
      const std::optional<std::uint64_t> place = places_.next_once();
      return place ? std::optional(blocks_of(*place)) : std::nullopt;
    }
    if (what == action::read) return blocks_of(draw());
    if (kind() == phase_kind::pages && prepared() % steps_of_pages == log_step) return idle_log_block();
    return idle_place();
  }
  [[nodiscard]] block_range blocks_of(std::uint64_t place) const { return {place * blocks_, blocks_}; }

  [[nodiscard]] std::uint64_t draw() { return places_.in_order() ? places_.next_in_turn() : sampler_(random_, count_); }
  [[nodiscard]] std::uint64_t own(std::uint64_t place) const {
    return places_.in_order() ? place : places_.own(place, count_);
  }
  // A place that no write is under way for.
  [[nodiscard]] block_range idle_place() {
    std::uint64_t place = own(draw());
    for (unsigned draws = 0; ledger_.is_busy(blocks_of(place)); ++draws)
      place = own(draws < most_draws || places_.in_order() ? draw() : (place + task_.threads) % count_);
    return blocks_of(place);
  }
  // The next block of the redo log that no write is under way for.
  [[nodiscard]] block_range idle_log_block() {
    block_range one{log_begin_ + log_.next_in_turn(), 1};
    while (ledger_.is_busy(one)) one.first = log_begin_ + log_.next_in_turn();
    return one;
  }
  // The next blocks that were never written or were discarded. Progress counts the others, too.
  [[nodiscard]] std::optional<block_range> next_empty() {
    for (; next_ < ledger_.blocks() && !ledger_.is_empty(next_); ++next_) shown_.did(1);
    block_range of{next_, 0};
    while (of.end() < ledger_.blocks() && of.count < blocks_ && ledger_.is_empty(of.end())) ++of.count;
    next_ = of.end();
    return of.count != 0 ? std::optional(of) : std::nullopt;
  }

  void look(slot& s) override {
    if (s.what == action::read) ledger_.begin_read(s.blocks, s.least);
  }
  void start(volume_queue& queue, slot& s, std::uint64_t tag) override {
    switch (s.what) {
      case action::read: return queue.read(byte_of(s), data_of(s), tag);
      case action::write: return queue.write(byte_of(s), data_of(s), tag);
      case action::discard: return queue.discard(byte_of(s), bytes_of(s), tag);
    }
  }

  [[nodiscard]] bool take(slot& s, const answer& /*a*/, std::uint64_t ns) override {
    sums_.bytes += bytes_of(s);
    if (s.what == action::write) sums_.user_bytes += bytes_of(s);
    (s.what == action::read ? sums_.read_latency : sums_.write_latency).record(ns);
    if (s.what == action::read) {
      ++sums_.reads;
      count_check(ledger_.check(s.blocks, data_of(s), s.least));
    } else {
      ledger_.end(s.blocks, s.version);
    }
    if (kind() == phase_kind::complete) shown_.did(s.blocks.count - 1);
    return true;
  }

  [[nodiscard]] error failure_of(const slot& s, std::errc why) const override {
    if (kind() == phase_kind::complete)
      return {fmt::format("{}: filling the volume failed at byte {}: {}", on_.labels().store, byte_of(s),
                          blocks::describe(why)),
              "give a larger --device-bytes, or a smaller --volume-bytes"};
    const char* const what = s.what == action::read ? "read" : s.what == action::write ? "write" : "discard";
    return failed(fmt::format("a {} of {} bytes at byte {}", what, bytes_of(s), byte_of(s)), why);
  }

  ledger& ledger_;
  std::uint32_t blocks_;  // an operation has so many
  std::uint64_t log_begin_;
  std::uint64_t count_;  // places
  thread_share places_;
  thread_share log_;
  workload::sampler sampler_;
  blocks::buffer data_;
  std::uint64_t next_ = 0;  // the place that a completed fill looks at next
};

}  // namespace

worker_sums run_worker(contestant& on, const worker_task& task, const run_clock& clock, bench::progress& shown) {
  return worker(on, task, clock, shown).run();
}

void complete_fill(contestant& on, const run_clock& clock, bench::progress& shown) {
  const worker_task task{
      .what = {{phase_kind::complete, "filling", 0, false}, order::sequential, load_bytes, load_depth}};
  static_cast<void>(run_worker(on, task, clock, shown));
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
