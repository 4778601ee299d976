// Kernels for media that must be informed of each access: emulated devices, counters.
//
// The bytes are also read and written, by the CPU's own instructions, as the medium expects of an index.
#pragma once

#include <pmlab/media/clock.hpp>
#include <pmlab/media/lines.hpp>
#include <pmlab/media/medium.hpp>
#include "microbench/memory/copy_destination.hpp"
#include "microbench/memory/kernels.hpp"
#include "microbench/memory/native_kernels.hpp"
#include "microbench/memory/overlap_window.hpp"
#include "microbench/memory/stored_word.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace pmlab::microbench {

template <class Medium>
class charged_kernels final : public kernels {
 public:
  charged_kernels(Medium& medium, const kernel_choice& choice)
      : medium_(medium),
        choice_(choice),
        load_(native_load(choice)),
        store_(native_store(plain(choice))),
        destination_(choice.copies ? choice.bytes : 0) {
    lines_.fill(stored_word);
  }

  void load(walk& way, std::uint64_t count) override {
    for (; count != 0; --count) {
      std::byte* const place = way.next();
      if (choice_.dependent)
        load_range(place, way.bytes);
      else
        overlap_.load(
            place, way.bytes, [this](const std::byte* at, std::uint64_t bytes) { ask(at, bytes); },
            [this](const std::byte* at, std::uint64_t bytes) { load_part(at, bytes); });
    }
  }

  void store(walk& way, std::uint64_t count) override {
    for (; count != 0; --count) {
      std::byte* place = way.next();
      const std::uint64_t every = way.fence_bytes == fence_never ? ~std::uint64_t{0} : way.fence_bytes;
      const std::uint64_t piece = std::min(every, way.bytes);
      for (std::byte* const end = place + way.bytes; place != end; place += piece) {
        store_range(place, piece);
        way.since_fence += piece;
        if (way.since_fence < every) continue;
        medium_.fence();
        way.since_fence = 0;
      }
    }
  }

  void chase(walk& way, std::uint64_t count) override {
    for (; count != 0; --count) {
      medium_.annotate_read(way.base, way.bytes);
      native_chase(way, 1);
    }
  }

  void load_one(std::byte* place) override { load_range(place, choice_.bytes); }
  void store_one(std::byte* place, bool fenced) override {
    store_range(place, choice_.bytes);
    if (fenced) medium_.fence();
  }
  void load_none(std::byte* /*place*/) override {}
  void store_none(std::byte* /*place*/) override {}

  // The machine's own caches. A line in the cache of the medium's model is evicted only by a flush after a store: cases
  // that need more are skipped.
  void drop(std::byte* start, std::uint64_t bytes) override {
    media::for_each_line(start, bytes, [](std::uintptr_t line) {
      asm volatile("clflush (%0)" : : "r"(reinterpret_cast<const std::byte*>(line)) : "memory");
    });
    asm volatile("mfence" ::: "memory");
  }

  void finish() override {
    overlap_.finish([this](const std::byte* at, std::uint64_t bytes) { load_part(at, bytes); });
    medium_.fence();
    end();
  }

  void begin() override { media::begin_operation(medium_); }
  void end() override { media::end_operation(medium_); }

  void idle(std::uint64_t ns) override {
    const media::fast_clock& clock = media::fast_clock::instance();
    for (const std::uint64_t until = clock.now() + ns * 1000; clock.now() < until;) __builtin_ia32_pause();
  }

 private:
  // The medium copies as much at a time.
  static constexpr std::uint64_t most_copied = 256;

  [[nodiscard]] static kernel_choice plain(kernel_choice choice) {
    choice.store = store_kind::plain;
    return choice;
  }
  [[nodiscard]] bool around() const noexcept {
    return choice_.store == store_kind::ntstore || choice_.store == store_kind::movdir64b;
  }

  void ask(const std::byte* at, std::uint64_t bytes) {
    media::for_each_line(at, bytes,
                         [](std::uintptr_t line) { __builtin_prefetch(reinterpret_cast<const void*>(line)); });
    if constexpr (Medium::parts.prefetches) medium_.prefetch(at, bytes);
  }

  void load_range(std::byte* place, std::uint64_t bytes) {
    medium_.annotate_read(place, bytes);
    if (destination_)
      native_copy(destination_.start(), place, bytes);
    else
      load_(place, bytes);
  }
  // A part of an access that has no loop for its size.
  void load_part(const std::byte* at, std::uint64_t bytes) {
    medium_.annotate_read(at, bytes);
    if (destination_) {
      native_copy(destination_.next(bytes), at, bytes);
      return;
    }
    for (std::uint64_t i = 0; i < bytes; i += sizeof(std::uint64_t)) {
      std::uint64_t word;
      asm volatile("movq (%1), %0" : "=r"(word) : "r"(at + i) : "memory");
    }
  }

  void store_range(std::byte* place, std::uint64_t bytes) {
    if (around()) {
      for (std::uint64_t done = 0; done < bytes; done += most_copied)
        medium_.copy(place + done, lines_.data(), std::min(most_copied, bytes - done));
      return;
    }
    if (bytes == choice_.bytes)
      store_(place, bytes);
    else
      for (std::uint64_t i = 0; i < bytes; i += sizeof stored_word)
        std::memcpy(place + i, &stored_word, sizeof stored_word);
    medium_.flush(place, bytes);
  }

  Medium& medium_;
  kernel_choice choice_;
  single load_;
  single store_;
  copy_destination destination_;
  overlap_window overlap_;
  alignas(media::cache_line_bytes) std::array<std::uint64_t, most_copied / sizeof(std::uint64_t)> lines_{};
};

}  // namespace pmlab::microbench
