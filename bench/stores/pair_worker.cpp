#include "bench/stores/pair_worker.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include <pmlab/blocks/device.hpp>
#include "bench/workload/kind_chooser.hpp"
#include "bench/workload/permutation.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::store_bench {
namespace {

using workload::operation_kind;

// As YCSB has it.
constexpr std::uint64_t longest_scan = 100;
// Keys of the ledger that a scan remembers: most of those that it may pass.
constexpr std::size_t keys_of_a_scan = 256;
// Key counts of loads whose keys repeat, relative to the number of puts: 15 % of uniform draws from three times as many
// keys meet one that was drawn before, and about 80 % of zipfian draws from half as many.
constexpr std::uint64_t uniform_keys = 3;
constexpr std::uint64_t zipfian_share = 2;

workload::distribution distribution_of(const pair_case& c) {
  switch (c.pattern) {
    case pair_order::zipfian: return workload::parse_distribution("zipfian");
    case pair_order::latest: return workload::parse_distribution("latest");
    case pair_order::random:
    case pair_order::sequential:
    case pair_order::uniform: break;
  }
  return {};
}

std::uint64_t keys_to_draw_from(const pair_case& c, const key_plan& plan) {
  if (!c.loads_duplicates()) return plan.ranks();
  return c.pattern == pair_order::uniform ? ranks_of_load(c, plan.records())
                                          : std::max<std::uint64_t>(plan.records() / zipfian_share, 1);
}

// Chooses the keys of one thread. Records and their numbers are spread over threads, so that changes of a key are one
// thread's; keys that a thread added are its own, and others do not know them.
class key_chooser {
 public:
  key_chooser(pair_contestant& on, const pair_task& task)
      : task_(task),
        plan_(on.plan()),
        inserted_(on.inserted(task.thread)),
        next_insert_(on.next_insert(task.thread)),
        begin_(operations_before(task.thread)),
        end_(operations_before(task.thread + 1)),
        next_(begin_),
        scattered_(plan_.records()),
        scattered_inserts_(std::max<std::uint64_t>(plan_.inserts(), 1)),
        sampler_(distribution_of(task.what), keys_to_draw_from(task.what, plan_)) {}

  // Each record of this thread once; nothing: there are no more.
  [[nodiscard]] std::optional<std::uint64_t> next_once() {
    if (next_ == end_) return std::nullopt;
    const std::uint64_t i = next_++;
    return plan_.rank_of_record(is_sequential() ? i : scattered_(i));
  }

  // A key of a load whose keys repeat.
  [[nodiscard]] std::uint64_t repeated(random_source& random) {
    const std::uint64_t keys = keys_to_draw_from(task_.what, plan_);
    return own_of(sampler_(random, keys), keys);
  }

  // A key that no insert of this store had; nothing: there is none.
  [[nodiscard]] std::optional<std::uint64_t> fresh(const pair_ledger& ledger) {
    for (;;) {
      const std::uint64_t j = next_insert_ * task_.threads + task_.thread;
      if (j >= plan_.inserts()) return std::nullopt;
      ++next_insert_;
      const std::uint64_t rank = plan_.rank_of_insert(is_sequential() ? j : scattered_inserts_(j));
      if (!ledger.was_put(rank)) return rank;
    }
  }
  void add(std::uint64_t rank) { inserted_.push_back(rank); }

  [[nodiscard]] std::uint64_t to_read(random_source& random) { return rank_of(draw(random)); }
  // Records of this thread, and keys that it added.
  [[nodiscard]] std::uint64_t to_change(random_source& random, const pair_ledger& ledger) {
    std::uint64_t number = own(draw(random));
    for (unsigned draws = 0; ledger.is_busy(rank_of(number)); ++draws)
      number = draws < most_draws || is_sequential() ? own(draw(random)) : own((number + task_.threads) % known());
    return rank_of(number);
  }

