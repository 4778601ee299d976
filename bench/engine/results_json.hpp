// The results of a run as JSON; docs/results-schema.md defines every field.
#pragma once

#include "bench/engine/json_document.hpp"
#include "bench/engine/options.hpp"
#include "bench/engine/result.hpp"
#include "bench/support/machine.hpp"

#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pmlab::bench {

// Machine and build, as every result has them. `huge_pages_asked_for`: of a run that may request them.
[[nodiscard]] nlohmann::ordered_json facts_to_json(const machine_facts& machine,
                                                   std::optional<bool> huge_pages_asked_for = {});

// `options_text`: the command line, as the user gave it.
[[nodiscard]] json_document results_to_json(const bench_options& options, const machine_facts& machine,
                                            const bench_report& report, const std::string& command);

}  // namespace pmlab::bench
