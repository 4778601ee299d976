// What the command line offers, as CLI11 knows it.
#include "tools/cli/offered.hpp"

#include <algorithm>
#include <cctype>

#include <CLI/CLI.hpp>

namespace pmlab::cli {
namespace {

// Descriptions have the form "VALUE: what it is for"; of flags, the second half alone. "dram | pmem:PATH" has a colon
// of its own, which no space follows.
offered_option option_of(const CLI::Option& o) {
  offered_option offered;
  offered.is_argument = o.get_positional();
  offered.name = offered.is_argument ? o.get_name() : "--" + o.get_lnames().front();
  const std::string text = o.get_description();
  const bool takes_value = offered.is_argument || o.get_items_expected_max() > 0;
  if (!takes_value) {
    offered.what = text;
    return offered;
  }
  const std::size_t colon = text.find(": ");
  offered.value = text.substr(0, colon);
  offered.what = colon == std::string::npos ? "" : text.substr(colon + 2);
  if (!o.get_default_str().empty()) offered.what += " [" + o.get_default_str() + "]";
  return offered;
}

void add(const CLI::App& app, const std::string& name, std::vector<offered_command>& all) {
  offered_command command{name, app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* o : app.get_options())
    if (o->get_positional() || !o->get_lnames().empty()) command.options.push_back(option_of(*o));
  const auto below = app.get_subcommands([](const CLI::App* c) { return !c->get_group().empty(); });
  for (const CLI::App* c : below) command.commands.push_back(c->get_name());
  all.push_back(std::move(command));
  for (const CLI::App* c : below) add(*c, name.empty() ? c->get_name() : name + " " + c->get_name(), all);
}

bool is_word(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::islower(c) != 0 || std::isdigit(c) != 0 || c == '-' || c == '_' || c == '.' || c == ':';
  });
}

}  // namespace

std::vector<std::string> offered_option::words() const {
  std::vector<std::string> found;
  for (std::size_t start = 0; start < value.size();) {
    const std::size_t end = std::min(value.find_first_of(" |,[]", start), value.size());
    if (const std::string word = value.substr(start, end - start);
        is_word(word) && word.find("..") == std::string::npos)
      found.push_back(word);
    start = end + 1;
  }
  return found;
}

bool offered_option::is_file() const {
  for (const std::string_view kind : {"FILE", "TEXT", "NEW", "PATH", "FOLDER"})
    if (value.find(kind) != std::string::npos && value.find(":" + std::string(kind)) == std::string::npos) return true;
  return false;
}

std::vector<offered_command> offered_by(const CLI::App& program) {
  std::vector<offered_command> all;
  add(program, "", all);
  return all;
}

}  // namespace pmlab::cli
