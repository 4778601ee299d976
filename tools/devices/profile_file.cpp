// Reading device profiles from TOML.
#include "tools/devices/profile_file.hpp"
#include "tools/support/read_file.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <sstream>
#include <variant>

#include <toml++/toml.h>

namespace pmlab::media {
namespace {

using member = std::variant<double device_profile::*, std::uint64_t device_profile::*, bool device_profile::*,
                            std::string device_profile::*>;

// One key of a profile file.
struct field {
  std::string_view key;
  member where;
  double least = 0;
  double most = 1e9;
  bool is_time = false;  // scaled with the device
};

constexpr double no_limit = 1e15;
constexpr double most_time_ns = 1e9;

constexpr field time_field(std::string_view key, double device_profile::*where) {
  return {key, where, 0, most_time_ns, true};
}

constexpr std::array fields = {
    field{"description", &device_profile::description},
    field{"dram_read_latency_ns", &device_profile::dram_read_latency_ns, 1, most_time_ns},
    time_field("read_latency_ns", &device_profile::read_latency_ns),
    time_field("buffered_read_latency_ns", &device_profile::buffered_read_latency_ns),
    time_field("next_line_read_latency_ns", &device_profile::next_line_read_latency_ns),
    time_field("translation_miss_ns", &device_profile::translation_miss_ns),
    time_field("page_walk_ns", &device_profile::page_walk_ns),
    time_field("line_read_transfer_ns", &device_profile::line_read_transfer_ns),
    time_field("flush_accept_ns", &device_profile::flush_accept_ns),
    time_field("ntstore_accept_ns", &device_profile::ntstore_accept_ns),
    time_field("ntstore_fence_period_ns", &device_profile::ntstore_fence_period_ns),
    time_field("line_write_transfer_ns", &device_profile::line_write_transfer_ns),
    field{"flush_drops_cached_line", &device_profile::flush_drops_cached_line},
    time_field("media_read_ns_per_granule", &device_profile::media_read_ns_per_granule),
    time_field("media_write_ns_per_granule", &device_profile::media_write_ns_per_granule),
    field{"write_share", &device_profile::write_share, 0.01, 0.99},
    time_field("wear_move_ns", &device_profile::wear_move_ns),
    field{"wear_writes", &device_profile::wear_writes, 1, no_limit},
    field{"granule_bytes", &device_profile::granule_bytes, 64, 4096},
    field{"dimms", &device_profile::dimms, 1, 64},
    field{"interleave_bytes", &device_profile::interleave_bytes, 64, no_limit},
    field{"buffer_granules", &device_profile::buffer_granules, 1, 65535},
    field{"read_queue_granules", &device_profile::read_queue_granules, 1, 65535},
    field{"write_queue_granules", &device_profile::write_queue_granules, 1, 65535},
    field{"translation_buffer_entries", &device_profile::translation_buffer_entries, 0, 1 << 24},
    field{"outstanding_reads", &device_profile::outstanding_reads, 1, 1024},
    field{"outstanding_stores", &device_profile::outstanding_stores, 1, 1024},
    field{"outstanding_writes", &device_profile::outstanding_writes, 1, 1024},
    field{"cpu_cache_bytes", &device_profile::cpu_cache_bytes, 0, 1 << 30},
};

std::string place_of(std::string_view file, const toml::source_region& source) {
  return std::string(file) + ":" + std::to_string(source.begin.line);
}

[[noreturn]] void refuse(const std::string& place, std::string_view key, const std::string& why,
                         const std::string& remedy) {
  throw error(place + ": key '" + std::string(key) + "' " + why, remedy);
}

std::string in_words(double value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

void check_number(double value, const field& f, const std::string& place) {
  if (std::isnan(value) || value < 0)
    refuse(place, f.key, "is negative or no number: " + in_words(value), "give a value of 0 or more");
  if (value < f.least || value > f.most)
    refuse(place, f.key, "is out of range: " + in_words(value),
           "give a value from " + in_words(f.least) + " to " + in_words(f.most));
}

void assign(device_profile& profile, const field& f, const toml::node& node, const std::string& place) {
  if (const auto* text = std::get_if<std::string device_profile::*>(&f.where)) {
    const auto value = node.value_exact<std::string>();
    if (!value) refuse(place, f.key, "is not a string", "write it in quotes");
    profile.*(*text) = *value;
  } else if (const auto* flag = std::get_if<bool device_profile::*>(&f.where)) {
    const auto value = node.value_exact<bool>();
    if (!value) refuse(place, f.key, "is neither true nor false", "write true or false");
    profile.*(*flag) = *value;
  } else {
    const auto value = node.is_number() ? node.value<double>() : std::nullopt;
    if (!value) refuse(place, f.key, "is not a number", "write a number, without quotes or unit");
    check_number(*value, f, place);
    if (const auto* time = std::get_if<double device_profile::*>(&f.where)) {
      profile.*(*time) = *value;
    } else {
      if (*value != std::floor(*value)) refuse(place, f.key, "is not a whole number", "write a whole number");
      profile.*std::get<std::uint64_t device_profile::*>(f.where) = static_cast<std::uint64_t>(*value);
    }
  }
}

// Checks that involve several values.
void check_sizes(const device_profile& profile, const std::string& place) {
  if (!std::has_single_bit(profile.granule_bytes))
    refuse(place, "granule_bytes", "is not a power of two: " + std::to_string(profile.granule_bytes),
           "give 64, 128, 256, ... 4096");
  if (!std::has_single_bit(profile.interleave_bytes) || profile.interleave_bytes < profile.granule_bytes)
    refuse(place, "interleave_bytes",
           "is not a power of two from granule_bytes up: " + std::to_string(profile.interleave_bytes),
           "give granule_bytes or more, for example 4096: a granule must lie on one DIMM");
}

std::vector<std::string_view> known_keys() {
  std::vector<std::string_view> keys;
  keys.reserve(fields.size());
  for (const field& f : fields) keys.push_back(f.key);
  return keys;
}

std::string joined(std::span<const std::string_view> names) {
  std::string list;
  for (const std::string_view name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

}  // namespace

device_profile parse_profile(std::string_view text, std::string_view file) {
  toml::table table;
  try {
    table = toml::parse(text, file);
  } catch (const toml::parse_error& e) {
    throw error(place_of(file, e.source()) + ": not TOML: " + std::string(e.description()), "correct that line");
  }
  const std::vector<std::string_view> keys = known_keys();
  device_profile profile;
  profile.name = std::filesystem::path(file).stem().string();
  std::vector<std::string_view> missing = keys;
  for (const auto& [key, node] : table) {
    const std::string_view name = key.str();
    const std::string place = place_of(file, key.source());
    const auto* const f =
        std::find_if(fields.begin(), fields.end(), [name](const field& one) { return one.key == name; });
    if (f == fields.end()) refuse(place, name, "is not known", "did you mean '" + nearest(name, keys) + "'?");
    assign(profile, *f, node, place);
    std::erase(missing, f->key);
  }
  if (!missing.empty())
    throw error(std::string(file) + ": missing key: " + joined(missing), "copy a file of profiles/ and edit that");
  check_sizes(profile, std::string(file));
  return profile;
}

void check_profile(const device_profile& profile) {
  const std::string place = "profile '" + profile.name + "'";
  for (const field& f : fields) {
    if (const auto* time = std::get_if<double device_profile::*>(&f.where)) {
      check_number(profile.*(*time), f, place);
    } else if (const auto* size = std::get_if<std::uint64_t device_profile::*>(&f.where)) {
      check_number(static_cast<double>(profile.*(*size)), f, place);
    }
  }
  check_sizes(profile, place);
}

device_profile scaled(device_profile profile, double factor) {
  for (const field& f : fields)
    if (f.is_time) profile.*std::get<double device_profile::*>(f.where) *= factor;
  profile.scale *= factor;
  return profile;
}

std::string profile_text(const device_profile& profile, const std::map<std::string, std::string, std::less<>>& comments,
                         std::string_view otherwise) {
  std::ostringstream text;
  for (const field& f : fields) {
    text << f.key << " = ";
    if (const auto* words = std::get_if<std::string device_profile::*>(&f.where)) {
      text << toml::value<std::string>(profile.*(*words)) << "\n\n";
      continue;
    }
    std::ostringstream figure;
    figure.precision(15);
    if (const auto* flag = std::get_if<bool device_profile::*>(&f.where))
      figure << (profile.*(*flag) ? "true" : "false");
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

std::vector<std::string_view> profile_names() {
  std::vector<std::string_view> names;
  for (const named_text& builtin : detail::builtin_profiles()) names.push_back(builtin.name);
  std::sort(names.begin(), names.end());
  return names;
}

device_profile load_profile(std::string_view name_or_path) {
  if (name_or_path.ends_with(".toml") || name_or_path.find('/') != std::string_view::npos) {
    const std::string path(name_or_path);
    return parse_profile(read_file(path, "profile file"), path);
  }
  for (const named_text& builtin : detail::builtin_profiles())
    if (builtin.name == name_or_path) return parse_profile(builtin.text, std::string(builtin.name) + ".toml");
  const std::vector<std::string_view> names = profile_names();
  throw error("unknown device profile '" + std::string(name_or_path) + "'",
              "did you mean '" + nearest(name_or_path, names) + "'? Known: " + joined(names) +
                  "; or give the path of a .toml file");
}

}  // namespace pmlab::media
