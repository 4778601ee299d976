#include "bench/stores/peers/rocksdb_meta.hpp"
#include "bench/stores/peers/rocksdb_files.hpp"

#include <pmlab/base/checksum.hpp>
#include <pmlab/blocks/buffer.hpp>
#include <pmlab/blocks/synchronous.hpp>
#include <pmlab/stores/chunk_store/free_map.hpp>
#include <pmlab/stores/chunk_store/limbo.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <deque>
#include <limits>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <rocksdb/db.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

namespace pmlab::stores {
namespace {

using detail::chunk_store::extent;
using detail::chunk_store::free_map;
using detail::chunk_store::limbo;

constexpr std::uint32_t unit_bytes = 4096;  // at least
constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t row_units = 32;
constexpr std::size_t most_deferred = 256;  // units; more writes are redirected
constexpr std::size_t deferred_batch = 32;  // units that are written to their places together
constexpr unsigned least_drive_depth = 64;

// Rows: 'x' and number of 32 units -> the places of these, each run with the checksums of its units; 'd' and unit ->
// the data of a deferred write; 's' -> the sizes.
std::string key_of(char kind, std::uint32_t number) {
  return {kind, static_cast<char>(number >> 24), static_cast<char>(number >> 16), static_cast<char>(number >> 8),
          static_cast<char>(number)};
}
std::uint32_t number_of(const rocksdb::Slice& key) {
  std::uint32_t n = 0;
  for (std::size_t i = 1; i < 5; ++i) n = n << 8 | static_cast<unsigned char>(key[i]);
  return n;
}

void check(const rocksdb::Status& s, const char* what) {
  if (!s.ok()) throw error(std::string("RocksDB cannot ") + what + ": " + s.ToString(), "give its device more room");
}

// As BlueStore has them, but for the sizes, which are those of its device: no compression, four write buffers, logs
// used again.
rocksdb::Options options_for(const blocks::any_device& meta, const rocksdb_meta_options& given) {
  rocksdb::Options o;
  o.create_if_missing = given.format;
  o.compression = rocksdb::kNoCompression;
  o.write_buffer_size = std::clamp<std::uint64_t>(meta.shape().bytes() / 64, 1 << 20, 64 << 20);
  o.max_write_buffer_number = 4;
  o.target_file_size_base = o.write_buffer_size;
  o.max_bytes_for_level_base = o.write_buffer_size * 4;
  o.max_background_jobs = static_cast<int>(std::max(1U, given.threads));
  o.writable_file_max_buffer_size = 1 << 20;
  o.max_bgerror_resume_count = 0;  // a device that failed is given up
  o.stats_dump_period_sec = 0;
  o.stats_persist_period_sec = 0;
  o.max_open_files = -1;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(64 << 20);
  o.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  return o;
}

std::uint64_t log_bytes_for(const rocksdb::Options& o) { return o.write_buffer_size + o.write_buffer_size / 2; }

// One of a queue.
struct operation {
  enum class kind : std::uint8_t { read, redirected, deferred, discard };
  kind what = kind::read;
  bool committed = false;  // under the store's commit lock
  std::uint32_t first = 0;
  std::uint32_t count = 0;  // units
  std::byte* data = nullptr;
  std::uint64_t tag = 0;
  std::errc error{};
  std::size_t transfers = 0;  // not ended
  limbo::generation generation = 0;
  std::vector<extent> places;  // places of a redirected write
  // The checksums of its units; a read must find these. Empty: there are none.
  std::vector<std::uint32_t> sums;
  std::vector<bool> from_device;  // units of a read with checksums that have them
};

}  // namespace

class rocksdb_meta::store {
 public:
  store(blocks::any_device& data, blocks::any_device& meta, const rocksdb_meta_options& given)
      : data_(data), unit_(std::max(unit_bytes, data.shape().block_bytes)), given_(given), files_(meta, given.format) {
    if (given.volume_bytes == 0 || given.volume_bytes % unit_ != 0)
      throw error("a volume of " + std::to_string(given.volume_bytes) + " bytes",
                  "use a multiple of " + std::to_string(unit_) + " bytes");
    if (data.shape().bytes() < given.volume_bytes)
      throw error("device " + data.name() + " is smaller than the volume", "make it larger, or the volume smaller");
    if (data.shape().bytes() / unit_ >= none) throw error("device " + data.name() + " is too large", "use 16 TB");
    rocksdb::Options options = options_for(meta, given);
    environment_ = rocksdb_environment(files_, log_bytes_for(options));
    options.env = environment_.get();
    rocksdb::DB* opened = nullptr;
    check(rocksdb::DB::Open(options, "/db", &opened), "open");
    db_.reset(opened);
    load();
  }

