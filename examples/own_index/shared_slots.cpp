// A hash table of several hosts on one memory, with PiBench's interface, without the headers of pmlab's indexes. Its
// slots need no coherent memory. Its locks lie in the first 64 KiB, which must be coherent. docs/hosts.md.
//
//   scripts/pmlab-c++ -std=c++17 -O2 -fPIC -shared -o libslots.so
//     examples/own_index/shared_slots.cpp -I indexes/include -I checker/include
//   build/release/bin/pmlab verify --library ./libslots.so --hosts 2 --coherence partial --deaths 1
//
// WITHOUT_REFRESH, WITHOUT_PUBLISH, REFRESH_BY_SFENCE and WITHOUT_RELEASE plant the defects that such code has.
#include <pmlab/pibench/tree_api.hpp>
#include <pmlab/programs/hosts.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include <fcntl.h>
#include <immintrin.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

constexpr std::size_t line_bytes = 64;
constexpr std::size_t coherent_bytes = 64 << 10;
constexpr unsigned bucket_bits = 6;
constexpr std::size_t buckets = std::size_t{1} << bucket_bits;
constexpr std::size_t slots_of_a_bucket = 16;

// One word of a coherent line: the holder's host + 1, or 0.
struct alignas(line_bytes) lock {
  std::atomic<std::uint64_t> holder;
};

struct slot {
  std::uint64_t key;  // 0: free
  std::uint64_t value;
};

struct alignas(line_bytes) bucket {
  slot slots[slots_of_a_bucket];
};

template <class Work>
void for_each_line(const void* start, std::size_t bytes, Work&& work) {
  const auto from = reinterpret_cast<std::uintptr_t>(start) / line_bytes * line_bytes;
  for (std::uintptr_t at = from; at < reinterpret_cast<std::uintptr_t>(start) + bytes; at += line_bytes)
    work(reinterpret_cast<const void*>(at));
}

// Later loads see what other hosts have published by now. Only mfence orders loads behind the invalidation.
void refresh([[maybe_unused]] const bucket& b) {
#ifndef WITHOUT_REFRESH
  for_each_line(&b, sizeof b, [](const void* line) { _mm_clflush(line); });
#ifdef REFRESH_BY_SFENCE
  _mm_sfence();
#else
  _mm_mfence();
#endif
#endif
}

// Hosts that refresh the slot from now on see it, and it outlives this host.
void publish([[maybe_unused]] const slot& s) {
#ifndef WITHOUT_PUBLISH
  for_each_line(&s, sizeof s, [](const void* line) { _mm_clflush(line); });
  _mm_sfence();
#endif
}

// One thread of all hosts holds the lock of a bucket. A holder that died leaves nothing to repair: the
// bucket is valid behind each prefix of a change's stores.
class held {
 public:
  explicit held(lock& l) : lock_(l) {
    const std::uint64_t mine = pmlab_host() + 1;
    for (;;) {
      std::uint64_t holder = 0;
      if (lock_.holder.compare_exchange_strong(holder, mine)) return;
      const bool is_dead = !pmlab_host_is_alive(static_cast<unsigned>(holder - 1));
      if (is_dead && lock_.holder.compare_exchange_strong(holder, mine)) return;
      _mm_pause();
    }
  }
  held(const held&) = delete;
  held& operator=(const held&) = delete;
  ~held() { lock_.holder.store(0); }

 private:
  lock& lock_;
};

std::uint64_t word(const char* bytes) {
  std::uint64_t w = 0;
  std::memcpy(&w, bytes, sizeof w);
  return w;
}

class shared_slots final : public tree_api {
 public:
  // A new file is all zeros: the empty table, with free locks. So hosts that make it at once do each other no harm.
  explicit shared_slots(const tree_options_t& options) {
    const int file = ::open(options.pool_path.c_str(), O_RDWR | O_CREAT, 0600);
    if (file < 0 || ::ftruncate(file, static_cast<off_t>(options.pool_size)) != 0)
      throw std::runtime_error("cannot make the file");
    void* const area = ::mmap(nullptr, options.pool_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    if (area == MAP_FAILED) throw std::runtime_error("cannot map the file");
    locks_ = static_cast<lock*>(area);
    buckets_ = reinterpret_cast<bucket*>(static_cast<char*>(area) + coherent_bytes);
#ifndef WITHOUT_RELEASE
    // A single host opens it behind a power failure of all: the holders of its locks are gone.
    if (pmlab_hosts() == 1)
      for (std::size_t i = 0; i < buckets; ++i) locks_[i].holder.store(0);
#endif
  }

  bool find(const char* key, std::size_t, char* value_out) override {
    const std::size_t number = bucket_of(word(key));
    const held alone(locks_[number]);
    const slot* const found = search(number, word(key));
    if (found == nullptr) return false;
    std::memcpy(value_out, &found->value, sizeof found->value);
    return true;
  }

  bool insert(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::size_t number = bucket_of(word(key));
    const held alone(locks_[number]);
    if (search(number, word(key)) != nullptr) return false;
    for (slot& s : buckets_[number].slots)
      if (s.key == 0) {
        // The key last: a host that dies in between leaves a free slot.
        store(s.value, word(value));
        store(s.key, word(key));
        publish(s);
        return true;
      }
    throw std::runtime_error("a bucket is full");
  }

  bool update(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::size_t number = bucket_of(word(key));
    const held alone(locks_[number]);
    slot* const found = search(number, word(key));
    if (found == nullptr) return false;
    store(found->value, word(value));
    publish(*found);
    return true;
  }

  bool remove(const char* key, std::size_t) override {
    const std::size_t number = bucket_of(word(key));
    const held alone(locks_[number]);
    slot* const found = search(number, word(key));
    if (found == nullptr) return false;
    store(found->key, 0);
    publish(*found);
    return true;
  }

  int scan(const char*, std::size_t, int, char*&) override { return 0; }

 private:
  static std::size_t bucket_of(std::uint64_t key) { return (key * 0x9e3779b97f4a7c15) >> (64 - bucket_bits); }
  static void store(std::uint64_t& to, std::uint64_t value) { __atomic_store_n(&to, value, __ATOMIC_RELEASE); }

  // REQUIRES: the caller holds the lock.
  slot* search(std::size_t number, std::uint64_t key) {
    refresh(buckets_[number]);
    for (slot& s : buckets_[number].slots)
      if (s.key == key) return &s;
    return nullptr;
  }

  lock* locks_;
  bucket* buckets_;
};

static_assert(buckets * sizeof(lock) <= coherent_bytes);

}  // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) { return new shared_slots(options); }
