// The medium `simulated`: persistent memory of the simulated machine.
//
// For code that is built by `pmlab_simulate`. The instrument observes loads and stores; this medium adds the flushes,
// fences and publications. Pointers are offsets, so that an image of a crash can be opened at another address.
#pragma once

#include "checker/simulator/calls.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/medium.hpp>
#include <pmlab/media/root_table.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>
#include <string>
#include <string_view>

namespace pmlab::simulator {

// Thread safety: every operation from any number of (simulated) threads.
class simulated {
 public:
  static constexpr bool durable = true;
  static constexpr media::optional_parts parts{.operations = true, .pointer_bound = true};
  // An index is made thousands of times, and each lock is an access then.
  static constexpr media::index_sizes sizes = media::sizes_for_short_histories(std::size_t{1} << 12);

  // The memory that the machine watches, whose content may come from an earlier run or crash.
  simulated() : memory_(pmlab_memory_current()) {
    if (memory_ == nullptr) throw error("the simulated machine watches no memory", "begin a run first");
    start();
  }

  // A new separate memory, of at most `bytes` bytes, for runs that measure time on device profile `profile`.
  simulated(std::string profile, std::size_t bytes)
      : profile_(std::move(profile)), memory_(pmlab_memory_make(bytes)), owned_(true) {
    if (memory_ == nullptr) throw error("no room for a simulated memory", "give a smaller size");
    start();
  }

  simulated(const simulated&) = delete;
  simulated& operator=(const simulated&) = delete;
  ~simulated() {
    if (owned_) pmlab_memory_drop(memory_);
  }

  class publication {
   public:
    explicit publication(simulated& medium) noexcept : medium_(medium) {}
    publication(const publication&) = delete;
    publication& operator=(const publication&) = delete;
    ~publication() {
      for (std::size_t i = 0; i < count_; ++i)
        if (changes_[i].kind == keep) pmlab_memory_cancel(medium_.memory_, changes_[i].address);
    }

    [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment) {
      void* const block = pmlab_memory_reserve(medium_.memory_, bytes, alignment);
      if (block != nullptr) add(keep, block, bytes);
      return block;
    }
    [[nodiscard]] void* allocate_coherent(std::size_t bytes, std::size_t alignment) {
      void* const block = pmlab_memory_reserve_coherent(medium_.memory_, bytes, alignment);
      if (block != nullptr) add(keep, block, bytes);
      return block;
    }
    void store(std::atomic<std::uint64_t>& word, std::uint64_t value) { add(stored, &word, value); }
    void release(void* block, std::size_t bytes) { add(released, block, bytes); }

    [[gnu::noinline]] void commit() {
      pmlab_memory_publish(medium_.memory_, changes_.data(), count_, __builtin_return_address(0));
      count_ = 0;
    }

   private:
    static constexpr unsigned keep = 0;
    static constexpr unsigned stored = 1;
    static constexpr unsigned released = 2;

    void add(unsigned kind, void* address, std::uint64_t value) {
      if (count_ == changes_.size())
        throw error("a publication of too many changes", "publish at most media::publication_limit at once");
      changes_[count_++] = {kind, address, value};
    }

    simulated& medium_;
    std::array<pmlab_change, media::publication_limit> changes_;
    std::size_t count_ = 0;
  };

  // The shards of an index that divides itself: few where histories are short and are to meet in one.
  [[nodiscard]] std::size_t shards(std::size_t usual) const noexcept { return owned_ ? usual : 2; }

  [[nodiscard]] std::string name() const { return profile_.empty() ? "simulated" : "simulated:" + profile_; }

  template <class T>
  [[nodiscard]] T* resolve(media::pointer<T> p) const noexcept {
    return reinterpret_cast<T*>(start_ + p.word());
  }
  template <class T>
  [[nodiscard]] media::pointer<T> locate(const T* object) const noexcept {
    return media::pointer<T>(static_cast<std::uint64_t>(reinterpret_cast<const char*>(object) - start_));
  }
  [[nodiscard]] std::uint64_t pointer_bound() const noexcept { return bytes_; }

