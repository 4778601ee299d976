// A key-value store in a run: its drives, its subject, the ledger of its keys, and which of them it has. Made again for
// each load.
#pragma once

#include <pmlab/blocks/any_device.hpp>
#include "bench/stores/pair_ledger.hpp"
#include "bench/stores/pair_stores.hpp"
#include "bench/stores/pair_subject.hpp"
#include "bench/stores/store_device.hpp"

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

class pair_contestant {
 public:
  using device_maker = std::function<std::unique_ptr<store_device>(unsigned)>;  // of a number, from 0
  using staging_maker = std::function<std::unique_ptr<store_device>()>;         // none: no staging
  using subject_maker = std::function<std::unique_ptr<pair_subject>(const pair_drives&)>;
  struct makers {
    device_maker device;
    staging_maker staging;
    subject_maker subject;
    unsigned devices = 1;
  };
  // `ranks`: of all keys of a run: those of the plan, and those of loads whose keys repeat.
  pair_contestant(pair_labels labels, makers make, key_plan plan, std::uint64_t ranks, std::size_t key_bytes,
                  std::uint64_t seed)
      : labels_(std::move(labels)),
        make_(std::move(make)),
        plan_(plan),
        ranks_(std::max(ranks, plan.ranks())),
        keys_(key_bytes),
        seed_(seed) {}

  // An empty store on drives as new, in place of the one before.
  void make(unsigned threads) {
    subject_.reset();
    ledger_.reset();
    main_.clear();
    staging_.reset();
    pair_drives drives;
    for (unsigned i = 0; i < make_.devices; ++i) {
      main_.push_back(make_.device(i));
      drives.main.push_back(&main_.back()->device());
    }
    if (make_.staging) {
      staging_ = make_.staging();
      drives.staging = &staging_->device();
    }
    subject_ = make_.subject(drives);
    ledger_ = std::make_unique<pair_ledger>(ranks_, keys_, seed_++);
    inserted_.assign(threads, {});
    next_insert_.assign(threads, 0);
    loaded_for_ = 0;
  }
  [[nodiscard]] bool is_made() const noexcept { return subject_ != nullptr; }

  [[nodiscard]] const pair_labels& labels() const noexcept { return labels_; }
  [[nodiscard]] const key_plan& plan() const noexcept { return plan_; }
  // REQUIRES for these: is_made().
  [[nodiscard]] const std::vector<std::unique_ptr<store_device>>& main() const noexcept { return main_; }
  [[nodiscard]] store_device* staging() const noexcept { return staging_.get(); }
  [[nodiscard]] pair_subject& subject() noexcept { return *subject_; }
  [[nodiscard]] pair_ledger& ledger() noexcept { return *ledger_; }

  // All drives of the store.
  template <class Visit>
  void for_each_device(Visit&& visit) const {
    for (const auto& d : main_) visit(*d);
    if (staging_ != nullptr) visit(*staging_);
  }

  // The ranks of the keys that a thread added to the records, in the order of their inserts.
  [[nodiscard]] std::vector<std::uint64_t>& inserted(unsigned thread) noexcept { return inserted_[thread]; }
  // The number of a thread's next insert.
  [[nodiscard]] std::uint64_t& next_insert(unsigned thread) noexcept { return next_insert_[thread]; }

  // The size of values with which all records were loaded; 0: they were not.
  [[nodiscard]] std::size_t loaded_for() const noexcept { return loaded_for_; }
  void set_loaded_for(std::size_t value_bytes) noexcept { loaded_for_ = value_bytes; }

 private:
  pair_labels labels_;
  makers make_;
  key_plan plan_;
  std::uint64_t ranks_;
  pair_keys keys_;
  std::uint64_t seed_;
  std::vector<std::unique_ptr<store_device>> main_;
  std::unique_ptr<store_device> staging_;
  std::unique_ptr<pair_subject> subject_;
  std::unique_ptr<pair_ledger> ledger_;
  std::vector<std::vector<std::uint64_t>> inserted_;  // of each thread
  std::vector<std::uint64_t> next_insert_;
  std::size_t loaded_for_ = 0;
};

}  // namespace pmlab::store_bench
