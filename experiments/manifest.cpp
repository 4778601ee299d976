// What was run into a folder, and how it ended.
#include "experiments/manifest.hpp"
#include "tools/bench/results_json.hpp"
#include "tools/support/build_info.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/shell_form.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <fstream>
#include <utility>

#include <fmt/format.h>

namespace pmlab::experiments {
namespace {

using json = nlohmann::ordered_json;

constexpr int schema = 1;

json machine_to_json() { return bench::facts_to_json(bench::facts_of_this_machine()); }

json chart_to_json(const chart& c) {
  return {{"kind", c.kind}, {"x", c.x}, {"y", c.y}, {"series", c.series}, {"panels", c.panels}};
}

}  // namespace

manifest manifest::begin(const std::filesystem::path& folder, const std::string& scale, const std::string& command) {
  manifest m(folder);
  m.document_ = {{"schema", schema},
                 {"kind", "results"},
                 {"title", scale + " results"},
                 {"about", fmt::format("What `pmlab run --scale {}` measured.", scale)},
                 {"scale", scale},
                 {"command", command},
                 {"started", bench::facts_of_this_machine().date},
                 {"seconds", 0.0},
                 {"pools", ""},
                 {"machine", machine_to_json()},
                 {"experiments", json::array()},
                 {"runs", json::array()}};
  return m;
}

manifest manifest::resume(const std::filesystem::path& folder, const std::string& scale, const std::string& command) {
  std::ifstream file(folder / "manifest.json");
  // Interrupted before anything was noted.
  if (!file) return begin(folder, scale, command);
  manifest m(folder);
  m.document_ = json::parse(file, nullptr, false);
  if (!m.document_.is_object() || m.document_.value("schema", 0) != schema || !m.document_.contains("runs"))
    throw error((folder / "manifest.json").string() + " is no manifest of `pmlab run`", "give --out another folder");
  const auto before = m.document_.value("scale", std::string());
  if (before != scale)
    throw error(fmt::format("{} holds results of scale {}", folder.string(), before),
                fmt::format("give --scale {}, or --out another folder", before));
  m.document_["machine"] = machine_to_json();
  return m;
}

void manifest::describe(const std::vector<experiment>& all) {
  for (const experiment& e : all) {
    json one = {{"name", e.name}, {"title", e.title},   {"about", e.about},       {"shows", e.shows},
                {"kind", e.kind}, {"claims", e.claims}, {"charts", json::array()}};
    for (const chart& c : e.charts) one["charts"].push_back(chart_to_json(c));
    json& known = document_["experiments"];
    const auto place = std::find_if(known.begin(), known.end(), [&](const json& k) { return k["name"] == e.name; });
    if (place == known.end())
      known.push_back(std::move(one));
    else
      *place = std::move(one);
  }
}

bool manifest::has(const cell& c) const {
  for (const json& run : document_["runs"])
    if (run.value("name", "") == c.name)
      return run.value("status", 1) == 0 && run.value("command", "") == shell_form(c.words) &&
             run.value("commit", "") == bench::build_commit() &&
             std::filesystem::exists(folder_ / "raw" / (c.name + ".json"));
  return false;
}

void manifest::add(const cell& c, const ending& e) {
  json& runs = document_["runs"];
  runs.erase(std::remove_if(runs.begin(), runs.end(), [&](const json& r) { return r["name"] == c.name; }), runs.end());
  json values = json::object();
  for (const auto& [key, value] : c.values) values[key] = value;
  runs.push_back({{"name", c.name},
                  {"experiment", c.experiment},
                  {"values", std::move(values)},
                  {"command", shell_form(c.words)},
                  {"commit", bench::build_commit()},
                  {"status", e.status},
                  {"message", e.message},
                  {"seconds", e.seconds}});
  double seconds = 0;
  for (const json& run : runs) seconds += run.value("seconds", 0.0);
  document_["seconds"] = seconds;
  write();
}

void manifest::set_pools(const std::string& path) { document_["pools"] = path; }

std::string manifest::pools() const { return document_.value("pools", std::string()); }

void manifest::write() const { bench::write_json((folder_ / "manifest.json").string(), document_); }

}  // namespace pmlab::experiments
