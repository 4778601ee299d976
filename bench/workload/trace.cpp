#include "bench/workload/trace.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/random.hpp>
#include "bench/input/text_lines.hpp"
#include "bench/workload/keys.hpp"
#include "bench/workload/present_keys.hpp"
#include "bench/workload/trace_binary.hpp"
#include "bench/workload/trace_line.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

namespace pmlab::workload {

namespace {

// The start of a line as a message can show it.
[[nodiscard]] std::string shown(std::string_view line, std::size_t most = 80) {
  std::string text(line.substr(0, most));
  for (char& character : text)
    if (character < ' ' || character > '~') character = '?';
  return "'" + text + (line.size() > most ? "...'" : "'");
}

// "1,000".
[[nodiscard]] std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

// What a replay leaves out of the records of a format, or changes; empty: nothing.
[[nodiscard]] std::string_view difference_of(trace_format format) noexcept {
  switch (format) {
    case trace_format::twitter:
      return "operations of Twitter's cache trace: each key is a number of 64 bits that is made from it, a set is an "
             "insert "
             "or an update, and sizes, times and TTL are not replayed";
    case trace_format::kvcache:
      return "operations of CacheLib's kvcache trace: each key is a number of 64 bits that is made from it, a SET is "
             "an "
             "insert or an update, and sizes and times are not replayed";
    case trace_format::oracle_general:
      return "requests of libCacheSim's oracleGeneral trace: the first one of an object is its insert, the others read "
             "it, "
             "and sizes and times are not replayed";
    default: return {};
  }
}

[[nodiscard]] bool is_binary_format(trace_format format) noexcept {
  return format == trace_format::oracle_general || format == trace_format::sosd_uint32 ||
         format == trace_format::sosd_uint64;
}

// A trace of a cache: it has no load of its own.
[[nodiscard]] bool is_of_cache(trace_format format) noexcept { return !difference_of(format).empty(); }

// Whether a line end of another kind is in the line, and behind it the beginning of another operation.
[[nodiscard]] bool hides_operation(std::string_view line) {
  for (std::size_t at = line.find('\r'); at != std::string_view::npos; at = line.find('\r', at + 1))
    if (detail::format_of_line(line.substr(at + 1))) return true;
  return false;
}

// Sorts the operations of one or more files into load and run, see trace.hpp.
class trace_builder {
 public:
  explicit trace_builder(const trace_options& options) : options_(options) {}

  void read(const std::string& path) {
    const std::size_t run_before = result_.run.size();
    const std::size_t read_before = run_before + result_.load.size();
    const bool first_file = result_.source.empty();
    result_.source += (first_file ? "" : ", ") + path;
    // A first file begins with the load. A further one without a declaration may be a run that begins with inserts:
    // only its end shows whether it is more of the load.
    loading_ = first_file;
    declared_ = false;
    inserts_only_ = true;
    others_ = {};

    input::input_bytes bytes(path, "trace");
    if (bytes.start().empty()) throw error("trace '" + path + "' is empty", "make the trace again");
    const std::optional<trace_format> binary = binary_format_of(bytes);
    const trace_format format = binary ? read_binary(*binary, bytes) : read_text(std::move(bytes));
    if (result_.load.size() + result_.run.size() == read_before) refuse_without_operation(path);
    result_.format = format;
    if (const std::string_view difference = difference_of(format); !difference.empty())
      result_.notes.push_back("trace " + path + " has " + std::string(difference));
    if (!first_file && !declared_ && inserts_only_ && run_before == 0 && !is_of_cache(format)) {
      result_.load.insert(result_.load.end(), result_.run.begin(), result_.run.end());
      result_.run.clear();
    }
  }

  [[nodiscard]] trace finish() && {
    by_presence_.resize(result_.run.size());
    present_keys present;
    count_repeated(present);
    if (has_keys_of_sosd_ && result_.run.empty()) draw_reads();
    follow_run(present);
    for (operation& made : result_.load) made.value = value_of(made.key, 0);
    std::uint64_t sequence = 0;
    for (operation& made : result_.run) {
      ++sequence;
      if (made.kind == operation_kind::insert || made.kind == operation_kind::update)
        made.value = value_of(made.key, sequence);
    }
    return std::move(result_);
  }

 private:
  std::optional<trace_format> binary_format_of(const input::input_bytes& bytes) const {
    if (is_binary_format(options_.format)) return options_.format;
    if (options_.format == trace_format::automatic) return detail::binary_format_of(bytes);
    return std::nullopt;
  }

