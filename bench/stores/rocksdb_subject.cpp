#include "bench/stores/rocksdb_subject.hpp"
#include "bench/stores/peers/device_region.hpp"
#include "bench/stores/peers/rocksdb_files.hpp"
#include "bench/stores/peers/sync_timer.hpp"
#include "bench/stores/waiting_pair_queue.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>

namespace pmlab::store_bench {
namespace {

using rocksdb::Slice;
using rocksdb::Status;

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr int write_buffers = 4;
constexpr const char* main_folder = "/db";
constexpr const char* staging_folder = "/staging";

enum class placement { one_drive, all_staging, upper_levels, level_0 };

[[nodiscard]] placement placement_of(const pair_setup& setup, const pair_drives& drives) {
  if (drives.staging == nullptr) {
    if (!setup.place.empty() && setup.place != "capacity_only")
      throw error("--place " + setup.place + " of rocksdb without a staging drive", "give --staging");
    return placement::one_drive;
  }
  if (setup.place.empty() || setup.place == "staging_max_capacity") return placement::upper_levels;
  if (setup.place == "capacity_only") return placement::one_drive;
  if (setup.place == "staging_only") return placement::all_staging;
  if (setup.place == "staging_min_capacity") return placement::level_0;
  throw error("rocksdb has no placement " + setup.place,
              "use capacity_only, staging_only, staging_max_capacity or staging_min_capacity");
}

struct sizes {
  std::uint64_t write_buffer;  // each of an instance
  std::uint64_t cache;         // cache of all instances; 0: none
  bool cache_has_indexes;
};

[[nodiscard]] sizes sizes_of(const pair_setup& setup, std::size_t instances) {
  const std::uint64_t data = setup.records * setup.value_bytes;
  std::uint64_t buffers = std::clamp(data / 32, write_buffers * mebibyte, 256 * mebibyte);
  std::uint64_t cache = setup.cache_bytes;
  if (setup.memory_bytes != 0) {
    if (cache >= setup.memory_bytes)
      throw error("a cache of " + std::to_string(cache) + " bytes in a memory of " + std::to_string(setup.memory_bytes),
                  "give rocksdb more --memory, or less --cache");
    buffers = cache == 0 ? setup.memory_bytes / 2 : setup.memory_bytes - cache;
    cache = setup.memory_bytes - buffers;
  }
  const std::uint64_t of_one = std::clamp<std::uint64_t>(buffers / write_buffers / instances, 128 << 10, 64 * mebibyte);
  return {of_one, cache, setup.memory_bytes != 0};
}

[[nodiscard]] std::errc errc_of(const Status& s) {
  if (s.ok()) return {};
  // What a background thread met has its text only.
  const bool is_full = s.IsNoSpace() || s.ToString().find("No space left") != std::string::npos;
  return is_full ? std::errc::no_space_on_device : std::errc::io_error;
}

void check(const Status& s, const char* what) {
  if (!s.ok()) throw error(std::string("RocksDB cannot ") + what + ": " + s.ToString(), "give its drive more room");
}

// A database on one drive, or on a staging drive and one of capacity.
class instance {
 public:
  instance(blocks::any_device& main, std::unique_ptr<blocks::any_device> staging, placement place,
           rocksdb::Options options, std::uint64_t log_bytes)
      : main_(main), staging_(std::move(staging)), place_(place), options_(std::move(options)), log_bytes_(log_bytes) {
    open(true);
  }
  instance(const instance&) = delete;
  instance& operator=(const instance&) = delete;
  ~instance() { close(); }

  [[nodiscard]] rocksdb::DB& db() const noexcept { return *db_; }
  [[nodiscard]] std::uint64_t used_bytes() const {
    return main_files_->used_bytes() + (staging_files_ ? staging_files_->used_bytes() : 0);
  }

  void open(bool format) {
    main_files_.emplace(main_, format);
    rocksdb::Options o = options_;
    o.create_if_missing = format;
    if (staging_ == nullptr) {
      environment_ = stores::rocksdb_environment(*main_files_, log_bytes_);
    } else {
      staging_files_.emplace(*staging_, format);
      environment_ = stores::rocksdb_environment(*main_files_, *staging_files_, staging_folder, log_bytes_);
      o.db_paths = {{staging_folder, staging_target()}, {main_folder, main_.shape().bytes()}};
    }
    o.env = environment_.get();
    rocksdb::DB* opened = nullptr;
    check(rocksdb::DB::Open(o, staging_ == nullptr ? main_folder : staging_folder, &opened), "open");
    db_.reset(opened);
  }

  // The log is synced before.
  void close() {
    db_.reset();
    environment_.reset();
    staging_files_.reset();
    main_files_.reset();
  }

  // If anything was written since the last time.
  void sync_log() {
    const rocksdb::SequenceNumber now = db_->GetLatestSequenceNumber();
    if (now == synced_) return;
    if (db_->SyncWAL().ok()) synced_ = now;
  }

