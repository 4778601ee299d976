#include "bench/stores/lmdb_subject.hpp"
#include "bench/stores/library_pair_subject.hpp"
#include "bench/support/removed_on_interrupt.hpp"

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <lmdb.h>
#include <unistd.h>

namespace pmlab::store_bench {
namespace {

constexpr unsigned most_readers = 1022;

void check(int code, const char* what) {
  if (code != MDB_SUCCESS)
    throw error(std::string("LMDB cannot ") + what + ": " + mdb_strerror(code), "check its folder, and its size");
}

[[nodiscard]] std::errc errc_of(int code) {
  if (code == MDB_SUCCESS) return {};
  return code == MDB_MAP_FULL || code == ENOSPC ? std::errc::no_space_on_device : std::errc::io_error;
}

[[nodiscard]] MDB_val value_of(std::string_view s) { return {s.size(), const_cast<char*>(s.data())}; }
[[nodiscard]] std::string_view text_of(const MDB_val& v) { return {static_cast<const char*>(v.mv_data), v.mv_size}; }

// The path of the file that stands for a drive.
[[nodiscard]] std::string path_for(const blocks::any_device& drive) {
  static std::atomic<unsigned> made{0};
  const std::string name = drive.name();
  if (name == "memory")
    return "/dev/shm/pmlab-lmdb-" + std::to_string(::getpid()) + "-" + std::to_string(made.fetch_add(1));
  const std::string_view file = "file:";
  if (name.starts_with(file)) return name.substr(file.size()) + ".lmdb";
  throw error("lmdb cannot be on " + name + ": it maps its file", "use --device memory or file:PATH for it");
}

// A transaction that ends with this object; committed or not.
class transaction {
 public:
  transaction(MDB_env* in, unsigned flags) : error_(mdb_txn_begin(in, nullptr, flags, &handle_)) {}
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;
  ~transaction() {
    if (handle_ != nullptr) mdb_txn_abort(handle_);
  }
  [[nodiscard]] int error() const noexcept { return error_; }
  [[nodiscard]] MDB_txn* handle() const noexcept { return handle_; }
  [[nodiscard]] int commit() { return mdb_txn_commit(std::exchange(handle_, nullptr)); }

 private:
  MDB_txn* handle_ = nullptr;
  int error_;
};

// A database in a file of its own, which goes with it.
class instance {
 public:
  instance(const blocks::any_device& drive, bool synced)
      : path_(path_for(drive)),
        bytes_(drive.shape().bytes()),
        flags_(MDB_NOSUBDIR | MDB_NOTLS | (synced ? 0U : unsigned{MDB_NOSYNC})),
        file_(path_),
        lock_(path_ + "-lock") {
    if (std::filesystem::exists(std::filesystem::symlink_status(path_)))
      throw error(path_ + " exists", "remove it, or name another file");
    open(true);
  }
  instance(const instance&) = delete;
  instance& operator=(const instance&) = delete;
  ~instance() {
    close();
    std::remove(path_.c_str());
    std::remove((path_ + "-lock").c_str());
  }

