// `pmlab bench`: reads the options, runs the measurement, prints the figures.
#include "checker/simulator/coherence.hpp"
#include "tools/cli/command.hpp"
#include "tools/cli/complaint.hpp"
#include "tools/cli/outputs.hpp"
#include "tools/cli/simulated_program.hpp"
#include <pmlab/base/error.hpp>
#include "bench/catalogue/library_index.hpp"
#include "bench/catalogue/operation_loop.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/devices/profile_file.hpp"
#include "bench/engine/engine.hpp"
#include "bench/engine/results_csv.hpp"
#include "bench/engine/results_json.hpp"
#include "bench/engine/table.hpp"
#include "bench/input/reading_notes.hpp"
#include "bench/support/lists.hpp"
#include "bench/support/machine.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/read_again.hpp"
#include "bench/support/shell_form.hpp"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <unistd.h>

namespace pmlab::cli {
namespace {

// True: 2M; false: 4K. Throws pmlab::error.
bool is_2m(const std::string& pages) {
  if (pages != "2M" && pages != "4K")
    throw error(fmt::format("--pages '{}' is no size of pages", pages), "give 2M or 4K");
  return pages == "2M";
}

// Throws pmlab::error.
simulator::coherence coherence_of_hosts(const std::string& name) {
  if (const auto found = simulator::coherence_of(name)) return *found;
  throw error(fmt::format("--coherence '{}' is unknown", name),
              fmt::format("give {}", fmt::join(simulator::coherence_names, ", ")));
}

// "100ms". Throws pmlab::error.
double interval_of(const std::string& text) {
  constexpr double shortest = 1e-3, longest = 3600;
  const bool in_ms = text.size() > 2 && text.ends_with("ms");
  const std::string number = in_ms                 ? text.substr(0, text.size() - 2)
                             : text.ends_with('s') ? text.substr(0, text.size() - 1)
                                                   : text;
  const double seconds = bench::parse_seconds(number, "--interval") / (in_ms ? 1000 : 1);
  if (seconds < shortest || seconds > longest)
    throw error(fmt::format("--interval '{}' is out of range", text), "give 1ms to 3600s");
  return seconds;
}

// The command line, as far as it can be understood option by option.
struct request {
  bench::bench_options options;
  std::vector<const bench::index_description*> indexes;
  std::vector<std::string> libraries, traces;
  workload::trace_options trace;
  std::vector<bench::phase> phases, workloads;
  std::optional<std::uint64_t> operations;
  double emulation_scale = 0;  // 0: as much as this machine needs
  bool library_scans = false, reopen = false, overwrite = false, reuse = false, quiet = false;
  std::string json, csv, histograms;
};

constexpr std::uint64_t real_operations = 1'000'000;
// One to eighteen seconds for all phases of an index after 100k records: measured, 1 to 2.5 million operations a
// second, and 6 to 50 thousand scans of 100 entries.
constexpr std::uint64_t simulated_operations = 100'000;

// parse(text) of each text that was given, in one list.
template <class Parse>
auto all_of(const std::vector<std::string>& given, Parse&& parse) {
  decltype(parse(given.front())) all;
  for (const std::string& text : given)
    for (auto& one : parse(text)) all.push_back(std::move(one));
  return all;
}

std::vector<const bench::index_description*> indexes_of(const std::string& list) {
  std::vector<const bench::index_description*> indexes;
  for (const std::string& name : index_names({list})) indexes.push_back(&bench::find_index(name));
  return indexes;
}

// "ycsb-a,ycsb-b" are two workloads; in "read=.9,update=.1" the comma belongs to one.
std::vector<bench::phase> workloads_of(const std::string& list) {
  if (list.find('=') != std::string::npos) return {bench::parse_workload(list)};
  std::vector<bench::phase> workloads;
  for (const std::string& name : bench::words_of(list)) workloads.push_back(bench::parse_workload(name));
  return workloads;
}

std::vector<media::persistence_domain> persistence_domains(const std::string& list) {
  std::vector<media::persistence_domain> domains;
  const std::vector<std::string> names = bench::words_of(list);
  bench::refuse_twice(names, "--persistence");
  for (const std::string& name : names) {
    const auto domain = media::persistence_domain_of(name);
    if (!domain)
      throw error(fmt::format("--persistence '{}' is unknown", name),
                  fmt::format("give {}", fmt::join(media::persistence_domain_names, ", ")));
    domains.push_back(*domain);
  }
  return domains;
}

std::vector<bench::phase> phases_of(const request& asked, const workload::trace* trace) {
  std::vector<bench::phase> phases = asked.phases;
  phases.insert(phases.end(), asked.workloads.begin(), asked.workloads.end());
  if (trace != nullptr) phases.clear();
  if (trace != nullptr && !trace->run.empty()) phases = {bench::make_trace_phase(trace->run)};
  if (phases.empty() && trace == nullptr) phases = bench::parse_phases("read,absent,update,insert,scan,erase");
  if (asked.reopen) phases.push_back(bench::make_phase(bench::phase_kind::reopen));
  // Loading is first and once, requested or not.
  std::erase_if(phases, [](const bench::phase& p) { return p.kind == bench::phase_kind::load; });
  phases.insert(phases.begin(), bench::make_phase(bench::phase_kind::load));
  bench::make_names_unique(phases);
  return phases;
}

// The trace, as far as memory for it is free. Throws pmlab::error.
std::shared_ptr<const workload::trace> trace_of(const request& asked) {
  workload::trace_options options = asked.trace;
  options.most_operations = bench::available_memory() / sizeof(workload::operation);
  options.seed = asked.options.seed;
  // The program that has the simulated machine reads it again.
  if (asked.options.medium.simulated)
    for (const std::string& path : asked.traces) refuse_pipe(path, "trace", "on simulated media a trace is read twice");
  return std::make_shared<const workload::trace>(workload::read_trace(asked.traces, options));
}

bench::bench_options options_of(const request& asked) {
  bench::bench_options o = asked.options;
  if (o.medium.simulated && o.seconds > 0)
    throw error("--seconds cannot end a phase on a simulated medium: its time is virtual, and passes by operations",
                fmt::format("give --operations N, or neither for {}", bench::short_count(simulated_operations)));
  if (asked.emulation_scale > 0 && !o.medium.emulated())
    throw error("--emulation-scale needs an emulated medium", "leave it out, or use --medium emulated:PROFILE");
  if (o.pool_bytes != 0 && !o.medium.in_pool() && !o.medium.simulated && asked.libraries.empty())
    throw error(fmt::format("--pool-size without a pool: {} has none", o.medium.text()),
                "leave it out, or give --medium pmem:PATH");
  if (asked.reuse && !o.medium.in_pool() && asked.libraries.empty())
    throw error(fmt::format("--reuse without a pool: {} has none", o.medium.text()),
                "leave it out, or give --medium pmem:PATH");
  o.operations = asked.operations.value_or(o.medium.simulated ? simulated_operations : real_operations);
  if (!asked.traces.empty()) o.trace = trace_of(asked);
  o.phases = phases_of(asked, o.trace.get());
  if (asked.overwrite) o.on_existing = bench::existing_file::overwrite;
  if (asked.reuse) o.on_existing = bench::existing_file::reuse;
  o.histograms = !asked.histograms.empty();
  return o;
}

// A trace with scans has nothing for an index without an order. Throws pmlab::error if none of the indexes has one.
void refuse_scans_without_order(const workload::trace& trace,
                                const std::vector<const bench::index_description*>& indexes) {
  const auto scans = std::count_if(trace.run.begin(), trace.run.end(), [](const workload::operation& o) {
    return o.kind == workload::operation_kind::scan;
  });
  const bool has_order = std::any_of(indexes.begin(), indexes.end(), [](const auto* d) { return d->ordered; });
  if (scans == 0 || has_order) return;
  throw error(fmt::format("trace {} ({}) has {} scans among {} operations, and {} has no order to scan", trace.source,
                          to_string(trace.format), scans, trace.run.size(), indexes.front()->name),
              "give an ordered index, such as fast_fair, or take the scans out: grep -v '^SCAN' FILE > NEW");
}

// A run with all that it needs, and for which nothing is to be refused any more.
struct plan {
  bench::bench_options options;
  std::vector<const bench::index_description*> indexes;
};

// Throws pmlab::error: files cannot be written there.
void make_folder(const std::string& path) {
  std::error_code failed;
  std::filesystem::create_directories(path, failed);
  if (failed || ::access(path.c_str(), W_OK | X_OK) != 0)
    throw error(fmt::format("cannot write to folder {}: {}", path, failed ? failed.message() : std::strerror(errno)),
                "give --histograms a folder that can be written to");
}

// "cceh.read.4-threads.repeat-1.hgrm"
std::string histogram_path(const std::string& folder, const bench::phase_result& r) {
  std::string name = fmt::format("{}.{}.{}-threads.repeat-{}", r.index, r.phase, r.threads, r.repeat);
  if (r.hosts > 1) name += fmt::format(".{}-hosts", r.hosts);
  if (r.measured_under) name += fmt::format(".{}", to_string(*r.measured_under));
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '-' && c != '_') c = '_';
  return folder + '/' + name + ".hgrm";
}

// Throws pmlab::error.
plan plan_of(const request& asked) {
  plan p{{}, asked.indexes};
  if (asked.indexes.empty() && asked.libraries.empty())
    throw error("nothing to measure", "name an index: --index NAME, or give a library: --library FILE.so");
  check_outputs({{"--json", asked.json}, {"--csv", asked.csv}});
  if (!asked.histograms.empty()) make_folder(asked.histograms);
  p.options = options_of(asked);
  for (const std::string& path : asked.libraries)
    p.indexes.push_back(&bench::register_library(path, p.options.medium, {.scans = asked.library_scans}));
  for (const bench::index_description* d : p.indexes) p.options.indexes.push_back(d->name);
  if (p.options.baseline.empty()) p.options.baseline = p.options.indexes.back();
  if (p.options.trace) refuse_scans_without_order(*p.options.trace, p.indexes);
  bench::check(p.options, p.indexes);
  return p;
}

void refuse_damaged_pools(const plan& p, bench::progress& shown) {
  for (const bench::index_description* d : p.indexes) {
    const std::string path = bench::pool_path(p.options.medium.path, d->name, p.indexes.size() == 1);
    shown.pass("checking pool " + path);
    refuse_damaged_pool(path);
  }
}

// Measures; an emulated medium is calibrated first. Throws pmlab::error where nothing can be measured at all.
bench::bench_report run(plan& p, const request& asked) {
  bench::progress shown(bench::progress::style_of_stderr(asked.quiet));
  if (p.options.medium.emulated()) {
    shown.pass("calibrating " + p.options.medium.text());
    p.options.emulation = std::make_shared<const media::calibration>(
        media::calibrate(media::load_profile(p.options.medium.profile), {.scale = asked.emulation_scale}));
  }
  bench::load_libraries();
  if (asked.reuse && p.options.medium.in_pool()) refuse_damaged_pools(p, shown);
  bench::bench_report report = bench::run_bench(p.options, p.indexes, shown);
  shown.clear();
  if (std::string doubt = doubt_about_simulation(); p.options.medium.simulated && !doubt.empty())
    report.remarks.push_back(std::move(doubt));
  if (p.options.trace)
    report.remarks.insert(report.remarks.end(), p.options.trace->notes.begin(), p.options.trace->notes.end());
  const std::vector<std::string>& of_keys = input::reading_notes();
  report.remarks.insert(report.remarks.end(), of_keys.begin(), of_keys.end());
  return report;
}

// Returns the exit status.
int write_all(const plan& p, const request& asked, const bench::bench_report& report, const arguments& command_line) {
  std::vector<output_text> files = {{asked.json,
                                     [&] {
                                       return text_of(bench::results_to_json(p.options, bench::facts_of_this_machine(),
                                                                             report, shell_form(command_line)));
                                     }},
                                    {asked.csv, [&] { return bench::results_to_csv(report); }}};
  std::list<std::string> histograms;
  if (!asked.histograms.empty())
    for (const bench::phase_result& r : report.results)
      files.push_back({histograms.emplace_back(histogram_path(asked.histograms, r)), [&r] { return r.distribution; }});
  const int status =
      write({.files = std::move(files),
             .table = bench::results_table(p.options, report),
             .first_wrong = report.first_wrong,
             .wrong_answers = report.wrong_answers(),
             .about_wrong = p.options.verify ? "do not trust these figures" : "run again with --verify to see which",
             .failure = report.failure});
  const auto invalid = std::count_if(report.results.begin(), report.results.end(),
                                     [](const bench::phase_result& r) { return !r.invalid.empty(); });
  if (status != success || invalid == 0) return status;
  complain(fmt::format(
      "{} of {} measurements are INVALID: this machine could not emulate the device (the table has why); give fewer "
      "--threads, a larger --emulation-scale, or a machine that does nothing else",
      invalid, report.results.size()));
  return invalid_figures;
}

int measure(const request& asked, const arguments& command_line) {
  plan p = plan_of(asked);
  // Its errors are reported by the program that knows all indexes.
  if (p.options.medium.simulated) hand_over(command_line);
  const bench::bench_report report = run(p, asked);
  return write_all(p, asked, report, command_line);
}

}  // namespace

