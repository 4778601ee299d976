// Results of `pmlab run` as evidence.
#include "claims/result_set.hpp"
#include "tools/bench/summary.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <tuple>
#include <utility>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr int known_schema = 1;

// Without the path of a pool, which says nothing about the device.
std::string medium_of(const json& document) {
  std::string text = document.at("machine").value("medium", std::string());
  text.erase(std::min(text.find('@'), text.size()));
  if (text.starts_with("pmem:")) text = "pmem";
  return text;
}

// An object of the same shape whose numbers are the medians of those in its place.
json medians_of(const std::vector<const json*>& all) {
  const json& first = *all.front();
  if (first.is_object()) {
    json result = json::object();
    for (const auto& [key, value] : first.items()) {
      std::vector<const json*> parts;
      for (const json* one : all)
        if (one->is_object() && one->contains(key)) parts.push_back(&one->at(key));
      result[key] = medians_of(parts);
    }
    return result;
  }
  if (!first.is_number()) return first;
  std::vector<double> values;
  for (const json* one : all)
    if (one->is_number()) values.push_back(one->get<double>());
  return bench::median(std::move(values));
}

struct place {
  std::string index, phase;
  unsigned threads = 0;
  bool operator<(const place& other) const {
    return std::tie(index, phase, threads) < std::tie(other.index, other.phase, other.threads);
  }
};
place place_of(const json& entry) {
  return {entry.at("index").get<std::string>(), entry.at("phase").get<std::string>(),
          entry.at("threads").get<unsigned>()};
}

// The keys of the matrix that results do not name by themselves.
std::string prefix_of(const json& run) {
  std::string prefix = run.at("experiment").get<std::string>();
  for (const auto& [key, value] : run.at("values").items())
    if (key != "medium" && key != "index" && key != "threads")
      prefix += fmt::format("/{}={}", key, value.get<std::string>());
  return prefix;
}

}  // namespace

std::string case_name(std::string_view experiment, std::string_view index, std::string_view threads,
                      std::string_view phase) {
  return fmt::format("{}/index={}/threads={}/phase={}", experiment, index, threads, phase);
}

json read_json(const fs::path& path) {
  std::ifstream file(path);
  if (!file) throw error(path.string() + " cannot be read", "check the path and its permissions");
  json document = json::parse(file, nullptr, false);
  if (document.is_discarded()) throw error(path.string() + " is no JSON", "give a file that pmlab wrote with --json");
  return document;
}

json cases_of_bench(const json& document, const std::string& prefix) {
  std::map<place, std::vector<const json*>> repeats;
  std::map<std::pair<std::string, std::string>, unsigned> most;
  for (const json& result : document.at("results")) {
    const place p = place_of(result);
    repeats[p].push_back(&result);
    unsigned& highest = most[{p.index, p.phase}];
    highest = std::max(highest, p.threads);
  }
  json cases = json::array();
  for (const auto& [p, results] : repeats) {
    json one = medians_of(results);
    one["value"] = one.at("throughput_ops_per_s");
    one["unit"] = "ops/s";
    one["skipped"] = nullptr;
    one["name"] = case_name(prefix, p.index, std::to_string(p.threads), p.phase);
    cases.push_back(one);
    if (most[{p.index, p.phase}] != p.threads) continue;
    one["name"] = case_name(prefix, p.index, "most", p.phase);
    cases.push_back(std::move(one));
  }
  for (const json& skipped : document.value("skipped", json::array())) {
    const place p = place_of(skipped);
    cases.push_back({{"name", case_name(prefix, p.index, std::to_string(p.threads), p.phase)},
                     {"skipped", skipped.at("reason")},
                     {"value", nullptr},
                     {"unit", nullptr}});
  }
  return cases;
}

std::vector<medium_results> read_result_set(const fs::path& folder) {
  if (!fs::exists(folder / "manifest.json"))
    throw error(folder.string() + " holds no manifest.json", "name a folder that `pmlab run --out` wrote");
  const json manifest = read_json(folder / "manifest.json");
  std::vector<medium_results> all;
  for (const json& run : manifest.value("runs", json::array())) {
    if (run.value("status", 1) != 0) continue;
    const fs::path file = folder / "raw" / (run.value("name", std::string()) + ".json");
    try {
      const json document = read_json(file);
      if (document.at("schema") != known_schema)
        throw error(fmt::format("{} is not of schema {}", file.string(), known_schema), "measure again");
      const std::string medium = medium_of(document);
      auto found = std::find_if(all.begin(), all.end(), [&](const auto& m) { return m.medium == medium; });
      if (found == all.end()) {
        json machine = document.at("machine");
        machine["medium"] = medium;
        all.push_back({medium, {{"schema", known_schema}, {"machine", machine}, {"cases", json::array()}}});
        found = std::prev(all.end());
      }
      const bool of_memory = document.value("kind", std::string()) == "microbench";
      for (json& one : of_memory ? json(document.at("cases")) : cases_of_bench(document, prefix_of(run)))
        found->document["cases"].push_back(std::move(one));
    } catch (const json::exception& e) {
      throw error(fmt::format("{} is no result of pmlab: {}", file.string(), e.what()), "measure again");
    }
  }
  if (all.empty()) throw error(folder.string() + " holds no results that ended well", "see its manifest.json for why");
  return all;
}

}  // namespace pmlab::claims
