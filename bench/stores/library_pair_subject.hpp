// What stores of pairs that are libraries of others (LevelDB, LMDB, RocksDB) share: a database on each drive, keys that
// are spread over them, and a timer that syncs what a crash may take.
#pragma once

#include <pmlab/base/error.hpp>
#include "bench/stores/pair_stores.hpp"
#include "bench/stores/peers/sync_timer.hpp"
#include "bench/stores/waiting_pair_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace pmlab::store_bench {

template <class Database>
using databases = std::vector<std::unique_ptr<Database>>;

// DRAM of all databases together.
struct database_memory {
  std::uint64_t buffers = 0;  // write buffers
  std::uint64_t cache = 0;
};

// The memory that the setup gives; without --memory, write buffers of 1/32 of the data. Throws pmlab::error.
[[nodiscard]] inline database_memory memory_of(const pair_setup& setup, const std::string& store) {
  constexpr std::uint64_t mebibyte = 1 << 20;
  if (setup.memory_bytes == 0)
    return {std::clamp(setup.records * setup.value_bytes / 32, 4 * mebibyte, 256 * mebibyte), setup.cache_bytes};
  if (setup.cache_bytes >= setup.memory_bytes)
    throw error("a cache of " + std::to_string(setup.cache_bytes) + " bytes in a memory of " +
                    std::to_string(setup.memory_bytes),
                "give " + store + " more --memory, or less --cache");
  const std::uint64_t buffers =
      setup.cache_bytes == 0 ? setup.memory_bytes / 2 : setup.memory_bytes - setup.cache_bytes;
  return {buffers, setup.memory_bytes - buffers};
}

// The bytes of one of `count` write buffers of each database.
[[nodiscard]] inline std::uint64_t buffer_bytes_of(const database_memory& all, unsigned count, std::size_t databases) {
  return std::clamp<std::uint64_t>(all.buffers / count / databases, 128 << 10, 64 << 20);
}

// Adds up to `most` pairs from `from` on. Returns the iterator's status: LevelDB's and RocksDB's are alike.
template <class Iterator, class Slice>
[[nodiscard]] auto add_pairs(Iterator& at, const Slice& from, unsigned most, pair_list& found) {
  at.Seek(from);
  for (unsigned i = 0; i < most && at.Valid(); ++i, at.Next())
    found.add({at.key().data(), at.key().size()}, {at.value().data(), at.value().size()});
  return at.status();
}

// The part of a session (waiting_pair_queue.hpp) that depends on no library.
template <class Database>
class library_session {
 public:
  [[nodiscard]] std::errc scan(std::string_view from, unsigned most, pair_list& found) {
    for (const auto& one : all_)
      if (const std::errc failed = one->scan(from, most, found); failed != std::errc{}) return failed;
    if (all_.size() > 1) found.sort(most);
    return {};
  }

 protected:
  explicit library_session(const databases<Database>& all) : all_(all) {}
  [[nodiscard]] Database& database_of(std::string_view key) const { return *all_[drive_of(key, all_.size())]; }

 private:
  const databases<Database>& all_;
};

// `Database`: open(format), close(), sync_log() and, for the session, scan(from, most, found). Each begins open.
template <class Database>
class library_pair_subject : public pair_subject {
 public:
  [[nodiscard]] bool can_reopen() const override { return true; }
  void close() override {
    timer_.reset();
    for (const auto& one : all_) {
      if (has_log_) one->sync_log();
      one->close();
    }
  }
  void open() override {
    for (const auto& one : all_) one->open(false);
    start_timer();
  }

 protected:
  // `loss_ms`: the interval of the timer; 0: each change is synced. `has_log`: false: nothing is ever synced. Throws
  // pmlab::error: there is no drive.
  library_pair_subject(const std::string& store, const pair_drives& drives, double loss_ms, bool has_log)
      : loss_ms_(loss_ms), has_log_(has_log) {
    if (drives.main.empty()) throw error(store + " has no drive", "give --device");
  }

  // When all databases are made.
  void start_timer() {
    if (!has_log_ || loss_ms_ == 0) return;
    timer_.emplace(std::chrono::duration<double, std::milli>(loss_ms_), [this] {
      for (const auto& one : all_) one->sync_log();
    });
  }
  [[nodiscard]] bool syncs_each_change() const noexcept { return loss_ms_ == 0; }
  [[nodiscard]] bool has_log() const noexcept { return has_log_; }
  [[nodiscard]] pair_promises promises_for(std::size_t least_key, std::size_t most_key) const {
    return {.is_ordered = true,
            .loss_ms =
                has_log_ ? static_cast<std::uint64_t>(std::ceil(loss_ms_)) : std::numeric_limits<std::uint64_t>::max(),
            .least_key = least_key,
            .most_key = most_key};
  }

  databases<Database> all_;

 private:
  double loss_ms_;
  bool has_log_;
  std::optional<stores::sync_timer> timer_;  // ends before the databases
};

}  // namespace pmlab::store_bench
