// How long a run will still take, estimated from its steps so far.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::bench {

// A step belongs to a part (an index) and is of a kind (a phase). Its weight is its expected cost in any unit. The
// duration of a kind seen before predicts its next step; for other kinds the part's mean cost per weight is used, and
// for parts not seen before the run's. Times are in seconds of any clock.
//
// expect() allocates, the other functions do not: on the simulated machine an allocation shows in the figures. Not
// thread-safe.
class time_left {
 public:
  // A step that will come. With `in_seconds` the weight is the time that it will take.
  void expect(std::string_view part, std::string_view kind, double weight, bool in_seconds = false);
  // A step that was expected will not come.
  void skip(std::string_view part, std::string_view kind, double weight) noexcept;
  // A step begins; it need not have been expected. The texts must live until its end.
  void begin(std::string_view part, std::string_view kind, double weight, double now) noexcept;
  void end(double now) noexcept;

  // The seconds left, or std::nullopt: too little was seen. `share`: of the step under way, 0 to 1, if it is known.
  [[nodiscard]] std::optional<double> seconds(double now, std::optional<double> share) const noexcept;

 private:
  struct step_kind {
    std::string part;
    std::string kind;
    bool in_seconds = false;
    double left = 0;   // weight of the steps to come
    double rate = -1;  // seconds for each weight, of the last step; below 0: none was seen
    double seen_seconds = 0;
    double seen_weight = 0;
  };
  struct step {
    std::string_view part;
    std::string_view kind;
    double weight = 0;
    double start = 0;
    bool under_way = false;
  };
  // Seconds and weight that were seen.
  struct experience {
    double seconds = 0;
    double weight = 0;
  };

  [[nodiscard]] step_kind* find(std::string_view part, std::string_view kind) noexcept;
  [[nodiscard]] const step_kind* find(std::string_view part, std::string_view kind) const noexcept;
  // `part` empty: of the whole run.
  [[nodiscard]] experience seen_in(std::string_view part, double elapsed, std::optional<double> share) const noexcept;
  [[nodiscard]] double rate_of(const step_kind& k, double elapsed, std::optional<double> share) const noexcept;

  std::vector<step_kind> kinds_;
  step now_;
};

// "about 2 min left": as exact as an estimate is. Writes at most `room` characters, none beyond; returns their number.
[[nodiscard]] std::size_t write_time_left(char* to, std::size_t room, double seconds) noexcept;

}  // namespace pmlab::bench
