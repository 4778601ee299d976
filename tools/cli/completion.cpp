// `pmlab completion`: scripts by which shells complete the command line.
#include "tools/cli/completion.hpp"
#include "tools/cli/offered.hpp"
#include "tools/cli/python.hpp"
#include <pmlab/base/error.hpp>
#include "bench/catalogue/registry.hpp"
#include "bench/devices/drive_file.hpp"
#include "bench/devices/profile_file.hpp"
#include "bench/engine/phase.hpp"
#include "bench/stores/case.hpp"
#include "bench/stores/pair_case.hpp"
#include "bench/stores/pair_stores.hpp"
#include "bench/stores/subjects.hpp"
#include "bench/workload/distribution.hpp"
#include "bench/workload/mix.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <CLI/CLI.hpp>

namespace pmlab::cli {
namespace {

// What may follow the option of a command; "FILE" alone: a file.
std::vector<std::string> values_of(const offered_command& c, const offered_option& o) {
  std::vector<std::string> values;
  const auto all = [&](const auto& names) {
    for (const auto& name : names) values.emplace_back(name);
  };
  const bool is_volumes = c.name == "stores volumes";
  const bool is_pairs = c.name == "stores pairs";
  if (is_volumes && o.name == "--store") {
    for (const store_bench::store_description& d : store_bench::all_stores()) values.emplace_back(d.name);
  } else if (is_pairs && o.name == "--store") {
    for (const store_bench::pair_store_description& d : store_bench::all_pair_stores()) values.emplace_back(d.name);
  } else if (is_volumes && o.name == "--index") {
    all(store_bench::level1_indexes());
  } else if (is_volumes && o.name == "--phases") {
    all(store_bench::phase_names());
  } else if (is_pairs && o.name == "--phases") {
    all(store_bench::pair_phase_names());
  } else if (is_volumes && o.name == "--pattern") {
    values = {"random", "sequential", "zipfian"};
  } else if (is_pairs && o.name == "--pattern") {
    values = {"random", "sequential", "uniform", "zipfian"};
  } else if (o.name == "--index" || o.name == "--baseline") {
    for (const bench::index_description* d : bench::all_indexes()) values.push_back(d->name);
  } else if (o.name == "--medium") {
    values = {"dram", "pmem:", "counted:"};
    for (const std::string_view profile : media::profile_names())
      for (const char* const kind : {"emulated:", "simulated:"}) values.push_back(kind + std::string(profile));
  } else if (o.name == "--device" || o.name == "--staging") {
    values = {"memory", "file:"};
    for (const std::string_view profile : blocks::drive_names())
      for (const char* const kind : {"emulated:", "simulated:"}) values.push_back(kind + std::string(profile));
  } else if (o.name == "--workload") {
    all(workload::mix_names());
  } else if (o.name == "--phases") {
    all(bench::phase_names());
  } else if (o.name == "--distribution") {
    all(workload::distribution_names());
  } else {
    values = o.words();
    if (o.is_file()) values.emplace_back("FILE");
  }
  return values;
}

// Words that may stand where an option or a command may.
std::vector<std::string> words_of(const offered_command& c) {
  std::vector<std::string> words = c.commands;
  for (const offered_option& o : c.options)
    if (!o.is_argument) words.push_back(o.name);
  return words;
}

std::string bash_script(const std::vector<offered_command>& commands) {
  std::string text =
      "# Completion of pmlab's command line, made by `pmlab completion`.\n_pmlab_words() {\n  case \"$1\" in\n";
  for (const offered_command& c : commands)
    text += fmt::format("    '{}') echo '{}' ;;\n", c.name, fmt::join(words_of(c), " "));
  text += "  esac\n}\n_pmlab_values() {\n  case \"$1 $2\" in\n";
  for (const offered_command& c : commands)
    for (const offered_option& o : c.options) {
      const std::vector<std::string> values = values_of(c, o);
      if (!o.is_argument && !values.empty())
        text += fmt::format("    '{} {}') echo '{}' ;;\n", c.name, o.name, fmt::join(values, " "));
    }
  // Bash cuts words at colons; the word as it was typed is taken from the line.
  return text + R"bash(  esac
}
_pmlab() {
  local typed="${COMP_LINE:0:COMP_POINT}" command= before= values= list= one i
  local word="${typed##* }"
  for ((i = 1; i < COMP_CWORD; i++)); do
    before="${COMP_WORDS[i]}"
    case "$before" in -*) break ;; esac
    case " $(_pmlab_words "$command") " in
      *" $before "*) command="${command:+$command }$before" ;;
      *) break ;;
    esac
  done
  before="${typed% *}"
  before="${before##* }"
  values="$(_pmlab_values "$command" "$before")"
  case "$word" in --*=*)
    values="$(_pmlab_values "$command" "${word%%=*}")"
    word="${word#*=}"
    ;;
  esac
  [ -n "$values" ] || values="$(_pmlab_words "$command")"
  COMPREPLY=()
  case " $values " in *" FILE "*) COMPREPLY=($(compgen -f -- "$word")) ;; esac
  case "$word" in *,*) list="${word%,*}," ;; esac
  for one in $values; do
    [ "$one" = FILE ] && continue
    case "$list$one" in "$word"*) COMPREPLY+=("$list$one") ;; esac
  done
  case "$word" in *:*)
    for i in "${!COMPREPLY[@]}"; do COMPREPLY[i]="${COMPREPLY[i]#"${word%:*}:"}"; done
    ;;
  esac
}
complete -o default -F _pmlab pmlab
)bash";
}

