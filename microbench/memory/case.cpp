// A case: the names of its fields, and their consistency.
#include "microbench/memory/case.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/lines.hpp>
#include "microbench/memory/places.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace pmlab::microbench {
namespace {

constexpr std::uint64_t most_access_bytes = std::uint64_t{16} << 20;

[[noreturn]] void refuse(const std::string& place, std::string_view key, const std::string& why,
                         const std::string& remedy) {
  throw error(fmt::format("{}: key '{}' {}", place, key, why), remedy);
}

void check_sizes(const bench_case& c, const std::string& place) {
  const std::uint64_t bytes = c.access_bytes;
  const bool small = bytes == 8 || bytes == 16 || bytes == 32;
  if (!small && (bytes == 0 || bytes % media::cache_line_bytes != 0 || bytes > most_access_bytes))
    refuse(place, "access_bytes", fmt::format("is {}", bytes), "give 8, 16, 32, or a multiple of 64 up to 16M");
  if (c.align_bytes != 0 && (c.align_bytes < bytes + c.offset_bytes || c.align_bytes % 8 != 0))
    refuse(place, "align_bytes", fmt::format("is {}", c.align_bytes),
           "give a multiple of 8 that has room for access_bytes and offset_bytes, or leave it out");
  if (c.offset_bytes >= media::cache_line_bytes)
    refuse(place, "offset_bytes", fmt::format("is {}", c.offset_bytes), "give 0 to 63");
  const std::uint64_t distance =
      c.pattern == pattern_kind::strided ? c.stride_bytes : std::max(c.align_bytes, bytes + c.offset_bytes);
  if (c.pattern == pattern_kind::strided && c.stride_bytes < bytes)
    refuse(place, "pattern", fmt::format("strides by {} bytes, less than an access", c.stride_bytes),
           "stride by access_bytes or more");
  if (c.working_set_bytes < distance)
    refuse(place, "working_set_bytes", fmt::format("is {}: no room for one access", c.working_set_bytes),
           fmt::format("give at least {}", distance));
  if (c.private_sets && c.working_set_bytes / c.threads < distance)
    refuse(place, "working_set_bytes",
           fmt::format("is {}: no room for one access of each of {} threads", c.working_set_bytes, c.threads),
           fmt::format("give at least {}", distance * c.threads));
  if (c.working_set_bytes / distance >= most_places)
    refuse(place, "working_set_bytes", "has 2^32 places or more", "give a smaller one, or a larger access_bytes");
  if (c.pattern == pattern_kind::hot && (c.hot_lines == 0 || c.hot_lines * distance > c.working_set_bytes))
    refuse(place, "pattern", fmt::format("has {} hot lines", c.hot_lines), "give 1 to as many as the working set has");
}

void check_stores(const bench_case& c, const std::string& place) {
  if (!c.stores()) return;
  if (c.store == store_kind::movdir64b && (c.access_bytes % media::cache_line_bytes != 0 || c.offset_bytes != 0))
    refuse(place, "store", "is movdir64b, which stores whole lines", "give access_bytes a multiple of 64, no offset");
  const std::uint64_t fence = c.fence_bytes;
  if (fence == fence_never || fence == fence_each_access) return;
  const bool part = fence < c.access_bytes && c.access_bytes % fence == 0 && fence % media::cache_line_bytes == 0;
  if (!part && fence % c.access_bytes != 0)
    refuse(place, "fence", fmt::format("is {}", fence),
           "give never, each, a multiple of access_bytes, or a multiple of 64 that divides it");
}

void check_threads(const bench_case& c, const std::string& place) {
  if (c.operation == operation_kind::mixed && (c.readers == 0 || c.writers == 0))
    refuse(place, "operation", "is mixed, without readers or without writers", "give readers and writers, 1 or more");
  if (c.operation != operation_kind::mixed && (c.readers != 0 || c.writers != 0))
    refuse(place, "readers", "needs operation = \"mixed\"", "give threads instead");
  if (c.threads == 0) refuse(place, "threads", "is 0", "give 1 or more");
}

void check_combinations(const bench_case& c, const std::string& place) {
  if (c.pattern == pattern_kind::chase) {
    if (c.operation != operation_kind::load)
      refuse(place, "pattern", "is chase, which loads", "give operation = \"load\"");
    if (c.cache == cache_state::warm)
      refuse(place, "cache", "is warm in a chase", "give as_is, and a small working_set_bytes");
  }
  if (c.operation == operation_kind::read_after_persist) {
    if (c.steps.empty()) refuse(place, "steps", "is missing", "give for example steps = \"persist load\"");
    if (c.measure != measure_kind::latency)
      refuse(place, "measure", "is not latency", "read_after_persist times each access: give measure = \"latency\"");
    if (c.store == store_kind::plain)
      refuse(place, "store", "is plain, which persists nothing", "give clwb, clflushopt, clflush or ntstore");
  } else if (!c.steps.empty()) {
    refuse(place, "steps", "needs operation = \"read_after_persist\"", "leave it out");
  }
  if (c.measure == measure_kind::bandwidth && c.cache != cache_state::as_is)
    refuse(place, "cache", "needs accesses that are timed one by one", "give measure = \"latency\"");
  if (c.measure == measure_kind::bandwidth && c.idle_ns != 0)
    refuse(place, "idle_ns", "needs accesses that are timed one by one", "give measure = \"latency\"");
}

}  // namespace

std::string pattern_text(const bench_case& c) {
  switch (c.pattern) {
    case pattern_kind::strided: return fmt::format("strided:{}", c.stride_bytes);
    case pattern_kind::zipfian: return fmt::format("zipfian:{}", c.theta);
    case pattern_kind::hot: return fmt::format("hot:{}", c.hot_lines);
    default: return std::string(to_string(c.pattern));
  }
}

std::string fence_text(std::uint64_t fence_bytes) {
  if (fence_bytes == fence_never) return "never";
  return fence_bytes == fence_each_access ? "each" : fmt::format("{}", fence_bytes);
}

std::string medium_text(const case_medium& medium) {
  switch (medium.which) {
    case case_medium::kind::given: return "given";
    case case_medium::kind::dram: return "dram";
    case case_medium::kind::profile: return "profile:" + medium.profile;
  }
  return "?";
}

void check_case(const bench_case& c, const std::string& place) {
  check_threads(c, place);
  check_sizes(c, place);
  check_stores(c, place);
  check_combinations(c, place);
}

}  // namespace pmlab::microbench
