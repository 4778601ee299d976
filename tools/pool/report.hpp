// Reports on pools, for people and as JSON.
#pragma once

#include "tools/pool/inspect.hpp"
#include "tools/pool/repair.hpp"

#include <string>
#include <vector>

namespace pmlab::pool {

[[nodiscard]] std::string info_text(const contents& all, const std::vector<root_report>& reports);
[[nodiscard]] std::string info_json(const contents& all, const std::vector<root_report>& reports);
[[nodiscard]] std::string check_text(const std::vector<root_report>& reports);
[[nodiscard]] std::string check_json(const contents& all, const std::vector<root_report>& reports);
[[nodiscard]] std::string repair_text(const std::vector<salvaged_root>& salvaged);

}  // namespace pmlab::pool