  [[gnu::noinline]] void flush(const void* address, std::size_t bytes) noexcept {
    const void* const caller = __builtin_return_address(0);
    media::for_each_line(address, bytes, [caller](std::uintptr_t line) {
      pmlab_machine_flush(reinterpret_cast<const void*>(line), 0, caller);
    });
  }
  [[gnu::noinline]] void fence() noexcept { pmlab_machine_fence(0, __builtin_return_address(0)); }
  // Copies words, as the non-temporal instructions store them.
  [[gnu::noinline]] void copy(void* target, const void* source, std::size_t bytes) noexcept {
    const void* const caller = __builtin_return_address(0);
    for (std::size_t line = 0; line < bytes; line += media::cache_line_bytes) {
      pmlab_machine_ntstore(static_cast<char*>(target) + line, media::cache_line_bytes, caller);
      copy_line(static_cast<char*>(target) + line, static_cast<const char*>(source) + line);
    }
  }
  void annotate_read(const void* /*start*/, std::size_t /*bytes*/) noexcept {}

  void begin_operation() noexcept { pmlab_machine_begin_timing(); }
  void end_operation() noexcept { pmlab_machine_end_timing(); }

  // ---- several hosts (media/hosts.hpp) ----

  static constexpr bool shared_by_hosts = true;
  [[nodiscard]] unsigned hosts() const noexcept { return pmlab_machine_hosts(); }
  [[nodiscard]] unsigned host() const noexcept { return pmlab_machine_host(); }
  [[nodiscard]] bool host_is_alive(unsigned host) const noexcept { return pmlab_machine_host_is_alive(host); }
  [[gnu::noinline]] void refresh(const void* address, std::size_t bytes) noexcept {
    if (hosts() == 1 || pmlab_machine_is_coherent(address)) return;
    constexpr unsigned clflushopt = 1, mfence = 1;
    const void* const caller = __builtin_return_address(0);
    media::for_each_line(address, bytes, [caller](std::uintptr_t line) {
      pmlab_machine_flush(reinterpret_cast<const void*>(line), clflushopt, caller);
    });
    pmlab_machine_fence(mfence, caller);
  }
  [[gnu::noinline]] bool device_compare_exchange(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                                                 std::uint64_t desired) noexcept {
    return pmlab_machine_device_exchange(reinterpret_cast<std::uint64_t*>(&word), &expected, desired,
                                         __builtin_return_address(0));
  }

  [[nodiscard]] media::root named_root(std::string_view name, std::string_view layout, std::uint64_t version) {
    see_roots();
    const std::scoped_lock lock(mutex_);
    auto& table = *reinterpret_cast<media::root_table*>(start_ + roots_at);
    return table.find_or_add(name, layout, version, [this](const media::root_entry& e) { media::persist(*this, e); });
  }

  [[nodiscard]] media::usage used() const { return {pmlab_memory_allocated(memory_), bytes_}; }

 private:
  static constexpr std::size_t roots_at = 4096;  // persistent_memory::roots_at

  // Those that other hosts have added.
  [[gnu::noinline]] void see_roots() noexcept {
    if (hosts() > 1) refresh(start_ + roots_at, sizeof(media::root_table));
  }

  void start() {
    start_ = static_cast<char*>(pmlab_memory_start(memory_));
    bytes_ = pmlab_memory_bytes(memory_);
  }

  // Announced as a whole already. A call in here could be mistaken for the next event, and half a line for all of it.
  __attribute__((no_sanitize("thread"))) static void copy_line(char* target, const char* source) noexcept {
    using word [[gnu::may_alias]] = std::uint64_t;
    const auto* const from = reinterpret_cast<const volatile word*>(source);
    auto* const to = reinterpret_cast<volatile word*>(target);
    for (std::size_t i = 0; i < media::cache_line_bytes / sizeof(word); ++i) to[i] = from[i];
  }

  std::string profile_;
  void* memory_;
  bool owned_ = false;
  char* start_ = nullptr;
  std::size_t bytes_ = 0;
  std::mutex mutex_;
};

static_assert(media::medium<simulated>);

}  // namespace pmlab::simulator
