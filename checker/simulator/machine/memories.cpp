// The memories of the medium `simulated`, by handles.
#include "checker/simulator/calls.hpp"
#include "checker/simulator/machine/machine.hpp"
#include <pmlab/media/root_table.hpp>

#include <new>

using pmlab::simulator::persistent_memory;
using pmlab::simulator::the_machine;

namespace {

persistent_memory& of(void* handle) noexcept { return *static_cast<persistent_memory*>(handle); }
const persistent_memory& of(const void* handle) noexcept { return *static_cast<const persistent_memory*>(handle); }

}  // namespace

extern "C" {

void* pmlab_memory_current() noexcept { return the_machine().memory(); }

void* pmlab_memory_make(std::size_t bytes) noexcept {
  return the_machine().quietly([&]() -> void* {
    try {
      auto* const made = new persistent_memory(bytes);
      made->keep_log(false);
      if (auto* const hosts = the_machine().timed_hosts(); hosts != nullptr) {
        if (the_machine().has_coherent_part()) made->divide_blocks_at(hosts->coherent_bytes);
        hosts->start = reinterpret_cast<std::uintptr_t>(made->start());
      }
      return made;
    } catch (...) {
      return nullptr;
    }
  });
}
void pmlab_memory_drop(void* memory) noexcept {
  the_machine().quietly([&] { delete static_cast<persistent_memory*>(memory); });
}

void* pmlab_memory_start(const void* memory) noexcept { return of(memory).start(); }
std::size_t pmlab_memory_bytes(const void* memory) noexcept { return of(memory).bytes(); }
std::size_t pmlab_memory_allocated(const void* memory) noexcept { return of(memory).blocks().live_bytes(); }

void* pmlab_memory_reserve(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
  return the_machine().quietly([&] { return of(memory).reserve(bytes, alignment); });
}
void* pmlab_memory_reserve_coherent(void* memory, std::size_t bytes, std::size_t alignment) noexcept {
  return the_machine().quietly([&] {
    constexpr bool low = true;
    void* block = nullptr;
    if (the_machine().has_coherent_part()) block = of(memory).reserve(bytes, alignment, low);
    return block != nullptr ? block : of(memory).reserve(bytes, alignment);
  });
}
void pmlab_memory_cancel(void* memory, void* block) noexcept {
  the_machine().quietly([&] { of(memory).cancel(block); });
}

bool pmlab_machine_has_room(std::size_t bytes) noexcept {
  constexpr std::size_t uncounted = 0;
  return !the_machine().limit_of_dram().refuses(bytes, uncounted);
}

void pmlab_memory_publish(void* memory, const pmlab_change* changes, std::size_t count, const void* caller) noexcept {
  the_machine().publish(of(memory), {changes, count}, caller);
}
}
