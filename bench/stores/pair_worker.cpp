#include "bench/stores/case_worker.hpp"
#include "bench/stores/thread_share.hpp"
#include "bench/stores/worker.hpp"
#include "bench/workload/distribution.hpp"
#include "bench/workload/kind_chooser.hpp"
#include "bench/workload/permutation.hpp"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
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
        records_(task.what.what.kind == pair_phase_kind::check ? on.ledger().ranks() : plan_.records(), task.thread,
                 task.threads, task.what.pattern == pair_order::sequential),
        scattered_inserts_(std::max<std::uint64_t>(plan_.inserts(), 1)),
        sampler_(distribution_of(task.what), keys_to_draw_from(task.what, plan_)) {}

  // Each rank of this thread once, in a check; nothing: there are no more.
  [[nodiscard]] std::optional<std::uint64_t> next_rank() { return records_.next_once(); }
  // Each record of this thread once; nothing: there are no more.
  [[nodiscard]] std::optional<std::uint64_t> next_once() {
    const std::optional<std::uint64_t> number = records_.next_once();
    return number ? std::optional(plan_.rank_of_record(*number)) : std::nullopt;
  }

  // A key of a load whose keys repeat.
  [[nodiscard]] std::uint64_t repeated(random_source& random) {
    const std::uint64_t keys = keys_to_draw_from(task_.what, plan_);
    return records_.own(sampler_(random, keys), keys);
  }

  // A key that no insert of this store had; nothing: there is none.
  [[nodiscard]] std::optional<std::uint64_t> fresh(const pair_ledger& ledger) {
    for (;;) {
      const std::uint64_t j = next_insert_ * task_.threads + task_.thread;
      if (j >= plan_.inserts()) return std::nullopt;
      ++next_insert_;
      const std::uint64_t rank = plan_.rank_of_insert(records_.in_order() ? j : scattered_inserts_(j));
      if (!ledger.was_put(rank)) return rank;
    }
  }
  void add(std::uint64_t rank) { inserted_.push_back(rank); }

  [[nodiscard]] std::uint64_t to_read(random_source& random) { return rank_of(draw(random)); }
  // Records of this thread, and keys that it added.
  [[nodiscard]] std::uint64_t to_change(random_source& random, const pair_ledger& ledger) {
    std::uint64_t number = own(draw(random));
    for (unsigned draws = 0; ledger.is_busy(rank_of(number)); ++draws)
      number = own(draws < most_draws || records_.in_order() ? draw(random) : (number + task_.threads) % known());
    return rank_of(number);
  }

 private:
  [[nodiscard]] std::uint64_t known() const noexcept { return plan_.records() + inserted_.size(); }
  [[nodiscard]] std::uint64_t draw(random_source& random) {
    return records_.in_order() ? records_.next_in_turn() : sampler_(random, known());
  }
  [[nodiscard]] std::uint64_t rank_of(std::uint64_t number) const {
    return number < plan_.records() ? plan_.rank_of_record(number) : inserted_[number - plan_.records()];
  }
  [[nodiscard]] std::uint64_t own(std::uint64_t number) const {
    const bool is_own = number >= plan_.records() || records_.in_order();
    return is_own ? number : records_.own(number, plan_.records());
  }

  const pair_task& task_;
  const key_plan& plan_;
  std::vector<std::uint64_t>& inserted_;
  std::uint64_t& next_insert_;
  thread_share records_;
  workload::permutation scattered_inserts_;
  workload::sampler sampler_;
};

struct pair_slot {
  operation_kind what = operation_kind::read;
  bool reads = false;  // a read, or the first half of a read-modify-write, is under way
  std::uint64_t rank = 0;
  std::uint64_t version = 0;
  std::uint64_t least = 0;
  std::uint64_t began = 0;
  std::string key{};
  std::vector<std::byte> value{};
  unsigned pairs = 0;                   // pairs of a scan
  std::vector<std::uint64_t> leasts{};  // least keys of a scan
  std::size_t known = 0;                // known ones among these
};

class pair_worker final : public case_worker<pair_contestant, pair_case, pair_queue, pair_answer, pair_slot> {
 public:
  pair_worker(pair_contestant& on, const pair_task& task, const run_clock& clock, bench::progress& shown)
      : case_worker(on, task, clock, shown, starting::one_by_one),
        ledger_(on.ledger()),
        keys_(on, task_),
        kinds_(task.what.what.mix) {
    for (pair_slot& s : slots_) {
      s.value.resize(task.what.value_bytes);
      if (task.what.what.scans()) s.leasts.resize(keys_of_a_scan);
    }
  }

 private:
  struct chosen {
    operation_kind what = operation_kind::read;
    std::optional<std::uint64_t> rank;  // nothing: there are no more
  };

