// pmlab verify: every crash and many schedules of an index.
#include "tools/cli/command.hpp"
#include "tools/cli/verify_run.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/media/persistence_domain.hpp>
#include "bench/support/quantity.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

constexpr unsigned most_threads = 16;                 // verify::history_model::most_threads
constexpr std::uint64_t most_operations = 1'000'000;  // a round keeps each of them, and each key

constexpr const auto& domains = media::persistence_domain_names;

void check_io_log(const verify_request& r) {
  if (!r.indexes.empty() || !r.subject.empty() || !r.library.empty())
    throw error("--io-log excludes --index, --subject and --library", "give one of them");
  if (r.seeds) throw error("--io-log has no rounds, so --seeds has no effect", "leave one of them out");
  if (r.persistence != "adr")
    throw error("--persistence is about memory, and --io-log has a drive", "leave one of them out");
  if (r.check.empty())
    throw error("--io-log needs a check of its crash states", "give --check COMMAND, or --check acknowledged");
  if (r.states == 1) throw error("--states must be at least 2", "leave it out for 16");
}

void check_program(const verify_request& r) {
  if (!r.indexes.empty() || !r.subject.empty() || !r.library.empty() || !r.io_log.empty())
    throw error("--program excludes --index, --subject, --library and --io-log", "give one of them");
  if (r.seeds) throw error("--program has no rounds, so --seeds has no effect", "leave one of them out");
  if (r.persistence != "adr") throw error("--program is crashed under adr only", "leave --persistence out");
  for (const auto& [option, given] : {std::pair{"--performance", r.performance},
                                      {"--schedules", r.schedules},
                                      {"--threads", r.threads != 0},
                                      {"--rounds", r.rounds != 0},
                                      {"--operations", r.operations != 0},
                                      {"--keys", r.keys_given},
                                      {"--memory-order", !r.memory_order.empty()},
                                      {"--steps", !r.steps.empty()}})
    if (given)
      throw error(fmt::format("--program is run once, as it is, so {} has no effect", option), "leave one of them out");
  if (!r.base.empty() || r.cut_off)
    throw error("--base and --cut-off are about a recorded log", "leave them out: the program is run and recorded now");
  if (r.check.empty() || r.check == "acknowledged")
    throw error("--program needs a check of its crash states",
                "give --check COMMAND, which opens an image of the pool");
  if (r.states == 1) throw error("--states must be at least 2", "leave it out for as many as the budget allows");
}

void check_scoreboard(const verify_request& r) {
  if (!r.indexes.empty() || !r.subject.empty() || !r.library.empty() || !r.io_log.empty() || !r.program.empty() ||
      r.seeds)
    throw error("--scoreboard has its own subjects", "give it alone, or with the names of bugs");
}

// Only rounds are divided among processes.
void check_jobs(const verify_request& r, const CLI::App& app) {
  if (app.count("--jobs") == 0) return;
  if (r.jobs < 1 || r.jobs > most_jobs)
    throw error(fmt::format("--jobs is {}", r.jobs), fmt::format("give 1 to {}", most_jobs));
  refuse_beside(app, {"--seeds", "--exhaustive", "--performance", "--scoreboard", "--io-log", "--program"},
                "--jobs divides the rounds of a search, and {} has one process");
  if (r.search == "bounded")
    throw error("--jobs divides the rounds of a random search, and --search bounded has one process",
                "leave one of them out");
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
  refuse_beside(app, {"--seed", "--rounds", "--budget", "--schedule", "--steps"},
                "--seeds is every round from A to B, so {} has no effect");
  if (r.search == "bounded")
    throw error("bounded search stays with the operations of one seed", "use --search random with --seeds");
}

