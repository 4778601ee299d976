// `pmlab stores volumes` and `pmlab stores pairs`: the options. The runs are in stores_volumes.cpp and
// stores_pairs.cpp.
#include "tools/cli/command.hpp"
#include "tools/cli/stores_request.hpp"
#include <pmlab/base/error.hpp>
#include "bench/stores/pair_ledger.hpp"
#include "bench/support/lists.hpp"
#include "bench/support/quantity.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

constexpr std::uint64_t most_depth = 1024;
constexpr std::uint64_t most_threads = 127;
constexpr std::uint64_t most_repetitions = 1000;
constexpr std::uint64_t most_layouts = 1'000'000;
constexpr std::uint64_t most_devices = 64;
constexpr std::uint64_t largest_operation = std::uint64_t{4} << 20;
constexpr std::size_t largest_value = std::size_t{2} << 20;
constexpr std::uint64_t longest_ring = 1'000'000;  // what a store refuses, it explains itself
constexpr double most_loss_ms = 3'600'000;

std::uint64_t operation_size(const std::string& text) {
  const std::uint64_t bytes = bench::parse_bytes(text, "--size");
  if (bytes == 0 || bytes % store_block != 0 || bytes > largest_operation)
    throw error(fmt::format("--size {}: an operation is of whole blocks of 4096 bytes, at most 4M", text),
                "give a multiple of 4K");
  return bytes;
}

std::size_t value_size(const std::string& text) {
  const std::uint64_t bytes = bench::parse_bytes(text, "--value");
  if (bytes < store_bench::pair_ledger::least_value || bytes > largest_value)
    throw error(fmt::format("--value {}: a value proves its key and version by its bytes", text),
                fmt::format("give {} bytes to 2M", store_bench::pair_ledger::least_value));
  return bytes;
}

std::size_t key_size(const std::string& text) {
  const std::uint64_t bytes = bench::parse_bytes(text, "--key-bytes");
  if (bytes < store_bench::pair_keys::least_bytes || bytes > store_bench::pair_keys::most_bytes)
    throw error(fmt::format("--key-bytes {}: a key proves its place by its bytes", bytes),
                fmt::format("give {} to {}", store_bench::pair_keys::least_bytes, store_bench::pair_keys::most_bytes));
  return bytes;
}

double loss_in_ms(const std::string& text) {
  const double ms = text == "0" ? 0 : bench::parse_factor(text, "--loss-ms");
  if (!(ms >= 0 && ms <= most_loss_ms)) throw error("--loss-ms " + text, "give 0 to 3600000");
  return ms;
}

// Bytes; or "10%" of the data.
amount amount_of(const std::string& text, const std::string& option) {
  if (text == "0") return {.bytes = 0};
  if (!text.ends_with('%')) return {.bytes = bench::parse_bytes(text, option)};
  const double share = bench::parse_factor(text.substr(0, text.size() - 1), option) / 100;
  if (!(share > 0 && share <= 100))
    throw error(fmt::format("{} {}", option, text), "give a size, or a share of the data from 1% to 10000%");
  return {.bytes = {}, .share = share};
}

// A reader of a list between commas, each word by `read`. Throws pmlab::error if two of its values are alike.
template <class Read>
auto list_read_by(Read read) {
  return [read](const std::string& list, const std::string& option) {
    auto values = bench::list_of(list, read);
    bench::refuse_twice(values, option);
    return values;
  };
}

std::vector<std::string> distinct(const std::vector<std::string>& lists) {
  std::vector<std::string> names;
  for (const std::string& list : lists)
    for (std::string& name : bench::words_of(list)) {
      if (std::ranges::find(names, name) != names.end())
        throw error(fmt::format("--store names {} twice", name), "name it once, and give --repeat");
      names.push_back(std::move(name));
    }
  return names;
}

std::vector<std::string> given_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options())
    if (option->count() != 0) names.push_back(option->get_name());
  return names;
}

