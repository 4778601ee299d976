// The CPU's support of the instructions that cases need.
#pragma once

#include "microbench/memory/case.hpp"

#include <string>
#include <vector>

namespace pmlab::microbench {

struct cpu_features {
  bool avx2 = false;
  bool avx512 = false;  // AVX512F, and the kernel saves its registers
  bool clwb = false;
  bool clflushopt = false;
  bool movdir64b = false;
};

// By cpuid and xgetbv. On the simulated machine, whose instructions are announced and not executed: everything.
[[nodiscard]] cpu_features features_of_this_cpu() noexcept;

// The names of the supported ones, as in results: "avx2", "clwb", ...
[[nodiscard]] std::vector<std::string> names_of(const cpu_features& features);

// `widest` becomes the widest that there is.
[[nodiscard]] load_kind resolved(load_kind kind, const cpu_features& features) noexcept;

// Why the CPU cannot run `c`; empty: it can.
[[nodiscard]] std::string lack_for(const bench_case& c, const cpu_features& features);

}  // namespace pmlab::microbench