  trace_format read_binary(trace_format format, input::input_bytes& bytes) {
    if (format == trace_format::oracle_general) {
      loading_ = false;
      detail::read_binary(format, bytes, [&](std::uint64_t object) {
        if (!add({{.key = object, .kind = operation_kind::read}, 1, true})) refuse_so_many(bytes.path());
      });
      return format;
    }
    loading_ = true;
    has_keys_of_sosd_ = true;
    detail::read_binary(format, bytes, [&](std::uint64_t key) {
      if (!add({{.key = key, .kind = operation_kind::insert}})) refuse_so_many(bytes.path());
    });
    return format;
  }

  // Returns the format that was found; `automatic`: no line has one.
  trace_format read_text(input::input_bytes bytes) {
    input::text_lines lines(std::move(bytes));
    trace_format format = options_.format;
    detail::line_parser* parser = format == trace_format::automatic ? nullptr : &parser_of(format);
    bool last_is_operation = false;
    for (std::string_view line; lines.next(line);) {
      if (std::exchange(last_is_operation, false)) others_.in_a_row = 0;
      if (parser == nullptr) {
        if (const auto found = detail::format_of_line(line)) parser = &parser_of(format = *found);
      }
      if (is_of_cache(format)) loading_ = false;
      if (parser == nullptr || !add_line(*parser, line, lines))
        note_other(line, lines);
      else
        last_is_operation = true;
    }
    if (others_.count > 0)
      result_.notes.push_back(with_commas(others_.count) + " of " + with_commas(lines.number()) + " lines of trace " +
                              lines.bytes().path() +
                              (others_.count == 1 ? " was no operation" : " were no operations") +
                              "; the first is line " + with_commas(others_.first) + ": " + others_.text);
    if (last_is_operation && !lines.ended() && format == trace_format::index_microbench)
      result_.notes.push_back("the last line of trace " + lines.bytes().path() +
                              " has no end: if the file was cut off, its number is, too");
    return format;
  }

  // False: the line is no operation.
  bool add_line(detail::line_parser& parser, std::string_view line, const input::text_lines& lines) {
    try {
      const std::optional<detail::traced> read = parser.parse(line, lines.ended());
      // YCSB's values may have any length; what is read is before them.
      if (read && !lines.is_whole() && &parser != parsers_[static_cast<std::size_t>(trace_format::ycsb)].get())
        throw detail::malformed_line("a line of at most 256 KiB");
      if (read && hides_operation(line)) throw detail::malformed_line("one kind of line ends in the whole file");
      if (read && !add(*read)) refuse_so_many(lines.place());
      return read.has_value();
    } catch (const detail::malformed_line& expected) {
      throw error(lines.place() + ": malformed line " + shown(line) + ": expected " + expected.what(),
                  "repair or remove the line, or make the trace again");
    }
  }

  // The parser of a format, for all files of the trace.
  detail::line_parser& parser_of(trace_format format) {
    auto& parser = parsers_[static_cast<std::size_t>(format)];
    if (!parser) parser = detail::parser_of(format);
    parser->begin_file();
    return *parser;
  }

  // False: there would be more operations than the options allow.
  [[nodiscard]] bool add(const detail::traced& read) {
    const std::uint64_t before = result_.load.size() + result_.run.size();
    if (read.times > options_.most_operations - std::min(before, options_.most_operations)) return false;
    if (read.made.kind != operation_kind::insert || read.by_presence) loading_ = inserts_only_ = false;
    std::vector<operation>& to = loading_ ? result_.load : result_.run;
    to.insert(to.end(), static_cast<std::size_t>(read.times), read.made);
    if (!read.by_presence) return true;
    by_presence_.resize(result_.run.size() - static_cast<std::size_t>(read.times));
    by_presence_.resize(result_.run.size(), true);
    return true;
  }

  [[noreturn]] void refuse_so_many(const std::string& place) const {
    throw error(place + ": the trace has more than the " + with_commas(options_.most_operations) +
                    " operations for which memory is free",
                "give a part of the trace");
  }

  void note_other(std::string_view line, const input::text_lines& lines) {
    constexpr std::uint64_t most_in_a_row = 1 << 20;
    if (++others_.in_a_row > most_in_a_row)
      throw error(
          lines.place() + ": " + with_commas(others_.in_a_row) + " lines, one behind the other, are no operation",
          "check that it is the file that is meant; docs/traces.md shows the forms");
    if (others_.count++ == 0) {
      constexpr std::size_t short_enough = 40;
      others_.first = lines.number();
      others_.text = shown(line, short_enough);
    }
    constexpr std::string_view name = "\"dotransactions\"=";
    if (!line.starts_with(name)) return;
    declared_ = true;
    loading_ = line.substr(name.size()) == "\"false\"";
  }

