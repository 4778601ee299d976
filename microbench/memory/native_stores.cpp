// Stores by the CPU's own instructions: a loop for every kind, width, size and order.
#include "microbench/memory/native_loops.hpp"

namespace pmlab::microbench {
namespace {

template <class Visit>
auto with_store_kind(store_kind kind, Visit&& visit) {
  switch (kind) {
    case store_kind::clwb: return visit.template operator()<store_kind::clwb>();
    case store_kind::clflushopt: return visit.template operator()<store_kind::clflushopt>();
    case store_kind::clflush: return visit.template operator()<store_kind::clflush>();
    case store_kind::plain: return visit.template operator()<store_kind::plain>();
    case store_kind::movdir64b: return visit.template operator()<store_kind::movdir64b>();
    default: return visit.template operator()<store_kind::ntstore>();
  }
}

// A fence after every `fence_bytes`, which are a multiple of the access or a part of it.
template <store_kind Kind, load_kind Width, std::size_t Bytes, bool ByTable>
void store_loop(walk& way, std::uint64_t count) {
  const std::uint64_t bytes = Bytes != 0 ? Bytes : way.bytes;
  const std::uint64_t every = way.fence_bytes;
  if (every == fence_never) {
    detail::for_each_place<ByTable>(way, count,
                                    [&](std::byte* place) { cpu::store<Bytes, Kind, Width>(place, bytes); });
  } else if (every < bytes) {
    detail::for_each_place<ByTable>(way, count, [&](std::byte* place) {
      for (std::byte* const end = place + bytes; place != end; place += every) {
        cpu::store<0, Kind, Width>(place, every);
        cpu::sfence();
      }
    });
  } else {
    std::uint64_t since = way.since_fence;
    detail::for_each_place<ByTable>(way, count, [&](std::byte* place) {
      cpu::store<Bytes, Kind, Width>(place, bytes);
      since += bytes;
      if (since >= every) {
        cpu::sfence();
        since = 0;
      }
    });
    way.since_fence = since;
  }
  cpu::leave_vectors<Width>();
}

template <store_kind Kind, load_kind Width>
loop store_loop_of(std::uint64_t bytes, bool by_table) {
  return detail::with_size(bytes, [by_table]<std::size_t Bytes>() -> loop {
    if constexpr (Kind == store_kind::movdir64b && Bytes != 0 && Bytes < cpu::line) {
      return nullptr;  // check_case
    } else {
      return by_table ? &store_loop<Kind, Width, Bytes, true> : &store_loop<Kind, Width, Bytes, false>;
    }
  });
}

template <store_kind Kind, load_kind Width>
single store_of(std::uint64_t bytes) {
  return detail::with_size(bytes, []<std::size_t Bytes>() -> single {
    if constexpr (Kind == store_kind::movdir64b && Bytes != 0 && Bytes < cpu::line) {
      return nullptr;
    } else {
      return [](std::byte* place, std::uint64_t some) {
        cpu::store<Bytes, Kind, Width>(place, Bytes != 0 ? Bytes : some);
        cpu::leave_vectors<Width>();
      };
    }
  });
}

}  // namespace

loop native_store_loop(const kernel_choice& choice, bool by_table) {
  return with_store_kind(choice.store, [&]<store_kind Kind>() {
    return detail::with_load_kind(
        choice.load, [&]<load_kind Width>() { return store_loop_of<Kind, Width>(choice.bytes, by_table); });
  });
}

single native_store(const kernel_choice& choice) {
  return with_store_kind(choice.store, [&]<store_kind Kind>() {
    return detail::with_load_kind(choice.load, [&]<load_kind Width>() { return store_of<Kind, Width>(choice.bytes); });
  });
}

}  // namespace pmlab::microbench
