#include "bench/workload/trace_csv.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

namespace pmlab::workload::detail {
namespace {

// What may be between two fields.
constexpr std::string_view separators = ",\t;";

// An operation of a cache, and what it is to an index.
struct cache_operation {
  std::string_view name;
  operation_kind kind;
  bool by_presence = false;
};
constexpr std::array cache_operations = {cache_operation{"get", operation_kind::read},
                                         cache_operation{"gets", operation_kind::read},
                                         cache_operation{"get_lease", operation_kind::read},
                                         cache_operation{"set", operation_kind::insert, true},
                                         cache_operation{"set_lease", operation_kind::insert, true},
                                         cache_operation{"add", operation_kind::insert},
                                         cache_operation{"replace", operation_kind::update},
                                         cache_operation{"cas", operation_kind::update},
                                         cache_operation{"append", operation_kind::update},
                                         cache_operation{"prepend", operation_kind::update},
                                         cache_operation{"incr", operation_kind::update},
                                         cache_operation{"decr", operation_kind::update},
                                         cache_operation{"delete", operation_kind::erase}};

bool is_same_word(std::string_view a, std::string_view b) noexcept {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

const cache_operation* operation_of(std::string_view name) noexcept {
  const auto* const found = std::find_if(cache_operations.begin(), cache_operations.end(),
                                         [name](const cache_operation& o) { return is_same_word(o.name, name); });
  return found == cache_operations.end() ? nullptr : found;
}

const cache_operation& known_operation(std::string_view name) {
  if (const cache_operation* const found = operation_of(name)) return *found;
  std::string all;
  for (const cache_operation& o : cache_operations) all += (all.empty() ? "" : ", ") + std::string(o.name);
  throw malformed_line("an operation in place of '" + std::string(name) + "': " + all);
}

// A field without the blanks and the quotation marks around it.
std::string_view bare(std::string_view field) noexcept {
  field = trimmed(field);
  if (field.size() >= 2 && field.starts_with('"') && field.ends_with('"')) field = field.substr(1, field.size() - 2);
  return field;
}

// The key as a number: FNV-1a, and its bits mixed.
std::uint64_t number_of(std::string_view key) {
  if (key.empty()) throw malformed_line("a key that is not empty");
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : key) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return mix_bits(hash);
}

// The fields of a line; separators within quotation marks separate nothing.
std::vector<std::string_view> fields_of(std::string_view line, char separator) {
  std::vector<std::string_view> fields;
  bool quoted = false;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= line.size(); ++i) {
    if (i < line.size() && line[i] == '"') quoted = !quoted;
    if (i < line.size() && (quoted || line[i] != separator)) continue;
    fields.push_back(bare(line.substr(begin, i - begin)));
    begin = i + 1;
  }
  return fields;
}

// TIME,KEY,KEY SIZE,VALUE SIZE,CLIENT,OPERATION,TTL. The key may have commas, unquoted.
struct twitter_row {
  std::string_view time, key, key_bytes, value_bytes, client, operation, ttl;
};

std::optional<twitter_row> twitter_row_of(std::string_view line, char separator) noexcept {
  twitter_row row;
  for (std::string_view* const field : {&row.ttl, &row.operation, &row.client, &row.value_bytes, &row.key_bytes}) {
    const std::size_t at = line.rfind(separator);
    if (at == std::string_view::npos) return std::nullopt;
    *field = bare(line.substr(at + 1));
    line = line.substr(0, at);
  }
  const std::size_t at = line.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  row.time = bare(line.substr(0, at));
  row.key = bare(line.substr(at + 1));
  return row;
}

class twitter_parser final : public line_parser {
 public:
  void begin_file() override { is_first_ = true; }

