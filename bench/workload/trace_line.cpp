#include "bench/workload/trace_line.hpp"
#include "bench/workload/trace_csv.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace pmlab::workload::detail {
namespace {

constexpr std::string_view blanks = " \t";
constexpr std::uint64_t most_key = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t longest_scan = std::numeric_limits<std::uint32_t>::max();

struct keyword {
  std::string_view text;
  operation_kind kind;
};
constexpr std::array keywords = {keyword{"READ", operation_kind::read}, keyword{"UPDATE", operation_kind::update},
                                 keyword{"INSERT", operation_kind::insert}, keyword{"SCAN", operation_kind::scan},
                                 keyword{"DELETE", operation_kind::erase}};

// Removes the keyword at the front of `rest`. Nothing: the line has none, or something else than a blank behind it.
std::optional<operation_kind> take_keyword(std::string_view& rest, std::string_view ends) noexcept {
  for (const keyword& k : keywords) {
    if (!rest.starts_with(k.text)) continue;
    const std::string_view behind = rest.substr(k.text.size());
    if (behind.empty() || ends.find(behind.front()) == std::string_view::npos) return std::nullopt;
    rest = behind;
    return k.kind;
  }
  return std::nullopt;
}

// Removes the next word and the blanks before it.
std::string_view take_word(std::string_view& rest) noexcept {
  rest.remove_prefix(std::min(rest.find_first_not_of(blanks), rest.size()));
  const std::string_view word = rest.substr(0, rest.find_first_of(blanks));
  rest.remove_prefix(word.size());
  return word;
}

// go-ycsb's "READ   - Takes(s): 10.0, Count: ...".
bool is_measurement(std::string_view behind_keyword) noexcept {
  return trimmed(behind_keyword).starts_with("- Takes(s): ");
}

// Whether the keys of a trace are padded with zeros (YCSB's zeropadding), and to how many digits: then a number is
// written in one way, and numbers are as different as their keys.
class zero_padding {
 public:
  // Throws malformed_line for digits that are padded otherwise than those before.
  void check(std::string_view digits) {
    const bool is_padded = digits.size() > 1 && digits.front() == '0';
    const bool agrees =
        is_padded ? (width_ == 0 || digits.size() == width_) && digits.size() <= shortest_ : digits.size() >= width_;
    if (!agrees)
      throw malformed_line("a number that is padded with zeros like those before: 01 and 1 would be one key here");
    if (is_padded)
      width_ = digits.size();
    else
      shortest_ = std::min(shortest_, digits.size());
  }

 private:
  std::size_t width_ = 0;                                           // 0: no key so far begins with a zero
  std::size_t shortest_ = std::numeric_limits<std::size_t>::max();  // the fewest digits without one
};

// KEYWORD TABLE KEY and a space, except after DELETE; behind it anything.
class ycsb_parser final : public line_parser {
 public:
  std::optional<traced> parse(std::string_view line, bool ended) override {
    std::string_view rest = line;
    const std::optional<operation_kind> kind = take_keyword(rest, " ");
    if (!kind || is_measurement(rest)) return std::nullopt;
    rest.remove_prefix(1);
    if (rest.empty() || rest.front() == ' ') throw malformed_line("the name of a table after one space");
    const std::size_t table_end = rest.find(' ');
    if (table_end == std::string_view::npos) throw malformed_line("a space and a key after the name of the table");
    const std::string_view table = rest.substr(0, table_end);
    rest.remove_prefix(table_end + 1);
    const std::string_view key = rest.substr(0, rest.find(' '));
    rest.remove_prefix(key.size());

    traced read;
    read.made.kind = *kind;
    read.made.key = number_of(key);
    // After the key is known to be one: a line of something else names no table.
    if (table_.empty()) table_ = table;
    if (table != table_)
      throw malformed_line("table '" + table_ +
                           "', as in the operations before: keys of several tables are not replayed");
    if (rest.empty() && *kind == operation_kind::erase) {
      if (!ended) throw malformed_line("a line end after the key (is the file cut off?)");
      return read;
    }
    if (rest.empty()) throw malformed_line("a space after the key (is the line cut off?)");
    if (*kind != operation_kind::scan) return read;

    rest.remove_prefix(1);
    const std::optional<std::uint64_t> length = take_number(rest, longest_scan);
    if (!length || *length == 0 || !rest.starts_with(' '))
      throw malformed_line("the length of the scan (1 to 4294967295) and a space after the key");
    read.made.length = static_cast<std::uint32_t>(*length);
    return read;
  }

