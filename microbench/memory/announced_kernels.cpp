// Kernels for the simulated machine.
#include "microbench/memory/announced_kernels.hpp"
#include "checker/simulator/calls.hpp"
#include <pmlab/media/lines.hpp>
#include "microbench/memory/copy_destination.hpp"
#include "microbench/memory/overlap_window.hpp"
#include "microbench/memory/stored_word.hpp"

#include <algorithm>
#include <cstring>

#include <sched.h>

namespace pmlab::microbench {
namespace {

constexpr unsigned sfence = 0;
constexpr unsigned mfence = 1;

class announced_kernels final : public kernels {
 public:
  explicit announced_kernels(const kernel_choice& choice)
      : choice_(choice), destination_(choice.copies ? choice.bytes : 0) {}

  void load(walk& way, std::uint64_t count) override {
    for (; count != 0; --count) {
      std::byte* const place = way.next();
      if (choice_.dependent) {
        separate();
        read(place, way.bytes);
      } else if (destination_) {
        // As the machine takes it that a program's memcpy goes: the loads of one call overlap.
        read(place, way.bytes);
      } else {
        overlap_.load(
            place, way.bytes,
            // Line by line: between any two of them another core may have its turn.
            [](const std::byte* at, std::uint64_t bytes) {
              media::for_each_line(at, bytes, [](std::uintptr_t line) {
                pmlab_machine_prefetch(reinterpret_cast<const void*>(line), 1);
              });
            },
            [this](const std::byte* at, std::uint64_t bytes) { load_range(at, bytes); });
      }
    }
  }

  void store(walk& way, std::uint64_t count) override {
    for (; count != 0; --count) {
      std::byte* place = way.next();
      const std::uint64_t every = way.fence_bytes;
      if (every == fence_never) {
        store_range(place, way.bytes);
        continue;
      }
      const std::uint64_t piece = std::min(every, way.bytes);
      for (std::byte* const end = place + way.bytes; place != end; place += piece) {
        store_range(place, piece);
        way.since_fence += piece;
        if (way.since_fence < every) continue;
        fence(sfence);
        way.since_fence = 0;
      }
    }
  }

  void chase(walk& way, std::uint64_t count) override {
    for (; count != 0; --count) {
      separate();
      for (std::uint64_t at = 0; at < way.bytes; at += media::cache_line_bytes)
        pmlab_machine_load(way.base + at, word_bytes, here());
      std::uintptr_t next;
      std::memcpy(&next, way.base, sizeof next);
      way.base = reinterpret_cast<std::byte*>(next);
    }
  }

  void load_one(std::byte* place) override { read(place, choice_.bytes); }
  void store_one(std::byte* place, bool fenced) override {
    store_range(place, choice_.bytes);
    if (fenced) fence(sfence);
  }
  void load_none(std::byte* /*place*/) override {}
  void store_none(std::byte* /*place*/) override {}

  void enter() override { pmlab_machine_begin_timing(); }
  void leave() override { pmlab_machine_end_timing(); }

  void touch(std::byte* place) override { pmlab_machine_load(place, word_bytes, here()); }
  void drop(std::byte* start, std::uint64_t bytes) override {
    constexpr unsigned clflushopt = 1;
    media::for_each_line(start, bytes, [](std::uintptr_t line) {
      pmlab_machine_flush(reinterpret_cast<const void*>(line), clflushopt, here());
    });
    fence(mfence);
  }

  void finish() override {
    overlap_.finish([this](const std::byte* at, std::uint64_t bytes) { load_range(at, bytes); });
    fence(mfence);
  }

  // Later accesses do not begin before earlier ones have ended: a timed access is alone.
  void begin() override { fence(mfence); }

  // Not asleep: the machine lets running threads pass the end of a sleep.
  void idle(std::uint64_t ns) override {
    constexpr std::uint64_t yield = 300'000;  // picoseconds that a yield costs on the machine, rounded up
    const std::uint64_t until = pmlab_machine_now() + ns * 1000;
    while (pmlab_machine_now() + yield < until) sched_yield();
    // The latency of a load would depend on the address of the program's own memory, and so would the figures.
    while (pmlab_machine_now() < until) fence(sfence);
  }

 private:
  static constexpr std::uint64_t word_bytes = sizeof(std::uint64_t);

  [[nodiscard]] static const void* here() noexcept { return nullptr; }
  static void fence(unsigned instruction) noexcept { pmlab_machine_fence(instruction, here()); }

  // The machine assumes that loads near each other are of one object and overlap. These do not.
  static void separate() noexcept { fence(mfence); }

  [[nodiscard]] std::uint64_t width() const noexcept {
    switch (choice_.load) {
      case load_kind::scalar: return 8;
      case load_kind::avx2: return 32;
      default: return 64;
    }
  }

  // Calls one(start, bytes) as often as there are instructions.
  template <class One>
  void for_each_part(std::byte* start, std::uint64_t bytes, One&& one) const {
    for (std::uint64_t part = width(); bytes != 0;) {
      while (part > bytes) part /= 2;
      one(start, part);
      start += part;
      bytes -= part;
    }
  }

  // A load, or a copy, of a whole access.
  void read(const std::byte* start, std::uint64_t bytes) const {
    if (!destination_) {
      load_range(start, bytes);
      return;
    }
    std::byte* to = destination_.start();
    for_each_part(const_cast<std::byte*>(start), bytes, [&to](const std::byte* from, std::uint64_t part) {
      pmlab_machine_load(from, part, here());
      pmlab_machine_store(to, part, here());
      std::memcpy(to, from, part);
      to += part;
    });
  }

  void load_range(const std::byte* start, std::uint64_t bytes) const {
    for_each_part(const_cast<std::byte*>(start), bytes,
                  [](const std::byte* at, std::uint64_t part) { pmlab_machine_load(at, part, here()); });
  }

  void store_range(std::byte* start, std::uint64_t bytes) const {
    const bool around = choice_.store == store_kind::ntstore || choice_.store == store_kind::movdir64b;
    for (std::uint64_t done = 0; done < bytes; done += media::cache_line_bytes) {
      const std::uint64_t some = std::min<std::uint64_t>(media::cache_line_bytes, bytes - done);
      for_each_part(start + done, some, [around](std::byte* at, std::uint64_t part) {
        around ? pmlab_machine_ntstore(at, part, here()) : pmlab_machine_store(at, part, here());
        for (std::uint64_t i = 0; i < part; i += word_bytes) std::memcpy(at + i, &stored_word, word_bytes);
      });
      if (!around && choice_.store != store_kind::plain) write_back(start + done, some);
    }
  }

  void write_back(const std::byte* start, std::uint64_t bytes) const {
    const unsigned instruction = choice_.store == store_kind::clwb         ? 0
                                 : choice_.store == store_kind::clflushopt ? 1
                                                                           : 2;
    media::for_each_line(start, bytes, [instruction](std::uintptr_t line) {
      pmlab_machine_flush(reinterpret_cast<const void*>(line), instruction, here());
    });
  }

  kernel_choice choice_;
  copy_destination destination_;
  overlap_window overlap_;
};

}  // namespace

std::unique_ptr<kernels> make_announced_kernels(const kernel_choice& choice) {
  return std::make_unique<announced_kernels>(choice);
}

}  // namespace pmlab::microbench
