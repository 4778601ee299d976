// The CPU's support of the instructions that cases need.
#include "microbench/memory/cpu_features.hpp"

#include <string>

#if !defined(PMLAB_SIMULATED)
#include <cpuid.h>
#endif

namespace pmlab::microbench {

#if defined(PMLAB_SIMULATED)

cpu_features features_of_this_cpu() noexcept {
  return {.avx2 = true, .avx512 = true, .clwb = true, .clflushopt = true, .movdir64b = true};
}

#else

namespace {

struct registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

registers cpuid(unsigned leaf) noexcept {
  registers r;
  if (__get_cpuid_count(leaf, 0, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

// Which registers the kernel saves when it switches threads.
std::uint64_t saved_registers() noexcept {
  constexpr unsigned osxsave = 1U << 27;
  if ((cpuid(1).ecx & osxsave) == 0) return 0;
  unsigned low = 0;
  unsigned high = 0;
  asm("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return std::uint64_t{high} << 32 | low;
}

}  // namespace

cpu_features features_of_this_cpu() noexcept {
  constexpr std::uint64_t ymm = 0x6;
  constexpr std::uint64_t zmm = 0xe6;
  const std::uint64_t saved = saved_registers();
  const registers r = cpuid(7);
  cpu_features f;
  f.avx2 = (r.ebx & 1U << 5) != 0 && (saved & ymm) == ymm;
  f.avx512 = (r.ebx & 1U << 16) != 0 && (saved & zmm) == zmm;
  f.clflushopt = (r.ebx & 1U << 23) != 0;
  f.clwb = (r.ebx & 1U << 24) != 0;
  f.movdir64b = (r.ecx & 1U << 28) != 0;
  return f;
}

#endif

std::vector<std::string> names_of(const cpu_features& features) {
  std::vector<std::string> names;
  if (features.avx2) names.emplace_back("avx2");
  if (features.avx512) names.emplace_back("avx512");
  if (features.clwb) names.emplace_back("clwb");
  if (features.clflushopt) names.emplace_back("clflushopt");
  if (features.movdir64b) names.emplace_back("movdir64b");
  return names;
}

load_kind resolved(load_kind kind, const cpu_features& features) noexcept {
  if (kind != load_kind::widest) return kind;
  if (features.avx512) return load_kind::avx512;
  return features.avx2 ? load_kind::avx2 : load_kind::scalar;
}

std::string lack_for(const bench_case& c, const cpu_features& features) {
  const auto lack = [](std::string_view name) { return "this CPU has no " + std::string(name); };
  if (c.load == load_kind::avx2 && !features.avx2) return lack("AVX2");
  if (c.load == load_kind::avx512 && !features.avx512) return lack("AVX-512");
  if (c.stores()) {
    if (c.store == store_kind::clwb && !features.clwb) return lack("clwb");
    if (c.store == store_kind::clflushopt && !features.clflushopt) return lack("clflushopt");
    if (c.store == store_kind::movdir64b && !features.movdir64b) return lack("movdir64b");
  }
  return {};
}

}  // namespace pmlab::microbench