  [[noreturn]] void refuse_without_operation(const std::string& path) const {
    const std::string what = "trace '" + path + "' holds no operation";
    if (declared_ || others_.text.starts_with("'YCSB") || others_.text.starts_with("'***"))
      throw error(what,
                  "print it with site.ycsb.Client -db site.ycsb.BasicDB -p basicdb.verbose=true, or with go-ycsb, "
                  "binding basic, -p verbose=true");
    throw error(what + (others_.count > 0 ? " of a form that is known; it begins with " + others_.text : std::string()),
                "docs/traces.md shows the forms; --trace-format names one");
  }

  // Keys of the load that it has before.
  void count_repeated(present_keys& present) {
    std::uint64_t repeated = 0;
    const auto is_repeated = [&](const operation& made) {
      if (present.add(made.key)) return false;
      ++repeated;
      return true;
    };
    const std::uint64_t all = result_.load.size();
    // An insert of YCSB's is an operation, a key of SOSD's that occurs again is none.
    if (has_keys_of_sosd_)
      std::erase_if(result_.load, is_repeated);
    else
      for (const operation& made : result_.load) is_repeated(made);
    if (repeated == 0) return;
    result_.notes.push_back(with_commas(repeated) + " of " + with_commas(all) +
                            " keys of the load occur in it before, and " +
                            (has_keys_of_sosd_ ? "left out" : "their inserts change nothing"));
  }

  // Reads of keys that are drawn from the load, as many as SOSD's own lookups at most.
  void draw_reads() {
    constexpr std::uint64_t most = 10'000'000;
    const std::uint64_t count = std::min<std::uint64_t>(result_.load.size(), most);
    random_source random(options_.seed);
    result_.run.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i)
      result_.run.push_back({.key = result_.load[random.below(result_.load.size())].key, .kind = operation_kind::read});
    by_presence_.resize(result_.run.size());
    result_.notes.push_back("the trace has keys only: its run reads " + with_commas(count) +
                            " of them, drawn by --seed");
  }

  // Decides what depends on the presence of a key, and counts the operations of keys that are not there.
  void follow_run(present_keys& present) {
    std::uint64_t in_vain = 0;
    for (std::size_t i = 0; i < result_.run.size(); ++i) {
      operation& made = result_.run[i];
      const bool is_there = made.kind != operation_kind::scan && present.contains(made.key);
      if (by_presence_[i] && made.kind == operation_kind::insert && is_there) made.kind = operation_kind::update;
      if (by_presence_[i] && made.kind == operation_kind::read && !is_there) made.kind = operation_kind::insert;
      if (made.kind == operation_kind::insert)
        present.add(made.key);
      else if (made.kind != operation_kind::scan && !is_there)
        ++in_vain;
      if (made.kind == operation_kind::erase) present.remove(made.key);
    }
    if (result_.load.empty())
      result_.notes.emplace_back(
          "no keys were loaded: the trace's run begins with an empty index; a load is given with a "
          "--trace of its own before it");
    if (in_vain > 0)
      result_.notes.push_back(with_commas(in_vain) + " of " + with_commas(result_.run.size()) +
                              " operations of the trace's run are of keys that are not there then: neither loaded nor "
                              "inserted before, or deleted");
    if (result_.run.empty()) result_.notes.emplace_back("the trace has a load only, and no run");
  }

  struct other_lines {
    std::uint64_t count = 0;
    std::uint64_t first = 0;     // its number
    std::string text;            // the start of that
    std::uint64_t in_a_row = 0;  // up to the last line
  };

  const trace_options& options_;
  trace result_;
  std::array<std::unique_ptr<detail::line_parser>, trace_format_names.size()> parsers_;
  std::vector<bool> by_presence_;  // by the operations of the run, up to the last one that is; detail::traced
  other_lines others_;             // others of this file
  bool loading_ = true;
  bool declared_ = false;     // this file declares its kind
  bool inserts_only_ = true;  // so far in this file
  bool has_keys_of_sosd_ = false;
};

}  // namespace

trace read_trace(std::span<const std::string> paths, const trace_options& options) {
  trace_builder builder(options);
  for (const std::string& path : paths) builder.read(path);
  return std::move(builder).finish();
}

trace read_trace(const std::string& path, const trace_options& options) {
  return read_trace(std::span(&path, 1), options);
}

}  // namespace pmlab::workload
