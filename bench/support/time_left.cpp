// How long a run will still take, judged by how long its steps took so far.
#include "bench/support/time_left.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

namespace pmlab::bench {
namespace {

// A step that has just begun gives no estimate yet.
constexpr double least_share = 0.02;
constexpr double least_seconds = 0.2;

bool is_telling(double elapsed, std::optional<double> share) {
  return share && *share >= least_share && elapsed >= least_seconds;
}

}  // namespace

time_left::step_kind* time_left::find(std::string_view part, std::string_view kind) noexcept {
  for (step_kind& k : kinds_)
    if (k.part == part && k.kind == kind) return &k;
  return nullptr;
}

const time_left::step_kind* time_left::find(std::string_view part, std::string_view kind) const noexcept {
  return const_cast<time_left*>(this)->find(part, kind);
}

void time_left::expect(std::string_view part, std::string_view kind, double weight, bool in_seconds) {
  step_kind* known = find(part, kind);
  if (known == nullptr) {
    kinds_.push_back({.part = std::string(part), .kind = std::string(kind), .in_seconds = in_seconds});
    known = &kinds_.back();
  }
  known->left += weight;
}

void time_left::skip(std::string_view part, std::string_view kind, double weight) noexcept {
  if (step_kind* const known = find(part, kind)) known->left = std::max(0.0, known->left - weight);
}

void time_left::begin(std::string_view part, std::string_view kind, double weight, double now) noexcept {
  skip(part, kind, weight);
  now_ = {part, kind, weight, now, true};
}

void time_left::end(double now) noexcept {
  now_.under_way = false;
  step_kind* const known = find(now_.part, now_.kind);
  if (known == nullptr || now_.weight <= 0) return;
  const double took = now - now_.start;
  known->rate = took / now_.weight;
  known->seen_seconds += took;
  known->seen_weight += now_.weight;
}

time_left::experience time_left::seen_in(std::string_view part, double elapsed,
                                         std::optional<double> share) const noexcept {
  experience sum;
  for (const step_kind& k : kinds_)
    if (!k.in_seconds && (part.empty() || k.part == part)) {
      sum.seconds += k.seen_seconds;
      sum.weight += k.seen_weight;
    }
  const bool counts = now_.under_way && is_telling(elapsed, share) && (part.empty() || part == now_.part);
  if (counts) {
    sum.seconds += elapsed;
    sum.weight += now_.weight * *share;
  }
  return sum;
}

// Below 0: nothing like it was seen.
double time_left::rate_of(const step_kind& k, double elapsed, std::optional<double> share) const noexcept {
  if (k.rate >= 0) return k.rate;
  if (k.in_seconds) return 1;
  for (const std::string_view part : {std::string_view(k.part), std::string_view()})
    if (const experience seen = seen_in(part, elapsed, share); seen.weight > 0) return seen.seconds / seen.weight;
  return -1;
}

std::optional<double> time_left::seconds(double now, std::optional<double> share) const noexcept {
  const double elapsed = now_.under_way ? now - now_.start : 0;
  double sum = 0;
  for (const step_kind& k : kinds_) {
    if (k.left <= 0) continue;
    const double rate = rate_of(k, elapsed, share);
    if (rate < 0) return std::nullopt;
    sum += k.left * rate;
  }
  if (!now_.under_way) return sum;
  if (is_telling(elapsed, share)) return sum + elapsed / *share * (1 - std::min(1.0, *share));
  const step_kind* const known = find(now_.part, now_.kind);
  const double rate = known == nullptr ? -1 : rate_of(*known, elapsed, share);
  if (rate < 0) return std::nullopt;
  return sum + std::max(0.0, rate * now_.weight - elapsed);
}

std::size_t write_time_left(char* to, std::size_t room, double seconds) noexcept {
  constexpr double minute = 60;
  constexpr double hour = 3600;
  const auto rounded = [](double value, double step) {
    return static_cast<std::uint64_t>((value + step / 2) / step) * static_cast<std::uint64_t>(step);
  };
  const auto write = [&](std::uint64_t number, const char* unit) {
    return std::min(room, fmt::format_to_n(to, room, "about {} {} left", number, unit).size);
  };
  if (seconds < 10) return write(std::max<std::uint64_t>(1, rounded(seconds, 1)), "s");
  if (seconds < 2 * minute) return write(rounded(seconds, 5), "s");
  if (seconds < 2 * hour) return write(rounded(seconds, minute) / 60, "min");
  return write(std::min<std::uint64_t>(rounded(std::min(seconds, 1e9), hour) / 3600, 100'000), "h");
}

}  // namespace pmlab::bench