// Options of both commands. `stores`: their names, for the help text; `depths`: the default.
void add_shared_options(CLI::App& app, stores_request& asked, const char* stores, const char* depths) {
  const auto parsed = parsed_texts_of(app);
  app.add_option_function<std::vector<std::string>>(
         "--store", [&asked](const std::vector<std::string>& lists) { asked.stores = distinct(lists); },
         fmt::format("NAME[,NAME...] of {}: they take turns; the last one is the baseline of ratios", stores))
      ->type_name("")
      ->expected(1)
      ->take_all();
  parsed("--medium", "dram", "MEDIUM of the records, as for `pmlab bench`", asked.medium, bench::parse_medium);
  parsed("--pool-size", "", "SIZE of each pool, such as 4G; from the amount of data if not given", asked.pool_bytes,
         bench::parse_bytes);
  parsed("--device", "memory",
         "memory | file:PATH | emulated:PROFILE | simulated:PROFILE: the drive; "
         "simulated: in virtual time, with --medium simulated:PROFILE for the records",
         asked.device, drive::parse_device);
  parsed("--device-bytes", "", "SIZE of each drive; from the amount of data, with some to spare, if not given",
         asked.device_bytes, bench::parse_bytes);
  parsed("--depth", depths, "N[,N...]: operations of each thread under way", [&asked](const std::string& list) {
    asked.depths =
        bench::list_of(list, [](const std::string& d) { return unsigned{count_within(d, "--depth", 1, most_depth)}; });
    bench::refuse_twice(asked.depths, "--depth");
  });
  parsed("--threads", "1", "N", asked.lengths.threads, up_to(most_threads));
  CLI::Option* const operations =
      parsed("--operations", "", "N: of each case, over all threads", asked.lengths.operations, count_from_1);
  parsed("--seconds", "", "S: run each case this long instead; 1 if neither is given, 0.1 in virtual time",
         [&asked](const std::string& s) {
           asked.lengths.seconds = bench::parse_seconds(s, "--seconds");
           asked.has_seconds = true;
         })
      ->excludes(operations);
  parsed("--repeat", "1",
         "R: measure each case R times; stores take turns; the table shows medians. In virtual time each repeat has "
         "another "
         "layout",
         asked.lengths.repetitions, up_to(most_repetitions));
  parsed("--layout", "1",
         "N: in virtual time, of the first repeat: draws requests, keys, beginnings of threads, and where things lie "
         "in memory "
         "and on drives",
         asked.lengths.layout, up_to(most_layouts));
  parsed("--seed", "1", "N: of the operations and data", asked.lengths.seed, count_from_0);
  app.add_flag("--overwrite", asked.overwrite, "Overwrite an existing file, block device or pool");
  texts_of(app)("--json", asked.json, "FILE: write all results there (docs/results-schema.md); -: to standard output");
  app.add_flag("--quiet", asked.quiet, "No progress on stderr");
}

constexpr const char* about_the_run =
    "Each store has a drive of its own; of a file, PATH.STORE if there are several. Each answer is checked.\n"
    "Status: 0 measured; 1 wrong answers, or the run ended early; 2 bad input. "
    "docs/stores.md has the meaning of the figures.\n\n";

command add_volumes(CLI::App& stores, const arguments& command_line) {
  CLI::App* const app =
      stores.add_subcommand("volumes", "Measures volumes of blocks: throughput, latency, bytes, CPU time");
  const auto asked = std::make_shared<volumes_request>();
  const auto parsed = parsed_texts_of(*app);
  add_shared_options(*app, *asked, "chunk_store, raw, raw_dwb, raw_fpw, rocksdb_meta", "1,32");
  parsed(
      "--container", "pmem",
      "pmem | blocks | kv: where chunk_store has its records, in --medium, on the drive, or as values of a key-value "
      "device with --medium and a part of the drive",
      asked->container, as_written);
  parsed("--volume-bytes", "256M", "SIZE of the volume", asked->volume_bytes, bench::parse_bytes);
  parsed("--index", "cceh", "cceh | skip_list | fast_fair | fp_tree | hybrid: chunk_store's level 1", asked->index,
         as_written);
  parsed("--merge", "",
         "remap | copy: of chunk_store's full rings; remap if not given, with other containers than pmem copy",
         asked->merge, as_written);
  parsed("--ring", "16", "N: entries of a chunk's ring, 1 to 30", [asked](const std::string& n) {
    asked->ring = static_cast<std::uint32_t>(std::min(bench::parse_count(n, "--ring", 0), longest_ring));
  });
  parsed("--chunk", "1M", "SIZE of a chunk, 4K to 1M", asked->chunk_bytes, bench::parse_bytes);
  parsed("--cache", "", "SIZE, or a share of the records as 10%: DRAM for them with --container kv; all if not given",
         asked->cache, amount_of);
  parsed(
      "--phases", "fill,overwrite,read",
      "PHASE[,PHASE...] in any order: fill, overwrite, read, mix-a, mix-b, mix-c, mix:PERCENT, discard, pages, open, "
      "where mixes are of reads and overwrites",
      asked->phases, store_bench::parse_phases);
  parsed("--pattern", "random", "random,sequential,zipfian: order of places; mixes have their own", asked->orders,
         store_bench::parse_orders);
  parsed("--size", "4K,16K", "SIZE[,SIZE...] of an operation", asked->sizes, list_read_by(operation_size));
  app->footer(
      std::string(about_the_run) +
      "  pmlab stores volumes --store chunk_store,raw_dwb,raw --device emulated:p4610 --repeat 3 --json blocks.json\n"
      "  pmlab stores volumes --store chunk_store --medium counted:dram --phases overwrite --size 4K,16K "
      "--operations 10k\n"
      "  pmlab stores volumes --store chunk_store --medium pmem:/mnt/pmem/records --device file:/mnt/nvme/blocks "
      "--phases fill,open");
  return {app, [app, asked, command_line] {
            asked->given = given_options(*app);
            return measure_volumes(*asked, command_line);
          }};
}

