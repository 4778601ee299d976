#include "tools/stores/clock.hpp"

#include <ctime>

namespace pmlab::store_bench {

std::uint64_t real_run_clock::cpu_ns() const noexcept {
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace pmlab::store_bench
