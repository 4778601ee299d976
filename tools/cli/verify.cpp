// pmlab verify: every crash and many schedules of an index.
#include "tools/cli/command.hpp"
#include "tools/cli/verify_run.hpp"
#include <pmlab/base/error.hpp>

#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

constexpr unsigned most_threads = 16;  // verify::history_model::most_threads

void check_io_log(const verify_request& r) {
  if (!r.indexes.empty() || !r.subject.empty() || !r.library.empty())
    throw error("--io-log excludes --index, --subject and --library", "give one of them");
  if (r.seeds) throw error("--io-log has no rounds, so --seeds has no effect", "leave one of them out");
  if (r.check.empty())
    throw error("--io-log needs a check of its crash states", "give --check COMMAND, or --check acknowledged");
  if (r.states < 2) throw error("--states must be at least 2", "leave it out for 16");
  if (!(r.budget > 0)) throw error("--budget must be more than 0 seconds", "leave it out for 60");
}

seed_range read_seeds(std::string_view text) {
  seed_range range;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, range.first);
  const std::string_view rest(first.ptr, static_cast<std::size_t>(end - first.ptr));
  bool read = first.ec == std::errc() && rest.starts_with("..");
  if (read) {
    const auto last = std::from_chars(first.ptr + 2, end, range.last);
    read = last.ec == std::errc() && last.ptr == end;
  }
  if (!read) throw error(fmt::format("--seeds '{}' is no range", text), "give the first and the last, such as 1..6400");
  if (range.first > range.last)
    throw error(fmt::format("--seeds {} ends before it begins", text),
                fmt::format("give {}..{}", range.last, range.first));
  // As far as every reader of JSON has whole numbers.
  constexpr std::uint64_t greatest = std::uint64_t{1} << 53;
  if (range.last > greatest)
    throw error(fmt::format("--seeds {} is too high", text), fmt::format("give {} at most", greatest));
  return range;
}

void check_seeds(const verify_request& r, const CLI::App& app) {
  if (!r.out.empty() && !r.seeds) throw error("--out records a range of seeds", "give --seeds A..B, too");
  if (r.resume && r.out.empty()) throw error("--resume goes on with the record in a folder", "give --out FOLDER, too");
  if (!r.seeds) return;
  for (const char* const other : {"--seed", "--rounds", "--budget", "--schedule", "--steps"})
    if (app.count(other) != 0)
      throw error(fmt::format("--seeds is every round from A to B, so {} has no effect", other),
                  "leave one of them out");
  if (r.search == "bounded")
    throw error("bounded search stays with the operations of one seed", "use --search random with --seeds");
}

void check(const verify_request& r) {
  if (!r.io_log.empty()) return check_io_log(r);
  if (!r.check.empty() || !r.base.empty() || r.cut_off)
    throw error("--check, --base and --cut-off are about a recorded run", "give its log: --io-log FILE");
  if (r.indexes.empty() && r.subject.empty() && r.library.empty())
    throw error("nothing to verify", "name an index: --index NAME, or give a library: --library FILE.so");
  if (!r.library.empty() && !(r.indexes.empty() && r.subject.empty()))
    throw error("--library excludes --index and --subject", "give one of them");
  if (r.threads > most_threads)
    throw error(fmt::format("{} threads are too many", r.threads), fmt::format("give 1 to {}", most_threads));
  if (r.keys < 2) throw error("--keys must be at least 2", "leave it out for 120");
  if (!r.search.empty() && r.search != "random" && r.search != "bounded")
    throw error(fmt::format("there is no search '{}'", r.search), "use random or bounded");
  if (r.schedules && r.threads == 1) throw error("one thread has one schedule", "give --threads 2 or more");
  if (!(r.budget > 0)) throw error("--budget must be more than 0 seconds", "leave it out for 60");
}

}  // namespace

