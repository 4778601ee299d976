// Verdicts as a table for people and as JSON, and the rules as a table for the documentation.
#pragma once

#include "claims/claim.hpp"

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace pmlab::claims {

// What was judged, for the record.
struct record {
  std::string command;  // as the user gave it
  std::string results;  // file that was judged; empty: measured by the same command
};

[[nodiscard]] std::string verdicts_table(const std::vector<judgement>& judgements, const evidence& e);

// docs/claims.md says what every field means.
[[nodiscard]] nlohmann::ordered_json verdicts_to_json(const std::vector<judgement>& judgements, const evidence& e,
                                                      const record& r);

// Claims and what must hold, and measures nothing.
[[nodiscard]] std::string rules_table(const std::vector<claim>& claims);
[[nodiscard]] std::string rules_markdown(const std::vector<claim>& claims);

}  // namespace pmlab::claims
