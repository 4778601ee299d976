// `pmlab facts`: the facts that the Python commands need from the program.
#include "tools/cli/facts.hpp"
#include <pmlab/base/error.hpp>
#include "bench/catalogue/registry.hpp"
#include "bench/engine/results_json.hpp"
#include "bench/support/json_text.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/optional_packages.hpp"

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pmlab::cli {
namespace {

using json = nlohmann::ordered_json;

json options_of(const CLI::App& app) {
  json names = json::array();
  for (const CLI::Option* o : app.get_options())
    for (const std::string& name : o->get_lnames()) names.push_back(name);
  return names;
}

json problems_of(const std::vector<std::string>& indexes) {
  json problems = json::object();
  for (const std::string& list : indexes) try {
      for (const std::string& name : index_names({list})) static_cast<void>(bench::find_index(name));
    } catch (const error& e) {
      problems[list] = e.what();
    }
  return problems;
}

}  // namespace

command add_facts(CLI::App& program) {
  CLI::App* const app = program.add_subcommand("facts", "Machine, build and options as JSON, for the Python commands");
  // Hidden from the help.
  app->group("");
  const auto indexes = std::make_shared<std::vector<std::string>>();
  app->add_option("--index", *indexes, "NAME[,NAME...]: check these names; may be repeated")
      ->type_name("")
      ->expected(1)
      ->take_all();
  return {app, [indexes] {
            CLI::App scratch;
            const CLI::App& stores = *add_stores(scratch, {}).options;
            const json all = {{"machine", bench::facts_to_json(bench::facts_of_this_machine())},
                              {"options",
                               {{"bench", options_of(*add_bench(scratch, {}).options)},
                                {"microbench", options_of(*add_microbench(scratch, {}).options)},
                                {"stores_volumes", options_of(*stores.get_subcommand("volumes"))},
                                {"stores_pairs", options_of(*stores.get_subcommand("pairs"))}}},
                              {"left_out", bench::left_out_to_json()},
                              {"problems", problems_of(*indexes)}};
            fmt::print("{}\n", json_text(all, 2));
            return success;
          }};
}

}  // namespace pmlab::cli
