// Reading drive profiles from TOML.
#include "bench/devices/drive_file.hpp"
#include "bench/devices/profile_fields.hpp"

#include <array>
#include <string>

namespace pmlab::blocks {
namespace {

using devices::field;
using devices::no_limit;
using devices::optional_time_field;
using devices::time_field;

constexpr std::array fields = {
    field<drive_profile>{"description", &drive_profile::description},
    field<drive_profile>{"links", &drive_profile::links, 1, 64},
    field<drive_profile>{"stripe_bytes", &drive_profile::stripe_bytes, 512, 1 << 30},
    field<drive_profile>{"host_read_mb_per_s", &drive_profile::host_read_mb_per_s, 1, 1e6},
    field<drive_profile>{"host_write_mb_per_s", &drive_profile::host_write_mb_per_s, 1, 1e6},
    field<drive_profile>{"half_duplex", &drive_profile::half_duplex},
    time_field("read_command_ns", &drive_profile::read_command_ns),
    time_field("write_command_ns", &drive_profile::write_command_ns),
    time_field("read_overhead_ns", &drive_profile::read_overhead_ns),
    time_field("write_overhead_ns", &drive_profile::write_overhead_ns),
    field<drive_profile>{"channels", &drive_profile::channels, 1, 256},
    field<drive_profile>{"dies_per_channel", &drive_profile::dies_per_channel, 1, 256},
    field<drive_profile>{"planes", &drive_profile::planes, 1, 16},
    field<drive_profile>{"page_bytes", &drive_profile::page_bytes, 512, 1 << 20},
    field<drive_profile>{"pages_per_block", &drive_profile::pages_per_block, 1, 65536},
    time_field("read_ns", &drive_profile::read_ns),
    time_field("program_ns", &drive_profile::program_ns),
    time_field("erase_ns", &drive_profile::erase_ns),
    time_field("suspend_ns", &drive_profile::suspend_ns),
    field<drive_profile>{"channel_mb_per_s", &drive_profile::channel_mb_per_s, 1, 1e6},
    field<drive_profile>{"capacity_bytes", &drive_profile::capacity_bytes, 512, no_limit},
    field<drive_profile>{"over_provisioning", &drive_profile::over_provisioning, 0.01, 10},
    field<drive_profile>{"mapping_unit_bytes", &drive_profile::mapping_unit_bytes, 512, 32768},
    field<drive_profile>{"buffer_bytes", &drive_profile::buffer_bytes, 512, no_limit},
    field<drive_profile>{"capacitor", &drive_profile::capacitor},
    time_field("flush_overhead_ns", &drive_profile::flush_overhead_ns),
    field<drive_profile>{"streams", &drive_profile::streams, 1, 64},
    field<drive_profile>{"atomic_bytes", &drive_profile::atomic_bytes, 0, 1 << 20},
    optional_time_field("pair_command_ns", &drive_profile::pair_command_ns),
    optional_time_field("pair_replace_ns", &drive_profile::pair_replace_ns),
    optional_time_field("pair_write_byte_ns", &drive_profile::pair_write_byte_ns),
    optional_time_field("pair_read_byte_ns", &drive_profile::pair_read_byte_ns),
};

}  // namespace

drive_profile parse_drive(std::string_view text, std::string_view origin) {
  const auto profile = devices::parse_fields<drive_profile>(text, origin, fields, "drives/");
  check_drive(profile);
  return profile;
}

std::vector<std::string_view> drive_names() { return names_of(detail::builtin_drives()); }

drive_profile load_drive(std::string_view name_or_path) {
  return devices::load_profile(name_or_path, detail::builtin_drives(), "drive profile", "drive profile", parse_drive);
}

}  // namespace pmlab::blocks
