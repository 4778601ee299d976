// What was measured, as judges see it.
#include "claims/evidence.hpp"
#include <pmlab/base/error.hpp>

#include <utility>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using nlohmann::json;

constexpr int known_schema = 1;

bool has_text(const json& object, const char* key) {
  const auto field = object.find(key);
  return field != object.end() && field->is_string();
}

double scale_of(const json& measured) {
  const auto field = measured.find("scale");
  return field != measured.end() && field->is_number() ? field->get<double>() : 1;
}

// What the figure at `path` is in: "ns", "GiB/s", or empty: a ratio.
std::string unit_of(const json& measured, std::string_view path) {
  if (path == "value") return measured.value("unit", std::string());
  if (path.ends_with("gib_per_s")) return "GiB/s";
  return path.find("_ns") != std::string_view::npos || path.find("ns_") != std::string_view::npos ? "ns" : "";
}

}  // namespace

evidence::evidence(json document, std::string_view file) : document_(std::move(document)) {
  const auto refuse = [&](const std::string& problem) {
    throw error(fmt::format("{} {}", file, problem), "give a file that `pmlab microbench --json` wrote");
  };
  if (!document_.is_object()) refuse("holds no results");
  const auto schema = document_.find("schema");
  if (schema == document_.end() || *schema != known_schema) refuse(fmt::format("is not of schema {}", known_schema));
  const auto cases = document_.find("cases");
  if (cases == document_.end() || !cases->is_array()) refuse("has no cases");
  for (std::size_t i = 0; i < cases->size(); ++i) {
    const json& one = (*cases)[i];
    if (!one.is_object() || !has_text(one, "name")) refuse(fmt::format("has a case without a name, number {}", i));
    const bool measured = one.contains("value") && one["value"].is_number() && has_text(one, "unit");
    if (!measured && !has_text(one, "skipped"))
      refuse(fmt::format("has a case without a figure: {}", one["name"].get<std::string>()));
    places_.emplace(one["name"].get<std::string>(), i);
  }
}

const json& evidence::case_called(const std::string& name) const {
  const auto place = places_.find(name);
  if (place == places_.end()) throw missing(name);
  return document_.at("cases")[place->second];
}

double evidence::figure(const std::string& name, std::string_view path) const {
  const json& measured = case_called(name);
  if (has_text(measured, "skipped"))
    throw not_applicable(fmt::format("{} ({})", measured["skipped"].get<std::string>(), name));
  const json::json_pointer place(fmt::format("/{}", path));
  if (!measured.contains(place) || !measured.at(place).is_number())
    throw uncounted(fmt::format("{} has no {}", name, path));
  const auto value = measured.at(place).get<double>();
  const std::string unit = unit_of(measured, path);
  if (unit == "ns") return value / scale_of(measured);
  return unit == "GiB/s" ? value * scale_of(measured) : value;
}

double evidence::published(const std::string& name, std::string_view path) const {
  const json& measured = case_called(name);
  const auto value = measured.find("published");
  if (path != "value" || value == measured.end() || !value->is_number() ||
      measured.value("published_unit", json()) != measured.value("unit", json()))
    throw missing(name);
  return value->get<double>();
}

std::string evidence::memory_of(const std::string& name) const {
  const json& measured = case_called(name);
  return has_text(measured, "medium") ? measured["medium"].get<std::string>() : std::string();
}

}  // namespace pmlab::claims
