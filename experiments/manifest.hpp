// What was run into a folder, and how it ended: FOLDER/manifest.json, for --resume, for the judges and for the report.
#pragma once

#include "experiments/experiment.hpp"
#include "experiments/plan.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace pmlab::experiments {

// How a cell ended.
struct ending {
  int status = 0;
  std::string message;  // the program's complaint, if there is one
  double seconds = 0;
};

// Not thread-safe.
class manifest {
 public:
  // Of a new run, or of the one whose folder this is. Throws pmlab::error: what is there is no manifest.
  static manifest begin(const std::filesystem::path& folder, const std::string& scale, const std::string& command);
  static manifest resume(const std::filesystem::path& folder, const std::string& scale, const std::string& command);

  void describe(const std::vector<experiment>& all);

  // Whether the cell was run with these words by this build of pmlab, ended well, and left its results.
  [[nodiscard]] bool has(const cell& c) const;

  // Notes how it ended, in the place of what was known of it, and writes the file.
  void add(const cell& c, const ending& e);

  // Folders for pools that this run, or the one that was interrupted, made.
  void set_pools(const std::string& path);
  [[nodiscard]] std::string pools() const;

  // Replaces the file as a whole. Throws pmlab::error.
  void write() const;

 private:
  explicit manifest(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
  nlohmann::ordered_json document_;
};

}  // namespace pmlab::experiments
