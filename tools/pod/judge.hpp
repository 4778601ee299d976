// Whether the answers of all processes of a round, and what they have left, are those of one index.
#pragma once

#include "tools/pod/operation_log.hpp"
#include <pmlab/indexes/index.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::pods {

// "" or a violation: no order of the operations gives the answers, key by key, or `found` are not the entries behind
// them. `before`: those in front. `died`: when each process had ended by a kill; 0: it was not killed. An operation
// that a kill has cut off has happened, or has not, or happens until a change of the key has returned that began
// behind it.
[[nodiscard]] std::string judge(std::vector<std::uint64_t> keys, const std::vector<indexes::entry>& before,
                                const operation_log& log, const std::vector<std::uint64_t>& died,
                                const std::vector<indexes::entry>& found);

}  // namespace pmlab::pods
