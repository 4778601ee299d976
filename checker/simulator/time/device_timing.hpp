// Virtual time for the simulated machine: its fibers' events, charged to the cores of a memory_hierarchy.
#pragma once

#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/time/memory_hierarchy.hpp"
#include "checker/simulator/time/publication_cost.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pmlab::simulator {

// Fiber i runs on core i. A run whose fibers come and go uses numbers again that are not in use any more only if there
// are more of them than cores.
class device_timing final : public timing {
 public:
  // Throws pmlab::error: see memory_hierarchy.
  device_timing(const media::device_profile& device, const media::device_profile& dram, unsigned cores,
                std::uint32_t first_frame = 0, const timed_hosts* hosts = nullptr)
      : cores_(cores), memory_(device, dram, cores, {}, first_frame, hosts), granule_bytes_(device.granule_bytes) {}

  // The caches behind the first level.
  [[nodiscard]] std::uint64_t cache_bytes() const noexcept { return memory_.cache_bytes(); }

  bool is_private(unsigned core, std::uintptr_t address, std::size_t bytes, access_kind kind) override {
    return memory_.is_private(core_of(core), address, bytes,
                              kind != access_kind::read && kind != access_kind::atomic_read);
  }

  std::uint64_t hit(unsigned core, std::uintptr_t address, std::size_t bytes, access_kind kind,
                    std::uint64_t now) override {
    switch (kind) {
      case access_kind::read:
      case access_kind::atomic_read: return memory_.load_hit(core_of(core), address, bytes, now);
      case access_kind::write:
      case access_kind::atomic_write: return memory_.store_hit(core_of(core), address, bytes, now);
      case access_kind::read_modify_write: break;
    }
    return no_hit;
  }

  std::uint64_t access(unsigned core, std::uintptr_t address, std::size_t bytes, access_kind kind,
                       std::uint64_t now) override {
    const bool persistent = persistent_memory::in_area(address);
    core = core_of(core);
    switch (kind) {
      case access_kind::read:
      case access_kind::atomic_read: return memory_.load(core, address, bytes, persistent, now);
      case access_kind::write:
      case access_kind::atomic_write: return memory_.store(core, address, bytes, persistent, now);
      case access_kind::read_modify_write: return memory_.read_modify_write(core, address, bytes, persistent, now);
    }
    return now;
  }

  std::uint64_t flush(unsigned core, std::uintptr_t address, bool evicts, std::uint64_t now) override {
    return memory_.flush(core_of(core), address, now, evicts);
  }
  std::uint64_t write_around(unsigned core, std::uintptr_t address, std::size_t bytes, std::uint64_t now) override {
    return memory_.write_around(core_of(core), address, bytes, persistent_memory::in_area(address), now);
  }
  std::uint64_t prefetch(unsigned core, std::uintptr_t address, std::size_t bytes, std::uint64_t now) override {
    return memory_.prefetch(core_of(core), address, bytes, persistent_memory::in_area(address), now);
  }
  std::uint64_t fence(unsigned core, std::uint64_t now) override { return memory_.fence(core_of(core), now); }
  std::uint64_t load_fence(unsigned core, std::uint64_t now) override {
    constexpr bool orders_loads = true;
    return memory_.fence(core_of(core), now, orders_loads);
  }
  std::uint64_t exchange_on_device(unsigned core, std::uintptr_t address, std::uint64_t now) override {
    return memory_.exchange_on_device(core_of(core), address, now);
  }

  std::uint64_t publication(unsigned core, std::span<const std::uintptr_t> words, std::size_t blocks,
                            std::uint64_t now) override {
    std::array<published_change, 64> changes;
    std::size_t count = 0;
    for (; count < blocks && count < changes.size(); ++count)
      changes[count] = {published_change::kind::allocate, next_block_ += block_bytes};
    for (std::size_t i = 0; i < words.size() && count < changes.size(); ++i)
      changes[count++] = {published_change::kind::store, words[i]};
    return publish(memory_, core_of(core), std::span(changes).first(count), now);
  }

  [[nodiscard]] media_traffic traffic() const noexcept override {
    const media::device_model::media_work work = memory_.device_work();
    return {work.granules_read * granule_bytes_, work.granules_written * granule_bytes_, granule_bytes_,
            memory_.fetched()};
  }

  [[nodiscard]] const memory_hierarchy& memory() const noexcept { return memory_; }

 private:
  static_assert(memory_hierarchy::miss == no_hit);

  // A division takes longer than a hit.
  [[nodiscard]] unsigned core_of(unsigned fiber) const noexcept { return fiber < cores_ ? fiber : fiber % cores_; }

  // The machine does not report where blocks are; their headers and the bitmap of their run count: one after the other.
  static constexpr std::uintptr_t block_bytes = 512;

  unsigned cores_;
  memory_hierarchy memory_;
  std::uint64_t granule_bytes_;
  std::uintptr_t next_block_ = 0;
};

}  // namespace pmlab::simulator
