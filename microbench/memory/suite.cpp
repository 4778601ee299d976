// Suites: files that list the cases to measure.
#include "microbench/memory/suite.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/support/case_filter.hpp"
#include "bench/support/find_text.hpp"
#include "bench/support/toml_file.hpp"
#include "microbench/memory/case_fields.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

namespace pmlab::microbench {
namespace {

using bench::place_of;

const std::vector<std::string_view>& description_keys() {
  static const std::vector<std::string_view> keys = {"name", "about", "claims", "published", "published_unit"};
  return keys;
}

bool describes(std::string_view key) {
  return std::find(description_keys().begin(), description_keys().end(), key) != description_keys().end();
}

// A field with its list of values.
struct axis {
  const case_field* field;
  std::vector<suite_value> values;
  toml::source_position position;
};

class group_reader {
 public:
  group_reader(const toml::table& table, const toml::table* defaults, std::string_view file,
               const suite_options& options)
      : table_(table), defaults_(defaults), file_(file), options_(options) {}

  [[nodiscard]] std::vector<bench_case> cases() {
    bench_case common;
    describe(common);
    add_axes(table_);
    if (defaults_ != nullptr) add_axes(*defaults_);
    // In the order of the file: defaults and single values first, so that lists keep their order.
    std::stable_sort(axes_.begin(), axes_.end(), [](const axis& a, const axis& b) {
      return std::pair(a.values.size() > 1, std::pair(a.position.line, a.position.column)) <
             std::pair(b.values.size() > 1, std::pair(b.position.line, b.position.column));
    });
    std::vector<bench_case> all;
    add_cases(common, 0, all);
    publish(all);
    return all;
  }

 private:
  [[nodiscard]] std::string place() const { return place_of(file_, table_.source()); }

  void describe(bench_case& c) const {
    const auto text = [&](std::string_view key) {
      const toml::node* const node = table_.get(key);
      return node == nullptr ? std::string() : suite_value(*node, key, file_).text();
    };
    c.group = text("name");
    if (c.group.empty() || c.group.find_first_of("/ =") != std::string::npos)
      throw error(place() + ": a [[case]] whose name is missing, or has a slash, blank or equals sign",
                  "give it one, such as name = \"read-latency\"");
    c.about = text("about");
    c.published_unit = text("published_unit");
    if (const toml::node* const claims = table_.get("claims")) {
      const toml::array* const list = claims->as_array();
      if (list == nullptr) suite_value(*claims, "claims", file_).refuse("is not a list", "write claims = [\"M1\"]");
      for (const toml::node& one : *list) c.claims.push_back(suite_value(one, "claims", file_).text());
    }
  }

  void add_axes(const toml::table& from) {
    for (const auto& [key, node] : from) {
      const std::string_view name = key.str();
      if (&from == &table_ && describes(name)) continue;
      const case_field* const field = find_field(name);
      if (field == nullptr) {
        std::vector<std::string_view> known = field_names();
        if (&from == &table_) known.insert(known.end(), description_keys().begin(), description_keys().end());
        throw error(fmt::format("{}: key '{}' is not known", place_of(file_, key.source()), name),
                    fmt::format("did you mean '{}'? docs/microbench.md lists the fields", nearest(name, known)));
      }
      if (std::any_of(axes_.begin(), axes_.end(), [field](const axis& a) { return a.field == field; })) continue;
      axis a{field, {}, key.source().begin};
      if (const toml::array* const list = node.as_array()) {
        for (const toml::node& one : *list) a.values.emplace_back(one, name, file_);
        if (a.values.empty()) suite_value(node, name, file_).refuse("is an empty list", "give a value");
      } else {
        a.values.emplace_back(node, name, file_);
      }
      axes_.push_back(std::move(a));
    }
  }

  void add_cases(const bench_case& so_far, std::size_t at, std::vector<bench_case>& all) {
    if (at == axes_.size()) {
      finish(so_far, all);
      return;
    }
    const axis& a = axes_[at];
    for (const suite_value& value : a.values) {
      bench_case c = so_far;
      a.field->set(c, value);
      if (a.values.size() > 1 && !replaced(a)) c.name += fmt::format("/{}={}", a.field->key, value.as_written());
      add_cases(c, at + 1, all);
      if (replaced(a)) break;
    }
  }