void check_known(const verify_request& r, const CLI::App& app) {
  if (!r.all && app.count("--known") == 0) return;
  refuse_beside(app, {"--seeds", "--exhaustive", "--performance", "--scoreboard", "--io-log", "--program", "--steps"},
                "--all and --known are about the rounds of a search, and {} has none");
  if (r.search == "bounded")
    throw error("--all and --known go on with the next seed, and bounded search stays with one", "use --search random");
  if (r.all && app.count("--shrink") != 0)
    throw error("--all lists violations without their histories, so --shrink has no effect", "leave one of them out");
}

std::uint64_t read_pool_size(const std::string& text, const verify_request& r) {
  if (r.library.empty()) throw error("--pool-size is the size of a library's pool", "give --library FILE.so, too");
  const std::uint64_t bytes = bench::parse_bytes(text, "--pool-size");
  constexpr std::uint64_t least = std::uint64_t{64} << 10;
  constexpr std::uint64_t most = std::uint64_t{64} << 30;
  if (bytes < least || bytes > most) throw error("--pool-size " + text + " is not possible", "give 64KiB to 64GiB");
  return bytes;
}

void read_without(const std::vector<std::string>& names, verify_request& r) {
  if (r.library.empty())
    throw error("--without names operations that a library does not have", "give --library FILE.so, too");
  for (const std::string& name : names) {
    if (name == "scan") {
      if (r.scans) throw error("--scans excludes --without scan", "give one of them");
    } else if (name == "update") {
      r.without_update = true;
    } else if (name == "remove") {
      r.without_remove = true;
    } else {
      throw error(fmt::format("--without '{}' is no operation that a library may lack", name),
                  "use update, remove or scan");
    }
  }
}

// Threads that join nodes have many keys.
void check_joins(const verify_request& r, const CLI::App& app) {
  if (!r.joins) return;
  refuse_beside(app, {"--exhaustive", "--performance", "--scoreboard", "--io-log", "--program"},
                "--joins lets threads join nodes, so {} has none of it");
  if (r.search == "bounded") throw error("--joins is for random searches", "leave --search bounded out");
  if ((r.crashes && !r.schedules) || r.threads == 1)
    throw error("--joins lets several threads join nodes", "give --schedules, and --threads 2 or more");
  if (r.keys < keys_of_joins)
    throw error(fmt::format("--joins fills nodes, and --keys {} are too few", r.keys),
                fmt::format("give {} or more", keys_of_joins));
}

void check_exhaustive(const verify_request& r, const CLI::App& app) {
  if (r.every_state && !r.exhaustive) throw error("--every-state is a form of --exhaustive", "give --exhaustive, too");
  if (app.count("--window") != 0 && (!r.exhaustive || r.window == 0))
    throw error("--window is for how many answers a line may wait in an --exhaustive search",
                "give --exhaustive, and 1 or more");
  if (!r.exhaustive) return;
  refuse_beside(app,
                {"--schedules", "--search", "--schedule", "--rounds", "--seeds", "--io-log", "--library", "--crashes",
                 "--memory-order", "--program", "--scoreboard", "--performance", "--pauses", "--short-dram"},
                "--exhaustive is one history, and all of its crashes, so {} has no effect");
  if (r.threads > 1) throw error("--exhaustive searches histories of one thread", "leave --threads out");
}

// The rounds with a kill go on behind it, and then crash.
void check_kills(const verify_request& r) {
  if (!r.kills) return;
  if (r.schedules && !r.crashes) throw error("--kills is about crashes, and there are none", "give --crashes, too");
  if (!r.library.empty() || r.exhaustive || r.performance || r.search == "bounded")
    throw error("--kills is for random searches of indexes by name or subject",
                "leave --library, --exhaustive, --performance and --search bounded out");
  if (r.persistence == "eadr" || r.persistence == "gpf")
    throw error(fmt::format("under {} a kill leaves nothing that a crash could take", r.persistence),
                "leave --kills or --persistence out");
}

