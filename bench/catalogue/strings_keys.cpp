// The mapping from the numbers of keys to strings.
#include "bench/catalogue/strings_keys.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/hash.hpp>
#include <pmlab/base/quantity.hpp>
#include <pmlab/strings/string_index.hpp>
#include "bench/input/reading_notes.hpp"
#include "bench/input/text_encoding.hpp"
#include "bench/input/text_lines.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/read_again.hpp"
#include "bench/workload/trace_binary.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <utility>

namespace pmlab::bench {
namespace {

constexpr std::size_t number_bytes = sizeof(std::uint64_t);
constexpr std::string_view decimal_prefix = "user";
constexpr std::size_t decimal_digits = 20;

// Most significant byte first; pmlab is for x86-64, whose words begin with the least significant one.
void write_big_endian(char* to, std::uint64_t number) {
  const std::uint64_t turned = __builtin_bswap64(number);
  std::memcpy(to, &turned, sizeof turned);
}
std::uint64_t read_big_endian(const char* from) {
  std::uint64_t turned = 0;
  std::memcpy(&turned, from, sizeof turned);
  return __builtin_bswap64(turned);
}

std::string limit_in_words() { return "keys have at most " + std::to_string(strings::most_key_bytes) + " bytes"; }

constexpr const char* lines_are_keys = "name a text file with a key on each line";

void check_line(std::string_view line, const input::text_lines& lines) {
  if (line.size() + 1 + number_bytes > strings::most_key_bytes)
    throw error(lines.place() + ": the line has " + (lines.is_whole() ? "" : "more than ") +
                    std::to_string(line.size()) + " bytes",
                limit_in_words());
  // Names of files may have line ends.
  if (lines.separator() != '\0' && input::is_binary(line))
    throw error(lines.place() + ": the line has control characters, so this is no text", lines_are_keys);
}

// Numbers of 8 bytes look like texts with zero bytes between them.
void refuse_numbers(const input::input_bytes& bytes) {
  const auto found = workload::detail::binary_format_of(bytes);
  if (found == workload::trace_format::sosd_uint32 || found == workload::trace_format::sosd_uint64)
    throw error("'" + bytes.path() + "' has keys of SOSD, which are numbers and no text", "give it to --trace");
}

// The different lines of a file, sorted. What is no key of its own is noted.
std::vector<std::string> lines_of(const std::string& path) {
  refuse_pipe(path, "the file of keys", "each index reads it");
  input::input_bytes bytes(path, "the keys in");
  refuse_numbers(bytes);
  input::text_lines text(std::move(bytes));
  std::vector<std::string> lines;
  std::uint64_t empty = 0;
  const std::uint64_t most_bytes = available_memory() / 4;  // the list is copied when it grows, and indexes follow
  std::uint64_t bytes_taken = 0;
  for (std::string_view line; text.next(line);) {
    check_line(line, text);
    if (line.empty()) {
      ++empty;
      continue;
    }
    lines.emplace_back(line);
    bytes_taken += sizeof(std::string) + line.size();
    if (bytes_taken > most_bytes)
      throw error(text.place() + ": the keys have more bytes than memory is free for", "give a part of the file");
  }
  const std::size_t all = lines.size();
  std::sort(lines.begin(), lines.end());
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  if (lines.empty()) throw error("'" + path + "' has no lines", lines_are_keys);
  if (const std::uint64_t repeated = all - lines.size(); empty + repeated > 0)
    input::reading_notes().push_back("of the " + std::to_string(text.number()) + " lines of " + path + ", " +
                                     std::to_string(empty) + " are empty and " + std::to_string(repeated) +
                                     " are there before: " + std::to_string(lines.size()) + " keys");
  return lines;
}

}  // namespace

string_keys::string_keys(const spec& given) {
  const std::string_view kind = given.option("keys").value_or("binary");
  if (const auto bytes = given.option("bytes")) {
    if (kind != "binary") throw error("bytes= is for keys=binary only", "leave it out");
    bytes_ = static_cast<std::size_t>(parse_count(*bytes, "bytes", least_bytes));
    if (bytes_ > strings::most_key_bytes)
      throw error("keys of " + std::to_string(bytes_) + " bytes are too long", limit_in_words());
  }
  if (kind == "binary") return;
  if (kind == "decimal") {
    form_ = form::decimal;
    bytes_ = decimal_prefix.size() + decimal_digits;
    return;
  }
  if (kind.find('/') == std::string_view::npos && kind.find('.') == std::string_view::npos)
    throw error("there are no keys '" + std::string(kind) + "'",
                "write keys=binary, keys=decimal, or the path of a text file");
  form_ = form::lines;
  lines_ = std::make_shared<const std::vector<std::string>>(lines_of(std::string(kind)));
  const std::size_t sum = std::accumulate(lines_->begin(), lines_->end(), std::size_t{0},
                                          [](std::size_t s, const std::string& line) { return s + line.size(); });
  bytes_ = sum / lines_->size() + 1 + number_bytes;
}

std::string_view string_keys::key_of(std::uint64_t number, strings::key_room& room) const {
  switch (form_) {
    case form::decimal: break;
    case form::binary: {
      char* const key = room.of(bytes_);
      write_big_endian(key, number);
      std::uint64_t filling = number;
      for (std::size_t at = number_bytes; at < bytes_; at += sizeof filling) {
        filling = strings::detail::folded_product(filling ^ golden_ratio, 0xd6e8feb86659fd93);
        std::memcpy(key + at, &filling, std::min(sizeof filling, bytes_ - at));
      }
      return {key, bytes_};
    }
    case form::lines: {
      __extension__ using wide = unsigned __int128;
      const std::string& line = (*lines_)[static_cast<std::size_t>(static_cast<wide>(number) * lines_->size() >> 64)];
      char* const key = room.of(line.size() + 1 + number_bytes);
      std::memcpy(key, line.c_str(), line.size() + 1);
      write_big_endian(key + line.size() + 1, number);
      return {key, line.size() + 1 + number_bytes};
    }
  }
  char* const key = room.of(decimal_prefix.size() + decimal_digits);
  std::memcpy(key, decimal_prefix.data(), decimal_prefix.size());
  for (std::size_t i = decimal_digits; i > 0; --i, number /= 10)
    key[decimal_prefix.size() + i - 1] = static_cast<char>('0' + number % 10);
  return {key, decimal_prefix.size() + decimal_digits};
}

std::uint64_t string_keys::number_of(std::string_view key) const {
  switch (form_) {
    case form::binary: return read_big_endian(key.data());
    case form::lines: return read_big_endian(key.data() + key.size() - number_bytes);
    case form::decimal: break;
  }
  std::uint64_t number = 0;
  std::from_chars(key.data() + decimal_prefix.size(), key.data() + key.size(), number);
  return number;
}

}  // namespace pmlab::bench