  [[nodiscard]] chosen choose() {
    switch (task_.what.what.kind) {
      case pair_phase_kind::load: return {operation_kind::insert, to_load()};
      case pair_phase_kind::erase: return {operation_kind::erase, keys_.next_once()};
      case pair_phase_kind::check: return {operation_kind::read, to_check()};
      case pair_phase_kind::open: return {operation_kind::read, keys_.to_read(random_)};
      case pair_phase_kind::mix: break;
    }
    const operation_kind kind = kinds_(random_);
    if (kind == operation_kind::read || kind == operation_kind::scan) return {kind, keys_.to_read(random_)};
    if (kind != operation_kind::insert) return {kind, keys_.to_change(random_, ledger_)};
    const std::optional<std::uint64_t> rank = keys_.fresh(ledger_);
    // The plan has no more keys: an update in its place, unless all are inserts.
    if (!rank && task_.what.what.insert_share() < 1) return {operation_kind::update, keys_.to_change(random_, ledger_)};
    return {kind, rank};
  }
  [[nodiscard]] std::optional<std::uint64_t> to_load() {
    if (task_.what.loads_duplicates()) {
      std::uint64_t rank = keys_.repeated(random_);
      while (ledger_.is_busy(rank)) rank = keys_.repeated(random_);
      return rank;
    }
    std::optional<std::uint64_t> rank = keys_.next_once();
    while (rank && ledger_.is_there(*rank)) rank = keys_.next_once();
    return rank;
  }
  [[nodiscard]] std::optional<std::uint64_t> to_check() {
    std::optional<std::uint64_t> rank = keys_.next_rank();
    while (rank && !ledger_.was_put(*rank)) rank = keys_.next_rank();
    return rank;
  }

  [[nodiscard]] bool prepare(pair_slot& s) override {
    const chosen next = choose();
    if (!next.rank) return false;
    s.what = next.what;
    s.rank = *next.rank;
    s.reads = s.what == operation_kind::read || s.what == operation_kind::read_modify_write;
    ledger_.keys().write(s.rank, s.key);
    switch (s.what) {
      case operation_kind::insert:
      case operation_kind::update:
      case operation_kind::read_modify_write: s.version = ledger_.begin_put(s.rank, s.value); break;
      case operation_kind::erase: s.version = ledger_.begin_erase(s.rank); break;
      case operation_kind::scan:
        s.pairs = 1 + static_cast<unsigned>(random_.below(longest_scan));
        s.known = ledger_.begin_scan(s.rank, s.leasts);
        break;
      case operation_kind::read: break;
    }
    return true;
  }

  void look(pair_slot& s) override {
    if (s.reads) s.least = ledger_.begin_read(s.rank);
  }
  void start(pair_queue& queue, pair_slot& s, std::uint64_t tag) override {
    if (s.reads) return queue.get(s.key, tag);
    switch (s.what) {
      case operation_kind::scan: return queue.scan(s.key, s.pairs, tag);
      case operation_kind::erase: return queue.erase(s.key, tag);
      default: return queue.put(s.key, s.value, tag);
    }
  }

  [[nodiscard]] bool take(pair_slot& s, const pair_answer& a, std::uint64_t ns) override {
    if (s.reads) {
      ++sums_.reads;
      sums_.bytes += s.key.size() + a.value.size();
      sums_.read_latency.record(ns);
      count_check(ledger_.check(s.rank, a.found, a.value, s.least));
      s.reads = false;
      return s.what == operation_kind::read;
    }
    if (s.what == operation_kind::scan) {
      for (const pair& p : a.pairs) sums_.bytes += p.key.size() + p.value.size();
      sums_.scan_latency.record(ns);
      count_check(ledger_.check_scan(s.rank, s.pairs, a.pairs, std::span(s.leasts).first(s.known)));
      return true;
    }
    const bool puts = s.what != operation_kind::erase;
    sums_.bytes += s.key.size() + (puts ? s.value.size() : 0);
    if (puts) sums_.user_bytes += s.key.size() + s.value.size();
    sums_.write_latency.record(ns);
    ledger_.end(s.rank, s.version);
    if (s.what == operation_kind::insert && task_.what.what.kind == pair_phase_kind::mix) keys_.add(s.rank);
    return true;
  }

  [[nodiscard]] error failure_of(const pair_slot& s, std::errc why) const override {
    return failed(fmt::format("a {} of key {}", to_string(s.what), s.key), why);
  }

  pair_ledger& ledger_;
  key_chooser keys_;
  workload::kind_chooser kinds_;
};

}  // namespace

worker_sums run_worker(pair_contestant& on, const pair_task& task, const run_clock& clock, bench::progress& shown) {
  return pair_worker(on, task, clock, shown).run();
}

std::uint64_t ranks_of_load(const pair_case& c, std::uint64_t records) {
  return c.loads_duplicates() && c.pattern == pair_order::uniform ? uniform_keys * records : records;
}

}  // namespace pmlab::store_bench
