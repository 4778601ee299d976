// Device profiles: the built-in ones are sound, and a wrong one is refused by file, line and key.
#include <pmlab/base/error.hpp>
#include "bench/devices/profile_file.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

#include <gtest/gtest.h>

namespace pmlab::media {
namespace {

std::string text_of(std::string_view name) {
  for (const auto& builtin : detail::builtin_profiles())
    if (builtin.name == name) return std::string(builtin.text);
  return {};
}

// `aep` with one line replaced.
std::string aep_with(const std::string& key, const std::string& line) {
  std::string text = text_of("aep");
  const std::size_t start = text.find("\n" + key + " =") + 1;
  return text.replace(start, text.find('\n', start) - start, line);
}

std::string refusal(const std::string& text) {
  try {
    static_cast<void>(parse_profile(text, "mine.toml"));
  } catch (const error& e) {
    return e.what();
  }
  return "accepted";
}

testing::AssertionResult says(const std::string& message, std::initializer_list<const char*> parts) {
  for (const char* const part : parts)
    if (message.find(part) == std::string::npos)
      return testing::AssertionFailure() << "'" << message << "' does not say '" << part << "'";
  return testing::AssertionSuccess();
}

TEST(DeviceProfile, AllExpectedOnesAreBuiltIn) {
  for (const char* const name : {"dram", "aep", "aep-6", "optane-200", "cxl", "cxl-asic", "cxl-fpga", "cxl-pod",
                                 "nv-cmm", "classic", "seed-paper"}) {
    const device_profile profile = load_profile(name);
    EXPECT_EQ(profile.name, name);
    EXPECT_FALSE(profile.description.empty());
    EXPECT_NO_THROW(check_profile(profile));
  }
  EXPECT_EQ(profile_names().size(), detail::builtin_profiles().size());
}

TEST(DeviceProfile, KeepsTheProportionsThatTheirNamesPromise) {
  const device_profile dram = load_profile("dram");
  const device_profile classic = load_profile("classic");
  EXPECT_EQ(classic.read_latency_ns, dram.read_latency_ns);
  EXPECT_EQ(classic.flush_accept_ns, 5 * dram.flush_accept_ns);
  EXPECT_EQ(load_profile("aep-6").dimms, 6U);
  EXPECT_EQ(load_profile("aep-6").read_latency_ns, load_profile("aep").read_latency_ns);
  EXPECT_NEAR(load_profile("cxl-asic").read_latency_ns / dram.read_latency_ns, 2.18, 0.01);
  EXPECT_NEAR(load_profile("cxl-fpga").read_latency_ns / dram.read_latency_ns, 2.88, 0.01);
  for (const char* const name : {"cxl", "cxl-asic", "cxl-fpga", "nv-cmm"})
    EXPECT_NEAR(load_profile(name).ntstore_accept_ns / dram.ntstore_accept_ns, 1.6, 0.01) << name;
  const double seed = load_profile("seed-paper").read_latency_ns / dram.read_latency_ns;
  EXPECT_GE(seed, 4);
  EXPECT_LE(seed, 5);
}

TEST(DeviceProfile, ScaleMultipliesTimesAndNothingElse) {
  const device_profile aep = load_profile("aep");
  const device_profile slow = scaled(scaled(aep, 2), 1.5);
  EXPECT_DOUBLE_EQ(slow.scale, 3);
  EXPECT_DOUBLE_EQ(slow.read_latency_ns, 3 * aep.read_latency_ns);
  EXPECT_DOUBLE_EQ(slow.media_write_ns_per_granule, 3 * aep.media_write_ns_per_granule);
  EXPECT_DOUBLE_EQ(slow.dram_read_latency_ns, aep.dram_read_latency_ns);
  EXPECT_EQ(slow.buffer_granules, aep.buffer_granules);
}

TEST(DeviceProfile, ReadsAFile) {
  const auto path = std::filesystem::temp_directory_path() / ("mine-" + std::to_string(getpid()) + ".toml");
  std::ofstream(path) << aep_with("read_latency_ns", "read_latency_ns = 777");
  EXPECT_EQ(load_profile(path.string()).read_latency_ns, 777);
  std::filesystem::remove(path);
  EXPECT_THROW(static_cast<void>(load_profile(path.string())), error);
}

TEST(DeviceProfile, SuggestsTheNearestName) {
  try {
    static_cast<void>(load_profile("optan-200"));
    FAIL();
  } catch (const error& e) {
    EXPECT_TRUE(says(e.what(), {"'optan-200'", "did you mean 'optane-200'"}));
  }
}

TEST(DeviceProfile, RefusesByFileLineAndKey) {
  std::size_t line = 1;
  const std::string aep = text_of("aep");
  for (std::size_t i = 0; i < aep.find("\nflush_accept_ns") + 1; ++i) line += aep[i] == '\n' ? 1 : 0;
  const std::string place = "mine.toml:" + std::to_string(line);
  const auto refused = [](const std::string& value) { return refusal(aep_with("flush_accept_ns", value)); };
  EXPECT_TRUE(says(refused("flush_accept_ns = -1"), {place.c_str(), "flush_accept_ns", "negative"}));
  EXPECT_TRUE(says(refused("flush_accept_ns = nan"), {place.c_str(), "flush_accept_ns", "no number"}));
  EXPECT_TRUE(says(refused("flush_accept_ns = \"62\""), {place.c_str(), "flush_accept_ns", "not a number"}));
  EXPECT_TRUE(says(refused("flush_acept_ns = 62"),
                   {place.c_str(), "'flush_acept_ns'", "not known", "did you mean 'flush_accept_ns'"}));
  EXPECT_TRUE(says(refused("# gone"), {"mine.toml", "missing key", "flush_accept_ns"}));
  EXPECT_TRUE(says(refused("flush_accept_ns = = 3"), {place.c_str(), "not TOML"}));
  EXPECT_TRUE(says(refused("flush_accept_ns = 1e12"), {place.c_str(), "out of range"}));
  EXPECT_TRUE(says(refusal(aep_with("granule_bytes", "granule_bytes = 100")), {"granule_bytes", "power of two"}));
  EXPECT_TRUE(says(refusal(aep_with("dimms", "dimms = 0")), {"dimms", "out of range"}));
  EXPECT_TRUE(says(refusal(aep_with("dimms", "dimms = 1.5")), {"dimms", "whole number"}));
  EXPECT_TRUE(says(refusal(aep_with("interleave_bytes", "interleave_bytes = 128")), {"interleave_bytes"}));
  EXPECT_TRUE(says(refusal(aep_with("description", "description = 3")), {"description", "string"}));
  EXPECT_TRUE(says(refusal(""), {"missing key"}));
}

TEST(DeviceProfile, HasSeveralHostsWithAllTimesBetweenThem) {
  EXPECT_EQ(load_profile("cxl-asic").hosts, 0U);
  const std::string pod = text_of("cxl-pod");
  EXPECT_EQ(parse_profile(pod, "mine.toml").hosts, 8U);
  for (const std::string key :
       {"host_transfer_ns", "host_invalidation_ns", "device_exchange_ns", "line_invalidation_ns", "load_fence_ns"}) {
    std::string without = pod;
    const std::size_t start = without.find("\n" + key) + 1;
    without.erase(start, without.find('\n', start) - start);
    EXPECT_TRUE(says(refusal(without), {"mine.toml", "'hosts'", "is 8", key.c_str()}));
  }
  EXPECT_TRUE(says(refusal(aep_with("wear_writes", "wear_writes = 1\nhosts = 9")), {"hosts", "out of range"}));
  const device_profile read_again = parse_profile(profile_text(load_profile("cxl-pod"), {}, ""), "written.toml");
  EXPECT_EQ(read_again.host_transfer_ns, load_profile("cxl-pod").host_transfer_ns);
  EXPECT_EQ(profile_text(load_profile("aep"), {}, "").find("hosts"), std::string::npos);
}

TEST(DeviceProfile, MayLeaveOutThePiecesOfAPartOfALine) {
  EXPECT_EQ(load_profile("aep").partial_write_bytes, 8U);
  EXPECT_EQ(parse_profile(aep_with("partial_write_bytes", ""), "mine.toml").partial_write_bytes, 0U);
  EXPECT_TRUE(says(refusal(aep_with("partial_write_bytes", "partial_write_bytes = 65")), {"out of range"}));
}

TEST(DeviceProfile, SaysWhatThePlatformSaves) {
  EXPECT_EQ(load_profile("aep").persistence, persistence_domain::adr) << "if the file has no such key";
  EXPECT_EQ(load_profile("nv-cmm").persistence, persistence_domain::gpf_may_fail);
  for (const std::string_view name : persistence_domain_names) {
    const device_profile profile = parse_profile(
        aep_with("wear_writes", "wear_writes = 1\npersistence = \"" + std::string(name) + "\""), "mine.toml");
    EXPECT_EQ(to_string(profile.persistence), name);
    EXPECT_EQ(to_string(parse_profile(profile_text(profile, {}, ""), "written.toml").persistence), name);
  }
  const auto refused = [](const std::string& value) {
    return refusal("persistence = " + value + "\n" + text_of("aep"));
  };
  EXPECT_TRUE(
      says(refused("\"flash\""), {"mine.toml:1", "'persistence'", "\"flash\"", "adr, eadr, gpf, gpf-may-fail"}));
  EXPECT_TRUE(says(refused("true"), {"mine.toml:1", "'persistence'", "adr, eadr, gpf, gpf-may-fail"}));
}

TEST(DeviceProfile, PercentilesOfReadsAscend) {
  const auto with = [](const std::string& keys) { return refusal(keys + "\n" + text_of("aep")); };
  EXPECT_EQ(with("read_p99_ns = 400\nread_p99_9_ns = 900"), "accepted");
  EXPECT_TRUE(says(with("read_p99_ns = 200"), {"mine.toml", "read_p99_ns", "less than read_latency_ns"}));
  EXPECT_TRUE(says(with("read_p99_ns = 400\nread_p99_9_ns = 390"), {"read_p99_9_ns", "less than a lower percentile"}));
}

TEST(DeviceProfile, ChecksOnesMadeInAProgram) {
  device_profile profile = load_profile("aep");
  profile.read_latency_ns = -5;
  EXPECT_THROW(check_profile(profile), error);
}

}  // namespace
}  // namespace pmlab::media
