// What was measured, as judges see it: cases by name, and the figures of each.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace pmlab::claims {

// Why a figure is not there. The two kinds end in different verdicts: somebody can measure what is missing, and nobody
// can measure what this memory or machine does not have.
class missing : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
class not_applicable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
// Nobody counts it here (amplification on real memory).
class uncounted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Immutable, and therefore safe for any number of threads.
class evidence {
 public:
  // `document`: what `pmlab microbench --json` wrote; other programs' results serve as well if they have an array
  // `cases` of objects with `name`, `value` and `unit`. `file` names it in errors. Throws pmlab::error for anything else.
  evidence(nlohmann::json document, std::string_view file);

  // A number of a case, as the device itself would give it: what an emulated device was slowed down by is taken off.
  // `path`: "value", or further down such as "reads/gib_per_s". Throws what is above: there is no such case, it was
  // skipped, it has no such figure.
  [[nodiscard]] double figure(const std::string& name, std::string_view path) const;

  // Whether there is such a case, skipped or not.
  [[nodiscard]] bool has(const std::string& name) const { return places_.contains(name); }

  // What was published in the place of the same figure. Throws `missing` where nothing was.
  [[nodiscard]] double published(const std::string& name, std::string_view path) const;

  // The memory that a case ran on: "simulated:aep". Throws `missing`.
  [[nodiscard]] std::string memory_of(const std::string& name) const;

  // The whole document.
  [[nodiscard]] const nlohmann::json& document() const noexcept { return document_; }

 private:
  [[nodiscard]] const nlohmann::json& case_called(const std::string& name) const;

  nlohmann::json document_;
  std::map<std::string, std::size_t> places_;  // in `cases`, by name
};

}  // namespace pmlab::claims
