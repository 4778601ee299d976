// Kernels that are the CPU's own instructions.
#include "microbench/memory/native_kernels.hpp"
#include <pmlab/media/clock.hpp>
#include "microbench/memory/copy_destination.hpp"
#include "microbench/memory/instructions.hpp"

namespace pmlab::microbench {
namespace {

class native_kernels final : public kernels {
 public:
  explicit native_kernels(const kernel_choice& choice)
      : bytes_(choice.bytes),
        load_in_order_(native_load_loop(choice, false)),
        load_by_table_(native_load_loop(choice, true)),
        store_in_order_(native_store_loop(choice, false)),
        store_by_table_(native_store_loop(choice, true)),
        load_(native_load(choice)),
        store_(native_store(choice)),
        dependent_(choice.dependent),
        destination_(choice.copies ? choice.bytes : 0) {}

  void load(walk& way, std::uint64_t count) override {
    if (destination_) {
      copy(way, count);
      return;
    }
    (way.table != nullptr ? load_by_table_ : load_in_order_)(way, count);
  }
  void store(walk& way, std::uint64_t count) override {
    (way.table != nullptr ? store_by_table_ : store_in_order_)(way, count);
  }
  void chase(walk& way, std::uint64_t count) override { native_chase(way, count); }

  // The clock was read just before: lfence orders the access after it.
  void load_one(std::byte* place) override {
    cpu::lfence();
    destination_ ? native_copy(destination_.start(), place, bytes_) : load_(place, bytes_);
  }
  // mfence: a time-stamp counter may be read while sfence still waits.
  void store_one(std::byte* place, bool fenced) override {
    cpu::lfence();
    store_(place, bytes_);
    if (fenced) cpu::sfence();
    cpu::mfence();
  }
  void load_none(std::byte* /*place*/) override { cpu::lfence(); }
  void store_none(std::byte* /*place*/) override {
    cpu::lfence();
    cpu::mfence();
  }
  // Accesses in the queues from before are not part of the next timed one.
  void begin() override { cpu::mfence(); }

  void drop(std::byte* start, std::uint64_t bytes) override {
    // Every x86-64 has clflush; clflushopt would overlap, but not every CPU has it.
    for (std::byte* at = start - reinterpret_cast<std::uintptr_t>(start) % cpu::line; at < start + bytes;
         at += cpu::line)
      cpu::clflush(at);
    cpu::mfence();
  }
  void finish() override { cpu::mfence(); }

  void idle(std::uint64_t ns) override {
    const media::fast_clock& clock = media::fast_clock::instance();
    for (const std::uint64_t until = clock.now() + ns * 1000; clock.now() < until;) __builtin_ia32_pause();
  }

 private:
  void copy(walk& way, std::uint64_t count) {
    for (; count != 0; --count) {
      native_copy(destination_.start(), way.next(), way.bytes);
      if (dependent_) cpu::lfence();
    }
  }

  std::uint64_t bytes_;
  loop load_in_order_;
  loop load_by_table_;
  loop store_in_order_;
  loop store_by_table_;
  single load_;
  single store_;
  bool dependent_;
  copy_destination destination_;
};

}  // namespace

std::unique_ptr<kernels> make_native_kernels(const kernel_choice& choice) {
  return std::make_unique<native_kernels>(choice);
}

}  // namespace pmlab::microbench