  [[nodiscard]] blocks::any_device& device() noexcept { return data_; }
  [[nodiscard]] std::uint32_t unit() const noexcept { return unit_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return given_.volume_bytes; }
  [[nodiscard]] std::uint64_t deferred_bytes() const noexcept { return given_.deferred_bytes; }
  [[nodiscard]] bool has_checksums() const noexcept { return given_.checksums; }
  [[nodiscard]] std::uint32_t sum_of(const std::byte* unit) const noexcept {
    return static_cast<std::uint32_t>(checksum(unit, unit_));
  }
  [[nodiscard]] std::uint32_t device_blocks_per_unit() const noexcept { return unit_ / data_.shape().block_bytes; }

  [[nodiscard]] rocksdb_meta_stats stats() const {
    return {redirected_.load(std::memory_order_relaxed),   deferred_writes_.load(std::memory_order_relaxed),
            commits_.load(std::memory_order_relaxed),      free_.free_blocks() * unit_,
            std::uint64_t{free_.longest_extent()} * unit_, meta_bytes_ - files_.free_bytes()};
  }

  // Places for a redirected write; none: there is no space.
  [[nodiscard]] std::vector<extent> allocate(std::uint32_t count) { return free_.take_pieces(count); }
  // Frees the places of a write that failed.
  void give_back(std::span<const extent> places) {
    for (const extent& e : places) free_.give(e);
  }

  // True: the write may wait as a row. Its units have places, and not too many wait.
  [[nodiscard]] bool can_defer(const operation& o) {
    if (std::uint64_t{o.count} * unit_ > given_.deferred_bytes) return false;  // 0: none is
    const std::scoped_lock lock(map_mutex_);
    if (deferred_.size() + o.count > most_deferred) return false;
    return std::all_of(map_.begin() + o.first, map_.begin() + o.first + o.count, [](auto p) { return p != none; });
  }

  // Calls transfer(place, units, data) for each part of a read that is on the device; the others are done.
  template <class Transfer>
  void plan_read(operation& o, Transfer&& transfer) {
    const std::scoped_lock lock(map_mutex_);
    o.generation = gone_.enter();
    if (given_.checksums) {
      o.sums.assign(sums_.begin() + o.first, sums_.begin() + o.first + o.count);
      o.from_device.assign(o.count, false);
    }
    const auto is_deferred = [&](std::uint32_t unit) { return !deferred_.empty() && deferred_.contains(unit); };
    for (std::uint32_t i = 0; i < o.count;) {
      std::byte* const to = o.data + std::size_t{i} * unit_;
      const std::uint32_t unit = o.first + i;
      const std::uint32_t place = map_[unit];
      if (is_deferred(unit)) {
        std::memcpy(to, deferred_.at(unit).data.data(), unit_);
        ++i;
        continue;
      }
      if (place == none) {
        std::memset(to, 0, unit_);
        ++i;
        continue;
      }
      std::uint32_t run = 1;
      while (i + run < o.count && map_[unit + run] == place + run && !is_deferred(unit + run)) ++run;
      transfer(place, run, to);
      if (given_.checksums) std::fill_n(o.from_device.begin() + i, run, true);
      i += run;
    }
  }
  // The end of a read that was planned: right, wrong, or its units were written meanwhile, and it is to be made again.
  enum class read_end : std::uint8_t { right, overtaken, damaged };
  [[nodiscard]] read_end compare(const operation& o) {
    for (std::uint32_t i = 0; i < o.sums.size(); ++i) {
      if (!o.from_device[i] || sum_of(o.data + std::size_t{i} * unit_) == o.sums[i]) continue;
      const std::scoped_lock lock(map_mutex_);
      return sums_[o.first + i] == o.sums[i] ? read_end::damaged : read_end::overtaken;
    }
    return read_end::right;
  }
  void end_read(const operation& o) {
    const std::scoped_lock lock(map_mutex_);
    gone_.leave(o.generation, free_);
  }

