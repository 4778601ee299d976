// `pmlab stores bench`: the options. The run is in stores_here.cpp.
#include "tools/cli/command.hpp"
#include "tools/cli/stores_run.hpp"
#include <pmlab/base/error.hpp>

#include <array>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace pmlab::cli {
namespace {

constexpr std::array<const char*, 7> of_blocks{"--container", "--volume-bytes", "--index", "--merge",
                                               "--ring",      "--chunk",        "--size"};
constexpr std::array<const char*, 11> of_pairs{"--staging",   "--staging-bytes", "--devices", "--keys",
                                               "--key-bytes", "--value",         "--memory",  "--loss-ms",
                                               "--log",       "--place",         "--memtable"};

template <class Text>
void add_options_of_pairs(const Text& text, stores_options& given) {
  text("--staging", given.staging,
       "As --device: a second, faster drive for tiered and rocksdb, or none (--kind kv); none if not given");
  text("--staging-bytes", given.staging_bytes, "SIZE of it; a quarter of the other and 64M if not given");
  text("--devices", given.devices, "N: number of drives that keys are spread over (--kind kv); 1 if not given");
  text("--keys", given.keys, "N: number of records (--kind kv); 100k if not given");
  text("--key-bytes", given.key_bytes, "N: bytes of a key, 8 to 255 (--kind kv); 16 if not given");
  text("--value", given.values, "SIZE[,SIZE...]: bytes of a value, 24 to 2M (--kind kv); 1000 if not given");
  text("--cache", given.cache,
       "SIZE, or a share of the data as 10%: DRAM for pairs and pages that were read (--kind kv); 0 if not given. "
       "With --container kv: DRAM for records, or a share of them as 10%; all if not given");
  text("--memory", given.memory,
       "SIZE, or a share of the data: limit of a store's memory, if it has one (--kind kv); its default if not given");
  text("--loss-ms", given.loss_ms,
       "MS: age of changes that a crash may lose, if a store has such a bound (--kind kv); 0: none; 100 if not given");
  text("--log", given.log, "on | off: the log of a store that can do without (--kind kv); on if not given");
  text("--place", given.place,
       "capacity_only | staging_only | staging_max_capacity | staging_min_capacity | pmem_only | pmem_max_capacity: "
       "place of tiered's log, keys and values (--kind kv)");
  text("--memtable", given.memtable,
       "dram | pmem: memory of tiered's newest changes (--kind kv); pmem: in --medium; dram if not given");
}

void refuse_options_of_other_kind(const CLI::App& app, const std::string& kind) {
  const auto refuse = [&](const auto& names, const char* other) {
    for (const char* const name : names)
      if (app.get_option(name)->count() > 0)
        throw error(std::string(name) + " is of --kind " + other, std::string("leave it out, or give --kind ") + other);
  };
  if (kind == "kv") refuse(of_blocks, "block");
  if (kind == "block") refuse(of_pairs, "kv");
}

}  // namespace

