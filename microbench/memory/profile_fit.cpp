// From the measurements of suite `calibrate` to a device profile.
#include "microbench/memory/profile_fit.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/device/model.hpp>
#include <pmlab/media/lines.hpp>
#include "bench/devices/profile_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace pmlab::microbench {
namespace {

constexpr double line_bytes = media::cache_line_bytes;
constexpr double page_bytes = 4096;
constexpr double bytes_per_ns = 1.073741824;  // in a GiB/s

// A step below this share of the lower level is noise.
constexpr double least_step = 0.05;
// The smallest access that gets this share of the best bandwidth wastes nothing: it is a whole granule.
constexpr double whole_granule = 0.75;
// A working set that fits into the buffer gets this share of the smallest one's bandwidth.
constexpr double held = 0.9;

class fit {
 public:
  fit(const media::device_profile& base, const std::vector<case_result>& results)
      : results_(results), fitted_{base, {}, 0}, p_(fitted_.profile) {}

  fitted_profile run() {
    reads();
    translation();
    writes();
    sizes();
    media::check_profile(p_);
    return std::move(fitted_);
  }

  // The size from which on larger accesses bring no more; 0: not measured.
  [[nodiscard]] std::uint64_t granule() const {
    // If the neighbour of a line costs nearly as much as any line, there is no larger granule. Bandwidth alone does not
    // show it: few cores do not saturate DRAM with single lines.
    const auto in_order = value("idle-read/medium=given/pattern=sequential");
    const auto random = value("idle-read/medium=given/pattern=random");
    if (in_order && random && *in_order > whole_granule * *random) return media::cache_line_bytes;
    const std::uint64_t by_loads = granule_of("load");
    const std::uint64_t by_stores = granule_of("ntstore");
    if (by_loads == 0 || by_stores == 0) return std::max(by_loads, by_stores);
    return std::min(by_loads, by_stores);
  }

 private:
  static constexpr std::array sizes_ = {64, 128, 256, 512, 1024};

  [[nodiscard]] const case_result* find(std::string_view name) const {
    const auto at =
        std::find_if(results_.begin(), results_.end(), [&](const case_result& r) { return r.what.name == name; });
    return at == results_.end() || at->skipped || at->values.empty() ? nullptr : &*at;
  }

  // In ns or GiB/s, with an emulation's scale taken off.
  [[nodiscard]] std::optional<double> value(std::string_view name) const {
    const case_result* const r = find(name);
    if (r == nullptr || !(r->value() > 0)) return std::nullopt;
    return r->unit == "ns" ? r->value() / r->scale : r->value() * r->scale;
  }

  [[nodiscard]] static std::string size_text(int bytes) {
    return bytes >= 1024 ? fmt::format("{}K", bytes / 1024) : fmt::format("{}", bytes);
  }

  [[nodiscard]] std::optional<double> best(std::string_view group, int bytes) const {
    std::optional<double> most;
    for (const int threads : {1, 2, 4})
      if (const auto v = value(fmt::format("{}/access_bytes={}/threads={}", group, size_text(bytes), threads)))
        most = std::max(most.value_or(0), *v);
    return most;
  }

  [[nodiscard]] std::optional<double> best(std::string_view group) const {
    std::optional<double> most;
    for (const int bytes : sizes_)
      if (const auto v = best(group, bytes)) most = std::max(most.value_or(0), *v);
    return most;
  }

  // The greatest value of any size and number of threads.
  [[nodiscard]] std::optional<double> most_of(std::string_view group, std::string_view operation) const {
    std::optional<double> most = best(group);
    for (const int threads : {8, 16})
      if (const auto v = value(fmt::format("most/operation={}/threads={}", operation, threads)))
        most = std::max(most.value_or(0), *v);
    return most;
  }

  [[nodiscard]] std::uint64_t granule_of(std::string_view group) const {
    const auto most = best(group);
    if (!most) return 0;
    for (const int bytes : sizes_)
      if (best(group, bytes).value_or(0) >= whole_granule * *most) return static_cast<std::uint64_t>(bytes);
    return 0;
  }

