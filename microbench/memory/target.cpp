// The memory under test on real time: DRAM, a pool, an emulated device.
#include "microbench/memory/target.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/counted.hpp>
#include <pmlab/media/emulated.hpp>
#include <pmlab/media/jemalloc_dram.hpp>
#include <pmlab/media/pmem.hpp>
#include <pmlab/media/probe_pool.hpp>
#include "bench/catalogue/pool_files.hpp"
#include "microbench/memory/charged_kernels.hpp"
#include "microbench/memory/native_kernels.hpp"
#include "microbench/memory/page_sizes.hpp"
#include "microbench/memory/region.hpp"

#include <cstring>
#include <optional>
#include <utility>

namespace pmlab::microbench {
namespace {

using media::emulated;
using media::jemalloc_dram;
using media::pmem;

constexpr std::uint64_t least_pool_bytes = std::uint64_t{64} << 20;

template <class Medium>
inline constexpr bool is_emulated = false;
template <class Inner>
inline constexpr bool is_emulated<emulated<Inner>> = true;

template <class Medium>
class real_target final : public target {
 public:
  template <class... Arguments>
  real_target(std::unique_ptr<bench::pool_file> pool, std::uint64_t bytes, Arguments&&... arguments)
      : pool_(std::move(pool)), medium_(std::forward<Arguments>(arguments)...), region_(medium_, bytes) {
    std::memset(region_.start(), 0, bytes);
  }

  [[nodiscard]] std::byte* start() const noexcept override { return region_.start(); }
  [[nodiscard]] std::uint64_t bytes() const noexcept override { return region_.bytes(); }

  [[nodiscard]] std::unique_ptr<kernels> make_kernels(const kernel_choice& choice) override {
    if constexpr (is_emulated<Medium>)
      return std::make_unique<charged_kernels<Medium>>(medium_, choice);
    else
      return make_native_kernels(choice);
  }

  [[nodiscard]] std::optional<moved_bytes> moved() const override {
    if constexpr (is_emulated<Medium>) {
      const auto work = medium_.device_work();
      const std::uint64_t granule = medium_.profile().granule_bytes;
      return moved_bytes{work.granules_read * granule, work.granules_written * granule};
    }
    return std::nullopt;
  }

  [[nodiscard]] std::string refusal(const bench_case& c) const override {
    if constexpr (is_emulated<Medium>) {
      if (c.stores() && c.store == store_kind::plain)
        return "an emulated medium does not see a store that is never flushed";
      const bool around = c.store == store_kind::ntstore || c.store == store_kind::movdir64b;
      if (c.stores() && around && (c.access_bytes % media::cache_line_bytes != 0 || c.offset_bytes != 0))
        return "an emulated medium copies whole lines";
      // If no place is repeated before all others were accessed, a set of twice its size never hits in a cache.
      if (c.cache == cache_state::cold && c.working_set_bytes < 2 * medium_.profile().cpu_cache_bytes)
        return "no instruction evicts a line from an emulated CPU's cache: give a working set larger than it";
    }
    return {};
  }

  [[nodiscard]] std::string huge_pages() const override { return pages_under(region_.start(), region_.bytes()); }

  [[nodiscard]] std::string warning() const override {
    if constexpr (is_emulated<Medium>) return medium_.warning();
    return {};
  }

 private:
  std::unique_ptr<bench::pool_file> pool_;  // destroyed last
  Medium medium_;
  region<Medium> region_;
};

}  // namespace

std::unique_ptr<target> open_target(const target_options& o) {
  const media::dram_options dram{.huge_pages = o.huge_pages, .numa_node = o.numa_node};
  if (!o.medium.in_pool()) {
    if (o.medium.emulated())
      return std::make_unique<real_target<emulated<jemalloc_dram>>>(nullptr, o.bytes, o.emulation->profile, dram);
    return std::make_unique<real_target<jemalloc_dram>>(nullptr, o.bytes, dram);
  }
  const bench::existing_file policy = o.reuse       ? bench::existing_file::reuse
                                      : o.overwrite ? bench::existing_file::overwrite
                                                    : bench::existing_file::refuse;
  // The pool's own tables use some of it.
  const std::uint64_t pool_bytes = least_pool_bytes + o.bytes + o.bytes / 32;
  auto pool = std::make_unique<bench::pool_file>(o.medium.path, pool_bytes, policy, false);
  if (o.reuse) media::probe_pool(o.medium.path, media::time_to_probe(o.medium.path));
  const media::pmem_options options{.create_bytes = pool->bytes_to_make(),
                                    .huge_pages = o.huge_pages,
                                    .bypass_msync = true,
                                    .persistence = o.medium.persistence};
  if (o.medium.emulated())
    return std::make_unique<real_target<emulated<pmem>>>(std::move(pool), o.bytes, o.emulation->profile, o.medium.path,
                                                         options);
  return std::make_unique<real_target<pmem>>(std::move(pool), o.bytes, o.medium.path, options);
}

}  // namespace pmlab::microbench