  // Makes writes durable whose data is: those of this thread, and those that other threads brought meanwhile. The first
  // thread commits for all that wait.
  void commit(std::span<operation* const> mine) {
    {
      const std::scoped_lock lock(waiting_mutex_);
      waiting_.insert(waiting_.end(), mine.begin(), mine.end());
    }
    const std::scoped_lock committing(commit_mutex_);
    if (std::ranges::all_of(mine, &operation::committed)) return;
    std::vector<operation*> all;
    {
      const std::scoped_lock lock(waiting_mutex_);
      all.swap(waiting_);
    }
    commit_all(all);
  }

  // ---- deferred writes: one batch of them at a time is written to its places.

  struct deferred_write {
    std::uint32_t unit;
    std::uint32_t place;
    std::uint64_t version;
    std::byte* data;  // data of the batch
  };
  struct batch {
    limbo::generation generation = 0;
    std::vector<deferred_write> writes;
    blocks::buffer data;
    std::size_t transfers = 0;
  };
  // Nothing if there are too few, or another thread writes a batch.
  [[nodiscard]] std::optional<batch> begin_batch() {
    const std::scoped_lock lock(map_mutex_);
    if (batch_runs_ || unplaced_ < deferred_batch) return std::nullopt;
    batch b;
    b.data = blocks::buffer(unplaced_ * unit_);
    std::byte* to = b.data.data();
    for (const auto& [unit, d] : deferred_) {
      if (d.placed) continue;
      std::memcpy(to, d.data.data(), unit_);
      b.writes.push_back({unit, map_[unit], d.version, to});
      to += unit_;
    }
    // Their places stay theirs until all of it is written.
    b.generation = gone_.enter();
    batch_runs_ = true;
    return b;
  }
  void end_batch(const batch& b, bool succeeded) {
    const std::scoped_lock lock(map_mutex_);
    gone_.leave(b.generation, free_);
    batch_runs_ = false;
    if (!succeeded) {
      failed_ = true;
      return;
    }
    for (const deferred_write& w : b.writes) {
      const auto at = deferred_.find(w.unit);
      if (at == deferred_.end() || at->second.version != w.version) continue;
      at->second.placed = true;
      --unplaced_;
      placed_.push_back(w.unit);
    }
  }

 private:
  struct waiting_row {
    std::uint64_t version = 0;
    bool placed = false;
    blocks::buffer data;
  };

  void load() {
    map_.assign(given_.volume_bytes / unit_, none);
    if (given_.checksums) sums_.assign(map_.size(), 0);
    std::string sizes;
    const std::string mine =
        std::to_string(given_.volume_bytes) + "/" + std::to_string(unit_) + (given_.checksums ? "/checksums" : "");
    if (given_.format) {
      rocksdb::WriteOptions synced;
      synced.sync = true;
      check(db_->Put(synced, "s", mine), "write");
    } else {
      check(db_->Get({}, "s", &sizes), "read");
      if (sizes != mine)
        throw error("the store has volume bytes/unit " + sizes + ", not " + mine, "give it the same sizes again");
    }
    const auto units = static_cast<std::uint32_t>(data_.shape().bytes() / unit_);
    std::vector<bool> used(units, false);
    const std::unique_ptr<rocksdb::Iterator> rows(db_->NewIterator({}));
    for (rows->Seek("x"); rows->Valid() && rows->key()[0] == 'x'; rows->Next()) {
      const rocksdb::Slice value = rows->value();
      for (std::size_t at = 0; at < value.size();) {
        const auto base = number_of(rows->key()) * row_units + static_cast<unsigned char>(value[at]);
        const std::uint32_t count = static_cast<unsigned char>(value[at + 1]);
        std::uint32_t place = 0;
        std::memcpy(&place, value.data() + at + 2, sizeof place);
        at += row_extent_bytes;
        for (std::uint32_t i = 0; i < count; ++i) {
          map_.at(base + i) = place + i;
          used.at(place + i) = true;
        }
        if (!given_.checksums) continue;
        std::memcpy(&sums_.at(base), value.data() + at, count * sizeof(std::uint32_t));
        at += count * sizeof(std::uint32_t);
      }
    }
    check(rows->status(), "read");
    for (std::uint32_t u = 0; u < units;) {
      std::uint32_t end = u;
      while (end < units && used[end] == used[u]) ++end;
      if (!used[u]) free_.give({u, end - u});
      u = end;
    }
    replay(*rows);
  }