 private:
  [[nodiscard]] bool is_sequential() const noexcept { return task_.what.pattern == pair_order::sequential; }
  [[nodiscard]] std::uint64_t operations_before(unsigned thread) const noexcept {
    return plan_.records() * thread / task_.threads;
  }
  [[nodiscard]] std::uint64_t known() const noexcept { return plan_.records() + inserted_.size(); }
  [[nodiscard]] std::uint64_t draw(random_source& random) {
    if (!is_sequential()) return sampler_(random, known());
    const std::uint64_t number = next_;
    next_ = next_ + 1 == end_ ? begin_ : next_ + 1;
    return number;
  }
  [[nodiscard]] std::uint64_t rank_of(std::uint64_t number) const {
    return number < plan_.records() ? plan_.rank_of_record(number) : inserted_[number - plan_.records()];
  }
  [[nodiscard]] std::uint64_t own(std::uint64_t number) const {
    // In order, each thread has a part of its own.
    if (number >= plan_.records() || is_sequential()) return number;
    return own_of(number, plan_.records());
  }
  [[nodiscard]] std::uint64_t own_of(std::uint64_t number, std::uint64_t count) const {
    const std::uint64_t mine = number / task_.threads * task_.threads + task_.thread;
    return mine < count ? mine : mine - task_.threads;
  }

  const pair_task& task_;
  const key_plan& plan_;
  std::vector<std::uint64_t>& inserted_;
  std::uint64_t& next_insert_;
  std::uint64_t begin_, end_, next_;  // numbers of records: each once, or in order
  workload::permutation scattered_;
  workload::permutation scattered_inserts_;
  workload::sampler sampler_;
};

struct pair_slot {
  operation_kind what = operation_kind::read;
  bool reads_first = false;  // of a read-modify-write: its read is under way
  std::uint64_t rank = 0;
  std::uint64_t version = 0;
  std::uint64_t least = 0;
  std::uint64_t began = 0;
  std::string key;
  std::vector<std::byte> value;
  unsigned pairs = 0;                   // of a scan
  std::vector<std::uint64_t> leasts{};  // of a scan
  std::size_t known = 0;                // of these
};

class pair_worker {
 public:
  pair_worker(pair_contestant& on, const pair_task& task, const run_clock& clock, bench::progress& shown)
      : on_(on),
        task_(task),
        clock_(clock),
        shown_(shown),
        ledger_(on.ledger()),
        random_(task.seed * 1024 + task.thread),
        keys_(on, task_),
        kinds_(task.what.what.mix),
        slots_(task.what.depth) {
    for (std::size_t i = slots_.size(); i > 0; --i) free_.push_back(i - 1);
    for (pair_slot& s : slots_) {
      s.value.resize(task.what.value_bytes);
      if (task.what.what.scans()) s.leasts.resize(keys_of_a_scan);
    }
  }

  worker_sums run() {
    return run_with([this](std::uint64_t now) { return prepare(now); });
  }

  // Reads the keys of this thread's part of the ledger.
  worker_sums check_all() {
    std::uint64_t next = ledger_.ranks() * task_.thread / task_.threads;
    const std::uint64_t end = ledger_.ranks() * (task_.thread + 1) / task_.threads;
    return run_with([this, next, end](std::uint64_t /*now*/) mutable -> std::optional<std::size_t> {
      while (next < end && !ledger_.was_put(next)) ++next;
      return next < end ? std::optional(begin(operation_kind::read, next++)) : std::nullopt;
    });
  }

 private:
  // next(now): the slot of the next operation; nothing: there is none.
  template <class Next>
  worker_sums run_with(Next&& next) {
    // Declared last: it waits for operations that use the slots.
    const std::unique_ptr<pair_queue> queue = on_.subject().make_queue(task_.what.depth, task_.thread);
    done_.resize(task_.what.depth);
    sums_.began = now_ = clock_.now();
    bool goes_on = true;
    for (;;) {
      for (;;) {
        std::optional<std::size_t> s;
        if (!again_.empty()) {
          s = again_.back();
          again_.pop_back();
        } else if (goes_on && !free_.empty()) {
          s = next(now_);
          goes_on = s.has_value();
        }
        if (!s) break;
        start(*queue, *s);
        // A store whose calls wait has the answer by now.
        reap(*queue, 0);
      }
      if (under_way_ == 0) break;
      reap(*queue, 1);
    }
    sums_.ended = now_;
    shown_.did(unreported_);
    return std::move(sums_);
  }

