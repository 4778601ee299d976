// `pmlab verify` in the program that has the simulated machine.
#include "checker/simulator/machine/hosts.hpp"
#include "checker/simulator/machine/machine.hpp"
#include "checker/simulator/simulated_library.hpp"
#include "checker/verify/campaign.hpp"
#include "checker/verify/child_run.hpp"
#include "checker/verify/history_model.hpp"
#include "checker/verify/library_subject.hpp"
#include "checker/verify/reached_code.hpp"
#include "checker/verify/source_lines.hpp"
#include "checker/verify/subjects.hpp"
#include "tools/cli/campaign_record.hpp"
#include "tools/cli/known_violations.hpp"
#include "tools/cli/verify_performance.hpp"
#include "tools/cli/verify_run.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/lists.hpp"
#include "bench/support/progress.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/shell_form.hpp"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <sched.h>

namespace pmlab::cli {

std::vector<std::size_t> parse_steps(const std::string& text) {
  if (text.empty()) return {};
  return bench::list_of(
      text, [](const std::string& number) -> std::size_t { return bench::parse_count(number, "--steps", 0); });
}

std::string made_with(const verify_request& request, const std::string& name) {
  if (request.subject.empty()) return "--index " + shell_form(name);
  return "--subject " + request.subject + (request.indexes.empty() ? "" : " --index " + shell_form(name));
}

void print(const verify::violation& v, const std::string& replay) {
  fmt::print("\n  {}\n", verify::with_source_lines(v.what));
  fmt::print("  history ({} of the round's {} operations):\n", v.history.size(), v.operations);
  for (const std::string& step : v.history) fmt::print("    {}\n", step);
  fmt::print("  to reproduce it:\n    {}\n", replay);
  if (!v.replayed_behind)
    fmt::print(
        "  no command was found that shows it again: in a new process neither this round does, nor does it behind "
        "others.\n"
        "  The subject keeps something from round to round (a static, a thread-local, memory that is not freed), or\n"
        "  depends on something outside of the machine. The search itself may show it again\n");
  else if (*v.replayed_behind != 0)
    fmt::print(
        "  in a new process the last of these {} rounds alone does not show it: the subject keeps something from "
        "round\n"
        "  to round (a static, a thread-local, memory that is not freed)\n",
        *v.replayed_behind + 1);
  std::fflush(stdout);
}

namespace {

using verify::campaign_options;
using verify::campaign_result;
using verify::round_counts;

// The processors that this process may use. Rounds fill them, and each process has its own memory.
unsigned usual_jobs() {
  cpu_set_t usable;
  if (::sched_getaffinity(0, sizeof usable, &usable) != 0) return 1;
  return static_cast<unsigned>(std::clamp(CPU_COUNT(&usable), 1, static_cast<int>(most_jobs)));
}

campaign_options options_of(const verify_request& r) {
  campaign_options o;
  const bool neither = !r.crashes && !r.schedules;
  o.crashes = r.crashes || neither;
  o.schedules = r.schedules || (neither && r.threads != 1);
  if (!r.memory_order.empty()) o.order = r.memory_order == "tso" ? verify::memory_order::tso : verify::memory_order::sc;
  o.round.threads = r.threads != 0 ? r.threads : o.schedules ? 4 : 1;
  o.round.operations = r.operations != 0 ? r.operations : o.round.threads > 1 ? 60 : 120;
  o.round.keys = r.keys;
  if (r.hosts.hosts != 0) {
    // A replay names the schedule: without --crashes it has none.
    const bool has_some = neither && !r.schedule_given && !r.hosts.every_death && r.hosts.death.empty();
    o.crashes = r.crashes || (has_some && !r.hosts.as_is);
    o.schedules = true;
    o.round.threads = r.hosts.hosts * std::max(r.threads, 1U);
    if (r.operations == 0) o.round.operations = r.hosts.every_death ? 12 : 30;
    o.round.hosts = host_options_of(r.hosts);
    o.every_death = r.hosts.every_death;
    const bool is_one = r.hosts.every_death || !r.hosts.death.empty();
    o.threads_by_seed = r.threads == 0 && !is_one;
    o.operations_by_seed = r.operations == 0 && !is_one;
  }
  o.round.seed = r.seed;
  o.round.how = r.search == "bounded" ? verify::search::bounded : verify::search::random;
  o.round.schedule_seed = r.schedule_given ? r.schedule : 1;
  // A replay names the schedule, and with it the kind of the round.
  o.schedule_follows_seed = !r.schedule_given;
  o.mixed = r.hosts.hosts != 0 ? !r.crashes : !r.schedule_given;
  o.round.short_dram = r.short_dram;
  o.round.kills = r.kills;
  o.round.pauses = r.pauses;
  o.round.joining = r.joins;
  o.round.steps = parse_steps(r.steps);
  o.budget_seconds = r.budget;
  o.rounds = r.rounds;
  // So many rounds are the same in any number of processes; which of two violations comes first is not.
  o.jobs = r.jobs != 0 ? r.jobs : r.rounds != 0 || r.seeds ? 1 : usual_jobs();
  // A single round is a replay.
  o.shrink_seconds = r.steps.empty() && r.rounds != 1 ? r.shrink : 0;
  // So it is as the report names it.
  o.finds_miss = o.shrink_seconds > 0 || (r.hosts.stale_loads == all_stale_loads && r.rounds != 1);
  // A range is as long as it takes.
  constexpr double weeks = 1e7;
  if (r.seeds) o.budget_seconds = weeks;
  return o;
}

std::string counts_in_words(const round_counts& counts, double seconds) {
  std::string text = fmt::format("{} rounds", counts.rounds);
  if (counts.crash.states != 0)
    text += fmt::format(", {} crash states ({} different ones judged, {} of them of recoveries; {:.0f}/s)",
                        counts.crash.states, counts.crash.judged, counts.crash.in_recovery,
                        static_cast<double>(counts.crash.judged) / seconds);
  if (counts.crash.lost_lines + counts.crash.lost_units != 0)
    text += fmt::format("; {} had lost stores to memory, {} writes to a drive, {} both", counts.crash.lost_lines,
                        counts.crash.lost_units, counts.crash.lost_both);
  if (counts.hosts.write_backs + counts.hosts.stale_loads != 0)
    text += fmt::format(", {} write-backs, {} stale loads, {} clobbers", counts.hosts.write_backs,
                        counts.hosts.stale_loads, counts.hosts.clobbers);
  if (counts.hosts.deaths != 0)
    text += fmt::format(", {} deaths with {} lost stores", counts.hosts.deaths, counts.hosts.lost_stores);
  if (counts.schedules != 0)
    text += fmt::format(", {} schedules ({:.0f}/s)", counts.schedules, static_cast<double>(counts.schedules) / seconds);
  return text;
}

// The moments of the deaths: before each access of each host in the round without a death, and behind its last one.
std::uint64_t moments_of(const simulator::host_counts& counts) {
  return std::accumulate(counts.events.begin(), counts.events.end(), std::uint64_t{0});
}

std::string deaths_in_words(const simulator::host_counts& counts, bool found) {
  const std::uint64_t moments = moments_of(counts);
  if (moments == 0) return "no host has died yet";
  std::string text = fmt::format("a host died at {} of {} moments", counts.tried, moments);
  if (counts.divided != 0)
    text += fmt::format(", at {} of them with {} of more choices", counts.divided, simulator::one_death::most_choices);
  if (found) return text;
  if (counts.differing != 0)
    return text + fmt::format(
                      ": not complete; {} rounds differ from the one before them, so the index keeps something "
                      "between them, or depends on time",
                      counts.differing);
  if (counts.tried < moments) return text + ": not complete; give a larger --budget, or fewer --operations";
  return text + (counts.divided == 0 ? ": complete for this history and schedule" : "");
}

// A host that was to die has done less.
void check_died(const verify_request& request, const campaign_result& result) {
  const simulator::host_counts& hosts = result.counts.hosts;
  if (request.hosts.death.empty() || result.found) return;
  const bool too_far = hosts.deaths != 0 && request.hosts.death_numbers()[2] >= hosts.choices;
  if (hosts.deaths != 0 && !too_far) return;
  throw error(
      fmt::format("--death {}: ", request.hosts.death) +
          (too_far ? fmt::format("this death has {} choice{}, from 0 on", hosts.choices, hosts.choices == 1 ? "" : "s")
                   : "the host has fewer accesses in this round"),
      "give all options of the command that the violation has printed");
}

std::string replay_command(const verify_request& request, const std::string& name, const verify::violation& found) {
  const verify::round_options& round = found.round;
  const std::uint64_t before = found.replayed_behind.value_or(0);
  std::string text = "pmlab verify ";
  if (!request.library.empty())
    text += "--library " + request.library + (request.scans ? " --scans" : "") +
            (request.without_update ? " --without update" : "") + (request.without_remove ? " --without remove" : "") +
            (request.pool_bytes != 0 ? fmt::format(" --pool-size {}", request.pool_bytes) : "");
  else
    text += made_with(request, name);
  if (request.persistence != "adr") text += " --persistence " + request.persistence;
  if (round.crashes) text += " --crashes";
  if (round.hosts)
    text += replay_of(*round.hosts, request.hosts.as_is);
  else if (round.threads > 1)
    text += " --schedules";
  if (round.short_dram) text += " --short-dram";
  if (round.kills) text += " --kills";
  if (round.pauses) text += " --pauses";
  if (round.joining) text += " --joins";
  text += fmt::format(" --threads {} --operations {} --keys {} --seed {}",
                      round.threads / (round.hosts ? round.hosts->hosts : 1), round.operations, round.keys,
                      round.seed - before);
  if (round.threads > 1) {
    if (round.how == verify::search::bounded) text += " --search bounded";
    text += fmt::format(" --schedule {}", round.schedule_seed);
    if (round.how == verify::search::random)
      text += std::string(" --memory-order ") + (round.store_buffers ? "tso" : "sc");
  }
  if (!round.steps.empty()) text += fmt::format(" --steps {}", fmt::join(round.steps, ","));
  return text + fmt::format(" --rounds {}", before + 1);
}

// As many as the command line accepts.
static_assert(verify::history_model::most_threads >= 16);
static_assert(keys_of_joins == verify::keys_of_long_rounds);
static_assert(verify::most_jobs == most_jobs);

// The seconds that this index and the `others` after it still need. A run by rounds knows from its first ones.
std::optional<double> seconds_left(const campaign_options& options, const round_counts& counts, double seconds,
                                   std::size_t others) {
  if (options.rounds == 0)
    return std::max(0.0, options.budget_seconds - seconds) + static_cast<double>(others) * options.budget_seconds;
  constexpr std::uint64_t telling = 3;
  if (counts.rounds < telling) return std::nullopt;
  const double each = seconds / static_cast<double>(counts.rounds);
  const std::uint64_t rounds = options.rounds - std::min(options.rounds, counts.rounds) + others * options.rounds;
  return each * static_cast<double>(rounds);
}

// Bad input is no verdict.
void check_able(const std::string& name, const campaign_result& result) {
  if (!result.problem.empty())
    throw error(name + " cannot be verified: " + verify::with_source_lines(result.problem), result.remedy);
}

// The functions of a library that the rounds did not reach: there is no verdict on them.
void print_reached(const verify::subject& kind) {
  const verify::reached_code* const code = verify::code_of(kind);
  if (code == nullptr) return;
  const verify::reached_functions functions = code->functions();
  if (functions.all == 0) return;
  fmt::print("  reached {} of the {} functions that access memory", functions.all - functions.never.size(),
             functions.all);
  constexpr std::size_t most = 20;
  for (std::size_t i = 0; i < std::min(most, functions.never.size()); ++i)
    fmt::print("{}{}", i == 0 ? "; never reached: " : ", ", functions.never[i]);
  if (functions.never.size() > most) fmt::print(", and {} more", functions.never.size() - most);
  fmt::print("\n");
}

// The exit status. `others`: indexes that will be verified after this one.
int verify_one(const verify_request& request, const verify::subject& kind, std::size_t others,
               known_violations& known) {
  const std::string& name = kind.name;
  campaign_options options = options_of(request);
  if (request.kills && (kind.prefix != nullptr || kind.volume != nullptr))
    throw error(name + " is a store, and --kills is for indexes", "leave one of them out");
  bench::progress shown(bench::progress::style_of_stderr(request.quiet));
  shown.pass(options.rounds == 0 ? fmt::format("{}: verifying for {} s", name, options.budget_seconds)
                                 : fmt::format("{}: verifying {} rounds", name, options.rounds));
  known.begin_subject();
  std::size_t listed = 0;
  if (request.all || !request.known.empty())
    options.goes_on = [&](const verify::violation& found) {
      const std::string line = line_of(name, found);
      if (known.holds(line)) return true;
      if (!request.all) return false;
      verify::violation listed_one = found;
      verify::find_replay(kind, listed_one);
      shown.clear();
      fmt::print("{}{}{}\n", line, replay_command(request, name, listed_one),
                 listed_one.replayed_behind ? "" : "  (a new process does not show it)");
      std::fflush(stdout);
      known.add(line);
      ++listed;
      return true;
    };
  const campaign_result result = verify::run_campaign(kind, options, [&](const round_counts& counts, double seconds) {
    shown.show(
        fmt::format("{} rounds, {} crash states, {} schedules", counts.rounds, counts.crash.states, counts.schedules),
        seconds_left(options, counts, seconds, others));
  });
  shown.clear();
  check_able(name, result);
  check_died(request, result);
  const bool explored = result.counts.rounds != 0 || result.counts.crash.judged != 0;
  const bool some = result.found || listed != 0 || known.seen() != 0;
  if (!explored && !some)
    throw error(fmt::format("{} was not explored: in {:.1f} s no round has ended, and no crash state was judged", name,
                            result.seconds),
                "give a larger --budget");
  fmt::print("{}: {} in {:.1f} s: {}\n", name, counts_in_words(result.counts, result.seconds), result.seconds,
             result.found || listed == 1 ? "1 VIOLATION"
             : listed != 0               ? fmt::format("{} VIOLATIONS", listed)
             : known.seen() != 0         ? "no other violation"
                                         : "no violation");
  if (const std::size_t seen = known.seen(); seen != 0)
    fmt::print("  {} known violation{} seen again\n", seen, seen == 1 ? " was" : "s were");
  const simulator::host_counts& hosts = result.counts.hosts;
  if (options.every_death) fmt::print("  {}\n", deaths_in_words(hosts, result.found.has_value()));
  if (!result.found) {
    print_reached(kind);
    if (options.every_death && (hosts.tried < moments_of(hosts) || hosts.differing != 0)) return not_complete;
    return listed == 0 ? success : failure;
  }
  print(*result.found, replay_command(request, name, *result.found));
  return failure;
}

// Every seed of the range that is not recorded yet. Each round has a process of its own, as its replay has: rounds
// before it leave traces in a process (statics, first uses), and a range must have the same figures in however many
// parts it is verified.
void verify_seeds_of(const verify_request& request, const verify::subject& kind, std::size_t number,
                     campaign_record& record) {
  const seed_range range = *request.seeds;
  campaign_options options = options_of(request);
  options.rounds = 1;
  bench::progress shown(bench::progress::style_of_stderr(request.quiet));
  shown.pass(fmt::format("{}: verifying seeds {}..{}", kind.name, range.first, range.last));
  double seconds = 0, saved_at = 0;
  std::size_t printed = 0;
  for (std::uint64_t seed = record.next_seed(number); seed <= range.last; ++seed) {
    options.round.seed = seed;
    const campaign_result result = verify::run_campaign(kind, options, {});
    check_able(kind.name, result);
    if (!result.found && result.counts.rounds != 1)
      throw std::runtime_error(fmt::format("{}: the round of seed {} did not end", kind.name, seed));
    const std::string replay = result.found ? replay_command(request, kind.name, *result.found) : "";
    record.add(number, result.counts, seed, result.seconds, result.found ? &*result.found : nullptr, replay);
    seconds += result.seconds;
    // A kill loses no more than the rounds since the last time.
    constexpr double between_saves = 0.5;
    if (seconds - saved_at >= between_saves || result.found) {
      record.save();
      saved_at = seconds;
    }
    const std::size_t found = record.violations(number);
    shown.show(
        fmt::format("seed {} of {}..{}, {} violation{}", seed, range.first, range.last, found, found == 1 ? "" : "s"),
        seconds / static_cast<double>(seed - range.first + 1) * static_cast<double>(range.last - seed));
    constexpr std::size_t most_printed = 3;
    if (!result.found || printed == most_printed) continue;
    shown.clear();
    fmt::print("{}: seed {}:\n", kind.name, seed);
    print(*result.found, replay);
    if (++printed == most_printed && !request.out.empty())
      fmt::print("{}: further violations are in the record only\n", kind.name);
  }
  record.save();
  shown.clear();
  const std::size_t found = record.violations(number);
  fmt::print("{}: seeds {}..{}: {} in {:.1f} s: {}\n", kind.name, range.first, range.last,
             counts_in_words(record.counts(number), std::max(seconds, 1e-3)), seconds,
             found == 0 ? std::string("no violation") : fmt::format("{} VIOLATION{}", found, found == 1 ? "" : "S"));
}

bool verify_seeds(const verify_request& request, const std::vector<const verify::subject*>& kinds,
                  const arguments& command_line) {
  std::vector<std::string> names;
  for (const verify::subject* kind : kinds) names.push_back(kind->name);
  campaign_record record(request, options_of(request), names, command_line);
  bool clean = true;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    verify_seeds_of(request, *kinds[i], i, record);
    clean = clean && record.violations(i) == 0;
  }
  return clean;
}

// Jobs of a cluster take status 1 for a violation, and for nothing else.
int status_of_seeds(const verify_request& request, const std::vector<const verify::subject*>& kinds,
                    const arguments& command_line) {
  try {
    return verify_seeds(request, kinds, command_line) ? success : failure;
  } catch (const error&) {
    throw;
  } catch (const std::exception& e) {
    throw error(e.what(), request.out.empty() ? "run it again" : "give --resume to go on");
  }
}

}  // namespace

