// Verdicts as a table and as JSON.
#include "claims/report.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

using json = nlohmann::ordered_json;

constexpr int schema = 1;

struct line {
  std::string what, value, rule, published;
};

std::vector<line> lines_of(const judgement& j) {
  std::vector<line> lines;
  for (const condition& c : j.of->conditions) {
    line l{c.what, "-", text_of(c.must_be, c.in), {}};
    for (const finding& f : j.findings)
      if (f.of == &c) {
        l.value = text_of(f.value, c.in) + (f.holds ? "" : " !");
        if (f.published)
          l.published = fmt::format("published {}{}", text_of(*f.published, c.in), holds(c, *f.published) ? "" : " !");
      }
    lines.push_back(std::move(l));
  }
  return lines;
}

std::size_t widest(const std::vector<judgement>& judgements, std::string line::*column) {
  std::size_t width = 0;
  for (const judgement& j : judgements)
    for (const line& l : lines_of(j)) width = std::max(width, (l.*column).size());
  return width;
}

std::string summary(const std::vector<judgement>& judgements) {
  std::map<verdict, int> counts;
  for (const judgement& j : judgements) ++counts[j.found];
  std::string text;
  for (const auto& [v, count] : counts) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", to_string(v), count);
  return text;
}

json limit(double value) { return std::isinf(value) ? json(nullptr) : json(value); }

json condition_to_json(const condition& c, const judgement& j) {
  json one = {{"what", c.what},       {"unit", to_string(c.in)},          {"measured", nullptr},
              {"published", nullptr}, {"at_least", limit(c.must_be.low)}, {"at_most", limit(c.must_be.high)},
              {"holds", nullptr},     {"rule", text_of(c.must_be, c.in)}};
  for (const finding& f : j.findings)
    if (f.of == &c) {
      one["measured"] = f.value;
      one["published"] = f.published ? json(*f.published) : json(nullptr);
      one["holds"] = f.holds;
    }
  return one;
}

}  // namespace

std::string verdicts_table(const std::vector<judgement>& judgements, const evidence& e) {
  const std::size_t what = widest(judgements, &line::what);
  const std::size_t value = widest(judgements, &line::value);
  const std::size_t rule = widest(judgements, &line::rule);
  const auto machine = e.document().find("machine");
  std::string text = fmt::format(
      "claims on {}\n", machine != e.document().end() ? machine->value("medium", std::string("?")) : std::string("?"));
  for (const judgement& j : judgements) {
    text += fmt::format("\n{:<4} {:<15} {}\n", j.of->id, to_string(j.found), j.of->text);
    for (const line& l : lines_of(j)) {
      std::string row =
          fmt::format("       {:<{}}  {:>{}}  {:<{}}  {}", l.what, what, l.value, value, l.rule, rule, l.published);
      row.erase(row.find_last_not_of(' ') + 1);
      text += row + '\n';
    }
    if (!j.reason.empty()) text += fmt::format("       {}\n", j.reason);
  }
  return text + fmt::format("\n{}; ! does not hold; published: of the first Optane generation\n", summary(judgements));
}

json verdicts_to_json(const std::vector<judgement>& judgements, const evidence& e, const record& r) {
  json document;
  document["schema"] = schema;
  document["kind"] = "claims";
  document["machine"] = e.document().value("machine", nlohmann::json());
  document["options"] = {{"command", r.command}, {"results", r.results.empty() ? json(nullptr) : json(r.results)}};
  document["claims"] = json::array();
  for (const judgement& j : judgements) {
    json one = {{"id", j.of->id},
                {"claim", j.of->text},
                {"verdict", to_string(j.found)},
                {"reason", j.reason.empty() ? json(nullptr) : json(j.reason)},
                {"conditions", json::array()},
                {"cases", cases_of(*j.of)}};
    for (const condition& c : j.of->conditions) one["conditions"].push_back(condition_to_json(c, j));
    document["claims"].push_back(std::move(one));
  }
  return document;
}

std::string rules_table(const std::vector<claim>& claims) {
  std::string text;
  for (const claim& c : claims) {
    text += fmt::format("{:<4} {}\n", c.id, c.text);
    for (const condition& one : c.conditions)
      text += fmt::format("       {}: {}{}\n", one.what, text_of(one.must_be, one.in),
                          one.where_counted ? ", where that is counted" : "");
  }
  return text;
}

std::string rules_markdown(const std::vector<claim>& claims) {
  std::string text = "| id | claim | is reproduced if |\n| --- | --- | --- |\n";
  for (const claim& c : claims) {
    text += fmt::format("| {} | {} | ", c.id, c.text);
    for (const condition& one : c.conditions)
      text += fmt::format("{}{}: **{}**{}", &one == &c.conditions.front() ? "" : "<br>", one.what,
                          text_of(one.must_be, one.in), one.where_counted ? ", where that is counted" : "");
    text += " |\n";
  }
  return text;
}

}  // namespace pmlab::claims
