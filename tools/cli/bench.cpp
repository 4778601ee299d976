// `pmlab bench`: reads what to measure, has it measured, shows the figures.
#include "tools/bench/engine.hpp"
#include "tools/bench/results_json.hpp"
#include "tools/bench/table.hpp"
#include "tools/catalogue/library_index.hpp"
#include "tools/catalogue/operation_loop.hpp"
#include "tools/catalogue/registry.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/simulated_program.hpp"
#include "tools/devices/profile_file.hpp"
#include "tools/support/machine.hpp"
#include "tools/support/quantity.hpp"
#include "tools/support/shell_form.hpp"
#include <pmlab/base/error.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace pmlab::cli {
namespace {

// As on the command line; empty: not given.
struct given_options {
  std::vector<std::string> indexes, libraries;
  std::string baseline, medium = "dram";
  std::string emulation_scale;
  std::string records, operations, seconds, threads, repeat, batch, scan_length, seed, pool_size;
  std::vector<std::string> workloads;
  std::string phases, distribution;
  std::vector<std::string> traces;
  std::string json;
  std::string huge_pages = "on";
  bool verify = false, reopen = false, overwrite = false, reuse = false, keep = false, quiet = false;
  bool library_scans = false;
};

std::vector<std::string> split(const std::vector<std::string>& lists) {
  std::vector<std::string> words;
  for (const std::string& list : lists)
    for (std::size_t start = 0; start <= list.size();) {
      const std::size_t end = std::min(list.find(',', start), list.size());
      words.push_back(list.substr(start, end - start));
      start = end + 1;
    }
  return words;
}

std::uint32_t small_count(const std::string& text, const std::string& option, std::uint64_t most) {
  const std::uint64_t count = bench::parse_count(text, option);
  if (count > most)
    throw error(fmt::format("{} '{}' is too large", option, text), fmt::format("give at most {}", most));
  return static_cast<std::uint32_t>(count);
}

void exclude(bool first, bool second, const std::string& names, const std::string& reason) {
  if (first && second) throw error(names + " exclude each other: " + reason, "give one of them");
}

// "ycsb-a,ycsb-b" are two workloads; in "read=.9,update=.1" the comma belongs to one.
std::vector<std::string> workload_names(const std::vector<std::string>& given) {
  std::vector<std::string> names;
  for (const std::string& text : given) {
    if (text.find('=') != std::string::npos)
      names.push_back(text);
    else
      for (std::string& name : split({text})) names.push_back(std::move(name));
  }
  return names;
}

std::vector<bench::phase> phases_of(const given_options& given, const workload::trace* trace) {
  std::vector<bench::phase> phases;
  if (!given.phases.empty()) phases = bench::parse_phases(given.phases);
  for (const std::string& name : workload_names(given.workloads)) phases.push_back(bench::parse_workload(name));
  if (trace != nullptr) phases = {bench::make_trace_phase(trace->run)};
  if (phases.empty()) phases = bench::parse_phases("read,absent,update,insert,scan,erase");
  if (given.reopen) phases.push_back(bench::make_phase(bench::phase_kind::reopen));
  // Loading comes first and once, asked for or not.
  std::erase_if(phases, [](const bench::phase& p) { return p.kind == bench::phase_kind::load; });
  phases.insert(phases.begin(), bench::make_phase(bench::phase_kind::load));
  bench::make_names_unique(phases);
  return phases;
}

bench::bench_options read_options(const given_options& given) {
  bench::bench_options o;
  exclude(!given.operations.empty(), !given.seconds.empty(), "--operations and --seconds", "a phase has one end");
  exclude(!given.traces.empty(), !given.records.empty(), "--trace and --records", "the trace says what is loaded");
  exclude(!given.traces.empty(), !given.workloads.empty(), "--trace and --workload", "the trace is the workload");
  exclude(!given.traces.empty(), !given.phases.empty(), "--trace and --phases", "its phases are load and trace");
  exclude(!given.traces.empty(), !given.operations.empty() || !given.seconds.empty(),
          "--trace and --operations or --seconds", "a trace is run whole");
  exclude(given.overwrite, given.reuse, "--overwrite and --reuse", "an old pool is replaced or measured");
  exclude(!given.libraries.empty(), given.reuse, "--library and --reuse", "a library cannot tell what its pool holds");
  o.medium = bench::parse_medium(given.medium);
  if (!given.records.empty()) o.records = bench::parse_count(given.records, "--records");
  if (!given.operations.empty()) o.operations = bench::parse_count(given.operations, "--operations");
  if (!given.seconds.empty()) o.seconds = bench::parse_seconds(given.seconds, "--seconds");
  if (!given.threads.empty()) {
    o.threads = thread_numbers(given.threads);
  }
  constexpr std::uint64_t most_repeats = 1000;
  if (!given.repeat.empty()) o.repeats = small_count(given.repeat, "--repeat", most_repeats);
  if (!given.batch.empty()) o.batch = small_count(given.batch, "--batch", bench::batch_limit);
  constexpr std::uint64_t longest_scan = 1'000'000;
  if (!given.scan_length.empty()) o.scan_length = small_count(given.scan_length, "--scan-length", longest_scan);
  if (!given.seed.empty()) o.seed = bench::parse_count(given.seed, "--seed", 0);
  if (!given.pool_size.empty()) o.pool_bytes = bench::parse_bytes(given.pool_size, "--pool-size");
  if (given.huge_pages != "on" && given.huge_pages != "off")
    throw error(fmt::format("--huge-pages '{}' is neither on nor off", given.huge_pages), "give on or off");
  o.huge_pages = given.huge_pages == "on";
  if (!given.distribution.empty()) o.keys = workload::parse_distribution(given.distribution);
  if (!given.traces.empty()) o.trace = std::make_shared<const workload::trace>(workload::read_trace(given.traces));
  o.phases = phases_of(given, o.trace.get());
  o.verify = given.verify;
  o.keep = given.keep;
  if (given.overwrite) o.on_existing = bench::existing_file::overwrite;
  if (given.reuse) o.on_existing = bench::existing_file::reuse;
  return o;
}

int run(const given_options& given, const arguments& command_line) {
  std::vector<const bench::index_description*> indexes;
  for (const std::string& name : index_names(given.indexes)) indexes.push_back(&bench::find_index(name));
  if (given.indexes.empty() && given.libraries.empty())
    throw error("nothing to measure", "name an index: --index NAME, or give a library: --library FILE.so");
  if (given.library_scans && given.libraries.empty())
    throw error("--library-scans needs a library", "leave it out, or give --library FILE.so");
  if (!given.json.empty()) bench::check_writable(given.json);
  bench::bench_options options = read_options(given);
  for (const std::string& path : split(given.libraries))
    indexes.push_back(&bench::register_library(path, options.medium, {.scans = given.library_scans}));
  options.indexes.clear();
  for (const bench::index_description* d : indexes) options.indexes.push_back(d->name);
  options.baseline = given.baseline.empty() ? options.indexes.back() : given.baseline;

  bench::progress shown(bench::progress::style_of_stderr(given.quiet));
  if (options.medium.emulated()) {
    shown.pass("calibrating " + options.medium.text());
    media::calibration_options wanted;
    if (!given.emulation_scale.empty()) wanted.scale = bench::parse_factor(given.emulation_scale, "--emulation-scale");
    options.emulation = std::make_shared<const media::calibration>(
        media::calibrate(media::load_profile(options.medium.profile), wanted));
  } else if (!given.emulation_scale.empty()) {
    throw error("--emulation-scale needs an emulated medium", "leave it out, or use --medium emulated:PROFILE");
  }
  if (options.medium.simulated) {
    // What is wrong is said by the program that knows all indexes.
    bench::check(options, indexes);
    hand_over(command_line);
  }
  bench::load_libraries();
  if (given.reuse && options.medium.in_pool())
    for (const bench::index_description* d : indexes) {
      const std::string path = bench::pool_path(options.medium.path, d->name, indexes.size() == 1);
      shown.pass("checking pool " + path);
      refuse_damaged_pool(path);
    }
  bench::bench_report report = bench::run_bench(options, indexes, shown);
  shown.clear();
  if (std::string doubt = doubt_about_simulation(); options.medium.simulated && !doubt.empty())
    report.remarks.push_back(std::move(doubt));
  if (!given.json.empty())
    bench::write_json(
        given.json, bench::results_to_json(options, bench::facts_of_this_machine(), report, shell_form(command_line)));
  fmt::print(bench::table_beside(given.json), "{}", bench::results_table(options, report));
  std::fflush(stdout);
  for (const std::string& wrong : report.first_wrong) fmt::print(stderr, "pmlab: wrong answer: {}\n", wrong);
  if (report.wrong_answers() > 0)
    fmt::print(stderr, "pmlab: error: {} wrong answers; {}\n", report.wrong_answers(),
               options.verify ? "do not believe these figures" : "run again with --verify to see which");
  if (report.failure) fmt::print(stderr, "pmlab: error: {}\n", *report.failure);
  return report.failure || report.wrong_answers() > 0 ? failure : success;
}

}  // namespace

