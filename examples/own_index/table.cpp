// A small hash table in persistent memory with PiBench's interface, written without any knowledge of
// pmlab, and with a bug that tests without crashes do not find. docs/own-index.md follows it from there to the fix.
//
//   scripts/pmlab-c++ -std=c++17 -O2 -fPIC -shared -o libtable.so examples/own_index/table.cpp -I indexes/include
//   build/release/bin/pmlab verify --library ./libtable.so --crashes
#include <pmlab/pibench/tree_api.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <stdexcept>

#include <libpmem.h>

namespace {

constexpr std::uint64_t magic = 0x7461626c65;
constexpr std::uint64_t no_key = 0;
constexpr std::uint64_t removed = ~std::uint64_t{0};

struct slot {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> value;
};

struct header {
  std::atomic<std::uint64_t> written;
  std::uint64_t slots;
};

class table final : public tree_api {
 public:
  explicit table(const tree_options_t& options) {
    std::size_t mapped = 0;
    int is_pmem = 0;
    void* const area =
        pmem_map_file(options.pool_path.c_str(), options.pool_size, PMEM_FILE_CREATE, 0600, &mapped, &is_pmem);
    if (area == nullptr) throw std::runtime_error("cannot map the pool");
    head_ = static_cast<header*>(area);
    slots_ = reinterpret_cast<slot*>(static_cast<char*>(area) + 4096);
    if (head_->written.load() == magic) return;
    head_->slots = (mapped - 4096) / sizeof(slot);
    head_->written.store(magic);
    pmem_persist(head_, sizeof *head_);
  }

  bool find(const char* key, std::size_t, char* value_out) override {
    const std::scoped_lock lock(mutex_);
    const slot* const found = search(word(key));
    if (found == nullptr) return false;
    const std::uint64_t value = found->value.load();
    std::memcpy(value_out, &value, sizeof value);
    return true;
  }

  bool insert(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    if (search(word(key)) != nullptr) return false;
    slot& free = first_free(word(key));
    // One cache line: no crash shows the key without its value.
    free.value.store(word(value));
    free.key.store(word(key));
    pmem_persist(&free, sizeof free);
    return true;
  }

  bool update(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    slot* const found = search(word(key));
    if (found == nullptr) return false;
    found->value.store(word(value));
    pmem_persist(&found->value, sizeof found->value);
    return true;
  }

  bool remove(const char* key, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    slot* const found = search(word(key));
    if (found == nullptr) return false;
    found->key.store(removed);
#if defined(FIXED)
    pmem_persist(&found->key, sizeof found->key);
#endif
    return true;
  }

  int scan(const char*, std::size_t, int, char*&) override { return 0; }

 private:
  static std::uint64_t word(const char* bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  slot& nth(std::uint64_t key, std::uint64_t step) const {
    return slots_[(key * 0x9e3779b97f4a7c15U + step) % head_->slots];
  }

  slot* search(std::uint64_t key) const {
    for (std::uint64_t step = 0;; ++step) {
      slot& s = nth(key, step);
      if (s.key.load() == key) return &s;
      if (s.key.load() == no_key) return nullptr;
    }
  }

  slot& first_free(std::uint64_t key) const {
    for (std::uint64_t step = 0;; ++step) {
      slot& s = nth(key, step);
      if (s.key.load() == no_key || s.key.load() == removed) return s;
    }
  }

  header* head_ = nullptr;
  slot* slots_ = nullptr;
  std::mutex mutex_;
};

}  // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) { return new table(options); }