command add_bench(CLI::App& program, const arguments& command_line) {
  CLI::App* const app = program.add_subcommand("bench", "Measures indexes on a medium");
  const auto asked = std::make_shared<request>();
  bench::bench_options& o = asked->options;
  const auto text = parsed_texts_of(*app);
  // One value each time the option is given, so that the next word is never mistaken for a second one.
  const auto texts = [&](const std::string& name, const std::string& what,
                         const std::function<void(const std::vector<std::string>&)>& read) {
    return app->add_option_function<std::vector<std::string>>(name, read, what)->type_name("")->expected(1)->take_all();
  };
  texts("--index", "NAME[,NAME...]: the indexes to measure (`pmlab list`), such as \"cache(cceh,mode=adaptive)\"",
        [asked](const auto& given) { asked->indexes = all_of(given, indexes_of); });
  CLI::Option* const library = texts(
      "--library", "FILE.so[,FILE.so]: libraries with PiBench's interface beside them, or alone; docs/own-index.md",
      [asked](const auto& given) { asked->libraries = all_of(given, bench::words_of); });
  app->add_flag("--library-scans", asked->library_scans, "Scan libraries too: they order keys as unsigned integers")
      ->needs(library);
  app->add_option("--baseline", o.baseline, "NAME: the index that the ratios are to; the last one if not given")
      ->type_name("");
  text("--medium", "dram", "dram | pmem:PATH | emulated:PROFILE[@PATH] | simulated:PROFILE | counted:MEDIUM", o.medium,
       bench::parse_medium);
  text("--emulation-scale", "", "X: play the device X times slower; as much as this machine needs if not given",
       asked->emulation_scale, bench::parse_emulation_scale);
  text("--persistence", "",
       "adr | eadr | gpf | gpf-may-fail, or several with commas, each in turn: what the platform saves when the power "
       "fails, in place of the profile's, or of what libpmem finds",
       o.persistence, persistence_domains);
  CLI::Option* const records = text("--records", "1M", "N: records loaded first, such as 10M", o.records, count_from_1);
  CLI::Option* const operations =
      text("--operations", "",
           fmt::format("N: operations of each phase, over all threads; {} if not given, on simulated media {}: seconds",
                       bench::short_count(real_operations), bench::short_count(simulated_operations)),
           asked->operations, count_from_1);
  CLI::Option* const seconds =
      text("--seconds", "", "S: run each phase this long instead; not on simulated media, whose time is virtual",
           o.seconds, bench::parse_seconds);
  seconds->excludes(operations);
  text("--threads", "1", "N[,N...] or N-M: each number of threads in turn; with --hosts: of each host", o.threads,
       numbers_of);
  text("--hosts", "1",
       "N[,N...] or N-M: each number of hosts in turn that share a simulated memory, such as simulated:cxl-pod; "
       "docs/hosts.md",
       o.hosts, numbers_of);
  text("--coherence", "",
       fmt::format("{}, with --hosts: which lines are coherent between hosts; full if not given",
                   fmt::join(simulator::coherence_names, " | ")),
       o.coherence, coherence_of_hosts);
  CLI::Option* const workloads =
      texts("--workload", "ycsb-a ... ycsb-f, or shares such as \"read=.9,update=.1\"; may be repeated",
            [asked](const auto& given) { asked->workloads = all_of(given, workloads_of); });
  CLI::Option* const phases =
      text("--phases", "",
           "load,read,absent,update,insert,scan,erase,reopen in any order; all but reopen if no workload is given",
           asked->phases, bench::parse_phases);
  text("--distribution", "",
       "uniform | zipfian:0.99 | latest | sequential | self-similar:0.2; a workload's own if not given", o.keys,
       workload::parse_distribution);
  CLI::Option* const trace = texts("--trace",
                                   "FILE: load and run a trace of YCSB, index-microbench, Twitter, kvcache or "
                                   "libCacheSim, or keys of SOSD; may be "
                                   "repeated; docs/traces.md",
                                   [asked](const auto& given) { asked->traces = given; })
                                 ->excludes(records)
                                 ->excludes(operations)
                                 ->excludes(seconds)
                                 ->excludes(workloads)
                                 ->excludes(phases);
  text("--trace-format", "",
       fmt::format("{}: of all files of --trace; by their content if not given",
                   fmt::join(workload::trace_format_names, " | ")),
       asked->trace.format, workload::parse_trace_format)
      ->needs(trace);
  app->add_flag("--verify", o.verify, "Check every answer against the expected one");
  constexpr std::uint64_t most_repeats = 1000;
  text("--repeat", "1",
       "R: measure each phase R times; the table shows medians. On simulated media each repeat has another layout",
       o.repeats, up_to(most_repeats));
  text("--batch", "1", "N: give reads that follow each other to find_batch, N at a time", o.batch,
       up_to(bench::batch_limit));
  constexpr std::uint64_t longest_scan = 1'000'000;
  text("--scan-length", "100", "N: entries of a scan (workloads: at most)", o.scan_length, up_to(longest_scan));
  text("--cpu-cache", "",
       "SIZE: on simulated media, the second level of a core and its share of the last one, in place of the profile's",
       o.cpu_cache_bytes, bench::parse_bytes);
  constexpr std::uint64_t most_layouts = 1'000'000;
  text("--layout", "1",
       "N: on simulated media, where things lie, which keys there are and when threads begin; of the first repeat, the "
       "next has N + 1",
       o.layout, up_to(most_layouts));
  text(
      "--rate", "",
      "N: operations that begin in a second, over all threads, whether earlier ones have ended or not; latencies count "
      "from there, so a stall shows in all that it delayed",
      o.rate, count_from_1);
  text("--interval", "", "TIME, such as 100ms: count the operations of each interval, too (JSON)", o.interval_seconds,
       interval_of);
  text("--histograms", "", "DIR: write the latencies of each phase there as .hgrm, which HdrHistogram's plotters read",
       asked->histograms, as_written);
  app->add_flag("--cpu-counters", o.cpu_counters,
                "Count cycles, instructions, and misses of last cache and dTLB, where the kernel allows it");
  text("--seed", "1", "N: of the operations", o.seed, count_from_0);
  app->add_flag("--reopen", asked->reopen, "At the end close and reopen the index, and measure the time");
  CLI::Option* const pages =
      text("--pages", "2M", "2M | 4K: the pages under every subject, ours and peers, in DRAM and on tmpfs",
           o.huge_pages, is_2m);
  text("--huge-pages", "", "on | off: as --pages 2M or 4K", o.huge_pages, on_or_off)->excludes(pages);
  text("--pool-size", "", "SIZE of each pool, such as 4G; from the number of records if not given", o.pool_bytes,
       bench::parse_bytes);
  CLI::Option* const overwrite = app->add_flag("--overwrite", asked->overwrite, "Overwrite an existing pool");
  app->add_flag("--reuse", asked->reuse, "Measure the contents of an existing pool, after its check")
      ->excludes(overwrite)
      ->excludes(library);
  app->add_flag("--keep", o.keep, "Keep the pool files");
  app->add_option("--json", asked->json,
                  "FILE: write all results there (docs/results-schema.md); -: to standard output")
      ->type_name("");
  app->add_option("--csv", asked->csv, "FILE: the figures as a table with commas; -: to standard output")
      ->type_name("");
  app->add_flag("--quiet", asked->quiet, "No progress on stderr");
  app->footer(
      "Several indexes are measured in turns. Each then has its own pool beside the given one:\n"
      "PATH.NAME. A pool that the run made is removed again.\n"
      "Status: 0 measured; 1 wrong answers, or the run ended early; 2 bad input; "
      "3 measured, but some rows are INVALID.\n\n"
      "  pmlab bench --index cceh,pmdk_hash --medium pmem:/dev/shm/pmlab.pool --records 1M --repeat 3\n"
      "  pmlab bench --index fast_fair --medium emulated:aep --workload ycsb-a --threads 1,2 --verify\n"
      "  pmlab bench --index fast_fair,cceh --medium simulated:aep --records 100k --threads 1,2,4,8,16,32\n"
      "  pmlab bench --index shared_tree --medium simulated:cxl-pod --records 100k --hosts 1,2,4,8 --coherence "
      "partial");
  return {app, [asked, command_line] { return measure(*asked, command_line); }};
}

}  // namespace pmlab::cli
