// A table that is correct and odd, in the way that the environment variable ODD names:
//   chatty    it prints, from its constructors to its destructors
//   counts    its searches write to persistent memory, at the end of the pool
//   slow      each operation reads a hundred thousand words, on and on but not for ever
//   large     an arena of 32 MiB in DRAM and one in the pool, for each of eight threads
//   forks     an insert makes a process
//   computes  an insert computes for ever, without any access to memory
//   waits     recovery waits for ever, in the kernel
//   grows     it begins with room for 600 keys, and moves all of them where there is none
//   forgets   the same, and the moved keys are not flushed: a defect
//   leaves    what is inserted behind an opening of an earlier pool is not flushed: a defect that a second crash shows
//   remembers recovery knows by variables of a header whether this process made a pool: no recovery's process did
#include <pmlab/pibench/tree_api.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <immintrin.h>
#include <libpmem.h>
#include <unistd.h>

namespace {

bool is(const char* how) {
  static const char* const odd = std::getenv("ODD");
  return odd != nullptr && std::string_view(odd) == how;
}

struct talker {
  talker() { say("constructor"); }
  ~talker() { say("destructor"); }
  static void say(const char* what) {
    if (is("chatty")) std::printf("CHATTER of a %s\n", what);
  }
} talks;

}  // namespace

// As header-only code has them: the loader shares both among all copies of a library, where their symbols are unique.
inline std::atomic<unsigned> pools_made{0};
inline std::atomic<unsigned>& pools_made_here() {
  static std::atomic<unsigned> made{0};
  return made;
}

namespace {

constexpr std::uint64_t magic = 0x6f6464;
constexpr std::size_t arena_bytes = std::size_t{32} << 20;
constexpr std::size_t threads = 8;

struct slot {
  std::atomic<std::uint64_t> key;
  std::atomic<std::uint64_t> value;  // 0: there is none
};

struct header {
  std::atomic<std::uint64_t> written;
  std::atomic<std::uint64_t> area;  // area of its slots: it doubles with each
};

class odd_table final : public tree_api {
 public:
  explicit odd_table(const tree_options_t& options) {
    std::size_t mapped = 0;
    int is_pmem = 0;
    void* const area =
        pmem_map_file(options.pool_path.c_str(), options.pool_size, PMEM_FILE_CREATE, 0600, &mapped, &is_pmem);
    if (area == nullptr) throw std::runtime_error("cannot map the pool");
    start_ = static_cast<char*>(area);
    bytes_ = mapped;
    head_ = static_cast<header*>(area);
    talker::say("table");
    if (is("large")) make_arenas();
    if (head_->written.load() == magic) {
      was_there_ = true;
      if (is("waits")) ::pause();
      if (is("remembers") && pools_made + pools_made_here() != 0) throw std::runtime_error("it was never closed");
      return;
    }
    ++pools_made;
    ++pools_made_here();
    head_->area.store(0);
    head_->written.store(magic);
    pmem_persist(head_, sizeof *head_);
  }

  bool find(const char* key, std::size_t, char* value_out) override {
    const std::scoped_lock lock(mutex_);
    talker::say("find");
    if (is("counts")) {
      // A reader that registers itself, and a counter, where nothing else is.
      auto& registered = *reinterpret_cast<std::atomic<std::uint64_t>*>(start_ + bytes_ - 4096);
      std::uint64_t none = 0;
      registered.compare_exchange_strong(none, 1);
      ++*reinterpret_cast<std::uint64_t*>(start_ + bytes_ - 64);
    }
    dawdle();
    const slot* const found = search(word(key));
    if (found == nullptr) return false;
    const std::uint64_t value = found->value.load();
    std::memcpy(value_out, &value, sizeof value);
    return true;
  }

  bool insert(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    talker::say("insert");
    if (is("forks") && ::fork() == 0) ::_exit(0);
    if (is("computes"))
      for (;;) _mm_pause();
    dawdle();
    if (search(word(key)) != nullptr) return false;
    slot* free = place(word(key));
    while (free == nullptr) {
      grow();
      free = place(word(key));
    }
    free->value.store(word(value));
    free->key.store(word(key));
    if (!(is("leaves") && was_there_)) pmem_persist(free, sizeof *free);
    return true;
  }

