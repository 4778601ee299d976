// A claim that somebody made of a memory or of an index, as something that measurements decide.
//
// A claim holds if all of its conditions do. A condition is a quantity and the range that it must lie in: the rule that
// a reader sees, the cases that must be measured and the judgement all come from that one place.
#pragma once

#include "claims/evidence.hpp"
#include "claims/quantity.hpp"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::claims {

// From `low` to `high`, both included.
struct range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
};
[[nodiscard]] constexpr range at_least(double low) { return {.low = low}; }
[[nodiscard]] constexpr range at_most(double high) { return {.high = high}; }
[[nodiscard]] constexpr range between(double low, double high) { return {low, high}; }

enum class unit : std::uint8_t { ns, gb_per_s, times, percent, bytes };

struct condition {
  std::string what;  // of the quantity: "64 KB, latency of 16 threads over that of 1"
  unit in = unit::times;
  quantity measured;
  range must_be;
  bool where_counted = false;  // left out where nobody counts the quantity
};

struct claim {
  std::string id;    // "M1"
  std::string text;  // one sentence
  std::vector<condition> conditions;
};

enum class verdict : std::uint8_t {
  reproduced,
  not_reproduced,
  not_applicable,  // this memory or machine cannot show it; `reason` says why
  not_measured,    // a case is missing; `reason` says which
};

struct finding {
  const condition* of = nullptr;  // of the claim, which must outlive this
  double value = 0;
  std::optional<double> published;  // the same quantity of published figures of the first Optane generation
  bool holds = false;
};

struct judgement {
  const claim* of = nullptr;  // must outlive this
  verdict found = verdict::not_measured;
  std::vector<finding> findings;  // of the conditions that could be decided
  std::string reason;             // of a verdict that is about what is not there
};

[[nodiscard]] constexpr bool holds(const condition& c, double value) noexcept {
  return value >= c.must_be.low && value <= c.must_be.high;
}

// Decides from measurements alone. A condition that fails decides whatever else could not be measured on this memory.
[[nodiscard]] judgement judge(const claim& c, const evidence& e);

// The names of the cases that it needs, each once, in alphabetical order.
[[nodiscard]] std::vector<std::string> cases_of(const claim& c);

[[nodiscard]] std::string_view to_string(verdict v) noexcept;
[[nodiscard]] std::string_view to_string(unit u) noexcept;
// With its unit: "356 ns", "1.66x", "256 B".
[[nodiscard]] std::string text_of(double value, unit in);
// "at most 2.50x", "1000 ns to 2000 ns".
[[nodiscard]] std::string text_of(const range& r, unit in);

}  // namespace pmlab::claims
