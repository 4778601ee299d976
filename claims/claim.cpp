// Judging a claim.
#include "claims/claim.hpp"
#include "tools/support/quantity.hpp"

#include <cmath>
#include <set>

#include <fmt/format.h>

namespace pmlab::claims {
namespace {

std::optional<double> published_of(const condition& c, const evidence& e) {
  try {
    return c.measured.of(e, [&e](const std::string& name, std::string_view path) { return e.published(name, path); });
  } catch (const missing&) {
    return std::nullopt;
  } catch (const not_applicable&) {
    return std::nullopt;
  }
}

}  // namespace

judgement judge(const claim& c, const evidence& e) {
  judgement j;
  j.of = &c;
  std::set<std::string> lacking;
  std::string inapplicable;
  bool failed = false;
  for (const condition& one : c.conditions) {
    try {
      const double value =
          one.measured.of(e, [&e](const std::string& name, std::string_view path) { return e.figure(name, path); });
      const bool good = holds(one, value);
      failed = failed || !good;
      j.findings.push_back({&one, value, published_of(one, e), good});
    } catch (const missing& m) {
      lacking.insert(m.what());
    } catch (const not_applicable& n) {
      if (inapplicable.empty()) inapplicable = n.what();
    } catch (const uncounted& u) {
      if (!one.where_counted) lacking.insert(u.what());
    }
  }
  if (!lacking.empty()) {
    j.found = verdict::not_measured;
    j.reason = fmt::format("no {}{}", *lacking.begin(),
                           lacking.size() > 1 ? fmt::format(" and {} more", lacking.size() - 1) : "");
  } else if (failed) {
    j.found = verdict::not_reproduced;
  } else if (!inapplicable.empty() || j.findings.empty()) {
    j.found = verdict::not_applicable;
    j.reason = inapplicable;
  } else {
    j.found = verdict::reproduced;
  }
  return j;
}

std::vector<std::string> cases_of(const claim& c) {
  std::set<std::string> names;
  for (const condition& one : c.conditions) names.insert(one.measured.cases.begin(), one.measured.cases.end());
  return {names.begin(), names.end()};
}

std::string_view to_string(verdict v) noexcept {
  switch (v) {
    case verdict::reproduced: return "reproduced";
    case verdict::not_reproduced: return "not reproduced";
    case verdict::not_applicable: return "not applicable";
    case verdict::not_measured: break;
  }
  return "not measured";
}

std::string_view to_string(unit u) noexcept {
  switch (u) {
    case unit::ns: return "ns";
    case unit::gb_per_s: return "GB/s";
    case unit::percent: return "%";
    case unit::bytes: return "B";
    case unit::times: break;
  }
  return "x";
}

std::string text_of(double value, unit in) {
  switch (in) {
    case unit::ns:
      return value < 1e3   ? fmt::format("{:.0f} ns", value)
             : value < 1e6 ? fmt::format("{:.2f} us", value / 1e3)
                           : fmt::format("{:.2f} ms", value / 1e6);
    case unit::gb_per_s: return fmt::format("{:.2f} GB/s", value);
    case unit::percent: return fmt::format("{:.1f} %", value);
    case unit::bytes: return bench::readable_bytes(static_cast<std::uint64_t>(value));
    case unit::times: break;
  }
  return fmt::format("{:.2f}x", value);
}

std::string text_of(const range& r, unit in) {
  if (std::isinf(r.low)) return "at most " + text_of(r.high, in);
  if (std::isinf(r.high)) return "at least " + text_of(r.low, in);
  return r.low == r.high ? text_of(r.low, in) : text_of(r.low, in) + " to " + text_of(r.high, in);
}

}  // namespace pmlab::claims