  bool update(const char* key, std::size_t, const char* value, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    slot* const found = search(word(key));
    if (found == nullptr) return false;
    found->value.store(word(value));
    pmem_persist(found, sizeof *found);
    return true;
  }

  bool remove(const char* key, std::size_t) override {
    const std::scoped_lock lock(mutex_);
    slot* const found = search(word(key));
    if (found == nullptr) return false;
    found->value.store(0);
    pmem_persist(found, sizeof *found);
    return true;
  }

  int scan(const char*, std::size_t, int, char*&) override { return scans_ == nullptr ? 0 : never_reached(); }

 private:
  static std::uint64_t word(const char* bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }

  int never_reached() const { return static_cast<int>(++*scans_); }

  void dawdle() const {
    if (!is("slow")) return;
    for (int i = 0; i < 100'000; ++i) static_cast<void>(head_->written.load());
  }

  void make_arenas() {
    for (std::size_t t = 0; t < threads; ++t) {
      constexpr std::size_t words = arena_bytes / sizeof(std::uint64_t);
      arenas_.emplace_back(new std::uint64_t[words]);
      if (t == 0) std::fill_n(arenas_.back().get(), words, t);  // one word after the other
      if (t != 0) std::memset(arenas_.back().get(), 0, arena_bytes);
      auto& used = *reinterpret_cast<std::atomic<std::uint64_t>*>(start_ + (t + 1) * arena_bytes);
      used.store(1);
      pmem_persist(&used, sizeof used);
    }
  }

  slot* slots(std::uint64_t area) const {
    return reinterpret_cast<slot*>(start_ + 4096) + (area == 0 ? 0 : capacity(area - 1));
  }
  static std::uint64_t capacity(std::uint64_t area) {
    return (is("grows") || is("forgets") ? std::uint64_t{600} : 60'000) << area;
  }

  slot* search(std::uint64_t key) const {
    slot* const found = place(key);
    return found != nullptr && found->key.load() == key && found->value.load() != 0 ? found : nullptr;
  }

  // The slot of the key, or the free one where it belongs; null: there is none. Half of the slots stay empty.
  slot* place(std::uint64_t key) const {
    const std::uint64_t area = head_->area.load();
    const std::uint64_t count = capacity(area) - (area == 0 ? 0 : capacity(area - 1));
    for (std::uint64_t step = 0; step < 64; ++step) {
      slot& s = slots(area)[(key * 0x9e3779b97f4a7c15U + step) % count];
      if (s.key.load() == key || s.key.load() == 0) return &s;
    }
    return nullptr;
  }

  void grow() {
    const std::uint64_t area = head_->area.load();
    std::vector<slot*> old;
    const std::uint64_t count = capacity(area) - (area == 0 ? 0 : capacity(area - 1));
    // A crash may have left a part of an earlier copy.
    const std::uint64_t room = capacity(area + 1) - capacity(area);
    pmem_memset_persist(slots(area + 1), 0, room * sizeof(slot));
    for (std::uint64_t i = 0; i < count; ++i) {
      slot& s = slots(area)[i];
      if (s.key.load() == 0) continue;
      for (std::uint64_t step = 0; step < 64; ++step) {
        slot& to = slots(area + 1)[(s.key.load() * 0x9e3779b97f4a7c15U + step) % room];
        if (to.key.load() != 0) continue;
        to.value.store(s.value.load());
        to.key.store(s.key.load());
        break;
      }
    }
    if (!is("forgets")) pmem_persist(slots(area + 1), room * sizeof(slot));
    head_->area.store(area + 1);
    pmem_persist(&head_->area, sizeof head_->area);
  }

  char* start_ = nullptr;
  std::size_t bytes_ = 0;
  header* head_ = nullptr;
  std::vector<std::unique_ptr<std::uint64_t[]>> arenas_;
  int* scans_ = nullptr;
  bool was_there_ = false;
  std::mutex mutex_;
};

}  // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) { return new odd_table(options); }
