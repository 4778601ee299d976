// `pmlab claims`: measures what the claims need, judges each, and shows the verdicts.
#include "tools/bench/results_json.hpp"
#include "tools/catalogue/medium_spec.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/memory_options.hpp"
#include "tools/microbench/suite.hpp"
#include "tools/support/shell_form.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "claims/child.hpp"
#include "claims/drive.hpp"
#include "claims/indexes.hpp"
#include "claims/memory.hpp"
#include "claims/report.hpp"
#include "claims/result_set.hpp"
#include "claims/verdicts.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

using nlohmann::json;

// As on the command line; empty: not given.
struct given_options {
  std::vector<std::string> ids;
  memory_options memory;
  std::string suite, from, json, results, drive, spread, prefetchers;
  bool list = false, markdown = false;
};

std::vector<claims::claim> chosen_claims(const std::vector<std::string>& ids) {
  std::vector<claims::claim> all = claims::every_claim();
  if (ids.empty()) return all;
  std::vector<std::string_view> known;
  known.reserve(all.size());
  for (const claims::claim& c : all) known.emplace_back(c.id);
  for (const std::string& id : ids)
    if (std::find(known.begin(), known.end(), id) == known.end())
      throw error(fmt::format("there is no claim '{}'", id),
                  fmt::format("did you mean {}? `pmlab claims --list` names them", nearest(id, known)));
  std::vector<claims::claim> chosen;
  for (const claims::claim& c : all)
    if (std::find(ids.begin(), ids.end(), c.id) != ids.end()) chosen.push_back(c);
  return chosen;
}

bool about_memory(const claims::claim& c) { return c.id.starts_with('M'); }

// Claims about indexes are judged from a folder of `pmlab run`; nobody measures them on the way.
void keep_memory_claims(std::vector<claims::claim>& chosen, const std::vector<std::string>& ids) {
  for (const std::string& id : ids)
    if (id.starts_with('I'))
      throw error(fmt::format("claim {} is about indexes", id),
                  "run its experiments with `pmlab run`, and give that folder: --from FOLDER");
  std::erase_if(chosen, [](const claims::claim& c) { return !about_memory(c); });
}

int judge_folder(const given_options& given, const std::vector<claims::claim>& chosen, const arguments& command_line) {
  if (!given.json.empty() || !given.results.empty() || !given.drive.empty())
    throw error("the verdicts on a folder of results are written into it, one file for each medium",
                "leave --json, --results and --ssd out");
  const claims::result_set_verdicts found = claims::judge_result_set(given.from, chosen, shell_form(command_line));
  for (const std::string& table : found.tables) fmt::print("{}\n", table);
  fmt::print("{}\n", found.summary);
  return found.unmeasured.empty() ? success : failure;
}

// The cases of the suite that the claims need, as the expression that `pmlab microbench --filter` takes.
std::string filter_for(const std::vector<claims::claim>& chosen, const std::string& suite) {
  std::set<std::string> needed;
  for (const claims::claim& c : chosen)
    for (std::string& name : claims::cases_of(c)) needed.insert(std::move(name));
  std::string names;
  for (const microbench::bench_case& c : microbench::load_suite(suite).cases)
    if (needed.contains(c.name)) names += (names.empty() ? "" : "|") + c.name;
  if (names.empty())
    throw error(fmt::format("suite {} has none of the cases that these claims need", suite), "use --suite paper");
  return "^(" + names + ")$";
}

// A file that nobody else has, removed at the end.
class temporary_file {
 public:
  temporary_file() : path_((std::filesystem::temp_directory_path() / "pmlab-claims-XXXXXX").string()) {
    const int file = ::mkstemp(path_.data());
    if (file == -1) throw error("cannot make a file like " + path_, "set TMPDIR to a folder that can be written to");
    ::close(file);
  }
  temporary_file(const temporary_file&) = delete;
  temporary_file& operator=(const temporary_file&) = delete;
  ~temporary_file() { ::unlink(path_.c_str()); }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

// Runs `pmlab microbench` on the cases of these claims. `status`: how that ended; the document may then be empty.
json measure(const given_options& given, const std::vector<claims::claim>& chosen, int& status) {
  const memory_options& memory = given.memory;
  microbench::run_options options;
  read_memory(memory, options);
  const std::string suite = given.suite.empty() ? "paper" : given.suite;
  const temporary_file written;
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe"),
                                    "microbench",
                                    "--medium",
                                    options.medium.text(),
                                    "--suite",
                                    suite,
                                    "--filter",
                                    filter_for(chosen, suite),
                                    "--json",
                                    written.path()};
  const auto pass_on = [&](const char* option, const std::string& value) {
    if (!value.empty()) words.insert(words.end(), {option, value});
  };
  pass_on("--spread", given.spread);
  pass_on("--prefetchers", given.prefetchers);
  if (memory.reuse) words.emplace_back("--reuse");
  if (memory.overwrite) words.emplace_back("--overwrite");
  if (memory.quiet) words.emplace_back("--quiet");
  status = claims::run_program(words, "/dev/null");
  if (std::filesystem::file_size(written.path()) == 0) return {};
  return claims::read_json(written.path());
}

