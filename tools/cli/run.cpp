// `pmlab run`: runs experiments, each cell a child process, and judges the claims from what they left.
#include "tools/catalogue/registry.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/source_tree.hpp"
#include "tools/support/shell_form.hpp"
#include "tools/support/thread_team.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "claims/child.hpp"
#include "claims/result_set.hpp"
#include "claims/verdicts.hpp"
#include "experiments/experiment.hpp"
#include "experiments/plan.hpp"
#include "experiments/runner.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

namespace fs = std::filesystem;
using experiments::cell;
using experiments::experiment;

// As on the command line; empty: not given.
struct given_options {
  std::vector<std::string> experiments;
  std::string scale = "quick", folder, pools;
  bool list = false, dry_run = false, resume = false, quiet = false;
};

std::vector<std::string> options_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* o : app.get_options())
    for (const std::string& name : o->get_lnames()) names.push_back(name);
  return names;
}

// Of the commands that measure, from their command lines.
experiments::known_options known_options() {
  CLI::App scratch;
  return {{"bench", options_of(*add_bench(scratch, {}).options)},
          {"microbench", options_of(*add_microbench(scratch, {}).options)}};
}

// A misspelt name is refused before anything is run.
void check_claims(const experiment& e) {
  const std::vector<claims::claim> all = claims::every_claim();
  std::vector<std::string_view> known;
  known.reserve(all.size());
  for (const claims::claim& c : all) known.emplace_back(c.id);
  for (const std::string& id : e.claims)
    if (std::find(known.begin(), known.end(), id) == known.end())
      throw error(fmt::format("experiment {}: there is no claim '{}'", e.name, id),
                  fmt::format("did you mean {}? `pmlab claims --list` names them", nearest(id, known)));
}
void check_indexes(const cell& c) {
  if (c.words.front() != "bench") return;
  try {
    for (const std::string& name : index_names({experiments::value_of(c.words, "--index")}))
      if (!name.empty()) static_cast<void>(bench::find_index(name));
  } catch (const error& e) {
    throw error(fmt::format("experiment {}: {}", c.experiment, e.what()), {});
  }
}

std::vector<experiment> chosen_experiments(const std::vector<std::string>& names) {
  const experiments::known_options known = known_options();
  std::vector<experiment> chosen;
  if (names.empty())
    for (const std::string_view name : experiments::experiment_names())
      chosen.push_back(experiments::load_experiment(name, known));
  for (const std::string& name : names) {
    chosen.push_back(experiments::load_experiment(name, known));
    const std::string& last = chosen.back().name;
    if (std::count_if(chosen.begin(), chosen.end(), [&](const experiment& e) { return e.name == last; }) > 1)
      throw error(fmt::format("two experiments are called {}", last), "name each once");
  }
  return chosen;
}

void check_scale(const std::string& scale) {
  const std::vector<std::string_view>& known = experiments::scale_names();
  if (std::find(known.begin(), known.end(), scale) == known.end())
    throw error(fmt::format("there is no scale '{}'", scale), fmt::format("did you mean {}?", nearest(scale, known)));
}

// "(I1, I2)"; of many: "(M1 to M26)".
std::string fed_claims(const experiment& e) {
  constexpr std::size_t few = 5;
  if (e.claims.empty()) return {};
  if (e.claims.size() > few) return fmt::format(" ({} to {})", e.claims.front(), e.claims.back());
  return fmt::format(" ({})", fmt::join(e.claims, ", "));
}

void show_list(const std::vector<experiment>& chosen, const std::string& scale) {
  for (const experiment& e : chosen) {
    const std::size_t cells = experiments::plan(e, scale).size();
    fmt::print("{:<20} {:<30} {:>2} cell{:<1}  {}{}\n", e.name, e.shows, cells, cells == 1 ? "" : "s", e.title,
               fed_claims(e));
  }
}

// Memory that every Linux machine has, mapped like persistent memory, unless somebody names a device.
fs::path pools_folder(const given_options& given) {
  if (!given.pools.empty()) return given.pools;
  const char* const named = std::getenv("PMLAB_POOLS");
  return named != nullptr && *named != '\0' ? named : "/dev/shm";
}

