#include "bench/stores/leveldb_subject.hpp"
#include "bench/stores/library_pair_subject.hpp"
#include "bench/stores/peers/leveldb_files.hpp"

#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>

#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <leveldb/write_batch.h>

namespace pmlab::store_bench {
namespace {

using leveldb::Slice;
using leveldb::Status;

constexpr std::uint64_t mebibyte = 1 << 20;
constexpr unsigned write_buffers = 2;               // one is filled while the other is written out
constexpr unsigned long files_that_are_merged = 4;  // files of level 0
constexpr const char* folder = "/db";

[[nodiscard]] Slice slice_of(std::string_view s) { return {s.data(), s.size()}; }

// LevelDB tells a full drive from no other failure.
[[nodiscard]] std::errc errc_of(const Status& s, const stores::block_files& files) {
  if (s.ok()) return {};
  return files.free_bytes() < 4 * mebibyte ? std::errc::no_space_on_device : std::errc::io_error;
}

// A database on one drive.
class instance {
 public:
  instance(blocks::any_device& drive, leveldb::Options options) : drive_(drive), options_(options) { open(true); }
  instance(const instance&) = delete;
  instance& operator=(const instance&) = delete;
  ~instance() { close(); }

  [[nodiscard]] leveldb::DB& db() const noexcept { return *db_; }
  [[nodiscard]] const stores::block_files& files() const noexcept { return *files_; }

  void open(bool format) {
    files_.emplace(drive_, format);
    environment_ = stores::leveldb_environment(*files_);
    leveldb::Options o = options_;
    o.create_if_missing = format;
    o.env = environment_.get();
    leveldb::DB* opened = nullptr;
    const Status s = leveldb::DB::Open(o, folder, &opened);
    if (!s.ok()) throw error("LevelDB cannot open: " + s.ToString(), "give its drive more room");
    db_.reset(opened);
  }
  // The log is synced before.
  void close() {
    db_.reset();
    environment_.reset();
    files_.reset();
  }

  [[nodiscard]] std::errc scan(std::string_view from, unsigned most, pair_list& found) const {
    const std::unique_ptr<leveldb::Iterator> at(db_->NewIterator({}));
    return errc_of(add_pairs(*at, slice_of(from), most, found), *files_);
  }

  void changed() noexcept { changed_.store(true, std::memory_order_relaxed); }
  // If anything was written since the last time. LevelDB syncs its log with a write only: an empty one.
  void sync_log() {
    if (!changed_.exchange(false, std::memory_order_relaxed)) return;
    leveldb::WriteOptions synced;
    synced.sync = true;
    leveldb::WriteBatch nothing;
    if (!db_->Write(synced, &nothing).ok()) changed();
  }

 private:
  blocks::any_device& drive_;
  leveldb::Options options_;
  std::optional<stores::block_files> files_;
  std::unique_ptr<leveldb::Env> environment_;
  std::unique_ptr<leveldb::DB> db_;
  std::atomic<bool> changed_{false};
};

class session final : public library_session<instance> {
 public:
  using found_value = std::string;

  session(const databases<instance>& all, bool synced) : library_session(all) { writes_.sync = synced; }

  [[nodiscard]] std::errc put(std::string_view key, std::string_view value) {
    return change(key, [&](leveldb::DB& db) { return db.Put(writes_, slice_of(key), slice_of(value)); });
  }
  [[nodiscard]] std::errc erase(std::string_view key) {
    return change(key, [&](leveldb::DB& db) { return db.Delete(writes_, slice_of(key)); });
  }
  void get(std::string_view key, found_value& value, pair_answer& answer) {
    instance& one = database_of(key);
    const Status s = one.db().Get({}, slice_of(key), &value);
    answer.found = s.ok();
    if (s.ok())
      answer.value = std::as_bytes(std::span(value));
    else if (!s.IsNotFound())
      answer.error = errc_of(s, one.files());
  }

 private:
  template <class Change>
  [[nodiscard]] std::errc change(std::string_view key, Change&& made_in) {
    instance& one = database_of(key);
    const Status s = made_in(one.db());
    one.changed();
    return errc_of(s, one.files());
  }

  leveldb::WriteOptions writes_;
};

// All databases share them, and end before them.
struct shared_parts {
  std::unique_ptr<const leveldb::FilterPolicy> filter{leveldb::NewBloomFilterPolicy(10)};
  std::unique_ptr<leveldb::Cache> cache;
};

class leveldb_subject final : private shared_parts, public library_pair_subject<instance> {
 public:
  leveldb_subject(const pair_setup& setup, const pair_drives& drives)
      : library_pair_subject("leveldb", drives, setup.loss_ms, true) {
    if (!setup.log) throw error("leveldb cannot be without its log", "leave --log off away, or measure rocksdb");
    const database_memory memory = memory_of(setup, "leveldb");
    cache.reset(leveldb::NewLRUCache(memory.cache));
    leveldb::Options o;
    o.compression = leveldb::kNoCompression;
    o.filter_policy = filter.get();
    o.block_cache = cache.get();
    o.write_buffer_size = buffer_bytes_of(memory, write_buffers, drives.main.size());
    o.max_open_files = 1 << 20;
    for (blocks::any_device* const drive : drives.main) all_.push_back(std::make_unique<instance>(*drive, o));
    start_timer();
  }

  [[nodiscard]] pair_promises promises() const override { return promises_for(0, 65535); }
  [[nodiscard]] std::unique_ptr<pair_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<waiting_pair_queue<session>>(session(all_, syncs_each_change()), depth);
  }

  // No property of LevelDB tells a running compaction: its statistics stay the same for a while when none runs.
  void settle() override {
    for (const auto& one : all_) {
      std::string before, now, waiting;
      do {
        before = now;
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        static_cast<void>(one->db().GetProperty("leveldb.stats", &now));
        static_cast<void>(one->db().GetProperty("leveldb.num-files-at-level0", &waiting));
      } while (now != before || (std::stoul(waiting) >= files_that_are_merged && one->files().free_bytes() > mebibyte));
    }
  }

  [[nodiscard]] pair_space space() override {
    pair_space s{.used_bytes = 0, .memory_bytes = 0, .medium_bytes = std::nullopt};
    for (const auto& one : all_) {
      *s.used_bytes += one->files().used_bytes();
      // The property counts its buffers and the cache, which all instances share.
      std::string text;
      if (one->db().GetProperty("leveldb.approximate-memory-usage", &text)) *s.memory_bytes += std::stoull(text);
    }
    *s.memory_bytes -= (all_.size() - 1) * cache->TotalCharge();
    return s;
  }
};

}  // namespace

std::unique_ptr<pair_subject> make_leveldb(const pair_setup& setup, const pair_drives& drives) {
  return std::make_unique<leveldb_subject>(setup, drives);
}

}  // namespace pmlab::store_bench
