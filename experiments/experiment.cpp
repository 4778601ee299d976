// Reads experiments.
#include "experiments/experiment.hpp"
#include "tools/support/read_file.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "experiments/chart.hpp"
#include "experiments/toml_text.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include <fmt/format.h>
#include <toml++/toml.h>

namespace pmlab::experiments {
namespace {

class reader {
 public:
  reader(const toml::table& table, std::string_view file, const known_options& known)
      : table_(table), file_(file), known_(known) {}

  [[nodiscard]] experiment read() {
    refuse_unknown_keys(table_, {"title", "about", "shows", "kind", "claims", "arguments", "matrix", "scale", "chart"},
                        file_);
    e_.title = required("title", "what stands above its charts");
    e_.about = required("about", "one sentence that says what it is to show");
    e_.shows = required("shows", "\"figure 17\", or \"beyond the paper\"");
    read_kind();
    if (const toml::node* const claims = table_.get("claims")) e_.claims = texts_of(*claims, "claims", file_);
    const toml::table* const arguments = table_of("arguments");
    if (arguments == nullptr)
      throw error(fmt::format("{}: has no [arguments]", file_), "docs/experiments.md shows an experiment");
    read_arguments(*arguments, e_.common);
    if (const toml::table* const matrix = table_of("matrix")) read_matrix(*matrix);
    read_scales();
    read_charts();
    return std::move(e_);
  }

 private:
  [[nodiscard]] std::string required(std::string_view key, std::string_view what) const {
    const toml::node* const node = table_.get(key);
    std::string text = node == nullptr ? std::string() : text_of(*node, key, file_);
    if (text.empty()) throw error(fmt::format("{}: has no {}", file_, key), fmt::format("give it one: {}", what));
    return text;
  }

  [[nodiscard]] const toml::table* table_of(std::string_view key) const {
    const toml::node* const node = table_.get(key);
    if (node == nullptr) return nullptr;
    if (!node->is_table())
      throw error(fmt::format("{}: {} is no table", place_of(file_, *node), key),
                  fmt::format("write [{}], and keys below it", key));
    return node->as_table();
  }

  void read_kind() {
    e_.kind = table_["kind"].value_or(std::string("bench"));
    if (known_.contains(e_.kind)) return;
    std::vector<std::string_view> kinds;
    for (const auto& [kind, options] : known_) kinds.emplace_back(kind);
    throw error(fmt::format("{}: kind '{}' is not known", file_, e_.kind),
                fmt::format("did you mean '{}'?", nearest(e_.kind, kinds)));
  }

  void check_option(const toml::key& key) const {
    const std::vector<std::string>& options = known_.find(e_.kind)->second;
    const std::string option = option_of(std::string(key.str()));
    if (std::find(options.begin(), options.end(), option) != options.end()) return;
    const std::vector<std::string_view> names(options.begin(), options.end());
    throw error(fmt::format("{}: pmlab {} has no option --{}", place_of(file_, key.source()), e_.kind, option),
                fmt::format("did you mean --{}? `pmlab {} --help` names the options", nearest(option, names), e_.kind));
  }

  // A list within a list is one value.
  [[nodiscard]] std::string value_of(const toml::node& node, std::string_view key) const {
    if (!node.is_array()) return text_of(node, key, file_);
    std::string joined;
    for (const std::string& one : texts_of(node, key, file_)) joined += (joined.empty() ? "" : ",") + one;
    return joined;
  }

  void read_arguments(const toml::table& from, settings& to) const {
    for (const auto& [key, node] : from) {
      check_option(key);
      argument a{std::string(key.str()), {}};
      const toml::array* const list = node.as_array();
      if (const auto* const truth = node.as_boolean()) {
        a.flag = truth->get();
        a.absent = !truth->get();
      } else if (list != nullptr && !list->empty() && list->front().is_array()) {
        for (const toml::node& one : *list) a.values.push_back(value_of(one, key.str()));
      } else {
        a.values.push_back(value_of(node, key.str()));
      }
      to.arguments.push_back(std::move(a));
    }
  }