  // Three digits: more are not in a measurement.
  [[nodiscard]] static double rounded(double x) {
    if (!(x > 0)) return 0;
    const double unit = std::pow(10, std::floor(std::log10(x)) - 2);
    return std::round(x / unit) * unit;
  }

  template <class T>
  void set(std::string_view key, T media::device_profile::*field, double x, const std::string& from) {
    if constexpr (std::is_same_v<T, double>)
      p_.*field = rounded(x);
    else
      p_.*field = static_cast<T>(std::llround(x));
    fitted_.origins[std::string(key)] = from;
    ++fitted_.measured;
  }

  void reads() {
    using media::device_profile;
    if (const auto dram = value("idle-read/medium=dram/pattern=random"))
      set("dram_read_latency_ns", &device_profile::dram_read_latency_ns, *dram, "idle-read, DRAM, random");
    if (const std::uint64_t bytes = granule(); bytes != 0)
      set("granule_bytes", &device_profile::granule_bytes, static_cast<double>(bytes),
          "load and ntstore: larger accesses bring no more");
    const double lines = static_cast<double>(p_.granule_bytes) / line_bytes;
    const auto random = value("idle-read/medium=given/pattern=random");
    if (random) set("read_latency_ns", &device_profile::read_latency_ns, *random, "idle-read, random");
    if (const auto in_order = value("idle-read/medium=given/pattern=sequential"); in_order && random) {
      // The first line of a granule is read from the media.
      const double next = lines > 1 ? (lines * *in_order - *random) / (lines - 1) : *in_order;
      set("next_line_read_latency_ns", &device_profile::next_line_read_latency_ns, std::max(next, 1.0),
          "idle-read, sequential: their mean is a granule's");
    }
    if (const auto small = value("chase/working_set_bytes=4K"); small && random)
      set("buffered_read_latency_ns", &device_profile::buffered_read_latency_ns, std::min(*small, *random),
          "chase, 4 KB");
    const auto most = most_of("load", "load");
    if (most) {
      const double per_granule = media_time(*most);
      set("media_read_ns_per_granule", &device_profile::media_read_ns_per_granule, per_granule,
          fmt::format("load, the most: {:.2f} GiB/s", *most));
      set("line_read_transfer_ns", &device_profile::line_read_transfer_ns, per_granule / lines,
          "a granule's media time over its lines");
    }
    if (const auto one = value("load/access_bytes=256/threads=1"); one && random)
      set("outstanding_reads", &device_profile::outstanding_reads, under_way(*one),
          "load, 256 B, one thread: bandwidth times latency");
    if (const auto one = value("clwb"); one && random)
      set("outstanding_stores", &device_profile::outstanding_stores, under_way(*one),
          "clwb, one thread: bandwidth times latency");
  }

  // The time of one DIMM for one granule, if all DIMMs together move `gib_per_s`.
  [[nodiscard]] double media_time(double gib_per_s) const {
    return static_cast<double>(p_.granule_bytes * p_.dimms) / (gib_per_s * bytes_per_ns);
  }

  // Lines of one thread that move with `gib_per_s`.
  [[nodiscard]] double under_way(double gib_per_s) const {
    const double lines = static_cast<double>(p_.granule_bytes) / line_bytes;
    const double latency = p_.read_latency_ns + (lines - 1) * p_.line_read_transfer_ns;
    return std::clamp(gib_per_s * bytes_per_ns / line_bytes * latency, 1.0, 1024.0);
  }

