// `pmlab pool`: inspects and checks pool files, dumps and loads their entries as text, and copies the readable entries
// of a damaged one.
#include "tools/cli/command.hpp"
#include "tools/cli/complaint.hpp"
#include "tools/pool/child.hpp"
#include "tools/pool/dump_text.hpp"
#include "tools/pool/entries.hpp"
#include "tools/pool/inspect.hpp"
#include "tools/pool/new_pool.hpp"
#include "tools/pool/repair.hpp"
#include "tools/pool/report.hpp"
#include <pmlab/base/error.hpp>
#include "bench/support/machine.hpp"
#include "bench/support/output_file.hpp"
#include "bench/support/printable.hpp"
#include "bench/support/quantity.hpp"
#include "bench/support/read_file.hpp"
#include "bench/support/removed_on_interrupt.hpp"
#include "bench/support/write_file.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace pmlab::cli {
namespace {

// As on the command line; empty: not given.
struct given_options {
  std::string file, text, output, size, index, timeout;
  std::vector<std::string> roots;
  bool json = false;
};

pool::patience patience_of(const given_options& given) {
  if (given.timeout.empty()) return pool::default_patience;
  constexpr double most = 1e6;
  const double seconds = bench::parse_seconds(given.timeout, "--timeout");
  if (seconds > most) throw error("--timeout is too large", "give less than a million seconds");
  return pool::patience(static_cast<std::int64_t>(std::ceil(seconds)));
}

// For the end of a command whose pool is damaged or incomplete.
int end_with(const std::string& problem, const std::string& remedy = {}) {
  std::fflush(stdout);
  complain(error(problem, remedy).what());
  return failure;
}

int info(const given_options& given) {
  const pool::contents all = pool::contents_of(given.file, patience_of(given));
  const std::vector<pool::root_report> reports = pool::shapes_of(all, patience_of(given));
  // Where that fails the status is 2: 1 is about the pool.
  write_file("-", given.json ? pool::info_json(all, reports) : pool::info_text(all, reports));
  // A root of another program is no failure: this build does not open it.
  for (const pool::root_report& r : reports)
    if (r.of.is_readable() && !r.problem.empty()) return end_with(r.problem);
  return success;
}

int check(const given_options& given) {
  const pool::contents all = pool::contents_of(given.file, patience_of(given));
  const std::vector<pool::root_report> reports = pool::checks_of(all, patience_of(given));
  write_file("-", given.json ? pool::check_json(all, reports) : pool::check_text(reports));
  std::size_t bad = 0, unread = 0;
  for (const pool::root_report& r : reports) {
    if (!r.of.is_readable())
      ++unread;
    else if (!r.problem.empty() || !r.violations.empty())
      ++bad;
  }
  if (bad != 0)
    return end_with(fmt::format("{} of {} roots of pool {} are not sound", bad, reports.size(), given.file),
                    std::string(pool::damage::remedy));
  if (unread != 0)
    return end_with(fmt::format("{} of {} roots of pool {} could not be checked", unread, reports.size(), given.file),
                    "use the release of pmlab that wrote them");
  return success;
}

// Where a dump is written: standard output if no name was given. No file is overwritten; a device or a FIFO is written
// to.
std::string output_of(const given_options& given) {
  if (given.output.empty() || given.output == "-") return "-";
  std::error_code ignored;
  const std::filesystem::file_status there = std::filesystem::status(given.output, ignored);
  if (!std::filesystem::is_other(there)) pool::refuse_what_is_there(given.output);
  return given.output;
}

int dump(const given_options& given) {
  const pool::contents all = pool::contents_of(given.file, patience_of(given));
  // With the permissions of a pool.
  constexpr mode_t mode = 0600;
  output_file output(output_of(given), mode);
  const removed_on_interrupt doomed(output.unfinished());
  const auto chosen = pool::chosen_roots(all, given.roots);
  std::size_t left = chosen.size();
  for (const pool::root& r : chosen) {
    --left;
    const pool::read_entries read = pool::entries_of(all, r, pool::reading::opened, patience_of(given));
    if (!read.problem.empty()) throw error(read.problem, {});
    if (read.contradictions != 0)
      throw error(fmt::format("root '{}' of pool {} has {} keys with two values", printable(r.facts.name), given.file,
                              read.contradictions),
                  std::string(pool::damage::remedy));
    const pool::root& words = pool::words_of(all, r);
    if (read.values.empty())
      pool::write_root(output.stream(), output.name(), r.facts.name, *r.index, read.entries, left);
    else
      pool::write_strings(output.stream(), output.name(), words.facts.name, *words.index, read.values, read.texts,
                          left);
  }
  output.finish();
  return success;
}

int load(const given_options& given) {
  pool::refuse_what_is_there(given.file);
  // The text, entries that are made from it, and the pool, which may be in memory too.
  const std::string text = read_file(given.text, "dump", bench::available_memory() / 4);
  const std::vector<pool::dumped_root> roots = pool::parse_dump(text, given.text == "-" ? "stdin" : given.text);
  const bench::index_description* const other = given.index.empty() ? nullptr : &bench::find_index(given.index);
  std::vector<pool::new_root> wanted;
  for (const pool::dumped_root& r : roots) {
    const pool::string_entries* const texts = r.values.empty() ? nullptr : &r.texts;
    wanted.push_back({r.name, other != nullptr ? other : r.index, r.entries, texts, r.values});
  }
  const std::uint64_t bytes = given.size.empty() ? pool::bytes_for(wanted) : bench::parse_bytes(given.size, "--size");
  pool::make_pool(given.file, bytes, wanted);
  for (const pool::new_root& r : wanted)
    fmt::print("{}: {} entries in {}, checked\n", printable(r.name), r.count(), r.index->name);
  return success;
}

int repair(const given_options& given) {
  if (given.output.empty())
    throw error("no name for the new pool", "give --output NEW; a pool is never repaired in its place");
  pool::refuse_what_is_there(given.output);
  const std::uint64_t bytes = given.size.empty() ? 0 : bench::parse_bytes(given.size, "--size");
  const pool::contents all = pool::contents_of(given.file, patience_of(given));
  const std::vector<pool::salvaged_root> salvaged =
      pool::repair(all, pool::chosen_roots(all, given.roots), given.output, bytes, patience_of(given));
  fmt::print("{}", pool::repair_text(salvaged));
  std::size_t damaged = 0;
  for (const pool::salvaged_root& r : salvaged) damaged += r.is_whole() ? 0 : 1;
  if (damaged == 0) return success;
  return end_with(
      fmt::format("{} of {} roots were damaged, and entries of theirs may be missing", damaged, salvaged.size()),
      fmt::format("{} is sound and has the readable entries; keep {} until you know that nothing is missing",
                  given.output, given.file));
}

}  // namespace

