// `pmlab list`: the names for the other commands' options.
#include "tools/cli/command.hpp"
#include "tools/cli/index_facts.hpp"
#include "bench/catalogue/medium_spec.hpp"
#include "bench/catalogue/registry.hpp"
#include "bench/devices/drive_file.hpp"
#include "bench/devices/profile_file.hpp"
#include "bench/engine/phase.hpp"
#include "bench/support/json_text.hpp"
#include "bench/support/optional_packages.hpp"
#include "bench/workload/distribution.hpp"
#include "bench/workload/mix.hpp"

#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace pmlab::cli {
namespace {

using json = nlohmann::ordered_json;

std::string_view kind_of(const bench::index_description& d) { return d.ordered ? "ordered" : "point"; }

std::string_view place_of(const bench::index_description& d) {
  switch (d.place) {
    case bench::placement::any_medium: return "any medium";
    case bench::placement::own_dram: return "DRAM";
    case bench::placement::own_pool: return "pmem:PATH";
  }
  return "?";
}

// The operations that it has, with one thread.
std::string operations_of(const bench::index_description& d) {
  std::string text;
  for (std::size_t k = 0; k < workload::operation_kinds; ++k) {
    const auto kind = static_cast<workload::operation_kind>(k);
    if (kind == workload::operation_kind::read_modify_write || !d.refusal(kind, 1).empty()) continue;
    text += (text.empty() ? "" : ", ") + std::string(to_string(kind));
  }
  return text;
}

// One-line description of a profile; a profile that cannot be read is reported by the command that uses it.
std::string describe(std::string_view profile) { return media::load_profile(profile).description; }

// As a user asks for an index; then, of pmlab's own, the facts of indexes/indexes.json.
json facts_of(const bench::index_description& d, const json& own) {
  json facts = {{"name", d.name},
                {"kind", kind_of(d)},
                {"what", d.what},
                {"lives_in", place_of(d)},
                {"operations", operations_of(d)},
                {"threads", d.threading},
                {"peer", d.peer}};
  for (const json& entry : own) {
    if (entry["name"] != d.name) continue;
    for (const auto& [fact, value] : entry.items())
      if (!facts.contains(fact)) facts[fact] = value;
    // Those that an entry may leave out.
    facts["header"] = entry.value("header", d.name);
    facts["verified"] = entry.value("verified", true);
  }
  return facts;
}

json everything() {
  json all;
  const json own = json::parse(index_facts().front().text);
  for (const bench::index_description* d : bench::all_indexes()) all["indexes"].push_back(facts_of(*d, own));
  all["combinations"] = json::array();
  for (const bench::combination* c : bench::all_combinations())
    all["combinations"].push_back({{"name", c->name}, {"form", c->form}, {"what", c->what}});
  for (const bench::medium_form& f : bench::medium_forms())
    all["media"].push_back({{"form", f.form}, {"what", f.what}});
  for (const std::string_view name : media::profile_names())
    all["profiles"].push_back(
        {{"name", name}, {"what", describe(name)}, {"persistence", to_string(media::load_profile(name).persistence)}});
  for (const std::string_view name : blocks::drive_names())
    all["drives"].push_back({{"name", name}, {"what", blocks::load_drive(name).description}});
  for (const std::string_view name : workload::mix_names()) all["workloads"].push_back(name);
  for (const std::string_view name : workload::distribution_names()) all["distributions"].push_back(name);
  for (const std::string_view name : bench::phase_names()) all["phases"].push_back(name);
  all["left_out"] = bench::left_out_to_json();
  return all;
}

std::string joined(const json& names) {
  std::string text;
  for (const json& name : names) text += (text.empty() ? "" : "  ") + name.get<std::string>();
  return text;
}

void print_text(const json& all) {
  std::puts("Indexes (--index)");
  for (const json& i : all["indexes"]) {
    fmt::print("  {:<14} {:<8} {}\n", i["name"].get<std::string>(), i["kind"].get<std::string>(),
               i["what"].get<std::string>());
    fmt::print("  {:<14} {:<8} lives in: {}; {}; threads: {}\n", "", "", i["lives_in"].get<std::string>(),
               i["operations"].get<std::string>(), i["threads"].get<std::string>());
  }
  for (const json& c : all["combinations"])
    fmt::print("  {}\n  {:<23} {}\n", c["form"].get<std::string>(), "", c["what"].get<std::string>());
  std::puts("\nMedia (--medium)");
  for (const json& m : all["media"])
    fmt::print("  {:<23} {}\n", m["form"].get<std::string>(), m["what"].get<std::string>());
  std::puts("\nDevice profiles (emulated:PROFILE, simulated:PROFILE; a file.toml of your own works too)");
  for (const json& p : all["profiles"])
    fmt::print("  {:<14} {}; {}\n", p["name"].get<std::string>(), p["what"].get<std::string>(),
               p["persistence"].get<std::string>());
  std::puts("\nDrive profiles (modelled drives; a file.toml of your own works too)");
  for (const json& d : all["drives"])
    fmt::print("  {:<14} {}\n", d["name"].get<std::string>(), d["what"].get<std::string>());
  fmt::print("\nWorkloads (--workload), or shares such as \"read=.9,update=.1\"\n  {}\n", joined(all["workloads"]));
  fmt::print("\nDistributions (--distribution)\n  {}\n", joined(all["distributions"]));
  fmt::print("\nPhases (--phases)\n  {}\n", joined(all["phases"]));
  if (all["left_out"].empty()) return;
  std::puts("\nLeft out");
  for (const json& p : all["left_out"])
    fmt::print("  {}, which {} brings: {}\n", p["brings"].get<std::string>(), p["title"].get<std::string>(),
               p["remedy"].get<std::string>());
}

}  // namespace

command add_list(CLI::App& program) {
  CLI::App* const options = program.add_subcommand("list", "Names the indexes, media, profiles, drives, workloads");
  const auto as_json = std::make_shared<bool>(false);
  options->add_flag("--json", *as_json, "As JSON");
  return {options, [as_json] {
            const json all = everything();
            if (*as_json)
              fmt::print("{}\n", json_text(all, 2));
            else
              print_text(all);
            return success;
          }};
}

}  // namespace pmlab::cli
