// Lines of a file, and a copy of them for each process: hosts whose caches are not coherent, on one machine.
//
// Pages that processes share are coherent, and a process that is killed loses none of its stores. So a process has
// copies of its own here, and stores reach the device when it writes a line back: what it has not written back is lost
// when it is killed, and what others have written back it does not see until it refreshes the line. Coherent lines are
// those of the file. What stands for the device has two places for each line that is not coherent:
//
//   control | place 0 | place 1         control: | version 48 | host + 1: 15 | held 1 |
//
// A host holds the control word, writes all of the line to the place that is not its version's, and then raises the
// version: (C1) < (C2). A host that is killed in between has written nothing, and the next one takes the word from it.
#pragma once

#include <pmlab/base/random.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/pod/host_file.hpp>
#include <pmlab/pod/line_memory.hpp>
#include <pmlab/sync/relax.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace pmlab::pod {

// What the copies are to do wrong, so that a test can fail.
struct stale_faults {
  bool refreshes_nothing = false;  // copies stay as they are, but by chance
  bool publishes_nothing = false;  // dirty lines leave by chance alone
};

// Thread safety: none: a host has one thread. Lines leave the copies, and are read again, by chance, too: within calls
// of this class, so between two plain stores they do not.
class stale_lines {
 public:
  static constexpr bool has_stale_copies = true;  // a file is made for these lines, or for file_lines
  // Bytes of the file behind a memory of this shape.
  [[nodiscard]] static constexpr std::uint64_t bytes_beyond(const file_shape& shape) noexcept {
    return (shape.bytes - shape.coherent_bytes) / line * sizeof(device_line);
  }

  // `seed`: decides which lines come and go by chance. Throws pmlab::error: see host_file and shared_mapping; there is
  // no memory.
  stale_lines(const std::string& path, sharing how, std::uint64_t seed = 1, stale_faults faults = {})
      : file_(path, how, has_stale_copies, bytes_beyond),
        chance_(seed),
        faults_(faults),
        copies_(file_.shape().bytes),
        coherent_(file_, host_file::head_bytes, coherent_bytes(), copies_.begin),
        device_(file_, host_file::head_bytes + bytes(), bytes_beyond(file_.shape())),
        taken_(std::max<std::uint64_t>(bytes() - coherent_bytes(), line)) {
    for (std::size_t i = 0; i < lines(); ++i) take(i);
  }
  stale_lines(const stale_lines&) = delete;
  stale_lines& operator=(const stale_lines&) = delete;
  ~stale_lines() = default;