void check_pools(const fs::path& pools, const std::vector<cell>& cells) {
  const bool wanted = std::any_of(cells.begin(), cells.end(), [](const cell& c) {
    return std::any_of(c.words.begin(), c.words.end(),
                       [](const std::string& w) { return w.find("{pool}") != std::string::npos; });
  });
  if (wanted && ::access(pools.c_str(), W_OK) != 0)
    throw error(fmt::format("cannot make pools in {}", pools.string()),
                "give --pools a folder on a tmpfs or an fsdax device");
}

// Judges what the experiments of the folder feed, of this run and of those before.
void judge(const given_options& given, const arguments& command_line) {
  std::set<std::string> ids;
  const nlohmann::json manifest = claims::read_json(fs::path(given.folder) / "manifest.json");
  for (const nlohmann::json& e : manifest.at("experiments"))
    for (const nlohmann::json& id : e.at("claims")) ids.insert(id.get<std::string>());
  std::vector<claims::claim> fed = claims::every_claim();
  std::erase_if(fed, [&](const claims::claim& c) { return !ids.contains(c.id); });
  if (fed.empty()) return;
  const claims::result_set_verdicts found = claims::judge_result_set(given.folder, fed, shell_form(command_line));
  fmt::print("{}\n", found.summary);
  if (!found.unmeasured.empty()) fmt::print("not measured: {}\n", fmt::join(found.unmeasured, " "));
}

int run(const given_options& given, const arguments& command_line) {
  check_scale(given.scale);
  const std::vector<experiment> chosen = chosen_experiments(given.experiments);
  for (const experiment& e : chosen) check_claims(e);
  if (given.list) {
    show_list(chosen, given.scale);
    return success;
  }
  std::vector<cell> cells;
  for (const experiment& e : chosen)
    for (cell& c : experiments::plan(e, given.scale)) cells.push_back(std::move(c));
  for (const cell& c : cells) check_indexes(c);
  if (given.dry_run) {
    for (const cell& c : cells) fmt::print("{}: {}\n", c.name, shell_form(c.words));
    return success;
  }
  if (given.folder.empty())
    throw error("no folder for the results", "give --out FOLDER, or --dry-run to see what would be run");
  const fs::path pools = pools_folder(given);
  check_pools(pools, cells);
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const experiments::run_summary done =
      experiments::run_cells(chosen, cells,
                             {.program = program,
                              .folder = given.folder,
                              .pools = pools,
                              .source = source_tree(),
                              .scale = given.scale,
                              .command = shell_form(command_line),
                              .resume = given.resume,
                              .quiet = given.quiet,
                              .jobs = static_cast<unsigned>(bench::usable_cpus().size())});
  if (done.done + done.kept != 0) judge(given, command_line);
  static_cast<void>(claims::run_program({program, "doctor"}, (fs::path(given.folder) / "doctor.txt").string()));
  fmt::print("{} cells ran, {} were there, {} failed; results in {}\n", done.done, done.kept, done.failed,
             given.folder);
  if (done.failed == 0) return success;
  std::fflush(stdout);
  fmt::print(stderr, "pmlab: error: {} cells failed; {}/manifest.json says which, {}/log what they said\n", done.failed,
             given.folder, given.folder);
  return failure;
}

}  // namespace

command add_run(CLI::App& program, const arguments& command_line) {
  CLI::App* const app = program.add_subcommand("run", "Runs experiments, and judges the claims from what they show");
  const auto given = std::make_shared<given_options>();
  const auto text = texts_of(*app);
  app->add_option("experiment", given->experiments, "NAME | FILE.toml ...; all that come with pmlab if not given")
      ->type_name("");
  text("--scale", given->scale, "smoke | quick | full: seconds, minutes, hours; quick if not given");
  text("--out", given->folder, "FOLDER for the results");
  text("--pools", given->pools, "FOLDER for pool files; PMLAB_POOLS or /dev/shm if not given");
  app->add_flag("--resume", given->resume, "Go on in a folder: keep what this build measured with the same arguments");
  app->add_flag("--list", given->list, "Name the experiments, and run nothing");
  app->add_flag("--dry-run", given->dry_run, "Show each cell's command, and run nothing");
  app->add_flag("--quiet", given->quiet, "No progress on stderr");
  app->footer(
      "  pmlab run --scale quick --out results/mine && pmlab report results/mine\n"
      "  pmlab run hybrid cache --scale smoke --out /tmp/smoke\n"
      "  pmlab run my-experiment.toml --out results/my --resume");
  return {app, [given, command_line] { return run(*given, command_line); }};
}

}  // namespace pmlab::cli
