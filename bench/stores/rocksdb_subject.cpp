#include "bench/stores/rocksdb_subject.hpp"
#include "bench/stores/library_pair_subject.hpp"
#include "bench/stores/peers/device_region.hpp"
#include "bench/stores/peers/rocksdb_files.hpp"

#include <algorithm>
#include <chrono>
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
constexpr unsigned write_buffers = 4;
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

[[nodiscard]] Slice slice_of(std::string_view text) { return {text.data(), text.size()}; }

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

  [[nodiscard]] std::errc scan(std::string_view from, unsigned most, pair_list& found) const {
    const std::unique_ptr<rocksdb::Iterator> at(db_->NewIterator({}));
    return errc_of(add_pairs(*at, slice_of(from), most, found));
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

class session final : public library_session<instance> {
 public:
  using found_value = rocksdb::PinnableSlice;

  session(const databases<instance>& all, const rocksdb::WriteOptions& writes)
      : library_session(all), writes_(writes) {}

  [[nodiscard]] std::errc put(std::string_view key, std::string_view value) {
    return errc_of(db_of(key).Put(writes_, slice_of(key), slice_of(value)));
  }
  [[nodiscard]] std::errc erase(std::string_view key) { return errc_of(db_of(key).Delete(writes_, slice_of(key))); }
  void get(std::string_view key, found_value& value, pair_answer& answer) {
    value.Reset();
    rocksdb::DB& db = db_of(key);
    const Status s = db.Get({}, db.DefaultColumnFamily(), slice_of(key), &value);
    answer.found = s.ok();
    if (s.ok())
      answer.value = std::as_bytes(std::span(value.data(), value.size()));
    else if (!s.IsNotFound())
      answer.error = errc_of(s);
  }

 private:
  [[nodiscard]] rocksdb::DB& db_of(std::string_view key) const { return database_of(key).db(); }

  rocksdb::WriteOptions writes_;
};

class rocksdb_subject final : public library_pair_subject<instance> {
 public:
  rocksdb_subject(const pair_setup& setup, const pair_drives& drives)
      : library_pair_subject("rocksdb", drives, setup.loss_ms, setup.log), counted_(rocksdb::CreateDBStatistics()) {
    const placement place = placement_of(setup, drives);
    const database_memory memory = memory_of(setup, "rocksdb");
    const std::uint64_t buffer_bytes = buffer_bytes_of(memory, write_buffers, drives.main.size());
    if (memory.cache != 0) cache_ = rocksdb::NewLRUCache(memory.cache);
    const rocksdb::Options options = options_for(buffer_bytes, setup.memory_bytes != 0);
    const bool preallocated = has_log() && syncs_each_change();
    writes_.disableWAL = !has_log();
    writes_.sync = preallocated;
    for (std::size_t i = 0; i < drives.main.size(); ++i) {
      std::unique_ptr<blocks::any_device> staging;
      if (place != placement::one_drive) {
        const std::uint64_t part = drives.staging->shape().blocks / drives.main.size();
        staging = std::make_unique<blocks::any_device>(std::in_place_type<stores::device_region>, *drives.staging,
                                                       i * part, part);
      }
      all_.push_back(std::make_unique<instance>(*drives.main[i], std::move(staging), place, options,
                                                preallocated ? buffer_bytes * 3 / 2 : 0));
    }
    start_timer();
  }

  [[nodiscard]] pair_promises promises() const override { return promises_for(0, 65535); }
  [[nodiscard]] std::unique_ptr<pair_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<waiting_pair_queue<session>>(session(all_, writes_), depth);
  }
  void settle() override {
    for (const auto& one : all_) one->settle(has_log());
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
    if (has_log()) return {};
    return {"rocksdb without a log: a crash takes all that its write buffers have"};
  }

 private:
  [[nodiscard]] rocksdb::Options options_for(std::uint64_t buffer_bytes, bool cache_has_indexes) const {
    rocksdb::Options o;
    o.compression = rocksdb::kNoCompression;
    o.write_buffer_size = buffer_bytes;
    o.max_write_buffer_number = static_cast<int>(write_buffers);
    o.target_file_size_base = std::max(buffer_bytes, mebibyte / 4);
    o.max_bytes_for_level_base = std::max(buffer_bytes * 4, mebibyte);
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
    table.cache_index_and_filter_blocks = cache_has_indexes;
    table.pin_l0_filter_and_index_blocks_in_cache = cache_has_indexes;
    o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
    return o;
  }

  std::shared_ptr<rocksdb::Statistics> counted_;
  std::shared_ptr<rocksdb::Cache> cache_;  // cache of all instances
  rocksdb::WriteOptions writes_;
};

}  // namespace

std::unique_ptr<pair_subject> make_rocksdb(const pair_setup& setup, const pair_drives& drives) {
  return std::make_unique<rocksdb_subject>(setup, drives);
}

}  // namespace pmlab::store_bench