  void settle(bool log) {
    if (!log) check(db_->Flush({}), "write its buffers out");
    const auto is_busy = [&] {
      for (const char* const what : {"rocksdb.mem-table-flush-pending", "rocksdb.compaction-pending",
                                     "rocksdb.num-running-flushes", "rocksdb.num-running-compactions"}) {
        std::uint64_t count = 0;
        if (db_->GetIntProperty(what, &count) && count > 0) return true;
      }
      return false;
    };
    std::uint64_t stopped = 0;
    while (is_busy() && !(db_->GetIntProperty("rocksdb.background-errors", &stopped) && stopped > 0))
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // But for the block cache.
  [[nodiscard]] std::uint64_t memory_bytes() const {
    std::uint64_t all = 0;
    for (const char* const what : {"rocksdb.size-all-mem-tables", "rocksdb.estimate-table-readers-mem"}) {
      std::uint64_t bytes = 0;
      if (db_->GetIntProperty(what, &bytes)) all += bytes;
    }
    return all;
  }

 private:
  // Bytes of levels on staging. RocksDB puts a level there if its size fits beside those above. A third of the drive: a
  // level may grow beyond its size while compactions are late, their results need room, and a full drive ends RocksDB.
  [[nodiscard]] std::uint64_t staging_target() const {
    const std::uint64_t all = staging_->shape().bytes();
    if (place_ == placement::all_staging) return std::numeric_limits<std::uint64_t>::max() / 2;
    if (place_ == placement::level_0) return options_.max_bytes_for_level_base;
    const std::uint64_t reserved = 2 * write_buffers * options_.write_buffer_size + 4 * mebibyte;
    return all > reserved ? (all - reserved) / 3 : 0;
  }

  blocks::any_device& main_;
  std::unique_ptr<blocks::any_device> staging_;
  placement place_;
  rocksdb::Options options_;
  std::uint64_t log_bytes_;
  std::optional<stores::block_files> main_files_, staging_files_;
  std::unique_ptr<rocksdb::Env> environment_;
  std::unique_ptr<rocksdb::DB> db_;
  rocksdb::SequenceNumber synced_ = 0;
};

using instances = std::vector<std::unique_ptr<instance>>;

class session {
 public:
  using found_value = rocksdb::PinnableSlice;

  session(const instances& all, const rocksdb::WriteOptions& writes) : all_(all), writes_(writes) {}

  [[nodiscard]] std::errc put(std::string_view key, std::string_view value) {
    return errc_of(db_of(key).Put(writes_, slice(key), slice(value)));
  }
  [[nodiscard]] std::errc erase(std::string_view key) { return errc_of(db_of(key).Delete(writes_, slice(key))); }
  void get(std::string_view key, found_value& value, pair_answer& answer) {
    value.Reset();
    rocksdb::DB& db = db_of(key);
    const Status s = db.Get({}, db.DefaultColumnFamily(), slice(key), &value);
    answer.found = s.ok();
    if (s.ok())
      answer.value = std::as_bytes(std::span(value.data(), value.size()));
    else if (!s.IsNotFound())
      answer.error = errc_of(s);
  }
  [[nodiscard]] std::errc scan(std::string_view from, unsigned most, pair_list& found) {
    for (const auto& one : all_) {
      const std::unique_ptr<rocksdb::Iterator> at(one->db().NewIterator({}));
      at->Seek(slice(from));
      for (unsigned i = 0; i < most && at->Valid(); ++i, at->Next())
        found.add(at->key().ToStringView(), at->value().ToStringView());
      if (!at->status().ok()) return errc_of(at->status());
    }
    if (all_.size() > 1) found.sort(most);
    return {};
  }

 private:
  [[nodiscard]] static Slice slice(std::string_view text) { return {text.data(), text.size()}; }
  [[nodiscard]] rocksdb::DB& db_of(std::string_view key) const { return all_[drive_of(key, all_.size())]->db(); }

  const instances& all_;
  rocksdb::WriteOptions writes_;
};

class rocksdb_subject final : public pair_subject {
 public:
  rocksdb_subject(const pair_setup& setup, const pair_drives& drives)
      : log_(setup.log), loss_ms_(setup.loss_ms), counted_(rocksdb::CreateDBStatistics()) {
    if (drives.main.empty()) throw error("rocksdb has no drive", "give --device");
    const placement place = placement_of(setup, drives);
    const sizes of_one = sizes_of(setup, drives.main.size());
    if (of_one.cache != 0) cache_ = rocksdb::NewLRUCache(of_one.cache);
    const rocksdb::Options options = options_for(of_one);
    const bool preallocated = log_ && loss_ms_ == 0;
    writes_.disableWAL = !log_;
    writes_.sync = preallocated;
    for (std::size_t i = 0; i < drives.main.size(); ++i) {
      std::unique_ptr<blocks::any_device> staging;
      if (place != placement::one_drive) {
        const std::uint64_t part = drives.staging->shape().blocks / drives.main.size();
        staging = std::make_unique<blocks::any_device>(std::in_place_type<stores::device_region>, *drives.staging,
                                                       i * part, part);
      }
      all_.push_back(std::make_unique<instance>(*drives.main[i], std::move(staging), place, options,
                                                preallocated ? of_one.write_buffer * 3 / 2 : 0));
    }
    start_timer();
  }
  ~rocksdb_subject() override { timer_.reset(); }