command add_pairs(CLI::App& stores, const arguments& command_line) {
  CLI::App* const app =
      stores.add_subcommand("pairs", "Measures key-value stores: throughput, latency, bytes, CPU time");
  const auto asked = std::make_shared<pairs_request>();
  const auto parsed = parsed_texts_of(*app);
  add_shared_options(*app, *asked, "kv_ssd, tiered, rocksdb, leveldb, lmdb", "1");
  parsed("--staging", "", "As --device: a second, faster drive for tiered and rocksdb; none if not given",
         [asked](const std::string& text) {
           if (text != "none") asked->staging = drive::parse_device(text);
         });
  parsed("--staging-bytes", "", "SIZE of it; a quarter of the other and 64M if not given", asked->staging_bytes,
         bench::parse_bytes);
  parsed("--devices", "1", "N: number of drives that keys are spread over", asked->devices, up_to(most_devices));
  parsed("--records", "100k", "N: records loaded first", asked->records, count_from_1);
  parsed("--key-bytes", "16", "N: bytes of a key, 8 to 255", asked->key_bytes, key_size);
  parsed("--value", "1000", "SIZE[,SIZE...]: bytes of a value, 24 to 2M", asked->value_sizes, list_read_by(value_size));
  parsed("--cache", "0", "SIZE, or a share of the data as 10%: DRAM for pairs and pages that were read", asked->cache,
         amount_of);
  parsed("--memory", "",
         "SIZE, or a share of the data: limit of a store's memory, if it has one; its default if not given",
         asked->memory, amount_of);
  parsed("--loss-ms", "100", "MS: age of changes that a crash may lose, if a store has such a bound; 0: none",
         asked->loss_ms, loss_in_ms);
  parsed("--log", "on", "on | off: the log of a store that can do without", asked->log, on_or_off);
  parsed("--place", "",
         "capacity_only | staging_only | staging_max_capacity | staging_min_capacity | pmem_only | pmem_max_capacity: "
         "place of tiered's log, keys and values",
         asked->place, as_written);
  parsed("--memtable", "dram", "dram | pmem: memory of tiered's newest changes; pmem: in --medium",
         [asked](const std::string& name) {
           if (name != "dram" && name != "pmem")
             throw error(fmt::format("there is no memtable '{}'", name), "choose dram or pmem");
           asked->memtable = name;
         });
  parsed("--phases", "load,ycsb-a,ycsb-c",
         "PHASE[,PHASE...] in any order: load, ycsb-a to ycsb-f, insert, update, read, erase, open", asked->phases,
         store_bench::parse_pair_phases);
  parsed("--pattern", "random", "random,sequential,zipfian,uniform: order of keys; phases of YCSB have their own",
         asked->orders, store_bench::parse_pair_orders);
  app->footer(std::string(about_the_run) +
              "  pmlab stores pairs --store kv_ssd,rocksdb --device emulated:p4610 --records 100k --depth 8\n"
              "  pmlab stores pairs --store tiered,rocksdb --staging emulated:p4610 --device emulated:5210x4 "
              "--phases load,ycsb-a,ycsb-e");
  return {app, [app, asked, command_line] {
            asked->given = given_options(*app);
            return measure_pairs(*asked, command_line);
          }};
}

}  // namespace

command add_stores(CLI::App& program, const arguments& command_line) {
  CLI::App* const stores = program.add_subcommand("stores", "Measures storage engines on a drive");
  stores->require_subcommand(1);
  const command volumes = add_volumes(*stores, command_line);
  const command pairs = add_pairs(*stores, command_line);
  return {stores, [volumes, pairs] { return volumes.options->parsed() ? volumes.run() : pairs.run(); }};
}

}  // namespace pmlab::cli