  // Writes whose rows are there, to their places. (D2) < (D3)
  void replay(rocksdb::Iterator& rows) {
    blocks::synchronous drive(data_);
    rocksdb::WriteBatch done;
    blocks::buffer data(unit_);
    for (rows.Seek("d"); rows.Valid() && rows.key()[0] == 'd'; rows.Next()) {
      std::memcpy(data.data(), rows.value().data(), unit_);
      drive.write_durable(std::uint64_t{map_.at(number_of(rows.key()))} * device_blocks_per_unit(), data.bytes());
      done.Delete(rows.key());
    }
    check(rows.status(), "read");
    rocksdb::WriteOptions synced;
    synced.sync = true;
    check(db_->Write(synced, &done), "write");
  }

  static constexpr std::size_t row_extent_bytes = 6;  // first unit in the row, units, place
  using row_text = std::array<char, row_units*(row_extent_bytes + sizeof(std::uint32_t))>;

  [[nodiscard]] std::string_view row_of(std::uint32_t number, row_text& text) const {
    const std::uint32_t begin = number * row_units;
    const std::uint32_t end = std::min<std::uint32_t>(begin + row_units, static_cast<std::uint32_t>(map_.size()));
    std::size_t size = 0;
    for (std::uint32_t u = begin; u < end;) {
      std::uint32_t run = 1;
      if (map_[u] != none) {
        while (u + run < end && map_[u + run] == map_[u] + run) ++run;
        text[size] = static_cast<char>(u - begin);
        text[size + 1] = static_cast<char>(run);
        std::memcpy(&text[size + 2], &map_[u], sizeof map_[u]);
        size += row_extent_bytes;
        if (given_.checksums) {
          std::memcpy(&text[size], &sums_[u], run * sizeof sums_[u]);
          size += run * sizeof sums_[u];
        }
      }
      u += run;
    }
    return {text.data(), size};
  }

  // With commit_mutex_, under which alone map_ changes.
  void commit_all(std::span<operation* const> all) {
    rocksdb::WriteBatch rows;
    replaced_.clear();
    touched_.clear();
    {
      const std::scoped_lock lock(map_mutex_);
      for (const std::uint32_t unit : std::exchange(placed_, {})) {
        const auto at = deferred_.find(unit);
        if (at == deferred_.end() || !at->second.placed) continue;
        rows.Delete(key_of('d', unit));  // (D3)
        deferred_.erase(at);
      }
      for (operation* const o : all) {
        if (o->what == operation::kind::discard)
          discard(*o, rows);
        else if (o->what == operation::kind::deferred)
          defer(*o, rows);
        else
          redirect(*o, rows);
      }
    }
    std::ranges::sort(touched_);
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
    row_text text;
    for (const std::uint32_t number : touched_) {
      const std::string_view row = row_of(number, text);
      if (row.empty())
        rows.Delete(key_of('x', number));
      else
        rows.Put(key_of('x', number), rocksdb::Slice(row.data(), row.size()));
    }
    rocksdb::WriteOptions synced;
    synced.sync = true;
    const rocksdb::Status s = failed_ ? rocksdb::Status::IOError() : db_->Write(synced, &rows);  // (B2), (D1)
    commits_.fetch_add(1, std::memory_order_relaxed);
    const std::scoped_lock lock(map_mutex_);
    if (!s.ok()) failed_ = true;
    for (operation* const o : all) {
      if (failed_) o->error = blocks::device_failed;
      o->committed = true;
    }
    if (failed_) return;
    for (const extent& e : replaced_) gone_.put(e);  // (B3)
    gone_.collect(free_);
  }