  [[nodiscard]] std::string name() const { return "stale_copies:" + file_.path(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return file_.shape().bytes; }
  [[nodiscard]] std::uint64_t coherent_bytes() const noexcept { return file_.shape().coherent_bytes; }
  [[nodiscard]] char* at(std::uint64_t offset) const noexcept { return copies_.begin + offset; }
  [[nodiscard]] std::uint64_t offset_of(const void* address) const noexcept {
    return static_cast<std::uint64_t>(static_cast<const char*>(address) - copies_.begin);
  }
  [[nodiscard]] static bool is_durable() noexcept { return false; }

  [[nodiscard]] bool is_alone() const noexcept { return file_.is_alone(); }
  [[nodiscard]] bool take_host(unsigned host) noexcept {
    if (!file_.take_host(host)) return false;
    host_ = host;
    // Control words that a host of this slot held when it died.
    for (std::size_t i = 0; i < lines(); ++i) {
      std::uint64_t control = on_device(i).control.load(std::memory_order_acquire);
      while ((control & 0xffff) == (std::uint64_t{host + 1} << 1 | held) &&
             !on_device(i).control.compare_exchange_weak(control, control & ~std::uint64_t{0xffff})) {
      }
    }
    return true;
  }
  void release_host(unsigned host) noexcept { file_.release_host(host); }
  [[nodiscard]] bool has_died(unsigned host) const noexcept { return host != host_ && !file_.is_taken(host); }

  void flush(const void* address, std::size_t bytes) noexcept {
    something_happens();
    if (faults_.publishes_nothing) return;
    for_each_own_line(address, bytes, [this](std::size_t i) {
      // A line may leave at once, or with the fence.
      if (flushed_.size() == flushed_.capacity() || chance_.below(2) == 0)
        write_back(i);
      else
        flushed_.push_back(i);
    });
  }
  void fence() noexcept {
    for (const std::size_t i : flushed_) write_back(i);
    flushed_.clear();
    something_happens();
  }
  void copy(void* target, const void* source, std::size_t bytes) noexcept {
    std::memcpy(target, source, bytes);
    flush(target, bytes);
  }
  void refresh(const void* address, std::size_t bytes) noexcept {
    something_happens();
    if (faults_.refreshes_nothing) return;
    for_each_own_line(address, bytes, [this](std::size_t i) {
      write_back(i);
      take(i);
    });
  }
  [[nodiscard]] bool device_compare_exchange(std::atomic<std::uint64_t>& word, std::uint64_t& expected,
                                             std::uint64_t desired) noexcept {
    something_happens();
    if (is_coherent(&word))
      return word.compare_exchange_strong(expected, desired, std::memory_order_acq_rel, std::memory_order_acquire);
    const std::uint64_t wanted = expected;
    change_device(line_of(&word), [&](content& c) {
      std::uint64_t& there = c[word_of(&word)];
      expected = there;
      if (there == wanted) there = desired;
      return expected == wanted;
    });
    return expected == wanted;
  }
  void device_store(std::atomic<std::uint64_t>& word, std::uint64_t value) noexcept {
    something_happens();
    if (is_coherent(&word)) return word.store(value, std::memory_order_seq_cst);
    const std::size_t i = line_of(&word);
    // The store drops this host's copy of the line.
    write_back(i);
    change_device(i, [&](content& c) {
      c[word_of(&word)] = value;
      return true;
    });
    take(i);
  }

  // Lines that came or went by chance.
  [[nodiscard]] std::uint64_t happened() const noexcept { return happened_; }

 private:
  static constexpr std::size_t line = media::cache_line_bytes;
  using shared_word = std::atomic<std::uint64_t>;
  using content = std::array<std::uint64_t, line / sizeof(shared_word)>;
  struct alignas(line) device_line {
    shared_word control;
    alignas(line) std::array<std::array<shared_word, line / sizeof(shared_word)>, 2> places;
  };
  static constexpr std::uint64_t held = 1;
  static constexpr unsigned version_shift = 16;

  // Pages of this process alone.
  struct own_pages {
    explicit own_pages(std::uint64_t size)
        : bytes(size),
          begin(static_cast<char*>(
              ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
      if (begin == MAP_FAILED)
        throw error(std::string("no memory for copies of a shared file: ") + std::strerror(errno),
                    "make the file smaller");
    }
    own_pages(const own_pages&) = delete;
    own_pages& operator=(const own_pages&) = delete;
    ~own_pages() { ::munmap(begin, bytes); }
    std::uint64_t bytes;
    char* begin;
  };

  [[nodiscard]] std::size_t lines() const noexcept {
    return static_cast<std::size_t>((bytes() - coherent_bytes()) / line);
  }
  [[nodiscard]] bool is_coherent(const void* address) const noexcept { return offset_of(address) < coherent_bytes(); }
  [[nodiscard]] std::size_t line_of(const void* address) const noexcept {
    return static_cast<std::size_t>((offset_of(address) - coherent_bytes()) / line);
  }
  [[nodiscard]] std::size_t word_of(const void* address) const noexcept { return offset_of(address) % line / 8; }
  [[nodiscard]] char* copy_of(std::size_t i) const noexcept { return at(coherent_bytes() + i * line); }
  [[nodiscard]] device_line& on_device(std::size_t i) const noexcept {
    return reinterpret_cast<device_line*>(device_.begin())[i];
  }
  template <class Function>
  void for_each_own_line(const void* address, std::size_t bytes, Function&& function) {
    media::for_each_line(address, bytes, [&](std::uintptr_t start) {
      const auto* const first = reinterpret_cast<const void*>(start);
      if (is_coherent(first)) return;
      const std::size_t i = line_of(first);
      touched_[touches_++ % touched_.size()] = i;
      function(i);
    });
  }

  // ---- the device ----

  [[nodiscard]] content newest(std::size_t i) const noexcept {
    const device_line& there = on_device(i);
    for (sync::backoff wait;; wait.pause()) {
      const std::uint64_t version = there.control.load(std::memory_order_acquire) >> version_shift;
      content c;
      for (std::size_t w = 0; w < c.size(); ++w) c[w] = there.places[version % 2][w].load(std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_acquire);
      // This place is written behind the next version alone.
      if (there.control.load(std::memory_order_relaxed) >> version_shift == version) return c;
    }
  }
  // Lets change(content) decide whether the line gets a new version.
  template <class Change>
  void change_device(std::size_t i, Change&& change) noexcept {
    device_line& there = on_device(i);
    std::uint64_t control = there.control.load(std::memory_order_acquire);
    const std::uint64_t mine = std::uint64_t{host_ + 1} << 1 | held;
    for (sync::backoff wait;; wait.pause()) {
      const auto holder = static_cast<unsigned>((control & 0xffff) >> 1);
      if ((control & held) != 0 && holder != host_ + 1 && file_.is_taken(holder - 1)) {
        control = there.control.load(std::memory_order_acquire);
        continue;
      }
      const std::uint64_t taken = (control >> version_shift << version_shift) | mine;
      if (there.control.compare_exchange_weak(control, taken, std::memory_order_acq_rel, std::memory_order_acquire)) {
        control = taken;
        break;
      }
    }
    const std::uint64_t version = control >> version_shift;
    content c;
    for (std::size_t w = 0; w < c.size(); ++w) c[w] = there.places[version % 2][w].load(std::memory_order_relaxed);
    const bool has_changed = change(c);
    if (has_changed)
      for (std::size_t w = 0; w < c.size(); ++w)
        there.places[(version + 1) % 2][w].store(c[w], std::memory_order_relaxed);                       // (C1)
    there.control.store((version + (has_changed ? 1 : 0)) << version_shift, std::memory_order_release);  // (C2)
  }

  // ---- this host's copies ----

  // The copy becomes the device's newest version. REQUIRES: it is not dirty.
  void take(std::size_t i) noexcept {
    const content c = newest(i);
    put(copy_of(i), c);
    put(taken_.begin + i * line, c);
  }
  // A dirty line goes to the device, with all of its bytes.
  void write_back(std::size_t i) noexcept {
    const content mine = get(copy_of(i));
    if (mine == get(taken_.begin + i * line)) return;
    change_device(i, [&](content& c) {
      c = mine;
      return true;
    });
    put(taken_.begin + i * line, mine);
  }
  [[nodiscard]] static content get(const char* from) noexcept {
    content c;
    std::memcpy(c.data(), from, line);
    return c;
  }
  static void put(char* to, const content& c) noexcept { std::memcpy(to, c.data(), line); }

  // A dirty line is evicted, or a clean one is evicted and loaded again: one of those that were touched last.
  void something_happens() noexcept {
    constexpr std::uint64_t one_in = 16;
    if (touches_ == 0 || chance_.below(one_in) != 0) return;
    const std::size_t i = touched_[chance_.below(std::min<std::uint64_t>(touches_, touched_.size()))];
    ++happened_;
    write_back(i);
    take(i);
  }

  host_file file_;
  splitmix64 chance_;
  stale_faults faults_;
  own_pages copies_;
  shared_mapping coherent_;  // in the place of the first copies
  shared_mapping device_;
  own_pages taken_;  // the copies as they were taken or written back: a line that differs is dirty
  std::vector<std::size_t> flushed_ = with_room();
  std::array<std::size_t, 64> touched_{};
  std::uint64_t touches_ = 0;
  std::uint64_t happened_ = 0;
  unsigned host_ = 0x7fff - 1;  // none yet

  [[nodiscard]] static std::vector<std::size_t> with_room() {
    std::vector<std::size_t> empty;
    empty.reserve(64);
    return empty;
  }
};
static_assert(line_memory<stale_lines>);

}  // namespace pmlab::pod
