// `pmlab verify --performance`: flushes and fences that had no effect.
#pragma once

#include "checker/verify/campaign.hpp"
#include "checker/verify/target.hpp"

namespace pmlab::cli {

// Runs rounds of one thread without crashes, and prints the lines. True: each of them has its reason in the source.
[[nodiscard]] bool print_performance(const verify::subject& kind, verify::campaign_options options, bool quiet);

}  // namespace pmlab::cli