  [[nodiscard]] pair_promises promises() const override {
    return {
        .is_ordered = true,
        .loss_ms = log_ ? static_cast<std::uint64_t>(std::ceil(loss_ms_)) : std::numeric_limits<std::uint64_t>::max(),
        .least_key = 0,
        .most_key = 65535};
  }
  [[nodiscard]] std::unique_ptr<pair_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<waiting_pair_queue<session>>(session(all_, writes_), depth);
  }
  void settle() override {
    for (const auto& one : all_) one->settle(log_);
  }

  [[nodiscard]] bool can_reopen() const override { return true; }
  void close() override {
    timer_.reset();
    for (const auto& one : all_) {
      if (log_) one->sync_log();
      one->close();
    }
  }
  void open() override {
    for (const auto& one : all_) one->open(false);
    start_timer();
  }

  [[nodiscard]] pair_space space() override {
    pair_space s{.used_bytes = 0, .memory_bytes = cache_ ? cache_->GetUsage() : 0, .medium_bytes = std::nullopt};
    for (const auto& one : all_) {
      *s.used_bytes += one->used_bytes();
      *s.memory_bytes += one->memory_bytes();
    }
    return s;
  }
  [[nodiscard]] std::vector<store_statistic> statistics() override {
    const auto of = [&](rocksdb::Tickers t) { return counted_->getTickerCount(t); };
    return {{"log_bytes", of(rocksdb::WAL_FILE_BYTES)},
            {"flush_bytes", of(rocksdb::FLUSH_WRITE_BYTES)},
            {"compaction_bytes", of(rocksdb::COMPACT_WRITE_BYTES)},
            {"compaction_read_bytes", of(rocksdb::COMPACT_READ_BYTES)},
            {"stall_us", of(rocksdb::STALL_MICROS)},
            {"cache_hits", of(rocksdb::BLOCK_CACHE_DATA_HIT)},
            {"cache_misses", of(rocksdb::BLOCK_CACHE_DATA_MISS)}};
  }
  [[nodiscard]] std::vector<std::string> remarks() override {
    if (log_) return {};
    return {"rocksdb without a log: a crash takes all that its write buffers have"};
  }

 private:
  [[nodiscard]] rocksdb::Options options_for(const sizes& of_one) const {
    rocksdb::Options o;
    o.compression = rocksdb::kNoCompression;
    o.write_buffer_size = of_one.write_buffer;
    o.max_write_buffer_number = write_buffers;
    o.target_file_size_base = std::max(of_one.write_buffer, mebibyte / 4);
    o.max_bytes_for_level_base = std::max(of_one.write_buffer * 4, mebibyte);
    o.max_background_jobs = static_cast<int>(std::max(2U, std::thread::hardware_concurrency()));
    // There is no page cache below, which would read ahead.
    o.compaction_readahead_size = 2 * mebibyte;
    o.writable_file_max_buffer_size = mebibyte;
    o.max_bgerror_resume_count = 0;  // a drive that failed is given up
    o.stats_dump_period_sec = 0;
    o.stats_persist_period_sec = 0;
    o.max_open_files = -1;
    o.statistics = counted_;
    counted_->set_stats_level(rocksdb::StatsLevel::kExceptHistogramOrTimers);
    rocksdb::BlockBasedTableOptions table;
    table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10));
    table.no_block_cache = cache_ == nullptr;
    table.block_cache = cache_;
    table.cache_index_and_filter_blocks = of_one.cache_has_indexes;
    table.pin_l0_filter_and_index_blocks_in_cache = of_one.cache_has_indexes;
    o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    return o;
  }

  void start_timer() {
    if (!log_ || loss_ms_ == 0) return;
    timer_.emplace(std::chrono::duration<double, std::milli>(loss_ms_), [this] {
      for (const auto& one : all_) one->sync_log();
    });
  }

  bool log_;
  double loss_ms_;
  std::shared_ptr<rocksdb::Statistics> counted_;
  std::shared_ptr<rocksdb::Cache> cache_;  // cache of all instances
  rocksdb::WriteOptions writes_;
  instances all_;
  std::optional<stores::sync_timer> timer_;
};

}  // namespace

std::unique_ptr<pair_subject> make_rocksdb(const pair_setup& setup, const pair_drives& drives) {
  return std::make_unique<rocksdb_subject>(setup, drives);
}

}  // namespace pmlab::store_bench
