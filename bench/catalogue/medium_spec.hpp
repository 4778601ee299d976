// A medium as a user names it on the command line.
#pragma once

#include <pmlab/media/persistence_domain.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::bench {

//   dram                      DRAM in huge pages, as programs embed it
//   pmem:PATH                 a pool on fsdax, devdax or tmpfs
//   emulated:PROFILE          a device profile on top of DRAM
//   emulated:PROFILE@PATH     a device profile on top of a pool
//   counted:SPEC              any of the above, with every line, flush and fence counted
//   simulated:PROFILE         the simulated machine: virtual time on as many cores as there are threads
struct medium_spec {
  bool counted = false;
  std::string profile;  // empty: neither emulated nor simulated
  std::string path;     // path of the pool; empty: DRAM
  bool simulated = false;
  // The platform's domain, in place of the profile's, or of what is found of a pool; no part of the text.
  std::optional<media::persistence_domain> persistence = std::nullopt;

  [[nodiscard]] bool emulated() const noexcept { return !profile.empty() && !simulated; }
  [[nodiscard]] bool in_pool() const noexcept { return !path.empty(); }
  // Plain DRAM, which nothing outlives.
  [[nodiscard]] bool plain_dram() const noexcept { return !counted && profile.empty() && path.empty(); }
  // The text as the user would write it.
  [[nodiscard]] std::string text() const;
  friend bool operator==(const medium_spec&, const medium_spec&) = default;
};

// Throws pmlab::error: unknown medium or profile (with the nearest known name), a path that is missing or not allowed.
[[nodiscard]] medium_spec parse_medium(std::string_view text);

// The forms above and their use, for `pmlab list`.
struct medium_form {
  std::string_view form;
  std::string_view what;
};
[[nodiscard]] const std::vector<medium_form>& medium_forms();

}  // namespace pmlab::bench