  [[nodiscard]] axis read_axis(const toml::key& key, const toml::node& node) const {
    const toml::array* const list = node.as_array();
    if (list == nullptr || list->empty())
      throw error(fmt::format("{}: {} of the matrix is no list", place_of(file_, node), key.str()),
                  fmt::format("write {} = [...], or put it below [arguments]", key.str()));
    axis a{std::string(key.str()), {}};
    for (const toml::node& one : *list) a.values.push_back(value_of(one, key.str()));
    return a;
  }

  void read_matrix(const toml::table& from) {
    std::vector<std::pair<toml::source_position, axis>> found;
    for (const auto& [key, node] : from) {
      check_option(key);
      const std::string name(key.str());
      if (std::any_of(e_.common.arguments.begin(), e_.common.arguments.end(),
                      [&name](const argument& a) { return a.key == name; }))
        throw error(fmt::format("{}: {} is in [arguments] and in [matrix]", place_of(file_, key.source()), name),
                    "leave one of them out");
      found.emplace_back(key.source().begin, read_axis(key, node));
    }
    // As in the file, which a table does not keep.
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.line, a.first.column) < std::pair(b.first.line, b.first.column);
    });
    for (auto& [position, a] : found) e_.common.matrix.push_back(std::move(a));
  }

  void read_scales() {
    const toml::table* const scales = table_of("scale");
    if (scales == nullptr) return;
    refuse_unknown_keys(*scales, scale_names(), file_);
    for (const auto& [name, node] : *scales) {
      const toml::table* const scale = node.as_table();
      if (scale == nullptr)
        throw error(fmt::format("{}: scale {} is no table", place_of(file_, node), name.str()),
                    fmt::format("write [scale.{}], and keys below it", name.str()));
      settings s;
      toml::table others = *scale;
      for (const axis& a : e_.common.matrix)
        if (const auto place = scale->find(a.key); place != scale->end()) {
          s.matrix.push_back(read_axis(place->first, place->second));
          others.erase(a.key);
        }
      read_arguments(others, s);
      e_.scales.emplace(name.str(), std::move(s));
    }
  }

  void read_charts() {
    const toml::node* const node = table_.get("chart");
    if (node == nullptr) return;
    const toml::array* const list = node->as_array();
    if (list == nullptr || !list->is_array_of_tables())
      throw error(fmt::format("{}: chart is no list of tables", place_of(file_, *node)), "write [[chart]]");
    for (const toml::node& one : *list) e_.charts.push_back(read_chart(*one.as_table(), e_.common.matrix, file_));
  }

  const toml::table& table_;
  std::string_view file_;
  const known_options& known_;
  experiment e_;
};

}  // namespace

std::string option_of(std::string key) {
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
}

const std::vector<std::string_view>& scale_names() {
  static const std::vector<std::string_view> names = {"smoke", "quick", "full"};
  return names;
}

experiment parse_experiment(std::string_view text, std::string_view file, const known_options& known) {
  const toml::table table = bench::parse_toml(text, file);
  experiment e = reader(table, file, known).read();
  e.name = std::filesystem::path(file).stem().string();
  return e;
}

experiment load_experiment(std::string_view name_or_path, const known_options& known) {
  if (name_or_path.ends_with(".toml") || name_or_path.find('/') != std::string_view::npos) {
    const std::string path(name_or_path);
    return parse_experiment(read_file(path, "experiment"), path, known);
  }
  for (const named_text& builtin : detail::builtin_experiments())
    if (builtin.name == name_or_path) return parse_experiment(builtin.text, std::string(builtin.name) + ".toml", known);
  const std::vector<std::string_view> names = experiment_names();
  throw error(fmt::format("there is no experiment '{}'", name_or_path),
              fmt::format("did you mean '{}'? `pmlab run --list` names them, and a path of a .toml file is one, too",
                          nearest(name_or_path, names)));
}

std::vector<std::string_view> experiment_names() {
  std::vector<std::string_view> names;
  for (const named_text& builtin : detail::builtin_experiments()) names.push_back(builtin.name);
  return names;
}

}  // namespace pmlab::experiments