  [[nodiscard]] bool replaced(const axis& a) const { return a.field->key == "threads" && !options_.threads.empty(); }

  void finish(bench_case c, std::vector<bench_case>& all) const {
    c.name = c.group + c.name;
    if (c.operation == operation_kind::mixed) {
      c.threads = c.readers + c.writers;
      check_case(c, place());
      all.push_back(std::move(c));
      return;
    }
    if (options_.threads.empty()) {
      check_case(c, place());
      all.push_back(std::move(c));
      return;
    }
    for (const unsigned threads : options_.threads) {
      bench_case one = c;
      one.threads = threads;
      one.name += fmt::format("/threads={}", threads);
      check_case(one, place());
      all.push_back(std::move(one));
    }
  }

  void publish(std::vector<bench_case>& all) const {
    const toml::node* const node = table_.get("published");
    if (node == nullptr) return;
    const suite_value whole(*node, "published", file_);
    const std::string& unit = all.front().published_unit;
    if (unit != "ns" && unit != "GiB/s") whole.refuse("has no unit", "write published_unit = \"ns\" or \"GiB/s\"");
    std::vector<double> figures;
    if (const toml::array* const list = node->as_array())
      for (const toml::node& one : *list) figures.push_back(suite_value(one, "published", file_).figure());
    else
      figures.push_back(whole.figure());
    if (!options_.threads.empty()) return;
    if (figures.size() != all.size())
      whole.refuse(fmt::format("has {} figures for {} cases", figures.size(), all.size()),
                   "give one for each case in their order, nan for those that have none");
    for (std::size_t i = 0; i < all.size(); ++i)
      if (!std::isnan(figures[i])) all[i].published = figures[i];
  }

  const toml::table& table_;
  const toml::table* defaults_;
  std::string_view file_;
  const suite_options& options_;
  std::vector<axis> axes_;
};

}  // namespace

suite parse_suite(std::string_view text, std::string_view file, const suite_options& options) {
  const toml::table table = bench::parse_toml(text, file);
  static const std::vector<std::string_view> known = {"title", "about", "defaults", "case"};
  for (const auto& [key, node] : table)
    if (std::find(known.begin(), known.end(), key.str()) == known.end())
      throw error(fmt::format("{}: key '{}' is not known", place_of(file, key.source()), key.str()),
                  fmt::format("did you mean '{}'?", nearest(key.str(), known)));
  suite s;
  s.name = file;
  s.title = table["title"].value_or(std::string(file));
  s.about = table["about"].value_or(std::string());
  const toml::table* const defaults = table["defaults"].as_table();
  if (table.contains("defaults") && defaults == nullptr)
    throw error(fmt::format("{}: key 'defaults' is not a table", file), "write [defaults], and fields below it");
  const toml::array* const groups = table["case"].as_array();
  if (groups == nullptr || groups->empty())
    throw error(fmt::format("{}: names no [[case]]", file), "docs/microbench.md shows one");
  std::set<std::string> names;
  for (const toml::node& node : *groups) {
    const toml::table* const group = node.as_table();
    if (group == nullptr) throw error(fmt::format("{}: key 'case' is not a list of tables", file), "write [[case]]");
    for (bench_case& c : group_reader(*group, defaults, file, options).cases()) {
      if (!names.insert(c.name).second)
        throw error(fmt::format("{}: two cases are called {}", place_of(file, group->source()), c.name),
                    "give each [[case]] a name of its own");
      s.cases.push_back(std::move(c));
    }
  }
  return s;
}

suite load_suite(std::string_view name_or_path, const suite_options& options) {
  if (const auto found = find_text(name_or_path, detail::builtin_suites(), "suite file")) {
    suite s = parse_suite(found->text, found->file, options);
    if (found->is_builtin) s.name = name_or_path;
    return s;
  }
  const std::vector<std::string_view> names = suite_names();
  throw error(fmt::format("unknown suite '{}'", name_or_path),
              fmt::format("did you mean '{}'? Or give the path of a .toml file", nearest(name_or_path, names)));
}

void filter_cases(suite& s, const std::string& expression) {
  bench::filter_by_name(s.cases, expression, {s.name, "read-latency|threads=4$", "pmlab microbench --list"});
}

std::vector<std::string_view> suite_names() { return names_of(detail::builtin_suites()); }

}  // namespace pmlab::microbench