  void translation() {
    using media::device_profile;
    const auto near = value("chase/working_set_bytes=4M");
    const auto far = value("chase/working_set_bytes=128M");
    if (near && far) {
      const double step = *far - *near;
      const bool found = step > least_step * *near && p_.granule_bytes > media::cache_line_bytes;
      set("translation_miss_ns", &device_profile::translation_miss_ns, found ? step : 0,
          found ? "chase, 128 MB less 4 MB" : "chase: no step that a DIMM's translation buffer would make");
      std::uint64_t reach = 0;
      for (const std::uint64_t mb : {4U, 8U, 16U, 32U, 64U})
        if (const auto v = value(fmt::format("chase/working_set_bytes={}M", mb)); v && *v - *near < step / 4)
          reach = mb;
      set("translation_buffer_entries", &device_profile::translation_buffer_entries,
          found ? static_cast<double>(reach << 20) / page_bytes : 0,
          found ? "chase: the last working set before the step" : "the same");
    }
    const auto walked = value("far-read");
    if (!walked || !far) return;
    // The CPU's translation buffer holds so many bytes of the places.
    constexpr double buffered = media::device_model::page_entries * media::device_model::page_bytes;
    const double missed = 1 - buffered / static_cast<double>(find("far-read")->what.working_set_bytes);
    set("page_walk_ns", &device_profile::page_walk_ns, std::max(0.0, (*walked - *far) / missed),
        "far-read less chase, 128 MB");
  }

  void writes() {
    using media::device_profile;
    const double lines = static_cast<double>(p_.granule_bytes) / line_bytes;
    if (const auto v = value("idle-clwb")) set("flush_accept_ns", &device_profile::flush_accept_ns, *v, "idle-clwb");
    const auto idle = value("idle-ntstore");
    if (idle) set("ntstore_accept_ns", &device_profile::ntstore_accept_ns, *idle, "idle-ntstore");
    if (const auto v = value("fenced-line"))
      set("ntstore_fence_period_ns", &device_profile::ntstore_fence_period_ns, line_bytes / (*v * bytes_per_ns),
          "fenced-line");
    if (const auto most = most_of("ntstore", "store")) {
      const double per_granule = media_time(*most);
      set("media_write_ns_per_granule", &device_profile::media_write_ns_per_granule, per_granule,
          fmt::format("ntstore, the most: {:.2f} GiB/s", *most));
      set("line_write_transfer_ns", &device_profile::line_write_transfer_ns, per_granule / lines,
          "a granule's media time over its lines");
    }
    if (const auto v = value("read-after-persist"))
      set("flush_drops_cached_line", &device_profile::flush_drops_cached_line, *v > p_.read_latency_ns / 2 ? 1 : 0,
          fmt::format("read-after-persist: {:.0f} ns", *v));
  }

  // The buffer shows only where lines of a granule cost as much as all of it.
  void sizes() {
    const auto fast = value("buffer/working_set_bytes=4K");
    const auto slow = value("buffer/working_set_bytes=256K");
    if (!fast || !slow || *slow > whole_granule * *fast || p_.granule_bytes <= media::cache_line_bytes) return;
    std::uint64_t reach = 0;
    for (const std::uint64_t kb : {4U, 8U, 12U, 16U, 20U, 24U, 32U, 64U})
      if (value(fmt::format("buffer/working_set_bytes={}K", kb)).value_or(0) > held * *fast) reach = kb;
    const std::uint64_t granules = (reach << 10) / p_.granule_bytes;
    if (reach != 0)
      set("buffer_granules", &media::device_profile::buffer_granules, static_cast<double>(granules),
          "buffer: the last working set that it holds");
  }

  const std::vector<case_result>& results_;
  fitted_profile fitted_;
  media::device_profile& p_;
};

}  // namespace

bool has_granules(const std::vector<case_result>& results) {
  return fit({}, results).granule() > media::cache_line_bytes;
}

fitted_profile fit_profile(const media::device_profile& base, const std::vector<case_result>& results) {
  fitted_profile fitted = fit(base, results).run();
  if (!fitted.origins.contains("read_latency_ns") && !fitted.origins.contains("media_write_ns_per_granule"))
    throw error("neither reads nor writes of this memory were measured: there is nothing to fit a profile to",
                "run `pmlab microbench --suite calibrate` on it: it prints why cases are skipped");
  return fitted;
}

}  // namespace pmlab::microbench