  void reap(pair_queue& queue, std::size_t at_least) {
    const std::size_t count = queue.reap(done_, at_least);
    now_ = clock_.now();
    for (const pair_answer& a : std::span(done_).first(count)) finish(a);
    under_way_ -= count;
  }

  [[nodiscard]] bool is_over(std::uint64_t now) const {
    if (task_.operations != 0) return begun_ == task_.operations;
    // A load, and an erase, end by themselves.
    return task_.time != 0 && now - sums_.began >= task_.time;
  }

  [[nodiscard]] std::optional<std::size_t> prepare(std::uint64_t now) {
    if (is_over(now)) return std::nullopt;
    switch (task_.what.what.kind) {
      case pair_phase_kind::load: return prepare_load();
      case pair_phase_kind::erase: {
        const std::optional<std::uint64_t> rank = keys_.next_once();
        return rank ? std::optional(begin(operation_kind::erase, *rank)) : std::nullopt;
      }
      case pair_phase_kind::open: return begin(operation_kind::read, keys_.to_read(random_));
      case pair_phase_kind::mix: break;
    }
    const operation_kind kind = kinds_(random_);
    switch (kind) {
      case operation_kind::read:
      case operation_kind::scan: return begin(kind, keys_.to_read(random_));
      case operation_kind::insert: {
        const std::optional<std::uint64_t> rank = keys_.fresh(ledger_);
        if (rank) return begin(kind, *rank);
        // The plan has no more keys.
        if (task_.what.what.insert_share() == 1) return std::nullopt;
        return begin(operation_kind::update, keys_.to_change(random_, ledger_));
      }
      case operation_kind::update:
      case operation_kind::erase:
      case operation_kind::read_modify_write: return begin(kind, keys_.to_change(random_, ledger_));
    }
    return std::nullopt;
  }

  [[nodiscard]] std::optional<std::size_t> prepare_load() {
    if (task_.what.loads_duplicates()) {
      std::uint64_t rank = keys_.repeated(random_);
      while (ledger_.is_busy(rank)) rank = keys_.repeated(random_);
      return begin(operation_kind::insert, rank);
    }
    std::optional<std::uint64_t> rank = keys_.next_once();
    while (rank && ledger_.is_there(*rank)) rank = keys_.next_once();
    return rank ? std::optional(begin(operation_kind::insert, *rank)) : std::nullopt;
  }

  // What the ledger and the slot know of an operation before it starts.
  [[nodiscard]] std::size_t begin(operation_kind what, std::uint64_t rank) {
    const std::size_t at = free_.back();
    free_.pop_back();
    pair_slot& s = slots_[at];
    s.what = what;
    s.rank = rank;
    s.reads_first = what == operation_kind::read_modify_write;
    ledger_.keys().write(rank, s.key);
    switch (what) {
      case operation_kind::insert:
      case operation_kind::update:
      case operation_kind::read_modify_write: s.version = ledger_.begin_put(rank, s.value); break;
      case operation_kind::erase: s.version = ledger_.begin_erase(rank); break;
      case operation_kind::scan:
        s.pairs = 1 + static_cast<unsigned>(random_.below(longest_scan));
        s.known = ledger_.begin_scan(rank, s.leasts);
        break;
      case operation_kind::read: break;
    }
    ++begun_;
    return at;
  }