int verify(const verify_request& request, const arguments& command_line) {
  if (request.scoreboard)
    throw error("--scoreboard starts pmlab-simulated for each planted defect", "use `pmlab verify --scoreboard`");
  if (!request.io_log.empty()) return verify_io_log(request);
  if (!request.program.empty()) return verify_program(request);
  simulator::the_machine().lose_power_as(
      media::persistence_domain_of(request.persistence).value_or(media::persistence_domain::adr));
  std::vector<const verify::subject*> kinds;
  if (!request.library.empty())
    kinds.push_back(&verify::load_library(request.library, request.scans,
                                          request.pool_bytes != 0 ? request.pool_bytes : verify::usual_pool_bytes,
                                          {.update = request.without_update, .erase = request.without_remove}));
  if (!request.subject.empty()) {
    const std::string loaded = verify::load_subject(request.subject);
    simulator::check_debug_information(request.subject);
    if (loaded.empty() && request.indexes.empty())
      throw error(request.subject + " registers no index of its own", "name its parts by --index");
    if (request.indexes.empty()) kinds.push_back(&verify::find_subject(loaded));
  }
  for (const std::string& name : request.indexes) kinds.push_back(&verify::find_subject(name));
  for (const verify::subject* kind : kinds)
    if (request.joins && !(kind->ordered && kind->volume == nullptr && kind->prefix == nullptr))
      throw error(kind->name + " has no order, so no nodes of it are joined",
                  "name ordered indexes, or leave --joins out");
  if (request.hosts.hosts != 0)
    for (const verify::subject* kind : kinds) {
      const unsigned opened = request.hosts.hosts + 1;  // one more starts at the end of a round
      if (verify::code_of(*kind) != nullptr)
        verify::open_library_on_hosts(opened);
      else
        verify::open_on_hosts(kind->name, opened, request.hosts.as_is);
    }
  if (request.exhaustive) return verify_completely(request, kinds);
  if (request.seeds) return status_of_seeds(request, kinds, command_line);
  if (request.performance) {
    bool clean = true;
    for (const verify::subject* kind : kinds)
      clean = print_performance(*kind, options_of(request), request.quiet) && clean;
    return clean ? success : failure;
  }
  known_violations known(request.known);
  int worst = success;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const int status = verify_one(request, *kinds[i], kinds.size() - i - 1, known);
    if (status == failure || worst == success) worst = status;
  }
  return worst;
}

}  // namespace pmlab::cli
