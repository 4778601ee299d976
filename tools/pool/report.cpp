// Reports on pools, for people and as JSON.
#include "tools/pool/report.hpp"
#include "bench/support/json_text.hpp"
#include "bench/support/json_values.hpp"
#include "bench/support/quantity.hpp"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pmlab::pool {
namespace {

using bench::readable_bytes;
using nlohmann::ordered_json;

constexpr double percent = 100;

std::string dumped(const ordered_json& document) { return json_text(document, 2) + "\n"; }

std::string shape_of(const root_report& r) {
  if (r.of.is_empty())
    return r.of.index->kept == bench::keeps::nothing ? "keeps nothing" : "named, and not made yet: its process ended";
  if (!r.shape) return r.problem;
  const indexes::index_stats& s = *r.shape;
  return fmt::format("depth {}, {} nodes, {:.0f} % full, {} in the pool, {} in DRAM", s.depth, s.nodes,
                     percent * s.load_factor, readable_bytes(s.medium_bytes), readable_bytes(s.dram_bytes));
}

ordered_json root_to_json(const root_report& r) {
  ordered_json j;
  j["name"] = printable(r.of.facts.name);
  j["layout"] = printable(r.of.facts.layout);
  j["layout_version"] = r.of.facts.version;
  j["readable"] = r.of.is_readable();
  j["made"] = r.of.facts.made;
  j["problem"] = text_or_null(r.problem);
  j["entries"] = r.shape ? ordered_json(r.shape->entries) : ordered_json(nullptr);
  return j;
}

ordered_json pool_to_json(const contents& all) {
  ordered_json j;
  j["schema"] = 1;
  j["path"] = all.path;
  j["file_bytes"] = all.file_bytes;
  j["allocated_bytes"] = all.allocated_bytes;
  j["survives"] = all.survives;
  j["layout"] = media::pmem::pool_layout;
  return j;
}

}  // namespace

std::string info_text(const contents& all, const std::vector<root_report>& reports) {
  std::string text = fmt::format("pool      {}\nsize      {}, {} of it allocated\nsurvives  {}\nlayout    {}\n",
                                 all.path, readable_bytes(all.file_bytes), readable_bytes(all.allocated_bytes),
                                 all.survives, media::pmem::pool_layout);
  text += all.is_device ? "          a device: opening it may have recovered it after a kill\n"
                        : "          inspected in a private mapping: the file is unchanged\n";
  if (reports.empty()) return text + "\nno index\n";
  std::vector<std::string> names, layouts;
  std::size_t name_width = 4, layout_width = 6;
  for (const root_report& r : reports) {
    names.push_back(printable(r.of.facts.name));
    layouts.push_back(fmt::format("{} {}", printable(r.of.facts.layout), r.of.facts.version));
    name_width = std::max(name_width, names.back().size());
    layout_width = std::max(layout_width, layouts.back().size());
  }
  text += fmt::format("\n{:<{}}  {:<{}}  {:>12}  shape\n", "root", name_width, "layout", layout_width, "entries");
  for (std::size_t i = 0; i < reports.size(); ++i)
    text += fmt::format("{:<{}}  {:<{}}  {:>12}  {}\n", names[i], name_width, layouts[i], layout_width,
                        reports[i].shape ? std::to_string(reports[i].shape->entries) : "?", shape_of(reports[i]));
  return text;
}

std::string info_json(const contents& all, const std::vector<root_report>& reports) {
  ordered_json document = pool_to_json(all);
  document["roots"] = ordered_json::array();
  for (const root_report& r : reports) {
    ordered_json one = root_to_json(r);
    one["nodes"] = r.shape ? ordered_json(r.shape->nodes) : ordered_json(nullptr);
    one["depth"] = r.shape ? ordered_json(r.shape->depth) : ordered_json(nullptr);
    one["load_factor"] = r.shape ? ordered_json(r.shape->load_factor) : ordered_json(nullptr);
    one["pm_bytes"] = r.shape ? ordered_json(r.shape->medium_bytes) : ordered_json(nullptr);
    one["dram_bytes"] = r.shape ? ordered_json(r.shape->dram_bytes) : ordered_json(nullptr);
    document["roots"].push_back(std::move(one));
  }
  return dumped(document);
}

std::string check_text(const std::vector<root_report>& reports) {
  if (reports.empty()) return "no index\n";
  std::string text;
  for (const root_report& r : reports) {
    text += printable(r.of.facts.name) + ": ";
    if (!r.problem.empty())
      text += fmt::format("{}: {}\n", !r.of.is_readable() ? "NOT CHECKED" : "NOT SOUND", r.problem);
    else if (r.violations.empty())
      text += fmt::format("sound, {} entries\n", r.shape->entries);
    else
      text += "NOT SOUND\n";
    for (const std::string& v : r.violations) text += fmt::format("  {}\n", v);
  }
  return text;
}

std::string check_json(const contents& all, const std::vector<root_report>& reports) {
  ordered_json document = pool_to_json(all);
  document["roots"] = ordered_json::array();
  for (const root_report& r : reports) {
    ordered_json one = root_to_json(r);
    one["sound"] = r.problem.empty() && r.violations.empty();
    one["violations"] = r.violations;
    document["roots"].push_back(std::move(one));
  }
  return dumped(document);
}

std::string repair_text(const std::vector<salvaged_root>& salvaged) {
  std::string text;
  for (const salvaged_root& r : salvaged) {
    text += fmt::format("{}: {} entries copied{}\n", printable(r.before.of.facts.name), r.entries,
                        r.is_whole() ? ", which are all" : "");
    if (!r.problem.empty()) text += fmt::format("  not all: {}\n", r.problem);
    if (r.contradictions != 0)
      text += fmt::format("  {} keys occurred twice with different values: the first was copied\n", r.contradictions);
    if (!r.before.problem.empty() && r.before.problem != r.problem)
      text += fmt::format("  its check: {}\n", r.before.problem);
    for (const std::string& v : r.before.violations) text += fmt::format("  its check: {}\n", v);
  }
  return text;
}

}  // namespace pmlab::pool
