#include "bench/stores/clock.hpp"

#include <pmlab/base/platform.hpp>
#include <pmlab/media/clock.hpp>

#include <ctime>

namespace pmlab::store_bench {

std::uint64_t real_run_clock::now() const noexcept { return media::fast_clock::instance().now(); }

const char* real_run_clock::kind() const noexcept { return platform::has_virtual_time ? "virtual" : "real"; }

std::uint64_t real_run_clock::cpu_ns() const noexcept {
  if (platform::has_virtual_time) return 0;
  timespec t{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(t.tv_nsec);
}

}  // namespace pmlab::store_bench
