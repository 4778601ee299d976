#include "bench/workload/trace.hpp"
#include <pmlab/base/error.hpp>
#include "bench/workload/keys.hpp"
#include "bench/workload/text_lines.hpp"
#include "bench/workload/trace_line.hpp"

#include <algorithm>
#include <utility>

namespace pmlab::workload {

namespace {

// The start of a line as an error message can show it.
[[nodiscard]] std::string shown(std::string_view line) {
  constexpr std::size_t most = 80;
  std::string text(line.substr(0, most));
  for (char& character : text)
    if (character < ' ' || character > '~') character = '?';
  return "'" + text + (line.size() > most ? "...'" : "'");
}

// Sorts the operations of one or more files into load and run, see trace.hpp.
class trace_builder {
 public:
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

    text_lines lines(path);
    for (std::string_view line; lines.next(line);) {
      try {
        if (const std::optional<operation> made = detail::parse_trace_line(line, lines.ended()))
          add(*made);
        else
          note_property(line);
      } catch (const detail::malformed_line& expected) {
        throw error(path + ":" + std::to_string(lines.number()) + ": malformed line " + shown(line) + ": expected " +
                        expected.what(),
                    "repair or remove the line, or make the trace again");
      }
    }
    if (lines.number() == 0) throw error("trace '" + path + "' is empty", "make the trace again");
    if (result_.load.size() + result_.run.size() == read_before)
      throw error("trace '" + path + "' holds no operation",
                  "print it with site.ycsb.Client -db site.ycsb.BasicDB -p basicdb.verbose=true, or with go-ycsb, "
                  "binding basic, -p verbose=true");
    if (!first_file && !declared_ && inserts_only_ && run_before == 0) {
      result_.load.insert(result_.load.end(), result_.run.begin(), result_.run.end());
      result_.run.clear();
    }
  }

  [[nodiscard]] trace finish() && {
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
  void add(const operation& made) {
    if (made.kind != operation_kind::insert) loading_ = inserts_only_ = false;
    (loading_ ? result_.load : result_.run).push_back(made);
  }

  void note_property(std::string_view line) noexcept {
    constexpr std::string_view name = "\"dotransactions\"=";
    if (!line.starts_with(name)) return;
    declared_ = true;
    loading_ = line.substr(name.size()) == "\"false\"";
  }

  trace result_;
  bool loading_ = true;
  bool declared_ = false;     // this file declares its kind
  bool inserts_only_ = true;  // so far in this file
};

}  // namespace

trace read_trace(std::span<const std::string> paths) {
  trace_builder builder;
  for (const std::string& path : paths) builder.read(path);
  return std::move(builder).finish();
}

trace read_trace(const std::string& path) { return read_trace(std::span(&path, 1)); }

}  // namespace pmlab::workload