  [[nodiscard]] MDB_env* environment() const noexcept { return environment_; }
  [[nodiscard]] MDB_dbi table() const noexcept { return table_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  void open(bool /*format*/) {
    check(mdb_env_create(&environment_), "begin");
    check(mdb_env_set_mapsize(environment_, bytes_), "have a map of that size");
    check(mdb_env_set_maxreaders(environment_, most_readers), "have so many readers");
    check(mdb_env_open(environment_, path_.c_str(), flags_, 0600), ("open " + path_).c_str());
    transaction first(environment_, 0);
    check(first.error(), "begin a transaction");
    check(mdb_dbi_open(first.handle(), nullptr, 0, &table_), "open its table");
    check(first.commit(), "commit");
  }
  // What was written is synced before.
  void close() {
    if (environment_ != nullptr) mdb_env_close(std::exchange(environment_, nullptr));
  }
  // Its pages: it has no log.
  void sync_log() { static_cast<void>(mdb_env_sync(environment_, 1)); }

  [[nodiscard]] std::errc scan(std::string_view from, unsigned most, pair_list& found) const {
    const transaction reads(environment_, MDB_RDONLY);
    if (reads.error() != MDB_SUCCESS) return errc_of(reads.error());
    MDB_cursor* at = nullptr;
    if (const int code = mdb_cursor_open(reads.handle(), table_, &at); code != MDB_SUCCESS) return errc_of(code);
    MDB_val k = value_of(from);
    MDB_val v{};
    int code = mdb_cursor_get(at, &k, &v, from.empty() ? MDB_FIRST : MDB_SET_RANGE);
    for (unsigned i = 0; i < most && code == MDB_SUCCESS; ++i) {
      found.add(text_of(k), text_of(v));
      code = mdb_cursor_get(at, &k, &v, MDB_NEXT);
    }
    mdb_cursor_close(at);
    return code == MDB_NOTFOUND ? std::errc{} : errc_of(code);
  }

  [[nodiscard]] std::uint64_t used_bytes() const {
    MDB_envinfo info;
    MDB_stat of_pages;
    check(mdb_env_info(environment_, &info), "count its pages");
    check(mdb_env_stat(environment_, &of_pages), "count its pages");
    return (std::uint64_t{info.me_last_pgno} + 1) * of_pages.ms_psize;
  }

 private:
  std::string path_;
  std::uint64_t bytes_;
  unsigned flags_;
  removed_on_interrupt file_, lock_;
  MDB_env* environment_ = nullptr;
  MDB_dbi table_ = 0;
};

// Bytes that threads gave to the kernel's write calls, each since it joined.
class thread_writes {
 public:
  thread_writes() { known_ = read(own().get()).has_value(); }

  [[nodiscard]] bool known() const noexcept { return known_; }

  // Counts the calling thread from now on. Null where the kernel does not count.
  class member;
  [[nodiscard]] std::shared_ptr<member> join();
  [[nodiscard]] std::uint64_t bytes();

 private:
  class descriptor {
   public:
    explicit descriptor(int number) : number_(number) {}
    descriptor(const descriptor&) = delete;
    descriptor& operator=(const descriptor&) = delete;
    ~descriptor() {
      if (number_ >= 0) ::close(number_);
    }
    [[nodiscard]] int get() const noexcept { return number_; }

   private:
    int number_;
  };
  [[nodiscard]] static descriptor own() { return descriptor(::open("/proc/thread-self/io", O_RDONLY | O_CLOEXEC)); }
  // The bytes that the thread has written, or std::nullopt if it has ended or is not counted.
  [[nodiscard]] static std::optional<std::uint64_t> read(int from) {
    std::array<char, 512> text{};
    const ssize_t got = from < 0 ? -1 : ::pread(from, text.data(), text.size() - 1, 0);
    if (got <= 0) return std::nullopt;
    const std::string_view all(text.data(), static_cast<std::size_t>(got));
    const std::string_view name = "wchar: ";
    const std::size_t at = all.find(name);
    if (at == std::string_view::npos) return std::nullopt;
    return std::strtoull(all.data() + at + name.size(), nullptr, 10);
  }

  bool known_ = false;
  std::mutex mutex_;  // guards all below
  std::vector<std::weak_ptr<member>> members_;
  std::uint64_t of_left_ = 0;
};

class thread_writes::member {
 public:
  explicit member(thread_writes& of) : all_(of), from_(own()), began_(read(from_.get()).value_or(0)) {}
  member(const member&) = delete;
  member& operator=(const member&) = delete;
  ~member() {
    const std::uint64_t last = bytes();
    const std::scoped_lock lock(all_.mutex_);
    all_.of_left_ += last;
  }
  [[nodiscard]] std::uint64_t bytes() const { return read(from_.get()).value_or(began_) - began_; }

 private:
  thread_writes& all_;
  descriptor from_;
  std::uint64_t began_;
};

std::shared_ptr<thread_writes::member> thread_writes::join() {
  if (!known_) return nullptr;
  auto made = std::make_shared<member>(*this);
  const std::scoped_lock lock(mutex_);
  std::erase_if(members_, [](const auto& m) { return m.expired(); });
  members_.push_back(made);
  return made;
}

std::uint64_t thread_writes::bytes() {
  std::vector<std::shared_ptr<member>> there;  // released without the lock
  const std::scoped_lock lock(mutex_);
  std::uint64_t all = of_left_;
  for (const auto& m : members_)
    if (auto one = m.lock()) {
      all += one->bytes();
      there.push_back(std::move(one));
    }
  return all;
}

class session final : public library_session<instance> {
 public:
  using found_value = std::string;

