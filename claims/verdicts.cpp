// All claims, judged from the results of a folder.
#include "claims/verdicts.hpp"
#include "tools/bench/results_json.hpp"
#include "tools/support/file_form.hpp"
#include <pmlab/base/error.hpp>
#include "claims/indexes.hpp"
#include "claims/memory.hpp"
#include "claims/report.hpp"
#include "claims/result_set.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

namespace fs = std::filesystem;

struct medium_evidence {
  std::string medium;
  evidence found;
  std::vector<judgement> judgements = {};
};

// Claims about a drive beside the memory: nothing in a result set measures one.
bool is_drive(const std::string& name) { return name.starts_with("drive-"); }

void add_missing_drive(nlohmann::json& document) {
  nlohmann::json& cases = document["cases"];
  const bool of_memory = std::any_of(cases.begin(), cases.end(), [](const nlohmann::json& one) {
    return one.value("name", std::string()).starts_with("load-random/");
  });
  if (!of_memory) return;
  for (const char* const name : {"drive-read", "drive-write"})
    cases.push_back({{"name", name},
                     {"medium", nullptr},
                     {"skipped", "no drive was measured: `pmlab claims --ssd FOLDER` measures one with fio"},
                     {"value", nullptr},
                     {"unit", nullptr}});
}

std::size_t measured_cases(const claim& c, const evidence& e) {
  std::size_t count = 0;
  for (const std::string& name : cases_of(c)) count += !is_drive(name) && e.has(name) ? 1 : 0;
  return count;
}

void judge_everywhere(const claim& c, std::vector<medium_evidence>& media) {
  std::vector<judgement> all;
  all.reserve(media.size());
  for (const medium_evidence& m : media) all.push_back(judge(c, m.found));
  bool complete = false;
  for (std::size_t i = 0; i < media.size(); ++i) {
    if (all[i].found == verdict::not_measured) continue;
    complete = true;
    media[i].judgements.push_back(all[i]);
  }
  if (complete) return;
  const auto most = std::max_element(media.begin(), media.end(), [&](const auto& a, const auto& b) {
    return measured_cases(c, a.found) < measured_cases(c, b.found);
  });
  most->judgements.push_back(all[static_cast<std::size_t>(most - media.begin())]);
}

}  // namespace

std::vector<claim> every_claim() {
  std::vector<claim> all = memory_claims();
  all.insert(all.end(), index_claims().begin(), index_claims().end());
  return all;
}

result_set_verdicts judge_result_set(const fs::path& folder, const std::vector<claim>& chosen,
                                     const std::string& command) {
  std::vector<medium_evidence> media;
  for (medium_results& m : read_result_set(folder)) {
    add_missing_drive(m.document);
    media.push_back({m.medium, evidence(std::move(m.document), folder.string())});
  }
  for (const claim& c : chosen) judge_everywhere(c, media);

  std::error_code ignored;
  fs::remove_all(folder / "claims", ignored);
  fs::create_directories(folder / "claims");
  result_set_verdicts result;
  std::map<verdict, std::size_t> counts;
  std::size_t judged = 0;
  for (const medium_evidence& m : media) {
    if (m.judgements.empty()) continue;
    bench::write_json((folder / "claims" / (file_form(m.medium) + ".json")).string(),
                      verdicts_to_json(m.judgements, m.found, {command, {}}));
    result.tables.push_back(verdicts_table(m.judgements, m.found));
    for (const judgement& j : m.judgements) {
      ++counts[j.found];
      ++judged;
      if (j.found == verdict::not_measured) result.unmeasured.push_back(j.of->id);
    }
  }
  result.summary = fmt::format("{} verdicts on {} claims:", judged, chosen.size());
  for (const auto& [v, count] : counts)
    result.summary += fmt::format("{} {} {}", result.summary.ends_with(':') ? "" : ",", count, to_string(v));
  return result;
}

}  // namespace pmlab::claims
