// A medium as a user names it on the command line.
#include "bench/catalogue/medium_spec.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/devices/profile_file.hpp"

#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

constexpr std::array<std::string_view, 5> kinds = {"dram", "pmem", "emulated", "counted", "simulated"};

struct head_and_tail {
  std::string_view head;
  std::string_view tail;
  bool separated;
};

head_and_tail split_at(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return {text, {}, false};
  return {text.substr(0, at), text.substr(at + 1), true};
}

medium_spec parse_emulated(std::string_view text) {
  const auto [profile, path, on_pool] = split_at(text, '@');
  if (profile.empty())
    throw error("medium emulated names no device profile",
                "write emulated:PROFILE, for example emulated:aep; `pmlab list` names the profiles");
  if (on_pool && path.empty())
    throw error(fmt::format("medium emulated:{}@ names no pool", profile),
                "write emulated:PROFILE@PATH, or leave the @ out for DRAM");
  static_cast<void>(media::load_profile(profile));
  return {.counted = false, .profile = std::string(profile), .path = std::string(path), .simulated = false};
}

medium_spec parse_simulated(std::string_view profile) {
  if (profile.empty())
    throw error("medium simulated names no device profile",
                "write simulated:PROFILE, for example simulated:aep; `pmlab list` names the profiles");
  if (profile.find('@') != std::string_view::npos)
    throw error(fmt::format("medium simulated:{} names a pool", profile),
                "leave out the @ and the path: simulated memory is in no file");
  static_cast<void>(media::load_profile(profile));
  return {.counted = false, .profile = std::string(profile), .path = {}, .simulated = true};
}

}  // namespace

std::string medium_spec::text() const {
  std::string text = counted ? "counted:" : "";
  if (simulated) return text + "simulated:" + profile;
  if (emulated()) return text + "emulated:" + profile + (in_pool() ? "@" + path : "");
  return text + (in_pool() ? "pmem:" + path : "dram");
}

medium_spec parse_medium(std::string_view text) {
  const auto [kind, rest, has_rest] = split_at(text, ':');
  if (kind == "dram") {
    if (has_rest) throw error(fmt::format("medium '{}': dram takes no path", text), "write dram, or pmem:PATH");
    return {};
  }
  if (kind == "pmem") {
    if (rest.empty()) throw error("medium pmem names no pool", "write pmem:PATH, for example pmem:/dev/shm/pmlab.pool");
    return {.counted = false, .profile = {}, .path = std::string(rest), .simulated = false};
  }
  if (kind == "emulated") return parse_emulated(rest);
  if (kind == "simulated") return parse_simulated(rest);
  if (kind == "counted") {
    if (rest.empty()) throw error("medium counted needs a medium to count", "write counted:dram or counted:pmem:PATH");
    medium_spec inner = parse_medium(rest);
    if (inner.simulated)
      throw error(fmt::format("medium '{}' counts on a simulated machine", text),
                  fmt::format("write {}, or counted:emulated:{} for the counts", inner.text(), inner.profile));
    if (inner.counted) throw error(fmt::format("medium '{}' counts twice", text), "write counted: once");
    inner.counted = true;
    return inner;
  }
  throw error(fmt::format("there is no medium '{}'", text),
              fmt::format("did you mean {}? `pmlab list` names the media", nearest(kind, kinds)));
}

const std::vector<medium_form>& medium_forms() {
  static const std::vector<medium_form> forms = {
      {"dram", "DRAM; nothing survives, flush and fence cost nothing"},
      {"pmem:PATH", "a pool on fsdax, devdax or tmpfs (/dev/shm/...); survives the process"},
      {"emulated:PROFILE", "a device profile's delays on top of DRAM"},
      {"emulated:PROFILE@PATH", "a device profile's delays on top of a pool"},
      {"counted:MEDIUM", "any of the above, and counts lines, flushes and fences per operation"},
      {"simulated:PROFILE", "virtual time of any number of cores on a device profile; repeats to the digit"},
  };
  return forms;
}

}  // namespace pmlab::bench
