// `pmlab pod`: processes as hosts of one memory, some of which are killed.
#include "tools/cli/command.hpp"
#include "tools/cli/complaint.hpp"
#include "tools/pod/host_process.hpp"
#include "tools/pod/run.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/suggest.hpp>
#include "bench/support/progress.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

struct pod_request {
  pods::run_options options;
  std::string coherence = "full";
  std::string omit;
  std::uint32_t keys = 0, rounds = 20, operations = 4000, stays = 2, seed = 1;
  bool quiet = false;
};

simulator::coherence coherence_of(const std::string& name) {
  if (const auto found = simulator::coherence_of(name)) return *found;
  throw error(fmt::format("--coherence '{}' is unknown", name),
              fmt::format("use {}", fmt::join(simulator::coherence_names, ", ")));
}

pods::run_options options_of(const pod_request& r) {
  pods::run_options o = r.options;
  const auto& names = pods::shared_indexes();
  if (std::find(names.begin(), names.end(), o.index) == names.end())
    throw error(fmt::format("index '{}' is not made to be shared by hosts", o.index),
                fmt::format("use {}", fmt::join(names, ", ")));
  o.lines = coherence_of(r.coherence);
  if (o.kills >= o.hosts)
    throw error(fmt::format("--kills is {}, of {} hosts", o.kills, o.hosts),
                fmt::format("give 0 to {}: one goes on", o.hosts - 1));
  if (o.has_stale_copies && o.lines == simulator::coherence::full)
    throw error("--stale-copies has no effect with --coherence full", "give --coherence partial or none, too");
  if (!o.has_stale_copies && o.lines == simulator::coherence::none)
    throw error(
        "with --coherence none hosts exclude each other by the device alone, and this machine has no such device",
        "give --stale-copies, too, which stands for one");
  if (!r.omit.empty() && !o.has_stale_copies)
    throw error("--omit is about --stale-copies", "give --stale-copies, too, or leave it out");
  if (r.omit == "refresh")
    o.faults.refreshes_nothing = true;
  else if (r.omit == "publish")
    o.faults.publishes_nothing = true;
  else if (!r.omit.empty())
    throw error(fmt::format("--omit '{}' is unknown", r.omit), "use refresh, publish");
  // A ring has room for six entries in each of 32 buckets, the map on a space for eleven in each of eight.
  o.keys = r.keys != 0 ? r.keys : o.index == "shared_ring" || o.index == "shared_space" ? 48 : 2000;
  o.rounds = r.rounds;
  o.operations = r.operations;
  if (r.stays > r.operations)
    throw error(fmt::format("--stays is {}, with {} operations of a host", r.stays, r.operations),
                "give an operation to each");
  o.stays = r.stays;
  o.seed = r.seed;
  if (o.folder.empty()) {
    const char* const pools = std::getenv("PMLAB_POOLS");
    o.folder = pools != nullptr && *pools != '\0' ? pools : "/dev/shm";
  }
  std::error_code ignored;
  if (!std::filesystem::is_directory(o.folder, ignored))
    throw error(fmt::format("{} is no folder", o.folder), "name one for the files of the hosts with --folder");
  return o;
}

std::string summary(const std::string& name, const pods::run_result& r) {
  std::string text = fmt::format("{}: {} rounds, {} operations", name, r.rounds, r.operations);
  if (r.killed != 0)
    text += fmt::format(", {} hosts killed ({} in the middle of an operation), {} joined in their place", r.killed,
                        r.in_operation, r.followed);
  if (r.happened != 0) text += fmt::format(", {} lines came or went by chance", r.happened);
  if (!r.pauses.empty()) {
    std::vector<double> sorted = r.pauses;
    std::sort(sorted.begin(), sorted.end());
    text += fmt::format("; longest operation of the others behind a kill: median {:.2f} ms, at most {:.2f} ms",
                        sorted[sorted.size() / 2], sorted.back());
  }
  return text;
}

int run_pod(const pod_request& r) {
  const pods::run_options o = options_of(r);
  bench::progress shown(bench::progress::style_of_stderr(r.quiet));
  const pods::run_result result = pods::run(o, [&](const pods::run_result& so_far) {
    shown.pass(fmt::format("{}: {} of {} rounds", o.index, so_far.rounds, o.rounds));
  });
  shown.clear();
  if (result.violation.empty()) {
    fmt::print("{}: no violation\n", summary(o.index, result));
    return success;
  }
  fmt::print("{}: violation in round {}\n  {}\n  its memory is kept: {}\n", summary(o.index, result), result.rounds,
             result.violation, result.kept);
  return failure;
}

}  // namespace

command add_pod(CLI::App& program) {
  CLI::App* const app =
      program.add_subcommand("pod", "Runs processes as hosts of one memory, kills some, and judges all answers");
  const auto asked = std::make_shared<pod_request>();
  const auto text = texts_of(*app);
  const auto value = parsed_texts_of(*app);
  text(
      "--index", asked->options.index,
      "NAME: shared_dash | shared_ring | shared_tree | shared_space, a map that allocates and releases a block in each "
      "change; default: shared_tree");
  value("--hosts", "4", "N: so many processes at a time, 2 to 8; default: 4", asked->options.hosts,
        within(2, pods::most_hosts));
  value("--kills", "1", "N: so many of them are killed in a round; default: 1", asked->options.kills,
        within(0, pods::most_hosts));
  text("--coherence", asked->coherence, "full | partial | none: which lines are coherent; default: full");
  app->add_flag("--stale-copies", asked->options.has_stale_copies,
                "Each process has a copy of the lines that are not coherent, and loses what it has not written back");
  text("--omit", asked->omit, "refresh | publish: with --stale-copies, leave this out. The run must find it");
  value("--rounds", "20", "N: rounds, each on a new memory; default: 20", asked->rounds, up_to(1'000'000));
  value("--operations", "4000", "N: operations of each process; default: 4000", asked->operations,
        up_to(pods::most_operations));
  value("--stays", "2", "N: a host leaves and joins again between as many parts of them; default: 2", asked->stays,
        up_to(1'000));
  value("--keys", "", "N: keys of a round; default: 2000, of shared_ring and shared_space 48", asked->keys,
        up_to(100'000));
  value("--seed", "1", "N: of the first round; default: 1", asked->seed, up_to(1'000'000'000));
  text("--folder", asked->options.folder, "FOLDER: for the files of the memories; default: PMLAB_POOLS or /dev/shm");
  app->add_flag("--quiet", asked->quiet, "No progress on stderr");
  app->footer(
      "Every answer is logged with its times. All answers of all processes must be those of one index, key by key,\n"
      "and so must what a host finds that joins at the end, and one that opens the memory alone. No block may be "
      "lost.\n"
      "Status: 0 no violation; 1 a violation; 2 bad input. docs/hosts.md\n\n"
      "  pmlab pod --index shared_tree --hosts 4 --rounds 200\n"
      "  pmlab pod --index shared_dash --coherence partial --stale-copies\n"
      "  pmlab pod --index shared_dash --coherence none --stale-copies --omit refresh");
  return {app, [asked] { return run_pod(*asked); }};
}

}  // namespace pmlab::cli
