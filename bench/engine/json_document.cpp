// Where nlohmann/json.hpp is compiled for documents that are passed on.
#include "bench/engine/json_document.hpp"

#include <utility>

#include <nlohmann/json.hpp>

namespace pmlab::bench {

json_document::json_document(nlohmann::ordered_json&& content)
    : content_(std::make_unique<nlohmann::ordered_json>(std::move(content))) {}
json_document::json_document(json_document&& other) noexcept = default;
json_document& json_document::operator=(json_document&& other) noexcept = default;
json_document::~json_document() = default;

}  // namespace pmlab::bench