// Within single quotes of fish.
std::string fish_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

std::string fish_script(const std::vector<offered_command>& commands) {
  std::string text = "# Completion of pmlab's command line, made by `pmlab completion`.\ncomplete -c pmlab -f\n";
  for (const offered_command& c : commands) {
    std::string condition = "__fish_use_subcommand";
    if (!c.name.empty()) {
      condition.clear();
      for (std::size_t start = 0; start < c.name.size();) {
        const std::size_t end = std::min(c.name.find(' ', start), c.name.size());
        condition += (condition.empty() ? "" : "; and ") + std::string("__fish_seen_subcommand_from ") +
                     c.name.substr(start, end - start);
        start = end + 1;
      }
    }
    for (const std::string& name : c.commands)
      for (const offered_command& below : commands)
        if (below.name == (c.name.empty() ? name : c.name + " " + name))
          text += fmt::format("complete -c pmlab -n '{}' -a {} -d {}\n", condition, name, fish_quoted(below.what));
    for (const offered_option& o : c.options) {
      if (o.is_argument) continue;
      text += fmt::format("complete -c pmlab -n '{}' -l {} -d {}", condition, o.name.substr(2), fish_quoted(o.what));
      std::vector<std::string> values = values_of(c, o);
      const bool file = std::erase(values, "FILE") != 0;
      if (!o.value.empty()) text += file ? " -r -F" : " -x";
      if (!values.empty()) text += " -a " + fish_quoted(fmt::format("{}", fmt::join(values, " ")));
      text += '\n';
    }
  }
  return text;
}

std::string script_for(const std::string& shell, const std::vector<offered_command>& commands) {
  if (shell == "bash") return bash_script(commands);
  // zsh reads bash's.
  if (shell == "zsh") return "#compdef pmlab\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(commands);
  if (shell == "fish") return fish_script(commands);
  throw error(fmt::format("there is no completion for shell '{}'", shell), "give bash, zsh or fish");
}

}  // namespace

command add_completion(CLI::App& program) {
  CLI::App* const app = program.add_subcommand("completion", "Prints a script by which a shell completes commands");
  const auto shell = std::make_shared<std::string>();
  app->add_option("shell", *shell, "bash | zsh | fish")->type_name("")->required();
  app->footer("  source <(pmlab completion bash)\n  pmlab completion fish | source");
  return {app, [shell, &program] {
            describe_python_commands(program);
            fmt::print("{}", script_for(*shell, offered_by(program)));
            return success;
          }};
}

}  // namespace pmlab::cli
