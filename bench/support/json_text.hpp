// JSON documents as text.
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

namespace pmlab {

// The text of a document. `indent`: spaces for each level; -1: all in one line. A text in it that is no UTF-8, such as
// the name of a file, has its bytes escaped (printable.hpp), so that no results are lost for a name.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& document, int indent);
[[nodiscard]] std::string json_text(const nlohmann::json& document, int indent);

}  // namespace pmlab