  void defer(operation& o, rocksdb::WriteBatch& rows) {
    // A discard may have been quicker.
    for (std::uint32_t u = o.first; u < o.first + o.count; ++u) {
      if (map_[u] != none) continue;
      const std::vector<extent> place = free_.take_pieces(1);
      if (place.empty()) {
        o.error = std::errc::no_space_on_device;
        return;
      }
      map_[u] = place.front().first;
      touched_.push_back(u / row_units);
    }
    deferred_writes_.fetch_add(1, std::memory_order_relaxed);
    if (given_.checksums) {
      std::ranges::copy(o.sums, sums_.begin() + o.first);
      touch(o);
    }
    for (std::uint32_t i = 0; i < o.count; ++i) {
      const std::byte* const data = o.data + std::size_t{i} * unit_;
      rows.Put(key_of('d', o.first + i), rocksdb::Slice(reinterpret_cast<const char*>(data), unit_));
      waiting_row& row = deferred_[o.first + i];
      if (row.version == 0 || row.placed) ++unplaced_;
      if (row.data.size() == 0) row.data = blocks::buffer(unit_);
      std::memcpy(row.data.data(), data, unit_);
      row.version = ++versions_;
      row.placed = false;
    }
  }

  void redirect(const operation& o, rocksdb::WriteBatch& rows) {
    redirected_.fetch_add(1, std::memory_order_relaxed);
    std::uint32_t unit = o.first;
    for (const extent& e : o.places)
      for (std::uint32_t i = 0; i < e.count; ++i) move(unit++, e.first + i, rows);
    std::ranges::copy(o.sums, sums_.begin() + (o.sums.empty() ? 0 : o.first));
    touch(o);
  }

  void discard(const operation& o, rocksdb::WriteBatch& rows) {
    for (std::uint32_t u = o.first; u < o.first + o.count; ++u) move(u, none, rows);
    touch(o);
  }

  void move(std::uint32_t unit, std::uint32_t place, rocksdb::WriteBatch& rows) {
    if (map_[unit] != none) replace(map_[unit]);
    map_[unit] = place;
    const auto at = deferred_.find(unit);
    if (at == deferred_.end()) return;
    if (!at->second.placed) --unplaced_;
    deferred_.erase(at);
    rows.Delete(key_of('d', unit));
  }

  void touch(const operation& o) {
    for (std::uint32_t row = o.first / row_units; row <= (o.first + o.count - 1) / row_units; ++row)
      touched_.push_back(row);
  }

  void replace(std::uint32_t place) {
    if (!replaced_.empty() && replaced_.back().first + replaced_.back().count == place)
      ++replaced_.back().count;
    else
      replaced_.push_back({place, 1});
  }

  blocks::any_device& data_;
  std::uint32_t unit_;
  rocksdb_meta_options given_;
  std::uint64_t meta_bytes_;
  block_files files_;
  std::unique_ptr<rocksdb::Env> environment_;
  std::unique_ptr<rocksdb::DB> db_;
  free_map free_;

  std::mutex commit_mutex_;  // taken before map_mutex_
  std::vector<extent> replaced_;
  std::vector<std::uint32_t> touched_;

  std::mutex map_mutex_;             // guards all below
  std::vector<std::uint32_t> map_;   // unit of the volume -> place; changes under commit_mutex_, too
  std::vector<std::uint32_t> sums_;  // checksums of the units that have places, as map_; empty: there are no checksums
  limbo gone_;
  std::unordered_map<std::uint32_t, waiting_row> deferred_;
  std::vector<std::uint32_t> placed_;  // deferred writes in their places, whose rows are there
  std::size_t unplaced_ = 0;           // deferred writes that are not
  std::uint64_t versions_ = 0;
  bool batch_runs_ = false;
  std::atomic<bool> failed_{false};

  std::mutex waiting_mutex_;
  std::vector<operation*> waiting_;  // for a commit

