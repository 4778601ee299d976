// Loads by the CPU's own instructions: a loop for every width, size, order, and dependent or not.
#include "microbench/memory/native_loops.hpp"

namespace pmlab::microbench {
namespace {

template <load_kind Kind, std::size_t Bytes, bool ByTable, bool Dependent>
void load_loop(walk& way, std::uint64_t count) {
  detail::for_each_place<ByTable>(way, count, [bytes = way.bytes](const std::byte* place) {
    cpu::load<Bytes, Kind>(place, bytes);
    // No later instruction begins before all loads so far have their data.
    if constexpr (Dependent) cpu::lfence();
  });
  cpu::leave_vectors<Kind>();
}

}  // namespace

loop native_load_loop(const kernel_choice& choice, bool by_table) {
  return detail::with_load_kind(choice.load, [&]<load_kind Kind>() {
    return detail::with_size(choice.bytes, [&]<std::size_t Bytes>() -> loop {
      if (choice.dependent)
        return by_table ? &load_loop<Kind, Bytes, true, true> : &load_loop<Kind, Bytes, false, true>;
      return by_table ? &load_loop<Kind, Bytes, true, false> : &load_loop<Kind, Bytes, false, false>;
    });
  });
}

single native_load(const kernel_choice& choice) {
  return detail::with_load_kind(choice.load, [&]<load_kind Kind>() {
    return detail::with_size(choice.bytes, []<std::size_t Bytes>() -> single {
      return [](std::byte* place, std::uint64_t bytes) {
        cpu::load<Bytes, Kind>(place, bytes);
        cpu::leave_vectors<Kind>();
      };
    });
  });
}

void native_chase(walk& way, std::uint64_t count) {
  const std::byte* place = way.base;
  if (way.bytes <= cpu::line) {
    for (; count != 0; --count) asm volatile("movq (%0), %0" : "+r"(place) : : "memory");
  } else {
    // The first word of each other line is 0, which is known only from the line itself: the next place is known when
    // all of this one has arrived.
    for (; count != 0; --count) {
      std::uint64_t next = 0;
      for (std::uint64_t at = 0; at < way.bytes; at += cpu::line)
        asm volatile("addq (%1), %0" : "+r"(next) : "r"(place + at) : "memory", "cc");
      place = reinterpret_cast<const std::byte*>(next);
    }
  }
  way.base = const_cast<std::byte*>(place);
}

}  // namespace pmlab::microbench