// M22 needs what is no memory.
void add_drive(json& document, const given_options& given, const std::vector<claims::claim>& chosen) {
  if (!document.is_object() || !document.contains("cases") || !document["cases"].is_array()) return;
  const bool wanted = std::any_of(chosen.begin(), chosen.end(), [](const claims::claim& c) { return c.id == "M22"; });
  const auto is_drive = [](const json& one) {
    return one.is_object() && one.value("name", std::string()).starts_with("drive-");
  };
  json& cases = document["cases"];
  const bool there = std::any_of(cases.begin(), cases.end(), is_drive);
  if (!wanted || (there && given.drive.empty())) return;
  cases.erase(std::remove_if(cases.begin(), cases.end(), is_drive), cases.end());
  for (json& one : claims::measure_drive(given.drive)) cases.push_back(std::move(one));
}

void check_options(const given_options& given) {
  if (!given.from.empty() && (!given.memory.medium.empty() || !given.suite.empty()))
    throw error("--from judges what was measured already, so --medium and --suite say nothing", "leave them out");
  if (given.from.empty() && !given.drive.empty() && !std::filesystem::is_directory(given.drive))
    throw error("no folder " + given.drive, "give --ssd a folder on the drive to write in");
  if (given.markdown && !given.list) throw error("--markdown is a form of --list", "give both");
  if (!given.json.empty()) bench::check_writable(given.json);
  if (!given.results.empty()) bench::check_writable(given.results);
}

int run(const given_options& given, const arguments& command_line) {
  std::vector<claims::claim> chosen = chosen_claims(given.ids);
  check_options(given);
  if (given.list) {
    fmt::print("{}", given.markdown ? claims::rules_markdown(chosen) : claims::rules_table(chosen));
    return success;
  }
  if (std::filesystem::is_directory(given.from)) return judge_folder(given, chosen, command_line);
  keep_memory_claims(chosen, given.ids);
  int measuring = success;
  json document = given.from.empty() ? measure(given, chosen, measuring) : claims::read_json(given.from);
  if (given.from.empty() && document.empty()) return measuring == success ? failure : measuring;
  add_drive(document, given, chosen);
  if (!given.results.empty()) bench::write_json(given.results, document);

  const claims::evidence found(std::move(document), given.from.empty() ? "what was measured" : given.from);
  std::vector<claims::judgement> judgements;
  judgements.reserve(chosen.size());
  for (const claims::claim& c : chosen) judgements.push_back(claims::judge(c, found));
  if (!given.json.empty())
    bench::write_json(given.json, claims::verdicts_to_json(judgements, found, {shell_form(command_line), given.from}));
  std::FILE* const table = bench::table_beside(given.json == "-" ? given.json : given.results);
  fmt::print(table, "{}", claims::verdicts_table(judgements, found));
  std::string lacking;
  for (const claims::judgement& j : judgements)
    if (j.found == claims::verdict::not_measured) lacking += " " + j.of->id;
  if (lacking.empty()) return measuring;
  fmt::print(table, "not measured: run `pmlab claims --medium MEDIUM{}`\n", lacking);
  return failure;
}

}  // namespace

command add_claims(CLI::App& program, const arguments& command_line) {
  CLI::App* const app = program.add_subcommand("claims", "Measures and judges what is claimed of persistent memory");
  const auto given = std::make_shared<given_options>();
  const auto text = texts_of(*app);
  app->add_option("claim", given->ids, "Only these: M1 M8 ...; all if not given")->type_name("");
  add_options_of_memory(*app, given->memory);
  text("--suite", given->suite, "paper | FILE.toml: the suite that has the cases; paper if not given");
  text("--from", given->from,
       "FILE | FOLDER: judge what `pmlab microbench --json` or `pmlab run` wrote, and measure nothing");
  text("--results", given->results, "FILE: write what was measured there, for --from and for the report");
  text("--json", given->json, "FILE: write the verdicts there (docs/claims.md); -: to standard output");
  text("--ssd", given->drive, "FOLDER: for M22, measure the drive below FOLDER with fio");
  text("--spread", given->spread, "PERCENT: repeat until repetitions agree so well; 5 if not given");
  text("--prefetchers", given->prefetchers, "off: switch the CPU's prefetchers off for the run (root); on: leave them");
  app->add_flag("--list", given->list, "Show the claims and what must hold, and measure nothing");
  app->add_flag("--markdown", given->markdown, "With --list: as docs/claims.md has it");
  app->footer(
      "  pmlab claims --medium simulated:aep\n"
      "  pmlab claims --medium pmem:/mnt/pmem/test.pool --ssd /mnt/nvme --json verdicts.json\n"
      "  pmlab claims --from aep.json M1 M8\n"
      "  pmlab claims --from results/quick I1 I2");
  return {app, [given, command_line] { return run(*given, command_line); }};
}

}  // namespace pmlab::cli