command add_verify(CLI::App& program, const arguments& command_line) {
  const auto r = std::make_shared<verify_request>();
  const auto given = std::make_shared<std::vector<std::string>>();
  const auto seeds = std::make_shared<std::string>();
  CLI::App* const app =
      program.add_subcommand("verify", "Searches for crashes and schedules that an index does not survive");
  app->add_option("--index", *given,
                  "NAME[,NAME...]: the indexes to verify (`pmlab list`), such as cache(cceh,mode=parallel)")
      ->type_name("")
      ->expected(1)
      ->take_all();
  app->add_option("--subject", r->subject,
                  "FILE.so: a shared object that registers an index for verification, or a combination for --index");
  app->add_option("--library", r->library, "FILE.so: a library with PiBench's interface, built by scripts/pmlab-c++");
  app->add_flag("--scans", r->scans, "scan the library too: it orders keys as unsigned integers of this machine");
  app->add_flag("--crashes", r->crashes, "crash at every store, flush and fence");
  app->add_flag("--schedules", r->schedules, "let threads pre-empt each other at any access");
  app->add_option("--threads", r->threads, "N: logical threads; 4 with --schedules if not given, otherwise 1");
  app->add_option("--operations", r->operations, "N: operations of each thread; 120 with one thread, otherwise 60");
  app->add_option("--keys", r->keys, "N: different keys");
  app->add_option("--seed", r->seed, "S: of the first round's operations; the following rounds count up");
  app->add_option("--budget", r->budget, "SECONDS for each index");
  app->add_option("--rounds", r->rounds, "N: so many rounds instead of a budget");
  app->add_option("--seeds", *seeds,
                  "A..B: the rounds of these seeds, all of them: a violation does not end the search");
  app->add_option("--out", r->out, "FOLDER: with --seeds, record counts and violations there, for `pmlab merge`");
  app->add_flag("--resume", r->resume, "With --out: go on after the last seed that is recorded");
  app->add_option("--search", r->search, "random | bounded: pre-emptions at random, or one or two at every place");
  app->add_option("--schedule", r->schedule, "S: of the first round's schedule; the round's own seed if not given");
  app->add_option("--steps", r->steps, "N,N,...: only these operations of a round, as a violation names them");
  app->add_option("--shrink", r->shrink, "SECONDS spent on making the history of a violation shorter");
  app->add_option("--io-log", r->io_log,
                  "FILE: a log of blocks::recorded; checks the states that a crash may have left on its device");
  app->add_option("--check", r->check,
                  "with --io-log: COMMAND, given the path of an image, ends with status 0 if it is sound; or\n"
                  "acknowledged: no write may lie in the drive's cache when the program marks an acknowledgement");
  app->add_option("--base", r->base, "FILE, with --io-log: the device's content of before the log; zeros if not given");
  app->add_option("--states", r->states, "N, with --io-log: states at each point; 16 if not given");
  app->add_flag("--cut-off", r->cut_off, "with --io-log: the log may end in the middle of a record");
  app->add_flag("--quiet", r->quiet, "No progress on stderr");
  app->footer(
      "Without --crashes and --schedules, both. A violation ends the search of its index: it is printed with the\n"
      "shortest history that shows it, the store that was lost, and the command that shows it again. With --seeds the\n"
      "search goes on, and a history is as long as its round, unless --shrink is given.\n"
      "Status: 0 no violation; 1 a violation; 2 bad input.\n\n"
      "  pmlab verify --index fast_fair --crashes --budget 10\n"
      "  pmlab verify --index cceh --crashes --schedules --threads 4 --operations 60\n"
      "  pmlab verify --index fp_tree --seeds 1..6400 --out campaign\n"
      "  pmlab verify --library ./libmine.so --crashes\n"
      "  pmlab verify --io-log run.log --check ./open-and-check");
  return {app, [r, given, seeds, app, command_line] {
            r->indexes = index_names(*given);
            r->schedule_given = app->count("--schedule") != 0;
            if (app->count("--seeds") != 0) r->seeds = read_seeds(*seeds);
            // How far it gets depends on the machine's speed; the record of a range does not.
            if (r->seeds && app->count("--shrink") == 0) r->shrink = 0;
            check_seeds(*r, *app);
            check(*r);
            return verify(*r, command_line);
          }};
}

}  // namespace pmlab::cli
