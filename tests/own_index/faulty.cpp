// A library that cannot be recovered, in the way that a macro names: FAULTS, HANGS, THROWS, EXITS or EXITS_AT_ONCE. It
// otherwise works, so that a run reaches a crash.
#include <pmlab/pibench/tree_api.hpp>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>

#include <fcntl.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

struct header {
  std::atomic<std::uint64_t> locked;  // a spin lock in persistent memory
  std::atomic<std::uint64_t> used;
};

class faulty final : public tree_api {
 public:
  explicit faulty(const tree_options_t& options) {
    const int file = ::open(options.pool_path.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(options.pool_size)) != 0)
      throw std::runtime_error("cannot make the pool");
    void* const area = ::mmap(nullptr, options.pool_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (area == MAP_FAILED) throw std::runtime_error("cannot map the pool");
    head_ = static_cast<header*>(area);
    if (head_->used.load() != 0) recover();
    head_->used.store(1);
    write_back(&head_->used);
  }

  bool find(const char* key, std::size_t, char* value_out) override {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(word(key));
    if (found == entries_.end()) return false;
    std::memcpy(value_out, &found->second, sizeof found->second);
    return true;
  }
  bool insert(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    head_->locked.store(1);
    write_back(&head_->locked);
    const bool added = entries_.emplace(word(key), word(value)).second;
    head_->locked.store(0);
    write_back(&head_->locked);
    return added;
  }
  bool update(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    const auto found = entries_.find(word(key));
    if (found == entries_.end()) return false;
    found->second = word(value);
    return true;
  }
  bool remove(const char* key, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    return entries_.erase(word(key)) == 1;
  }
  int scan(const char*, std::size_t, int, char*&) override { return 0; }

 private:
  static void write_back(void* address) {
    _mm_clflush(address);
    _mm_sfence();
  }
  static std::uint64_t word(const char* bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  void recover() {
#if defined(FAULTS)
    // An address of the process that was, say.
    *reinterpret_cast<volatile std::uint64_t*>(head_->used.load()) = 1;
#elif defined(THROWS)
    throw std::runtime_error("the pool was not closed");
#elif defined(EXITS)
    std::exit(0);
#elif defined(EXITS_AT_ONCE)
    ::_exit(0);
#elif defined(HANGS)
    while (head_->locked.load() != 0) _mm_pause();
#endif
  }

  header* head_ = nullptr;
  std::map<std::uint64_t, std::uint64_t> entries_;
  std::mutex mutex_;
};

}  // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) { return new faulty(options); }