void check(const verify_request& r) {
  if (r.scoreboard) return check_scoreboard(r);
  if (r.clean_states != 0 || !r.markdown.empty())
    throw error("--clean-states and --markdown are about the scoreboard", "give --scoreboard, too");
  if (!r.program.empty()) return check_program(r);
  if (!r.after.empty() || !r.keep.empty())
    throw error("--after and --keep are about a program", "give its command, too: --program COMMAND");
  if (!r.io_log.empty()) return check_io_log(r);
  if (!r.check.empty() || !r.base.empty() || r.cut_off)
    throw error("--check, --base and --cut-off are about a recorded run", "give its log: --io-log FILE");
  if (r.states != 0)
    throw error("--states is about the states of a recorded run", "give --io-log FILE or --program COMMAND, too");
  if (r.indexes.empty() && r.subject.empty() && r.library.empty())
    throw error("nothing to verify", "name an index: --index NAME, or give a library: --library FILE.so");
  if (!r.library.empty() && !(r.indexes.empty() && r.subject.empty()))
    throw error("--library excludes --index and --subject", "give one of them");
  if (std::find(domains.begin(), domains.end(), r.persistence) == domains.end())
    throw error(fmt::format("there is no persistence domain '{}'", r.persistence),
                fmt::format("use one of {}", fmt::join(domains, ", ")));
  if (r.threads > most_threads)
    throw error(fmt::format("{} threads are too many", r.threads), fmt::format("give 1 to {}", most_threads));
  if (r.keys < 2) throw error("--keys must be at least 2", "leave it out for 120");
  if (!r.search.empty() && r.search != "random" && r.search != "bounded")
    throw error(fmt::format("there is no search '{}'", r.search), "use random or bounded");
  if (!r.memory_order.empty() && r.memory_order != "sc" && r.memory_order != "tso")
    throw error(fmt::format("there is no memory order '{}'", r.memory_order), "use sc or tso");
  if (r.memory_order == "tso" && r.search == "bounded")
    throw error("bounded search has no store buffers", "use --search random with --memory-order tso");
  if (r.performance && (r.crashes || r.schedules || r.threads > 1 || r.persistence == "eadr" || r.persistence == "gpf"))
    throw error("--performance counts flushes and fences of one thread, without crashes",
                "leave --crashes, --schedules, --threads and --persistence out");
  if (r.performance && r.seeds) throw error("--performance has no record of seeds", "give --seed and --rounds");
  check_kills(r);
  if (r.schedules && r.threads == 1 && r.hosts.hosts == 0)
    throw error("one thread has one schedule", "give --threads 2 or more");
}

}  // namespace

