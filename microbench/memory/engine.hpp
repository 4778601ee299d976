// Measures the cases of a suite.
#pragma once

#include "bench/catalogue/medium_spec.hpp"
#include "bench/devices/calibration.hpp"
#include "bench/support/progress.hpp"
#include "microbench/memory/cpu_features.hpp"
#include "microbench/memory/result.hpp"
#include "microbench/memory/suite.hpp"
#include "microbench/memory/target.hpp"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace pmlab::microbench {

struct run_options {
  bench::medium_spec medium;
  double spread_percent = 5;
  double emulation_scale = 0;  // 0: as much as this machine needs
  unsigned layouts = 1;        // how many a simulated memory has: a repetition on each, with other places
  bool huge_pages = true;
  bool reuse = false;
  bool overwrite = false;
};

// Measures one case after the other; keeps a real memory open between cases that use the same. One at a time in a
// process; not thread-safe.
class engine {
 public:
  // The largest working set of `cases` determines the size of real memories: no other cases are measured.
  engine(run_options options, const std::vector<bench_case>& cases);
  engine(const engine&) = delete;
  engine& operator=(const engine&) = delete;
  ~engine();

  // Throws pmlab::error where there is no memory to measure.
  [[nodiscard]] case_result measure(const bench_case& c);

  // Warnings about all figures, so far.
  [[nodiscard]] std::vector<std::string> remarks() const;
  // The scale of the emulated media so far; 0: there was none.
  [[nodiscard]] double emulation_scale() const;

 private:
  struct place;  // a memory that is open

  [[nodiscard]] std::string refusal(const bench_case& c, bench::medium_spec& medium) const;
  [[nodiscard]] target& memory_for(const bench_case& c, const bench::medium_spec& medium);
  [[nodiscard]] std::uint64_t bytes_for(const bench_case& c) const;
  [[nodiscard]] std::shared_ptr<const media::calibration> emulation_of(const bench::medium_spec& medium);
  struct sides;  // what the repetitions of a case measured
  void measure_on(const bench_case& c, target& memory, std::optional<unsigned> layout, sides& of,
                  case_result& result) const;

  run_options options_;
  const std::vector<bench_case>& cases_;
  cpu_features cpu_;
  std::map<std::string, std::shared_ptr<const media::calibration>> emulations_;
  std::unique_ptr<place> place_;
  std::vector<std::string> remarks_;
  mutable std::map<std::string, std::uint64_t> room_;  // room of each medium, as it was before the run took any
};

// All cases of a suite. An error in the middle of the run ends it: the report has the results so far, and the reason.
[[nodiscard]] suite_report run_suite(const run_options& options, const suite& s, bench::progress& shown);

}  // namespace pmlab::microbench