  std::atomic<std::uint64_t> redirected_{0}, deferred_writes_{0}, commits_{0};
};

class rocksdb_meta::queue::state {
 public:
  state(rocksdb_meta::store& of, unsigned depth)
      : store_(of), drive_(of.device(), std::max(depth, least_drive_depth)), operations_(depth) {
    if (depth == 0) throw error("a queue of depth 0", "choose a depth of at least 1");
    for (std::size_t i = depth; i > 0; --i) free_.push_back(i - 1);
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;
  ~state() {
    std::array<blocks::completion, 1> ignored;
    while (in_flight() > 0) static_cast<void>(reap(ignored, 1));
    while (batch_) progress(1);
  }

  // `what`: read, redirected (a write, which may be deferred) or discard.
  [[nodiscard]] bool start(operation::kind what, std::uint64_t offset, std::byte* data, std::size_t bytes,
                           std::uint64_t tag) {
    check_range(offset, bytes, data);
    if (free_.empty()) return false;
    const std::size_t at = free_.back();
    operation& o = operations_[at];
    o = {};
    o.what = what;
    o.first = static_cast<std::uint32_t>(offset / store_.unit());
    o.count = static_cast<std::uint32_t>(bytes / store_.unit());
    o.data = data;
    o.tag = tag;
    free_.pop_back();
    begin(at);
    submit_waiting();
    return true;
  }

  std::size_t reap(std::span<blocks::completion> completions, std::size_t at_least) {
    const std::size_t wanted = std::min({at_least, completions.size(), in_flight()});
    progress(0);
    while (done_.size() < wanted) progress(1);
    const std::size_t count = std::min(completions.size(), done_.size());
    for (std::size_t i = 0; i < count; ++i) {
      completions[i] = done_.front();
      done_.pop_front();
    }
    return count;
  }

  [[nodiscard]] std::size_t in_flight() const { return operations_.size() - free_.size() + done_.size(); }

 private:
  static constexpr std::uint64_t of_batch = std::numeric_limits<std::uint64_t>::max();

  void check_range(std::uint64_t offset, std::uint64_t bytes, const std::byte* data) const {
    if (offset % store_.unit() != 0 || bytes % store_.unit() != 0 || bytes == 0 || offset > store_.bytes() ||
        bytes > store_.bytes() - offset)
      throw error("an operation on " + std::to_string(bytes) + " bytes at byte " + std::to_string(offset),
                  "use multiples of " + std::to_string(store_.unit()) + " bytes within the volume");
    if (reinterpret_cast<std::uintptr_t>(data) % blocks::alignment_of(store_.device().shape()) != 0)
      throw error("data that is not aligned", "use blocks::buffer");
  }

  void transfer(blocks::operation what, std::uint32_t place, std::uint32_t units, std::byte* data, std::uint64_t tag) {
    const std::uint32_t blocks_per_unit = store_.device_blocks_per_unit();
    waiting_.push_back(
        {what, blocks::stream::data, units * blocks_per_unit, std::uint64_t{place} * blocks_per_unit, data, tag});
  }

  void begin(std::size_t at) {
    operation& o = operations_[at];
    if (o.what == operation::kind::discard) return transferred(at);
    if (o.what == operation::kind::read) {
      store_.plan_read(o, [&](std::uint32_t place, std::uint32_t units, std::byte* data) {
        transfer(blocks::operation::read, place, units, data, at);
        ++o.transfers;
      });
      if (o.transfers == 0) transferred(at);
      return;
    }
    if (store_.has_checksums() && o.sums.empty())
      for (std::uint32_t i = 0; i < o.count; ++i)
        o.sums.push_back(store_.sum_of(o.data + std::size_t{i} * store_.unit()));
    if (store_.can_defer(o)) {
      o.what = operation::kind::deferred;
      return transferred(at);
    }
    o.places = store_.allocate(o.count);
    if (o.places.empty()) {
      if (drive_.in_flight() + waiting_.size() > 0 || !to_commit_.empty()) {
        without_space_.push_back(at);
      } else {
        o.error = std::errc::no_space_on_device;
        end(at);
      }
      return;
    }
    std::byte* data = o.data;
    for (const extent& e : o.places) {
      transfer(blocks::operation::write_durable, e.first, e.count, data, at);
      ++o.transfers;
      data += std::size_t{e.count} * store_.unit();
    }
  }

  void submit_waiting() {
    while (!waiting_.empty()) {
      std::array<blocks::request, 32> some;
      const std::size_t count =
          std::min<std::size_t>({drive_.depth() - drive_.in_flight(), waiting_.size(), some.size()});
      if (count == 0) return;
      std::copy_n(waiting_.begin(), count, some.begin());
      const std::size_t taken = drive_.submit(std::span(some).first(count));
      if (taken == 0) return;
      waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(taken));
    }
  }

  // Takes what the drive has done, and commits the writes among it together. Waits for the drive only if there is
  // nothing to commit.
  void progress(std::size_t at_least) {
    submit_waiting();
    std::array<blocks::completion, 64> ended;
    const std::size_t count = drive_.reap(ended, to_commit_.empty() ? at_least : 0);
    for (const blocks::completion& c : std::span(ended).first(count)) take(c);
    submit_waiting();
    if (!to_commit_.empty()) commit();
    start_batch();
    for (const std::size_t at : std::exchange(without_space_, {})) begin(at);
    submit_waiting();
  }

