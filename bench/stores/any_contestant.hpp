// A store of any kind in a run: its drives, its subject, and the ledger of its answers.
#pragma once

#include "bench/stores/store_drives.hpp"

#include <cstdint>
#include <memory>
#include <utility>

namespace pmlab::store_bench {

template <class Labels, class Subject, class Ledger>
class any_contestant {
 public:
  [[nodiscard]] bool is_made() const noexcept { return subject_ != nullptr; }

  [[nodiscard]] const Labels& labels() const noexcept { return labels_; }
  // REQUIRES for these: is_made().
  [[nodiscard]] const store_drives& drives() const noexcept { return drives_; }
  [[nodiscard]] Subject& subject() const noexcept { return *subject_; }
  [[nodiscard]] Ledger& ledger() const noexcept { return *ledger_; }

 protected:
  any_contestant(Labels labels, store_drives drives, std::uint64_t seed)
      : labels_(std::move(labels)), drives_(std::move(drives)), seed_(seed) {}

  // Drives as new, without a store: the one before is gone.
  const store_drives& make_drives() {
    subject_.reset();
    ledger_.reset();
    drives_.make();
    return drives_;
  }

 private:
  Labels labels_;
  store_drives drives_;

 protected:
  std::uint64_t seed_;  // the next ledger has it
  std::unique_ptr<Ledger> ledger_;
  std::unique_ptr<Subject> subject_;  // on the drives
};

}  // namespace pmlab::store_bench
