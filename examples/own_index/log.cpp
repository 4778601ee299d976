// A second index of one's own: a log in persistent memory without any library. It maps its pool by mmap, and writes
// lines back by instructions in inline assembly. All of its entries are in the log; an index over them, in DRAM, is
// rebuilt whenever the pool is opened. -DWITHOUT_FENCE plants a bug.
//
//   scripts/pmlab-c++ -std=c++17 -O2 -fPIC -shared -o liblog.so examples/own_index/log.cpp -I indexes/include
//   build/release/bin/pmlab verify --library ./liblog.so --scans
#include <pmlab/pibench/tree_api.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

constexpr std::uint64_t written = 1;
constexpr std::uint64_t removed = 2;

struct record {
  std::uint64_t key;
  std::uint64_t value;
  std::uint64_t what;
};

// A new file is zero, and so is the length of a new log.
struct header {
  alignas(64) std::atomic<std::uint64_t> length;
};

void write_back(const void* address) { asm volatile("clwb %0" ::"m"(*static_cast<const char*>(address)) : "memory"); }

void wait_for_write_backs() { asm volatile("sfence" ::: "memory"); }

class record_log final : public tree_api {
 public:
  explicit record_log(const tree_options_t& options) : bytes_(options.pool_size) {
    const int file = ::open(options.pool_path.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0) throw std::runtime_error("cannot open the pool");
    struct stat status {};
    if (::fstat(file, &status) == 0 && status.st_size == 0 && ::ftruncate(file, static_cast<off_t>(bytes_)) != 0) {
      ::close(file);
      throw std::runtime_error("cannot make the pool");
    }
    void* const area = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (area == MAP_FAILED) throw std::runtime_error("cannot map the pool");
    head_ = static_cast<header*>(area);
    records_ = reinterpret_cast<record*>(head_ + 1);
    for (std::size_t i = 0; i < head_->length.load(std::memory_order_relaxed); ++i) remember(i);
  }
  record_log(const record_log&) = delete;
  record_log& operator=(const record_log&) = delete;
  ~record_log() override { ::munmap(head_, bytes_); }

  bool find(const char* key, std::size_t, char* value_out) override {
    const std::scoped_lock lock(mutex_);
    const auto found = newest_.find(word(key));
    if (found == newest_.end()) return false;
    std::memcpy(value_out, &records_[found->second].value, sizeof(std::uint64_t));
    return true;
  }

  bool insert(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    if (newest_.count(word(key)) != 0) return false;
    append(word(key), word(value), written);
    return true;
  }

  bool update(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    if (newest_.count(word(key)) == 0) return false;
    append(word(key), word(value), written);
    return true;
  }

  bool remove(const char* key, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    if (newest_.count(word(key)) == 0) return false;
    append(word(key), 0, removed);
    return true;
  }

  int scan(const char* key, std::size_t, int scan_size, char*& values_out) override {
    // The values are this thread's, until its next scan.
    static thread_local std::vector<std::uint64_t> found;
    const std::scoped_lock lock(mutex_);
    found.clear();
    const auto limit = static_cast<std::size_t>(std::max(scan_size, 0));
    for (auto at = newest_.lower_bound(word(key)); at != newest_.end() && found.size() < 2 * limit; ++at) {
      found.push_back(at->first);
      found.push_back(records_[at->second].value);
    }
    values_out = reinterpret_cast<char*>(found.data());
    return static_cast<int>(found.size() / 2);
  }

 private:
  static std::uint64_t word(const char* bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  void append(std::uint64_t key, std::uint64_t value, std::uint64_t what) {
    const std::uint64_t number = head_->length.load(std::memory_order_relaxed);
    if (sizeof(header) + (number + 1) * sizeof(record) > bytes_) throw std::runtime_error("the log is full");
    record& r = records_[number];
    r = {key, value, what};
    write_back(&r);
    // A record may lie in two lines.
    write_back(&r.what);
#if !defined(WITHOUT_FENCE)
    // The record is durable before the length includes it.
    wait_for_write_backs();
#endif
    head_->length.store(number + 1, std::memory_order_relaxed);
    write_back(&head_->length);
    wait_for_write_backs();
    remember(number);
  }

  void remember(std::size_t number) {
    const record& r = records_[number];
    if (r.what == removed)
      newest_.erase(r.key);
    else
      newest_[r.key] = number;
  }

  std::size_t bytes_;
  header* head_ = nullptr;
  record* records_ = nullptr;
  std::map<std::uint64_t, std::size_t> newest_;  // key: where in the log
  std::mutex mutex_;
};

}  // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) { return new record_log(options); }