command add_pool(CLI::App& program) {
  CLI::App* const app = program.add_subcommand("pool", "Inspects pool files: info, check, dump, load, repair");
  app->require_subcommand(1);
  const auto given = std::make_shared<given_options>();
  const auto run = std::make_shared<std::function<int()>>();
  const auto add = [&](const std::string& name, const std::string& what, int (*work)(const given_options&)) {
    CLI::App* const sub = app->add_subcommand(name, what);
    sub->callback([=] { *run = [=] { return work(*given); }; });
    return sub;
  };
  const auto names_file = [&](CLI::App* sub, const std::string& what) {
    sub->add_option("file", given->file, what)->type_name("")->required();
  };
  const auto looks = [&](CLI::App* sub) {
    texts_of (*sub)("--timeout", given->timeout,
                    "SECONDS: give up on a root, or on the pool, that takes longer; default: 600");
  };
  const auto chooses = [&](CLI::App* sub) {
    sub->add_option("--root", given->roots, "NAME: this root of the pool; may be repeated; default: all")
        ->type_name("")
        ->expected(1)
        ->take_all();
  };

  CLI::App* const of_info = add("info", "Lists the roots of a pool: index, version, entries and shape", info);
  CLI::App* const of_check = add("check", "Checks the invariants of every index in a pool", check);
  for (CLI::App* const sub : {of_info, of_check}) {
    names_file(sub, "FILE of the pool");
    looks(sub);
    sub->add_flag("--json", given->json, "As JSON (docs/pools.md)");
  }
  of_check->footer(
      "Status: 0 every index is sound; 1 one is not, or cannot be read by this build; 2 bad input, or the answer\n"
      "could not be written.");

  CLI::App* const of_dump = add("dump", "Writes the entries of a pool as text", dump);
  names_file(of_dump, "FILE of the pool");
  chooses(of_dump);
  texts_of (*of_dump)("--output", given->output, "TEXT: write to this file; default, and -: stdout");
  looks(of_dump);

  CLI::App* const of_load = add("load", "Makes a pool from the output of `pmlab pool dump`", load);
  of_load->add_option("text", given->text, "TEXT that was dumped, or - for stdin")->type_name("")->required();
  names_file(of_load, "FILE of the new pool");
  texts_of (*of_load)("--size", given->size, "SIZE of the pool, such as 1G; default: from the number of entries");
  texts_of (*of_load)("--index", given->index, "NAME of the index to put them into; default: named in the text");

  CLI::App* const of_repair = add("repair", "Copies the readable entries of a damaged pool into a new one", repair);
  names_file(of_repair, "FILE of the damaged pool; it is only read");
  texts_of (*of_repair)("--output", given->output, "NEW: the pool to make");
  texts_of (*of_repair)("--size", given->size, "SIZE of the new pool; default: the size of FILE");
  chooses(of_repair);
  looks(of_repair);
  of_repair->footer(
      "A pool is never repaired in place: a write to it may destroy bytes that another tool could still have read,\n"
      "and a copy loses nothing. NEW is checked before it gets its name; put it in FILE's place yourself.\n"
      "Status: 0 every entry is in NEW; 1 NEW has the readable entries; 2 nothing was done.");
  app->footer(
      "FILE is mapped privately: these commands do not write to it, and recovery changes memory only. Each index is\n"
      "opened in a child process, so that a damaged one ends in an error. docs/pools.md\n\n"
      "  pmlab pool info /dev/shm/my.pool\n"
      "  pmlab pool check /dev/shm/my.pool\n"
      "  pmlab pool dump /dev/shm/my.pool --output entries.txt && pmlab pool load entries.txt /dev/shm/new.pool\n"
      "  pmlab pool repair /dev/shm/my.pool --output /dev/shm/new.pool");
  return {app, [run] { return (*run)(); }};
}

}  // namespace pmlab::cli
