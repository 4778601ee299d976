// An invented memory that is just as the paper claims, as the results of a run on it: every claim holds there.
#pragma once

#include "claims/evidence.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace pmlab::claims {

struct result {
  double value = 0;
  std::string unit = "GiB/s";
  std::string medium = "simulated:aep";
  std::map<std::string, double> more = {};  // path below the case: "reads/gib_per_s"
};

class world {
 public:
  world();

  std::map<std::string, result> cases;

  // Multiplies a figure of every case whose name has a match of the expression. Returns how many there were.
  int multiply(const std::string& expression, double factor, const std::string& path = "value");

  [[nodiscard]] nlohmann::json document() const;
  [[nodiscard]] evidence found() const { return {document(), "world"}; }

 private:
  void add_latencies();
  void add_bandwidths();
  void add_comparisons();
  void add_mixes();
};

}  // namespace pmlab::claims