command add_stores(CLI::App& program, const arguments& command_line) {
  CLI::App* const stores = program.add_subcommand("stores", "Measures storage engines on a drive");
  stores->require_subcommand(1);
  CLI::App* const app = stores->add_subcommand(
      "bench", "Measures volumes of blocks, or key-value stores: throughput, latency, bytes, CPU time");
  const auto given = std::make_shared<stores_options>();
  const auto text = texts_of(*app);
  text("--kind", given->kind, "block | kv: volumes of blocks, or key-value stores; block if not given");
  app->add_option(
         "--store", given->stores,
         "NAME[,NAME...] of chunk_store, raw, raw_dwb, raw_fpw, rocksdb_meta, or with kv of kv_ssd, tiered, rocksdb, "
         "leveldb, lmdb: they take turns; the last one is the baseline of ratios")
      ->type_name("")
      ->expected(1)
      ->take_all();
  text("--container", given->container,
       "pmem | blocks | kv: where chunk_store has its records, in --medium, on the drive, or as values of a key-value "
       "device with --medium and a part of the drive; pmem if not given");
  text("--medium", given->medium, "MEDIUM of the records, as for `pmlab bench`; dram if not given");
  text("--medium-bytes", given->medium_bytes, "SIZE of a pool; from the volume's if not given");
  text("--device", given->device,
       "memory | file:PATH | emulated:PROFILE | simulated:PROFILE: the drive; memory if not given; "
       "simulated: in virtual time, with --medium simulated:PROFILE for the records");
  text("--device-bytes", given->device_bytes,
       "SIZE of the drive of each store; the volume's (twice with --merge copy), a quarter more and 64M if not given");
  text("--volume-bytes", given->volume_bytes, "SIZE of the volume; 256M if not given");
  text("--index", given->index,
       "cceh | skip_list | fast_fair | fp_tree | hybrid: chunk_store's level 1; cceh if not given");
  text("--merge", given->merge,
       "remap | copy: of chunk_store's full rings; remap if not given, with other containers than pmem copy");
  text("--ring", given->ring, "N: entries of a chunk's ring, 1 to 30; 16 if not given");
  text("--chunk", given->chunk, "SIZE of a chunk, 4K to 1M; 1M if not given");
  text("--phases", given->phases,
       "PHASE[,PHASE...] in any order: fill, overwrite, read, mix-a, mix-b, mix-c, mix:PERCENT, discard, pages, open, "
       "where mixes are of reads and overwrites; fill,overwrite,read if not given. With --kind kv: load, ycsb-a to "
       "ycsb-f, insert, update, read, erase, open; load,ycsb-a,ycsb-c if not given");
  text("--pattern", given->patterns,
       "random,sequential,zipfian; with --kind kv uniform too; random if not given. Phases of YCSB have their own");
  text("--size", given->sizes, "SIZE[,SIZE...] of an operation; 4K,16K if not given");
  text("--depth", given->depths, "N[,N...]: operations of each thread under way; 1,32 if not given, with --kind kv 1");
  text("--threads", given->threads, "N; 1 if not given");
  CLI::Option* const operations =
      app->add_option("--operations", given->operations, "N: of each case, over all threads")->type_name("");
  app->add_option("--seconds", given->seconds,
                  "S: run each case this long instead; 1 if neither is given, 0.1 in virtual time")
      ->type_name("")
      ->excludes(operations);
  text("--repetitions", given->repetitions,
       "N: of each case; stores take turns; the table shows medians; 1 if not given");
  text("--seed", given->seed, "N: of places and data; 1 if not given");
  app->add_flag("--overwrite", given->overwrite, "Overwrite an existing file, block device or pool");
  text("--json", given->json, "FILE: write all results there (docs/results-schema.md); -: to standard output");
  app->add_flag("--quiet", given->quiet, "No progress on stderr");
  add_options_of_pairs(text, *given);
  app->footer(
      "Each store has a drive of its own; of a file, PATH.STORE if there are several. Each answer is checked.\n"
      "Status: 0 measured; 1 wrong answers, or the run ended early; 2 bad input. "
      "docs/stores.md has the meaning of the figures.\n\n"
      "  pmlab stores bench --store chunk_store,raw_dwb,raw --device emulated:p4610 --repetitions 3 "
      "--json blocks.json\n"
      "  pmlab stores bench --store chunk_store --medium counted:dram --phases overwrite --size 4K,16K "
      "--operations 10k\n"
      "  pmlab stores bench --store chunk_store --medium pmem:/mnt/pmem/records --device file:/mnt/nvme/blocks "
      "--phases fill,open\n"
      "  pmlab stores bench --kind kv --store kv_ssd,rocksdb --device emulated:p4610 --keys 100k --depth 8");
  return {app, [given, command_line, app] {
            refuse_options_of_other_kind(*app, given->kind);
            return measure_stores(*given, command_line);
          }};
}

}  // namespace pmlab::cli