  void take(const blocks::completion& c) {
    if (c.tag == of_batch) {
      batch_failed_ |= !c.succeeded();
      if (--batch_->transfers > 0) return;
      store_.end_batch(*batch_, !batch_failed_);
      batch_.reset();
      return;
    }
    const auto at = static_cast<std::size_t>(c.tag);
    operation& o = operations_[at];
    if (!c.succeeded()) o.error = c.error;
    if (--o.transfers == 0) transferred(at);
  }

  void transferred(std::size_t at) {
    operation& o = operations_[at];
    const bool reads = o.what == operation::kind::read;
    if (!reads && o.error == std::errc{}) return to_commit_.push_back(at);
    if (!reads) {
      store_.give_back(o.places);
      return end(at);
    }
    const auto found = o.error == std::errc{} ? store_.compare(o) : store::read_end::right;
    store_.end_read(o);
    if (found == store::read_end::overtaken) return begin(at);
    if (found == store::read_end::damaged) o.error = std::errc::bad_message;
    end(at);
  }

  // (B1) < (B2): only writes whose transfers have ended.
  void commit() {
    committed_.clear();
    for (const std::size_t at : to_commit_) committed_.push_back(&operations_[at]);
    store_.commit(committed_);
    for (const std::size_t at : std::exchange(to_commit_, {})) end(at);
  }

  void start_batch() {
    if (store_.deferred_bytes() == 0 || batch_) return;
    batch_ = store_.begin_batch();
    if (!batch_) return;
    batch_failed_ = false;
    batch_->transfers = batch_->writes.size();
    for (const auto& w : batch_->writes) transfer(blocks::operation::write_durable, w.place, 1, w.data, of_batch);
  }

  void end(std::size_t at) {
    done_.push_back({operations_[at].tag, operations_[at].error});
    free_.push_back(at);
  }

  rocksdb_meta::store& store_;
  blocks::any_device::queue drive_;
  std::vector<operation> operations_;
  std::vector<std::size_t> free_;
  std::deque<blocks::request> waiting_;     // transfers that were not submitted
  std::vector<std::size_t> to_commit_;      // writes whose data is durable
  std::vector<std::size_t> without_space_;  // writes
  std::vector<operation*> committed_;
  std::deque<blocks::completion> done_;
  std::optional<rocksdb_meta::store::batch> batch_;
  bool batch_failed_ = false;
};

rocksdb_meta::rocksdb_meta(blocks::any_device& data, blocks::any_device& meta, const rocksdb_meta_options& options)
    : store_(std::make_unique<store>(data, meta, options)) {}
rocksdb_meta::~rocksdb_meta() = default;
rocksdb_meta_stats rocksdb_meta::stats() const { return store_->stats(); }
std::uint64_t rocksdb_meta::volume_bytes() const { return store_->bytes(); }
std::uint32_t rocksdb_meta::block_bytes() const { return store_->unit(); }

rocksdb_meta::queue::queue(rocksdb_meta& of, unsigned depth) : state_(std::make_unique<state>(*of.store_, depth)) {}
rocksdb_meta::queue::~queue() = default;
bool rocksdb_meta::queue::write(std::uint64_t offset, std::span<const std::byte> data, std::uint64_t tag) {
  // The device only reads the data of a write.
  return state_->start(operation::kind::redirected, offset, const_cast<std::byte*>(data.data()), data.size(), tag);
}
bool rocksdb_meta::queue::read(std::uint64_t offset, std::span<std::byte> data, std::uint64_t tag) {
  return state_->start(operation::kind::read, offset, data.data(), data.size(), tag);
}
bool rocksdb_meta::queue::discard(std::uint64_t offset, std::uint64_t bytes, std::uint64_t tag) {
  return state_->start(operation::kind::discard, offset, nullptr, bytes, tag);
}
std::size_t rocksdb_meta::queue::reap(std::span<blocks::completion> completions, std::size_t at_least) {
  return state_->reap(completions, at_least);
}
std::size_t rocksdb_meta::queue::in_flight() const { return state_->in_flight(); }

}  // namespace pmlab::stores