command add_bench(CLI::App& program, const arguments& command_line) {
  CLI::App* const app = program.add_subcommand("bench", "Measures indexes on a medium");
  const auto given = std::make_shared<given_options>();
  const auto text = texts_of(*app);
  // One value each time the option is given, so that what follows is never taken for a second one.
  const auto texts = [&](const std::string& name, std::vector<std::string>& target, const std::string& what) {
    return app->add_option(name, target, what)->type_name("")->expected(1)->take_all();
  };
  texts("--index", given->indexes,
        "NAME[,NAME...]: what to measure (`pmlab list`), such as \"cache(cceh,mode=adaptive)\"");
  texts("--library", given->libraries,
        "FILE.so[,FILE.so]: libraries with PiBench's interface beside them, or alone; docs/own-index.md");
  app->add_flag("--library-scans", given->library_scans, "Scan libraries too: they order keys as unsigned integers");
  text("--baseline", given->baseline, "NAME: the index that the ratios are to; the last one if not given");
  text("--medium", given->medium,
       "dram | pmem:PATH | emulated:PROFILE[@PATH] | simulated:PROFILE | counted:MEDIUM; dram if not given");
  text("--emulation-scale", given->emulation_scale,
       "X: play the device X times slower; as much as this machine needs if not given");
  text("--records", given->records, "N: records loaded first, such as 10M; 1M if not given");
  text("--operations", given->operations, "N: operations of each phase, over all threads; 1M if not given");
  text("--seconds", given->seconds, "S: run each phase this long instead");
  text("--threads", given->threads, "N[,N...] or N-M: each number of threads in turn; 1 if not given");
  texts("--workload", given->workloads, "ycsb-a ... ycsb-f, or shares such as \"read=.9,update=.1\"; may be repeated");
  text("--phases", given->phases,
       "load,read,absent,update,insert,scan,erase,reopen in any order; all but reopen if no workload is given");
  text("--distribution", given->distribution,
       "uniform | zipfian:0.99 | latest | sequential | self-similar:0.2; a workload's own if not given");
  texts("--trace", given->traces, "FILE: run what YCSB or go-ycsb printed, plain or gzip; may be repeated");
  app->add_flag("--verify", given->verify, "Check every answer against what must be there");
  text("--repeat", given->repeat, "R: measure each phase R times; the table shows medians");
  text("--batch", given->batch, "N: give reads that follow each other to find_batch, N at a time");
  text("--scan-length", given->scan_length, "N: entries of a scan (workloads: at most); 100 if not given");
  text("--seed", given->seed, "N: of the operations; 1 if not given");
  app->add_flag("--reopen", given->reopen, "At last close and open the index again, and take the time");
  text("--huge-pages", given->huge_pages, "on | off; on if not given");
  text("--pool-size", given->pool_size, "SIZE of each pool, such as 4G; from the number of records if not given");
  app->add_flag("--overwrite", given->overwrite, "Replace a pool that is there");
  app->add_flag("--reuse", given->reuse, "Measure what a pool that is there holds, after its check");
  app->add_flag("--keep", given->keep, "Leave the pools there");
  text("--json", given->json, "FILE: write all results there (docs/results-schema.md); -: to standard output");
  app->add_flag("--quiet", given->quiet, "No progress on stderr");
  app->footer(
      "Several indexes are measured in turns. Each then has a pool of its own beside the one that is named:\n"
      "PATH.NAME. A pool that the run made is removed again.\n\n"
      "  pmlab bench --index cceh,pmdk_hash --medium pmem:/dev/shm/pmlab.pool --records 1M --repeat 3\n"
      "  pmlab bench --index fast_fair --medium emulated:aep --workload ycsb-a --threads 1,2 --verify\n"
      "  pmlab bench --index fast_fair,cceh --medium simulated:aep --records 100k --threads 1,2,4,8,16,32");
  return {app, [given, command_line] { return run(*given, command_line); }};
}

}  // namespace pmlab::cli
