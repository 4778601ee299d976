// The places of a flush_profile as lines of the source.
#pragma once

#include "checker/verify/flush_profile.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace pmlab::verify {

struct wasteful_line {
  waste kind{};
  std::uint64_t times = 0;
  std::uint64_t of = 0;  // flushes, or fences, of the line
  std::string place;     // "file:line (function)", and the outermost function that it is inlined into
  // The comment at the line that begins with "Redundant when"; "": it has none, or the source is not here.
  std::string reason;
};

struct flush_report {
  std::uint64_t operations = 0;
  std::uint64_t flushes = 0;
  std::uint64_t fences = 0;
  std::vector<wasteful_line> lines;  // those without effect before the others, the most frequent first
};

[[nodiscard]] flush_report report_of(const flush_profile& profile);

// Without any effect on what a crash leaves. The other kind is the price of an order between two stores of a line.
[[nodiscard]] constexpr bool has_no_effect(waste kind) noexcept { return kind != waste::again; }

// "flush of a line without new stores", say.
[[nodiscard]] const char* in_words(waste kind) noexcept;

}  // namespace pmlab::verify