command add_verify(CLI::App& program, const arguments& command_line) {
  const auto r = std::make_shared<verify_request>();
  const auto given = std::make_shared<std::vector<std::string>>();
  const auto seeds = std::make_shared<std::string>();
  const auto pool_size = std::make_shared<std::string>();
  const auto without = std::make_shared<std::vector<std::string>>();
  CLI::App* const app =
      program.add_subcommand("verify", "Searches for crashes and schedules that an index does not survive");
  const auto value = parsed_texts_of(*app);
  app->add_option("--index", *given,
                  "NAME[,NAME...]: the indexes to verify (`pmlab list`), such as cache(cceh,mode=parallel)")
      ->type_name("")
      ->expected(1)
      ->take_all();
  app->add_option("--subject", r->subject,
                  "FILE.so: a shared object that registers an index for verification, or a combination for --index");
  app->add_option("--library", r->library, "FILE.so: a library with PiBench's interface, built by scripts/pmlab-c++");
  app->add_flag("--scans", r->scans, "scan the library too: it orders keys as unsigned integers of this machine");
  app->add_option("--without", *without,
                  "update,remove: operations that the library does not have, and that no round uses; it has no scan "
                  "unless\n--scans is given")
      ->delimiter(',')
      ->type_name("");
  app->add_option("--pool-size", *pool_size, "SIZE: pool_size of the library, such as 512MiB; 32 MiB if not given");
  app->add_option("--persistence", r->persistence,
                  "adr | eadr | gpf | gpf-may-fail: what the platform saves when the power fails; adr if not given");
  app->add_option(
      "--memory-order", r->memory_order,
      "sc | tso: rounds with threads are sequentially consistent, or have x86's store buffers; half of the\n"
      "rounds each if not given");
  app->add_flag("--crashes", r->crashes,
                "crash at every store, flush and fence; with --hosts: all of them lose power, in every round");
  app->add_flag("--performance", r->performance,
                "count flushes and fences without effect by line of the source, in place of a verdict");
  app->add_flag("--exhaustive", r->exhaustive,
                "every state of every crash point of one history of one thread, merged where recovery and check read\n"
                "the same: a complete verdict");
  app->add_flag("--every-state", r->every_state, "with --exhaustive: merge none, to check the search; short histories");
  value("--window", "",
        "N, with --exhaustive: a line that has waited for N answers is written back; for ever if not given", r->window,
        count_from_0);
  app->add_flag(
      "--kills", r->kills,
      "with --crashes, on a memory that does not write back at opening: first the process alone is killed, and "
      "the next one goes on");
  app->add_flag("--schedules", r->schedules,
                "let threads pre-empt each other at any access; with --hosts: no power failures of all");
  add_host_options(*app, r->hosts);
  app->add_flag("--pauses", r->pauses,
                "suspend threads just before atomic changes and publications, while others change much");
  app->add_flag("--joins", r->joins,
                "of an ordered index: let threads join and fill the same few nodes, about as sparse as they may be");
  app->add_flag("--short-dram", r->short_dram, "let operator new fail: for once, for a while, or for good");
  value("--threads", "", "N: logical threads; 4 with --schedules if not given, otherwise 1", r->threads, up_to(1024));
  value("--operations", "", "N: operations of each thread; 120 with one thread, otherwise 60; 1000 with --exhaustive",
        r->operations, up_to(most_operations));
  value("--keys", "", "N: different keys; 120 if not given, with --exhaustive as many as operations", r->keys,
        up_to(most_operations));
  value("--seed", "", "S: of the first round's operations; the following rounds count up", r->seed, count_from_0);
  value("--budget", "", "SECONDS for each index; 60 if not given, with --exhaustive 600", r->budget,
        bench::parse_seconds);
  value("--rounds", "", "N: so many rounds instead of a budget", r->rounds, count_from_1);
  value("--jobs", "",
        "N: processes that have rounds at the same time; if not given, the processors for a budget, and 1 for "
        "--rounds",
        r->jobs, within(0, 1024));
  app->add_option("--seeds", *seeds,
                  "A..B: the rounds of these seeds, all of them: a violation does not end the search");
  app->add_option("--out", r->out, "FOLDER: with --seeds, record counts and violations there, for `pmlab merge`");
  app->add_flag("--resume", r->resume, "With --out: go on after the last seed that is recorded");
  app->add_option("--search", r->search, "random | bounded: pre-emptions at random, or one or two at every place");
  value("--schedule", "", "S: of the first round's schedule; the round's own seed if not given", r->schedule,
        count_from_0);
  app->add_option("--steps", r->steps, "N,N,...: only these operations of a round, as a violation names them");
  app->add_flag("--all", r->all, "go on after a violation: list all distinct ones, a line each");
  app->add_option("--known", r->known, "FILE: lines that --all has printed; these violations are passed over");
  value("--shrink", "", "SECONDS spent on making the history of a violation shorter", r->shrink,
        bench::parse_seconds_or_none);
  app->add_option("--io-log", r->io_log,
                  "FILE: a log of blocks::recorded; checks the states that a crash may have left on its device");
  app->add_option(
      "--program", r->program,
      "COMMAND: runs a program with a pool (libpmemobj, libpmem), and checks the states that a crash at each\n"
      "of its stores may leave; {} becomes the path of a file that does not exist yet");
  app->add_option("--after", r->after, "MARK, with --program: crashes begin when the program has made this mark");
  app->add_option("--keep", r->keep, "PATH, with --program: of the first unsound state; NAME.crash if not given");
  app->add_option(
      "--check", r->check,
      "with --io-log and --program: COMMAND, given the path of an image, ends with status 0 if it is sound; or\n"
      "acknowledged: no write may lie in the drive's cache when the program marks an acknowledgement");
  app->add_option("--base", r->base, "FILE, with --io-log: the device's content of before the log; zeros if not given");
  value("--states", "", "N, with --io-log and --program: states at each point", r->states, count_from_1);
  app->add_flag("--cut-off", r->cut_off, "with --io-log: the log may end in the middle of a record");
  app->add_option("--scoreboard", r->bugs,
                  "[NAME,...]: searches for planted twins of published bugs: all, or these (docs/scoreboard.md)")
      ->type_name("")
      ->expected(0, 1);
  value("--clean-states", "", "N, with --scoreboard: judge N states of each twin without its defect, too",
        r->clean_states, count_from_0);
  app->add_option("--markdown", r->markdown, "FILE, with --scoreboard: write the page of the results there");
  app->add_flag("--quiet", r->quiet, "No progress on stderr");
  app->footer(
      "Without --crashes and --schedules, both. A violation ends the search of its index: it is printed with the\n"
      "shortest history that shows it, the store that was lost, and the command that shows it again. With --seeds the\n"
      "search goes on, and a history is as long as its round, unless --shrink is given. With --all it goes on, too.\n"
      "Status: 0 no violation; 1 a violation, or with --performance a line without a reason; 2 bad input; 3 the "
      "budget\n"
      "ended before an --exhaustive search or --every-death did, or before each crash point of a --program had its "
      "first states.\n\n"
      "  pmlab verify --index fast_fair --crashes --budget 10\n"
      "  pmlab verify --index cceh --crashes --schedules --threads 4 --operations 60\n"
      "  pmlab verify --index fast_fair --exhaustive --operations 1000\n"
      "  pmlab verify --index shared_ring --hosts 2 --coherence none --budget 10\n"
      "  pmlab verify --index shared_ring --hosts 3 --coherence none --every-death\n"
      "  pmlab verify --index shared_ring --hosts 2 --coherence full --crashes\n"
      "  pmlab verify --index fp_tree --seeds 1..6400 --out campaign\n"
      "  pmlab verify --library ./libmine.so --crashes\n"
      "  pmlab verify --library ./libmine.so --all > known; pmlab verify --library ./libmine.so --all --known known\n"
      "  pmlab verify --scoreboard\n"
      "  pmlab verify --io-log run.log --check ./open-and-check\n"
      "  pmlab verify --program './store run {}' --check './store check'");
  return {app, [r, given, seeds, pool_size, without, app, command_line] {
            r->indexes = index_names(*given);
            r->scoreboard = app->count("--scoreboard") != 0;
            r->schedule_given = app->count("--schedule") != 0;
            if (app->count("--seeds") != 0) r->seeds = read_seeds(*seeds);
            // How far it gets depends on the machine's speed; the record of a range does not.
            if (r->seeds && app->count("--shrink") == 0) r->shrink = 0;
            if (!without->empty()) read_without(*without, *r);
            if (!pool_size->empty()) r->pool_bytes = read_pool_size(*pool_size, *r);
            check_seeds(*r, *app);
            check_exhaustive(*r, *app);
            check_joins(*r, *app);
            check_jobs(*r, *app);
            check_known(*r, *app);
            check_host_options(*app, r->threads, r->hosts);
            r->keys_given = app->count("--keys") != 0;
            r->budget_given = app->count("--budget") != 0;
            check(*r);
            return verify(*r, command_line);
          }};
}

}  // namespace pmlab::cli
