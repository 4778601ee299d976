// An invented memory that is just as the paper claims.
#include "world.hpp"

#include <regex>
#include <utility>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using sizes = std::vector<std::pair<std::string, double>>;

const sizes& every_size() {
  static const sizes all = {{"8", 8},       {"16", 16},      {"32", 32},       {"64", 64},   {"128", 128},
                            {"256", 256},   {"512", 512},    {"1K", 1024},     {"4K", 4096}, {"16K", 16384},
                            {"64K", 65536}, {"1M", 1048576}, {"16M", 16777216}};
  return all;
}

double beyond_256(double bytes, double ns_per_byte) { return bytes > 256 ? (bytes - 256) * ns_per_byte : 0; }

}  // namespace

world::world() {
  add_latencies();
  add_bandwidths();
  add_comparisons();
  add_mixes();
}

void world::add_latencies() {
  for (const auto& [size, bytes] : every_size()) {
    const double at_random = 350 + beyond_256(bytes, 0.35);
    const double in_order = bytes < 256 ? bytes : at_random;
    cases["read-by-size/pattern=random/access_bytes=" + size] = {at_random, "ns"};
    cases["read-by-size/pattern=sequential/access_bytes=" + size] = {in_order, "ns"};
    const double written = bytes < 64 ? 220 : 180 + beyond_256(bytes, 0.42);
    cases["write-by-size/pattern=random/access_bytes=" + size] = {written, "ns"};
    cases["write-by-size/pattern=sequential/access_bytes=" + size] = {written, "ns"};
  }
  for (const auto& [size, slowed] : std::map<std::string, double>{{"64", 1.8}, {"256", 2}, {"64K", 15}}) {
    cases[fmt::format("read-by-threads/access_bytes={}/threads=1", size)] = {350, "ns"};
    cases[fmt::format("read-by-threads/access_bytes={}/threads=16", size)] = {350 * slowed, "ns"};
    cases[fmt::format("write-by-threads/access_bytes={}/threads=1", size)] = {180, "ns"};
    cases[fmt::format("write-by-threads/access_bytes={}/threads=16", size)] = {180 * slowed * 4, "ns"};
  }
}

void world::add_bandwidths() {
  for (const char* const pattern : {"sequential", "random"})
    for (const char* const size : {"64", "128", "256", "512", "1K", "4K", "64K"})
      for (const int threads : {4, 16}) {
        const std::string name = fmt::format("/pattern={}/access_bytes={}/threads={}", pattern, size, threads);
        const std::string bytes = size;
        const bool at_random = std::string(pattern) == "random";
        const double part = at_random && bytes == "64" ? 0.25 : at_random && bytes == "128" ? 0.5 : 1;
        const double degraded = threads == 16 && bytes == "64K" ? 0.5 : 1;
        cases["load-by-size" + name] = {
            6.4 * part * degraded, "GiB/s", "simulated:aep", {{"media/read_amplification", 1 / part}}};
        cases["ntstore-by-size" + name] = {
            2.2 * part, "GiB/s", "simulated:aep", {{"media/write_amplification", 1 / part}}};
        cases["ntstore-then-fence" + name] = {2.2 * part * degraded};
      }
  for (const char* const size : {"256", "64K"})
    cases[fmt::format("ntstore-fenced-by-size/access_bytes={}/threads=16", size)] = {2.2};
  cases["fence-every/threads=16/fence=256"] = {2.2};
  cases["fence-every/threads=16/fence=never"] = {0.9};
  for (const int threads : {1, 2, 4, 8, 12, 24})
    for (const char* const size : {"64", "256", "4K"}) {
      const bool small = std::string(size) == "64";
      cases[fmt::format("load-random/access_bytes={}/threads={}", size, threads)] = {small ? 1.6 : 6.5};
      cases[fmt::format("ntstore-random/access_bytes={}/threads={}", size, threads)] = {small ? 0.5 : 1.9};
    }
}

void world::add_comparisons() {
  const std::string dram = "simulated:dram";
  cases["idle-read/medium=given/pattern=sequential"] = {169, "ns"};
  cases["idle-read/medium=given/pattern=random"] = {305, "ns"};
  for (const int bytes : {64, 256, 512}) {
    cases[fmt::format("dependent-read/medium=given/access_bytes={}", bytes)] = {400, "ns"};
    cases[fmt::format("dependent-read/medium=dram/access_bytes={}", bytes)] = {100, "ns", dram};
  }
  cases["idle-ntstore/medium=given"] = {90, "ns"};
  cases["idle-ntstore/medium=dram"] = {87, "ns", dram};
  cases["dram-write-by-size/access_bytes=256"] = {150, "ns", dram};
  cases["six-dimms-load"] = {40, "GiB/s", "simulated:aep-6"};
  cases["six-dimms-ntstore"] = {13, "GiB/s", "simulated:aep-6"};
  cases["dram-load/threads=24"] = {105, "GiB/s", dram};
  cases["dram-store/store=ntstore/threads=24"] = {77, "GiB/s", dram};
  cases["drive-read"] = {0.81, "GiB/s", "drive"};
  cases["drive-write"] = {0.63, "GiB/s", "drive"};
}

void world::add_mixes() {
  for (const auto& [others, reads, writes] : {std::tuple(1, 3.5, 1.5), {4, 3.0, 1.3}, {8, 2.9, 1.25}}) {
    cases[fmt::format("mix-by-writers/writers={}", others)] = {
        4, "GiB/s", "simulated:aep", {{"reads/gib_per_s", reads}}};
    cases[fmt::format("mix-by-readers/readers={}", others)] = {
        4, "GiB/s", "simulated:aep", {{"writes/gib_per_s", writes}}};
  }
  cases["ntstore-fenced/threads=8"] = {2.2};
  for (const int readers : {1, 4, 8})
    for (const int writers : {1, 4, 8})
      cases[fmt::format("mix-latency/readers={}/writers={}", readers, writers)] = {
          900, "ns", "simulated:aep", {{"reads/latency_ns/mean", 900}, {"writes/latency_ns/mean", 1100}}};
}

int world::multiply(const std::string& expression, double factor, const std::string& path) {
  const std::regex wanted(expression);
  int changed = 0;
  for (auto& [name, r] : cases) {
    if (!std::regex_search(name, wanted)) continue;
    double* const figure = path == "value" ? &r.value : r.more.contains(path) ? &r.more[path] : nullptr;
    if (figure == nullptr) continue;
    *figure *= factor;
    ++changed;
  }
  return changed;
}

nlohmann::json world::document() const {
  nlohmann::json document = {{"schema", 1}, {"kind", "microbench"}, {"machine", {{"medium", "simulated:aep"}}}};
  document["cases"] = nlohmann::json::array();
  for (const auto& [name, r] : cases) {
    nlohmann::json one = {{"name", name},     {"medium", r.medium}, {"scale", 1.0},         {"skipped", nullptr},
                          {"value", r.value}, {"unit", r.unit},     {"published", nullptr}, {"media", nullptr}};
    for (const auto& [path, value] : r.more) one[nlohmann::json::json_pointer("/" + path)] = value;
    document["cases"].push_back(std::move(one));
  }
  return document;
}

}  // namespace pmlab::claims