 private:
  // The digits at its end; what is before them is the same in all keys, so that each has a number of its own.
  std::uint64_t number_of(std::string_view key) {
    const std::size_t last = key.find_last_not_of("0123456789");
    const std::size_t length = last == std::string_view::npos ? 0 : last + 1;
    if (!prefix_ && length == key.size()) throw malformed_line("a key that ends in a number, such as user<number>");
    const std::string_view prefix = prefix_ ? std::string_view(*prefix_) : key.substr(0, length);
    const bool has_prefix = key.starts_with(prefix);
    const std::string_view digits = has_prefix ? key.substr(prefix.size()) : key;
    if (!has_prefix || digits.empty() || digits.find_first_not_of("0123456789") != std::string_view::npos)
      throw malformed_line("a key of the form " + std::string(prefix) +
                           "<number>, as in the operations before, with nothing but digits behind " +
                           (prefix.empty() ? "the space" : std::string(prefix)));
    const std::optional<std::uint64_t> number = whole_number(digits, most_key);
    if (!number)
      throw malformed_line("a key of the form " + std::string(prefix) +
                           "<number>, the number from 0 to 18446744073709551615");
    padding_.check(digits);
    if (!prefix_) prefix_ = prefix;
    return *number;
  }

  std::string table_;  // empty: no operation was read yet
  std::optional<std::string> prefix_;
  zero_padding padding_;
};

// KEYWORD KEY, and for scans the number of entries.
class index_microbench_parser final : public line_parser {
 public:
  std::optional<traced> parse(std::string_view line, bool) override {
    std::string_view rest = trimmed(line);
    const std::optional<operation_kind> kind = take_keyword(rest, blanks);
    if (!kind || is_measurement(rest)) return std::nullopt;
    traced read;
    read.made.kind = *kind;
    const std::optional<std::uint64_t> key = whole_number(take_word(rest));
    if (!key) throw malformed_line("a key from 0 to 18446744073709551615 after the keyword");
    read.made.key = *key;
    if (*kind == operation_kind::scan) {
      const std::optional<std::uint64_t> length = whole_number(take_word(rest), longest_scan);
      if (!length || *length == 0) throw malformed_line("the length of the scan (1 to 4294967295) after the key");
      read.made.length = static_cast<std::uint32_t>(*length);
    }
    if (!trimmed(rest).empty()) throw malformed_line("the line end after the last number");
    return read;
  }
};

bool looks_like_number(std::string_view word) noexcept {
  if (word.starts_with('-') || word.starts_with('+')) word.remove_prefix(1);
  return !word.empty() && word.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<trace_format> format_of_line(std::string_view line) {
  std::string_view rest = trimmed(line);
  if (take_keyword(rest, blanks) && !is_measurement(rest)) {
    const std::string_view first = take_word(rest);
    const std::string_view second = take_word(rest);
    if (looks_like_number(first) && (second.empty() || looks_like_number(second)))
      return trace_format::index_microbench;
    rest = line;
    if (take_keyword(rest, " ")) return trace_format::ycsb;
  }
  return csv_format_of_line(line);
}

std::unique_ptr<line_parser> parser_of(trace_format format) {
  switch (format) {
    case trace_format::index_microbench: return std::make_unique<index_microbench_parser>();
    case trace_format::twitter:
    case trace_format::kvcache: return csv_parser_of(format);
    default: return std::make_unique<ycsb_parser>();
  }
}

std::string_view trimmed(std::string_view text) noexcept {
  text.remove_prefix(std::min(text.find_first_not_of(blanks), text.size()));
  return text.substr(0, text.find_last_not_of(blanks) + 1);
}

bool is_blank_or_comment(std::string_view line) noexcept {
  const std::string_view text = trimmed(line);
  return text.empty() || text.front() == '#';
}

std::optional<std::uint64_t> take_number(std::string_view& text, std::uint64_t most) noexcept {
  std::uint64_t number = 0;
  std::size_t length = 0;
  for (; length < text.size(); ++length) {
    const auto digit = static_cast<unsigned>(text[length]) - static_cast<unsigned>('0');
    if (digit > 9) break;
    if (__builtin_mul_overflow(number, 10, &number) || __builtin_add_overflow(number, digit, &number))
      return std::nullopt;
  }
  if (length == 0 || number > most) return std::nullopt;
  text.remove_prefix(length);
  return number;
}

}  // namespace pmlab::workload::detail
