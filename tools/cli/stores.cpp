// `pmlab stores bench`: the options. The run is in stores_here.cpp.
#include "tools/cli/command.hpp"
#include "tools/cli/stores_run.hpp"
#include <pmlab/base/error.hpp>

#include <memory>
#include <string>

#include <CLI/CLI.hpp>

namespace pmlab::cli {

command add_stores(CLI::App& program, const arguments& command_line) {
  CLI::App* const stores = program.add_subcommand("stores", "Measures storage engines on a drive");
  stores->require_subcommand(1);
  CLI::App* const app =
      stores->add_subcommand("bench", "Measures volumes of blocks: throughput, latency, bytes, CPU time");
  const auto given = std::make_shared<stores_options>();
  const auto text = texts_of(*app);
  text("--kind", given->kind, "block: volumes of blocks");
  app->add_option(
         "--store", given->stores,
         "NAME[,NAME...] of chunk_store, raw, raw_dwb, raw_fpw, rocksdb_meta: they take turns; the last one is "
         "the baseline of ratios")
      ->type_name("")
      ->expected(1)
      ->take_all();
  text("--container", given->container,
       "pmem | blocks: where chunk_store has its records, in --medium or on the drive; pmem if not given");
  text("--medium", given->medium, "MEDIUM of the records, as for `pmlab bench`; dram if not given");
  text("--medium-bytes", given->medium_bytes, "SIZE of a pool; from the volume's if not given");
  text("--device", given->device,
       "memory | file:PATH | emulated:PROFILE | simulated:PROFILE: the drive; memory if not given; simulated: in "
       "virtual "
       "time, with --medium simulated:PROFILE for the records");
  text("--device-bytes", given->device_bytes,
       "SIZE of the drive of each store; the volume's (twice with --merge copy), a quarter more and 64M if not given");
  text("--volume-bytes", given->volume_bytes, "SIZE of the volume; 256M if not given");
  text("--index", given->index,
       "cceh | skip_list | fast_fair | fp_tree | hybrid: chunk_store's level 1; cceh if not given");
  text("--merge", given->merge,
       "remap | copy: of chunk_store's full rings; remap if not given, with --container blocks copy");
  text("--ring", given->ring, "N: entries of a chunk's ring, 1 to 30; 16 if not given");
  text("--chunk", given->chunk, "SIZE of a chunk, 4K to 1M; 1M if not given");
  text("--phases", given->phases,
       "fill,overwrite,read,mix-a,mix-b,mix-c,mix:PERCENT,discard,pages,open in any order; mixes are of reads and "
       "overwrites; "
       "fill,overwrite,read if not given");
  text("--pattern", given->patterns, "random,sequential,zipfian; random if not given");
  text("--size", given->sizes, "SIZE[,SIZE...] of an operation; 4K,16K if not given");
  text("--depth", given->depths, "N[,N...]: operations under way, of each thread; 1,32 if not given");
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
  app->footer(
      "Each store has a drive of its own; of a file, PATH.STORE if there are several. Each answer is checked.\n"
      "Status: 0 measured; 1 wrong answers, or the run ended early; 2 bad input. docs/stores.md has the meaning of the "
      "figures.\n\n"
      "  pmlab stores bench --store chunk_store,raw_dwb,raw --device emulated:p4610 --repetitions 3 --json "
      "blocks.json\n"
      "  pmlab stores bench --store chunk_store --medium counted:dram --phases overwrite --size 4K,16K --operations "
      "10k\n"
      "  pmlab stores bench --store chunk_store --medium pmem:/mnt/pmem/records --device file:/mnt/nvme/blocks "
      "--phases "
      "fill,open");
  return {app, [given, command_line] { return measure_stores(*given, command_line); }};
}

}  // namespace pmlab::cli