  std::optional<traced> parse(std::string_view line, bool) override {
    if (is_blank_or_comment(line)) return std::nullopt;
    if (separator_ == '\0') separator_ = separator_of(line);
    const std::optional<twitter_row> row = twitter_row_of(line, separator_);
    const bool may_be_header = std::exchange(is_first_, false);
    if (!row)
      throw malformed_line(
          "time, key, size of the key, size of the value, client, operation and TTL, with commas between");
    if (may_be_header && operation_of(row->operation) == nullptr && !whole_number(row->time)) return std::nullopt;
    for (const std::string_view number : {row->time, row->key_bytes, row->value_bytes, row->client})
      if (!whole_number(number)) throw malformed_line("a number in place of '" + std::string(number) + "'");
    std::string_view ttl = row->ttl;
    if (ttl.starts_with('-')) ttl.remove_prefix(1);
    if (!ttl.empty() && !whole_number(ttl))
      throw malformed_line("a number in place of '" + std::string(row->ttl) + "'");
    const cache_operation& o = known_operation(row->operation);
    return traced{{.key = number_of(row->key), .kind = o.kind}, 1, o.by_presence};
  }

 private:
  static char separator_of(std::string_view line) noexcept {
    for (const char c : separators)
      if (twitter_row_of(line, c)) return c;
    return separators.front();
  }

  char separator_ = '\0';  // separator of the first row
  bool is_first_ = true;
};

// Where the columns are that are read.
struct kvcache_columns {
  std::size_t key = 0, operation = 1, count = 3, all = 5;
  bool has_count = true;
};

// As the header names them, in any order.
std::optional<kvcache_columns> kvcache_header(const std::vector<std::string_view>& fields) {
  const auto place = [&](std::string_view name) {
    return static_cast<std::size_t>(
        std::find_if(fields.begin(), fields.end(), [name](std::string_view f) { return is_same_word(f, name); }) -
        fields.begin());
  };
  const kvcache_columns found{place("key"), place("op"), place("op_count"), fields.size(),
                              place("op_count") < fields.size()};
  if (found.key == fields.size() || found.operation == fields.size()) return std::nullopt;
  return found;
}

bool is_kvcache_row(const std::vector<std::string_view>& fields) {
  constexpr kvcache_columns usual;
  return fields.size() == usual.all && operation_of(fields[usual.operation]) != nullptr &&
         whole_number(fields[usual.count]);
}

class kvcache_parser final : public line_parser {
 public:
  void begin_file() override { columns_.reset(); }

  std::optional<traced> parse(std::string_view line, bool) override {
    if (is_blank_or_comment(line)) return std::nullopt;
    if (!columns_) {
      separator_ = separator_of(line);
      const std::optional<kvcache_columns> named = kvcache_header(fields_of(line, separator_));
      columns_ = named.value_or(kvcache_columns{});
      if (named) return std::nullopt;
    }
    const std::vector<std::string_view> fields = fields_of(line, separator_);
    if (fields.size() != columns_->all)
      throw malformed_line(std::to_string(columns_->all) + " fields, and there are " + std::to_string(fields.size()));
    const cache_operation& o = known_operation(fields[columns_->operation]);
    traced read{{.key = number_of(fields[columns_->key]), .kind = o.kind}, 1, o.by_presence};
    if (!columns_->has_count) return read;
    const std::optional<std::uint64_t> times = whole_number(fields[columns_->count]);
    if (!times) throw malformed_line("a count in place of '" + std::string(fields[columns_->count]) + "'");
    if (*times == 0) return std::nullopt;
    read.times = *times;
    return read;
  }

 private:
  static char separator_of(std::string_view line) {
    for (const char c : separators) {
      const std::vector<std::string_view> fields = fields_of(line, c);
      if (kvcache_header(fields) || is_kvcache_row(fields)) return c;
    }
    return separators.front();
  }

  std::optional<kvcache_columns> columns_;  // nothing: a file begins
  char separator_ = ',';
};

}  // namespace

std::optional<trace_format> csv_format_of_line(std::string_view line) {
  for (const char separator : separators) {
    if (const std::optional<twitter_row> row = twitter_row_of(line, separator);
        row && operation_of(row->operation) != nullptr && whole_number(row->time))
      return trace_format::twitter;
    if (line.find(separator) == std::string_view::npos) continue;
    const std::vector<std::string_view> fields = fields_of(line, separator);
    if (kvcache_header(fields) || is_kvcache_row(fields)) return trace_format::kvcache;
  }
  return std::nullopt;
}

std::unique_ptr<line_parser> csv_parser_of(trace_format format) {
  if (format == trace_format::twitter) return std::make_unique<twitter_parser>();
  return std::make_unique<kvcache_parser>();
}

}  // namespace pmlab::workload::detail
