// Reading device profiles from TOML.
#include "bench/devices/profile_file.hpp"
#include "bench/devices/profile_fields.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <span>
#include <sstream>
#include <variant>

#include <toml++/toml.h>

namespace pmlab::media {
namespace {

using devices::check_number;
using devices::field;
using devices::in_words;
using devices::most_time_ns;
using devices::no_limit;
using devices::optional_time_field;
using devices::refuse;
using devices::time_field;

constexpr double most_hosts = 8;

constexpr std::array fields = {
    field<device_profile>{"description", &device_profile::description},
    field<device_profile>{"persistence", &device_profile::persistence, 0, 0, false, true},
    field<device_profile>{"dram_read_latency_ns", &device_profile::dram_read_latency_ns, 1, most_time_ns},
    time_field("read_latency_ns", &device_profile::read_latency_ns),
    time_field("buffered_read_latency_ns", &device_profile::buffered_read_latency_ns),
    time_field("next_line_read_latency_ns", &device_profile::next_line_read_latency_ns),
    time_field("translation_miss_ns", &device_profile::translation_miss_ns),
    time_field("page_walk_ns", &device_profile::page_walk_ns),
    time_field("line_read_transfer_ns", &device_profile::line_read_transfer_ns),
    optional_time_field("read_p99_ns", &device_profile::read_p99_ns),
    optional_time_field("read_p99_9_ns", &device_profile::read_p99_9_ns),
    time_field("flush_accept_ns", &device_profile::flush_accept_ns),
    time_field("ntstore_accept_ns", &device_profile::ntstore_accept_ns),
    time_field("ntstore_fence_period_ns", &device_profile::ntstore_fence_period_ns),
    time_field("line_write_transfer_ns", &device_profile::line_write_transfer_ns),
    field<device_profile>{"flush_drops_cached_line", &device_profile::flush_drops_cached_line},
    time_field("media_read_ns_per_granule", &device_profile::media_read_ns_per_granule),
    time_field("media_write_ns_per_granule", &device_profile::media_write_ns_per_granule),
    field<device_profile>{"write_share", &device_profile::write_share, 0.01, 0.99},
    time_field("wear_move_ns", &device_profile::wear_move_ns),
    field<device_profile>{"wear_writes", &device_profile::wear_writes, 1, no_limit},
    field<device_profile>{"granule_bytes", &device_profile::granule_bytes, 64, 4096},
    field<device_profile>{"dimms", &device_profile::dimms, 1, 64},
    field<device_profile>{"interleave_bytes", &device_profile::interleave_bytes, 64, no_limit},
    field<device_profile>{"buffer_granules", &device_profile::buffer_granules, 1, 65535},
    field<device_profile>{"read_queue_granules", &device_profile::read_queue_granules, 1, 65535},
    field<device_profile>{"write_queue_granules", &device_profile::write_queue_granules, 1, 65535},
    field<device_profile>{"translation_buffer_entries", &device_profile::translation_buffer_entries, 0, 1 << 24},
    field<device_profile>{"outstanding_reads", &device_profile::outstanding_reads, 1, 1024},
    field<device_profile>{"outstanding_stores", &device_profile::outstanding_stores, 1, 1024},
    field<device_profile>{"outstanding_writes", &device_profile::outstanding_writes, 1, 1024},
    field<device_profile>{"partial_write_bytes", &device_profile::partial_write_bytes, 0, 64, false, true},
    field<device_profile>{"cpu_cache_bytes", &device_profile::cpu_cache_bytes, 0, 1 << 30},
    field<device_profile>{"hosts", &device_profile::hosts, 0, most_hosts, false, true},
    optional_time_field("host_transfer_ns", &device_profile::host_transfer_ns),
    optional_time_field("host_invalidation_ns", &device_profile::host_invalidation_ns),
    optional_time_field("device_exchange_ns", &device_profile::device_exchange_ns),
    optional_time_field("line_invalidation_ns", &device_profile::line_invalidation_ns),
    optional_time_field("load_fence_ns", &device_profile::load_fence_ns),
};
constexpr std::size_t fields_of_hosts = 6;  // the last ones

// Checks that involve several values.
void check_sizes(const device_profile& profile, const std::string& place) {
  if (!std::has_single_bit(profile.granule_bytes))
    refuse(place, "granule_bytes", "is not a power of two: " + std::to_string(profile.granule_bytes),
           "give 64, 128, 256, ... 4096");
  if (!std::has_single_bit(profile.interleave_bytes) || profile.interleave_bytes < profile.granule_bytes)
    refuse(place, "interleave_bytes",
           "is not a power of two from granule_bytes up: " + std::to_string(profile.interleave_bytes),
           "give granule_bytes or more, for example 4096: a granule must lie on one DIMM");
  if (profile.read_p99_ns != 0 && profile.read_p99_ns < profile.read_latency_ns)
    refuse(place, "read_p99_ns", "is less than read_latency_ns: " + in_words(profile.read_p99_ns),
           "give read_latency_ns or more, or leave it out");
  if (profile.read_p99_9_ns != 0 && profile.read_p99_9_ns < std::max(profile.read_p99_ns, profile.read_latency_ns))
    refuse(place, "read_p99_9_ns", "is less than a lower percentile: " + in_words(profile.read_p99_9_ns),
           "give read_p99_ns or more, or leave it out");
  const bool has_times = profile.host_transfer_ns > 0 && profile.host_invalidation_ns > 0 &&
                         profile.device_exchange_ns > 0 && profile.line_invalidation_ns > 0 &&
                         profile.load_fence_ns > 0;
  if (profile.hosts > 1 && !has_times)
    refuse(place, "hosts", "is " + std::to_string(profile.hosts) + ", and a time of theirs is missing",
           "give host_transfer_ns, host_invalidation_ns, device_exchange_ns, line_invalidation_ns and load_fence_ns");
}

}  // namespace

device_profile parse_profile(std::string_view text, std::string_view file) {
  const auto profile = devices::parse_fields<device_profile>(text, file, fields, "profiles/");
  check_sizes(profile, std::string(file));
  return profile;
}

void check_profile(const device_profile& profile) {
  const std::string place = "profile '" + profile.name + "'";
  for (const field<device_profile>& f : fields) {
    if (const auto* time = std::get_if<double device_profile::*>(&f.where)) {
      check_number(profile.*(*time), f, place);
    } else if (const auto* size = std::get_if<std::uint64_t device_profile::*>(&f.where)) {
      check_number(static_cast<double>(profile.*(*size)), f, place);
    }
  }
  check_sizes(profile, place);
}

device_profile scaled(device_profile profile, double factor) {
  for (const field<device_profile>& f : fields)
    if (f.is_time) profile.*std::get<double device_profile::*>(f.where) *= factor;
  profile.scale *= factor;
  return profile;
}

std::string profile_text(const device_profile& profile, const std::map<std::string, std::string, std::less<>>& comments,
                         std::string_view otherwise) {
  std::ostringstream text;
  for (const field<device_profile>& f :
       std::span(fields).first(fields.size() - (profile.hosts == 0 ? fields_of_hosts : 0))) {
    text << f.key << " = ";
    if (const auto* words = std::get_if<std::string device_profile::*>(&f.where)) {
      text << toml::value<std::string>(profile.*(*words)) << "\n\n";
      continue;
    }
    std::ostringstream figure;
    figure.precision(15);
    if (const auto* flag = std::get_if<bool device_profile::*>(&f.where))
      figure << (profile.*(*flag) ? "true" : "false");
    else if (const auto* domain = std::get_if<persistence_domain device_profile::*>(&f.where))
      figure << '"' << to_string(profile.*(*domain)) << '"';
    else if (const auto* time = std::get_if<double device_profile::*>(&f.where))
      figure << profile.*(*time);
    else
      figure << profile.*std::get<std::uint64_t device_profile::*>(f.where);
    const auto comment = comments.find(f.key);
    text << figure.str() << "  # " << (comment == comments.end() ? otherwise : std::string_view(comment->second))
         << '\n';
  }
  return text.str();
}

std::vector<std::string_view> profile_names() { return names_of(detail::builtin_profiles()); }

device_profile load_profile(std::string_view name_or_path) {
  return devices::load_profile(name_or_path, detail::builtin_profiles(), "device profile", "profile file",
                               parse_profile);
}

}  // namespace pmlab::media