  void start(pair_queue& queue, std::size_t at) {
    pair_slot& s = slots_[at];
    const bool reads = s.what == operation_kind::read || s.reads_first;
    if (reads) s.least = ledger_.begin_read(s.rank);
    s.began = clock_.now();
    sums_.own_ns += std::min(s.began - now_, longest_own_ps) / 1000;
    ++under_way_;
    if (reads) return queue.get(s.key, at);
    switch (s.what) {
      case operation_kind::scan: return queue.scan(s.key, s.pairs, at);
      case operation_kind::erase: return queue.erase(s.key, at);
      default: return queue.put(s.key, s.value, at);
    }
  }

  void finish(const pair_answer& a) {
    const auto at = static_cast<std::size_t>(a.tag);
    pair_slot& s = slots_[at];
    if (a.error != std::errc{}) refuse(a.error, s);
    const std::uint64_t ns = (now_ - s.began) / 1000;
    if (s.what == operation_kind::read || s.reads_first) {
      ++sums_.reads;
      sums_.bytes += s.key.size() + a.value.size();
      sums_.read_latency.record(ns);
      check(ledger_.check(s.rank, a.found, a.value, s.least));
      if (std::exchange(s.reads_first, false)) return again_.push_back(at);
    } else if (s.what == operation_kind::scan) {
      for (const pair& p : a.pairs) sums_.bytes += p.key.size() + p.value.size();
      sums_.scan_latency.record(ns);
      check(ledger_.check_scan(s.rank, s.pairs, a.pairs, std::span(s.leasts).first(s.known)));
    } else {
      const bool puts = s.what != operation_kind::erase;
      sums_.bytes += s.key.size() + (puts ? s.value.size() : 0);
      if (puts) sums_.user_bytes += s.key.size() + s.value.size();
      sums_.write_latency.record(ns);
      ledger_.end(s.rank, s.version);
      if (s.what == operation_kind::insert && task_.what.what.kind == pair_phase_kind::mix) keys_.add(s.rank);
    }
    ++sums_.operations;
    free_.push_back(at);
    if (++unreported_ == reported_together) shown_.did(std::exchange(unreported_, 0));
  }

  void check(const std::optional<std::string>& wrong) {
    ++sums_.verified;
    if (wrong) sums_.add_wrong(fmt::format("{}, {}: {}", on_.labels().store, text_of(task_.what), *wrong));
  }

  [[noreturn]] void refuse(std::errc failure, const pair_slot& s) const {
    throw error(fmt::format("{}: a {} of key {} failed: {}", on_.labels().store, to_string(s.what), s.key,
                            blocks::describe(failure)),
                failure == std::errc::no_space_on_device  ? "give a larger --device-bytes"
                : failure == std::errc::not_enough_memory ? "give a larger --medium-bytes"
                                                          : "check the drive");
  }

  pair_contestant& on_;
  pair_task task_;
  const run_clock& clock_;
  bench::progress& shown_;
  pair_ledger& ledger_;
  random_source random_;
  key_chooser keys_;
  workload::kind_chooser kinds_;
  std::vector<pair_slot> slots_;
  std::vector<std::size_t> free_;
  std::vector<std::size_t> again_;  // the reads of read-modify-writes are done
  std::vector<pair_answer> done_;
  std::size_t under_way_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t unreported_ = 0;
  std::uint64_t now_ = 0;  // the last reap
  worker_sums sums_;
};

}  // namespace

worker_sums run_pair_worker(pair_contestant& on, const pair_task& task, const run_clock& clock,
                            bench::progress& shown) {
  return pair_worker(on, task, clock, shown).run();
}

worker_sums check_pairs(pair_contestant& on, const pair_task& task, const run_clock& clock, bench::progress& shown) {
  return pair_worker(on, task, clock, shown).check_all();
}

std::uint64_t most_operations(const pair_case& c, const key_plan& plan) {
  const bool each_once = c.what.kind == pair_phase_kind::load || c.what.kind == pair_phase_kind::erase;
  return each_once ? plan.records() : 0;
}

std::uint64_t ranks_of_load(const pair_case& c, std::uint64_t records) {
  return c.loads_duplicates() && c.pattern == pair_order::uniform ? uniform_keys * records : records;
}

}  // namespace pmlab::store_bench
