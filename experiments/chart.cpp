// Charts as files describe them.
#include "experiments/chart.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "experiments/toml_text.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

namespace pmlab::experiments {
namespace {

// standard: the charts that every comparison of indexes gets (scripts/report/sections.py).
const std::vector<std::string_view> kinds = {"lines", "bars", "standard"};
// As scripts/report/quantities.py has them.
const std::vector<std::string_view> quantities = {
    "throughput",   "latency",       "p99",          "hit_ratio",  "flushes",    "fences",     "lines_read",
    "device_reads", "device_writes", "milliseconds", "first_find", "first_scan", "pm_per_key", "dram_per_key"};

std::string one_of(const toml::table& table, std::string_view key, const std::vector<std::string_view>& known,
                   std::string_view file) {
  const toml::node* const node = table.get(key);
  if (node == nullptr)
    throw error(fmt::format("{}: a [[chart]] without {}", place_of(file, table), key),
                fmt::format("give it one, such as {} = \"{}\"", key, known.front()));
  std::string value = text_of(*node, key, file);
  if (std::find(known.begin(), known.end(), value) == known.end())
    throw error(fmt::format("{}: a chart's {} cannot be '{}'", place_of(file, *node), key, value),
                fmt::format("did you mean '{}'?", nearest(value, known)));
  return value;
}

}  // namespace

chart read_chart(const toml::table& table, const std::vector<axis>& axes, std::string_view file) {
  refuse_unknown_keys(table, {"kind", "x", "y", "series", "panels"}, file);
  chart c;
  c.kind = one_of(table, "kind", kinds, file);
  if (c.kind == "standard") return c;
  std::vector<std::string_view> dimensions = {"threads", "phase", "index", "medium"};
  for (const axis& a : axes) dimensions.emplace_back(a.key);
  c.x = one_of(table, "x", dimensions, file);
  c.y = one_of(table, "y", quantities, file);
  c.series = one_of(table, "series", dimensions, file);
  if (const toml::node* const panels = table.get("panels")) {
    c.panels = texts_of(*panels, "panels", file);
    for (const std::string& p : c.panels)
      if (std::find(dimensions.begin(), dimensions.end(), p) == dimensions.end())
        throw error(fmt::format("{}: a chart's panels cannot be by '{}'", place_of(file, *panels), p),
                    fmt::format("did you mean '{}'?", nearest(p, dimensions)));
  }
  return c;
}

}  // namespace pmlab::experiments
