// All claims, judged from all that `pmlab run` left in a folder.
#pragma once

#include "claims/claim.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace pmlab::claims {

// M1 to M26, then I1 to I11.
[[nodiscard]] std::vector<claim> every_claim();

struct result_set_verdicts {
  std::vector<std::string> tables;      // one for each medium, for people
  std::vector<std::string> unmeasured;  // claims that no medium decides
  std::string summary;                  // how many verdicts there are of each kind, in words
};

// Judges `chosen` on each medium of the result set, and writes FOLDER/claims/MEDIUM.json (docs/claims.md). A claim is
// judged where all of its cases were measured; one that is complete nowhere is "not measured" on the medium that has
// most of it, so that nothing is left out. `command`: for the record. Throws pmlab::error: as read_result_set does.
[[nodiscard]] result_set_verdicts judge_result_set(const std::filesystem::path& folder,
                                                   const std::vector<claim>& chosen, const std::string& command);

}  // namespace pmlab::claims
