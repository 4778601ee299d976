// A key-value store in a run, and which of the keys it has. Made again for each load.
#pragma once

#include "bench/stores/any_contestant.hpp"
#include "bench/stores/pair_ledger.hpp"
#include "bench/stores/pair_stores.hpp"
#include "bench/stores/pair_subject.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::store_bench {

// As results name it; empty: does not apply to this store.
struct pair_labels {
  std::string store{}, medium{}, staging{}, place{}, memtable{};
};

// The keys of a run. Records are loaded; between them, evenly spread, are the keys that inserts add.
class key_plan {
 public:
  key_plan(std::uint64_t records, std::uint64_t inserts) noexcept : records_(records), inserts_(inserts) {}

  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] std::uint64_t inserts() const noexcept { return inserts_; }
  [[nodiscard]] std::uint64_t ranks() const noexcept { return records_ + inserts_; }
  // Ranks in the order of keys, all of them different.
  [[nodiscard]] std::uint64_t rank_of_record(std::uint64_t i) const noexcept { return i + i * inserts_ / records_; }
  [[nodiscard]] std::uint64_t rank_of_insert(std::uint64_t j) const noexcept {
    // Before it are the inserts below it, and the records that have at most j inserts before them.
    const std::uint64_t before = ((j + 1) * records_ + inserts_ - 1) / inserts_;
    return j + std::min(before, records_);
  }

 private:
  std::uint64_t records_;
  std::uint64_t inserts_;
};

class pair_contestant : public any_contestant<pair_labels, pair_subject, pair_ledger> {
 public:
  struct makers {
    store_drives::device_maker device;
    store_drives::staging_maker staging;
    std::function<std::unique_ptr<pair_subject>(const pair_drives&)> subject;
    unsigned devices = 1;
  };
  // `ranks`: of all keys of a run: those of the plan, and those of loads whose keys repeat.
  pair_contestant(pair_labels labels, makers make, key_plan plan, std::uint64_t ranks, std::size_t key_bytes,
                  std::uint64_t seed)
      : any_contestant(std::move(labels), {make.devices, std::move(make.device), std::move(make.staging)}, seed),
        make_subject_(std::move(make.subject)),
        plan_(plan),
        ranks_(std::max(ranks, plan.ranks())),
        keys_(key_bytes) {}

  // An empty store on drives as new, in place of the one before.
  void make(unsigned threads) {
    const store_drives& made = make_drives();
    pair_drives on;
    for (const auto& d : made.main()) on.main.push_back(&d->device());
    if (made.staging() != nullptr) on.staging = &made.staging()->device();
    subject_ = make_subject_(on);
    ledger_ = std::make_unique<pair_ledger>(ranks_, keys_, seed_++);
    inserted_.assign(threads, {});
    next_insert_.assign(threads, 0);
    state = {};
  }
  [[nodiscard]] const key_plan& plan() const noexcept { return plan_; }
  // REQUIRES: is_made().
  [[nodiscard]] const std::vector<std::unique_ptr<store_device>>& main() const noexcept { return drives().main(); }

  // The ranks of the keys that a thread added to the records, in the order of their inserts.
  [[nodiscard]] std::vector<std::uint64_t>& inserted(unsigned thread) noexcept { return inserted_[thread]; }
  // The number of a thread's next insert.
  [[nodiscard]] std::uint64_t& next_insert(unsigned thread) noexcept { return next_insert_[thread]; }

  struct {
    std::size_t loaded_for = 0;  // the size of values with which all records were loaded; 0: they were not
  } state;

 private:
  std::function<std::unique_ptr<pair_subject>(const pair_drives&)> make_subject_;
  key_plan plan_;
  std::uint64_t ranks_;
  pair_keys keys_;
  std::vector<std::vector<std::uint64_t>> inserted_;  // what each thread has inserted
  std::vector<std::uint64_t> next_insert_;
};

}  // namespace pmlab::store_bench
