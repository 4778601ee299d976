// A value of a suite's file, read as the type of its field.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <toml++/toml.h>

namespace pmlab::microbench {

// Every function throws pmlab::error that names file, line and key, and the valid values of the field.
class suite_value {
 public:
  // `file` outlives the value.
  suite_value(const toml::node& node, std::string_view key, std::string_view file)
      : node_(node), key_(key), file_(file) {}

  [[nodiscard]] std::string text() const;
  [[nodiscard]] bool flag() const;
  [[nodiscard]] double number() const;  // 0 or more
  [[nodiscard]] std::uint64_t count(std::uint64_t least, std::uint64_t most) const;
  [[nodiscard]] int node() const;             // NUMA: 0 to 1023
  [[nodiscard]] std::uint64_t bytes() const;  // 4096, "4K"
  [[nodiscard]] double figure() const;        // may be nan

  // For the name of a case: as in the file.
  [[nodiscard]] std::string as_written() const;

  [[noreturn]] void refuse(const std::string& why, const std::string& remedy) const;
  // "suite.toml:12".
  [[nodiscard]] std::string place() const;

 private:
  const toml::node& node_;
  std::string key_;
  std::string_view file_;
};

}  // namespace pmlab::microbench
