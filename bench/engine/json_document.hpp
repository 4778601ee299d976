// A JSON document that is passed without nlohmann/json.hpp, which takes seconds to compile.
#pragma once

#include <memory>

#include <nlohmann/json_fwd.hpp>

namespace pmlab::bench {

class json_document {
 public:
  explicit json_document(nlohmann::ordered_json&& content);
  json_document(json_document&& other) noexcept;
  json_document& operator=(json_document&& other) noexcept;
  ~json_document();

  // REQUIRES: the document has not been moved from.
  [[nodiscard]] const nlohmann::ordered_json& content() const noexcept { return *content_; }

 private:
  std::unique_ptr<nlohmann::ordered_json> content_;
};

}  // namespace pmlab::bench
