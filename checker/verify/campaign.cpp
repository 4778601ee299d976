// Round after round of an index.
#include "checker/verify/campaign.hpp"
#include "checker/verify/child_run.hpp"
#include "checker/verify/elapsed.hpp"
#include "checker/verify/hosts/host_round.hpp"
#include "checker/verify/library_subject.hpp"
#include "checker/verify/volume.hpp"
#include <pmlab/base/hash.hpp>

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>

namespace pmlab::verify {
namespace {

using clock = std::chrono::steady_clock;

// The numbers of all operations of a round that are kept.
std::vector<std::size_t> kept_steps(const round_options& options) {
  if (!options.steps.empty()) return options.steps;
  std::vector<std::size_t> all(options.all_operations());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

// The words of a violation before its first number or address. Only a history of the same violation replaces a report.
std::string_view kind_of(std::string_view what) { return what.substr(0, what.find_first_of("0123456789{")); }

bool is_the_same(const child_outcome& outcome, const violation& found) {
  return outcome.violated && kind_of(outcome.what) == kind_of(found.what);
}

// The round in a process of its own, with its schedule and the next ones.
child_outcome try_schedules(const subject& kind, const round_options& options, std::uint64_t schedules,
                            double seconds) {
  round_counts ignored;
  return run_rounds_in_child(kind,
                             [&](std::uint64_t number, round_options& round) {
                               round = options;
                               round.schedule_seed += number * 1'000'003;
                               return number < schedules;
                             },
                             seconds, ignored, {});
}

// True if the round still shows the violation, with this schedule or one of the next few, within `seconds`: `options`
// and `found` then describe it.
bool still_violates(const subject& kind, round_options& options, violation& found, double seconds) {
  constexpr std::uint64_t schedules = 24;
  const bool many = options.threads > 1 && options.how == search::random;
  child_outcome outcome = try_schedules(kind, options, many ? schedules : 1, seconds);
  // Its replay has no other schedule before it.
  if (outcome.rounds_before != 0 && is_the_same(outcome, found))
    outcome = try_schedules(kind, outcome.round, 1, seconds);
  if (!is_the_same(outcome, found)) return false;
  options = outcome.round;
  found.what = outcome.what;
  found.history = outcome.history;
  return true;
}

bool has_store_buffers(const round_options& round, memory_order order) {
  if (round.threads == 1 || round.how == search::bounded) return false;
  // A mixed order goes by the seed: the form of a round follows its low bits.
  return order == memory_order::tso || (order == memory_order::by_seed && (mix_bits(round.schedule_seed) & 1) != 0);
}

// A search of all schedules with few preemptions, of one history.
bool is_bounded(const campaign_options& options) {
  return options.round.how == search::bounded && options.round.threads > 1;
}

constexpr std::uint64_t nearly_full_number = 12;  // one round in sixteen has it

bool can_be_full(const subject& kind) {
  return kind.prefix != nullptr || (kind.volume != nullptr ? kind.volume->shape.fills_up : kind.fills_up);
}

// Whether rounds of an index can go on after a crash.
bool goes_on(const subject& kind) {
  return !kind.reserves_sentinels && (kind.open_image != nullptr || kind.open_image_on_drives != nullptr);
}

// Two of the numbers whose rounds have no special form.
bool has_joins_by_seed(std::uint64_t seed) { return seed % 16 == 8 || seed % 16 == 15; }

// Each state of a library is searched for hundreds or thousands of keys.
void use_few_states(crash_options& crash) {
  crash.points_one_in = 12;
  crash.states_per_point = 8;
}

// The form of a round: of sixteen, seven have no special form.
void choose_form(const subject& kind, round_options& round, std::uint64_t seed) {
  const std::uint64_t number = seed % 16;
  round.nearly_full = round.crash.nearly_full = number == nearly_full_number && can_be_full(kind);
  if (kind.prefix != nullptr) {
    round.full = false;
    if (round.crashes && (number == 7 || number == 10)) round.reopenings = 1;
    return;
  }
  if (kind.volume != nullptr) {
    round.full = round.full || number == 6;
    if (round.crashes && (number == 7 || number == 10)) round.reopenings = 1;
    return;
  }
  // Records of many words make a round of many points, most of them alike.
  if (kind.fills_up) round.crash.points_one_in = 8;
  // Most libraries promise nothing where space is short, and each state of a grown one takes long.
  const bool is_library = code_of(kind) != nullptr;
  if (!(goes_on(kind) || is_library) || round.how == search::bounded) return;
  if (!is_library) round.full = round.full || number == 6 || number == 14;
  // Short ones and long ones, see below.
  const bool continues = number == 0 || number == 7 || number == 10 || (round.near_split && !is_library);
  if (round.crashes && continues) round.reopenings = 1 + (!round.grown && seed / 16 % 4 == 0 ? 1 : 0);
  if (round.joining) {
    round.crash.states_per_point = 12;
    round.crash.states_per_promise = 12;
    round.crash.crash_recovery_one_in = 200;
    if (is_library) use_few_states(round.crash);
    return;
  }
  if (round.keys >= keys_of_long_rounds && (kind.ordered ? number == 3 || number == 13 : is_library && number == 3)) {
    round.thin = true;
    round.operations = std::min<std::size_t>(round.operations, round.threads > 1 ? 24 : 60);
    round.crash.states_per_point = 12;
    round.crash.states_per_promise = 12;
    if (round.threads == 1) round.crash.points_one_in = 3;
    round.crash.crash_recovery_one_in = 200;
    if (is_library) use_few_states(round.crash);
  }
  if (kind.loads && round.keys >= keys_of_long_rounds && number == 9) {
    round.loaded = true;
    round.operations = std::min<std::size_t>(round.operations, 8);
    round.crash.states_per_point = 16;
    round.crash.states_per_promise = 16;
    round.full = seed / 16 % 2 == 1;
  }
}

// Threads collide if there are few keys. `are_alone`: schedules without crashes, which are so many that some may take
// longer: a thread of the subject's own takes part in what others do some operations later, and nodes that twelve keys
// lie in change their form.
void let_threads_collide(const subject& kind, round_options& round, std::uint64_t seed, bool are_alone) {
  const std::uint64_t form = seed / 4 % 4;
  if (form == 3 || (form == 1 && !are_alone)) return;
  const bool is_long = are_alone ? form != 0 : kind.has_threads;
  round.operations = std::min<std::size_t>(round.operations, !is_long ? 12 : form == 1 ? 60 : 30);
  round.keys = std::min<std::size_t>(round.keys, form == 1 ? 12 : keys_of_one_place);
}

}  // namespace

round_options round_of(const subject& subject, const campaign_options& options, std::uint64_t seed) {
  round_options round = options.round;
  const bool several = options.schedules && round.threads > 1;
  std::uint64_t kind = several ? options.crashes ? 2 : 1 : 0;
  // Few crashes of one thread, which take by far the longest. Chosen by numbers that have no factor in common with
  // those below, so that each kind occurs with each size.
  if (kind == 2 && options.mixed && round.how == search::random) kind = seed % 31 == 0 ? 0 : seed % 5 == 1 ? 1 : 2;
  round.seed = seed;
  if (round.how == search::random && options.schedule_follows_seed) round.schedule_seed = seed;
  round.crashes = options.crashes && kind != 1;
  if (round.hosts) {
    round.crashes = options.crashes && (!options.mixed || (subject.survives_power_failure && has_power_failures(seed)));
    round.branching = seed % 16 == 4;
    // A table of so few keys as others have never splits.
    round.grown = round.near_split = subject.key_of_hash != nullptr && seed % 3 == 0;
    // Much of the time of such a round is over before its first operation.
    if (options.operations_by_seed && round.grown) round.operations *= 3;
    if (options.threads_by_seed && has_two_threads(seed, round.threads)) round.threads *= 2;
    round.store_buffers = has_store_buffers(round, options.order);
    return host_round_of(round);
  }
  const bool is_index = subject.volume == nullptr && subject.prefix == nullptr;
  const bool joins_by_seed = options.joins_by_seed && has_joins_by_seed(seed) && code_of(subject) == nullptr;
  round.joining = (round.joining || joins_by_seed) && is_index && subject.ordered && !subject.missing.erase &&
                  kind != 0 && round.how == search::random && round.keys >= keys_of_long_rounds;
  // What a process that was killed in a split has left undone is rare elsewhere.
  const bool is_killed_in_a_split = round.kills && is_index && seed % 4 == 1;
  const bool begins_grown = (seed % 16 == 5 || is_killed_in_a_split) && !round.joining;
  const bool is_in_use = begins_grown && subject.fills_up;
  round.grown = round.grown || begins_grown;
  if (is_in_use) {
    // A store whose drive is in use, and few operations on few keys: its space is collected beside them.
    round.operations = std::min<std::size_t>(round.operations, round.threads > 1 ? 12 : 40);
  } else if (begins_grown) {
    // Twelve operations from just before a split.
    round.near_split = seed / 16 % 2 == 1 || is_killed_in_a_split;
    round.full = !is_killed_in_a_split && seed / 16 % (subject.open_replica_on_image != nullptr ? 2 : 3) == 1;
    // Rounds without crashes are many: shards that grow at the same time need some operations more.
    const std::size_t most = kind == 1 && subject.key_of_hash ? 20 : round.threads > 1 ? 6 : 12;
    round.operations = std::min(round.operations, most);
    round.crash.states_per_point = 16;
  }
  if (round.grown && code_of(subject) != nullptr) use_few_states(round.crash);
  round.branching = seed % 16 == 4;
  // Threads cut the same compressed path, and make it whole again.
  const bool cuts = round.branching && is_index && kind != 0 && seed / 16 % 2 == 1 && round.how == search::random;
  if (cuts) round.keys = std::min<std::size_t>(round.keys, 12);
  if (kind == 0) round.threads = 1;
  round.store_buffers = has_store_buffers(round, options.order);
  choose_form(subject, round, seed);
  // Most libraries promise nothing then: their rounds have it on request.
  // Where the medium is full, too, what one of them hides of the other is seen in half of the rounds.
  const bool is_short = seed % 4 == 2 && !(round.full && seed / 16 % 2 == 1);
  const bool by_seed = options.short_dram_by_seed && is_short && code_of(subject) == nullptr;
  // What a removal without DRAM leaves behind is cleared beside others, which pause.
  const bool clears = is_in_use && options.pauses_by_seed;
  round.short_dram = subject.volume == nullptr && (round.short_dram || by_seed || clears);
  round.pauses = (round.pauses || clears || cuts || (options.pauses_by_seed && (mix_bits(seed) & 2) != 0)) &&
                 round.threads > 1 && round.how == search::random;
  // A kill has no round on its own: the threads go on behind it.
  // Just before a split it is short enough for one.
  const bool is_plain = (!round.grown || round.near_split) && !round.thin && !round.joining && !round.loaded &&
                        !round.nearly_full && !round.full;
  round.kills = is_index && round.kills && round.crashes && is_plain && goes_on(subject) && round.how == search::random;
  if (round.kills) round.reopenings = 1;
  if (kind != 0 && !round.grown && !round.thin && !round.joining && !round.loaded && !round.nearly_full)
    let_threads_collide(subject, round, seed, kind == 1);
  // A store on small drives does all that it does within a few operations, and each takes longer, the more there were.
  if (kind != 0 && subject.prefix != nullptr && !round.nearly_full && seed / 4 % 8 != 1)
    round.operations = std::min<std::size_t>(round.operations, 24);
  if (kind == 2) {
    // Crashes of many schedules, rather than many crashes of one: most of all whether each answer was durable.
    round.crash.points_one_in = 15;
    round.crash.states_per_promise = 2;
    round.crash.states_per_point = std::min<std::size_t>(round.crash.states_per_point, 5);
    round.crash.crash_recovery_one_in = 500;
  }
  return round;
}

void shorten(const subject& kind, violation& found, double seconds) {
  constexpr double seconds_of_an_attempt = 3;
  const auto start = clock::now();
  std::vector<std::size_t> steps = kept_steps(found.round);
  for (std::size_t chunk = std::max<std::size_t>(steps.size() / 2, 1);; chunk /= 2) {
    for (std::size_t from = 0; from < steps.size() && seconds_since(start) < seconds;) {
      std::vector<std::size_t> fewer = steps;
      const std::size_t count = std::min(chunk, steps.size() - from);
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(from),
                  fewer.begin() + static_cast<std::ptrdiff_t>(from + count));
      round_options tried = found.round;
      tried.steps = fewer;
      const double left = seconds - seconds_since(start);
      if (!fewer.empty() && still_violates(kind, tried, found, std::min(seconds_of_an_attempt, left))) {
        found.round = std::move(tried);
        steps = std::move(fewer);
      } else {
        from += count;
      }
    }
    if (chunk == 1 || seconds_since(start) >= seconds) break;
  }
}

namespace {

// The rounds of a part of a campaign, for so many seconds.
child_outcome run_part(const subject& kind, const campaign_options& options, double seconds, round_counts& counts,
                       const std::function<void(const round_counts&)>& progress) {
  const std::uint64_t rounds = options.rounds == 0 ? std::numeric_limits<std::uint64_t>::max() : options.rounds;
  // Bounded search stays with the operations of the first seed, and counts schedules up.
  const bool bounded = is_bounded(options);
  const std::uint64_t first = options.round.schedule_seed;
  const auto next = [&](std::uint64_t number, round_options& round) {
    round = round_of(kind, options, bounded ? options.round.seed : options.round.seed + number);
    if (bounded) {
      // Schedule 0 shows how long the others are.
      round.threads = options.round.threads;
      round.schedule_seed = number == 0 ? 0 : first + number - 1;
      return number <= rounds;
    }
    return number < rounds;
  };
  return run_rounds_in_child(kind, next, seconds, counts, progress, bounded ? 1 : options.jobs);
}

// The first round has no death, and counts the events. One process has all choices of a death, one after the other.
child_outcome run_every_death(const subject& kind, const campaign_options& options, double seconds,
                              round_counts& counts, const std::function<void(const round_counts&)>& progress) {
  using simulator::one_death;
  const auto start = clock::now();
  campaign_options with_deaths = options;
  with_deaths.round.hosts->death = one_death{};
  const round_options round = round_of(kind, with_deaths, options.round.seed);
  const auto alone = [&](std::uint64_t number, round_options& next) {
    next = round;
    return number == 0;
  };
  child_outcome outcome = run_rounds_in_child(kind, alone, seconds, counts, progress);
  if (outcome.violated || !outcome.problem.empty()) return outcome;
  const auto events = counts.hosts.events;
  const auto next_death = [&](std::uint64_t number, round_options& next) {
    const std::uint64_t job = number % options.jobs;
    const std::uint64_t turn = number / options.jobs;
    std::uint64_t event = turn / one_death::most_choices * options.jobs + job;
    unsigned host = 0;
    for (; host < round.hosts->hosts && event >= events[host]; ++host) event -= events[host];
    next = round;
    next.hosts->death = one_death{host, event + 1, turn % one_death::most_choices};
    return host < round.hosts->hosts;
  };
  return run_rounds_in_child(kind, next_death, seconds - seconds_since(start), counts, progress, options.jobs);
}

// A part of a campaign, and its share of the budget.
struct part {
  campaign_options options;
  double share;
};

// Races are found soonest by schedules alone, and what one thread does wrong by crashes of one thread: each is the
// first part of a budget that has both. The rest are rounds of all forms.
std::vector<part> parts_of(const campaign_options& whole) {
  const bool divided = whole.rounds == 0 && whole.crashes && whole.schedules && whole.mixed && !is_bounded(whole) &&
                       whole.round.threads > 1 && !whole.round.hosts;
  if (!divided) return {{whole, 1}};
  constexpr double share_of_schedules = 1.0 / 3;
  constexpr double share_of_crashes = 1.0 / 6;
  campaign_options schedules = whole;
  schedules.crashes = false;
  campaign_options crashes = whole;
  crashes.schedules = false;
  crashes.round.threads = 1;
  crashes.round.operations *= 2;  // as many as such rounds have elsewhere
  schedules.short_dram_by_seed = crashes.short_dram_by_seed = true;
  campaign_options rest = whole;
  schedules.pauses_by_seed = rest.pauses_by_seed = true;
  schedules.joins_by_seed = rest.joins_by_seed = true;
  return {
      {schedules, share_of_schedules}, {crashes, share_of_crashes}, {rest, 1 - share_of_schedules - share_of_crashes}};
}

// What the command that is printed for the round runs, behind `before` rounds like it.
campaign_options replay_of(const round_options& round, std::uint64_t before) {
  const bool many = round.threads > 1;
  campaign_options replay;
  replay.round.seed = round.seed - before;
  replay.round.schedule_seed = round.schedule_seed;
  replay.round.how = round.how;
  replay.round.threads = round.threads;
  replay.round.operations = round.operations;
  replay.round.keys = round.keys;
  replay.round.short_dram = round.short_dram;
  replay.round.kills = round.kills;
  replay.round.pauses = round.pauses;
  replay.round.joining = round.joining;
  replay.round.steps = round.steps;
  replay.round.hosts = round.hosts;
  replay.crashes = round.crashes;
  replay.schedules = many;
  replay.mixed = replay.schedule_follows_seed = !many;
  replay.order = round.store_buffers ? memory_order::tso : memory_order::sc;
  replay.rounds = before + 1;
  return replay;
}

child_outcome run_replay(const subject& kind, const violation& found, std::uint64_t before, double seconds) {
  round_counts ignored;
  return run_part(kind, replay_of(found.round, before), seconds, ignored, {});
}

bool waits_for_ever(const violation& found) {
  return found.what.starts_with("no end") || found.what.starts_with("hang");
}

// Such a one takes tens of millions of accesses: under load, half a minute is not enough for them.
double seconds_of_replay(const violation& found) { return waits_for_ever(found) ? 300 : 30; }

// The part goes on at this seed. False: it has no more rounds.
bool skip_to(campaign_options& options, std::uint64_t seed) {
  const std::uint64_t done = seed - options.round.seed;
  options.round.seed = seed;
  if (options.rounds == 0) return true;
  if (done >= options.rounds) return false;
  options.rounds -= done;
  return true;
}

}  // namespace

void find_replay(const subject& kind, violation& found) {
  // The search was such a process itself.
  if (found.rounds_before == 0) return;
  if (is_the_same(run_replay(kind, found, 0, seconds_of_replay(found)), found)) return;
  found.replayed_behind.reset();
  if (found.round.how == search::bounded) return;
  const auto start = clock::now();
  const std::uint64_t most = std::min(4 * found.rounds_before + 16, found.round.seed);
  for (std::uint64_t before = 1; before <= most; before += 1 + before / 3) {
    const double left = seconds_of_replay(found) - seconds_since(start);
    if (left <= 0) return;
    child_outcome outcome = run_replay(kind, found, before, left);
    if (!is_the_same(outcome, found)) continue;
    found.what = std::move(outcome.what);
    found.history = std::move(outcome.history);
    found.round = std::move(outcome.round);
    found.operations = kept_steps(found.round).size();
    found.replayed_behind = outcome.rounds_before;
    return;
  }
}

void find_decisive_miss(const subject& kind, violation& found) {
  // One that waits for ever misses as many as there are.
  if (!found.round.hosts || waits_for_ever(found)) return;
  constexpr std::uint64_t most = 1 << 16;
  const auto shows = [&](std::uint64_t misses) {
    violation tried = found;
    tried.round.hosts->most_misses = misses;
    child_outcome outcome = run_replay(kind, tried, 0, seconds_of_replay(found));
    if (!outcome.violated) return false;
    found.what = std::move(outcome.what);
    found.history = std::move(outcome.history);
    found.round.hosts->most_misses = misses;
    return true;
  };
  if (shows(0)) return;
  std::uint64_t few = 0, enough = 1;
  for (; !shows(enough); enough *= 2) {
    if (enough >= most) return;
    few = enough;
  }
  while (enough - few > 1) {
    const std::uint64_t middle = few + (enough - few) / 2;
    (shows(middle) ? enough : few) = middle;
  }
}

campaign_result run_campaign(const subject& kind, const campaign_options& options,
                             const std::function<void(const round_counts&, double)>& progress) {
  campaign_result result;
  const auto start = clock::now();
  const double budget = options.rounds == 0 ? options.budget_seconds : std::max(options.budget_seconds, 600.0);
  double shares = 0;
  const std::function<void(const round_counts&)> tick =
      progress ? std::function<void(const round_counts&)>(
                     [&](const round_counts& counts) { progress(counts, seconds_since(start)); })
               : std::function<void(const round_counts&)>();
  std::vector<part> parts = parts_of(options);
  for (part& p : parts) {
    shares += p.share;
    const double end = shares * budget;
    do {
      const double left = end - seconds_since(start);
      child_outcome outcome = options.every_death ? run_every_death(kind, p.options, left, result.counts, tick)
                                                  : run_part(kind, p.options, left, result.counts, tick);
      result.problem = outcome.problem;
      result.remedy = outcome.remedy;
      if (!outcome.problem.empty() || !outcome.violated) break;
      violation found;
      found.what = std::move(outcome.what);
      found.round = std::move(outcome.round);
      found.history = std::move(outcome.history);
      found.operations = kept_steps(found.round).size();
      found.rounds_before = outcome.rounds_before;
      if (!options.goes_on || !options.goes_on(found)) {
        result.found = std::move(found);
        break;
      }
      if (!skip_to(p.options, found.round.seed + 1)) break;
    } while (seconds_since(start) < end);
    if (result.found || !result.problem.empty()) break;
  }
  if (result.found) {
    find_replay(kind, *result.found);
    if (options.shrink_seconds > 0 && !is_bounded(options) && !options.every_death &&
        result.found->replayed_behind == 0) {
      violation shorter = *result.found;
      shorten(kind, shorter, options.shrink_seconds);
      if (is_the_same(run_replay(kind, shorter, 0, seconds_of_replay(shorter)), shorter))
        result.found = std::move(shorter);
    }
    if (options.finds_miss && result.found->replayed_behind == 0) find_decisive_miss(kind, *result.found);
  }
  result.seconds = seconds_since(start);
  return result;
}

}  // namespace pmlab::verify
