// shared_slots with one defect of code for several hosts, or of a library, chosen by a macro. KEEPS_ and HOLDS_ are
// none.
#define create_tree create_sound_tree
#include "../../examples/own_index/shared_slots.cpp"
#undef create_tree

#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>

#include <pthread.h>
#include <unistd.h>

namespace {

struct no_answer {};

#ifdef CONSTRUCTOR_THROWS
const struct thrower {
  thrower() { throw std::runtime_error("the table of constants is worn out"); }
} thrower_of_library;
#endif
#ifdef CONSTRUCTOR_EXITS
const struct exiter {
  exiter() { std::exit(0); }
} exiter_of_library;
#endif

// What lies in the coherent part, behind the locks.
struct shared_part {
  std::uint64_t exchanged[8];
  alignas(line_bytes) std::atomic<std::uint64_t*> counter;
  alignas(line_bytes) pthread_mutex_t mutex;
  alignas(line_bytes) std::atomic<unsigned> waited_for;
};

[[maybe_unused]] std::uint64_t variable = 1;
[[maybe_unused]] std::atomic<unsigned> holder_in_dram{0};
[[maybe_unused]] unsigned trees = 0;

class defective final : public tree_api {
 public:
  explicit defective(const tree_options_t& options) : sound_(create_sound_tree(options)) {
    const int file = ::open(options.pool_path.c_str(), O_RDWR);
    void* const area = ::mmap(nullptr, options.pool_size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    part_ = reinterpret_cast<shared_part*>(static_cast<char*>(area) + coherent_bytes / 2);
#ifdef KEEPS_ITS_COUNT
    if (++trees > 1) throw std::runtime_error("a process of one tree has a second one");
#endif
#if defined HEAP_IS_SHARED
    own_ = std::make_unique<std::uint64_t>(1);
    meet(own_.get());
#elif defined VARIABLE_IS_SHARED
    meet(&variable);
#elif defined MAPPING_IS_SHARED
    void* const own = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    meet(static_cast<std::uint64_t*>(own));
#endif
  }

  bool find(const char* key, std::size_t bytes, char* value) override {
    meanwhile();
    return sound_->find(key, bytes, value);
  }
  bool insert(const char* key, std::size_t bytes, const char* value, std::size_t value_bytes) override {
    meanwhile();
    return sound_->insert(key, bytes, value, value_bytes);
  }
  bool update(const char* key, std::size_t bytes, const char* value, std::size_t value_bytes) override {
    meanwhile();
#ifdef UPPER_HALF_STAYS
    std::uint64_t now = 0;
    if (!sound_->find(key, bytes, reinterpret_cast<char*>(&now))) return false;
    now = (now & ~std::uint64_t{0xffffffff}) | (word(value) & 0xffffffff);
    return sound_->update(key, bytes, reinterpret_cast<const char*>(&now), value_bytes);
#else
    return sound_->update(key, bytes, value, value_bytes);
#endif
  }
  bool remove(const char* key, std::size_t bytes) override {
    meanwhile();
#ifdef HOLDS_A_LOCK_IN_DRAM
    // The threads of a host exclude each other by it, too.
    while (holder_in_dram.exchange(1) != 0) _mm_pause();
    const bool removed = sound_->remove(key, bytes);
    holder_in_dram.store(0);
    return removed;
#else
    return sound_->remove(key, bytes);
#endif
  }
  int scan(const char*, std::size_t, int, char*&) override { return 0; }

 private:
  // The first one's is what all use.
  [[maybe_unused]] void meet(std::uint64_t* own) {
    std::uint64_t* none = nullptr;
    part_->counter.compare_exchange_strong(none, own);
  }

  void meanwhile() {
#if defined HEAP_IS_SHARED || defined VARIABLE_IS_SHARED || defined MAPPING_IS_SHARED
    ++*part_->counter.load();
#endif
#ifdef KEEPS_ITS_MAPPINGS
    // Trims what it has mapped, as an arena does that aligns itself; another host gets the addresses. Stores directly
    // before an unmapping may still be in the buffer of the thread.
    constexpr std::size_t kept = 16384;
    char* const arena = mapped(2 * kept);
    ::munmap(arena + kept, kept);
    arena[kept - 1] = 1;
    char* const second = mapped(kept);
    second[0] = 1;
    if (char* const before = arena_.exchange(arena)) ::munmap(before, kept);
    if (char* const before = second_.exchange(second)) ::munmap(before, kept);
    char* const briefly = mapped(kept);
    briefly[0] = briefly[kept / 2] = 1;
    char* const longer = static_cast<char*>(::mremap(briefly, kept, 2 * kept, MREMAP_MAYMOVE));
    longer[kept] = longer[0];
    ::munmap(longer, 2 * kept);
#endif
#ifdef STACK_IS_SHARED
    std::uint64_t own = 1;
    asm volatile("" : : "r"(&own) : "memory");
    if (std::uint64_t* const other = part_->counter.exchange(&own); other != nullptr) ++*other;
    part_->counter.store(nullptr);
#endif
#ifdef MUTEX_IS_SHARED
    pthread_mutex_lock(&part_->mutex);
    pthread_mutex_unlock(&part_->mutex);
#endif
#ifdef MUTEX_IS_TRIED
    if (pthread_mutex_trylock(&part_->mutex) == 0) pthread_mutex_unlock(&part_->mutex);
#endif
#ifdef STD_MUTEX_IS_SHARED
    const std::lock_guard<std::mutex> alone(reinterpret_cast<std::mutex&>(part_->mutex));
#endif
#ifdef EXCHANGE_IS_UNALIGNED
    std::uint64_t expected = 0;
    pmlab_device_compare_exchange(reinterpret_cast<std::uint64_t*>(reinterpret_cast<char*>(part_->exchanged) + 4),
                                  &expected, 1);
#endif
#ifdef OPERATION_THROWS
    throw std::runtime_error("the slots are worn out");
#endif
#ifdef OPERATION_THROWS_A_NUMBER
    throw no_answer();
#endif
#ifdef OPERATION_EXITS
    std::exit(0);
#endif
#ifdef OPERATION_EXITS_AT_ONCE
    ::_exit(0);
#endif
  }

#ifdef KEEPS_ITS_MAPPINGS
  static char* mapped(std::size_t bytes) {
    return static_cast<char*>(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  std::atomic<char*> arena_{};
  std::atomic<char*> second_{};
#endif
  std::unique_ptr<tree_api> sound_;
  shared_part* part_ = nullptr;
  std::unique_ptr<std::uint64_t> own_;
};

}  // namespace

extern "C" tree_api* create_tree(const tree_options_t& options) { return new defective(options); }
