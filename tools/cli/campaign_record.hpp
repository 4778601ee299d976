// The record of a campaign over a range of seeds: `pmlab verify --seeds A..B --out FOLDER`. docs/cluster.md describes
// it.
//
//   FOLDER/campaign.json   options, counts and violations: the same, byte for byte, wherever and whenever it was made,
//                          and however often it was interrupted. `pmlab merge` adds up those of several ranges.
//   FOLDER/manifest.json   all that differs by nature: host, date, seconds, the command as it was typed
#pragma once

#include "checker/verify/campaign.hpp"
#include "tools/cli/verify_run.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace pmlab::cli {

class campaign_record {
 public:
  // `indexes`: the names, in their order. With `resume`, what the folder has of this campaign is kept. Throws
  // pmlab::error: the folder holds a campaign, and not this one, or `resume` was not asked for; it cannot be written
  // to.
  campaign_record(const verify_request& request, const verify::campaign_options& options,
                  const std::vector<std::string>& indexes, const arguments& command_line);
  campaign_record(const campaign_record&) = delete;
  campaign_record& operator=(const campaign_record&) = delete;
  ~campaign_record();

  // The first seed of an index that is not verified yet; above the last of the range: none is left.
  [[nodiscard]] std::uint64_t next_seed(std::size_t index) const;

  // Adds the round of seed `done`, and its violation if it has one. `replay`: the command that shows the violation
  // again.
  void add(std::size_t index, const verify::round_counts& counts, std::uint64_t done, double seconds,
           const verify::violation* found, const std::string& replay);

  // Writes the folder. Throws pmlab::error: it cannot be written; the old files are unchanged.
  void save() const;

  // Sums of all that was recorded of an index.
  [[nodiscard]] std::size_t violations(std::size_t index) const;
  [[nodiscard]] verify::round_counts counts(std::size_t index) const;

 private:
  struct documents;

  std::string folder_;  // empty: nothing is written
  std::uint64_t first_;
  std::unique_ptr<documents> documents_;
};

}  // namespace pmlab::cli
