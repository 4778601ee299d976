// The mapping from the numbers by which a benchmark addresses keys to strings: strings(INDEX,keys=...).
#pragma once

#include <pmlab/base/spec.hpp>
#include <pmlab/strings/numbered.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace pmlab::bench {

// Strings in the order of their numbers, and a different one for each.
//
//   binary    the number, most significant byte first, and bytes that look arbitrary: `bytes` in all
//   decimal   "user" and twenty digits, as YCSB has them
//   a file    one of its lines, in order, then a zero byte and the number: as long and as alike as the lines are
//
// Thread safety: any. Copies share the lines.
class string_keys {
 public:
  static constexpr std::size_t usual_bytes = 32;
  static constexpr std::size_t least_bytes = 8;

  // From the options keys= and bytes=. Throws pmlab::error: not understood, no such file, no line in it.
  explicit string_keys(const spec& given);

  [[nodiscard]] std::string_view key_of(std::uint64_t number, strings::key_room& room) const;
  [[nodiscard]] std::uint64_t number_of(std::string_view key) const;
  // The mean bytes of a key.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  enum class form : std::uint8_t { binary, decimal, lines };
  form form_ = form::binary;
  std::size_t bytes_ = usual_bytes;
  std::shared_ptr<const std::vector<std::string>> lines_;
};

}  // namespace pmlab::bench