  session(const databases<instance>& all, thread_writes& writes) : library_session(all), writes_(&writes) {}

  [[nodiscard]] std::errc put(std::string_view key, std::string_view value) {
    return change(key, [&](MDB_txn* in, MDB_dbi table) {
      MDB_val k = value_of(key);
      MDB_val v = value_of(value);
      return mdb_put(in, table, &k, &v, 0);
    });
  }
  [[nodiscard]] std::errc erase(std::string_view key) {
    return change(key, [&](MDB_txn* in, MDB_dbi table) {
      MDB_val k = value_of(key);
      const int code = mdb_del(in, table, &k, nullptr);
      return code == MDB_NOTFOUND ? MDB_SUCCESS : code;
    });
  }
  void get(std::string_view key, found_value& value, pair_answer& answer) {
    const instance& one = database_of(key);
    const transaction reads(one.environment(), MDB_RDONLY);
    MDB_val k = value_of(key);
    MDB_val v{};
    const int code = reads.error() != MDB_SUCCESS ? reads.error() : mdb_get(reads.handle(), one.table(), &k, &v);
    answer.found = code == MDB_SUCCESS;
    if (code == MDB_SUCCESS) {
      value.assign(text_of(v));
      answer.value = std::as_bytes(std::span(value));
    } else if (code != MDB_NOTFOUND) {
      answer.error = errc_of(code);
    }
  }

 private:
  template <class Change>
  [[nodiscard]] std::errc change(std::string_view key, Change&& made_in) {
    if (!joined_) {  // in the thread that writes
      written_ = writes_->join();
      joined_ = true;
    }
    const instance& one = database_of(key);
    transaction t(one.environment(), 0);
    if (t.error() != MDB_SUCCESS) return errc_of(t.error());
    const int code = made_in(t.handle(), one.table());
    return errc_of(code == MDB_SUCCESS ? t.commit() : code);
  }

  thread_writes* writes_;
  bool joined_ = false;
  std::shared_ptr<thread_writes::member> written_;
};

class lmdb_subject final : public library_pair_subject<instance> {
 public:
  lmdb_subject(const pair_setup& setup, const pair_drives& drives)
      : library_pair_subject("lmdb", drives, setup.loss_ms, true) {
    if (drives.staging != nullptr) throw error("lmdb has one drive only", "leave --staging away for it");
    for (const blocks::any_device* const drive : drives.main)
      all_.push_back(std::make_unique<instance>(*drive, syncs_each_change()));
    start_timer();
  }

  [[nodiscard]] pair_promises promises() const override {
    return promises_for(1, static_cast<std::size_t>(mdb_env_get_maxkeysize(all_.front()->environment())));
  }
  [[nodiscard]] std::unique_ptr<pair_queue> make_queue(unsigned depth, unsigned /*thread*/) override {
    return std::make_unique<waiting_pair_queue<session>>(session(all_, writes_), depth);
  }

  [[nodiscard]] pair_space space() override {
    std::uint64_t used = 0;
    for (const auto& one : all_) used += one->used_bytes();
    return {.used_bytes = used, .memory_bytes = std::nullopt, .medium_bytes = std::nullopt};
  }
  [[nodiscard]] std::optional<std::uint64_t> host_bytes() override {
    return writes_.known() ? std::optional(writes_.bytes()) : std::nullopt;
  }
  [[nodiscard]] bool writes_to_drives() const override { return false; }
  [[nodiscard]] std::vector<std::string> remarks() override {
    std::vector<std::string> all{"lmdb maps its file, " + all_.front()->path() +
                                 ": it is on no block device of this run, and its cache is the kernel's"};
    if (!writes_.known()) all.emplace_back("lmdb: the bytes that it writes are not known");
    return all;
  }

 private:
  thread_writes writes_;
};

}  // namespace

std::unique_ptr<pair_subject> make_lmdb(const pair_setup& setup, const pair_drives& drives) {
  return std::make_unique<lmdb_subject>(setup, drives);
}

}  // namespace pmlab::store_bench
