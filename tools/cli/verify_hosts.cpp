// `pmlab verify --hosts`: the options of rounds on several hosts.
#include "tools/cli/verify_hosts.hpp"
#include "tools/cli/command.hpp"
#include <pmlab/base/error.hpp>
#include <pmlab/base/quantity.hpp>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

constexpr std::uint64_t line_bytes = 64;
constexpr const char* own_options[] = {"--coherence",    "--coherent-bytes", "--stale",
                                       "--invalidation", "--as-is",          "--stale-loads",
                                       "--deaths",       "--every-death",    "--death"};

void check_choice(const char* option, const std::string& given, std::initializer_list<std::string_view> choices) {
  if (std::find(choices.begin(), choices.end(), given) == choices.end())
    throw error(fmt::format("{} '{}' is unknown", option, given), fmt::format("use {}", fmt::join(choices, ", ")));
}

void check_one_death(const CLI::App& app, const host_request& r) {
  if (r.every_death)
    refuse_beside(app,
                  {"--deaths", "--death", "--as-is", "--seeds", "--rounds", "--steps", "--all", "--known", "--crashes"},
                  "--every-death tries each death of one round, and excludes {}");
  if (app.count("--death") == 0) return;
  refuse_beside(app, {"--deaths", "--as-is", "--seeds", "--all", "--known", "--crashes"},
                "--death is of the replay of a violation, and excludes {}");
  if (app.count("--rounds") == 0)
    throw error("--death is of the replay of a violation, which has --rounds",
                "give all options of the command that the violation has printed");
  const auto [host, access, choice] = r.death_numbers();
  if (host >= r.hosts || access == 0 || choice >= most_death_choices)
    throw error(fmt::format("--death {} is not possible", r.death),
                fmt::format("give HOST.ACCESS.CHOICE: a host below {}, an access from 1 on, a choice below {}", r.hosts,
                            most_death_choices));
}

}  // namespace

void refuse_beside(const CLI::App& app, std::initializer_list<const char*> others, const char* why) {
  for (const char* const other : others)
    if (app.count(other) != 0) throw error(fmt::format(fmt::runtime(why), other), "leave one of them out");
}

std::array<std::uint64_t, 3> host_request::death_numbers() const {
  std::array<std::uint64_t, 3> numbers{};
  const char* at = death.data();
  const char* const end = at + death.size();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [next, problem] = std::from_chars(at, end, numbers[i]);
    const bool ends_well = i + 1 == numbers.size() ? next == end : next != end && *next == '.';
    if (problem != std::errc() || !ends_well)
      throw error(fmt::format("--death '{}' is not possible", death), "give HOST.ACCESS.CHOICE, such as 1.20.0");
    at = next + 1;
  }
  return numbers;
}

void add_host_options(CLI::App& app, host_request& r) {
  const auto value = parsed_texts_of(app);
  value("--hosts", "",
        "N: rounds whose threads are on N hosts of one memory (docs/hosts.md); --threads is for each host", r.hosts,
        within(0, 1024));
  app.add_option(
      "--coherence", r.coherence,
      "full | partial | none, with --hosts: which of its lines are coherent between hosts; full if not given");
  app.add_option("--coherent-bytes", r.coherent_size,
                 "SIZE, with --coherence partial: the first bytes, which are coherent; 64KiB if not given");
  app.add_option("--stale", r.stale,
                 "any | loaded, with --hosts: any line may be stale, by a prefetch, or only those that the host has "
                 "loaded;\nany if not given");
  app.add_option("--invalidation", r.invalidation,
                 "mfence | sfence, with --hosts: the fence that orders loads behind a clflushopt; mfence if not given, "
                 "as on x86");
  app.add_flag("--as-is", r.as_is, "with --hosts: also an index that several hosts are not made to share");
  value("--deaths", "", "N, with --hosts: in half of the rounds 1 to N hosts die in the middle of what they do",
        r.deaths, within(0, 1024));
  app.add_flag("--every-death", r.every_death,
               "with --hosts: one round again and again: each host dies before each of its accesses, with each choice "
               "of what the\nmemory gets, up to 64; 12 operations if not given");
  app.add_option("--death", r.death,
                 "HOST.ACCESS.CHOICE, with --hosts: the death of a replay, as a violation names it");
  value("--stale-loads", "",
        "N, with --hosts: only the first N loads may miss a store of another host, as a violation names them",
        r.stale_loads, count_from_0);
}

void check_host_options(const CLI::App& app, unsigned threads, host_request& r) {
  if (app.count("--hosts") == 0) {
    for (const char* const option : own_options)
      if (app.count(option) != 0)
        throw error(fmt::format("{} is about several hosts", option), "give --hosts 2 or more, too");
    return;
  }
  if (r.hosts < 2 || r.hosts > most_hosts)
    throw error(fmt::format("--hosts is {}", r.hosts), fmt::format("give 2 to {}", most_hosts));
  refuse_beside(app,
                {"--kills", "--exhaustive", "--performance", "--scoreboard", "--io-log", "--program", "--short-dram",
                 "--joins", "--persistence", "--out"},
                "--hosts is about schedules of indexes by name or subject, and excludes {}");
  if (app.count("--search") != 0 && app.get_option("--search")->as<std::string>() == "bounded")
    throw error("--hosts is for random searches", "leave --search bounded out");
  if (app.count("--deaths") != 0 && (r.deaths == 0 || r.deaths >= r.hosts))
    throw error(fmt::format("--deaths is {}, of {} hosts", r.deaths, r.hosts),
                fmt::format("give 1 to {}: one host lives on", r.hosts - 1));
  if (r.deaths != 0 && r.as_is)
    throw error("--deaths is about indexes that hosts are made to share, and excludes --as-is",
                "leave one of them out");
  check_one_death(app, r);
  check_choice("--coherence", r.coherence, {"full", "partial", "none"});
  check_choice("--stale", r.stale, {"any", "loaded"});
  check_choice("--invalidation", r.invalidation, {"mfence", "sfence"});
  if (app.count("--coherent-bytes") != 0 && r.coherence != "partial")
    throw error(fmt::format("--coherent-bytes has no effect with --coherence {}", r.coherence),
                "give --coherence partial, or leave it out");
  r.coherent_bytes = parse_bytes(r.coherent_size, "--coherent-bytes");
  constexpr std::uint64_t most_coherent = std::uint64_t{1} << 20;
  if (r.coherent_bytes % line_bytes != 0 || r.coherent_bytes == 0 || r.coherent_bytes > most_coherent)
    throw error(fmt::format("--coherent-bytes {} is not possible", r.coherent_size),
                fmt::format("give whole lines of {} bytes, at most 1MiB", line_bytes));
  const unsigned all = r.hosts * std::max(threads, 1U);
  if (all > most_threads_of_hosts)
    throw error(fmt::format("{} hosts with {} threads each have {} threads", r.hosts, threads, all),
                fmt::format("give at most {} in all", most_threads_of_hosts));
}

}  // namespace pmlab::cli
